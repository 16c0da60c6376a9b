//! EGL: displays, surfaces, contexts and fences, as handles that EGL itself checks.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use super::{Missing, address, functions, open};

/// `EGL_PLATFORM_X11_KHR`.
pub(crate) const PLATFORM_X11: u32 = 0x31D5;
/// `EGL_PLATFORM_WAYLAND_KHR`.
pub(crate) const PLATFORM_WAYLAND: u32 = 0x31D8;
/// `EGL_PLATFORM_SURFACELESS_MESA`.
pub(crate) const PLATFORM_SURFACELESS: u32 = 0x31DD;
/// `EGL_PLATFORM_DEVICE_EXT`.
pub(crate) const PLATFORM_DEVICE: u32 = 0x313F;
/// `EGL_OPENGL_ES_API`.
pub(crate) const OPENGL_ES_API: u32 = 0x30A0;
/// End of an attribute list.
pub(crate) const NONE: i32 = 0x3038;
pub(crate) const ALPHA_SIZE: i32 = 0x3021;
pub(crate) const BLUE_SIZE: i32 = 0x3022;
pub(crate) const GREEN_SIZE: i32 = 0x3023;
pub(crate) const RED_SIZE: i32 = 0x3024;
pub(crate) const DEPTH_SIZE: i32 = 0x3025;
pub(crate) const NATIVE_VISUAL_ID: i32 = 0x302E;
pub(crate) const SAMPLES: i32 = 0x3031;
pub(crate) const SAMPLE_BUFFERS: i32 = 0x3032;
pub(crate) const SURFACE_TYPE: i32 = 0x3033;
pub(crate) const RENDERABLE_TYPE: i32 = 0x3040;
pub(crate) const HEIGHT: i32 = 0x3056;
pub(crate) const WIDTH: i32 = 0x3057;
pub(crate) const CONTEXT_CLIENT_VERSION: i32 = 0x3098;
pub(crate) const CONTEXT_PRIORITY_LEVEL: i32 = 0x3100;
/// `EGL_OPENGL_ES2_BIT`.
pub(crate) const ES2_BIT: i32 = 0x4;
pub(crate) const PBUFFER_BIT: i32 = 0x1;
pub(crate) const WINDOW_BIT: i32 = 0x4;
/// `EGL_EXTENSIONS`.
const EXTENSIONS: i32 = 0x3055;
/// `EGL_VENDOR`.
const VENDOR: i32 = 0x3053;
/// `EGL_SYNC_FENCE_KHR`.
const SYNC_FENCE: u32 = 0x30F9;
/// `EGL_SYNC_FLUSH_COMMANDS_BIT_KHR`.
const FLUSH_COMMANDS: i32 = 1;
/// `EGL_TIMEOUT_EXPIRED_KHR`.
const TIMEOUT_EXPIRED: i32 = 0x30F5;

/// How many GPUs are looked at.
const DEVICES_MAX: i32 = 32;
/// How many configurations are looked at.
const CONFIGS_MAX: i32 = 256;

functions! {
    /// EGL 1.5, or 1.4 with what is asked for by name.
    Egl {
        safe {
            bind_api = c"eglBindAPI" (api: u32) -> u32;
            error = c"eglGetError" () -> i32;
            make_current = c"eglMakeCurrent" (display: usize, draw: usize, read: usize, context: usize) -> u32;
            swap_buffers = c"eglSwapBuffers" (display: usize, surface: usize) -> u32;
            swap_interval = c"eglSwapInterval" (display: usize, interval: i32) -> u32;
            destroy_context = c"eglDestroyContext" (display: usize, context: usize) -> u32;
            destroy_surface = c"eglDestroySurface" (display: usize, surface: usize) -> u32;
            terminate = c"eglTerminate" (display: usize) -> u32;
            release_thread = c"eglReleaseThread" () -> u32;
        }
        raw {
            get_display = c"eglGetDisplay" (*const c_void) -> usize;
            initialize = c"eglInitialize" (usize, *mut i32, *mut i32) -> u32;
            query_string = c"eglQueryString" (usize, i32) -> *const c_char;
            choose_config = c"eglChooseConfig" (usize, *const i32, *mut usize, i32, *mut i32) -> u32;
            get_config = c"eglGetConfigAttrib" (usize, usize, i32, *mut i32) -> u32;
            create_context = c"eglCreateContext" (usize, usize, usize, *const i32) -> usize;
            query_context = c"eglQueryContext" (usize, usize, i32, *mut i32) -> u32;
            create_pbuffer = c"eglCreatePbufferSurface" (usize, usize, *const i32) -> usize;
            create_window = c"eglCreateWindowSurface" (usize, usize, *const c_void, *const i32) -> usize;
            query_surface = c"eglQuerySurface" (usize, usize, i32, *mut i32) -> u32;
            proc_address = c"eglGetProcAddress" (*const c_char) -> *const c_void;
        }
    }
}

functions! {
    /// `EGL_KHR_fence_sync`.
    Fences {
        safe {
            wait = c"eglClientWaitSyncKHR" (display: usize, sync: usize, flags: i32, timeout_ns: u64) -> i32;
            destroy = c"eglDestroySyncKHR" (display: usize, sync: usize) -> u32;
        }
        raw {
            create = c"eglCreateSyncKHR" (usize, u32, *const i32) -> usize;
        }
    }
}

functions! {
    /// `EGL_EXT_platform_base`.
    Platforms {
        safe {}
        raw {
            display = c"eglGetPlatformDisplayEXT" (u32, *const c_void, *const i32) -> usize;
        }
    }
}

functions! {
    /// `EGL_EXT_device_enumeration`.
    Devices {
        safe {}
        raw {
            query = c"eglQueryDevicesEXT" (i32, *mut *const c_void, *mut i32) -> u32;
        }
    }
}

fn library() -> Result<&'static Library, Missing> {
    static LIBRARY: OnceLock<Result<&'static Library, Missing>> = OnceLock::new();
    LIBRARY.get_or_init(|| open("libEGL.so.1", "libegl1")).clone()
}

/// Asserts what EGL requires of attribute lists.
fn check_list(attributes: &[i32]) {
    assert!(attributes.len() % 2 == 1, "attributes come in pairs, then the end");
    assert_eq!(attributes.last(), Some(&NONE), "an attribute list ends with NONE");
}

impl Egl {
    /// Loads EGL.
    pub(crate) fn load() -> Result<Self, Missing> {
        let library = library()?;
        Self::find(&|name| address(library, name))
    }

    /// The address of a function of EGL or GL; null if the driver has none.
    pub(super) fn function(&self, name: &CStr) -> *const c_void {
        // SAFETY: the name ends with a zero byte.
        unsafe { (self.proc_address)(name.as_ptr()) }
    }

    /// Functions of an extension; check first that it is offered.
    fn fences(&self) -> Option<Fences> {
        Fences::find(&|name| self.function(name)).ok()
    }

    /// The display of a platform. `native` is a connection that stays open, or null.
    pub(crate) fn platform_display(&self, platform: u32, native: *const c_void) -> usize {
        if let Ok(platforms) = Platforms::find(&|name| self.function(name)) {
            // SAFETY: no attributes; `native` is what the platform wants, by this method's contract.
            return unsafe { (platforms.display)(platform, native, ptr::null()) };
        }
        // SAFETY: as above, for systems that guess the platform.
        unsafe { (self.get_display)(native) }
    }

    /// The GPUs that can be opened without a window system.
    pub(crate) fn devices(&self) -> Vec<*const c_void> {
        let Ok(devices) = Devices::find(&|name| self.function(name)) else { return Vec::new() };
        let mut found = [ptr::null(); DEVICES_MAX as usize];
        let mut count = 0;
        // SAFETY: the array has room for as many as are asked for.
        let ok = unsafe { (devices.query)(DEVICES_MAX, found.as_mut_ptr(), &raw mut count) };
        let count = if ok == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
        found[..count.min(found.len())].to_vec()
    }

    pub(crate) fn initialise(&self, display: usize) -> bool {
        // SAFETY: the version may be left out.
        unsafe { (self.initialize)(display, ptr::null_mut(), ptr::null_mut()) != 0 }
    }

    /// Extensions of a display; of the client if the display is 0.
    pub(crate) fn extensions(&self, display: usize) -> String {
        self.string(display, EXTENSIONS)
    }

    pub(crate) fn vendor(&self, display: usize) -> String {
        self.string(display, VENDOR)
    }

    fn string(&self, display: usize, what: i32) -> String {
        // SAFETY: EGL checks both numbers.
        let text = unsafe { (self.query_string)(display, what) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the string is EGL's, ends with a zero byte, and lives as long as the display.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// The configurations that have at least these attributes, best first.
    pub(crate) fn configs(&self, display: usize, attributes: &[i32]) -> Vec<usize> {
        check_list(attributes);
        let mut configs = [0; CONFIGS_MAX as usize];
        let mut count = 0;
        // SAFETY: the list ends with NONE, and the array has room for as many as are asked for.
        let ok = unsafe {
            (self.choose_config)(
                display,
                attributes.as_ptr(),
                configs.as_mut_ptr(),
                CONFIGS_MAX,
                &raw mut count,
            )
        };
        let count = if ok == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
        configs[..count.min(configs.len())].to_vec()
    }

    /// An attribute of a configuration; 0 if there is none.
    pub(crate) fn config_value(&self, display: usize, config: usize, attribute: i32) -> i32 {
        let mut value = 0;
        // SAFETY: one number is written.
        unsafe { (self.get_config)(display, config, attribute, &raw mut value) };
        value
    }

    pub(crate) fn new_context(
        &self,
        display: usize,
        config: usize,
        share: usize,
        attributes: &[i32],
    ) -> usize {
        check_list(attributes);
        // SAFETY: the list ends with NONE.
        unsafe { (self.create_context)(display, config, share, attributes.as_ptr()) }
    }

    /// An attribute of a context; 0 if there is none.
    pub(crate) fn context_value(&self, display: usize, context: usize, attribute: i32) -> i32 {
        let mut value = 0;
        // SAFETY: one number is written.
        unsafe { (self.query_context)(display, context, attribute, &raw mut value) };
        value
    }

    pub(crate) fn new_pbuffer(&self, display: usize, config: usize, attributes: &[i32]) -> usize {
        check_list(attributes);
        // SAFETY: the list ends with NONE.
        unsafe { (self.create_pbuffer)(display, config, attributes.as_ptr()) }
    }

    /// A surface of a window of the display's platform, which stays open longer than the surface.
    pub(crate) fn new_window(&self, display: usize, config: usize, native: *const c_void) -> usize {
        // SAFETY: `native` is a window of the display's platform by this method's contract.
        unsafe { (self.create_window)(display, config, native, ptr::null()) }
    }

    /// Width and height of a surface.
    pub(crate) fn surface_size(&self, display: usize, surface: usize) -> (u32, u32) {
        let value = |attribute| {
            let mut value = 0;
            // SAFETY: one number is written.
            unsafe { (self.query_surface)(display, surface, attribute, &raw mut value) };
            u32::try_from(value).unwrap_or(0)
        };
        (value(WIDTH), value(HEIGHT))
    }
}

/// The fences of a display.
#[derive(Clone, Copy)]
pub(crate) struct FenceMaker {
    fences: Fences,
    display: usize,
}

impl FenceMaker {
    /// The fences of an initialised display, if it has any.
    pub(crate) fn new(egl: &Egl, display: usize) -> Option<Self> {
        let offered = egl.extensions(display).split(' ').any(|name| name == "EGL_KHR_fence_sync");
        let fences = if offered { egl.fences() } else { None };
        fences.map(|fences| Self { fences, display })
    }

    /// A fence behind all work of the current context; 0 if the driver refuses.
    pub(crate) fn insert(&self) -> usize {
        // SAFETY: no attributes.
        unsafe { (self.fences.create)(self.display, SYNC_FENCE, ptr::null()) }
    }

    /// Waits for a fence; false if the time is over first.
    pub(crate) fn wait(&self, fence: usize, timeout_ns: u64) -> bool {
        self.fences.wait(self.display, fence, FLUSH_COMMANDS, timeout_ns) != TIMEOUT_EXPIRED
    }

    pub(crate) fn destroy(&self, fence: usize) {
        self.fences.destroy(self.display, fence);
    }
}
