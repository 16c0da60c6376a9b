//! Questions to the X server.
//!
//! Xlib ends the program where the server refuses something, for example because a window is gone; so
//! questions of ours go through xcb, which hands errors back. Nothing is linked: what the program or its
//! driver has loaded is used.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use crate::entry::Ptr;

/// `GLX_VENDOR_NAMES_EXT` of `GLX_EXT_libglvnd`.
const VENDOR_NAMES: u32 = 0x20F6;
/// GLX's request for a string of the server.
const QUERY_SERVER_STRING: u8 = 19;
/// Every answer has as many bytes at least.
const REPLY_BYTES: usize = 32;
/// Errors come back with the answer.
const CHECKED: i32 = 1;

/// What xcb wants to know about a request.
#[repr(C)]
struct ProtocolRequest {
    count: usize,
    extension: Ptr,
    opcode: u8,
    is_void: u8,
}

type Error = *mut Ptr;

/// Functions of xcb, with their names and types.
macro_rules! functions {
    ($( $field:ident, $name:literal, $ty:ty; )*) => {
        struct Xcb {
            $( $field: $ty, )*
        }

        impl Xcb {
            fn load() -> Option<Self> {
                let library = library(c"libxcb.so.1")?;
                let find = |name: &CStr| {
                    // SAFETY: the handle is valid, the name ends with a zero byte.
                    NonNull::new(unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) }).map(NonNull::as_ptr)
                };
                Some(Self {
                    // SAFETY: xcb defines the signature of this name.
                    $( $field: unsafe { std::mem::transmute::<Ptr, $ty>(find($name)?) }, )*
                })
            }
        }
    };
}

functions! {
    connect, c"xcb_connect", unsafe extern "C" fn(Ptr, Ptr) -> Ptr;
    disconnect, c"xcb_disconnect", unsafe extern "C" fn(Ptr);
    has_error, c"xcb_connection_has_error", unsafe extern "C" fn(Ptr) -> i32;
    query_extension, c"xcb_query_extension", unsafe extern "C" fn(Ptr, u16, *const u8) -> u32;
    query_extension_reply, c"xcb_query_extension_reply", unsafe extern "C" fn(Ptr, u32, Error) -> Ptr;
    send_request, c"xcb_send_request",
        unsafe extern "C" fn(Ptr, i32, *mut libc::iovec, *const ProtocolRequest) -> u32;
    wait_for_reply, c"xcb_wait_for_reply", unsafe extern "C" fn(Ptr, u32, Error) -> Ptr;
    get_geometry, c"xcb_get_geometry", unsafe extern "C" fn(Ptr, u32) -> u32;
    get_geometry_reply, c"xcb_get_geometry_reply", unsafe extern "C" fn(Ptr, u32, Error) -> Ptr;
}

/// A library that is loaded, or can be.
fn library(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a library of the system, which every driver of GLX depends on.
    NonNull::new(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) })
}

/// An answer of the server, which is freed in the end.
struct Reply(NonNull<c_void>);

impl Reply {
    /// What a function of xcb answers that takes room for an error.
    fn of(ask: impl FnOnce(Error) -> Ptr) -> Option<Self> {
        let mut error: Ptr = ptr::null_mut();
        let reply = ask(&raw mut error);
        // SAFETY: xcb's own memory, or none.
        unsafe { libc::free(error) };
        NonNull::new(reply).map(Self)
    }

    /// Its first bytes: 32 of each answer, and as many as it says behind them.
    fn bytes(&self, behind: usize) -> &[u8] {
        // SAFETY: up to the caller, who has read how many there are from the first 32.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), REPLY_BYTES + behind) }
    }

    /// The number of 16 bits that begins there.
    fn half(&self, at: usize) -> u32 {
        self.bytes(0).get(at..at + 2).map_or(0, |bytes| u16::from_ne_bytes([bytes[0], bytes[1]]).into())
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // SAFETY: xcb hands over memory that its caller frees.
        unsafe { libc::free(self.0.as_ptr()) };
    }
}

/// The size of a window or pixmap, if there is one of that number.
pub(crate) fn size(display: Ptr, drawable: usize) -> Option<[u32; 2]> {
    size_by_xcb(connection(display)?, drawable)
}

/// The same by a connection of xcb.
pub(crate) fn size_by_xcb(connection: Ptr, drawable: usize) -> Option<[u32; 2]> {
    let xcb = xcb()?;
    let drawable = u32::try_from(drawable).ok()?;
    // SAFETY: the connection of the program's own display, whose thread this is.
    let cookie = unsafe { (xcb.get_geometry)(connection, drawable) };
    // SAFETY: the cookie is that of the connection's last request.
    let reply = Reply::of(|error| unsafe { (xcb.get_geometry_reply)(connection, cookie, error) })?;
    // Behind the root window and the place.
    Some([16, 18].map(|at| reply.half(at)))
}

/// The number of the visual that windows of a display usually have.
pub(crate) fn visual(display: Ptr) -> Option<i32> {
    let of = |name| Some(function(c"libX11.so.6", name)).filter(|found| !found.is_null());
    let [screen, visual, id] = [c"XDefaultScreen", c"XDefaultVisual", c"XVisualIDFromVisual"].map(of);
    // SAFETY: Xlib defines the signature of this name.
    let screen: unsafe extern "C" fn(Ptr) -> i32 = unsafe { std::mem::transmute(screen?) };
    // SAFETY: as above.
    let visual: unsafe extern "C" fn(Ptr, i32) -> Ptr = unsafe { std::mem::transmute(visual?) };
    // SAFETY: as above.
    let id: unsafe extern "C" fn(Ptr) -> libc::c_ulong = unsafe { std::mem::transmute(id?) };
    // SAFETY: a display that the program handed to EGL.
    let screen = unsafe { screen(display) };
    // SAFETY: as above, and its own screen.
    let visual = unsafe { visual(display, screen) };
    // SAFETY: a visual of that display.
    i32::try_from(unsafe { id(visual) }).ok()
}

/// Which vendors the X server of this process wants, separated by spaces.
pub(crate) fn wanted_vendors() -> Option<String> {
    let xcb = xcb()?;
    // SAFETY: asks for the server that the environment names; there is always an answer, if only an error.
    let connection = unsafe { (xcb.connect)(ptr::null_mut(), ptr::null_mut()) };
    // SAFETY: what was just made.
    let names =
        (unsafe { (xcb.has_error)(connection) } == 0).then(|| asked_vendors(xcb, connection)).flatten();
    // SAFETY: no other thread knows it.
    unsafe { (xcb.disconnect)(connection) };
    names
}

fn asked_vendors(xcb: &Xcb, connection: Ptr) -> Option<String> {
    // SAFETY: a name of three bytes.
    let cookie = unsafe { (xcb.query_extension)(connection, 3, c"GLX".as_ptr().cast()) };
    // SAFETY: the cookie is that of the connection's last request.
    let glx = Reply::of(|error| unsafe { (xcb.query_extension_reply)(connection, cookie, error) })?;
    let (is_there, opcode) = (glx.bytes(0)[8], glx.bytes(0)[9]);
    if is_there == 0 {
        return None;
    }
    let mut request = [0_u32; 3];
    request[0] = u32::from_ne_bytes([0, QUERY_SERVER_STRING, 0, 0]);
    request[2] = VENDOR_NAMES;
    let none = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
    let body = libc::iovec { iov_base: request.as_mut_ptr().cast(), iov_len: size_of_val(&request) };
    // xcb wants room for two parts of its own before.
    let mut parts = [none, none, body, none];
    let about = ProtocolRequest { count: 1, extension: ptr::null_mut(), opcode, is_void: 0 };
    let first = &raw mut parts[2];
    // SAFETY: one part that is as long as it says, after the room that xcb wants.
    let cookie = unsafe { (xcb.send_request)(connection, CHECKED, first, &raw const about) };
    // SAFETY: the cookie is that of the connection's last request.
    let reply = Reply::of(|error| unsafe { (xcb.wait_for_reply)(connection, cookie, error) })?;
    // How long the string is, but no longer than what came.
    let bytes = (reply.half(12) as usize).min(reply.half(4) as usize * 4);
    let text = reply.bytes(bytes).get(REPLY_BYTES..)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}

fn xcb() -> Option<&'static Xcb> {
    static XCB: std::sync::OnceLock<Option<Xcb>> = std::sync::OnceLock::new();
    XCB.get_or_init(Xcb::load).as_ref()
}

/// xcb's side of Xlib's display.
fn connection(display: Ptr) -> Option<Ptr> {
    static FOUND: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let found = *FOUND.get_or_init(|| function(c"libX11-xcb.so.1", c"XGetXCBConnection") as usize);
    if found == 0 || display.is_null() {
        return None;
    }
    // SAFETY: libX11-xcb defines the signature of this name.
    let get: unsafe extern "C" fn(Ptr) -> Ptr = unsafe { std::mem::transmute(found as Ptr) };
    // SAFETY: a display that the program hands to GLX.
    NonNull::new(unsafe { get(display) }).map(NonNull::as_ptr)
}

/// A function of a library, wherever the program has loaded it; null if there is none.
pub(crate) fn function(from: &CStr, name: &CStr) -> Ptr {
    // SAFETY: the handle is valid, the name ends with a zero byte.
    library(from).map_or(ptr::null_mut(), |library| unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) })
}

/// What Xlib calls when a display is closed.
pub(crate) type OnClose = unsafe extern "C" fn(Ptr, Ptr) -> i32;

/// Has a function called before a display is closed, and before its driver hears of that. False if Xlib
/// does not take it.
pub(crate) fn on_close(display: Ptr, call: OnClose) -> bool {
    let [add, set] = [c"XAddExtension", c"XESetCloseDisplay"].map(|name| function(c"libX11.so.6", name));
    if add.is_null() || set.is_null() {
        return false;
    }
    // SAFETY: Xlib defines the signature of this name.
    let add: unsafe extern "C" fn(Ptr) -> *const i32 = unsafe { std::mem::transmute(add) };
    // SAFETY: as above.
    let set: unsafe extern "C" fn(Ptr, i32, OnClose) -> Ptr = unsafe { std::mem::transmute(set) };
    // SAFETY: a display that the program hands to GLX, from its own thread.
    let codes = unsafe { add(display) };
    // SAFETY: codes begin with the number of the extension.
    let Some(number) = (unsafe { codes.as_ref() }) else {
        return false;
    };
    // SAFETY: an extension of this display that was just added.
    unsafe { set(display, *number, call) };
    true
}
