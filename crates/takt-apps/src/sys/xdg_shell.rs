//! The part of the Wayland protocol "xdg-shell" that a window needs, as tables for libwayland.
//!
//! The core protocol's tables are in libwayland itself; those of extensions every client brings
//! along. Only version 1 is described, and requests that are never sent have no argument types.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// `struct wl_message`.
#[repr(C)]
pub(super) struct Message {
    name: *const c_char,
    signature: *const c_char,
    types: *const *const Interface,
}

/// `struct wl_interface`.
#[repr(C)]
pub(super) struct Interface {
    pub(super) name: *const c_char,
    version: c_int,
    method_count: c_int,
    methods: *const Message,
    event_count: c_int,
    events: *const Message,
}

/// The interfaces.
pub(super) struct XdgShell {
    pub(super) base: *const Interface,
    pub(super) surface: *const Interface,
    pub(super) toplevel: *const Interface,
}

/// Requests by number.
pub(super) const BASE_GET_SURFACE: u32 = 2;
pub(super) const BASE_PONG: u32 = 3;
pub(super) const SURFACE_GET_TOPLEVEL: u32 = 1;
pub(super) const SURFACE_ACK_CONFIGURE: u32 = 4;
pub(super) const TOPLEVEL_SET_TITLE: u32 = 2;
pub(super) const TOPLEVEL_SET_APP_ID: u32 = 3;

/// No message here has more arguments.
const ARGUMENTS_MAX: usize = 4;
/// Types of arguments that are no objects.
struct NoTypes([*const Interface; ARGUMENTS_MAX]);
// SAFETY: null pointers only, never written.
unsafe impl Sync for NoTypes {}
static NO_TYPES: NoTypes = NoTypes([ptr::null(); ARGUMENTS_MAX]);

impl XdgShell {
    /// Makes the tables, once per connection; they are small and stay for good.
    pub(super) fn new() -> Self {
        let toplevel = interface(
            c"xdg_toplevel",
            &[
                (c"destroy", c"", &[]),
                (c"set_parent", c"?o", &[]),
                (c"set_title", c"s", &[]),
                (c"set_app_id", c"s", &[]),
                (c"show_window_menu", c"ouii", &[]),
                (c"move", c"ou", &[]),
                (c"resize", c"ouu", &[]),
                (c"set_max_size", c"ii", &[]),
                (c"set_min_size", c"ii", &[]),
                (c"set_maximized", c"", &[]),
                (c"unset_maximized", c"", &[]),
                (c"set_fullscreen", c"?o", &[]),
                (c"unset_fullscreen", c"", &[]),
                (c"set_minimized", c"", &[]),
            ],
            &[(c"configure", c"iia", &[]), (c"close", c"", &[])],
        );
        let surface = interface(
            c"xdg_surface",
            &[
                (c"destroy", c"", &[]),
                (c"get_toplevel", c"n", &[toplevel]),
                (c"get_popup", c"n?oo", &[]),
                (c"set_window_geometry", c"iiii", &[]),
                (c"ack_configure", c"u", &[]),
            ],
            &[(c"configure", c"u", &[])],
        );
        let base = interface(
            c"xdg_wm_base",
            &[
                (c"destroy", c"", &[]),
                (c"create_positioner", c"n", &[]),
                (c"get_xdg_surface", c"no", &[surface, ptr::null()]),
                (c"pong", c"u", &[]),
            ],
            &[(c"ping", c"u", &[])],
        );
        Self { base, surface, toplevel }
    }
}

type Described<'a> = (&'static CStr, &'static CStr, &'a [*const Interface]);

fn interface(name: &'static CStr, methods: &[Described<'_>], events: &[Described<'_>]) -> *const Interface {
    let count = |list: &[Described<'_>]| c_int::try_from(list.len()).expect("protocols are small");
    let interface = Interface {
        name: name.as_ptr(),
        version: 1,
        method_count: count(methods),
        methods: messages(methods),
        event_count: count(events),
        events: messages(events),
    };
    Box::leak(Box::new(interface))
}

fn messages(list: &[Described<'_>]) -> *const Message {
    let message = |&(name, signature, types): &Described<'_>| Message {
        name: name.as_ptr(),
        signature: signature.as_ptr(),
        types: if types.is_empty() { NO_TYPES.0.as_ptr() } else { types.to_vec().leak().as_ptr() },
    };
    let list: Vec<Message> = list.iter().map(message).collect();
    list.leak().as_ptr()
}
