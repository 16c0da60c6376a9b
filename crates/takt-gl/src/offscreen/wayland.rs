//! Keeps Wayland windows alive that show no picture.
//!
//! A Wayland program draws its next frame when the compositor has shown the last one, and says when that is only of
//! windows that have contents. So each swap hands the compositor a transparent picture of the window's size: always
//! the same one, in memory that no page was ever written to. Some programs wait for any event after a swap, for drivers
//! ask when a frame was shown; so we ask as well, but do not wait for the answer.
//!
//! Nothing is linked: the library that the program has loaded is used, with a queue of events of our own.

#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each block is one exchange with the compositor, and what it takes for granted holds for all of its calls"
)]

use std::ffi::{CStr, c_char, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::entry::Ptr;
use crate::x11::function;

/// An argument of a request.
#[repr(C)]
union WireValue {
    i: i32,
    u: u32,
    s: *const c_char,
    o: Ptr,
    n: u32,
    h: i32,
}

impl WireValue {
    const NEW: Self = Self { o: ptr::null_mut() };
}

type GlobalFn = unsafe extern "C" fn(*mut u32, Ptr, u32, *const c_char, u32);
type RemovedFn = unsafe extern "C" fn(*mut u32, Ptr, u32);

/// What the registry calls.
#[repr(C)]
struct RegistryListener {
    global: GlobalFn,
    removed: RemovedFn,
}

/// What a question when a frame was shown calls.
#[repr(C)]
struct CallbackListener {
    done: unsafe extern "C" fn(*const AtomicBool, Ptr, u32),
}

static CALLBACK: CallbackListener = CallbackListener { done };

static REGISTRY: RegistryListener = RegistryListener { global, removed };

/// Requests, by their numbers in the protocol.
const GET_REGISTRY: u32 = 1;
const BIND: u32 = 0;
const CREATE_POOL: u32 = 0;
const CREATE_BUFFER: u32 = 0;
const DESTROY_POOL: u32 = 1;
const DESTROY_BUFFER: u32 = 0;
const ATTACH: u32 = 1;
const DAMAGE: u32 = 2;
const FRAME: u32 = 3;
const COMMIT: u32 = 6;
/// With an alpha channel: all zeros are transparent.
const ARGB8888: u32 = 0;
const PIXEL_BYTES: i32 = 4;

/// What the library knows of a kind of object.
#[derive(Clone, Copy)]
struct Interface(usize);

/// Functions of libwayland-client, with their names and types.
macro_rules! functions {
    ($( $field:ident, $name:literal, $ty:ty; )*) => {
        struct Client {
            $( $field: $ty, )*
            registry_interface: Interface,
            shm_interface: Interface,
            pool_interface: Interface,
            buffer_interface: Interface,
            callback_interface: Interface,
        }

        impl Client {
            fn load() -> Option<Self> {
                let find = |name: &CStr| {
                    let found = function(c"libwayland-client.so.0", name);
                    (!found.is_null()).then_some(found)
                };
                Some(Self {
                    // SAFETY: libwayland-client defines the signature of this name.
                    $( $field: unsafe { std::mem::transmute::<Ptr, $ty>(find($name)?) }, )*
                    registry_interface: Interface(find(c"wl_registry_interface")? as usize),
                    shm_interface: Interface(find(c"wl_shm_interface")? as usize),
                    pool_interface: Interface(find(c"wl_shm_pool_interface")? as usize),
                    buffer_interface: Interface(find(c"wl_buffer_interface")? as usize),
                    callback_interface: Interface(find(c"wl_callback_interface")? as usize),
                })
            }
        }
    };
}

functions! {
    create_queue, c"wl_display_create_queue", unsafe extern "C" fn(Ptr) -> Ptr;
    roundtrip, c"wl_display_roundtrip_queue", unsafe extern "C" fn(Ptr, Ptr) -> i32;
    dispatch_pending, c"wl_display_dispatch_queue_pending", unsafe extern "C" fn(Ptr, Ptr) -> i32;
    flush, c"wl_display_flush", unsafe extern "C" fn(Ptr) -> i32;
    create_wrapper, c"wl_proxy_create_wrapper", unsafe extern "C" fn(Ptr) -> Ptr;
    destroy_wrapper, c"wl_proxy_wrapper_destroy", unsafe extern "C" fn(Ptr);
    set_queue, c"wl_proxy_set_queue", unsafe extern "C" fn(Ptr, Ptr);
    add_listener, c"wl_proxy_add_listener",
        unsafe extern "C" fn(Ptr, *const c_void, *mut c_void) -> i32;
    destroy, c"wl_proxy_destroy", unsafe extern "C" fn(Ptr);
    request, c"wl_proxy_marshal_array", unsafe extern "C" fn(Ptr, u32, *mut WireValue);
    construct, c"wl_proxy_marshal_array_constructor_versioned",
        unsafe extern "C" fn(Ptr, u32, *mut WireValue, Ptr, u32) -> Ptr;
}

fn client() -> Option<&'static Client> {
    static CLIENT: OnceLock<Option<Client>> = OnceLock::new();
    CLIENT.get_or_init(Client::load).as_ref()
}

/// The compositor offers something: notes the number of its shared memory.
unsafe extern "C" fn global(found: *mut u32, _registry: Ptr, name: u32, interface: *const c_char, _: u32) {
    // SAFETY: a name ends with a zero byte.
    if unsafe { CStr::from_ptr(interface) } == c"wl_shm" {
        // SAFETY: the number that waits for it, which outlives the listener.
        unsafe { found.write(name) };
    }
}

/// A frame was shown.
unsafe extern "C" fn done(shown: *const AtomicBool, _callback: Ptr, _time: u32) {
    // SAFETY: the question keeps it as long as it is asked.
    unsafe { &*shown }.store(true, Relaxed);
}

unsafe extern "C" fn removed(_found: *mut u32, _registry: Ptr, _name: u32) {}

/// A connection of the program, with what we have there.
#[derive(Debug)]
pub(super) struct Compositor {
    /// The program's `wl_display`.
    display: usize,
    queue: usize,
    shm: usize,
}

/// A transparent picture.
#[derive(Debug)]
pub(super) struct Picture {
    buffer: usize,
    size: [i32; 2],
    question: Option<Question>,
}

/// The question when a frame was shown.
#[derive(Debug)]
struct Question {
    callback: usize,
    shown: Box<AtomicBool>,
}

impl Compositor {
    /// The compositor behind a `wl_display`.
    pub(super) fn of(display: usize) -> Option<Self> {
        let client = client()?;
        let connection = display as Ptr;
        // SAFETY: the display that the program handed to EGL; objects on a queue of ours are dispatched by us alone.
        unsafe {
            let queue = (client.create_queue)(connection);
            let wrapper = (client.create_wrapper)(connection);
            if queue.is_null() || wrapper.is_null() {
                return None;
            }
            (client.set_queue)(wrapper, queue);
            let mut arguments = [WireValue::NEW];
            let registry = client.made(wrapper, GET_REGISTRY, &mut arguments, client.registry_interface)?;
            (client.destroy_wrapper)(wrapper);
            let mut name = 0_u32;
            (client.add_listener)(registry, (&raw const REGISTRY).cast(), (&raw mut name).cast());
            (client.roundtrip)(connection, queue);
            let interface = c"wl_shm".as_ptr();
            let mut arguments =
                [WireValue { u: name }, WireValue { s: interface }, WireValue { u: 1 }, WireValue::NEW];
            let shm = (name != 0).then(|| client.made(registry, BIND, &mut arguments, client.shm_interface));
            (client.destroy)(registry);
            Some(Self { display, queue: queue as usize, shm: shm.flatten()? as usize })
        }
    }

    /// The program's `wl_display`.
    pub(super) fn display(&self) -> usize {
        self.display
    }

    /// A picture of that size.
    pub(super) fn picture(&self, size: [i32; 2]) -> Option<Picture> {
        let client = client()?;
        let [width, height] = size;
        let stride = width.checked_mul(PIXEL_BYTES)?;
        let bytes = stride.checked_mul(height).filter(|bytes| *bytes > 0)?;
        // SAFETY: the name ends with a zero byte.
        let memory = unsafe { libc::memfd_create(c"takt-offscreen".as_ptr(), libc::MFD_CLOEXEC) };
        if memory < 0 {
            return None;
        }
        // SAFETY: the descriptor is new, and nothing else knows it.
        let memory = unsafe { OwnedFd::from_raw_fd(memory) };
        // SAFETY: as above.
        if unsafe { libc::ftruncate(memory.as_raw_fd(), bytes.into()) } != 0 {
            return None;
        }
        let mut pool = [WireValue::NEW, WireValue { h: memory.as_raw_fd() }, WireValue { i: bytes }];
        let mut buffer = [
            WireValue::NEW,
            WireValue { i: 0 },
            WireValue { i: width },
            WireValue { i: height },
            WireValue { i: stride },
            WireValue { u: ARGB8888 },
        ];
        // SAFETY: our own objects, with the arguments that the protocol has for these requests. The library keeps a
        // descriptor of its own.
        unsafe {
            let pool = client.made(self.shm as Ptr, CREATE_POOL, &mut pool, client.pool_interface)?;
            let buffer = client.made(pool, CREATE_BUFFER, &mut buffer, client.buffer_interface);
            (client.request)(pool, DESTROY_POOL, ptr::null_mut());
            (client.destroy)(pool);
            buffer.map(|buffer| Picture { buffer: buffer as usize, size, question: None })
        }
    }

    /// Shows a picture in the window of a `wl_surface`, with all that the program has asked for since it last did.
    pub(super) fn show(&self, picture: &mut Picture, surface: usize) {
        let Some(client) = client() else {
            return;
        };
        let [width, height] = picture.size;
        let mut attach = [WireValue { o: picture.buffer as Ptr }, WireValue { i: 0 }, WireValue { i: 0 }];
        let mut damage =
            [WireValue { i: 0 }, WireValue { i: 0 }, WireValue { i: width }, WireValue { i: height }];
        let surface = surface as Ptr;
        // SAFETY: the surface of a window that the program shows just now, and a picture of ours.
        unsafe {
            (client.dispatch_pending)(self.display as Ptr, self.queue as Ptr);
            let answered = |question: &mut Question| question.shown.load(Relaxed);
            picture.question.take_if(answered).into_iter().for_each(Question::end);
            picture.question = picture.question.take().or_else(|| self.ask(client, surface));
            (client.request)(surface, ATTACH, attach.as_mut_ptr());
            (client.request)(surface, DAMAGE, damage.as_mut_ptr());
            (client.request)(surface, COMMIT, ptr::null_mut());
            (client.flush)(self.display as Ptr);
        }
    }
}

impl Compositor {
    /// Asks when the next frame of a surface was shown; the answer comes to our queue.
    ///
    /// # Safety
    ///
    /// The surface is one of this connection.
    unsafe fn ask(&self, client: &Client, surface: Ptr) -> Option<Question> {
        let shown = Box::new(AtomicBool::new(false));
        let mut arguments = [WireValue::NEW];
        // SAFETY: as the caller says; what the listener writes to lives as long as the callback.
        unsafe {
            let wrapper = (client.create_wrapper)(surface);
            if wrapper.is_null() {
                return None;
            }
            (client.set_queue)(wrapper, self.queue as Ptr);
            let callback = client.made(wrapper, FRAME, &mut arguments, client.callback_interface);
            (client.destroy_wrapper)(wrapper);
            let callback = callback?;
            let data = (&raw const *shown).cast_mut().cast();
            (client.add_listener)(callback, (&raw const CALLBACK).cast(), data);
            Some(Question { callback: callback as usize, shown })
        }
    }
}

impl Question {
    fn end(self) {
        if let Some(client) = client() {
            // SAFETY: our own object, on a connection that the program still has; nothing answers to it any more.
            unsafe { (client.destroy)(self.callback as Ptr) };
        }
    }
}

impl Picture {
    pub(super) fn size(&self) -> [i32; 2] {
        self.size
    }

    /// The program shows another one, or none any more.
    pub(super) fn leave(self) {
        self.question.into_iter().for_each(Question::end);
        if let Some(client) = client() {
            let buffer = self.buffer as Ptr;
            // SAFETY: our own object, on a connection that the program still has.
            unsafe {
                (client.request)(buffer, DESTROY_BUFFER, ptr::null_mut());
                (client.destroy)(buffer);
            }
        }
    }
}

impl Client {
    /// What a request makes; none if there is no memory.
    ///
    /// # Safety
    ///
    /// The object takes this request with these arguments, and makes something of this kind.
    unsafe fn made(
        &self,
        of: Ptr,
        request: u32,
        arguments: &mut [WireValue],
        of_kind: Interface,
    ) -> Option<Ptr> {
        // SAFETY: as the caller says.
        let made = unsafe { (self.construct)(of, request, arguments.as_mut_ptr(), of_kind.0 as Ptr, 1) };
        (!made.is_null()).then_some(made)
    }
}
