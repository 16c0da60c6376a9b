//! Draws that are handed over in pieces where they are too long.

use crate::client::Noted;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::guard;
use crate::session::session;
use crate::shadow::drawing::{Drawing, VertexSource};
use crate::slice::{Cuttable, Piece, Scissor, Slicer};

/// What a call draws, and how a piece of that is drawn.
macro_rules! drawn {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) => $drawing:expr, |$piece:ident| $($with:expr),*; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name($($arg: $ty),*) {
                // SAFETY: the program's own call, or a part of what it draws.
                draw($drawing, |$piece| unsafe { real::$name($($with),*) });
            }
        )*
        super::offered!($($name)*);
    };
}

drawn! {
    glDrawArrays(mode: u32, first: i32, count: i32) =>
        arrays(mode, first, count, 1), |piece| mode, piece.first(), piece.count;
    glDrawArraysInstanced(mode: u32, first: i32, count: i32, instances: i32) =>
        arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedEXT(mode: u32, first: i32, count: i32, instances: i32) =>
        arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedANGLE(mode: u32, first: i32, count: i32, instances: i32) =>
        arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawArraysInstancedNV(mode: u32, first: i32, count: i32, instances: i32) =>
        arrays(mode, first, count, instances), |piece| mode, piece.first(), piece.count, instances;
    glDrawElements(mode: u32, count: i32, kind: u32, indices: Ptr) =>
        elements(mode, count, kind, indices, 1), |piece| mode, piece.count, kind, piece.indices();
    glDrawElementsInstanced(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedEXT(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedANGLE(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawElementsInstancedNV(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) =>
        elements(mode, count, kind, indices, instances),
        |piece| mode, piece.count, kind, piece.indices(), instances;
    glDrawRangeElements(mode: u32, start: u32, end: u32, count: i32, kind: u32, indices: Ptr) =>
        elements(mode, count, kind, indices, 1), |piece| mode, start, end, piece.count, kind, piece.indices();
}

fn arrays(mode: u32, first: i32, count: i32, instances: i32) -> Drawing {
    Drawing { mode, source: VertexSource::Arrays { first }, count, instances }
}

fn elements(mode: u32, count: i32, kind: u32, indices: Ptr, instances: i32) -> Drawing {
    let source = VertexSource::Elements { kind, pointer: indices as usize };
    Drawing { mode, source, count, instances }
}

/// Draws with `call`, at once or in pieces.
#[inline]
fn draw(drawing: Drawing, call: impl Fn(&Drawing)) {
    match current::with(|state| state.about_to_draw(&drawing)).flatten() {
        Some(cut) => {
            let (slicer, scissor) = *cut;
            in_pieces(slicer, |piece| one(&scissor, piece, &call));
        }
        None => current::timed(|| call(&drawing)),
    }
}

/// Hands over piece by piece with `call`, after which the state is the program's. Even if our side fails,
/// all pieces are handed over.
#[cold]
pub(super) fn in_pieces<C>(mut slicer: Slicer<C>, call: impl Fn(&C::Piece))
where
    C: Cuttable<Piece: Noted>,
{
    while let Some(piece) = next(&mut slicer) {
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
