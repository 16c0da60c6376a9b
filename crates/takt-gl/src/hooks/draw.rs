//! Clears, draws that are never cut, and other work for the GPU.

use takt_predict::predictor::Work;

use crate::clock;
use crate::entry::{Ptr, real};
use crate::gl;
use crate::monitor::context::State;
use crate::monitor::{Drawing, Source, current};

/// Functions that note what they are about to do, and for how long the driver did it.
macro_rules! worked {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $note:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                super::submit::make_room();
                current::with(|$state| {
                    $note;
                    $state.ask();
                    $state.begins();
                });
                let began_ns = clock::now_ns();
                // SAFETY: the program's own call.
                unsafe { real::$name($($arg),*) };
                current::with(|state| state.builder.spent(clock::now_ns().saturating_sub(began_ns)));
            }
        )*
        super::offered!($($name)*);
    };
}

worked! {
    glDrawElementsBaseVertex(mode: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32) =>
        |state| unplaced(state, mode, count, 1);
    glDrawElementsInstancedBaseVertex(mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _base: i32) =>
        |state| unplaced(state, mode, count, instances);
    glDrawArraysIndirect(mode: u32, _indirect: Ptr) => |state| unplaced(state, mode, 0, 1);
    glDrawElementsIndirect(mode: u32, _kind: u32, _indirect: Ptr) => |state| unplaced(state, mode, 0, 1);
    glMultiDrawArraysEXT(mode: u32, _first: Ptr, _count: Ptr, _draws: i32) => |state| unplaced(state, mode, 0, 1);
    glMultiDrawElementsEXT(mode: u32, _count: Ptr, _kind: u32, _indices: Ptr, _draws: i32) =>
        |state| unplaced(state, mode, 0, 1);
    glDispatchCompute(_x: u32, _y: u32, _z: u32) => |state| state.builder.unknown();
    glDispatchComputeIndirect(_indirect: isize) => |state| state.builder.unknown();
    glClear(mask: u32) => |state| state.clear(mask);
    glClearBufferfv(buffer: u32, _which: i32, _value: Ptr) => |state| state.clear(buffer_bit(buffer));
    glClearBufferiv(buffer: u32, _which: i32, _value: Ptr) => |state| state.clear(buffer_bit(buffer));
    glClearBufferuiv(buffer: u32, _which: i32, _value: Ptr) => |state| state.clear(buffer_bit(buffer));
    glClearBufferfi(buffer: u32, _which: i32, _depth: f32, _stencil: i32) => |state| state.clear(buffer_bit(buffer));
    glBlitFramebuffer(
        _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, x: i32, y: i32, x2: i32, y2: i32, _mask: u32, _filter: u32
    ) => |state| blit(state, [x, y, x2, y2]);
    glBlitFramebufferANGLE(
        _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, x: i32, y: i32, x2: i32, y2: i32, _mask: u32, _filter: u32
    ) => |state| blit(state, [x, y, x2, y2]);
    glBlitFramebufferNV(
        _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, x: i32, y: i32, x2: i32, y2: i32, _mask: u32, _filter: u32
    ) => |state| blit(state, [x, y, x2, y2]);
}

/// A draw whose vertices are not followed.
fn unplaced(state: &mut State, mode: u32, count: i32, instances: i32) {
    state.draw(&Drawing { mode, source: Source::Indirect, count, instances });
}

fn buffer_bit(buffer: u32) -> u32 {
    match buffer {
        gl::COLOR => gl::COLOR_BUFFER_BIT,
        gl::DEPTH => gl::DEPTH_BUFFER_BIT,
        gl::STENCIL => gl::STENCIL_BUFFER_BIT,
        gl::DEPTH_STENCIL => gl::DEPTH_BUFFER_BIT | gl::STENCIL_BUFFER_BIT,
        _ => 0,
    }
}

fn blit(state: &mut State, [x, y, x2, y2]: [i32; 4]) {
    let pixels = u64::from(x.abs_diff(x2)) * u64::from(y.abs_diff(y2));
    state.work(Work::Copy { bytes: pixels.saturating_mul(4) });
}
