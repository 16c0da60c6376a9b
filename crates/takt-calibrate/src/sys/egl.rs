//! EGL: displays, surfaces, contexts and fences, as handles that EGL itself checks.

use std::ffi::CStr;
use std::ptr;

use takt_gl::entry::{Id, Ptr, real};

use super::{load, numbers};
use crate::Problem;

pub(crate) const PLATFORM_SURFACELESS: u32 = 0x31DD;
pub(crate) const PLATFORM_DEVICE: u32 = 0x313F;
pub(crate) const OPENGL_ES_API: u32 = 0x30A0;
/// End of an attribute list.
pub(crate) const NONE: i32 = 0x3038;
pub(crate) const ALPHA_SIZE: i32 = 0x3021;
pub(crate) const BLUE_SIZE: i32 = 0x3022;
pub(crate) const GREEN_SIZE: i32 = 0x3023;
pub(crate) const RED_SIZE: i32 = 0x3024;
pub(crate) const DEPTH_SIZE: i32 = 0x3025;
pub(crate) const STENCIL_SIZE: i32 = 0x3026;
pub(crate) const SURFACE_TYPE: i32 = 0x3033;
pub(crate) const RENDERABLE_TYPE: i32 = 0x3040;
pub(crate) const HEIGHT: i32 = 0x3056;
pub(crate) const WIDTH: i32 = 0x3057;
pub(crate) const CONTEXT_CLIENT_VERSION: i32 = 0x3098;
/// `EGL_OPENGL_ES2_BIT`.
pub(crate) const ES2_BIT: i32 = 0x4;
pub(crate) const PBUFFER_BIT: i32 = 0x1;
const EXTENSIONS: i32 = 0x3055;
const SYNC_FENCE: u32 = 0x30F9;
/// `EGL_SYNC_FLUSH_COMMANDS_BIT_KHR`.
const FLUSH_COMMANDS: i32 = 1;
/// `EGL_CONDITION_SATISFIED_KHR`.
const SATISFIED: i32 = 0x30F6;

/// How many GPUs are looked at.
const DEVICES_MAX: usize = 32;

/// EGL, with all functions that are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Egl(());

numbers! { Egl needs NEEDED {
        eglInitialize, eglQueryString, eglChooseConfig, eglGetConfigAttrib, eglCreateContext,
        eglCreatePbufferSurface, eglGetPlatformDisplayEXT, eglCreateSyncKHR,
    }
    bind_api = eglBindAPI(api: u32) -> u32;
    error = eglGetError() -> i32;
    make_current = eglMakeCurrent(display: usize, draw: usize, read: usize, context: usize) -> u32;
    swap_buffers = eglSwapBuffers(display: usize, surface: usize) -> u32;
    destroy_context = eglDestroyContext(display: usize, context: usize) -> u32;
    destroy_surface = eglDestroySurface(display: usize, surface: usize) -> u32;
    wait_sync = eglClientWaitSyncKHR(display: usize, sync: usize, flags: i32, timeout_ns: u64) -> i32;
    destroy_sync = eglDestroySyncKHR(display: usize, sync: usize) -> u32;
}

/// Asserts what EGL requires of attribute lists.
fn check_list(attributes: &[i32]) {
    assert!(attributes.len() % 2 == 1, "attributes come in pairs, then the end");
    assert_eq!(attributes.last(), Some(&NONE), "an attribute list ends with NONE");
}

fn list(attributes: &[i32]) -> Ptr {
    check_list(attributes);
    attributes.as_ptr().cast_mut().cast()
}

impl Egl {
    /// Loads EGL.
    pub(crate) fn load() -> Result<Self, Problem> {
        load(NEEDED)?;
        Ok(Self(()))
    }

    /// The display of a platform; `native` is a device of [`Egl::devices`], or 0.
    pub(crate) fn platform_display(&self, platform: u32, native: usize) -> usize {
        // SAFETY: no attributes; EGL checks the device.
        unsafe { real::eglGetPlatformDisplayEXT(platform, native as Ptr, ptr::null_mut()) as usize }
    }

    /// The GPUs that can be opened without a window system.
    pub(crate) fn devices(&self) -> Vec<usize> {
        if !Id::eglQueryDevicesEXT.is_there() {
            return Vec::new();
        }
        let mut found = [0_usize; DEVICES_MAX];
        let mut count = 0_i32;
        let max = i32::try_from(DEVICES_MAX).unwrap_or(1);
        // SAFETY: the array has room for as many as are asked for.
        let ok = unsafe { real::eglQueryDevicesEXT(max, found.as_mut_ptr().cast(), (&raw mut count).cast()) };
        let count = if ok == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
        found[..count.min(found.len())].to_vec()
    }

    pub(crate) fn initialise(&self, display: usize) -> bool {
        // SAFETY: the version may be left out.
        unsafe { real::eglInitialize(display as Ptr, ptr::null_mut(), ptr::null_mut()) != 0 }
    }

    /// Whether a display has an extension.
    pub(crate) fn has(&self, display: usize, extension: &str) -> bool {
        // SAFETY: EGL checks both numbers.
        let text = unsafe { real::eglQueryString(display as Ptr, EXTENSIONS) };
        if text.is_null() {
            return false;
        }
        // SAFETY: the string is EGL's, ends with a zero byte, and lives as long as the display.
        let text = unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy();
        text.split(' ').any(|name| name == extension)
    }

    /// The configurations that have at least these attributes, best first.
    pub(crate) fn configs(&self, display: usize, attributes: &[i32]) -> Vec<usize> {
        let mut configs = [0_usize; 256];
        let mut count = 0_i32;
        // SAFETY: the list ends with NONE, and the array has room for as many as are asked for.
        let ok = unsafe {
            real::eglChooseConfig(
                display as Ptr,
                list(attributes),
                configs.as_mut_ptr().cast(),
                256,
                (&raw mut count).cast(),
            )
        };
        let count = if ok == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
        configs[..count.min(configs.len())].to_vec()
    }

    /// An attribute of a configuration; 0 if there is none.
    pub(crate) fn config_value(&self, display: usize, config: usize, attribute: i32) -> i32 {
        let mut value = 0_i32;
        // SAFETY: one number is written.
        unsafe {
            real::eglGetConfigAttrib(display as Ptr, config as Ptr, attribute, (&raw mut value).cast())
        };
        value
    }

    /// A context; 0 if EGL refuses.
    pub(crate) fn new_context(&self, display: usize, config: usize, attributes: &[i32]) -> usize {
        // SAFETY: the list ends with NONE.
        unsafe {
            real::eglCreateContext(display as Ptr, config as Ptr, ptr::null_mut(), list(attributes)) as usize
        }
    }

    /// An off-screen surface; 0 if EGL refuses.
    pub(crate) fn new_pbuffer(&self, display: usize, config: usize, attributes: &[i32]) -> usize {
        // SAFETY: the list ends with NONE.
        unsafe { real::eglCreatePbufferSurface(display as Ptr, config as Ptr, list(attributes)) as usize }
    }

    /// A fence behind all work of the current context; 0 if the driver refuses.
    pub(crate) fn new_fence(&self, display: usize) -> usize {
        // SAFETY: no attributes.
        unsafe { real::eglCreateSyncKHR(display as Ptr, SYNC_FENCE, ptr::null_mut()) as usize }
    }

    /// Submits what is pending and waits for a fence, so long at most; false if the driver does not
    /// wait, or not long enough. The fence is gone then.
    pub(crate) fn wait_fence(&self, display: usize, fence: usize, most_ns: u64) -> bool {
        let passed = self.wait_sync(display, fence, FLUSH_COMMANDS, most_ns) == SATISFIED;
        self.destroy_sync(display, fence);
        passed
    }
}
