//! A draw, cut into pieces as it goes along.
//!
//! Pieces are ranges of primitives, boxes of pixels, or boxes of pixels of a single range. Each
//! piece is sized when it is its turn, by what the pieces before it cost. Together they draw each
//! fragment of the draw once, and those of one pixel in the order of the draw.

use super::ranges;
use super::slicer::Cuttable;
use super::tiles::{Area, Tiles};
use crate::shadow::drawing::Drawing;

/// A piece of a draw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Piece {
    /// What to draw.
    pub drawing: Drawing,
    /// Where; none for everywhere.
    pub area: Option<Area>,
    /// Its share of the whole draw.
    pub share: f64,
}

/// What is left of a draw.
#[derive(Clone, Debug)]
pub struct Cut {
    drawing: Drawing,
    /// Ranges that can be told apart; 1 where ranges are no option.
    steps: u32,
    /// Ranges up to this one are drawn.
    done: u32,
    /// Boxes, where these are an option.
    tiles: Option<Tiles>,
    /// What is left of the boxes of the range that begins at `done`.
    open: Option<Tiles>,
}

impl Cut {
    /// A draw that may be cut into ranges and boxes as stated.
    pub fn new(drawing: Drawing, ranges: bool, tiles: Option<Tiles>) -> Self {
        let steps = if ranges { ranges::steps(&drawing) } else { 1 };
        Self { drawing, steps, done: 0, tiles, open: None }
    }

    /// How a draw is best cut into about that many pieces. Ranges cost least, because boxes begin
    /// at all primitives again; but where there are few primitives, most of them cover most boxes.
    /// None if it cannot be cut.
    pub fn choose(drawing: Drawing, ranges: bool, tiles: Option<Tiles>, pieces: f64) -> Option<Self> {
        let steps = if ranges { ranges::steps(&drawing) } else { 1 };
        let enough = f64::from(steps) >= STEPS_PER_PIECE * pieces;
        match (steps > 1, tiles) {
            (true, tiles) if enough || tiles.is_none() => Some(Self::new(drawing, true, tiles)),
            (_, Some(tiles)) => Some(Self::new(drawing, false, Some(tiles))),
            (_, None) => None,
        }
    }

    fn range(&mut self, of_steps: f64) -> Piece {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let wanted = of_steps.clamp(1.0, f64::from(self.steps)) as u32;
        let (from, to) = (self.done, self.done.saturating_add(wanted).min(self.steps));
        self.done = to;
        let drawing = if self.steps == 1 { self.drawing } else { ranges::part(&self.drawing, from, to) };
        Piece { drawing, area: None, share: f64::from(to - from) / f64::from(self.steps) }
    }
}

impl Cuttable for Cut {
    type Piece = Piece;

    fn is_over(&self) -> bool {
        self.done >= self.steps
    }

    fn share(piece: &Piece) -> f64 {
        piece.share
    }

    /// At least one that makes sense.
    fn next(&mut self, share: f64) -> Option<Piece> {
        if self.is_over() {
            return None;
        }
        let of_steps = share * f64::from(self.steps);
        if self.open.is_none() && of_steps < 1.0 && of_steps < TILE_BELOW {
            self.open.clone_from(&self.tiles);
        }
        match self.open.as_mut().and_then(|tiles| tiles.next(of_steps)) {
            Some((area, part)) => {
                let drawing = ranges::part(&self.drawing, self.done, self.done + 1);
                let drawing = if self.steps == 1 { self.drawing } else { drawing };
                if self.open.as_ref().is_some_and(Tiles::is_over) {
                    self.open = None;
                    self.done += 1;
                }
                Some(Piece { drawing, area: Some(area), share: part / f64::from(self.steps) })
            }
            None => Some(self.range(of_steps)),
        }
    }
}

/// A range must be this much too long before it is cut into boxes.
const TILE_BELOW: f64 = 0.75;
/// Ranges that a piece should have to choose from, so that pieces can be sized.
const STEPS_PER_PIECE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gl;
    use crate::shadow::drawing::VertexSource;

    const WHOLE: Area = Area { left: 0, low: 0, right: 40, high: 40 };

    fn drawing(count: i32) -> Drawing {
        Drawing::new(gl::TRIANGLES, VertexSource::Arrays { first: 0 }, count, 1)
    }

    fn first(piece: &Piece) -> i32 {
        match piece.drawing.source {
            VertexSource::Arrays { first } => first,
            _ => panic!("arrays were drawn"),
        }
    }

    proptest! {
        #[test]
        fn each_primitive_covers_each_pixel_once_and_pixels_see_them_in_order(
            triangles in 1..9_i32,
            ranges in any::<bool>(),
            tiled in any::<bool>(),
            shares in prop::collection::vec(prop_oneof![0.0..0.05_f64, 0.0..1.0_f64], 1..7),
        ) {
            let tiles = if tiled { Tiles::new(WHOLE, WHOLE) } else { None };
            let mut cut = Cut::new(drawing(triangles * 3), ranges, tiles);
            let mut pixels = vec![Vec::new(); 40 * 40];
            let (mut pieces, mut sum) = (0, 0.0);
            while let Some(piece) = cut.next(shares[pieces % shares.len()]) {
                pieces += 1;
                sum += piece.share;
                let area = piece.area.unwrap_or(WHOLE);
                for y in area.low..area.high {
                    for x in area.left..area.right {
                        let pixel = &mut pixels[usize::try_from(y * 40 + x).unwrap()];
                        pixel.extend(first(&piece) / 3..(first(&piece) + piece.drawing.count) / 3);
                    }
                }
            }
            let wanted: Vec<i32> = (0..triangles).collect();
            prop_assert!(pixels.iter().all(|pixel| *pixel == wanted));
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn few_primitives_are_cut_into_boxes_and_many_into_ranges() {
        let tiles = Tiles::new(WHOLE, WHOLE);
        let mut quad = Cut::choose(drawing(6), true, tiles.clone(), 4.0).unwrap();
        assert!(quad.next(0.25).unwrap().area.is_some());
        let mut mesh = Cut::choose(drawing(600), true, tiles.clone(), 4.0).unwrap();
        let piece = mesh.next(0.25).unwrap();
        assert_eq!((piece.area, piece.drawing.count), (None, 150));
        assert!(Cut::choose(drawing(600), false, None, 4.0).is_none());
        assert!(Cut::choose(drawing(3), true, None, 4.0).is_none());
    }

    #[test]
    fn a_primitive_that_is_too_long_is_cut_as_well() {
        let mut cut = Cut::choose(drawing(600), true, Tiles::new(WHOLE, WHOLE), 4.0).unwrap();
        let piece = cut.next(0.001).unwrap();
        assert_eq!(piece.drawing.count, 3);
        assert!(piece.area.is_some() && piece.share < 0.0011);
    }

    #[test]
    fn what_is_left_can_be_drawn_in_few_pieces() {
        let mut cut = Cut::choose(drawing(6), true, Tiles::new(WHOLE, WHOLE), 400.0).unwrap();
        cut.next(0.001);
        let mut rest = 0;
        while cut.next(1.0).is_some() {
            rest += 1;
        }
        assert!(rest <= 3, "{rest}");
    }
}
