//! A window on an X server.

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};
use std::ptr;

use takt_gl_driver::{Library, Missing};

use super::functions;

/// A connection to an X server; null is none.
type XDisplay = *mut c_void;

functions! {
    /// Xlib.
    Xlib {
        open_display = c"XOpenDisplay" (*const c_char) -> XDisplay;
        close_display = c"XCloseDisplay" (XDisplay) -> c_int;
        default_root = c"XDefaultRootWindow" (XDisplay) -> c_ulong;
        visual_info = c"XGetVisualInfo" (XDisplay, c_long, *const VisualInfo, *mut c_int) -> *mut VisualInfo;
        free = c"XFree" (*mut c_void) -> c_int;
        create_colormap = c"XCreateColormap" (XDisplay, c_ulong, *mut c_void, c_int) -> c_ulong;
        create_window = c"XCreateWindow"
            (XDisplay, c_ulong, c_int, c_int, u32, u32, u32, c_int, u32, *mut c_void, c_ulong, *const Attributes)
            -> c_ulong;
        store_name = c"XStoreName" (XDisplay, c_ulong, *const c_char) -> c_int;
        intern_atom = c"XInternAtom" (XDisplay, *const c_char, c_int) -> c_ulong;
        set_protocols = c"XSetWMProtocols" (XDisplay, c_ulong, *const c_ulong, c_int) -> c_int;
        map_window = c"XMapWindow" (XDisplay, c_ulong) -> c_int;
        destroy_window = c"XDestroyWindow" (XDisplay, c_ulong) -> c_int;
        pending = c"XPending" (XDisplay) -> c_int;
        next_event = c"XNextEvent" (XDisplay, *mut Event) -> c_int;
        sync = c"XSync" (XDisplay, c_int) -> c_int;
    }
}

/// `XVisualInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct VisualInfo {
    visual: *mut c_void,
    id: c_ulong,
    screen: c_int,
    depth: c_int,
    class: c_int,
    masks: [c_ulong; 3],
    colormap_size: c_int,
    bits_per_rgb: c_int,
}

/// `XSetWindowAttributes`.
#[repr(C)]
struct Attributes {
    background_pixmap: c_ulong,
    background_pixel: c_ulong,
    border_pixmap: c_ulong,
    border_pixel: c_ulong,
    gravity_and_store: [c_int; 3],
    backing: [c_ulong; 2],
    save_under: c_int,
    event_mask: c_long,
    no_propagate_mask: c_long,
    override_redirect: c_int,
    colormap: c_ulong,
    cursor: c_ulong,
}

/// `XEvent`: a union as large as 24 longs. What is read here lies at the same places in
/// `XConfigureEvent` and `XClientMessageEvent` on every Linux with 64 bits.
type Event = [c_ulong; 24];
const CONFIGURE_NOTIFY: u32 = 22;
const CLIENT_MESSAGE: u32 = 33;
const STRUCTURE_NOTIFY_MASK: c_long = 1 << 17;
const BORDER_PIXEL: c_ulong = 1 << 3;
const EVENT_MASK: c_ulong = 1 << 11;
const COLORMAP: c_ulong = 1 << 13;
const VISUAL_ID_MASK: c_long = 1;
const INPUT_OUTPUT: u32 = 1;

/// Why there is no window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum X11Error {
    /// No Xlib.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The server does not answer.
    #[error("cannot reach the X server {0:?}: set DISPLAY to a running one, or choose another --platform")]
    NoServer(String),
    /// The driver wants a visual that the server lacks.
    #[error("the X server has no visual {0:#x}, which the driver asks for")]
    NoVisual(c_ulong),
}

/// A connection to an X server.
pub(crate) struct X11Connection {
    x: Xlib,
    display: XDisplay,
}

impl X11Connection {
    /// Connects to the server that `DISPLAY` names.
    pub(crate) fn open() -> Result<Self, X11Error> {
        let library = Library::open("libX11.so.6", "libx11-6")?;
        let x = Xlib::find(library)?;
        // SAFETY: no name means the one of the environment.
        let display = unsafe { (x.open_display)(ptr::null()) };
        if display.is_null() {
            return Err(X11Error::NoServer(std::env::var("DISPLAY").unwrap_or_default()));
        }
        Ok(Self { x, display })
    }

    /// The connection, for EGL.
    pub(crate) const fn native(&self) -> *const c_void {
        self.display
    }

    /// Opens a window with the visual that the driver's configuration wants.
    pub(crate) fn window(self, title: &str, size: (u32, u32), visual: i32) -> Result<X11Window, X11Error> {
        let visual_id = c_ulong::try_from(visual).unwrap_or(0);
        let info = self.visual(visual_id).ok_or(X11Error::NoVisual(visual_id))?;
        let (x, display) = (&self.x, self.display);
        // SAFETY: the connection is open.
        let root = unsafe { (x.default_root)(display) };
        // SAFETY: root and visual are of this connection; 0 allocates no colours.
        let colormap = unsafe { (x.create_colormap)(display, root, info.visual, 0) };
        let attributes = Attributes {
            background_pixmap: 0,
            background_pixel: 0,
            border_pixmap: 0,
            border_pixel: 0,
            gravity_and_store: [0; 3],
            backing: [0; 2],
            save_under: 0,
            event_mask: STRUCTURE_NOTIFY_MASK,
            no_propagate_mask: 0,
            override_redirect: 0,
            colormap,
            cursor: 0,
        };
        let mask = BORDER_PIXEL | EVENT_MASK | COLORMAP;
        let ((width, height), visual) = (size, info.visual);
        // SAFETY: all handles are of this connection, and `attributes` has what the mask says.
        let window = unsafe {
            (x.create_window)(
                display,
                root,
                0,
                0,
                width,
                height,
                0,
                info.depth,
                INPUT_OUTPUT,
                visual,
                mask,
                &raw const attributes,
            )
        };
        let delete = self.show(window, title);
        let window = usize::try_from(window).unwrap_or(0);
        Ok(X11Window { connection: self, window, delete, size, closed: false })
    }

    /// Shows a window under a title; the message that asks to close it.
    fn show(&self, window: c_ulong, title: &str) -> c_ulong {
        let (x, display) = (&self.x, self.display);
        let title = CString::new(title.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the title ends with a zero byte.
        unsafe { (x.store_name)(display, window, title.as_ptr()) };
        // SAFETY: so does the name.
        let delete = unsafe { (x.intern_atom)(display, c"WM_DELETE_WINDOW".as_ptr(), 0) };
        // SAFETY: one atom.
        unsafe { (x.set_protocols)(display, window, &raw const delete, 1) };
        // SAFETY: the window is of this connection.
        unsafe { (x.map_window)(display, window) };
        // SAFETY: the connection is open; events are kept.
        unsafe { (x.sync)(display, 0) };
        delete
    }

    fn visual(&self, id: c_ulong) -> Option<VisualInfo> {
        let wanted = VisualInfo {
            visual: ptr::null_mut(),
            id,
            screen: 0,
            depth: 0,
            class: 0,
            masks: [0; 3],
            colormap_size: 0,
            bits_per_rgb: 0,
        };
        let mut count = 0;
        // SAFETY: the template has the field that the mask names.
        let found =
            unsafe { (self.x.visual_info)(self.display, VISUAL_ID_MASK, &raw const wanted, &raw mut count) };
        if found.is_null() || count < 1 {
            return None;
        }
        // SAFETY: the server returned at least one.
        let info = unsafe { *found };
        // SAFETY: Xlib allocated it, and it is not used any more.
        unsafe { (self.x.free)(found.cast()) };
        Some(info)
    }
}

impl Drop for X11Connection {
    fn drop(&mut self) {
        // SAFETY: the connection is open, and is not used from here on.
        unsafe { (self.x.close_display)(self.display) };
    }
}

/// A window.
pub(crate) struct X11Window {
    connection: X11Connection,
    /// As wide as a pointer, as EGL wants it.
    window: usize,
    delete: c_ulong,
    size: (u32, u32),
    closed: bool,
}

impl X11Window {
    /// The window, for EGL.
    pub(crate) const fn native(&self) -> *const c_void {
        ptr::without_provenance(self.window)
    }

    /// Takes what the server has sent; the current size, or nothing once the window is closed.
    pub(crate) fn poll(&mut self) -> Option<(u32, u32)> {
        let X11Connection { x, display } = &self.connection;
        // SAFETY: the connection is open.
        while unsafe { (x.pending)(*display) } > 0 {
            let mut event: Event = [0; 24];
            // SAFETY: an event has room for every kind of event.
            unsafe { (x.next_event)(*display, &raw mut event) };
            let kind = (event[0] & 0xFFFF_FFFF) as u32;
            if kind == CONFIGURE_NOTIFY {
                // Width and height are two ints in the eighth long.
                let bytes = event[7].to_ne_bytes();
                let int =
                    |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                self.size = (int(0).max(1), int(4).max(1));
            } else if kind == CLIENT_MESSAGE && event[7] == self.delete {
                self.closed = true;
            }
        }
        (!self.closed).then_some(self.size)
    }
}

impl Drop for X11Window {
    fn drop(&mut self) {
        // SAFETY: the window is of this connection, which closes after this.
        unsafe { (self.connection.x.destroy_window)(self.connection.display, self.window as c_ulong) };
    }
}
