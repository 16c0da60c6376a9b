//! Contexts, surfaces, and what is current where.

use crate::client::context::State;
use crate::client::group::End;
use crate::client::{Swapping, current};
use crate::entry::{Ptr, real};
use crate::hooks::given;
use crate::offscreen::{self, Given};
use crate::shadow::surface::{SurfaceKind, samples};
use crate::{clock, egl, guard, measure, quiet};

super::offered!(
    eglCreateContext eglDestroyContext eglMakeCurrent eglReleaseThread eglTerminate
    eglCreateWindowSurface eglCreatePlatformWindowSurface eglCreatePlatformWindowSurfaceEXT
    eglCreatePbufferSurface eglCreatePixmapSurface eglCreatePlatformPixmapSurface eglCreatePlatformPixmapSurfaceEXT
    eglDestroySurface eglChooseConfig eglGetConfigAttrib eglQuerySurface eglSurfaceAttrib
    eglSwapInterval eglSwapBuffers eglSwapBuffersWithDamageKHR eglSwapBuffersWithDamageEXT
    eglSwapBuffersRegionNOK eglSwapBuffersRegion2NOK eglPostSubBufferNV eglCopyBuffers
);

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglCreateContext(display: Ptr, config: Ptr, share: Ptr, attributes: Ptr) -> Ptr {
    // SAFETY: the program's own call.
    let context = unsafe { real::eglCreateContext(display, config, share, attributes) };
    if !context.is_null() {
        guard::shielded(|| {
            // SAFETY: may be called at any time.
            let api = quiet::egl(|| unsafe { real::eglQueryAPI() });
            if [egl::OPENGL_ES_API, egl::OPENGL_API].contains(&api.cast_signed()) {
                current::created(display as usize, context as usize, share as usize);
            }
        });
    }
    context
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglDestroyContext(display: Ptr, context: Ptr) -> u32 {
    // SAFETY: the program's own call.
    let done = unsafe { real::eglDestroyContext(display, context) };
    if done != 0 {
        guard::shielded(|| current::destroyed(display as usize, context as usize));
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglMakeCurrent(display: Ptr, draw: Ptr, read: Ptr, context: Ptr) -> u32 {
    current::with(|state| state.submit(End::Unbind));
    let (draw, read) = (actual(draw), actual(read));
    // SAFETY: the program's own call.
    let done = unsafe { real::eglMakeCurrent(display, draw, read, context) };
    if done != 0 {
        guard::shielded(|| current::bound(display as usize, draw as usize, context as usize));
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglReleaseThread() -> u32 {
    current::with(|state| state.submit(End::Unbind));
    // SAFETY: the program's own call.
    let done = unsafe { real::eglReleaseThread() };
    guard::shielded(|| current::bound(0, 0, 0));
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglTerminate(display: Ptr) -> u32 {
    // Fences are the display's: they must be passed before it goes.
    current::with(|state| state.submit(End::Unbind));
    guard::shielded(|| measure::drain(Some(display as usize)));
    if offscreen::is_wanted() {
        guard::attempted(|| offscreen::terminated(display));
    }
    // SAFETY: the program's own call.
    let done = unsafe { real::eglTerminate(display) };
    guard::shielded(|| current::terminated(display as usize));
    done
}

/// Notes a new surface, and what it stands for.
fn surface(display: Ptr, config: Ptr, surface: Ptr, kind: SurfaceKind) -> Ptr {
    if !surface.is_null() {
        guard::shielded(|| {
            let samples = samples(display, config);
            current::surface_created(display as usize, surface as usize, samples, kind);
        });
    }
    surface
}

macro_rules! surfaces {
    ($( $name:ident ( $display:ident : Ptr, $config:ident : Ptr $(, $arg:ident : $ty:ty)* ); )*) => { $(
        #[expect(non_snake_case, reason = "names of the registry")]
        unsafe extern "C" fn $name($display: Ptr, $config: Ptr $(, $arg: $ty)*) -> Ptr {
            // SAFETY: the program's own call.
            surface($display, $config, unsafe { real::$name($display, $config $(, $arg)*) }, SurfaceKind::Buffer)
        }
    )* };
}

/// The surface that stands for one that the program knows.
fn actual(surface: Ptr) -> Ptr {
    if offscreen::is_wanted() {
        return guard::attempted(|| offscreen::actual(surface)).unwrap_or(surface);
    }
    surface
}

macro_rules! windows {
    ($( $name:ident, $native:expr; )*) => { $(
        #[expect(non_snake_case, reason = "names of the registry")]
        unsafe extern "C" fn $name(display: Ptr, config: Ptr, window: Ptr, attributes: Ptr) -> Ptr {
            if offscreen::is_wanted() {
                let created = guard::attempted(|| offscreen::create(display, config, $native(window)));
                let created = created.unwrap_or(std::ptr::null_mut());
                return surface(display, config, created, SurfaceKind::UnseenWindow);
            }
            // SAFETY: the program's own call.
            let created = unsafe { real::$name(display, config, window, attributes) };
            surface(display, config, created, SurfaceKind::Window)
        }
    )* };
}

windows! {
    eglCreateWindowSurface, Given::Itself;
    eglCreatePlatformWindowSurface, Given::ByPlatform;
    eglCreatePlatformWindowSurfaceEXT, Given::ByPlatform;
}

surfaces! {
    eglCreatePbufferSurface(display: Ptr, config: Ptr, attributes: Ptr);
    eglCreatePixmapSurface(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
    eglCreatePlatformPixmapSurface(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
    eglCreatePlatformPixmapSurfaceEXT(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglDestroySurface(display: Ptr, surface: Ptr) -> u32 {
    let surface = match offscreen::is_wanted() {
        true => guard::attempted(|| offscreen::destroyed(surface)).unwrap_or(surface),
        false => surface,
    };
    // SAFETY: the program's own call.
    let done = unsafe { real::eglDestroySurface(display, surface) };
    if done != 0 {
        guard::shielded(|| current::surface_destroyed(display as usize, surface as usize));
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglChooseConfig(display: Ptr, asked: Ptr, configs: Ptr, room: i32, count: Ptr) -> u32 {
    if !offscreen::is_wanted() {
        // SAFETY: the program's own call.
        return unsafe { real::eglChooseConfig(display, asked, configs, room, count) };
    }
    let changed = guard::attempted(|| offscreen::attributes(given::attributes(asked)));
    let Some(mut attributes) = changed else {
        // SAFETY: the program's own call.
        return unsafe { real::eglChooseConfig(display, asked, configs, room, count) };
    };
    // SAFETY: the program's own call, but for a list of our own, which has its end.
    unsafe { real::eglChooseConfig(display, attributes.as_mut_ptr().cast(), configs, room, count) }
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglGetConfigAttrib(display: Ptr, config: Ptr, what: i32, value: Ptr) -> u32 {
    // SAFETY: the program's own call.
    let done = unsafe { real::eglGetConfigAttrib(display, config, what, value) };
    if done != 0 && offscreen::is_wanted() && !value.is_null() {
        let value = value.cast::<i32>();
        // SAFETY: the driver has just written there.
        let said = unsafe { value.read() };
        let answer = guard::attempted(|| offscreen::config_attribute(display, what, said));
        // SAFETY: as above.
        unsafe { value.write(answer.unwrap_or(said)) };
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglQuerySurface(display: Ptr, surface: Ptr, what: i32, value: Ptr) -> u32 {
    // SAFETY: the program's own call.
    unsafe { real::eglQuerySurface(display, actual(surface), what, value) }
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSurfaceAttrib(display: Ptr, surface: Ptr, what: i32, value: i32) -> u32 {
    // SAFETY: the program's own call.
    unsafe { real::eglSurfaceAttrib(display, actual(surface), what, value) }
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapInterval(display: Ptr, interval: i32) -> u32 {
    // SAFETY: the program's own call.
    let done = unsafe { real::eglSwapInterval(display, interval) };
    if done != 0 {
        current::with(|state| state.shadow.set_swap_interval(interval));
    }
    done
}

/// Shows a frame, with a grant, and has it measured.
fn swap(display: Ptr, surface: Ptr, call: impl FnOnce(Ptr) -> u32) -> u32 {
    let handle = actual(surface) as usize;
    show(display, surface, |state| state.shadow.swap_does_nothing(handle), call)
}

/// The same where `idle` says whether the call gives the GPU nothing to do.
pub(super) fn show(
    display: Ptr,
    surface: Ptr,
    idle: impl FnOnce(&State) -> bool,
    call: impl FnOnce(Ptr) -> u32,
) -> u32 {
    let none = Swapping::Apart { end: None, idle: false };
    let swapping = current::with(|state| state.before_swap(idle(state))).unwrap_or(none);
    let began_ns = clock::now_ns();
    let done = call(actual(surface));
    // If it failed, the granted group ends all the same.
    if done != 0 || !matches!(swapping, Swapping::Apart { end: None, .. }) {
        current::with(|state| state.swapped(swapping, began_ns));
    } else {
        current::with(State::not_swapped);
    }
    if done != 0 && offscreen::is_wanted() {
        guard::attempted(|| offscreen::show(display, surface));
        guard::attempted(|| offscreen::follow(display, surface));
        if guard::shielded(|| offscreen::is_window(surface)) == Some(true) {
            current::with(State::bound_backlog);
        }
    }
    let end = if let Swapping::Apart { end, .. } = swapping { end } else { None };
    let held = end.and_then(|end| guard::shielded(|| end.hold_back())).unwrap_or(false);
    current::with(|state| state.rests(held));
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffers(display: Ptr, surface: Ptr) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe { real::eglSwapBuffers(display, surface) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersWithDamageKHR(display: Ptr, surface: Ptr, rects: Ptr, count: i32) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe {
        real::eglSwapBuffersWithDamageKHR(display, surface, rects, count)
    })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersWithDamageEXT(display: Ptr, surface: Ptr, rects: Ptr, count: i32) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe {
        real::eglSwapBuffersWithDamageEXT(display, surface, rects, count)
    })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersRegionNOK(display: Ptr, surface: Ptr, count: i32, rects: Ptr) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe { real::eglSwapBuffersRegionNOK(display, surface, count, rects) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersRegion2NOK(display: Ptr, surface: Ptr, count: i32, rects: Ptr) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe {
        real::eglSwapBuffersRegion2NOK(display, surface, count, rects)
    })
}

/// A part of a frame is shown: a program that shows frames in this way uses no other.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglPostSubBufferNV(
    display: Ptr,
    surface: Ptr,
    x: i32,
    y: i32,
    width: i32,
    height: i32,
) -> u32 {
    // SAFETY: the program's own call.
    swap(display, surface, |surface| unsafe {
        real::eglPostSubBufferNV(display, surface, x, y, width, height)
    })
}

/// The same for frames that are shown by copies of them.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglCopyBuffers(display: Ptr, surface: Ptr, target: Ptr) -> u32 {
    // SAFETY: the program's own call.
    show(display, surface, |_| false, |surface| unsafe { real::eglCopyBuffers(display, surface, target) })
}
