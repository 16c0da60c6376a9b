//! Windows with numbers: claims like any other.

use takt_cockpit::windows::Order;
use takt_compositor::manager::Entry;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_client::{Connection, Dispatch, QueueHandle, delegate_noop};

use crate::wayland::{Client, Heard, patiently};
use crate::world::{World, pixel};
use protocol::ivi_application::IviApplication;
use protocol::ivi_surface::{self, IviSurface};

/// What crosses the wire, generated from the description that the cockpit has.
mod protocol {
    #![allow(
        dead_code,
        missing_docs,
        non_camel_case_types,
        unreachable_pub,
        unsafe_code,
        unused_imports,
        unused_qualifications,
        unused_variables,
        clippy::all,
        reason = "generated"
    )]

    use wayland_client;
    use wayland_client::protocol::wl_surface;

    mod interfaces {
        use wayland_client::backend as wayland_backend;
        use wayland_client::protocol::__interfaces::*;
        wayland_scanner::generate_interfaces!("protocols/ivi-application.xml");
    }

    use interfaces::*;
    wayland_scanner::generate_client_code!("protocols/ivi-application.xml");
}

const CONFIG: &str = "
[[output]]
name = 'cluster'
size = '200x100'

[[domain]]
name = 'instruments'
shells = ['ivi']

[[domain]]
name = 'apps'
shells = ['xdg', 'ivi']

[[window]]
name = 'dial'
domain = 'instruments'
ivi_id = 7001
output = 'cluster'
area = '100x100+0+0'
must_be_visible = true

[[window]]
name = 'map'
domain = 'apps'
app_id = 'map'
ivi_id = 7002
output = 'cluster'
area = '100x100+100+0'
";

delegate_noop!(Heard: IviApplication);

impl Dispatch<IviSurface, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &IviSurface,
        event: ivi_surface::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let ivi_surface::Event::Configure { width, height } = event;
        heard.configured.push((width, height));
    }
}

fn application(client: &Client) -> IviApplication {
    let registry = client.connection.display().get_registry(&client.handle, ());
    let found = client.heard.globals.iter().find(|(_, name, _)| name == "ivi_application");
    registry.bind(found.expect("ivi_application is offered").0, 1, &client.handle, ())
}

/// A window of that number.
fn window(client: &Client, number: u32) -> (WlSurface, IviSurface) {
    let surface = client.surface();
    let window = application(client).surface_create(number, &surface, &client.handle, ());
    (surface, window)
}

fn refused(entry: &Entry) -> bool {
    matches!(entry, Entry::Note(note, _) if note.rule == "claim-of-another-domain" && note.allowed == Some(false))
}

#[test]
fn windows_with_numbers_are_shown_where_their_rule_says() {
    let world = World::new(CONFIG);
    let mut client = world.client("instruments");
    assert!(client.shell.is_none(), "the domain has the shell ivi alone");
    let (surface, window) = window(&client, 7001);
    client.until("told its size", |heard| heard.configured == [(100, 100)]);
    let (_, feedback) = client.paint(&surface, (100, 100), 0xFF00_FF00);
    client.presented(feedback);
    assert_eq!(pixel(&world.capture(0), 50, 50), 0x00FF00);
    window.destroy();
    client.flush();
    patiently("it is gone", || (pixel(&world.capture(0), 50, 50) == 0).then_some(()));
    // The surface keeps its role, and may get a number again.
    application(&client).surface_create(7001, &surface, &client.handle, ());
    let (_, feedback) = client.paint(&surface, (100, 100), 0xFF00_00FF);
    client.presented(feedback);
    assert_eq!(pixel(&world.capture(0), 50, 50), 0x0000FF);
    surface.destroy();
    client.flush();
    patiently("a window ends with its surface", || (pixel(&world.capture(0), 50, 50) == 0).then_some(()));
}

#[test]
fn a_number_of_another_domain_is_never_shown_and_always_recorded() {
    let world = World::new(CONFIG);
    let mut thief = world.client("apps");
    let (surface, _window) = window(&thief, 7001);
    let (callback, _) = thief.paint(&surface, (100, 100), 0xFFFF_0000);
    thief
        .until("called back, lest it hang", |heard| heard.done.iter().any(|(number, _)| *number == callback));
    world.recorded("it is recorded", refused);
    assert_eq!(pixel(&world.capture(0), 50, 50), 0);
    let mut owner = world.client("instruments");
    let (own, _window) = window(&owner, 7001);
    let (_, feedback) = owner.paint(&own, (100, 100), 0xFF00_FF00);
    owner.presented(feedback);
    assert_eq!(pixel(&world.capture(0), 50, 50), 0x00FF00);
    let status = world.cockpit.controls().status().expect("a status");
    let rogue = status.windows.iter().find(|window| window.domain == "apps").expect("it is known");
    assert_eq!((rogue.name.as_deref(), rogue.claims.as_str()), (None, "ivi_id 7001"));
}

#[test]
fn two_windows_of_a_number_and_surfaces_with_another_role_are_errors() {
    let world = World::new(CONFIG);
    let mut twice = world.client("apps");
    let _first = window(&twice, 7002);
    let _second = window(&twice, 7002);
    let said = twice.until_cut();
    assert!(said.contains("7002 is in use"), "{said}");
    let mut other = world.client("apps");
    let xdg = other.window("map");
    application(&other).surface_create(7002, &xdg.surface, &other.handle, ());
    let said = other.until_cut();
    assert!(said.contains("something else already"), "{said}");
    // One rule is one window, however it is made and whichever client comes first.
    let mut first = world.client("apps");
    let (surface, _window) = window(&first, 7002);
    let (_, feedback) = first.paint(&surface, (100, 100), 0xFF00_FF00);
    first.presented(feedback);
    let mut second = world.client("apps");
    let window = second.window("map");
    second.paint(&window.surface, (100, 100), 0xFFFF_0000);
    let full = |entry: &Entry| matches!(entry, Entry::Note(note, _) if note.rule == "instances-max");
    world.recorded("it is recorded", full);
    assert_eq!(pixel(&world.capture(0), 150, 50), 0x00FF00);
    let closed = world.cockpit.controls().order("map".parse().expect("a name"), Order::Close);
    assert_eq!(closed, Ok(()), "there is no word for it, which hurts nothing");
}
