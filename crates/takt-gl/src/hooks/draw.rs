//! Clears, blits, and draws that are never cut.

use takt_predict::predictor::Work;

use super::pieces::in_pieces;
use crate::client::context::State;
use crate::client::{CutFilling, Filling, current};
use crate::entry::{Ptr, real};
use crate::gl;
use crate::slice::{Area, Fill};

/// Functions that note what they are about to do, and for how long the driver did it.
macro_rules! worked {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $note:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                current::with(|$state| {
                    $state.builder.call(stringify!($name));
                    $note;
                });
                // SAFETY: the program's own call.
                current::timed(|| unsafe { real::$name($($arg),*) });
            }
        )*
        $crate::hooks::offered!($($name)*);
    };
}

/// Clears and blits, which are handed over in bands where they are too long.
macro_rules! filled {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $cut:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                let cut = current::with(|$state| {
                    $state.builder.call(stringify!($name));
                    $cut
                });
                // SAFETY: the program's own call; with a narrower scissor it does a part of that.
                in_bands(cut.flatten(), || unsafe { real::$name($($arg),*) });
            }
        )*
        $crate::hooks::offered!($($name)*);
    };
}

/// Clears or blits with `call`, at once or in bands.
fn in_bands(cut: Option<Box<CutFilling>>, call: impl Fn()) {
    let Some(cut) = cut else {
        return current::timed(call);
    };
    let (slicer, scissor) = *cut;
    in_pieces(slicer, |band| {
        scissor.narrow(&band.area);
        current::timed(&call);
        scissor.restore();
    });
}

pub(super) mod fills {
    use super::*;

    filled! {
        glClear(mask: u32) => |state| state.about_to_clear(mask);
        glClearBufferfv(buffer: u32, which: i32, value: Ptr) => |state| state.about_to_clear(buffer_bit(buffer));
        glClearBufferiv(buffer: u32, which: i32, value: Ptr) => |state| state.about_to_clear(buffer_bit(buffer));
        glClearBufferuiv(buffer: u32, which: i32, value: Ptr) => |state| state.about_to_clear(buffer_bit(buffer));
        glClearBufferfi(buffer: u32, which: i32, depth: f32, stencil: i32) =>
            |state| state.about_to_clear(buffer_bit(buffer));
        glBlitFramebuffer(
            sx: i32, sy: i32, sx2: i32, sy2: i32, x: i32, y: i32, x2: i32, y2: i32, mask: u32, filter: u32
        ) => |state| blit(state, [x, y, x2, y2], [mask, filter]);
        glBlitFramebufferANGLE(
            sx: i32, sy: i32, sx2: i32, sy2: i32, x: i32, y: i32, x2: i32, y2: i32, mask: u32, filter: u32
        ) => |state| blit(state, [x, y, x2, y2], [mask, filter]);
        glBlitFramebufferNV(
            sx: i32, sy: i32, sx2: i32, sy2: i32, x: i32, y: i32, x2: i32, y2: i32, mask: u32, filter: u32
        ) => |state| blit(state, [x, y, x2, y2], [mask, filter]);
        glBlitFramebufferLayerEXT(
            sx: i32, sy: i32, sx2: i32, sy2: i32, from: i32, x: i32, y: i32, x2: i32, y2: i32, to: i32, mask: u32,
            filter: u32
        ) => |state| blit(state, [x, y, x2, y2], [mask, filter]);
        glBlitFramebufferLayersEXT(
            sx: i32, sy: i32, sx2: i32, sy2: i32, x: i32, y: i32, x2: i32, y2: i32, mask: u32, filter: u32
        ) => |state| blit(state, [x, y, x2, y2], [mask, filter]);
    }
}

worked! {
    glApplyFramebufferAttachmentCMAAINTEL() => |state| unknown(state, line!());
    glExtrapolateTex2DQCOM(_first: u32, _second: u32, _output: u32, _scale: f32) => |state| unknown(state, line!());
    glTexEstimateMotionQCOM(_reference: u32, _target: u32, _output: u32) => |state| unknown(state, line!());
    glTexEstimateMotionRegionsQCOM(_reference: u32, _target: u32, _output: u32, _mask: u32) =>
        |state| unknown(state, line!());
    glResolveMultisampleFramebufferAPPLE() => |state| unknown(state, line!());
    glResolveDepthValuesNV() => |state| unknown(state, line!());
    glClearTexImageEXT(_texture: u32, _level: i32, _format: u32, _kind: u32, _data: Ptr) =>
        |state| unknown(state, line!());
    glClearTexSubImageEXT(
        _texture: u32, _level: i32, _x: i32, _y: i32, _z: i32, _width: i32, _height: i32, _depth: i32, _format: u32,
        _kind: u32, _data: Ptr
    ) => |state| unknown(state, line!());
}

/// Draws of extensions that hardly any program uses: that they are made is all that is noted.
pub(super) mod rare {
    use super::{Ptr, current, real, unknown};

    worked! {
        glDrawTexfOES(_x: f32, _y: f32, _z: f32, _width: f32, _height: f32) => |state| unknown(state, line!());
        glDrawTexfvOES(_coords: Ptr) => |state| unknown(state, line!());
        glDrawTexiOES(_x: i32, _y: i32, _z: i32, _width: i32, _height: i32) => |state| unknown(state, line!());
        glDrawTexivOES(_coords: Ptr) => |state| unknown(state, line!());
        glDrawTexsOES(_x: i16, _y: i16, _z: i16, _width: i16, _height: i16) => |state| unknown(state, line!());
        glDrawTexsvOES(_coords: Ptr) => |state| unknown(state, line!());
        glDrawTexxOES(_x: i32, _y: i32, _z: i32, _width: i32, _height: i32) => |state| unknown(state, line!());
        glDrawTexxvOES(_coords: Ptr) => |state| unknown(state, line!());
        glDrawVkImageNV(
            _image: u64, _sampler: u32, _x0: f32, _y0: f32, _x1: f32, _y1: f32, _z: f32, _s0: f32, _t0: f32, _s1: f32,
            _t1: f32
        ) => |state| unknown(state, line!());
        glDrawMeshTasksNV(_first: u32, _count: u32) => |state| unknown(state, line!());
        glDrawMeshTasksIndirectNV(_indirect: isize) => |state| unknown(state, line!());
        glMultiDrawMeshTasksIndirectNV(_indirect: isize, _draws: i32, _stride: i32) => |state| unknown(state, line!());
        glMultiDrawMeshTasksIndirectCountNV(_indirect: isize, _draws: isize, _most: i32, _stride: i32) =>
            |state| unknown(state, line!());
        glStencilFillPathNV(_path: u32, _fill: u32, _mask: u32) => |state| unknown(state, line!());
        glStencilFillPathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _fill: u32, _mask: u32, _transform: u32, _values: Ptr
        ) => |state| unknown(state, line!());
        glStencilStrokePathNV(_path: u32, _reference: i32, _mask: u32) => |state| unknown(state, line!());
        glStencilStrokePathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _reference: i32, _mask: u32, _transform: u32, _values: Ptr
        ) => |state| unknown(state, line!());
        glCoverFillPathNV(_path: u32, _cover: u32) => |state| unknown(state, line!());
        glCoverFillPathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _cover: u32, _transform: u32, _values: Ptr
        ) => |state| unknown(state, line!());
        glCoverStrokePathNV(_path: u32, _cover: u32) => |state| unknown(state, line!());
        glCoverStrokePathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _cover: u32, _transform: u32, _values: Ptr
        ) => |state| unknown(state, line!());
        glStencilThenCoverFillPathNV(_path: u32, _fill: u32, _mask: u32, _cover: u32) =>
            |state| unknown(state, line!());
        glStencilThenCoverFillPathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _fill: u32, _mask: u32, _cover: u32, _transform: u32,
            _values: Ptr
        ) => |state| unknown(state, line!());
        glStencilThenCoverStrokePathNV(_path: u32, _reference: i32, _mask: u32, _cover: u32) =>
            |state| unknown(state, line!());
        glStencilThenCoverStrokePathInstancedNV(
            _paths: i32, _kind: u32, _names: Ptr, _base: u32, _reference: i32, _mask: u32, _cover: u32, _transform: u32,
            _values: Ptr
        ) => |state| unknown(state, line!());
    }
}

/// A command whose length only measured times tell; its line tells it from others.
fn unknown(state: &mut State, line: u32) {
    state.make_room();
    state.unknown_work(u64::from(line));
    state.ask();
    state.begins();
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

fn blit(state: &mut State, [x, y, x2, y2]: [i32; 4], [mask, filter]: [u32; 2]) -> Option<Box<CutFilling>> {
    let [width, height] = [x.abs_diff(x2), y.abs_diff(y2)];
    let bytes = u64::from(width).saturating_mul(height.into()).saturating_mul(4);
    let target = state.shadow.target();
    let reached = Area::new(0, 0, target.size[0], target.size[1]);
    let area = Area::new(x.min(x2), y.min(y2), width, height).and(&reached);
    let filling = Filling { fill: Fill::Blit, bytes, kind: (mask, filter, target.samples), area };
    state.about_to_fill(filling, |state| state.work(Work::Blit { bytes }))
}
