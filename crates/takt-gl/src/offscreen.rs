//! Windows without a screen: window surfaces become pbuffers.
//!
//! With `--offscreen` the driver gets a display that needs no window system, whatever display the
//! program asked for. Its windows stay what they are; only their surfaces are pbuffers of the same
//! size. Programs keep the handle of the first pbuffer; when the window has another size after a
//! swap, a pbuffer of that size takes its place.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::entry::{Ptr, real};
use crate::monitor::current;
use crate::settings::settings;
use crate::{gl, quiet};

const PLATFORM_SURFACELESS: u32 = 0x31DD;
const PLATFORM_DEVICE: u32 = 0x313F;
const PLATFORM_X11: u32 = 0x31D5;
const PLATFORM_WAYLAND: u32 = 0x31D8;
const WINDOW_BIT: i32 = 4;
const PBUFFER_BIT: i32 = 1;

/// Size of windows of which nothing is known.
const UNKNOWN_SIZE: [i32; 2] = [800, 600];

/// Asks a driver for a display.
pub(crate) type GetPlatformDisplay = unsafe extern "C" fn(u32, Ptr, *const isize) -> Ptr;

/// What stands for what.
#[derive(Debug)]
struct Stands {
    /// Displays that programs asked for: ours, platform, and theirs.
    displays: Vec<(usize, u32, usize)>,
    windows: Vec<Window>,
}

/// A window surface.
#[derive(Clone, Copy, Debug)]
struct Window {
    display: usize,
    config: usize,
    /// What the program knows.
    handle: usize,
    /// What there is.
    pbuffer: usize,
    native: usize,
    size: [i32; 2],
}

static STANDS: Mutex<Stands> = Mutex::new(Stands { displays: Vec::new(), windows: Vec::new() });

fn stands() -> MutexGuard<'static, Stands> {
    STANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether windows are to be done without.
pub(crate) fn is_wanted() -> bool {
    settings().offscreen.is_some()
}

/// A display that needs no window system, in place of the one asked for: that of the first device,
/// because every driver has pbuffers there, else the surfaceless one.
pub(crate) fn display(get: GetPlatformDisplay, platform: u32, native: Ptr) -> Ptr {
    let mut device: Ptr = std::ptr::null_mut();
    let mut count = 0_i32;
    // SAFETY: there is room for one device and for the count.
    unsafe { real::eglQueryDevicesEXT(1, (&raw mut device).cast(), (&raw mut count).cast()) };
    let mut display = std::ptr::null_mut();
    if count > 0 {
        // SAFETY: a device of this driver.
        display = unsafe { get(PLATFORM_DEVICE, device, std::ptr::null()) };
    }
    if display.is_null() {
        // SAFETY: this platform has no native display.
        display = unsafe { get(PLATFORM_SURFACELESS, std::ptr::null_mut(), std::ptr::null()) };
    }
    if !display.is_null() {
        let mut stands = stands();
        stands.displays.retain(|(known, ..)| *known != display as usize);
        stands.displays.push((display as usize, platform, native as usize));
    }
    display
}

/// The attributes of `eglChooseConfig`, with pbuffers in place of windows.
pub(crate) fn attributes(asked: &[i32]) -> Vec<i32> {
    const SURFACE_TYPE: i32 = 0x3033;
    let mut attributes: Vec<i32> = Vec::with_capacity(asked.len() + 3);
    let mut named = false;
    for pair in asked.chunks_exact(2) {
        let [name, value] = [pair[0], pair[1]];
        let value = if name == SURFACE_TYPE { value & !WINDOW_BIT | PBUFFER_BIT } else { value };
        named |= name == SURFACE_TYPE;
        attributes.extend([name, value]);
    }
    if !named {
        // Not to ask means to ask for windows.
        attributes.extend([SURFACE_TYPE, PBUFFER_BIT]);
    }
    attributes.push(gl::EGL_NONE);
    attributes
}

/// What `eglGetConfigAttrib` answers, given what the driver said.
pub(crate) fn config_attribute(display: Ptr, what: i32, said: i32) -> i32 {
    const SURFACE_TYPE: i32 = 0x3033;
    const NATIVE_VISUAL_ID: i32 = 0x302E;
    match what {
        SURFACE_TYPE if said & PBUFFER_BIT != 0 => said | WINDOW_BIT,
        NATIVE_VISUAL_ID if said == 0 => x11_display(display).and_then(x11_visual).unwrap_or(0),
        _ => said,
    }
}

/// A pbuffer in place of a window.
pub(crate) fn create(display: Ptr, config: Ptr, native: usize) -> Ptr {
    let size = window_size(display, native).unwrap_or(UNKNOWN_SIZE);
    let pbuffer = pbuffer(display, config, size);
    if !pbuffer.is_null() {
        let handle = pbuffer as usize;
        let (display, config) = (display as usize, config as usize);
        stands().windows.push(Window { display, config, handle, pbuffer: handle, native, size });
    }
    pbuffer
}

fn pbuffer(display: Ptr, config: Ptr, [width, height]: [i32; 2]) -> Ptr {
    let mut attributes = [gl::EGL_WIDTH, width, gl::EGL_HEIGHT, height, gl::EGL_NONE];
    // SAFETY: EGL checks display and configuration; the list has its end.
    unsafe { real::eglCreatePbufferSurface(display, config, attributes.as_mut_ptr().cast()) }
}

/// The window behind what `eglCreatePlatformWindowSurface` gets: X11 hands over a pointer to it.
pub(crate) fn native_window(window: Ptr) -> usize {
    let is_x11 = stands().displays.iter().any(|(_, platform, _)| *platform == PLATFORM_X11);
    if is_x11 && !window.is_null() {
        // SAFETY: where EGL_PLATFORM_X11 is used, this is a pointer to a window.
        return unsafe { window.cast::<usize>().read_unaligned() };
    }
    window as usize
}

/// What there is in place of a surface that the program knows.
pub(crate) fn actual(surface: Ptr) -> Ptr {
    let found = stands().windows.iter().find(|window| window.handle == surface as usize).copied();
    found.map_or(surface, |window| window.pbuffer as Ptr)
}

/// Whether a surface stands for a window.
pub(crate) fn is_window(surface: Ptr) -> bool {
    stands().windows.iter().any(|window| window.handle == surface as usize)
}

/// The program is done with a surface; what has to be destroyed comes back.
pub(crate) fn destroyed(surface: Ptr) -> Ptr {
    let actual = actual(surface);
    stands().windows.retain(|window| window.handle != surface as usize);
    actual
}

/// After a swap of the current surface: follows the size of its window.
pub(crate) fn follow(display: Ptr, surface: Ptr) {
    let found = stands().windows.iter().find(|window| window.handle == surface as usize).copied();
    let Some(window) = found else {
        return;
    };
    let Some(size) = window_size(display, window.native).filter(|size| *size != window.size) else {
        return;
    };
    let larger = quiet::egl(|| pbuffer(display, window.config as Ptr, size));
    if larger.is_null() {
        return;
    }
    // SAFETY: may be called at any time.
    let context = unsafe { real::eglGetCurrentContext() };
    // SAFETY: the context is current here, and the surface is new.
    if quiet::egl(|| unsafe { real::eglMakeCurrent(display, larger, larger, context) }) == 0 {
        return;
    }
    if let Some(window) = stands().windows.iter_mut().find(|window| window.handle == surface as usize) {
        (window.pbuffer, window.size) = (larger as usize, size);
    }
    // SAFETY: nobody else knows the old pbuffer; the program only knows its number.
    quiet::egl(|| unsafe { real::eglDestroySurface(display, window.pbuffer as Ptr) });
    current::surface_created(window.display, larger as usize, 0);
    current::bound(window.display, larger as usize, context as usize);
}

/// The size that was asked for, or else the window's own.
fn window_size(display: Ptr, native: usize) -> Option<[i32; 2]> {
    if let Some(Some([width, height])) = settings().offscreen {
        return Some([width.cast_signed(), height.cast_signed()]);
    }
    let platform = stands()
        .displays
        .iter()
        .find(|(known, ..)| *known == display as usize)
        .map(|(_, platform, _)| *platform);
    match platform? {
        PLATFORM_X11 => x11_size(x11_display(display)?, native),
        PLATFORM_WAYLAND => wayland_size(native),
        _ => None,
    }
}

/// A function that the program has loaded.
fn loaded(name: &CStr) -> Option<Ptr> {
    // SAFETY: a string; nothing is called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Xlib's display behind ours, if it is one of X11.
fn x11_display(display: Ptr) -> Option<Ptr> {
    let stands = stands();
    let (.., native) = stands
        .displays
        .iter()
        .find(|(known, platform, _)| *known == display as usize && *platform == PLATFORM_X11)?;
    (*native != 0).then_some(*native as Ptr)
}

fn x11_visual(display: Ptr) -> Option<i32> {
    let (screen, visual, id) =
        (loaded(c"XDefaultScreen")?, loaded(c"XDefaultVisual")?, loaded(c"XVisualIDFromVisual")?);
    // SAFETY: Xlib defines the signature of this name.
    let screen: unsafe extern "C" fn(Ptr) -> i32 = unsafe { std::mem::transmute(screen) };
    // SAFETY: as above.
    let visual: unsafe extern "C" fn(Ptr, i32) -> Ptr = unsafe { std::mem::transmute(visual) };
    // SAFETY: as above.
    let id: unsafe extern "C" fn(Ptr) -> libc::c_ulong = unsafe { std::mem::transmute(id) };
    // SAFETY: the display that the program handed to EGL.
    let screen = unsafe { screen(display) };
    // SAFETY: as above, and its own screen.
    let visual = unsafe { visual(display, screen) };
    // SAFETY: a visual of that display.
    i32::try_from(unsafe { id(visual) }).ok()
}

fn x11_size(display: Ptr, window: usize) -> Option<[i32; 2]> {
    type Geometry = unsafe extern "C" fn(
        Ptr,
        usize,
        *mut libc::c_ulong,
        *mut i32,
        *mut i32,
        *mut u32,
        *mut u32,
        *mut u32,
        *mut u32,
    ) -> i32;
    // SAFETY: Xlib defines the signature of this name.
    let geometry: Geometry = unsafe { std::mem::transmute(loaded(c"XGetGeometry")?) };
    let (mut root, mut x, mut y, mut width, mut height, mut border, mut depth) = (0, 0, 0, 0, 0, 0, 0);
    let (root, x, y, border, depth) =
        (&raw mut root, &raw mut x, &raw mut y, &raw mut border, &raw mut depth);
    // SAFETY: display and window are those that the program handed to EGL; there is room for all.
    let done =
        unsafe { geometry(display, window, root, x, y, &raw mut width, &raw mut height, border, depth) };
    let side = |side: u32| i32::try_from(side).ok().filter(|side| *side > 0);
    (done != 0).then_some(())?;
    Some([side(width)?, side(height)?])
}

/// The beginning of what `wl_egl_window_create` makes: its version, then width and height.
fn wayland_size(window: usize) -> Option<[i32; 2]> {
    #[repr(C)]
    struct WaylandWindow {
        version: isize,
        size: [i32; 2],
    }
    if window == 0 {
        return None;
    }
    // SAFETY: the window that the program handed to EGL; drivers read these fields as well.
    let window = unsafe { (window as *const WaylandWindow).read_unaligned() };
    // Before version 3 there was no version, and a width stood here.
    (window.version == 3 && window.size.iter().all(|side| *side > 0)).then_some(window.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_become_pbuffers_in_what_is_asked_for() {
        assert_eq!(attributes(&[0x3033, 4, 0x3024, 8]), [0x3033, 1, 0x3024, 8, gl::EGL_NONE]);
        assert_eq!(attributes(&[]), [0x3033, 1, gl::EGL_NONE]);
    }
}
