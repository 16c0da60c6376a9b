//! Draws whose parameters lie in a buffer of the GPU.
//!
//! What the program wrote there is known, as long as no shader may have written there since; then a draw is
//! predicted as one whose parameters came with the call. It is made as it came all the same: GL asks more of
//! it than of other draws, and errors must stay what they are.

use super::context::State;
use crate::entry::Ptr;
use crate::gl;
use crate::shadow::drawing::{Drawing, VertexSource};

/// `glDrawArraysIndirect`.
pub fn arrays(state: &mut State, mode: u32, at: Ptr) -> Drawing {
    let Some([count, instances, first, 0]) = words(state, at) else {
        return unknown(mode, at as usize, 1);
    };
    let drawing =
        Drawing::new(mode, VertexSource::Arrays { first: number(first) }, number(count), number(instances));
    Drawing { indirect: true, ..drawing }
}

/// `glDrawElementsIndirect`.
pub fn elements(state: &mut State, mode: u32, kind: u32, at: Ptr) -> Drawing {
    let Some([count, instances, first, base, 0]) = words(state, at) else {
        return unknown(mode, at as usize, 1);
    };
    let bytes = match kind {
        gl::UNSIGNED_BYTE => 1,
        gl::UNSIGNED_SHORT => 2,
        _ => 4,
    };
    let pointer = usize::try_from(first).unwrap_or(usize::MAX).saturating_mul(bytes);
    let source = VertexSource::Elements { kind, pointer, base: base.cast_signed() };
    Drawing { indirect: true, ..Drawing::new(mode, source, number(count), number(instances)) }
}

/// `glDrawTransformFeedback`: as many vertices as were recorded.
pub fn recorded(mode: u32, object: u32, instances: i32) -> Drawing {
    unknown(mode, usize::try_from(object).unwrap_or(0), instances)
}

/// Several draws, whose parameters are `stride` bytes apart. GL refuses all of them if one does not lie within the
/// buffer; such a call is none that may be cut.
pub fn several(state: &mut State, mode: u32, at: Ptr, draws: i32, stride: usize) -> Drawing {
    let (at, many) = (at as usize, usize::try_from(draws).unwrap_or(0));
    let size = state.shadow.buffer(gl::DRAW_INDIRECT_BUFFER).map_or(0, |buffer| buffer.lock().size);
    let end = many.checked_mul(stride).and_then(|bytes| bytes.checked_add(at));
    let aligned = at.is_multiple_of(size_of::<u32>()) && stride.is_multiple_of(size_of::<u32>());
    let valid = aligned && end.is_some_and(|end| end <= size);
    let source = VertexSource::Several { first: 0, vertices: None };
    Drawing { indirect: true, ..Drawing::new(mode, source, if valid { draws } else { 0 }, 1) }
}

/// How far parameters of several draws are apart: side by side unless the call says so.
pub fn stride(stride: i32, indexed: bool) -> usize {
    let tight = if indexed { 5 } else { 4 } * size_of::<u32>();
    usize::try_from(stride).ok().filter(|stride| *stride > 0).unwrap_or(tight)
}

/// Where parameters of a piece of several draws begin.
pub fn place(at: Ptr, piece: &Drawing, stride: usize) -> Ptr {
    let skipped = usize::try_from(piece.first()).unwrap_or(0).wrapping_mul(stride);
    (at as usize).wrapping_add(skipped) as Ptr
}

/// A draw of unknown extent.
fn unknown(mode: u32, at: usize, instances: i32) -> Drawing {
    Drawing { indirect: true, ..Drawing::new(mode, VertexSource::Unknown { at }, 1, instances) }
}

/// What lies there, if it is known. A buffer that is mapped is refused, and none that is known here.
fn words<const N: usize>(state: &mut State, at: Ptr) -> Option<[u32; N]> {
    let start = Some(at as usize).filter(|start| start.is_multiple_of(size_of::<u32>()))?;
    let buffer = state.shadow.buffer(gl::DRAW_INDIRECT_BUFFER)?;
    let contents = buffer.lock();
    let words = contents.bytes()?.get(start..)?.as_chunks().0.first_chunk::<N>()?;
    Some(words.map(u32::from_ne_bytes))
}

/// GL takes these for numbers without a sign.
fn number(word: u32) -> i32 {
    i32::try_from(word).unwrap_or(i32::MAX)
}
