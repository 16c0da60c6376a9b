//! Input devices, and what clients hear of them: over the protocol, from tools and from files of events.

use std::io::Write;
use std::path::PathBuf;

use takt_cockpit::control::{Reply, WindowStatus};
use takt_cockpit::geometry::Point;
use takt_cockpit::input::Act;
use takt_cockpit::input::evdev::event;
use takt_cockpit::windows::{Kind, Motion};
use takt_compositor::admin::Admin;
use takt_compositor::manager::Entry;
use takt_core::Span;
use takt_daemon::control::rights::Domains;

use crate::admin::Tool;
use crate::wayland::{Client, Window, patiently};
use crate::world::{World, path};

const CONFIG: &str = "
[[output]]
name = 'center'
size = '200x100'

[[domain]]
name = 'apps'

[[domain]]
name = 'others'

[[window]]
name = 'app'
domain = 'apps'
app_id = 'app'
output = 'center'
area = '80x60+20+30'
response_ms_max = 20000

[[window]]
name = 'other'
domain = 'others'
app_id = 'other'
output = 'center'
area = '80x60+120+30'
response_ms_max = 50

[[window]]
name = 'question'
domain = 'others'
app_id = 'question'
output = 'center'
area = '40x20+160+0'
layer = 1
dialogue = true

[[input]]
name = 'panel'
kind = 'touch'

[[input]]
name = 'mouse'
kind = 'pointer'

[[input]]
name = 'keys'
kind = 'keys'
exit_keys = [1]

[[input]]
name = 'knob'
kind = 'rotary'
hands = 0
";

const GREEN: u32 = 0xFF00_FF00;

/// A client that listens, with a window that is shown.
fn shown(world: &World, name: &str, domain: &str, size: (i32, i32)) -> (Client, Window) {
    let mut client = world.client(domain);
    client.listen();
    let window = client.window(name);
    let (_, feedback) = client.paint(&window.surface, size, GREEN);
    client.presented(feedback);
    (client, window)
}

fn hears(client: &mut Client, wanted: &str) {
    client.until(wanted, |heard| heard.input.iter().any(|input| input == wanted));
}

fn tap(x: i32, y: i32) -> Vec<Act> {
    vec![Act::Down { finger: 0, at: Point { x, y } }, Act::Up { finger: 0 }]
}

fn status(world: &World, name: &str) -> WindowStatus {
    let status = world.cockpit.controls().status().expect("a status");
    let is_it = |window: &WindowStatus| window.name.as_deref() == Some(name);
    status.windows.into_iter().find(is_it).expect("it is there")
}

#[test]
fn a_window_hears_what_is_done_to_it_and_others_do_not() {
    let world = World::new(CONFIG);
    let controls = world.cockpit.controls();
    controls.set_motion(Motion::Parked).expect("told");
    let (mut other, _other_window) = shown(&world, "other", "others", (80, 60));
    let (mut app, window) = shown(&world, "app", "apps", (80, 60));
    controls.input("panel", tap(25, 35)).expect("may");
    hears(&mut app, "touch 0 down at 5,5");
    hears(&mut app, "touch 0 up");
    hears(&mut app, "keys enter");
    controls.input("keys", vec![Act::KeyDown { key: 30 }, Act::KeyUp { key: 30 }]).expect("may");
    hears(&mut app, "key 30 up");
    controls.input("knob", vec![Act::Turn { steps: 1 }]).expect("may");
    hears(&mut app, "key 106 up");
    let at = Point { x: 30, y: 40 };
    let (button, scroll) = (0x110, Act::Scroll { x: 0, y: 2 });
    let acts = vec![Act::Point { at }, Act::Press { button }, Act::Release { button }, scroll];
    controls.input("mouse", acts).expect("may");
    hears(&mut app, "pointer enter at 10,10");
    hears(&mut app, "button 272 up");
    hears(&mut app, "scroll 30");
    controls.input("mouse", vec![Act::Point { at: Point { x: 1, y: 1 } }]).expect("nothing is there");
    hears(&mut app, "pointer leave");
    assert_eq!(controls.input("panel", tap(0, 0)), Ok(()), "nothing is there");
    let (_, feedback) = app.paint(&window.surface, (80, 60), 0xFFFF_0000);
    app.presented(feedback);
    let input = patiently("its answer is counted", || {
        status(&world, "app").input.filter(|input| input.answered == 1)
    });
    assert!(input.delivered >= 10 && input.response_ms_max > 0.0 && input.silent == 0, "{input:?}");
    assert!(input.delivery_ms_p99 <= input.delivery_ms_max);
    assert!(status(&world, "app").focus && !status(&world, "other").focus);
    other.roundtrip();
    let heard: Vec<&String> = other.heard.input.iter().filter(|input| !input.starts_with("keys ")).collect();
    assert!(heard.is_empty(), "{heard:?}");
}

#[test]
fn a_moving_vehicle_and_dialogues_change_who_hears_what() {
    let world = World::new(CONFIG);
    let controls = world.cockpit.controls();
    let (mut app, _window) = shown(&world, "app", "apps", (80, 60));
    let refused = controls.input("keys", vec![Act::KeyDown { key: 30 }]).expect_err("both hands");
    assert!(refused.contains("both hands"), "{refused}");
    let told = |entry: &Entry| match entry {
        Entry::Note(note, Some(peer)) => {
            note.rule == "hands" && note.allowed == Some(false) && peer.pid == std::process::id()
        }
        _ => false,
    };
    world.recorded("it is recorded", told);
    let (mut asks, question) = shown(&world, "question", "others", (40, 20));
    hears(&mut app, "keys leave");
    hears(&mut asks, "keys enter");
    // The way out is there whatever the vehicle does, and whatever the client does.
    controls.input("keys", vec![Act::KeyDown { key: 1 }, Act::KeyUp { key: 1 }]).expect("it is left");
    asks.until("asked to close", |heard| heard.closed == 1);
    patiently("it is hidden", || status(&world, "question").output.is_none().then_some(()));
    assert!(!asks.heard.input.iter().any(|input| input.starts_with("key 1 ")), "it hears nothing of that");
    asks.paint(&question.surface, (40, 20), GREEN);
    controls.input("knob", vec![Act::Turn { steps: -1 }]).expect("no hand");
    hears(&mut app, "key 105 down");
    assert!(status(&world, "question").output.is_none(), "a new picture does not bring it back");
}

#[test]
fn a_window_that_does_not_answer_is_recorded() {
    let world = World::new(CONFIG);
    let (mut other, _window) = shown(&world, "other", "others", (80, 60));
    for _ in 0..3 {
        world.cockpit.controls().input("panel", tap(125, 35)).expect("may");
    }
    hears(&mut other, "touch 0 up");
    let silent = |entry: &Entry| matches!(entry, Entry::Note(note, _) if note.kind == Kind::Response);
    let Entry::Note(note, _) = world.recorded("it is recorded", silent) else { unreachable!() };
    assert_eq!((note.window.as_str(), note.rule.as_str()), ("other", "response_ms_max"));
    patiently("it is counted", || status(&world, "other").input.filter(|input| input.silent > 0));
}

#[test]
fn a_client_is_offered_what_there_is_and_cannot_make_input() {
    let world = World::new("[[output]]\nname='a'\nsize='10x10'\n[[domain]]\nname='apps'\n");
    let mut client = world.client("apps");
    client.listen();
    assert_eq!(client.heard.capabilities, 0, "there is no device");
    let globals: Vec<&str> = client.heard.globals.iter().map(|(_, name, _)| name.as_str()).collect();
    let forbidden =
        ["virtual_keyboard", "virtual_pointer", "input_method", "fake_input", "layer_shell", "foreign"];
    for name in forbidden {
        assert!(!globals.iter().any(|global| global.contains(name)), "{name} in {globals:?}");
    }
    let two = CONFIG.replace("kind = 'rotary'", "kind = 'rotary'\ndomains = ['apps']");
    let world = World::new(&two.replace("kind = 'keys'", "kind = 'keys'\ndomains = ['apps']"));
    let mut client = world.client("others");
    client.listen();
    assert_eq!(client.heard.capabilities, 1 | 4, "a pointer and touch: keys are for another domain");
}

/// The events of a tap, as a device tells them.
fn tap_events(x: i32, y: i32) -> Vec<u8> {
    let event = |code, value| event(Span::ZERO, code, value);
    let down = [((3, 0x2F), 0), ((3, 0x39), 5), ((3, 0x35), x), ((3, 0x36), y), ((0, 0), 0)];
    let up = [((3, 0x39), -1), ((0, 0), 0)];
    down.into_iter().chain(up).flat_map(|(code, value)| event(code, value)).collect()
}

#[test]
fn devices_are_read_from_files_of_events() {
    let pipe = path("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    let device = format!("name = 'panel'\ndevice = '{}'\nrange = '2000x1000'", pipe.display());
    let recording = path("recording");
    std::fs::write(&recording, tap_events(1, 1)).expect("written");
    let more = format!(
        "[[input]]\nname = 'recording'\nkind = 'touch'\ndevice = '{}'\n\
         [[input]]\nname = 'missing'\nkind = 'keys'\ndevice = '/nonexistent/event7'\n",
        recording.display()
    );
    let world = World::new(&(CONFIG.replace("name = 'panel'", &device) + &more));
    let refused = world.cockpit.controls().input("panel", tap(1, 1)).expect_err("it has a file");
    assert!(refused.contains("is read from"), "{refused}");
    let (mut app, _window) = shown(&world, "app", "apps", (80, 60));
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("it is read");
    writer.write_all(&tap_events(250, 350)).expect("written");
    hears(&mut app, "touch 0 down at 5,5");
    // Bytes without sense do nothing, and a writer that goes away is no end.
    writer.write_all(&[0xA5; 500]).expect("written");
    drop(writer);
    let mut again = std::fs::OpenOptions::new().write(true).open(&pipe).expect("it is read");
    again.write_all(&[0; 4]).expect("written");
    again.write_all(&tap_events(260, 360)).expect("written");
    hears(&mut app, "touch 0 down at 6,6");
    for (name, said) in
        [("panel", "it is read"), ("recording", "it has no more"), ("missing", "No such file")]
    {
        let index = world.cockpit.controls().config().inputs.iter().position(|input| input.name == name);
        let told = |entry: &Entry| match entry {
            Entry::Input(device, news) => Some(*device) == index && news.contains(said),
            _ => false,
        };
        world.recorded(name, told);
    }
    drop(world);
    std::fs::remove_file(pipe).expect("there");
    std::fs::remove_file(recording).expect("there");
}

#[test]
fn tools_inject_what_devices_do() {
    let folder = path("input");
    std::fs::create_dir(&folder).expect("made");
    let world =
        World::with(CONFIG, PathBuf::from("/nonexistent/takt"), Some(folder.clone()), Domains::default());
    let admin = Admin::start(&folder, world.cockpit.controls().clone()).expect("it listens");
    let (mut app, _window) = shown(&world, "app", "apps", (80, 60));
    let mut tool = Tool::new(&folder);
    let acts = "[{\"do\":\"down\",\"at\":\"25,35\"},{\"do\":\"up\"}]";
    let tap = &format!("{{\"ask\":\"input\",\"device\":\"panel\",\"acts\":{acts}}}");
    assert_eq!(tool.ask(tap), Reply::Done);
    hears(&mut app, "touch 0 down at 5,5");
    for (request, reason) in [
        (
            "{\"ask\":\"input\",\"device\":\"wheel\",\"acts\":[]}",
            "there is no input \"wheel\": use one of panel",
        ),
        ("{\"ask\":\"input\",\"device\":\"knob\",\"acts\":[{\"do\":\"up\"}]}", "it does no such thing"),
        (
            "{\"ask\":\"input\",\"device\":\"panel\",\"acts\":[{\"do\":\"down\",\"at\":\"25\"}]}",
            "use X,Y in pixels",
        ),
        (
            "{\"ask\":\"input\",\"device\":\"panel\",\"acts\":[{\"do\":\"up\",\"finger\":99}]}",
            "no such thing",
        ),
        ("{\"ask\":\"input\",\"device\":\"keys\",\"acts\":[{\"do\":\"key-down\",\"key\":30}]}", "both hands"),
    ] {
        let reply = tool.ask(request);
        let Reply::Refused { reason: said } = reply else { panic!("{request}: {reply:?}") };
        assert!(said.contains(reason), "{request}: {said}");
    }
    let many = format!(
        "{{\"ask\":\"input\",\"device\":\"panel\",\"acts\":[{}]}}",
        vec!["{\"do\":\"up\"}"; 65].join(",")
    );
    assert!(matches!(tool.ask(&many), Reply::Refused { reason } if reason.contains("use 64 at most")));
    drop((admin, world));
    std::fs::remove_dir_all(folder).expect("there");
}
