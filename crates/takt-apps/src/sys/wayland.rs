//! A window of a Wayland compositor.
//!
//! Requests are sent and events taken through the two functions of libwayland that need no
//! generated code: one marshals arrays of arguments, the other dispatches to one function.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_short, c_ulong, c_void};
use std::ptr;

use takt_gl_driver::{Library, Missing};

use super::functions;
use super::xdg_shell::{self, Interface, Message, XdgShell};

/// An object of the protocol; null is none.
type Proxy = *mut c_void;

/// `union wl_argument`.
#[repr(C)]
#[derive(Clone, Copy)]
union Argument {
    i: i32,
    u: u32,
    s: *const c_char,
    o: Proxy,
}

type Dispatcher = unsafe extern "C" fn(*const c_void, Proxy, u32, *const Message, *const Argument) -> c_int;

functions! {
    /// libwayland-client.
    Client {
        connect = c"wl_display_connect" (*const c_char) -> Proxy;
        disconnect = c"wl_display_disconnect" (Proxy) -> ();
        descriptor = c"wl_display_get_fd" (Proxy) -> c_int;
        roundtrip = c"wl_display_roundtrip" (Proxy) -> c_int;
        flush = c"wl_display_flush" (Proxy) -> c_int;
        prepare_read = c"wl_display_prepare_read" (Proxy) -> c_int;
        cancel_read = c"wl_display_cancel_read" (Proxy) -> ();
        read_events = c"wl_display_read_events" (Proxy) -> c_int;
        dispatch_pending = c"wl_display_dispatch_pending" (Proxy) -> c_int;
        send = c"wl_proxy_marshal_array" (Proxy, u32, *mut Argument) -> ();
        create = c"wl_proxy_marshal_array_constructor_versioned"
            (Proxy, u32, *mut Argument, *const Interface, u32) -> Proxy;
        add_dispatcher = c"wl_proxy_add_dispatcher" (Proxy, Dispatcher, *const c_void, *mut c_void) -> c_int;
    }
}

functions! {
    /// libwayland-egl.
    WindowMaker {
        create = c"wl_egl_window_create" (Proxy, c_int, c_int) -> *mut c_void;
        resize = c"wl_egl_window_resize" (*mut c_void, c_int, c_int, c_int, c_int) -> ();
        destroy = c"wl_egl_window_destroy" (*mut c_void) -> ();
    }
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

// SAFETY: as <poll.h> declares it.
unsafe extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
}

const POLLIN: c_short = 1;
/// Requests of the core protocol, by number.
const DISPLAY_GET_REGISTRY: u32 = 1;
const REGISTRY_BIND: u32 = 0;
const COMPOSITOR_CREATE_SURFACE: u32 = 0;
const SURFACE_COMMIT: u32 = 6;

/// Why there is no window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WaylandError {
    /// No libwayland.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The compositor does not answer.
    #[error(
        "cannot reach the compositor {0:?}: set WAYLAND_DISPLAY and XDG_RUNTIME_DIR, or choose another --platform"
    )]
    NoCompositor(String),
    /// It lacks something that windows need.
    #[error("the compositor lacks {0}")]
    NoGlobal(&'static str),
    /// It closed the connection.
    #[error("the compositor closed the connection")]
    Closed,
}

/// What events have told; they come through libwayland's dispatch on this thread only.
struct State {
    client: Client,
    compositor: Cell<Option<u32>>,
    shell: Cell<Option<u32>>,
    /// Objects whose events are told apart by address.
    registry: Cell<Proxy>,
    base: Cell<Proxy>,
    surface: Cell<Proxy>,
    toplevel: Cell<Proxy>,
    configured: Cell<bool>,
    /// What the compositor last asked for; 0 leaves it to us.
    wanted: Cell<(i32, i32)>,
    closed: Cell<bool>,
}

/// A connection to a compositor.
pub(crate) struct WaylandConnection {
    state: Box<State>,
    display: Proxy,
    shell: XdgShell,
    /// Interfaces that libwayland itself describes.
    compositor_interface: *const Interface,
    surface_interface: *const Interface,
}

impl WaylandConnection {
    /// Connects to the compositor that `WAYLAND_DISPLAY` names.
    pub(crate) fn open() -> Result<Self, WaylandError> {
        let library = Library::open("libwayland-client.so.0", "libwayland-client0")?;
        let client = Client::find(library)?;
        let core = |name: &CStr| library.needed(name).map(|found| found.cast_const().cast());
        let registry_interface = core(c"wl_registry_interface")?;
        let compositor_interface = core(c"wl_compositor_interface")?;
        let surface_interface = core(c"wl_surface_interface")?;
        // SAFETY: no name means the one of the environment.
        let display = unsafe { (client.connect)(ptr::null()) };
        if display.is_null() {
            return Err(WaylandError::NoCompositor(std::env::var("WAYLAND_DISPLAY").unwrap_or_default()));
        }
        let none = || Cell::new(ptr::null_mut());
        let state = Box::new(State {
            client,
            compositor: Cell::new(None),
            shell: Cell::new(None),
            registry: none(),
            base: none(),
            surface: none(),
            toplevel: none(),
            configured: Cell::new(false),
            wanted: Cell::new((0, 0)),
            closed: Cell::new(false),
        });
        let connection =
            Self { state, display, shell: XdgShell::new(), compositor_interface, surface_interface };
        let state = &connection.state;
        let new_id = [Argument { o: ptr::null_mut() }];
        let registry = connection.create(display, DISPLAY_GET_REGISTRY, new_id, registry_interface);
        connection.listen(registry, &state.registry);
        connection.roundtrip()?;
        Ok(connection)
    }

    /// The connection, for EGL.
    pub(crate) const fn native(&self) -> *const c_void {
        self.display
    }

    /// Opens a window.
    pub(crate) fn window(self, title: &str, size: (u32, u32)) -> Result<WaylandWindow, WaylandError> {
        let library = Library::open("libwayland-egl.so.1", "libwayland-egl1")?;
        let maker = WindowMaker::find(library)?;
        let state = &self.state;
        let compositor = state.compositor.get().ok_or(WaylandError::NoGlobal("wl_compositor"))?;
        let shell = state.shell.get().ok_or(WaylandError::NoGlobal("xdg_wm_base"))?;
        let compositor = self.bind(compositor, self.compositor_interface);
        let base = self.bind(shell, self.shell.base);
        self.listen(base, &state.base);
        let new_id = Argument { o: ptr::null_mut() };
        let surface = self.create(compositor, COMPOSITOR_CREATE_SURFACE, [new_id], self.surface_interface);
        let of_surface = [new_id, Argument { o: surface }];
        let role = self.create(base, xdg_shell::BASE_GET_SURFACE, of_surface, self.shell.surface);
        self.listen(role, &state.surface);
        let toplevel = self.create(role, xdg_shell::SURFACE_GET_TOPLEVEL, [new_id], self.shell.toplevel);
        self.listen(toplevel, &state.toplevel);
        let title = CString::new(title.replace('\0', " ")).unwrap_or_default();
        state.send(toplevel, xdg_shell::TOPLEVEL_SET_TITLE, [Argument { s: title.as_ptr() }]);
        state.send(toplevel, xdg_shell::TOPLEVEL_SET_APP_ID, [Argument { s: title.as_ptr() }]);
        state.send(surface, SURFACE_COMMIT, []);
        // The first buffer may only come after the first configuration; a bound keeps a compositor
        // that never sends one from hanging the app.
        for _ in 0..CONFIGURE_ROUNDS_MAX {
            if state.configured.get() {
                break;
            }
            self.roundtrip()?;
        }
        let size = chosen(state.wanted.get(), size);
        // SAFETY: the surface is a live object of this connection.
        let native = unsafe { (maker.create)(surface, int(size.0), int(size.1)) };
        Ok(WaylandWindow { connection: self, maker, native, size })
    }

    fn bind(&self, name: u32, interface: *const Interface) -> Proxy {
        // SAFETY: interfaces are described for good, by libwayland or by `XdgShell`.
        let text = unsafe { (*interface).name };
        let arguments =
            [Argument { u: name }, Argument { s: text }, Argument { u: 1 }, Argument { o: ptr::null_mut() }];
        self.create(self.state.registry.get(), REGISTRY_BIND, arguments, interface)
    }

    fn create<const N: usize>(
        &self,
        object: Proxy,
        request: u32,
        mut arguments: [Argument; N],
        interface: *const Interface,
    ) -> Proxy {
        // SAFETY: the object is live, the arguments are those of the request, and version 1 is what
        // every object of this connection has.
        unsafe { (self.state.client.create)(object, request, arguments.as_mut_ptr(), interface, 1) }
    }

    /// Has events of an object dispatched, and notes which object it is.
    fn listen(&self, object: Proxy, slot: &Cell<Proxy>) {
        slot.set(object);
        let state = ptr::from_ref::<State>(&self.state).cast();
        // SAFETY: the state is boxed and outlives the connection, which alone calls `dispatch`.
        unsafe { (self.state.client.add_dispatcher)(object, dispatch, state, ptr::null_mut()) };
    }

    fn roundtrip(&self) -> Result<(), WaylandError> {
        // SAFETY: the connection is open.
        let answer = unsafe { (self.state.client.roundtrip)(self.display) };
        if answer < 0 { Err(WaylandError::Closed) } else { Ok(()) }
    }

    /// Takes what the compositor has sent, without waiting.
    fn poll(&self) {
        let (client, display) = (&self.state.client, self.display);
        // SAFETY: the connection is open.
        while unsafe { (client.prepare_read)(display) } != 0 {
            // SAFETY: as above.
            if unsafe { (client.dispatch_pending)(display) } < 0 {
                return self.state.closed.set(true);
            }
        }
        // SAFETY: as above.
        unsafe { (client.flush)(display) };
        // SAFETY: as above.
        let fd = unsafe { (client.descriptor)(display) };
        let mut wait = PollFd { fd, events: POLLIN, revents: 0 };
        // SAFETY: one descriptor, no waiting.
        if unsafe { poll(&raw mut wait, 1, 0) } > 0 {
            // SAFETY: reading was prepared above.
            unsafe { (client.read_events)(display) };
        } else {
            // SAFETY: as above.
            unsafe { (client.cancel_read)(display) };
        }
        // SAFETY: the connection is open.
        if unsafe { (client.dispatch_pending)(display) } < 0 {
            self.state.closed.set(true);
        }
    }
}

/// How often the first configuration is waited for.
const CONFIGURE_ROUNDS_MAX: usize = 100;

impl Drop for WaylandConnection {
    fn drop(&mut self) {
        // SAFETY: the connection is open; its objects go with it, and the state goes after it.
        unsafe { (self.state.client.disconnect)(self.display) };
    }
}

impl State {
    fn send<const N: usize>(&self, object: Proxy, request: u32, mut arguments: [Argument; N]) {
        // SAFETY: the object is live and the arguments are those of the request.
        unsafe { (self.client.send)(object, request, arguments.as_mut_ptr()) };
    }

    fn event(&self, object: Proxy, event: u32, argument: impl Fn(usize) -> Argument) {
        // SAFETY: the protocol fixes which member each argument of an event has; so below.
        let unsigned = |at| unsafe { argument(at).u };
        // SAFETY: as above.
        let int = |at| unsafe { argument(at).i };
        // SAFETY: as above.
        let string = |at| unsafe { argument(at).s };
        if object == self.registry.get() && event == 0 {
            // SAFETY: the second argument of `global` is a string, which ends with a zero byte.
            let name = unsafe { CStr::from_ptr(string(1)) };
            match name.to_bytes() {
                b"wl_compositor" => self.compositor.set(Some(unsigned(0))),
                b"xdg_wm_base" => self.shell.set(Some(unsigned(0))),
                _ => {}
            }
        } else if object == self.base.get() {
            self.send(object, xdg_shell::BASE_PONG, [Argument { u: unsigned(0) }]);
        } else if object == self.surface.get() {
            self.send(object, xdg_shell::SURFACE_ACK_CONFIGURE, [Argument { u: unsigned(0) }]);
            self.configured.set(true);
        } else if object == self.toplevel.get() && event == 0 {
            self.wanted.set((int(0), int(1)));
        } else if object == self.toplevel.get() && event == 1 {
            self.closed.set(true);
        }
    }
}

/// Called by libwayland alone, with the state that was given to it and arguments that live meanwhile.
unsafe extern "C" fn dispatch(
    state: *const c_void,
    object: Proxy,
    event: u32,
    _: *const Message,
    arguments: *const Argument,
) -> c_int {
    // SAFETY: `listen` passed the state, which outlives the connection and is only shared.
    let state = unsafe { &*state.cast::<State>() };
    state.event(object, event, |at| {
        // SAFETY: only arguments that the event has are asked for.
        let argument = unsafe { arguments.add(at) };
        // SAFETY: libwayland passes them initialised, and for the length of this call.
        unsafe { *argument }
    });
    0
}

/// A window.
pub(crate) struct WaylandWindow {
    connection: WaylandConnection,
    maker: WindowMaker,
    native: *mut c_void,
    size: (u32, u32),
}

impl WaylandWindow {
    /// The window, for EGL.
    pub(crate) const fn native(&self) -> *const c_void {
        self.native
    }

    /// Takes what the compositor has sent; the current size, or nothing once the window is closed.
    pub(crate) fn poll(&mut self) -> Option<(u32, u32)> {
        self.connection.poll();
        let size = chosen(self.connection.state.wanted.get(), self.size);
        if size != self.size {
            self.size = size;
            // SAFETY: the window lives as long as this value.
            unsafe { (self.maker.resize)(self.native, int(size.0), int(size.1), 0, 0) };
        }
        (!self.connection.state.closed.get()).then_some(self.size)
    }
}

impl Drop for WaylandWindow {
    fn drop(&mut self) {
        // SAFETY: the window lives, and its surface of EGL is gone by the contract of `new_window`.
        unsafe { (self.maker.destroy)(self.native) };
    }
}

fn int(length: u32) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

fn chosen(wanted: (i32, i32), own: (u32, u32)) -> (u32, u32) {
    let length =
        |wanted: i32, own: u32| u32::try_from(wanted).ok().filter(|&length| length > 0).unwrap_or(own);
    (length(wanted.0, own.0), length(wanted.1, own.1))
}
