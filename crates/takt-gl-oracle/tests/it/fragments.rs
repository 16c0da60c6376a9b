//! The reference rasteriser counts the fragments that a driver draws.
//!
//! Estimates of fragments are judged by it, so it is judged here: random triangles in every
//! position, and glmark2's models.

use takt_gl_oracle::Canvas;
use takt_predict::fragments::raster::{DepthTest, Raster};
use takt_predict::fragments::{Cull, RasterState, Rect};
use takt_rng::Rng;

use crate::{driver, models, scenes};

struct Random(Rng);

impl Random {
    /// Between −1 and 1.
    fn float(&mut self) -> f32 {
        f32::from(u16::try_from(self.0.next_u64() >> 48).unwrap()) / 32_768.0 - 1.0
    }

    /// Anywhere around and within what is visible, also behind the viewer.
    fn triangle(&mut self) -> [[f32; 4]; 3] {
        std::array::from_fn(|_| {
            let w = 1.0 + 0.9 * self.float() - if self.float() > 0.9 { 2.0 } else { 0.0 };
            [1.5 * self.float(), 1.5 * self.float(), 1.2 * self.float(), w]
        })
    }
}

fn canvas(state: &RasterState, depth: DepthTest) -> Canvas {
    let place = |rect: Rect| {
        [rect.x, rect.y, i32::try_from(rect.width).unwrap(), i32::try_from(rect.height).unwrap()]
    };
    Canvas {
        size: state.target.map(|size| u16::try_from(size).unwrap()),
        viewport: place(state.viewport),
        scissor: state.scissor.map(place),
        cull_back: state.cull == Cull::Back,
        depth_test: depth != DepthTest::Disabled,
    }
}

fn sum(pixels: &[u8]) -> u64 {
    pixels.iter().map(|count| u64::from(*count)).sum()
}

#[test]
fn random_triangles_have_the_driver_s_fragments() {
    let Some(driver) = driver() else { return };
    let mut random = Random(Rng::seeded(11));
    let viewport = Rect { x: -10, y: 7, width: 110, height: 60 };
    let scissor = Some(Rect { x: 5, y: 3, width: 50, height: 80 });
    let whole = RasterState::new(96, 64);
    let states =
        [whole, RasterState { cull: Cull::Back, ..whole }, RasterState { viewport, scissor, ..whole }];
    let (mut all, mut wrong) = (0, 0);
    for state in states {
        let mut raster = Raster::new(&state, DepthTest::Disabled);
        for _ in 0..300 {
            let triangle = random.triangle();
            let theirs = sum(&driver.fragments(&canvas(&state, DepthTest::Disabled), &[triangle]).unwrap());
            let ours = raster.triangle(&triangle);
            all += theirs;
            wrong += ours.abs_diff(theirs);
            // Where a triangle is clipped, corners are rounded on the way: some pixels on its edges.
            assert!(ours.abs_diff(theirs) <= 8 + theirs / 200, "{triangle:?}: {ours}, driver {theirs}");
        }
    }
    println!("{wrong} of {all} fragments differ");
    assert!(wrong * 2000 < all, "{wrong} of {all}");
}

#[test]
fn models_have_the_driver_s_fragments() {
    let Some(driver) = driver() else { return };
    let Some(folder) = models::folder() else {
        eprintln!("SKIPPED: glmark2-data is not installed (make setup installs it)");
        return;
    };
    for frames in scenes::all(&folder) {
        for depth in [DepthTest::Disabled, frames.depth] {
            let (mut ours, mut theirs) = (0.0, 0.0);
            for turn in 0..6 {
                let groups = frames.at(17.0 + 60.0 * f64::from(turn));
                ours += frames.count(&groups, depth).iter().sum::<f64>();
                let triangles: Vec<_> = groups.iter().flat_map(|group| group.triangles()).collect();
                theirs += sum(&driver.fragments(&canvas(&frames.state, depth), &triangles).unwrap()) as f64;
            }
            let difference = ours / theirs - 1.0;
            println!(
                "{:16} {depth:?}: {ours} of {theirs} fragments, {:+.4} %",
                frames.name,
                difference * 100.0
            );
            assert!(difference.abs() < 1e-4, "{} {depth:?}: {ours}, driver {theirs}", frames.name);
        }
    }
}
