//! What displays show.

use takt_cockpit::geometry::{Rect, Size};
use takt_cockpit::windows::{Order, Subject};
use takt_core::{Period, Refresh};
use wayland_client::protocol::{wl_output, wl_surface};

use crate::wayland::{Client, Feedback, patiently};
use crate::world::{Daemon, ONE, World, pixel};

#[test]
fn a_window_is_composed_at_its_place_and_seen_at_a_refresh() {
    let daemon = Daemon::start("spine");
    let world = World::scheduled(ONE, daemon.path.clone());
    let mut client = world.client("apps");
    let window = client.window("app");
    assert_eq!(client.heard.configured, [(80, 60)], "it is told to fill its area");
    let (_, feedback) = client.paint(&window.surface, (80, 60), 0xFF20_80C0);
    let (at_ns, sequence) = client.presented(feedback);
    let grid = Refresh::HZ_60;
    let refresh = grid.period_at(takt_core::Time::from_ns(at_ns));
    assert_eq!((grid.start(refresh).as_ns(), refresh.0), (at_ns, sequence), "exactly at a refresh");
    let capture = world.capture(0);
    assert_eq!(capture.size, Size::new(200, 100));
    let at = |x, y| pixel(&capture, x, y);
    assert_eq!((at(20, 30), at(99, 89), at(60, 60)), (0x2080C0, 0x2080C0, 0x2080C0));
    assert_eq!((at(19, 30), at(20, 29), at(100, 89), at(99, 90), at(0, 0)), (0, 0, 0, 0, 0));
    let status = world.cockpit.controls().status().expect("a status");
    assert!(status.outputs[0].composed > 0 && status.outputs[0].scheduled, "{status:?}");
    assert!(matches!(client.heard.feedback[&feedback], Feedback::Presented { refresh_ns: 16_666_666, .. }));
}

/// Two windows on one output, one of them above, and a window on another output with a rate of its own.
const SEVERAL: &str = "
[[output]]
name = 'center'
size = '200x100'

[[output]]
name = 'side'
size = '64x64'
refresh_hz = 25
phase_ms = 7

[[domain]]
name = 'apps'

[[window]]
name = 'below'
domain = 'apps'
app_id = 'below'
output = 'center'
area = '100x100+0+0'

[[window]]
name = 'above'
domain = 'apps'
app_id = 'above'
output = 'center'
area = '100x50+50+25'
layer = 1

[[window]]
name = 'side'
domain = 'apps'
app_id = 'side'
output = 'side'

[[window]]
name = 'hidden'
domain = 'apps'
app_id = 'hidden'
output = 'center'
layer = 2
area = '10x10+190+90'
hidden = true
";

/// Blends one part with another as the compositor does, with a tolerance for rounding.
fn is_near(found: u32, wanted: u32) -> bool {
    let channel = |colour: u32, shift: u32| i64::from(colour >> shift & 0xFF);
    [16, 8, 0].iter().all(|shift| (channel(found, *shift) - channel(wanted, *shift)).abs() <= 1)
}

#[test]
fn windows_are_stacked_blended_and_cut_off_at_their_areas() {
    let world = World::new(SEVERAL);
    let mut client = world.client("apps");
    let (below, above) = (client.window("below"), client.window("above"));
    client.paint(&below.surface, (100, 100), 0xFFFF_0000);
    // Half transparent, with the colour multiplied as Wayland wants it, and larger than its area.
    let (_, feedback) = client.paint(&above.surface, (150, 50), 0x8000_8000);
    client.presented(feedback);
    let shown = patiently("both are shown", || {
        let capture = world.capture(0);
        (pixel(&capture, 10, 10) == 0xFF0000).then_some(capture)
    });
    let at = |x, y| pixel(&shown, x, y);
    assert!(is_near(at(75, 50), 0x7F8000), "{:06x}", at(75, 50));
    assert_eq!((at(149, 74), at(150, 50), at(10, 90)), (0x008000, 0, 0xFF0000));
    let above = Subject::Name("above".to_owned());
    world.cockpit.controls().order(above.clone(), Order::Fade(0)).expect("allowed");
    patiently("it has faded", || (pixel(&world.capture(0), 75, 50) == 0xFF0000).then_some(()));
    world.cockpit.controls().order(above.clone(), Order::Fade(255)).expect("allowed");
    world.cockpit.controls().order(above, Order::Place(Some(Rect::new(100, 0, 75, 100)))).expect("allowed");
    let moved = patiently("it has moved", || {
        let capture = world.capture(0);
        (pixel(&capture, 75, 50) == 0xFF0000 && pixel(&capture, 101, 1) == 0x008000).then_some(capture)
    });
    assert_eq!((pixel(&moved, 174, 99), pixel(&moved, 175, 99)), (0x008000, 0), "and is scaled");
}

#[test]
fn surfaces_of_a_window_change_together() {
    let world = World::new(ONE);
    let mut client = world.client("apps");
    let window = client.window("app");
    let child = client.surface();
    let below = client.subcompositor.get_subsurface(&child, &window.surface, &client.handle, ());
    below.set_position(10, 20);
    client.paint(&child, (16, 8), 0xFF00_FF00);
    let (_, feedback) = client.paint(&window.surface, (80, 60), 0xFF00_00FF);
    client.presented(feedback);
    let capture = world.capture(0);
    let at = |x, y| pixel(&capture, x, y);
    assert_eq!((at(30, 50), at(45, 57), at(46, 57), at(29, 50)), (0x00FF00, 0x00FF00, 0x0000FF, 0x0000FF));
    // A commit to a surface in step with its parent waits for the parent.
    client.paint(&child, (16, 8), 0xFFFF_FFFF);
    let (_, other) = client.commit(&child);
    client.roundtrip();
    assert_eq!(pixel(&world.capture(0), 30, 50), 0x00FF00);
    let (_, feedback) = client.commit(&window.surface);
    client.presented(feedback);
    client.presented(other);
    assert_eq!(pixel(&world.capture(0), 30, 50), 0xFFFFFF);
    below.place_below(&window.surface);
    let (_, feedback) = client.commit(&window.surface);
    client.presented(feedback);
    assert_eq!(pixel(&world.capture(0), 30, 50), 0x0000FF);
}

#[test]
fn viewports_and_transforms_choose_what_is_seen() {
    let world = World::new(ONE);
    let mut client = world.client("apps");
    let window = client.window("app");
    let viewport = client.viewporter.get_viewport(&window.surface, &client.handle, ());
    // The right half of the buffer, scaled to the whole window.
    viewport.set_source(20.0, 0.0, 20.0, 30.0);
    viewport.set_destination(80, 60);
    let buffer = client.buffer(40, 30, |x, _| if x < 20 { 0xFFFF_0000 } else { 0xFF00_FF00 });
    window.surface.attach(Some(&buffer), 0, 0);
    window.surface.damage_buffer(0, 0, 40, 30);
    let (_, feedback) = client.commit(&window.surface);
    client.presented(feedback);
    let capture = world.capture(0);
    assert_eq!(
        (pixel(&capture, 25, 35), pixel(&capture, 95, 85), pixel(&capture, 100, 85)),
        (0x00FF00, 0x00FF00, 0)
    );
    // The client has turned its picture by a quarter against the clock: what is left in the buffer is above.
    viewport.destroy();
    window.surface.set_buffer_transform(wl_output::Transform::_90);
    let buffer = client.buffer(60, 80, |x, _| if x < 30 { 0xFFFF_0000 } else { 0xFF00_FF00 });
    window.surface.attach(Some(&buffer), 0, 0);
    window.surface.damage_buffer(0, 0, 60, 80);
    let (_, feedback) = client.commit(&window.surface);
    client.presented(feedback);
    let capture = world.capture(0);
    let (upper, lower) = (pixel(&capture, 60, 35), pixel(&capture, 60, 85));
    assert_eq!((upper, lower), (0xFF0000, 0x00FF00), "{upper:06x} {lower:06x}");
}

#[test]
fn displays_refresh_at_their_own_rates() {
    let world = World::new(SEVERAL);
    let mut client = world.client("apps");
    let (center, side) = (client.window("below"), client.window("side"));
    let grids = [
        world.cockpit.controls().config().outputs[0].grid,
        world.cockpit.controls().config().outputs[1].grid,
    ];
    for (window, grid) in [(&center, grids[0]), (&side, grids[1])] {
        let (_, feedback) = client.paint(&window.surface, (64, 64), 0xFF00_FF00);
        let (at_ns, sequence) = client.presented(feedback);
        assert_eq!(grid.start(Period(sequence)).as_ns(), at_ns);
        let Feedback::Presented { refresh_ns, .. } = client.heard.feedback[&feedback] else { unreachable!() };
        assert_eq!(u64::from(refresh_ns), grid.period_span().as_ns());
    }
    assert_eq!(pixel(&world.capture(1), 63, 63), 0x00FF00);
}

/// Draws by callbacks; the refreshes at which frames were seen.
fn draw_frames(client: &mut Client, surface: &wl_surface::WlSurface, frames: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    for frame in 0..frames {
        let colour = 0xFF00_0000 + u32::try_from(frame).expect("few") * 0x010203;
        let (callback, feedback) = client.paint(surface, (80, 60), colour);
        client.until("called back", |heard| heard.done.iter().any(|(number, _)| *number == callback));
        numbers.push(feedback);
    }
    numbers.iter().map(|feedback| client.presented(*feedback).1).collect()
}

#[test]
fn frames_are_seen_one_refresh_after_they_were_taken() {
    let world = World::new(ONE);
    let mut client = world.client("apps");
    let window = client.window("app");
    let seen = draw_frames(&mut client, &window.surface, 40);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "each at a refresh of its own: {seen:?}");
    let (_, taken_ms) = *client.heard.done.last().expect("called back");
    let seen_ns = Refresh::HZ_60.start(Period(*seen.last().expect("seen"))).as_ns();
    let seen_ms = u32::try_from(seen_ns / 1_000_000 % (1 << 32)).expect("it wraps around");
    // The callback tells the refresh at which the frame was taken, and a later one shows it: the next, unless
    // the machine was too busy.
    assert!(seen_ms.wrapping_sub(taken_ms) >= 16, "{taken_ms} {seen_ms}");
}

#[test]
fn pictures_that_were_never_seen_are_discarded() {
    let world = World::new(ONE);
    let mut client = world.client("apps");
    let window = client.window("app");
    let feedback: Vec<u32> =
        (0..20).map(|_| client.paint(&window.surface, (80, 60), 0xFF12_3456).1).collect();
    let last = feedback[19];
    client.presented(last);
    client.until("all are told", |heard| feedback.iter().all(|number| heard.feedback.contains_key(number)));
    let discarded = |number: &&u32| client.heard.feedback[number] == Feedback::Discarded;
    assert!(feedback.iter().filter(discarded).count() >= 10, "they came faster than refreshes");
    client.until("all buffers are back", |heard| heard.released == 20);
}

#[test]
fn hidden_windows_are_called_back_slowly_and_keep_what_they_drew() {
    let world = World::new(SEVERAL);
    let mut client = world.client("apps");
    let window = client.window("hidden");
    let began = std::time::Instant::now();
    for colour in [0xFFFF_0000, 0xFF00_FF00, 0xFF00_00FF] {
        let (callback, feedback) = client.paint(&window.surface, (10, 10), colour);
        client.until("called back", |heard| heard.done.iter().any(|(number, _)| *number == callback));
        assert_eq!(client.heard.feedback.get(&feedback), Some(&Feedback::Discarded));
    }
    assert!(began.elapsed().as_millis() > 400, "three times, four times a second at most");
    assert_eq!((client.heard.entered, pixel(&world.capture(0), 195, 95)), (0, 0));
    world.cockpit.controls().order(Subject::Name("hidden".to_owned()), Order::Show).expect("allowed");
    patiently("it is shown", || (pixel(&world.capture(0), 195, 95) == 0x0000FF).then_some(()));
    client.until("it hears where it is", |heard| heard.entered == 1);
    world.cockpit.controls().order(Subject::Name("hidden".to_owned()), Order::Hide).expect("allowed");
    patiently("it is hidden", || (pixel(&world.capture(0), 195, 95) == 0).then_some(()));
    client.until("it hears that, too", |heard| heard.left == 1);
}

#[test]
fn a_window_without_a_buffer_is_gone_and_can_come_back() {
    let world = World::new(ONE);
    let mut client = world.client("apps");
    let window = client.window("app");
    let (_, feedback) = client.paint(&window.surface, (80, 60), 0xFF11_2233);
    client.presented(feedback);
    window.surface.attach(None, 0, 0);
    window.surface.commit();
    patiently("it is gone", || {
        client.flush();
        (pixel(&world.capture(0), 60, 60) == 0).then_some(())
    });
    let before = client.heard.configured.len();
    window.surface.commit();
    client.until("configured again", |heard| heard.configured.len() > before);
    let (_, feedback) = client.paint(&window.surface, (80, 60), 0xFF33_2211);
    client.presented(feedback);
    assert_eq!(pixel(&world.capture(0), 60, 60), 0x332211);
    window.toplevel.destroy();
    window.xdg.destroy();
    patiently("it is destroyed", || {
        client.flush();
        (pixel(&world.capture(0), 60, 60) == 0).then_some(())
    });
}
