//! Cutting a clear or a blit into bands and boxes of pixels.

use super::slicer::Cuttable;
use super::tiles::{Area, Tiles};

/// Some of the pixels of a clear or blit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Band {
    /// Where.
    pub area: Area,
    /// How many pixels are there.
    pub pixels: u64,
    /// What does it.
    pub fill: Fill,
    /// Their share of all.
    pub share: f64,
}

/// What sets pixels without a draw.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fill {
    /// `glClear` and its like.
    Clear,
    /// `glBlitFramebuffer` and its like.
    Blit,
}

/// What is left of a clear or blit.
#[derive(Clone, Debug)]
pub struct Bands {
    tiles: Tiles,
    fill: Fill,
    /// The share that the smallest band has.
    least: f64,
}

impl Bands {
    /// Everything in `clip`, of which `busy` takes time, in bands of so many pixels at least; none if there is nothing
    /// to do.
    pub fn new(fill: Fill, clip: Area, busy: Area, least: u64) -> Option<Self> {
        let tiles = Tiles::new(clip, busy)?;
        let least = least as f64 / busy.and(&clip).pixels().max(1) as f64;
        Some(Self { tiles, fill, least })
    }
}

impl Cuttable for Bands {
    type Piece = Band;

    fn is_over(&self) -> bool {
        self.tiles.is_over()
    }

    fn share(piece: &Band) -> f64 {
        piece.share
    }

    fn next(&mut self, share: f64) -> Option<Band> {
        let (area, share) = self.tiles.next(share.max(self.least))?;
        Some(Band { area, pixels: area.pixels(), fill: self.fill, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_each_pixel_once() {
        let whole = Area::new(0, 0, 64, 48);
        for shares in [&[1.0][..], &[0.3], &[0.001, 0.02], &[0.01, 0.5, 0.0]] {
            let mut bands = Bands::new(Fill::Clear, whole, whole, 0).expect("something to clear");
            let mut seen = vec![0_u32; 64 * 48];
            let mut shares = shares.iter().cycle();
            let mut sum = 0.0;
            while let Some(band) = bands.next(*shares.next().expect("endless")) {
                sum += band.share;
                for y in band.area.low..band.area.high {
                    for x in band.area.left..band.area.right {
                        seen[usize::try_from(y * 64 + x).expect("inside")] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|times| *times == 1));
            assert!(bands.is_over() && f64::abs(sum - 1.0) < 1e-9);
        }
        assert!(Bands::new(Fill::Blit, whole, Area::new(70, 0, 5, 5), 0).is_none(), "nothing is there");
    }

    #[test]
    fn no_band_is_smaller_than_what_is_short_everywhere() {
        let whole = Area::new(0, 0, 256, 256);
        let mut bands = Bands::new(Fill::Blit, whole, whole, 256 * 64).expect("something to copy");
        let pieces = std::iter::from_fn(|| bands.next(0.0)).count();
        assert_eq!(pieces, 4);
    }
}
