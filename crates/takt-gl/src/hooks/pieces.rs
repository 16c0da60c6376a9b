//! Draws, which are handed over in pieces where they are too long.

use super::given::list;
use crate::client::Noted;
use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::guard;
use crate::session::session;
use crate::shadow::drawing::{Drawing, VertexSource};
use crate::slice::{Cuttable, Piece, Scissor, Slicer};

/// What a call draws, and how a piece of that is drawn.
macro_rules! drawn {
    ($(
        $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $drawing:expr, |$piece:ident| $($with:expr),*;
    )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                // SAFETY: the program's own call.
                let whole = || unsafe { real::$name($($arg),*) };
                // SAFETY: a part of what the program's own call draws.
                let part = |$piece: &Drawing| unsafe { real::$name($($with),*) };
                $crate::hooks::pieces::draw(stringify!($name), |$state| $drawing, whole, part);
            }
        )*
        $crate::hooks::offered!($($name)*);
    };
}

/// The same where each piece is all of it, seen through a box.
macro_rules! boxed {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => |$state:ident| $drawing:expr; )*) => {
        $crate::hooks::pieces::drawn! {
            $( $name($($arg : $ty),*) => |$state| $drawing, |_piece| $($arg),*; )*
        }
    };
}

use {boxed, drawn};

drawn! {
    glDrawArrays(mode: u32, first: i32, count: i32) =>
        |_state| arrays(mode, first, count, 1), |piece| mode, piece.first(), piece.count;
    glDrawArraysInstanced(mode: u32, first: i32, count: i32, instances: i32) =>
        |_state| arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedEXT(mode: u32, first: i32, count: i32, instances: i32) =>
        |_state| arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedANGLE(mode: u32, first: i32, count: i32, instances: i32) =>
        |_state| arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedNV(mode: u32, first: i32, count: i32, instances: i32) =>
        |_state| arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedBaseInstanceEXT(mode: u32, first: i32, count: i32, instances: i32, base: u32) =>
        |_state| arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances, base;
    glDrawElements(mode: u32, count: i32, kind: u32, indices: Ptr) =>
        |_state| elements(mode, count, kind, indices, 1), |piece| mode, piece.count, kind, piece.indices();
    glDrawElementsInstanced(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        |_state| elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedEXT(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        |_state| elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedANGLE(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        |_state| elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedNV(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        |_state| elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedBaseInstanceEXT(
        mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32, base: u32
    ) => |_state| elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances, base;
    glDrawRangeElements(mode: u32, start: u32, end: u32, count: i32, kind: u32, indices: Ptr) =>
        |_state| elements(mode, count, kind, indices, 1),
        |piece| mode, start, end, piece.count, kind, piece.indices();
}

/// Draws whose indices are relative to a vertex.
pub(super) mod based {
    use super::{Drawing, Ptr, elements, real};

    super::drawn! {
        glDrawElementsBaseVertex(mode: u32, count: i32, kind: u32, indices: Ptr, base: i32) =>
            |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, piece.count, kind, piece.indices(), base;
        glDrawElementsBaseVertexEXT(mode: u32, count: i32, kind: u32, indices: Ptr, base: i32) =>
            |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, piece.count, kind, piece.indices(), base;
        glDrawElementsBaseVertexOES(mode: u32, count: i32, kind: u32, indices: Ptr, base: i32) =>
            |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, piece.count, kind, piece.indices(), base;
        glDrawRangeElementsBaseVertex(
            mode: u32, start: u32, end: u32, count: i32, kind: u32, indices: Ptr, base: i32
        ) => |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, start, end, piece.count, kind, piece.indices(), base;
        glDrawRangeElementsBaseVertexEXT(
            mode: u32, start: u32, end: u32, count: i32, kind: u32, indices: Ptr, base: i32
        ) => |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, start, end, piece.count, kind, piece.indices(), base;
        glDrawRangeElementsBaseVertexOES(
            mode: u32, start: u32, end: u32, count: i32, kind: u32, indices: Ptr, base: i32
        ) => |_state| elements(mode, count, kind, indices, 1).from(base),
            |piece| mode, start, end, piece.count, kind, piece.indices(), base;
        glDrawElementsInstancedBaseVertex(
            mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32, base: i32
        ) => |_state| elements(mode, count, kind, indices, instances).from(base),
            |piece| mode, piece.count, kind, piece.indices(), instances, base;
        glDrawElementsInstancedBaseVertexEXT(
            mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32, base: i32
        ) => |_state| elements(mode, count, kind, indices, instances).from(base),
            |piece| mode, piece.count, kind, piece.indices(), instances, base;
        glDrawElementsInstancedBaseVertexOES(
            mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32, base: i32
        ) => |_state| elements(mode, count, kind, indices, instances).from(base),
            |piece| mode, piece.count, kind, piece.indices(), instances, base;
        glDrawElementsInstancedBaseVertexBaseInstanceEXT(
            mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32, vertex: i32, base: u32
        ) => |_state| elements(mode, count, kind, indices, instances).from(vertex),
            |piece| mode, piece.count, kind, piece.indices(), instances, vertex, base;
    }
}

/// Several draws in one call: a piece is some of them.
pub(super) mod several {
    use super::{Drawing, Ptr, beyond, real, several};
    use crate::client::indirect;

    super::drawn! {
        glMultiDrawArraysEXT(mode: u32, first: Ptr, count: Ptr, draws: i32) =>
            |_state| several(mode, &[count, first], draws),
            |piece| mode, beyond::<i32>(first, piece), beyond::<i32>(count, piece), piece.count;
        glMultiDrawElementsEXT(mode: u32, count: Ptr, kind: u32, indices: Ptr, draws: i32) =>
            |_state| several(mode, &[count], draws),
            |piece| mode, beyond::<i32>(count, piece), kind, beyond::<usize>(indices, piece), piece.count;
        glMultiDrawElementsBaseVertexEXT(mode: u32, count: Ptr, kind: u32, indices: Ptr, draws: i32, bases: Ptr) =>
            |_state| several(mode, &[count], draws),
            |piece| mode, beyond::<i32>(count, piece), kind, beyond::<usize>(indices, piece), piece.count,
            beyond::<i32>(bases, piece);
        glMultiDrawArraysIndirectEXT(mode: u32, indirect: Ptr, draws: i32, stride: i32) =>
            |state| indirect::several(state, mode, indirect, draws, indirect::stride(stride, false)),
            |piece| mode, indirect::place(indirect, piece, indirect::stride(stride, false)), piece.count, stride;
        glMultiDrawElementsIndirectEXT(mode: u32, kind: u32, indirect: Ptr, draws: i32, stride: i32) =>
            |state| indirect::several(state, mode, indirect, draws, indirect::stride(stride, true)),
            |piece| mode, kind, indirect::place(indirect, piece, indirect::stride(stride, true)), piece.count, stride;
    }
}

/// Draws of which only the GPU knows how many vertices they have.
pub(super) mod unknown {
    use super::{Drawing, Ptr, real};
    use crate::client::indirect;

    super::boxed! {
        glDrawArraysIndirect(mode: u32, at: Ptr) => |state| indirect::arrays(state, mode, at);
        glDrawElementsIndirect(mode: u32, kind: u32, at: Ptr) => |state| indirect::elements(state, mode, kind, at);
        glDrawTransformFeedbackEXT(mode: u32, id: u32) => |_state| indirect::recorded(mode, id, 1);
        glDrawTransformFeedbackInstancedEXT(mode: u32, id: u32, instances: i32) =>
            |_state| indirect::recorded(mode, id, instances);
    }
}

fn arrays(mode: u32, first: i32, count: i32, instances: i32) -> Drawing {
    Drawing::new(mode, VertexSource::Arrays { first }, count, instances)
}

fn elements(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) -> Drawing {
    let source = VertexSource::Elements { kind, pointer: indices as usize, base: 0 };
    Drawing::new(mode, source, count, instances)
}

/// Several draws, given how many vertices each has, and other numbers that GL refuses below zero.
fn several(mode: u32, numbers: &[Ptr], draws: i32) -> Drawing {
    let valid = numbers.iter().all(|numbers| list::<i32>(draws, *numbers).iter().all(|number| *number >= 0));
    let counts: &[i32] = numbers.first().map_or(&[], |counts| list(draws, *counts));
    let vertices = counts.iter().fold(0, |all: i32, count| all.saturating_add(*count));
    let source = VertexSource::Several { first: 0, vertices: Some(vertices) };
    Drawing::new(mode, source, if valid && !counts.is_empty() { draws } else { 0 }, 1)
}

/// Where values of a piece begin in a list with one for each draw.
fn beyond<T>(values: Ptr, piece: &Drawing) -> Ptr {
    values.cast::<T>().wrapping_add(usize::try_from(piece.first()).unwrap_or(0)).cast()
}

/// Draws at once or in pieces.
#[inline]
fn draw(
    name: &'static str,
    drawing: impl FnOnce(&mut State) -> Drawing,
    whole: impl FnOnce(),
    part: impl Fn(&Drawing),
) {
    let cut = current::with(|state| {
        state.builder.call(name);
        let drawing = drawing(state);
        state.about_to_draw(&drawing)
    });
    match cut.flatten() {
        Some(cut) => {
            let (slicer, scissor) = *cut;
            in_pieces(slicer, |piece| one(&scissor, piece, &part));
        }
        None => current::timed(whole),
    }
}

/// Hands over piece by piece with `call`, after which the state is the program's. Even if our side fails,
/// all pieces are handed over.
#[cold]
pub(super) fn in_pieces<C>(mut slicer: Slicer<C>, call: impl Fn(&C::Piece))
where
    C: Cuttable<Piece: Noted>,
{
    loop {
        current::with(|state| state.ask_for_piece(&mut slicer));
        let Some(piece) = next(&mut slicer) else {
            return;
        };
        current::with(|state| state.begin_piece(&mut slicer, &piece));
        call(&piece);
        while let Some(piece) = guard::shielded(|| slicer.more()).flatten() {
            current::with(|state| state.more_of_piece(&slicer, &piece));
            call(&piece);
        }
        current::with(|state| state.end_piece(&mut slicer));
        current::flush();
        guard::shielded(|| {
            slicer.settle();
            if slicer.is_scheduled() {
                slicer.limit(session().slice());
            }
        });
    }
}

/// The next piece; where its size cannot be told, as much as there is.
fn next<C: Cuttable>(slicer: &mut Slicer<C>) -> Option<C::Piece> {
    let sized = guard::shielded(|| slicer.next_piece());
    sized.unwrap_or_else(|| guard::attempted(|| slicer.rest()).flatten())
}

/// Draws a piece.
fn one(scissor: &Scissor, piece: &Piece, call: &impl Fn(&Drawing)) {
    if let Some(area) = &piece.area {
        scissor.narrow(area);
    }
    current::timed(|| call(&piece.drawing));
    if piece.area.is_some() {
        scissor.restore();
    }
}
