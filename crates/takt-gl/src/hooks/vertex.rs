//! Vertex arrays and attributes.

use takt_predict::fragments::Format;

use super::given::list;
use crate::client::context::State;
use crate::entry::Ptr;
use crate::gl;
use crate::shadow::vertex::{Layout, format};

super::noted! {
    glBindVertexArray(array: u32) => |state| state.shadow.vertices.bind(array);
    glBindVertexArrayOES(array: u32) => |state| state.shadow.vertices.bind(array);
    glDeleteVertexArrays(n: i32, arrays: Ptr) => |state| state.shadow.vertices.delete(list(n, arrays));
    glDeleteVertexArraysOES(n: i32, arrays: Ptr) => |state| state.shadow.vertices.delete(list(n, arrays));
    glEnableVertexAttribArray(index: u32) => |state| enable(state, index, true);
    glDisableVertexAttribArray(index: u32) => |state| enable(state, index, false);
    glVertexAttribPointer(index: u32, size: i32, kind: u32, normalized: u8, stride: i32, pointer: Ptr) =>
        |state| point(state, index, size, format(kind, normalized != 0), (stride, pointer));
    // What shaders read as integers, positions are not made of.
    glVertexAttribIPointer(index: u32, size: i32, _kind: u32, stride: i32, pointer: Ptr) =>
        |state| point(state, index, size, None, (stride, pointer));
    glVertexAttribDivisor(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorEXT(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorANGLE(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribDivisorNV(index: u32, divisor: u32) => |state| divide(state, index, divisor);
    glVertexAttribFormat(index: u32, size: i32, kind: u32, normalized: u8, offset: u32) =>
        |state| shape(state, index, size, format(kind, normalized != 0), offset);
    glVertexAttribIFormat(index: u32, size: i32, _kind: u32, offset: u32) =>
        |state| shape(state, index, size, None, offset);
    glVertexAttribBinding(index: u32, binding: u32) => |state| {
        state.shadow.vertices.named().into_iter().for_each(|array| array.connect(index_of(index), index_of(binding)));
    };
    glBindVertexBuffer(binding: u32, buffer: u32, offset: isize, stride: i32) =>
        |state| bind(state, binding, buffer, (offset, stride));
    glVertexBindingDivisor(binding: u32, divisor: u32) => |state| {
        state.shadow.vertices.named().into_iter().for_each(|array| array.divide(index_of(binding), divisor));
    };
    glVertexAttrib1f(index: u32, x: f32) => |state| state.shadow.vertices.constant(index, [x, 0.0, 0.0, 1.0]);
    glVertexAttrib2f(index: u32, x: f32, y: f32) => |state| state.shadow.vertices.constant(index, [x, y, 0.0, 1.0]);
    glVertexAttrib3f(index: u32, x: f32, y: f32, z: f32) =>
        |state| state.shadow.vertices.constant(index, [x, y, z, 1.0]);
    glVertexAttrib4f(index: u32, x: f32, y: f32, z: f32, w: f32) =>
        |state| state.shadow.vertices.constant(index, [x, y, z, w]);
    glVertexAttrib1fv(index: u32, v: Ptr) => |state| constant(state, index, list(1, v));
    glVertexAttrib2fv(index: u32, v: Ptr) => |state| constant(state, index, list(2, v));
    glVertexAttrib3fv(index: u32, v: Ptr) => |state| constant(state, index, list(3, v));
    glVertexAttrib4fv(index: u32, v: Ptr) => |state| constant(state, index, list(4, v));
}

/// As an index; numbers that are too large stay beyond all of them.
fn index_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// As many components as GL allows.
fn components(size: i32) -> Option<u8> {
    u8::try_from(size).ok().filter(|size| (1..=4).contains(size))
}

fn point(state: &mut State, index: u32, size: i32, format: Option<Format>, (stride, pointer): (i32, Ptr)) {
    if let (Some(components), Ok(stride)) = (components(size), usize::try_from(stride)) {
        let buffer = state.shadow.buffer(gl::ARRAY_BUFFER);
        let layout = Layout { components, format, stride, pointer: pointer as usize };
        state.shadow.vertices.current().point(index_of(index), &layout, buffer);
    }
}

fn shape(state: &mut State, index: u32, size: i32, format: Option<Format>, offset: u32) {
    if let (Some(components), Some(array)) = (components(size), state.shadow.vertices.named()) {
        array.shape(index_of(index), components, format, index_of(offset));
    }
}

fn bind(state: &mut State, binding: u32, buffer: u32, (offset, stride): (isize, i32)) {
    let buffer = state.shadow.shared.lock().buffers.bind(buffer);
    if let (Ok(offset), Ok(stride)) = (usize::try_from(offset), usize::try_from(stride))
        && let Some(array) = state.shadow.vertices.named()
    {
        array.bind(index_of(binding), buffer, offset, stride);
    }
}

fn enable(state: &mut State, index: u32, on: bool) {
    if let Some(array) = state.shadow.vertices.attribute(index) {
        array.enabled = on;
    }
}

/// Of an attribute, which then reads from the point of its number.
fn divide(state: &mut State, index: u32, divisor: u32) {
    let array = state.shadow.vertices.current();
    array.connect(index_of(index), index_of(index));
    array.divide(index_of(index), divisor);
}

fn constant(state: &mut State, index: u32, values: &[f32]) {
    let mut whole = [0.0, 0.0, 0.0, 1.0];
    whole.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
    state.shadow.vertices.constant(index, whole);
}
