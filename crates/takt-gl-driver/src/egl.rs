//! EGL: displays, surfaces, contexts and fences, as handles that EGL itself checks.

use std::ffi::{CStr, c_void};
use std::ptr;

use takt_gl_api::egl;
use takt_gl_api::entry::{Id, Ptr, real};

use crate::library::{Missing, load};
use crate::numbers;

/// How many GPUs are looked at.
const DEVICES_MAX: usize = 32;
/// How many configurations are looked at.
const CONFIGS_MAX: usize = 256;

/// EGL, with all functions that are needed.
#[derive(Clone, Copy, Debug)]
pub struct Egl(());

numbers! { Egl needs NEEDED {
        eglBindAPI, eglGetDisplay, eglInitialize, eglQueryString, eglChooseConfig, eglGetConfigAttrib, eglCreateContext,
        eglQueryContext, eglCreatePbufferSurface, eglCreateWindowSurface, eglQuerySurface,
    }
    error = eglGetError() -> i32;
    make_current = eglMakeCurrent(display: usize, draw: usize, read: usize, context: usize) -> u32;
    swap_buffers = eglSwapBuffers(display: usize, surface: usize) -> u32;
    swap_interval = eglSwapInterval(display: usize, interval: i32) -> u32;
    destroy_context = eglDestroyContext(display: usize, context: usize) -> u32;
    destroy_surface = eglDestroySurface(display: usize, surface: usize) -> u32;
    terminate = eglTerminate(display: usize) -> u32;
    release_thread = eglReleaseThread() -> u32;
}

/// What EGL requires of attribute lists is asserted.
fn list(attributes: &[i32]) -> Ptr {
    assert!(attributes.len() % 2 == 1, "attributes come in pairs, then the end");
    assert_eq!(attributes.last(), Some(&egl::NONE), "an attribute list ends with NONE");
    attributes.as_ptr().cast_mut().cast()
}

impl Egl {
    /// Loads EGL.
    ///
    /// # Errors
    ///
    /// If a library or a function is missing.
    pub fn load() -> Result<Self, Missing> {
        load(NEEDED)?;
        Ok(Self(()))
    }

    /// Contexts that this thread makes are of this kind from now on; 0 if EGL refuses.
    pub fn bind_api(&self, api: i32) -> u32 {
        // SAFETY: EGL checks the number.
        unsafe { real::eglBindAPI(api.cast_unsigned()) }
    }

    /// The display of a platform. `native` is a connection that stays open, a device, or null.
    pub fn platform_display(&self, platform: i32, native: *const c_void) -> usize {
        let native = native.cast_mut();
        if Id::eglGetPlatformDisplayEXT.is_there() {
            // SAFETY: no attributes; `native` is what the platform wants, by this method's contract.
            let display =
                unsafe { real::eglGetPlatformDisplayEXT(platform.cast_unsigned(), native, ptr::null_mut()) };
            return display as usize;
        }
        // SAFETY: as above, for systems that guess the platform.
        unsafe { real::eglGetDisplay(native) as usize }
    }

    /// The GPUs that can be opened without a window system.
    pub fn devices(&self) -> Vec<*const c_void> {
        if !Id::eglQueryDevicesEXT.is_there() {
            return Vec::new();
        }
        let mut found = [ptr::null(); DEVICES_MAX];
        fill(&mut found, |room, data, count| {
            // SAFETY: the array has the room that is stated.
            unsafe { real::eglQueryDevicesEXT(room, data, count) }
        })
    }

    /// Starts a display; whether that succeeded.
    pub fn initialise(&self, display: usize) -> bool {
        // SAFETY: the version may be left out.
        unsafe { real::eglInitialize(display as Ptr, ptr::null_mut(), ptr::null_mut()) != 0 }
    }

    /// Whether a display has an extension; of the client if the display is 0.
    pub fn has(&self, display: usize, extension: &str) -> bool {
        self.string(display, egl::EXTENSIONS).split(' ').any(|name| name == extension)
    }

    /// A string of a display, such as its vendor.
    pub fn string(&self, display: usize, what: i32) -> String {
        // SAFETY: EGL checks both numbers.
        let text = unsafe { real::eglQueryString(display as Ptr, what) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the string is EGL's, ends with a zero byte, and lives as long as the display.
        unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned()
    }

    /// The configurations that have at least these attributes, best first.
    pub fn configs(&self, display: usize, attributes: &[i32]) -> Vec<usize> {
        let mut configs = [0_usize; CONFIGS_MAX];
        fill(&mut configs, |room, data, count| {
            // SAFETY: the list ends with NONE, and the array has the room that is stated.
            unsafe { real::eglChooseConfig(display as Ptr, list(attributes), data, room, count) }
        })
    }

    /// An attribute of a configuration; 0 if there is none.
    pub fn config_value(&self, display: usize, config: usize, attribute: i32) -> i32 {
        value(|value| {
            // SAFETY: one number is written.
            unsafe { real::eglGetConfigAttrib(display as Ptr, config as Ptr, attribute, value) };
        })
    }

    /// A context, which may share objects with another one (or 0); 0 if EGL refuses.
    pub fn new_context(&self, display: usize, config: usize, share: usize, attributes: &[i32]) -> usize {
        let (display, config, share) = (display as Ptr, config as Ptr, share as Ptr);
        // SAFETY: the list ends with NONE.
        unsafe { real::eglCreateContext(display, config, share, list(attributes)) as usize }
    }

    /// An attribute of a context; 0 if there is none.
    pub fn context_value(&self, display: usize, context: usize, attribute: i32) -> i32 {
        value(|value| {
            // SAFETY: one number is written.
            unsafe { real::eglQueryContext(display as Ptr, context as Ptr, attribute, value) };
        })
    }

    /// An off-screen surface; 0 if EGL refuses.
    pub fn new_pbuffer(&self, display: usize, config: usize, attributes: &[i32]) -> usize {
        // SAFETY: the list ends with NONE.
        unsafe { real::eglCreatePbufferSurface(display as Ptr, config as Ptr, list(attributes)) as usize }
    }

    /// A surface of a window of the display's platform, which stays open longer than the surface.
    pub fn new_window(&self, display: usize, config: usize, native: *const c_void) -> usize {
        let (display, config, native) = (display as Ptr, config as Ptr, native.cast_mut());
        // SAFETY: `native` is a window of the display's platform by this method's contract.
        unsafe { real::eglCreateWindowSurface(display, config, native, ptr::null_mut()) as usize }
    }

    /// Width and height of a surface.
    pub fn surface_size(&self, display: usize, surface: usize) -> (u32, u32) {
        let ask = |attribute| {
            let value = value(|value| {
                // SAFETY: one number is written.
                unsafe { real::eglQuerySurface(display as Ptr, surface as Ptr, attribute, value) };
            });
            u32::try_from(value).unwrap_or(0)
        };
        (ask(egl::WIDTH), ask(egl::HEIGHT))
    }
}

/// What `ask` writes; 0 if it writes nothing.
fn value(ask: impl FnOnce(Ptr)) -> i32 {
    let mut value = 0_i32;
    ask((&raw mut value).cast());
    value
}

/// The first elements, as many as `ask` says that it wrote.
fn fill<T: Copy>(room: &mut [T], ask: impl FnOnce(i32, Ptr, Ptr) -> u32) -> Vec<T> {
    let mut count = 0_i32;
    let ok = ask(crate::length(room.len()), room.as_mut_ptr().cast(), (&raw mut count).cast());
    let count = if ok == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
    room[..count.min(room.len())].to_vec()
}

/// How a wait for a fence ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// All work before the fence is done.
    Passed,
    /// The time is over.
    TimedOut,
    /// The driver does not wait.
    Failed,
}

/// The fences of a display.
#[derive(Clone, Copy, Debug)]
pub struct Fences {
    display: usize,
}

impl Fences {
    /// The fences of an initialised display, if it has any.
    pub fn new(egl: &Egl, display: usize) -> Option<Self> {
        let calls = [Id::eglCreateSyncKHR, Id::eglClientWaitSyncKHR, Id::eglDestroySyncKHR];
        let offered = egl.has(display, "EGL_KHR_fence_sync") && calls.into_iter().all(Id::is_there);
        offered.then_some(Self { display })
    }

    /// A fence behind all work of the current context; 0 if the driver refuses.
    pub fn insert(&self) -> usize {
        let kind = egl::SYNC_FENCE_KHR.cast_unsigned();
        // SAFETY: no attributes.
        unsafe { real::eglCreateSyncKHR(self.display as Ptr, kind, ptr::null_mut()) as usize }
    }

    /// Submits what is pending and waits for a fence, so long at most.
    pub fn wait(&self, fence: usize, most_ns: u64) -> Waited {
        let (display, flags) = (self.display as Ptr, egl::SYNC_FLUSH_COMMANDS_BIT_KHR);
        // SAFETY: EGL checks the fence.
        match unsafe { real::eglClientWaitSyncKHR(display, fence as Ptr, flags, most_ns) } {
            egl::CONDITION_SATISFIED_KHR => Waited::Passed,
            egl::TIMEOUT_EXPIRED_KHR => Waited::TimedOut,
            _ => Waited::Failed,
        }
    }

    /// Ends a fence.
    pub fn destroy(&self, fence: usize) {
        // SAFETY: EGL checks the fence.
        unsafe { real::eglDestroySyncKHR(self.display as Ptr, fence as Ptr) };
    }
}
