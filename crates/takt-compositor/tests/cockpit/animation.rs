//! Windows that move before the driver's eyes.

use takt_cockpit::control::WindowStatus;
use takt_cockpit::windows::{Kind, Motion};
use takt_compositor::manager::Entry;

use crate::wayland::{Client, Feedback, Window, patiently};
use crate::world::{World, pixel};

const CONFIG: &str = "
[[output]]
name = 'cluster'
size = '200x100'
driver = true

[[domain]]
name = 'apps'

[[window]]
name = 'mover'
domain = 'apps'
app_id = 'mover'
output = 'cluster'
area = '100x100+0+0'
animation_s_max = 0.2

[[window]]
name = 'still'
domain = 'apps'
app_id = 'still'
output = 'cluster'
area = '100x100+100+0'
animation_s_max = 0.2
";

const GREEN: u32 = 0xFF00_FF00;

/// Draws both windows: another picture of the first one, and the same again of the second.
fn draw(client: &mut Client, windows: &[Window; 2], colour: u32) -> u32 {
    let (callback, feedback) = client.paint(&windows[0].surface, (100, 100), 0xFF00_0000 | colour);
    client.paint(&windows[1].surface, (100, 100), GREEN);
    client.until("called back", |heard| heard.done.iter().any(|(number, _)| *number == callback));
    feedback
}

fn is_stopped(entry: &Entry) -> bool {
    matches!(entry, Entry::Note(note, _) if note.kind == Kind::Animation)
}

#[test]
fn a_window_that_goes_on_moving_keeps_its_picture_while_driving() {
    let world = World::new(CONFIG);
    let mut client = world.client("apps");
    let windows = [client.window("mover"), client.window("still")];
    let mut colour = 0;
    patiently("it is stopped", || {
        colour += 1;
        draw(&mut client, &windows, colour);
        world.records.lock().expect("whole").iter().any(is_stopped).then_some(())
    });
    let frozen = |name: &str| {
        let status = world.cockpit.controls().status().expect("a status");
        let is_it = |window: &&WindowStatus| window.name.as_deref() == Some(name);
        status.windows.iter().find(is_it).is_some_and(|window| window.frozen)
    };
    // A client that is held up for long is still, and may move again: then another frame decides.
    patiently("its frames are not shown", || {
        colour += 1;
        let before = frozen("mover");
        let feedback = draw(&mut client, &windows, colour);
        client.until("told", |heard| heard.feedback.contains_key(&feedback));
        let shown = pixel(&world.capture(0), 50, 50);
        let kept = before && frozen("mover") && client.heard.feedback[&feedback] == Feedback::Discarded;
        kept.then(|| assert_ne!(shown, colour))
    });
    assert!(!frozen("still"), "what looks the same does not move");
    let records = world.records.lock().expect("whole");
    let stopped: Vec<&Entry> = records.iter().filter(|entry| is_stopped(entry)).collect();
    for entry in stopped {
        let Entry::Note(note, peer) = entry else { unreachable!() };
        assert_eq!((note.window.as_str(), note.rule.as_str()), ("mover", "animation_s_max"));
        assert_eq!(peer.as_ref().map(|peer| peer.pid), Some(std::process::id()));
    }
    drop(records);
    world.cockpit.controls().set_motion(Motion::Parked).expect("told");
    draw(&mut client, &windows, 0x12_3456);
    patiently("it moves again", || (pixel(&world.capture(0), 50, 50) == 0x12_3456).then_some(()));
}
