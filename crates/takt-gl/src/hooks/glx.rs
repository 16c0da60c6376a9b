//! Contexts and drawables of GLX, and what is current where.

use crate::client::current;
use crate::client::group::End;
use crate::entry::{Ptr, real};
use crate::glx_context::{self, Birth, Visual};
use crate::hooks::{egl, given, submit};
use crate::{glx, guard};

super::offered!(
    glXCreateContext glXCreateNewContext glXCreateContextAttribsARB glXDestroyContext
    glXMakeCurrent glXMakeContextCurrent glXMakeCurrentReadSGI glXCopyContext
    glXCreatePbuffer glXDestroyPbuffer glXCreatePixmap glXDestroyPixmap glXDestroyGLXPixmap glXDestroyWindow
    glXSwapBuffers glXSwapBuffersMscOML glXCopySubBufferMESA glXWaitGL
    glXSwapIntervalEXT glXSwapIntervalMESA glXSwapIntervalSGI
);

/// Copies between contexts.
pub(super) mod copies {
    use takt_predict::predictor::Work;

    use super::Ptr;

    /// Four bytes for each texel, roughly.
    fn texels(sides: [i32; 3]) -> Option<Work> {
        let sides = sides.map(|side| u64::try_from(side).unwrap_or(0));
        Some(Work::Copy { bytes: sides.iter().fold(4, |bytes: u64, side| bytes.saturating_mul(*side)) })
    }

    fn area([x, x2]: [i32; 2], [y, y2]: [i32; 2]) -> Option<Work> {
        let [width, height] = [x.abs_diff(x2), y.abs_diff(y2)];
        Some(Work::Copy { bytes: u64::from(width).saturating_mul(height.into()).saturating_mul(4) })
    }

    fn bytes(size: isize) -> Option<Work> {
        u64::try_from(size).ok().map(|bytes| Work::Copy { bytes })
    }

    crate::hooks::noted! {
        glXBlitContextFramebufferAMD(
            _to: Ptr, _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, x: i32, y: i32, x2: i32, y2: i32, _mask: u32,
            _filter: u32
        ) copies |state| area([x, x2], [y, y2]) => |_state| ();
        glXCopyBufferSubDataNV(
            _display: Ptr, _from: Ptr, _to: Ptr, _read: u32, _write: u32, _at: isize, _put: isize, size: isize
        ) copies |state| bytes(size) => |_state| ();
        glXNamedCopyBufferSubDataNV(
            _display: Ptr, _from: Ptr, _to: Ptr, _read: u32, _write: u32, _at: isize, _put: isize, size: isize
        ) copies |state| bytes(size) => |_state| ();
        glXCopyImageSubDataNV(
            _display: Ptr, _from: Ptr, _read: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32,
            _to: Ptr, _write: u32, _to_target: u32, _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32,
            height: i32, depth: i32
        ) copies |state| texels([width, height, depth]) => |_state| ();
    }
}

/// Notes a new context. One that the X server renders for is left alone.
fn created(display: Ptr, context: Ptr, share: Ptr, birth: impl FnOnce() -> Option<Birth>) -> Ptr {
    if !context.is_null() {
        guard::shielded(|| {
            if let Some(birth) = birth().filter(|_| glx_context::is_direct(display, context)) {
                current::created(display as usize, context as usize, share as usize);
                glx_context::born(display as usize, context as usize, birth);
            }
        });
    }
    context
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCreateContext(display: Ptr, visual: Ptr, share: Ptr, direct: i32) -> Ptr {
    // SAFETY: the program's own call.
    let context = unsafe { real::glXCreateContext(display, visual, share, direct) };
    created(display, context, share, || {
        // SAFETY: the driver has just read the same.
        let visual = unsafe { visual.cast::<Visual>().as_ref() };
        visual.map(|visual| Birth::Visual { visual: *visual, direct })
    })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCreateNewContext(
    display: Ptr,
    config: Ptr,
    kind: i32,
    share: Ptr,
    direct: i32,
) -> Ptr {
    // SAFETY: the program's own call.
    let context = unsafe { real::glXCreateNewContext(display, config, kind, share, direct) };
    created(display, context, share, || Some(Birth::Config { config: config as usize, kind, direct }))
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCreateContextAttribsARB(
    display: Ptr,
    config: Ptr,
    share: Ptr,
    direct: i32,
    attributes: Ptr,
) -> Ptr {
    // SAFETY: the program's own call.
    let context = unsafe { real::glXCreateContextAttribsARB(display, config, share, direct, attributes) };
    created(display, context, share, || {
        let attributes = glx_context::ended(given::glx_attributes(attributes));
        Some(Birth::Attributes { config: config as usize, direct, attributes })
    })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXDestroyContext(display: Ptr, context: Ptr) {
    // SAFETY: the program's own call.
    unsafe { real::glXDestroyContext(display, context) };
    guard::shielded(|| {
        current::destroyed(display as usize, context as usize);
        glx_context::died(display as usize, context as usize);
        glx_context::clear_left();
    });
}

/// Makes another context current by `call`, which says whether it succeeded.
fn make_current(display: Ptr, drawable: usize, context: Ptr, call: impl FnOnce() -> i32) -> i32 {
    current::with(|state| state.submit(End::Unbind));
    let done = call();
    if done != 0 {
        guard::shielded(|| {
            glx_context::clear_left();
            current::bound_to_drawable(display as usize, drawable, context as usize);
        });
    }
    done
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXMakeCurrent(display: Ptr, drawable: usize, context: Ptr) -> i32 {
    // SAFETY: the program's own call.
    make_current(display, drawable, context, || unsafe { real::glXMakeCurrent(display, drawable, context) })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXMakeContextCurrent(display: Ptr, draw: usize, read: usize, context: Ptr) -> i32 {
    make_current(display, draw, context, || {
        // SAFETY: the program's own call.
        unsafe { real::glXMakeContextCurrent(display, draw, read, context) }
    })
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXMakeCurrentReadSGI(display: Ptr, draw: usize, read: usize, context: Ptr) -> i32 {
    make_current(display, draw, context, || {
        // SAFETY: the program's own call.
        unsafe { real::glXMakeCurrentReadSGI(display, draw, read, context) }
    })
}

/// State comes from elsewhere, past the shadow.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCopyContext(display: Ptr, from: Ptr, to: Ptr, mask: usize) {
    // SAFETY: the program's own call.
    unsafe { real::glXCopyContext(display, from, to, mask) };
    guard::shielded(|| current::lose_track(display as usize, to as usize));
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCreatePbuffer(display: Ptr, config: Ptr, attributes: Ptr) -> usize {
    // SAFETY: the program's own call.
    let pbuffer = unsafe { real::glXCreatePbuffer(display, config, attributes) };
    if pbuffer != 0 {
        guard::shielded(|| {
            let side = |name: i32| {
                let pairs = given::glx_attributes(attributes).chunks_exact(2);
                let found = pairs.filter(|pair| pair[0] == name).map(|pair| pair[1]).next_back();
                u32::try_from(found.unwrap_or(0)).unwrap_or(0)
            };
            let size = [side(glx::PBUFFER_WIDTH), side(glx::PBUFFER_HEIGHT)];
            current::unseen_drawable(display as usize, pbuffer, Some(size));
        });
    }
    pbuffer
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCreatePixmap(display: Ptr, config: Ptr, pixmap: usize, attributes: Ptr) -> usize {
    // SAFETY: the program's own call.
    let made = unsafe { real::glXCreatePixmap(display, config, pixmap, attributes) };
    if made != 0 {
        guard::shielded(|| current::unseen_drawable(display as usize, made, None));
    }
    made
}

macro_rules! destroying {
    ($( $name:ident )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(display: Ptr, drawable: usize) {
                // SAFETY: the program's own call.
                unsafe { real::$name(display, drawable) };
                guard::shielded(|| current::surface_destroyed(display as usize, drawable));
            }
        )*
    };
}

destroying! { glXDestroyPbuffer glXDestroyPixmap glXDestroyGLXPixmap glXDestroyWindow }

/// Shows a frame, with a grant, and has it measured.
fn show(display: Ptr, drawable: usize, call: impl FnOnce()) {
    guard::shielded(glx_context::clear_left);
    let idle = |state: &crate::client::context::State| state.shadow.swap_does_nothing(drawable);
    egl::show(display, drawable as Ptr, idle, |_| {
        call();
        1
    });
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXSwapBuffers(display: Ptr, drawable: usize) {
    // SAFETY: the program's own call.
    show(display, drawable, || unsafe { real::glXSwapBuffers(display, drawable) });
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXSwapBuffersMscOML(
    display: Ptr,
    drawable: usize,
    target: i64,
    divisor: i64,
    remainder: i64,
) -> i64 {
    let mut answer = -1;
    show(display, drawable, || {
        // SAFETY: the program's own call.
        answer = unsafe { real::glXSwapBuffersMscOML(display, drawable, target, divisor, remainder) };
    });
    answer
}

/// A part of a frame is shown: a program that shows frames in this way uses no other.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXCopySubBufferMESA(
    display: Ptr,
    drawable: usize,
    x: i32,
    y: i32,
    width: i32,
    height: i32,
) {
    // SAFETY: the program's own call.
    show(display, drawable, || unsafe { real::glXCopySubBufferMESA(display, drawable, x, y, width, height) });
}

/// As `glFinish`, for programs that then draw with X.
#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXWaitGL() {
    submit::flushed(End::Finish);
    // SAFETY: the program's own call.
    unsafe { real::glXWaitGL() };
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXSwapIntervalEXT(display: Ptr, drawable: usize, interval: i32) {
    // SAFETY: the program's own call.
    unsafe { real::glXSwapIntervalEXT(display, drawable, interval) };
    guard::shielded(|| current::drawable_interval(display as usize, drawable, interval));
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXSwapIntervalMESA(interval: u32) -> i32 {
    // SAFETY: the program's own call.
    let failed = unsafe { real::glXSwapIntervalMESA(interval) };
    if failed == 0 {
        current::with(|state| state.shadow.set_swap_interval(i32::try_from(interval).unwrap_or(i32::MAX)));
    }
    failed
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glXSwapIntervalSGI(interval: i32) -> i32 {
    // SAFETY: the program's own call.
    let failed = unsafe { real::glXSwapIntervalSGI(interval) };
    if failed == 0 {
        current::with(|state| state.shadow.set_swap_interval(interval));
    }
    failed
}
