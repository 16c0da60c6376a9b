//! Clears, draws that are never cut, and other work for the GPU.

use takt_predict::predictor::Work;

use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::gl;
use crate::shadow::drawing::{Drawing, VertexSource};

/// Functions that note what they are about to do, and for how long the driver did it.
macro_rules! worked {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $note:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                current::with(|$state| {
                    $state.make_room();
                    $note;
                    $state.ask();
                    $state.begins();
                });
                // SAFETY: the program's own call.
                current::timed(|| unsafe { real::$name($($arg),*) });
            }
        )*
        $crate::hooks::offered!($($name)*);
    };
}

worked! {
    glDrawElementsBaseVertex(mode: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32) =>
        |state| unplaced(state, mode, count, 1);
    glDrawElementsBaseVertexEXT(mode: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32) =>
        |state| unplaced(state, mode, count, 1);
    glDrawElementsBaseVertexOES(mode: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32) =>
        |state| unplaced(state, mode, count, 1);
    glDrawRangeElementsBaseVertex(
        mode: u32, _start: u32, _end: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32
    ) => |state| unplaced(state, mode, count, 1);
    glDrawRangeElementsBaseVertexEXT(
        mode: u32, _start: u32, _end: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32
    ) => |state| unplaced(state, mode, count, 1);
    glDrawRangeElementsBaseVertexOES(
        mode: u32, _start: u32, _end: u32, count: i32, _kind: u32, _indices: Ptr, _base: i32
    ) => |state| unplaced(state, mode, count, 1);
    glDrawElementsInstancedBaseVertex(
        mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _base: i32
    ) => |state| unplaced(state, mode, count, instances);
    glDrawElementsInstancedBaseVertexEXT(
        mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _base: i32
    ) => |state| unplaced(state, mode, count, instances);
    glDrawElementsInstancedBaseVertexOES(
        mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _base: i32
    ) => |state| unplaced(state, mode, count, instances);
    glDrawArraysInstancedBaseInstanceEXT(mode: u32, _first: i32, count: i32, instances: i32, _base: u32) =>
        |state| unplaced(state, mode, count, instances);
    glDrawElementsInstancedBaseInstanceEXT(
        mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _base: u32
    ) => |state| unplaced(state, mode, count, instances);
    glDrawElementsInstancedBaseVertexBaseInstanceEXT(
        mode: u32, count: i32, _kind: u32, _indices: Ptr, instances: i32, _vertex: i32, _base: u32
    ) => |state| unplaced(state, mode, count, instances);
    glDrawArraysIndirect(mode: u32, _indirect: Ptr) => |state| unplaced(state, mode, 0, 1);
    glDrawElementsIndirect(mode: u32, _kind: u32, _indirect: Ptr) => |state| unplaced(state, mode, 0, 1);
    glMultiDrawArraysEXT(mode: u32, _first: Ptr, _count: Ptr, _draws: i32) => |state| unplaced(state, mode, 0, 1);
    glMultiDrawArraysIndirectEXT(mode: u32, _indirect: Ptr, _draws: i32, _stride: i32) =>
        |state| unplaced(state, mode, 0, 1);
    glMultiDrawElementsEXT(mode: u32, _count: Ptr, _kind: u32, _indices: Ptr, _draws: i32) =>
        |state| unplaced(state, mode, 0, 1);
    glMultiDrawElementsBaseVertexEXT(
        mode: u32, _count: Ptr, _kind: u32, _indices: Ptr, _draws: i32, _bases: Ptr
    ) => |state| unplaced(state, mode, 0, 1);
    glMultiDrawElementsIndirectEXT(mode: u32, _kind: u32, _indirect: Ptr, _draws: i32, _stride: i32) =>
        |state| unplaced(state, mode, 0, 1);
    glDrawTransformFeedbackEXT(mode: u32, _id: u32) => |state| unplaced(state, mode, 0, 1);
    glDrawTransformFeedbackInstancedEXT(mode: u32, _id: u32, instances: i32) =>
        |state| unplaced(state, mode, 0, instances);
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
    glBlitFramebufferLayerEXT(
        _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, _from: i32, x: i32, y: i32, x2: i32, y2: i32, _to: i32, _mask: u32,
        _filter: u32
    ) => |state| blit(state, [x, y, x2, y2]);
    glBlitFramebufferLayersEXT(
        _sx: i32, _sy: i32, _sx2: i32, _sy2: i32, x: i32, y: i32, x2: i32, y2: i32, _mask: u32, _filter: u32
    ) => |state| blit(state, [x, y, x2, y2]);
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

/// A draw whose vertices are not followed.
fn unplaced(state: &mut State, mode: u32, count: i32, instances: i32) {
    state.draw(&Drawing { mode, source: VertexSource::Indirect, count, instances });
}

/// A command whose length only measured times tell; its line tells it from others.
fn unknown(state: &mut State, line: u32) {
    state.unknown_work(u64::from(line));
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
