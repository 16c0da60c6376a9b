//! Vertex arrays and attributes.

use super::given::list;
use crate::entry::Ptr;
use crate::gl;
use crate::monitor::context::State;
use crate::monitor::vertex::{Array, format};

super::noted! {
    glBindVertexArray(array: u32) => |state| state.vertices.bind(array);
    glBindVertexArrayOES(array: u32) => |state| state.vertices.bind(array);
    glDeleteVertexArrays(n: i32, arrays: Ptr) => |state| state.vertices.delete(list(n, arrays));
    glDeleteVertexArraysOES(n: i32, arrays: Ptr) => |state| state.vertices.delete(list(n, arrays));
    glEnableVertexAttribArray(index: u32) => |state| enable(state, index, true);
    glDisableVertexAttribArray(index: u32) => |state| enable(state, index, false);
    glVertexAttribPointer(index: u32, size: i32, kind: u32, normalized: u8, stride: i32, pointer: Ptr) =>
        |state| point(state, index, &Layout { size, kind, normalized: normalized != 0, stride, pointer });
    glVertexAttribIPointer(index: u32, size: i32, kind: u32, stride: i32, pointer: Ptr) =>
        |state| point(state, index, &Layout { size, kind: kind | INTEGER, normalized: false, stride, pointer });
    glVertexAttribDivisor(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorEXT(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorANGLE(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorNV(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribFormat(index: u32, size: i32, kind: u32, normalized: u8, offset: u32) =>
        |state| unknown(state, index, (size, kind, normalized, offset).0);
    glVertexAttribBinding(index: u32, binding: u32) => |state| unknown(state, index, binding.cast_signed());
    glVertexAttrib1f(index: u32, x: f32) => |state| state.vertices.constant(index, [x, 0.0, 0.0, 1.0]);
    glVertexAttrib2f(index: u32, x: f32, y: f32) => |state| state.vertices.constant(index, [x, y, 0.0, 1.0]);
    glVertexAttrib3f(index: u32, x: f32, y: f32, z: f32) => |state| state.vertices.constant(index, [x, y, z, 1.0]);
    glVertexAttrib4f(index: u32, x: f32, y: f32, z: f32, w: f32) =>
        |state| state.vertices.constant(index, [x, y, z, w]);
    glVertexAttrib1fv(index: u32, v: Ptr) => |state| constant(state, index, list(1, v));
    glVertexAttrib2fv(index: u32, v: Ptr) => |state| constant(state, index, list(2, v));
    glVertexAttrib3fv(index: u32, v: Ptr) => |state| constant(state, index, list(3, v));
    glVertexAttrib4fv(index: u32, v: Ptr) => |state| constant(state, index, list(4, v));
}

/// Marks types that shaders read as integers, which positions are not made of.
const INTEGER: u32 = 1 << 31;

/// What `glVertexAttribPointer` says.
struct Layout {
    size: i32,
    kind: u32,
    normalized: bool,
    stride: i32,
    pointer: Ptr,
}

fn point(state: &mut State, index: u32, layout: &Layout) {
    let (Ok(components @ 1..=4), Ok(stride)) = (u8::try_from(layout.size), usize::try_from(layout.stride))
    else {
        return;
    };
    let buffer = state.buffer(gl::ARRAY_BUFFER);
    if let Some(array) = state.vertices.attribute(index) {
        let format = format(layout.kind, layout.normalized);
        let pointer = layout.pointer as usize;
        *array = Array { components, format, stride, pointer, buffer, ..array.clone() };
    }
}

fn enable(state: &mut State, index: u32, on: bool) {
    if let Some(array) = state.vertices.attribute(index) {
        array.enabled = on;
    }
}

fn divide(state: &mut State, index: u32, divisor: u32) {
    if let Some(array) = state.vertices.attribute(index) {
        array.divisor = divisor;
    }
}

/// Formats apart from buffers, of GL ES 3.1, are not followed: positions are then unknown.
fn unknown(state: &mut State, index: u32, _what: i32) {
    if let Some(array) = state.vertices.attribute(index) {
        array.format = None;
    }
}

fn constant(state: &mut State, index: u32, values: &[f32]) {
    let mut whole = [0.0, 0.0, 0.0, 1.0];
    whole.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
    state.vertices.constant(index, whole);
}
