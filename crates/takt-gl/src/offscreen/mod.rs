//! Windows without a screen: window surfaces become pbuffers.
//!
//! With `--offscreen` the driver gets a display that needs no window system, no matter which display the
//! program asked for. Its windows stay what they are; only their surfaces are pbuffers of the same
//! size. Programs keep the handle of the first pbuffer; when the window has another size after a
//! swap, a pbuffer of that size replaces it.

mod wayland;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::current;
use crate::entry::{Id, Ptr, real};
use crate::settings::settings;
use crate::shadow::client_memory;
use crate::{egl, guard, quiet, x11};
use wayland::{Compositor, Picture};

const PLATFORM_X11: u32 = egl::PLATFORM_X11_KHR.cast_unsigned();
const PLATFORM_XCB: u32 = egl::PLATFORM_XCB_EXT.cast_unsigned();
const PLATFORM_WAYLAND: u32 = egl::PLATFORM_WAYLAND_KHR.cast_unsigned();

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
    /// Compositors that are shown pictures, each by one connection of the program.
    compositors: Vec<Compositor>,
    /// What they show in windows, by the program's handle.
    pictures: Vec<(usize, Picture)>,
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
    /// The window system that it belongs to, if that is known.
    platform: Option<u32>,
    size: [i32; 2],
}

/// How a program names a window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    /// By itself: `eglCreateWindowSurface`.
    Itself(Ptr),
    /// As its platform wants it: X11 by a pointer to it, Wayland by itself.
    ByPlatform(Ptr),
}

impl Stands {
    /// Which window system a window belongs to. Displays of several may be one in truth; what a
    /// Wayland window points to tells it from those of X11 then.
    fn platform(&self, display: usize, window: usize) -> Option<u32> {
        let known = |platform: u32| {
            self.displays.iter().any(|(ours, of, _)| (*ours, *of) == (display, platform)).then_some(platform)
        };
        let x11 = known(PLATFORM_X11).or_else(|| known(PLATFORM_XCB));
        match (x11, known(PLATFORM_WAYLAND)) {
            (Some(_), Some(wayland)) if wayland_size(window).is_some() => Some(wayland),
            (Some(x11), _) => Some(x11),
            (None, wayland) => wayland,
        }
    }
}

impl Stands {
    /// Shows a picture of that size in a window, given by our handle and its `wl_surface`.
    fn show(&mut self, native: usize, (handle, surface): (usize, usize), size: [i32; 2]) {
        if !self.compositors.iter().any(|one| one.display() == native) {
            self.compositors.extend(Compositor::of(native));
        }
        let Some(at) = self.compositors.iter().position(|one| one.display() == native) else {
            return;
        };
        let picture = self.take_picture(handle);
        let picture = match picture {
            Some(picture) if picture.size() == size => Some(picture),
            other => {
                let new = self.compositors[at].picture(size);
                other.into_iter().for_each(Picture::leave);
                new
            }
        };
        if let Some(mut picture) = picture {
            self.compositors[at].show(&mut picture, surface);
            self.pictures.push((handle, picture));
        }
    }

    fn take_picture(&mut self, handle: usize) -> Option<Picture> {
        let at = self.pictures.iter().position(|(of, _)| *of == handle)?;
        Some(self.pictures.swap_remove(at).1)
    }
}

static STANDS: Mutex<Stands> = Mutex::new(Stands {
    displays: Vec::new(),
    windows: Vec::new(),
    compositors: Vec::new(),
    pictures: Vec::new(),
});

fn stands() -> MutexGuard<'static, Stands> {
    STANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether windows are to be done without.
pub(crate) fn is_wanted() -> bool {
    settings().offscreen.is_some()
}

/// A display that needs no window system, instead of the one asked for: that of the first device,
/// because every driver has pbuffers there, else the surfaceless one.
pub(crate) fn display(get: GetPlatformDisplay, platform: u32, native: Ptr) -> Ptr {
    let mut device: Ptr = std::ptr::null_mut();
    let mut count = 0_i32;
    // SAFETY: there is room for one device and for the count.
    unsafe { real::eglQueryDevicesEXT(1, (&raw mut device).cast(), (&raw mut count).cast()) };
    let mut display = std::ptr::null_mut();
    if count > 0 {
        // SAFETY: a device of this driver.
        display = unsafe { get(egl::PLATFORM_DEVICE_EXT.cast_unsigned(), device, std::ptr::null()) };
    }
    if display.is_null() {
        // SAFETY: this platform has no native display.
        display = unsafe {
            get(egl::PLATFORM_SURFACELESS_MESA.cast_unsigned(), std::ptr::null_mut(), std::ptr::null())
        };
    }
    if !display.is_null() {
        let mut stands = stands();
        stands.displays.retain(|(ours, of, _)| (*ours, *of) != (display as usize, platform));
        stands.displays.push((display as usize, platform, native as usize));
    }
    display
}

/// The attributes of `eglChooseConfig`, with pbuffers instead of windows.
pub(crate) fn attributes(asked: &[i32]) -> Vec<i32> {
    let mut attributes: Vec<i32> = Vec::with_capacity(asked.len() + 3);
    let mut named = false;
    for pair in asked.chunks_exact(2) {
        let [name, value] = [pair[0], pair[1]];
        let value =
            if name == egl::SURFACE_TYPE { value & !egl::WINDOW_BIT | egl::PBUFFER_BIT } else { value };
        named |= name == egl::SURFACE_TYPE;
        attributes.extend([name, value]);
    }
    if !named {
        // Not to ask means to ask for windows.
        attributes.extend([egl::SURFACE_TYPE, egl::PBUFFER_BIT]);
    }
    attributes.push(egl::NONE);
    attributes
}

/// What `eglGetConfigAttrib` answers, given what the driver said.
pub(crate) fn config_attribute(display: Ptr, what: i32, said: i32) -> i32 {
    match what {
        egl::SURFACE_TYPE if said & egl::PBUFFER_BIT != 0 => said | egl::WINDOW_BIT,
        egl::NATIVE_VISUAL_ID if said == 0 => x11_display(display).and_then(x11::visual).unwrap_or(0),
        _ => said,
    }
}

/// A pbuffer instead of a window.
pub(crate) fn create(display: Ptr, config: Ptr, window: Given) -> Ptr {
    let (Given::Itself(handle) | Given::ByPlatform(handle)) = window;
    let platform = stands().platform(display as usize, handle as usize);
    let native = match (window, platform) {
        (Given::ByPlatform(pointer), Some(PLATFORM_X11)) => word_at(pointer as usize).unwrap_or(0),
        // A number of 32 bits.
        (Given::ByPlatform(pointer), Some(PLATFORM_XCB)) => number_at(pointer as usize).unwrap_or(0),
        _ => handle as usize,
    };
    let size = window_size(display, platform, native).unwrap_or(UNKNOWN_SIZE);
    let pbuffer = pbuffer(display, config, size);
    if !pbuffer.is_null() {
        let handle = pbuffer as usize;
        let (display, config) = (display as usize, config as usize);
        let window = Window { display, config, handle, pbuffer: handle, native, platform, size };
        stands().windows.push(window);
    }
    pbuffer
}

fn pbuffer(display: Ptr, config: Ptr, [width, height]: [i32; 2]) -> Ptr {
    let mut attributes = [egl::WIDTH, width, egl::HEIGHT, height, egl::NONE];
    // SAFETY: EGL checks display and configuration; the list has its end.
    unsafe { real::eglCreatePbufferSurface(display, config, attributes.as_mut_ptr().cast()) }
}

/// The surface that stands for one that the program knows.
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
    let mut stands = stands();
    stands.windows.retain(|window| window.handle != surface as usize);
    stands.take_picture(surface as usize).into_iter().for_each(Picture::leave);
    actual
}

/// The program takes a display apart, and may close its connection to the compositor next.
pub(crate) fn terminated(display: Ptr) {
    let mut stands = stands();
    let of_it = |native: usize, stands: &Stands| {
        let is_it = |(ours, of, theirs): &(usize, u32, usize)| {
            (*ours, *of, *theirs) == (display as usize, PLATFORM_WAYLAND, native)
        };
        stands.displays.iter().any(is_it)
    };
    let compositors = std::mem::take(&mut stands.compositors);
    let (gone, kept): (Vec<_>, Vec<_>) =
        compositors.into_iter().partition(|one| of_it(one.display(), &stands));
    stands.compositors = kept;
    if !gone.is_empty() {
        // Their windows go with the connection.
        stands.pictures.clear();
    }
}

/// After a frame was drawn: its window has contents, so that the compositor goes on asking for more.
pub(crate) fn show(display: Ptr, surface: Ptr) {
    let mut stands = stands();
    let found = stands.windows.iter().find(|window| window.handle == surface as usize).copied();
    let Some(window) = found.filter(|window| window.platform == Some(PLATFORM_WAYLAND)) else {
        return;
    };
    let native =
        stands.displays.iter().find(|(ours, of, _)| (*ours, *of) == (display as usize, PLATFORM_WAYLAND));
    let Some((.., native)) = native.copied() else {
        return;
    };
    let size = wayland_size(window.native).unwrap_or(window.size);
    if let Some(surface) = wayland_surface(window.native) {
        stands.show(native, (window.handle, surface), size);
    }
}

/// After the current surface was shown: follows the size of its window.
pub(crate) fn follow(display: Ptr, surface: Ptr) {
    let found = stands().windows.iter().find(|window| window.handle == surface as usize).copied();
    let Some(window) = found else {
        return;
    };
    let size = window_size(display, window.platform, window.native);
    let Some(size) = size.filter(|size| *size != window.size) else {
        return;
    };
    let (old, config) = (window.pbuffer as Ptr, window.config as Ptr);
    let new = quiet::egl(|| pbuffer(display, config, size));
    if new.is_null() {
        return;
    }
    // SAFETY: may be called at any time.
    let context = unsafe { real::eglGetCurrentContext() };
    let read = read_surface().filter(|read| *read != old).unwrap_or(new);
    // SAFETY: the context is current here, and the surfaces are new or current.
    if quiet::egl(|| unsafe { real::eglMakeCurrent(display, new, read, context) }) == 0 {
        // SAFETY: only this function knows the new pbuffer.
        quiet::egl(|| unsafe { real::eglDestroySurface(display, new) });
        return;
    }
    if let Some(window) = stands().windows.iter_mut().find(|window| window.handle == surface as usize) {
        (window.pbuffer, window.size) = (new as usize, size);
    }
    // SAFETY: only this module knows the old pbuffer; the program only knows its number.
    quiet::egl(|| unsafe { real::eglDestroySurface(display, old) });
    guard::shielded(|| {
        current::surface_replaced(window.display, window.pbuffer, new as usize);
        current::bound(window.display, new as usize, context as usize);
    });
}

/// What pixels are read from in this thread.
fn read_surface() -> Option<Ptr> {
    // SAFETY: may be called at any time.
    let surface =
        Id::eglGetCurrentSurface.is_there().then(|| unsafe { real::eglGetCurrentSurface(egl::READ) });
    surface.filter(|surface| !surface.is_null())
}

/// The size that was asked for, or else the window's own.
fn window_size(display: Ptr, platform: Option<u32>, native: usize) -> Option<[i32; 2]> {
    if let Some(Some([width, height])) = settings().offscreen {
        return Some([width.cast_signed(), height.cast_signed()]);
    }
    match platform? {
        PLATFORM_X11 => sides(x11::size(x11_display(display)?, native)?),
        PLATFORM_XCB => sides(x11::size_by_xcb(native_display(display, PLATFORM_XCB)?, native)?),
        PLATFORM_WAYLAND => wayland_size(native),
        _ => None,
    }
}

/// Xlib's display behind ours, if it is one of X11.
fn x11_display(display: Ptr) -> Option<Ptr> {
    native_display(display, PLATFORM_X11)
}

/// What the program handed to EGL to get a display of that platform.
fn native_display(display: Ptr, platform: u32) -> Option<Ptr> {
    let stands = stands();
    let (.., native) =
        stands.displays.iter().find(|(known, of, _)| *known == display as usize && *of == platform)?;
    (*native != 0).then_some(*native as Ptr)
}

fn sides(size: [u32; 2]) -> Option<[i32; 2]> {
    let side = |side: u32| i32::try_from(side).ok().filter(|side| *side > 0);
    Some([side(size[0])?, side(size[1])?])
}

/// What lies there in the program's memory, if anything does.
fn word_at(address: usize) -> Option<usize> {
    let mut bytes = Vec::new();
    client_memory::read(address, size_of::<usize>(), &mut bytes)
        .then(|| bytes.try_into().ok().map(usize::from_ne_bytes))
        .flatten()
}

/// The same for a number of 32 bits.
fn number_at(address: usize) -> Option<usize> {
    let mut bytes = Vec::new();
    let there = client_memory::read(address, size_of::<u32>(), &mut bytes);
    let number = bytes.try_into().ok().filter(|_| there).map(u32::from_ne_bytes)?;
    usize::try_from(number).ok()
}

/// The `wl_surface` of what `wl_egl_window_create` makes: behind its version, six numbers and three pointers.
fn wayland_surface(window: usize) -> Option<usize> {
    (word_at(window)? == 3).then_some(())?;
    let pointers = window + size_of::<usize>() + 6 * size_of::<i32>();
    word_at(pointers + 3 * size_of::<usize>()).filter(|surface| *surface != 0)
}

/// What `wl_egl_window_create` makes begins with its version, then come width and height.
fn wayland_size(window: usize) -> Option<[i32; 2]> {
    // Before version 3 there was no version, and a width stood here.
    let version = word_at(window)?;
    let side = |at: usize| {
        let mut bytes = Vec::new();
        let there = client_memory::read(window + size_of::<usize>() + at * size_of::<i32>(), 4, &mut bytes);
        let side = bytes.try_into().ok().filter(|_| there).map(i32::from_ne_bytes);
        side.filter(|side| *side > 0)
    };
    (version == 3).then_some(())?;
    Some([side(0)?, side(1)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `wl_egl_window_create` makes them.
    #[repr(C)]
    struct WaylandWindow {
        version: usize,
        size: [i32; 2],
    }

    #[test]
    fn windows_are_told_apart_where_displays_are_one() {
        let window = WaylandWindow { version: 3, size: [300, 200] };
        let older = WaylandWindow { version: 640, size: [480, 0] };
        let [wayland, older] = [&raw const window as usize, &raw const older as usize];
        let x11 = 0x0040_0003_usize;
        let pointer = &raw const x11 as usize;
        let stands = |platforms: &[u32]| Stands {
            displays: platforms.iter().map(|platform| (1, *platform, 9)).collect(),
            windows: Vec::new(),
            compositors: Vec::new(),
            pictures: Vec::new(),
        };
        for both in [[PLATFORM_X11, PLATFORM_WAYLAND], [PLATFORM_WAYLAND, PLATFORM_X11]] {
            let stands = stands(&both);
            assert_eq!(stands.platform(1, wayland), Some(PLATFORM_WAYLAND));
            for window in [x11, pointer, older, 0, usize::MAX] {
                assert_eq!(stands.platform(1, window), Some(PLATFORM_X11), "{window:x}");
            }
            assert_eq!(stands.platform(2, wayland), None, "another display");
        }
        assert_eq!(stands(&[PLATFORM_WAYLAND]).platform(1, older), Some(PLATFORM_WAYLAND));
        assert_eq!(stands(&[PLATFORM_X11]).platform(1, wayland), Some(PLATFORM_X11));
    }

    #[test]
    fn sizes_are_read_where_there_are_any() {
        let window = WaylandWindow { version: 3, size: [300, 200] };
        assert_eq!(wayland_size(&raw const window as usize), Some([300, 200]));
        for nowhere in [0, 16, 0x0040_0003, usize::MAX - 8] {
            assert_eq!(wayland_size(nowhere), None, "{nowhere:x}");
        }
    }

    #[test]
    fn windows_become_pbuffers_in_what_is_asked_for() {
        assert_eq!(
            attributes(&[egl::SURFACE_TYPE, egl::WINDOW_BIT, egl::RED_SIZE, 8]),
            [egl::SURFACE_TYPE, egl::PBUFFER_BIT, egl::RED_SIZE, 8, egl::NONE]
        );
        assert_eq!(attributes(&[]), [egl::SURFACE_TYPE, egl::PBUFFER_BIT, egl::NONE]);
    }
}
