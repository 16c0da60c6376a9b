//! Contexts, surfaces, and what is current where.

use crate::entry::{Ptr, real};
use crate::group::End;
use crate::monitor::current;
use crate::{clock, gl, guard, measure, quiet};

super::offered!(
    eglCreateContext eglDestroyContext eglMakeCurrent eglReleaseThread eglTerminate
    eglCreateWindowSurface eglCreatePlatformWindowSurface eglCreatePlatformWindowSurfaceEXT
    eglCreatePbufferSurface eglCreatePixmapSurface eglCreatePlatformPixmapSurface eglCreatePlatformPixmapSurfaceEXT
    eglDestroySurface eglSwapBuffers eglSwapBuffersWithDamageKHR eglSwapBuffersWithDamageEXT
);

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglCreateContext(display: Ptr, config: Ptr, share: Ptr, attributes: Ptr) -> Ptr {
    // SAFETY: the program's own call.
    let context = unsafe { real::eglCreateContext(display, config, share, attributes) };
    if !context.is_null() {
        guard::shielded(|| {
            // SAFETY: may be called at any time.
            let api = quiet::egl(|| unsafe { real::eglQueryAPI() });
            if api == gl::EGL_OPENGL_ES_API {
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
    guard::shielded(measure::drain);
    // SAFETY: the program's own call.
    let done = unsafe { real::eglTerminate(display) };
    guard::shielded(|| current::terminated(display as usize));
    done
}

/// Notes a new surface.
fn surface(display: Ptr, config: Ptr, surface: Ptr) -> Ptr {
    if !surface.is_null() {
        guard::shielded(|| {
            let mut samples = 0_i32;
            quiet::egl(|| {
                // SAFETY: EGL has just made a surface of these; there is room for one number.
                unsafe {
                    real::eglGetConfigAttrib(display, config, gl::EGL_SAMPLES, (&raw mut samples).cast())
                }
            });
            let samples = u32::try_from(samples).unwrap_or(0);
            current::surface_created(display as usize, surface as usize, samples);
        });
    }
    surface
}

macro_rules! surfaces {
    ($( $name:ident ( $display:ident : Ptr, $config:ident : Ptr $(, $arg:ident : $ty:ty)* ); )*) => { $(
        #[expect(non_snake_case, reason = "names of the registry")]
        unsafe extern "C" fn $name($display: Ptr, $config: Ptr $(, $arg: $ty)*) -> Ptr {
            // SAFETY: the program's own call.
            surface($display, $config, unsafe { real::$name($display, $config $(, $arg)*) })
        }
    )* };
}

surfaces! {
    eglCreateWindowSurface(display: Ptr, config: Ptr, window: Ptr, attributes: Ptr);
    eglCreatePlatformWindowSurface(display: Ptr, config: Ptr, window: Ptr, attributes: Ptr);
    eglCreatePlatformWindowSurfaceEXT(display: Ptr, config: Ptr, window: Ptr, attributes: Ptr);
    eglCreatePbufferSurface(display: Ptr, config: Ptr, attributes: Ptr);
    eglCreatePixmapSurface(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
    eglCreatePlatformPixmapSurface(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
    eglCreatePlatformPixmapSurfaceEXT(display: Ptr, config: Ptr, pixmap: Ptr, attributes: Ptr);
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglDestroySurface(display: Ptr, surface: Ptr) -> u32 {
    // SAFETY: the program's own call.
    let done = unsafe { real::eglDestroySurface(display, surface) };
    if done != 0 {
        guard::shielded(|| current::surface_destroyed(display as usize, surface as usize));
    }
    done
}

/// A swap is two groups: what was pending, and the swap.
fn swap(call: impl FnOnce() -> u32) -> u32 {
    current::with(|state| {
        state.submit(End::BeforeSwap);
        state.about_to_swap();
    });
    let began_ns = clock::now_ns();
    let done = call();
    if done != 0 {
        current::with(|state| state.swapped(began_ns));
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffers(display: Ptr, surface: Ptr) -> u32 {
    // SAFETY: the program's own call.
    swap(|| unsafe { real::eglSwapBuffers(display, surface) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersWithDamageKHR(display: Ptr, surface: Ptr, rects: Ptr, count: i32) -> u32 {
    // SAFETY: the program's own call.
    swap(|| unsafe { real::eglSwapBuffersWithDamageKHR(display, surface, rects, count) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn eglSwapBuffersWithDamageEXT(display: Ptr, surface: Ptr, rects: Ptr, count: i32) -> u32 {
    // SAFETY: the program's own call.
    swap(|| unsafe { real::eglSwapBuffersWithDamageEXT(display, surface, rects, count) })
}
