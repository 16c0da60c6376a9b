//! Cutting the vertices of a draw into ranges.

use crate::gl;
use crate::shadow::drawing::{Drawing, VertexSource};

/// How vertices make primitives that can be drawn in several goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pattern {
    /// Vertices from one possible begin of a draw to the next.
    step: u32,
    /// Vertices that a primitive takes from those behind the step.
    overlap: u32,
}

/// Draws of one call follow one another as vertices of points do. Lists have no overlap. A strip of
/// triangles changes its winding with each triangle, so it may begin at every second one. What refers to its
/// first vertex from everywhere cannot be cut.
fn pattern(drawing: &Drawing) -> Option<Pattern> {
    let (step, overlap) = match drawing.mode {
        _ if is_several(drawing) => (1, 0),
        gl::POINTS => (1, 0),
        gl::LINES => (2, 0),
        gl::TRIANGLES => (3, 0),
        gl::LINE_STRIP => (1, 1),
        gl::TRIANGLE_STRIP => (2, 2),
        _ => return None,
    };
    Some(Pattern { step, overlap })
}

/// Places where a draw may be cut, plus one; 1 if it cannot be cut.
pub(super) fn steps(drawing: &Drawing) -> u32 {
    let (Some(pattern), Ok(count)) = (pattern(drawing), u32::try_from(drawing.count)) else {
        return 1;
    };
    // The number of an instance is not at our disposal, and neither is what lies in a buffer of the GPU.
    let unknown = matches!(drawing.source, VertexSource::Unknown { .. });
    if drawing.instances != 1 || unknown || drawing.indirect && !is_several(drawing) {
        return 1;
    }
    let steps = count.saturating_sub(pattern.overlap);
    // Vertices of a list that make no whole primitive draw nothing.
    let steps = if pattern.overlap == 0 { steps / pattern.step } else { steps.div_ceil(pattern.step) };
    steps.max(1)
}

/// The draw of some steps: from one, up to another that is not included.
pub(super) fn part(drawing: &Drawing, from: u32, to: u32) -> Drawing {
    let whole = steps(drawing);
    let Some(pattern) = pattern(drawing).filter(|_| from > 0 || to < whole) else {
        return *drawing;
    };
    let skipped = i32::try_from(from.saturating_mul(pattern.step)).unwrap_or(i32::MAX);
    let wanted = to.saturating_sub(from).saturating_mul(pattern.step).saturating_add(pattern.overlap);
    let left = drawing.count.saturating_sub(skipped);
    let count = i32::try_from(wanted).unwrap_or(i32::MAX).min(left);
    let source = match drawing.source {
        VertexSource::Arrays { first } => VertexSource::Arrays { first: first.saturating_add(skipped) },
        VertexSource::Elements { kind, pointer, base } => {
            let bytes = usize::try_from(skipped).unwrap_or(0).saturating_mul(index_bytes(kind));
            VertexSource::Elements { kind, pointer: pointer.saturating_add(bytes), base }
        }
        VertexSource::Several { first, vertices } => {
            VertexSource::Several { first: first.saturating_add(skipped), vertices }
        }
        unknown @ VertexSource::Unknown { .. } => unknown,
    };
    Drawing { source, count, ..*drawing }
}

fn is_several(drawing: &Drawing) -> bool {
    matches!(drawing.source, VertexSource::Several { .. })
}

fn index_bytes(kind: u32) -> usize {
    match kind {
        gl::UNSIGNED_BYTE => 1,
        gl::UNSIGNED_SHORT => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The primitives of a draw as lists of vertices, in order, with the winding of strips.
    fn primitives(drawing: &Drawing) -> Vec<Vec<i32>> {
        let first = match drawing.source {
            VertexSource::Arrays { first } => first,
            VertexSource::Elements { kind, pointer, .. } => {
                i32::try_from(pointer / index_bytes(kind)).unwrap()
            }
            VertexSource::Several { first, .. } => first,
            VertexSource::Unknown { .. } => 0,
        };
        let at: Vec<i32> = (first..first + drawing.count).collect();
        if is_several(drawing) {
            return at.chunks_exact(1).map(<[i32]>::to_vec).collect();
        }
        match drawing.mode {
            gl::POINTS => at.chunks_exact(1).map(<[i32]>::to_vec).collect(),
            gl::LINES => at.chunks_exact(2).map(<[i32]>::to_vec).collect(),
            gl::TRIANGLES => at.chunks_exact(3).map(<[i32]>::to_vec).collect(),
            gl::LINE_STRIP => at.windows(2).map(<[i32]>::to_vec).collect(),
            _ => at
                .windows(3)
                .enumerate()
                .map(|(number, three)| match number % 2 {
                    0 => three.to_vec(),
                    _ => vec![three[1], three[0], three[2]],
                })
                .collect(),
        }
    }

    fn drawings() -> impl Strategy<Value = Drawing> {
        let modes = [gl::POINTS, gl::LINES, gl::TRIANGLES, gl::LINE_STRIP, gl::TRIANGLE_STRIP];
        let sources = prop_oneof![
            (0..50_i32).prop_map(|first| VertexSource::Arrays { first }),
            prop::sample::select(vec![gl::UNSIGNED_BYTE, gl::UNSIGNED_SHORT, gl::UNSIGNED_INT])
                .prop_map(|kind| VertexSource::Elements { kind, pointer: 40, base: -3 }),
            Just(VertexSource::Several { first: 0, vertices: None }),
        ];
        (prop::sample::select(modes.to_vec()), sources, 0..200_i32)
            .prop_map(|(mode, source, count)| Drawing::new(mode, source, count, 1))
    }

    proptest! {
        #[test]
        fn every_primitive_is_drawn_once_and_in_order(
            drawing in drawings(),
            sizes in prop::collection::vec(1..30_u32, 1..6),
        ) {
            let (mut from, mut pieces, mut drawn) = (0, 0, Vec::new());
            while from < steps(&drawing) {
                let to = (from + sizes[pieces % sizes.len()]).min(steps(&drawing));
                drawn.extend(primitives(&part(&drawing, from, to)));
                (from, pieces) = (to, pieces + 1);
            }
            prop_assert_eq!(drawn, primitives(&drawing));
        }
    }

    #[test]
    fn what_cannot_be_cut_stays_whole() {
        let strip = Drawing::new(gl::TRIANGLE_STRIP, VertexSource::Arrays { first: 0 }, 100, 1);
        assert_eq!(steps(&strip), 49);
        for drawing in [
            Drawing { mode: gl::TRIANGLE_FAN, ..strip },
            Drawing { mode: gl::LINE_LOOP, ..strip },
            Drawing { mode: 99, ..strip },
            Drawing { instances: 2, ..strip },
            Drawing { source: VertexSource::Unknown { at: 0 }, ..strip },
            Drawing { indirect: true, ..strip },
            Drawing { count: -1, ..strip },
            Drawing { count: 4, ..strip },
        ] {
            assert_eq!(steps(&drawing), 1, "{drawing:?}");
            assert_eq!(part(&drawing, 0, 1), drawing);
        }
    }
}
