//! Cutting a surface into scissor boxes.

/// A box of pixels: from the lower left corner to the upper right one, which lies outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// Left edge.
    pub left: i32,
    /// Lower edge.
    pub low: i32,
    /// First column that is not inside.
    pub right: i32,
    /// First row that is not inside.
    pub high: i32,
}

impl Area {
    /// A box as `glScissor` takes it; far edges stop at the largest number there is.
    pub fn new(x: i32, y: i32, width: u32, height: u32) -> Self {
        Self {
            left: x,
            low: y,
            right: x.saturating_add_unsigned(width),
            high: y.saturating_add_unsigned(height),
        }
    }

    /// Pixels inside.
    pub fn pixels(&self) -> u64 {
        let side = |from: i32, to: i32| u64::try_from(i64::from(to) - i64::from(from)).unwrap_or(0);
        side(self.left, self.right).saturating_mul(side(self.low, self.high))
    }

    /// What is inside of both.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            left: self.left.max(other.left),
            low: self.low.max(other.low),
            right: self.right.min(other.right),
            high: self.high.min(other.high),
        }
    }

    fn width(&self) -> i32 {
        self.right - self.left
    }
}

/// Cuts an area into boxes, from below, as large as each is wanted.
///
/// Wide boxes cost least, because GPUs work in small squares and each box begins at all primitives
/// again: so boxes are bands over the whole width as long as these are small enough, and parts of a
/// band otherwise. Edges lie on multiples of `GRAIN` where that is possible.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// Everything that must be covered, however far away its edges are.
    clip: Area,
    /// Where fragments are expected: what is worth cutting.
    busy: Area,
    /// Where the next band begins.
    low: i32,
    /// The band that is not complete: its upper edge and where its next box begins.
    band: Option<(i32, i32)>,
}

/// Sides that GPUs and software renderers like: a multiple of all common squares up to it.
const GRAIN: i32 = 16;
/// The smallest side of a box: shaders run for two by two pixels.
const SMALLEST: i32 = 2;

impl Tiles {
    /// Cuts `busy`; boxes at its edges reach to the edges of `clip`. None if there is nothing to cut.
    pub fn new(clip: Area, busy: Area) -> Option<Self> {
        let busy = busy.and(&clip);
        let sane = busy.left < busy.right && busy.low < busy.high && busy.pixels() <= PIXELS_MAX;
        sane.then_some(Self { clip, busy, low: busy.low, band: None })
    }

    /// Whether everything is covered.
    pub fn is_over(&self) -> bool {
        self.low >= self.busy.high
    }

    /// The next box, of about that share of the whole, and the share it has.
    pub fn next(&mut self, share: f64) -> Option<(Area, f64)> {
        if self.is_over() {
            return None;
        }
        let wanted = pixels(share, self.busy.pixels());
        let next = match self.band.take() {
            Some((high, left)) => self.part(high, left, wanted),
            None => self.begin(wanted),
        };
        let whole = self.busy.pixels() as f64;
        Some((self.reach(next), next.pixels() as f64 / whole))
    }

    /// A new band: complete, or the first part of it.
    fn begin(&mut self, wanted: i32) -> Area {
        let Area { left, right, high: end, .. } = self.busy;
        let rows = wanted / self.busy.width();
        if rows >= GRAIN.min(end - self.low) {
            let high = self.low.saturating_add(rows).min(end);
            let high = if high < end { (aligned(high, GRAIN)).max(self.low + 1) } else { high };
            let band = Area { left, low: self.low, right, high };
            self.low = high;
            return band;
        }
        let mut side = GRAIN;
        while side > SMALLEST && wanted < side.saturating_mul(side) {
            side /= 2;
        }
        let high = aligned(self.low.saturating_add(side), side).max(self.low + 1).min(end);
        self.part(high, left, wanted)
    }

    /// A part of a band, from `left` on.
    fn part(&mut self, high: i32, left: i32, wanted: i32) -> Area {
        let (low, end) = (self.low, self.busy.right);
        let side = (high - low).clamp(SMALLEST, GRAIN);
        let fits = (wanted / (high - low)).max(side);
        // Parts of equal width: what would be left over at the end costs as much as any.
        let parts = (end - left).saturating_sub(side / 2) / fits + 1;
        let even = left + (end - left) / parts;
        let up = aligned(even + side - 1, side);
        let right = if up - left <= fits { up } else { aligned(even, side) };
        let right = if parts == 1 { end } else { right.clamp(left + 1, end) };
        if right == end {
            self.low = high;
        } else {
            self.band = Some((high, right));
        }
        Area { left, low, right, high }
    }

    /// Boxes at the edges cover what lies beyond, too.
    fn reach(&self, inner: Area) -> Area {
        let (busy, clip) = (&self.busy, &self.clip);
        Area {
            left: if inner.left == busy.left { clip.left } else { inner.left },
            low: if inner.low == busy.low { clip.low } else { inner.low },
            right: if inner.right == busy.right { clip.right } else { inner.right },
            high: if inner.high == busy.high { clip.high } else { inner.high },
        }
    }
}

/// No target is larger; so numbers of pixels are small.
const PIXELS_MAX: u64 = 1 << 30;

#[expect(clippy::cast_possible_truncation, reason = "clamped to a range that fits")]
fn pixels(share: f64, all: u64) -> i32 {
    (share * all as f64).clamp(1.0, PIXELS_MAX as f64) as i32
}

/// The last multiple that is not beyond.
fn aligned(at: i32, grain: i32) -> i32 {
    at - at.rem_euclid(grain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn area(side: std::ops::Range<i32>) -> impl Strategy<Value = Area> {
        (-40..40_i32, -40..40_i32, side.clone(), side).prop_map(|(left, low, width, height)| Area {
            left,
            low,
            right: left + width,
            high: low + height,
        })
    }

    proptest! {
        #[test]
        fn every_pixel_is_covered_once(
            clip in area(1..150),
            busy in area(1..200),
            shares in prop::collection::vec(0.0..0.6_f64, 1..8),
        ) {
            let Some(mut tiles) = Tiles::new(clip, busy) else { return Ok(()) };
            let width = usize::try_from(clip.right - clip.left).unwrap();
            let mut seen = vec![0_u8; usize::try_from(clip.pixels()).unwrap()];
            let (mut sum, mut count) = (0.0, 0);
            while let Some((tile, share)) = tiles.next(shares[count % shares.len()]) {
                sum += share;
                count += 1;
                prop_assert_eq!(tile.and(&clip), tile);
                for y in tile.low..tile.high {
                    for x in tile.left..tile.right {
                        let at = |value: i32, from: i32| usize::try_from(value - from).unwrap();
                        seen[at(y, clip.low) * width + at(x, clip.left)] += 1;
                    }
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }

        #[test]
        fn boxes_are_hardly_larger_than_wanted(pieces in 2..400_u32) {
            let whole = Area { left: 0, low: 0, right: 1920, high: 1080 };
            let mut tiles = Tiles::new(whole, whole).unwrap();
            let wanted = 1.0 / f64::from(pieces);
            while let Some((_, share)) = tiles.next(wanted) {
                prop_assert!(share <= wanted * 1.1, "{} {}", share, wanted);
            }
        }
    }

    #[test]
    fn bands_are_as_wide_as_the_target_while_they_can() {
        let whole = Area { left: 0, low: 0, right: 640, high: 480 };
        let mut tiles = Tiles::new(whole, whole).unwrap();
        assert_eq!(tiles.next(0.11).unwrap().0, Area { left: 0, low: 0, right: 640, high: 48 });
        assert_eq!(tiles.next(0.01).unwrap().0, Area { left: 0, low: 48, right: 160, high: 64 });
        assert_eq!(tiles.next(1.0).unwrap().0, Area { left: 160, low: 48, right: 640, high: 64 });
        assert_eq!(tiles.next(1.0).unwrap().0, Area { left: 0, low: 64, right: 640, high: 480 });
        assert!(tiles.is_over() && tiles.next(1.0).is_none());
    }

    #[test]
    fn what_cannot_be_cut_is_said() {
        let whole = Area { left: 0, low: 0, right: 64, high: 64 };
        assert!(Tiles::new(whole, Area { left: 64, low: 0, right: 80, high: 64 }).is_none());
        assert!(Tiles::new(whole, Area { left: 5, low: 9, right: 5, high: 20 }).is_none());
        let huge = Area::new(0, 0, u32::MAX, u32::MAX);
        assert!(Tiles::new(huge, huge).is_none());
    }
}
