//! Clients that break rules, or do something without end: each is cut for its own reason, and nothing happens
//! to a window beside them.

use std::os::fd::AsFd;

use takt_compositor::manager::{Connection, Entry};
use wayland_client::protocol::{wl_shm, wl_surface};

use crate::wayland::{Client, memory, patiently};
use crate::world::{World, pixel};

const CONFIG: &str = "
[[output]]
name = 'cluster'
size = '200x100'

[[domain]]
name = 'instruments'

[[domain]]
name = 'apps'
clients_max = 3
surfaces_max = 40
memory_mib_max = 2

[[window]]
name = 'dial'
domain = 'instruments'
app_id = 'dial'
output = 'cluster'
area = '100x100+0+0'
must_be_visible = true

[[window]]
name = 'app'
domain = 'apps'
app_id = 'app'
output = 'cluster'
area = '100x100+100+0'
";

/// Why a client was cut, as it was recorded.
fn cut(world: &World) -> &'static str {
    let cut = |entry: &Entry| matches!(entry, Entry::Client { what: Connection::Cut(..), .. });
    let entry = world.recorded("a client is cut", cut);
    world.records.lock().expect("whole").retain(|entry| !cut(entry));
    match entry {
        Entry::Client { what: Connection::Cut(rule, _), .. } => rule,
        _ => unreachable!("it was chosen so"),
    }
}

/// What a client does without end.
type Flood = fn(&mut Client);

fn surfaces(client: &mut Client) {
    for _ in 0..100 {
        client.surface();
    }
}

fn depth(client: &mut Client) {
    let mut parent = client.surface();
    for _ in 0..30 {
        let child = client.surface();
        client.subcompositor.get_subsurface(&child, &parent, &client.handle, ());
        parent = child;
    }
}

fn pools(client: &mut Client) {
    let file = memory(&[0; 4096]);
    for _ in 0..100 {
        client.shm.create_pool(file.as_fd(), 4096, &client.handle, ());
    }
}

fn buffers(client: &mut Client) {
    let file = memory(&[0; 4096]);
    let pool = client.shm.create_pool(file.as_fd(), 4096, &client.handle, ());
    for _ in 0..300 {
        pool.create_buffer(0, 8, 8, 32, wl_shm::Format::Argb8888, &client.handle, ());
    }
}

fn pictures(client: &mut Client) {
    let window = client.window("app");
    client.paint(&window.surface, (1024, 1024), 0xFF00_0000);
}

fn regions(client: &mut Client) {
    let region = client.compositor.create_region(&client.handle, ());
    for n in 0..2000 {
        region.add(n, 0, 1, 1);
    }
}

fn damage(client: &mut Client) {
    let surface = client.surface();
    for n in 0..5000 {
        surface.damage(n, 0, 1, 1);
    }
}

fn callbacks(client: &mut Client) {
    let window = client.window("app");
    for n in 0..6000 {
        window.surface.frame(&client.handle, n);
    }
    window.surface.commit();
}

fn objects(client: &mut Client) {
    for _ in 0..20_000 {
        client.compositor.create_region(&client.handle, ());
        // A full socket is what a flood is about.
        client.connection.flush().unwrap_or_default();
    }
}

fn windows(client: &mut Client) {
    let windows: Vec<_> = (0..35).map(|_| client.unconfigured("app")).collect();
    windows.iter().for_each(|window| window.surface.commit());
}

fn claims(client: &mut Client) {
    let window = client.window("app");
    for n in 0..2000 {
        window.toplevel.set_app_id(format!("other-{n}"));
        if client.turn().is_err() {
            return;
        }
    }
}

/// Paints a window until its picture was seen.
fn show(client: &mut Client, surface: &wl_surface::WlSurface, size: (i32, i32), colour: u32) -> u64 {
    let (_, feedback) = client.paint(surface, size, colour);
    client.presented(feedback).1
}

#[test]
fn every_flood_is_cut_and_nothing_happens_to_others() {
    let world = World::new(CONFIG);
    let mut dial = world.client("instruments");
    let window = dial.window("dial");
    show(&mut dial, &window.surface, (100, 100), 0xFF00_FF00);
    let floods: [(Flood, &str); 9] = [
        (surfaces, "surfaces-max"),
        (depth, "depth-max"),
        (pools, "pools-max"),
        (buffers, "buffers-max"),
        (pictures, "memory-max"),
        (regions, "region-max"),
        (damage, "damage-max"),
        (callbacks, "callbacks-max"),
        (objects, "objects-max"),
    ];
    for (flood, rule) in floods {
        let mut client = world.client("apps");
        flood(&mut client);
        let said = client.until_cut();
        assert_eq!(cut(&world), rule, "{said}");
        show(&mut dial, &window.surface, (100, 100), 0xFF00_FF00);
    }
    assert_eq!(pixel(&world.capture(0), 50, 50), 0x00FF00);
    patiently("all of them are gone", || {
        (world.cockpit.controls().status().expect("a status").clients == 1).then_some(())
    });
}

#[test]
fn clients_that_claim_what_they_may_not_are_cut_in_the_end() {
    let world = World::new(CONFIG);
    for flood in [windows as Flood, claims] {
        let mut client = world.client("apps");
        flood(&mut client);
        client.until_cut();
        assert_eq!(cut(&world), "violations-max");
    }
}

#[test]
fn a_claim_of_another_domain_is_never_shown_and_always_recorded() {
    let world = World::new(CONFIG);
    let mut thief = world.client("apps");
    let window = thief.window("dial");
    assert_eq!(thief.heard.configured, [(0, 0)], "it is answered, lest it hang");
    let (callback, feedback) = thief.paint(&window.surface, (100, 100), 0xFFFF_0000);
    thief.until("called back", |heard| heard.done.iter().any(|(number, _)| *number == callback));
    assert_eq!(thief.heard.feedback.get(&feedback), Some(&crate::wayland::Feedback::Discarded));
    assert_eq!(pixel(&world.capture(0), 50, 50), 0);
    let refused = |entry: &Entry| match entry {
        Entry::Note(note, Some(peer)) => {
            let told = (note.rule.as_str(), note.allowed);
            told == ("claim-of-another-domain", Some(false)) && peer.pid == std::process::id()
        }
        _ => false,
    };
    world.recorded("it is recorded", refused);
    // The owner comes later, and has its window all the same.
    let mut dial = world.client("instruments");
    let own = dial.window("dial");
    show(&mut dial, &own.surface, (100, 100), 0xFF00_FF00);
    assert_eq!(pixel(&world.capture(0), 50, 50), 0x00FF00);
}

#[test]
fn a_domain_has_so_many_clients_and_no_more() {
    let world = World::new(CONFIG);
    let apps = world.cockpit.controls().config().domain("apps").expect("there");
    let _clients: Vec<Client> = (0..3).map(|_| world.client("apps")).collect();
    assert!(world.cockpit.controls().connect(apps).is_err());
    let refused =
        |entry: &Entry| matches!(entry, Entry::Client { what: Connection::Refused("clients-max", _), .. });
    world.recorded("it is recorded", refused);
    world.client("instruments");
}

#[test]
fn a_client_that_never_acknowledges_or_sends_nonsense_hurts_itself_alone() {
    let world = World::new(CONFIG);
    // A buffer before the first configure is acknowledged is an error of the protocol.
    let mut hasty = world.client("apps");
    let window = hasty.unconfigured("app");
    hasty.paint(&window.surface, (100, 100), 0xFF00_0000);
    let said = hasty.until_cut();
    assert!(!said.is_empty(), "{said}");
    // Bytes that are no request.
    let apps = world.cockpit.controls().config().domain("apps").expect("there");
    let (stream, _) = world.cockpit.controls().connect(apps).expect("a connection");
    std::io::Write::write_all(&mut &stream, &[0xA5; 4096]).expect("sent");
    patiently("it is closed", || {
        stream.set_nonblocking(true).expect("set");
        let read = std::io::Read::read(&mut &stream, &mut [0; 4096]);
        read.is_ok_and(|bytes| bytes == 0).then_some(())
    });
    // A file that is shorter than its buffer.
    let mut cutter = world.client("apps");
    let window = cutter.window("app");
    let file = memory(&[0xFF; 4096]);
    let pool = cutter.shm.create_pool(file.as_fd(), 100 * 100 * 4, &cutter.handle, ());
    let buffer = pool.create_buffer(0, 100, 100, 400, wl_shm::Format::Argb8888, &cutter.handle, ());
    window.surface.attach(Some(&buffer), 0, 0);
    window.surface.commit();
    let said = cutter.until_cut();
    assert!(said.contains("shorter"), "{said}");
}

#[test]
fn a_client_that_sends_without_end_does_not_keep_others_from_being_served() {
    let world = World::new(CONFIG);
    let apps = world.cockpit.controls().config().domain("apps").expect("there");
    let (stream, _) = world.cockpit.controls().connect(apps).expect("a connection");
    let flood = std::thread::Builder::new().name("flood".to_owned()).spawn(move || {
        // wl_display.sync, with ever new numbers, as fast as the socket takes them.
        let mut sent = 0u64;
        for number in 2u32.. {
            let request = [1u32.to_ne_bytes(), (12u32 << 16).to_ne_bytes(), number.to_ne_bytes()].concat();
            if std::io::Write::write_all(&mut &stream, &request).is_err() {
                return sent;
            }
            sent += 1;
        }
        sent
    });
    let mut dial = world.client("instruments");
    let window = dial.window("dial");
    for frame in 0..60u32 {
        show(&mut dial, &window.surface, (100, 100), 0xFF00_0000 | frame);
    }
    // It never reads, so it is cut when its answers have no room any more, or by the bound of objects.
    let sent = flood.expect("a thread").join().expect("no panic");
    assert!(sent > 0);
}
