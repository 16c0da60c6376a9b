//! Windows by rules: text in, text out.

use super::*;
use crate::config::Cockpit;
use crate::geometry::Point;

const CONFIG: &str = r#"
[[output]]
name = "cluster"
size = "100x50"
driver = true

[[output]]
name = "center"
size = "200x100"

[[domain]]
name = "cluster"
shells = ["xdg", "ivi"]

[[domain]]
name = "apps"

[[window]]
name = "dial"
domain = "cluster"
app_id = "dial"
ivi_id = 7
output = "cluster"
area = "50x50+0+0"
must_be_visible = true
animation_s_max = inf

[[window]]
name = "map"
domain = "apps"
app_id = "map"
output = "cluster"
layer = 5
priority = 9

[[window]]
name = "app"
domain = "apps"
app_id = "app*"
output = "center"
instances_max = 2
hidden_while_moving = true
own_size = true

[[window]]
name = "camera"
domain = "cluster"
app_id = "camera"
output = "center"
layer = 9
exclusive = true
hidden = true
"#;

const CLUSTER: usize = 0;
const APPS: usize = 1;

fn ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

fn xdg(app_id: &str) -> Claims {
    Claims::Xdg { app_id: app_id.to_owned(), title: String::new() }
}

fn named(name: &str) -> Subject {
    Subject::Name(name.to_owned())
}

struct World {
    windows: Windows,
    next: u64,
}

impl World {
    fn new() -> Self {
        let config = Cockpit::parse(CONFIG).expect("fine");
        Self { windows: Windows::new(Arc::new(config), ms(0)), next: 0 }
    }

    /// A window with a picture as large as its area.
    fn open(&mut self, now: u64, domain: usize, claims: Claims) -> WindowId {
        self.next += 1;
        let id = WindowId(self.next);
        assert!(self.windows.appear(ms(now), id, ClientId(domain as u64), domain, claims));
        let size = self.windows.rule(id).map_or(Size::new(10, 10), |rule| rule.area.size);
        self.windows.map(ms(now), id, size, vec![Rect::of(size)]);
        id
    }

    fn shown(&self, output: usize) -> Vec<u64> {
        self.windows.scene(output).windows.iter().map(|placed| placed.id.0).collect()
    }

    /// Decisions since then, one line each.
    fn said(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(action) = self.windows.poll() {
            said.push(match action {
                Action::Configure(id, size) => {
                    format!(
                        "configure {} {}",
                        id.0,
                        size.map_or_else(|| "as it likes".to_owned(), |size| size.to_string())
                    )
                }
                Action::Close(id) => format!("close {}", id.0),
                Action::Disconnect(client, why) => format!("disconnect {}: {why}", client.0),
                Action::Show(output) => format!("show {output}"),
                Action::Record(note) => {
                    let Note { kind, window, asked, reason, rule, .. } = note;
                    format!("{kind:?} {window}: {asked} {reason} [{rule}]")
                }
            });
        }
        said
    }
}

#[test]
fn windows_are_shown_where_rules_say() {
    let mut world = World::new();
    let dial = world.open(10, CLUSTER, xdg("dial"));
    assert_eq!(
        world.said(),
        ["configure 1 50x50", "Window dial: shown on cluster  []", "show 0"],
        "{dial:?}"
    );
    assert_eq!(world.windows.scene(0).windows[0].at, Rect::new(0, 0, 50, 50));
    world.windows.vanish(ms(20), dial);
    assert_eq!(world.said(), ["Window : not shown on cluster  []", "show 0"]);
}

#[test]
fn claims_of_other_domains_are_refused() {
    let mut world = World::new();
    world.open(0, APPS, xdg("dial"));
    assert_eq!(
        world.said(),
        [
            "Claim app_id \"dial\": app_id \"dial\" window \"dial\" belongs to domain \"cluster\" \
             [claim-of-another-domain]",
            "configure 1 as it likes"
        ]
    );
    world.open(0, APPS, Claims::Ivi(7));
    assert!(world.said()[0].contains("[claim-of-another-domain]"));
    world.open(0, CLUSTER, xdg("unheard-of"));
    assert!(world.said()[0].contains("no rule of its domain fits [no-rule]"));
    assert!(world.shown(0).is_empty() && world.shown(1).is_empty());
}

#[test]
fn a_window_that_changes_its_claims_loses_its_place() {
    let mut world = World::new();
    world.windows.set_motion(ms(0), Motion::Parked);
    let app = world.open(0, APPS, xdg("app-one"));
    assert_eq!(world.shown(1), [1]);
    world.windows.claim(ms(1), app, xdg("dial"));
    assert!(world.shown(0).is_empty() && world.shown(1).is_empty());
    world.windows.claim(ms(2), app, xdg("app-two"));
    assert_eq!(world.shown(1), [1], "it claims what it may again");
}

#[test]
fn rules_limit_how_many_windows_there_are() {
    let mut world = World::new();
    world.windows.set_motion(ms(0), Motion::Parked);
    for _ in 0..3 {
        world.open(0, APPS, xdg("app"));
    }
    assert_eq!(world.shown(1), [1, 2]);
    assert!(world.said().iter().any(|line| line.contains("[instances-max]")));
    world.windows.vanish(ms(1), WindowId(1));
    assert_eq!(world.shown(1), [2, 3], "the next one has its place");
}

#[test]
fn clients_that_go_on_claiming_are_disconnected() {
    let mut world = World::new();
    let id = world.open(0, APPS, xdg("dial"));
    for round in 1..VIOLATIONS_MAX {
        world.windows.claim(ms(1), id, xdg(&format!("try{round}")));
    }
    let said = world.said();
    let disconnected: Vec<&String> = said.iter().filter(|line| line.starts_with("disconnect")).collect();
    assert_eq!(disconnected, ["disconnect 1: 16 claims were refused"]);
    let own = (0..CLIENT_WINDOWS_MAX as u64 + 5)
        .filter(|n| world.windows.appear(ms(2), WindowId(100 + n), ClientId(9), APPS, xdg("x")));
    assert_eq!(own.count(), CLIENT_WINDOWS_MAX, "and have so many windows");
}

#[test]
fn windows_that_must_be_visible_are_in_front_whatever_the_layers() {
    let mut world = World::new();
    world.open(0, CLUSTER, xdg("dial"));
    world.open(1, APPS, xdg("map"));
    assert_eq!(world.shown(0), [2, 1]);
    let hit = |x, y| world.windows.hit(0, Point { x, y }).map(|(id, _)| id.0);
    assert_eq!((hit(10, 10), hit(60, 10), hit(100, 10)), (Some(1), Some(2), None));
    for order in [Order::Hide, Order::Close, Order::Fade(100), Order::Place(Some(Rect::new(1, 0, 50, 50)))] {
        let refused = world.windows.order(ms(2), &named("dial"), order).expect_err("it must be visible");
        assert_eq!(refused, "dial must be visible where its rule says");
    }
    assert_eq!(world.shown(0), [2, 1]);
}

#[test]
fn exclusive_windows_hide_what_they_cover() {
    let mut world = World::new();
    world.windows.set_motion(ms(0), Motion::Parked);
    world.open(0, APPS, xdg("app"));
    world.open(1, CLUSTER, xdg("camera"));
    assert_eq!(world.shown(1), [1], "a controller shows it");
    world.windows.order(ms(2), &named("camera"), Order::Show).expect("allowed");
    assert_eq!(world.shown(1), [2]);
    world
        .windows
        .order(ms(3), &named("camera"), Order::Place(Some(Rect::new(199, 0, 1, 1))))
        .expect("allowed");
    assert_eq!(world.shown(1), [2], "it covers a part of it still");
    world
        .windows
        .order(ms(4), &Subject::Id(WindowId(1)), Order::Place(Some(Rect::new(0, 0, 50, 50))))
        .expect("ok");
    assert_eq!(world.shown(1), [1, 2]);
    let outside = world.windows.order(ms(5), &named("camera"), Order::Place(Some(Rect::new(199, 0, 2, 1))));
    assert_eq!(outside, Err("2x1+199+0 is not inside of its output, which has 200x100".to_owned()));
    assert_eq!(
        world.windows.order(ms(5), &named("radio"), Order::Show),
        Err("no window is there by the rule \"radio\"".to_owned())
    );
}

#[test]
fn windows_are_hidden_while_moving() {
    let mut world = World::new();
    world.open(0, APPS, xdg("app"));
    assert!(world.shown(1).is_empty(), "until it is known that the vehicle stands");
    world.windows.set_motion(ms(1), Motion::Parked);
    assert_eq!(world.shown(1), [1]);
    world.windows.set_motion(ms(2), Motion::Moving);
    assert!(world.shown(1).is_empty());
    let again = world.windows.order(ms(3), &named("app"), Order::Show);
    assert!(again.is_ok() && world.shown(1).is_empty(), "no controller changes that");
}

#[test]
fn a_raised_window_is_in_front_of_those_that_matter_as_much() {
    let mut world = World::new();
    world.windows.set_motion(ms(0), Motion::Parked);
    let (first, second) = (world.open(0, APPS, xdg("app1")), world.open(0, APPS, xdg("app2")));
    let camera = world.open(0, CLUSTER, xdg("camera"));
    assert_eq!(world.shown(1), [first.0, second.0]);
    world.windows.order(ms(1), &Subject::Id(first), Order::Raise).expect("allowed");
    assert_eq!(world.shown(1), [second.0, first.0]);
    assert_eq!(world.windows.resolve(&named("app")), Ok(first), "a name means the one in front");
    world.windows.order(ms(2), &named("camera"), Order::Show).expect("allowed");
    world.windows.order(ms(3), &Subject::Id(second), Order::Raise).expect("allowed");
    assert_eq!(world.shown(1), [camera.0], "a higher layer stays in front");
}

#[test]
fn input_is_found_in_scaled_pictures() {
    let mut world = World::new();
    world.windows.set_motion(ms(0), Motion::Parked);
    let app = world.open(0, APPS, xdg("app"));
    world.windows.map(ms(1), app, Size::new(400, 400), vec![Rect::new(0, 0, 200, 400)]);
    world.windows.order(ms(1), &named("app"), Order::Place(Some(Rect::new(100, 50, 40, 40)))).expect("ok");
    let hit = |x, y| world.windows.hit(1, Point { x, y });
    assert_eq!(hit(100, 50), Some((app, Point { x: 0, y: 0 })));
    assert_eq!(hit(119, 89), Some((app, Point { x: 190, y: 390 })));
    assert_eq!((hit(120, 50), hit(99, 50)), (None, None), "outside of its input, and of the window");
}

#[test]
fn movement_before_the_driver_ends_after_two_seconds() {
    let mut world = World::new();
    let map = world.open(0, APPS, xdg("map"));
    let dial = world.open(0, CLUSTER, xdg("dial"));
    world.windows.seen(dial);
    let frozen = |world: &World, id| world.windows.scene(0).find(id).is_some_and(|placed| placed.frozen);
    for at in (0..=2000).step_by(100) {
        world.windows.change(ms(at), map);
        world.windows.change(ms(at), dial);
    }
    assert!(!frozen(&world, map));
    world.said();
    world.windows.change(ms(2100), map);
    world.windows.change(ms(2100), dial);
    assert!(frozen(&world, map) && !frozen(&world, dial), "an instrument moves");
    let said = world.said();
    assert_eq!(
        said[0],
        "Animation map: moved for 2100 ms the vehicle moves, and the driver sees it [animation_s_max]"
    );
    assert_eq!(world.windows.next_timeout(), Some(ms(2600)));
    world.windows.change(ms(2400), map);
    world.windows.pass(ms(2600));
    assert!(frozen(&world, map), "it moves still");
    world.windows.pass(ms(2900));
    assert!(!frozen(&world, map));
    world.windows.change(ms(5000), map);
    world.windows.set_motion(ms(5001), Motion::Parked);
    for at in (5001..=9000).step_by(100) {
        world.windows.change(ms(at), map);
    }
    assert!(!frozen(&world, map), "parked");
    world.windows.set_motion(ms(9000), Motion::Moving);
    world.windows.change(ms(10_900), map);
    assert!(!frozen(&world, map), "what came before does not count");
}

#[test]
fn windows_must_be_seen_in_time() {
    let mut world = World::new();
    assert_eq!(world.windows.next_timeout(), Some(ms(1000)), "the dial is not there");
    world.windows.pass(ms(999));
    assert!(world.said().is_empty());
    world.windows.pass(ms(1000));
    assert_eq!(world.said(), ["Overdue dial:  it must be visible, and is not there [must_be_visible]"]);
    assert_eq!(world.windows.overdue(ms(1000)).collect::<Vec<_>>(), [0]);
    world.windows.pass(ms(2000));
    assert!(world.said().is_empty(), "that is told once");
    let dial = world.open(3000, CLUSTER, xdg("dial"));
    assert!(world.said().iter().any(|line| line.starts_with("Window dial: is there again")));
    assert_eq!(world.windows.next_timeout(), Some(ms(4000)), "it has to be seen");
    world.windows.pass(ms(4000));
    assert_eq!(
        world.said(),
        ["Overdue dial:  it has a picture, and was not seen in time [visible_within_ms]"]
    );
    world.windows.unmap(ms(4100), dial);
    world.windows.map(ms(4200), dial, Size::new(50, 50), Vec::new());
    world.windows.seen(dial);
    assert_eq!(world.windows.next_timeout(), None);
}
