//! What crosses the wire in `ivi_application`, generated from `protocols/ivi-application.xml`.

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

use smithay::reexports::wayland_server;
use smithay::reexports::wayland_server::protocol::wl_surface;

mod interfaces {
    use smithay::reexports::wayland_server::backend as wayland_backend;
    use smithay::reexports::wayland_server::protocol::__interfaces::*;
    wayland_scanner::generate_interfaces!("protocols/ivi-application.xml");
}

use interfaces::*;
wayland_scanner::generate_server_code!("protocols/ivi-application.xml");
