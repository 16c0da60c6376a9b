//! Input by rules: who hears what, and what is recorded.

use proptest::prelude::*;
use takt_core::Span;

use super::evdev::{Axes, Axis, Reader, Report, event};
use super::*;
use crate::geometry::Size;
use crate::windows::{Action, Claims, ClientId, Motion, Order, Subject};

const CONFIG: &str = r#"
[[output]]
name = "center"
size = "200x100"

[[domain]]
name = "own"

[[domain]]
name = "apps"

[[window]]
name = "map"
domain = "own"
app_id = "map"
output = "center"
area = "100x100+0+0"

[[window]]
name = "game"
domain = "apps"
app_id = "game"
output = "center"
area = "100x100+100+0"
input_while_moving = ["rotary"]

[[window]]
name = "dial"
domain = "own"
app_id = "dial"
output = "center"
area = "20x100+90+0"
layer = 5
input = []

[[window]]
name = "question"
domain = "own"
app_id = "question"
output = "center"
area = "40x40+0+0"
layer = 7
dialogue = true

[[window]]
name = "law"
domain = "own"
app_id = "law"
output = "center"
area = "40x40+0+50"
layer = 8
dialogue = true
required = true

[[input]]
name = "panel"
kind = "touch"

[[input]]
name = "mouse"
kind = "pointer"
hands = 2

[[input]]
name = "keys"
kind = "keys"
hands = 0
exit_keys = [1]

[[input]]
name = "knob"
kind = "rotary"
domains = ["apps"]
"#;

const PANEL: usize = 0;
const MOUSE: usize = 1;
const KEYS: usize = 2;
const KNOB: usize = 3;

fn ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

struct World {
    windows: Windows,
    inputs: Inputs,
    names: Vec<&'static str>,
}

impl World {
    /// Windows that are shown, in this order.
    fn new(names: &[&'static str]) -> Self {
        let config = Arc::new(Cockpit::parse(CONFIG).expect("fine"));
        let windows = Windows::new(Arc::clone(&config), ms(0));
        let mut world = Self { windows, inputs: Inputs::new(config), names: Vec::new() };
        world.motion(Motion::Parked);
        names.iter().for_each(|name| world.open(name));
        world.told();
        world.inputs.pass(&mut world.windows, ms(0), |_| u64::MAX);
        world.recorded();
        world
    }

    fn open(&mut self, name: &'static str) {
        self.names.push(name);
        let id = WindowId(self.names.len() as u64);
        let domain = usize::from(name == "game");
        let claims = Claims::Xdg { app_id: name.to_owned(), title: String::new() };
        assert!(self.windows.appear(ms(0), id, ClientId(id.0), domain, claims));
        let size = self.windows.rule(id).expect("a rule").area.size;
        self.windows.map(ms(0), id, size, vec![Rect::of(size)]);
        self.inputs.review(&self.windows, ms(0));
    }

    fn motion(&mut self, motion: Motion) {
        self.windows.set_motion(ms(0), motion);
        self.inputs.review(&self.windows, ms(0));
    }

    fn hear(&mut self, device: usize, act: Act) -> Result<(), String> {
        self.inputs.hear(&mut self.windows, Heard { device, act, at: ms(10), now: ms(10) })
    }

    /// What windows heard since then, one line each.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(delivery) = self.inputs.poll() {
            let name = self.names[usize::try_from(delivery.window.0 - 1).expect("small")];
            self.inputs.sent(&self.windows, &delivery, 1);
            told.push(
                format!("{name}: {:?}", delivery.deed)
                    .replace("Point { x: ", "(")
                    .replace(" }", ")")
                    .replace("y: ", ""),
            );
        }
        told
    }

    /// What was recorded since then of input.
    fn recorded(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(action) = self.windows.poll() {
            match action {
                Action::Record(note)
                    if matches!(note.kind, crate::windows::Kind::Input | crate::windows::Kind::Response) =>
                {
                    said.push(format!("{} {} {} [{}]", note.window, note.asked, note.reason, note.rule));
                }
                Action::Close(id) => {
                    said.push(format!("close {}", self.names[usize::try_from(id.0 - 1).expect("small")]))
                }
                _ => {}
            }
        }
        said
    }
}

fn down(x: i32, y: i32) -> Act {
    Act::Down { finger: 0, at: Point { x, y } }
}

fn drag(x: i32, y: i32) -> Act {
    Act::Drag { finger: 0, at: Point { x, y } }
}

#[test]
fn a_finger_stays_with_the_window_that_it_touched() {
    let mut world = World::new(&["map", "game"]);
    world.hear(PANEL, down(10, 20)).expect("may");
    world.hear(PANEL, drag(150, 30)).expect("may");
    world.hear(PANEL, Act::Up { finger: 0 }).expect("may");
    world.hear(PANEL, drag(10, 20)).expect("nothing");
    assert_eq!(
        world.told(),
        [
            "game: Unfocus",
            "map: Focus",
            "map: TouchDown(0, (10, 20))",
            "map: TouchMove(0, (150, 30))",
            "map: TouchUp(0)"
        ],
        "and keys go to what was touched"
    );
    world.hear(PANEL, down(10, 20)).expect("may");
    world.windows.order(ms(11), &Subject::Name("map".to_owned()), Order::Hide).expect("may");
    world.inputs.review(&world.windows, ms(11));
    world.hear(PANEL, Act::Up { finger: 0 }).expect("nothing");
    assert_eq!(
        world.told(),
        ["map: TouchDown(0, (10, 20))", "map: TouchCancel", "map: Unfocus", "game: Focus"],
        "a hidden window hears nothing"
    );
}

#[test]
fn no_window_behind_gets_what_one_in_front_may_not_have() {
    let mut world = World::new(&["map", "game", "dial"]);
    let refused = world.hear(PANEL, down(95, 5)).expect_err("the dial takes no input");
    assert_eq!(refused, "the window has no input of this kind");
    world.hear(PANEL, drag(10, 10)).expect("nothing");
    world.hear(PANEL, Act::Up { finger: 0 }).expect("nothing");
    assert!(world.told().is_empty());
    assert_eq!(world.recorded(), ["dial down of panel the window has no input of this kind [input]"]);
    for _ in 0..1000 {
        world.hear(PANEL, down(95, 5)).expect_err("as before");
    }
    assert!(world.recorded().is_empty(), "the same is told once in a second");
    let heard = Heard { device: PANEL, act: down(95, 5), at: ms(2000), now: ms(2000) };
    world.inputs.hear(&mut world.windows, heard).expect_err("as before");
    assert!(world.recorded()[0].contains("and 1000 times before"));
}

#[test]
fn nothing_takes_both_hands_while_the_vehicle_moves() {
    let mut world = World::new(&["map", "game"]);
    world.hear(MOUSE, Act::Point { at: Point { x: 150, y: 5 } }).expect("may");
    world.hear(MOUSE, Act::Press { button: 0x110 }).expect("may");
    world.hear(PANEL, down(150, 5)).expect("may");
    world.told();
    world.motion(Motion::Moving);
    assert_eq!(
        world.told(),
        ["game: TouchCancel", "game: Button(272, Up)", "game: Away", "game: Unfocus", "map: Focus"],
        "what began ends; the game has no touch and no keys then"
    );
    assert!(world.hear(MOUSE, Act::Press { button: 0x110 }).expect_err("both hands").contains("both hands"));
    assert!(world.hear(PANEL, down(150, 5)).expect_err("not then").contains("no such input then"));
    world.hear(PANEL, down(5, 5)).expect("one hand");
    world.hear(KNOB, Act::Turn { steps: -1 }).expect("it may have that");
    assert_eq!(
        world.told(),
        [
            "map: TouchDown(0, (5, 5))",
            "map: Unfocus",
            "game: Focus",
            "game: Key(105, Down)",
            "game: Key(105, Up)"
        ]
    );
    assert_eq!(world.recorded().len(), 2);
}

#[test]
fn keys_go_to_the_window_that_was_touched_and_devices_to_their_domains() {
    let mut world = World::new(&["map", "game"]);
    world.hear(KEYS, Act::KeyDown { key: 30 }).expect("may");
    assert_eq!(world.told(), ["game: Key(30, Down)"], "the one in front");
    world.hear(PANEL, down(5, 5)).expect("may");
    world.hear(KEYS, Act::KeyUp { key: 30 }).expect("may");
    world.hear(KEYS, Act::KeyDown { key: 31 }).expect("may");
    world.hear(KEYS, Act::KeyDown { key: 31 }).expect("a repetition");
    assert_eq!(
        world.told(),
        [
            "game: Unfocus",
            "map: Focus",
            "map: TouchDown(0, (5, 5))",
            "game: Key(30, Up)",
            "map: Key(31, Down)"
        ]
    );
    world.windows.order(ms(1), &Subject::Name("game".to_owned()), Order::Hide).expect("may");
    let refused = world.hear(KNOB, Act::Turn { steps: 3 }).expect_err("the map is of another domain");
    assert_eq!(refused, "the device is not for its domain");
    assert!(world.hear(PANEL, Act::Turn { steps: 1 }).is_err() && world.hear(9, Act::Reset).is_err());
}

#[test]
fn a_dialogue_can_always_be_left_and_what_the_law_requires_stays() {
    let mut world = World::new(&["map", "question"]);
    world.motion(Motion::Moving);
    world.told();
    world.hear(KEYS, Act::KeyDown { key: 30 }).expect("may");
    assert_eq!(world.told(), ["question: Key(30, Down)"], "a dialogue has the keys");
    world.hear(KEYS, Act::KeyDown { key: 1 }).expect("left");
    world.hear(KEYS, Act::KeyUp { key: 1 }).expect("nothing");
    assert_eq!(world.recorded(), ["question leave by key 1 of keys  [dialogue]", "close question"]);
    assert_eq!(
        world.told(),
        ["question: Key(30, Up)", "question: Unfocus", "map: Focus"],
        "the client hears nothing of the key"
    );
    assert!(world.windows.shown_on(WindowId(2)).is_none(), "whatever the client does");
    world.windows.map(ms(20), WindowId(2), Size::new(40, 40), Vec::new());
    assert!(world.windows.shown_on(WindowId(2)).is_none());
    world.windows.unmap(ms(21), WindowId(2));
    world.windows.map(ms(22), WindowId(2), Size::new(40, 40), Vec::new());
    assert!(world.windows.shown_on(WindowId(2)).is_some(), "it asks anew");
    world.open("law");
    world.recorded();
    let stays = world.hear(KEYS, Act::KeyDown { key: 1 }).expect_err("required");
    assert_eq!(stays, "law is required: it stays");
    assert_eq!(world.recorded(), ["law leave by key 1 of keys law is required: it stays [required]"]);
    assert!(world.windows.shown_on(WindowId(3)).is_some());
}

#[test]
fn dialogues_without_a_way_out_are_mistakes() {
    let text = CONFIG.replace("exit_keys = [1]", "");
    let mistake = Cockpit::parse(&text).expect_err("no way out").to_string();
    assert!(
        mistake.contains("window \"question\": dialogue = true: no key leaves it: add exit_keys"),
        "{mistake}"
    );
}

#[test]
fn answers_are_measured_and_silence_is_recorded_once() {
    let mut world = World::new(&["map"]);
    let seen = |look, at| Seen { window: WindowId(1), look, at: ms(at) };
    world.hear(PANEL, down(5, 5)).expect("may");
    world.told();
    assert_eq!(world.inputs.next_timeout(), Some(ms(260)));
    world.inputs.seen(seen(1, 20));
    world.inputs.seen(seen(2, 40));
    let (times, silent) = world.inputs.times(WindowId(1));
    assert_eq!((times.count(), times.longest(), silent), (1, Span::from_ms(30), 0));
    world.inputs.pass(&mut world.windows, ms(260), |_| u64::MAX);
    assert!(world.recorded().is_empty());
    for _ in 0..2 {
        world.hear(PANEL, down(5, 5)).expect("may");
        world.told();
        world.inputs.pass(&mut world.windows, ms(300), |_| 0);
    }
    assert_eq!(
        world.recorded(),
        ["map  its client does not take it 250 ms after input [delivery]"],
        "once, until it answers"
    );
    assert_eq!(world.inputs.times(WindowId(1)).1, 2);
    world.hear(PANEL, down(5, 5)).expect("may");
    world.told();
    world.inputs.seen(seen(3, 50));
    world.hear(PANEL, down(5, 5)).expect("may");
    world.told();
    world.inputs.pass(&mut world.windows, ms(300), |_| u64::MAX);
    assert_eq!(world.recorded(), ["map  its picture has not changed 250 ms after input [response_ms_max]"]);
    assert_eq!(world.inputs.next_timeout(), None);
}

#[test]
fn what_a_device_lost_is_lift_of() {
    let mut world = World::new(&["map"]);
    world.hear(PANEL, down(5, 5)).expect("may");
    world.hear(KEYS, Act::KeyDown { key: 30 }).expect("may");
    world.told();
    world.hear(PANEL, Act::Reset).expect("done");
    world.hear(KEYS, Act::Reset).expect("done");
    assert_eq!(world.told(), ["map: TouchCancel", "map: Key(30, Up)"]);
    for key in 0..100 {
        world.hear(KEYS, Act::KeyDown { key: 100 + key }).expect("may");
    }
    assert_eq!(world.told().len(), HELD_MAX, "so many at once, and no more");
}

fn bytes(events: &[((u16, u16), i32)]) -> Vec<u8> {
    events.iter().flat_map(|(code, value)| event(Span::from_ms(5), *code, *value)).collect()
}

const REPORT: ((u16, u16), i32) = ((0, 0), 0);

#[test]
fn events_of_touch_screens_are_fingers() {
    let axes = Axes { x: Axis { min: 0, max: 4095 }, y: Axis { min: 0, max: 4095 } };
    let mut reader = Reader::new(Kind::Touch, Size::new(200, 100), axes);
    let stream = bytes(&[
        ((3, 0x2F), 0),
        ((3, 0x39), 7),
        ((3, 0x35), 2048),
        ((3, 0x36), 2048),
        ((1, 0x14A), 1),
        ((3, 0), 2048),
        REPORT,
        ((3, 0x35), 4095),
        ((3, 0x2F), 3),
        ((3, 0x39), 8),
        ((3, 0x35), -5),
        REPORT,
        ((3, 0x39), -1),
        ((3, 0x2F), 0),
        ((3, 0x39), 9),
        REPORT,
    ]);
    // However it is cut into pieces.
    let reports: Vec<Report> = stream.chunks(7).flat_map(|part| reader.read(part)).collect();
    let acts: Vec<&[Act]> = reports.iter().map(|report| report.acts.as_slice()).collect();
    let at = |x, y| Point { x, y };
    assert_eq!(
        acts,
        [
            &[Act::Down { finger: 0, at: at(100, 50) }][..],
            &[Act::Drag { finger: 0, at: at(199, 50) }, Act::Down { finger: 3, at: at(0, 0) }],
            &[Act::Up { finger: 0 }, Act::Down { finger: 0, at: at(199, 50) }, Act::Up { finger: 3 }],
        ]
    );
    assert_eq!(reports[0].at, ms(5));
    let lost = reader.read(&bytes(&[((0, 3), 0), ((3, 0x39), 1), REPORT]));
    assert_eq!(lost[0].acts, [Act::Reset], "the kernel lost events");
}

#[test]
fn events_of_other_devices_are_what_they_do() {
    let read = |kind, events: &[((u16, u16), i32)]| {
        let mut reader = Reader::new(kind, Size::new(200, 100), Axes::of(Size::new(200, 100)));
        reader.read(&bytes(events)).into_iter().flat_map(|report| report.acts).collect::<Vec<Act>>()
    };
    assert_eq!(
        read(Kind::Touch, &[((3, 0), 7), ((3, 1), 8), ((1, 0x14A), 1), REPORT, ((1, 0x14A), 0), REPORT]),
        [Act::Down { finger: 0, at: Point { x: 7, y: 8 } }, Act::Up { finger: 0 }],
        "a touch screen with one finger"
    );
    assert_eq!(
        read(Kind::Pointer, &[((2, 0), 3), ((2, 1), -4), ((1, 0x110), 1), ((2, 8), 1), REPORT]),
        [Act::Nudge { x: 3, y: -4 }, Act::Press { button: 0x110 }, Act::Scroll { x: 0, y: -1 }]
    );
    assert_eq!(
        read(Kind::Keys, &[((1, 30), 1), REPORT, ((1, 30), 2), REPORT, ((1, 30), 0), REPORT]),
        [Act::KeyDown { key: 30 }, Act::KeyUp { key: 30 }],
        "clients repeat keys themselves"
    );
    assert_eq!(
        read(Kind::Rotary, &[((2, 7), -2), REPORT, ((1, 28), 1), REPORT]),
        [Act::Turn { steps: -2 }, Act::KeyDown { key: 28 }]
    );
}

fn any_act() -> impl Strategy<Value = Act> {
    let at = || (-10..300, -10..200).prop_map(|(x, y)| Point { x, y });
    prop_oneof![
        (0..20u32, at()).prop_map(|(finger, at)| Act::Down { finger, at }),
        (0..20u32, at()).prop_map(|(finger, at)| Act::Drag { finger, at }),
        (0..20u32).prop_map(|finger| Act::Up { finger }),
        at().prop_map(|at| Act::Point { at }),
        (any::<i32>(), any::<i32>()).prop_map(|(x, y)| Act::Nudge { x, y }),
        (0..5u32).prop_map(|button| Act::Press { button }),
        (0..5u32).prop_map(|button| Act::Release { button }),
        (any::<i32>(), any::<i32>()).prop_map(|(x, y)| Act::Scroll { x, y }),
        (0..5u32).prop_map(|key| Act::KeyDown { key }),
        (0..5u32).prop_map(|key| Act::KeyUp { key }),
        any::<i32>().prop_map(|steps| Act::Turn { steps }),
        Just(Act::Reset),
    ]
}

proptest! {
    /// Whatever devices and windows do, a window hears only what the rules let it have, fingers and keys go up
    /// where they went down, and a window that is not shown hears no more than that something ended.
    #[test]
    fn no_window_hears_what_it_may_not(steps in prop::collection::vec((0..6usize, 0..4usize, any_act()), 1..80)) {
        let mut world = World::new(&["map", "game", "dial", "question"]);
        let mut down: BTreeMap<(WindowId, String), u32> = BTreeMap::new();
        for (what, device, act) in steps {
            match what {
                0 => {
                    let motion = if device < 2 { Motion::Moving } else { Motion::Parked };
                    world.windows.set_motion(ms(10), motion);
                }
                1 => {
                    let name = Subject::Name(["map", "game", "dial", "question"][device].to_owned());
                    let order = if act == Act::Reset { Order::Show } else { Order::Hide };
                    // One that is refused changes nothing.
                    drop(world.windows.order(ms(10), &name, order));
                }
                _ => drop(world.hear(device, act)),
            }
            world.inputs.review(&world.windows, ms(10));
            while let Some(delivery) = world.inputs.poll() {
                let rule = world.windows.rule(delivery.window).expect("it is there").clone();
                let kind = match delivery.deed {
                    Deed::TouchDown(finger, _) => Some((Kind::Touch, format!("finger {finger}"))),
                    Deed::Button(button, Push::Down) => Some((Kind::Pointer, format!("button {button}"))),
                    _ => None,
                };
                if let Some((kind, held)) = kind {
                    let moving = world.windows.motion() == Motion::Moving;
                    prop_assert!(rule.input.contains(&kind), "{delivery:?}");
                    // What began while it stood is ended at once when it moves.
                    prop_assert!(!moving || rule.input_while_moving.contains(&kind), "{delivery:?}");
                    prop_assert!(!moving || kind != Kind::Pointer, "the mouse takes both hands");
                    *down.entry((delivery.window, held)).or_default() += 1;
                }
                let ended = match delivery.deed {
                    Deed::TouchUp(finger) => Some(format!("finger {finger}")),
                    Deed::Button(button, Push::Up) => Some(format!("button {button}")),
                    _ => None,
                };
                if let Some(held) = ended {
                    let count = down.entry((delivery.window, held)).or_default();
                    prop_assert!(*count > 0, "it goes up where it went down: {delivery:?}");
                    *count -= 1;
                }
            }
        }
    }

    /// A device can say what it likes: nothing panics, and every finger that goes up was down.
    #[test]
    fn bytes_of_devices_are_harmless(
        events in prop::collection::vec((0..4u16, 0..0x40u16, -3..5000i32), 0..200),
        cut in 1..40usize,
    ) {
        let axes = Axes { x: Axis { min: 5, max: 5 }, y: Axis { min: i32::MIN, max: i32::MAX } };
        for kind in Kind::ALL {
            let mut reader = Reader::new(kind, Size::new(200, 100), axes);
            let one = |(kind, code, value): &(u16, u16, i32)| event(Span::ZERO, (*kind, *code), *value);
            let bytes: Vec<u8> = events.iter().flat_map(one).collect();
            let reports: Vec<Report> = bytes.chunks(cut).flat_map(|part| reader.read(part)).collect();
            let mut fingers = [false; FINGERS_MAX as usize];
            for report in reports {
                prop_assert!(report.acts.len() <= ACTS_MAX);
                for act in report.acts {
                    prop_assert!(act.is_of(kind), "{act:?} of {kind:?}");
                    prop_assert!(follows(&mut fingers, act), "{act:?}");
                }
            }
        }
    }
}

/// Whether an act of a finger can follow what was before.
fn follows(fingers: &mut [bool; FINGERS_MAX as usize], act: Act) -> bool {
    match act {
        Act::Down { finger, .. } => !std::mem::replace(&mut fingers[finger as usize], true),
        Act::Up { finger } => std::mem::take(&mut fingers[finger as usize]),
        Act::Drag { finger, .. } => fingers[finger as usize],
        Act::Reset => {
            *fingers = Default::default();
            true
        }
        _ => true,
    }
}
