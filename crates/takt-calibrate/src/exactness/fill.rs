//! Clears and blits, whole and in bands.

use takt_gl::slice::{Area, Bands, Cuttable as _, Fill};
use takt_gl_api::gl;
use takt_gl_driver::{Gl, Targets};
use takt_predict::exactness::{Case, Exactness, State, Way};

use super::scene::{Scene, Shape};
use super::target::{Format, Kind, SIZE, Target};
use super::{CLIPS, SHARES, Trial, differing};
use crate::Problem;

/// Numbers of samples of what is copied from.
const SOURCES: [u32; 2] = [1, 4];

impl Trial<'_> {
    /// Clears the target whole and in bands.
    pub(super) fn clears(&mut self) {
        for clip in CLIPS {
            let whole = self.cleared(clip, &|| self.scene.clear_all());
            for shares in SHARES {
                let clear = || self.scene.clear_all();
                let bands = self.cleared(clip, &|| in_bands(self.scene, Fill::Clear, clip, shares, &clear));
                let case = Case { way: Way::Boxes, samples: self.samples, state: State::Clear };
                self.found.found(case, differing(&whole, &bands));
            }
        }
    }

    /// What is on the target afterwards. What tests let through then shows depth and stencil as well.
    fn cleared(&self, clip: Option<Area>, clear: &dyn Fn()) -> (Vec<u8>, usize) {
        self.values(Shape::TRIANGLES.tested(), clip, |drawing| {
            self.scene.draw(drawing);
            self.scene.other_clear_values();
            clear();
            self.scene.draw(drawing);
        })
    }
}

/// Copies between targets of a format, whole and in bands: as it is, and turned round and scaled with a filter. A
/// target with samples cannot be copied to.
pub(super) fn blits(gl: &Gl, targets: Targets, format: Format, found: &mut Exactness) -> Result<(), Problem> {
    let Some(to) = Target::new(gl, targets, Kind::Texture, format, 1) else {
        return Ok(());
    };
    let scene = Scene::new(gl, targets, format.vector)?;
    let [width, height] = SIZE.map(u32::cast_signed);
    let all = [0, 0, width, height];
    for samples in SOURCES {
        let Some(from) = Target::new(gl, targets, Kind::Renderbuffer, format, samples) else {
            continue;
        };
        let turned = [width - 3, 5, 2, height];
        let filter = if format.state == State::Integer { gl::NEAREST } else { gl::LINEAR };
        let copies = [(all, gl::NEAREST), (turned, filter)];
        // Samples are resolved where they are.
        for (place, filter) in copies.into_iter().take(if samples == 1 { 2 } else { 1 }) {
            for clip in CLIPS {
                let values = |copy: &dyn Fn(&dyn Fn())| {
                    from.bind();
                    scene.clear();
                    scene.begin(Shape::TRIANGLES, None);
                    scene.draw(Shape::TRIANGLES.drawing());
                    scene.end(Shape::TRIANGLES);
                    to.bind();
                    scene.clear();
                    from.bind_to_read();
                    scene.begin(Shape::TRIANGLES, clip);
                    copy(&|| targets.blit(all, place, gl::COLOR_BUFFER_BIT, filter));
                    scene.end(Shape::TRIANGLES);
                    to.bind();
                    to.read()
                };
                let whole = values(&|blit| blit());
                for shares in SHARES {
                    let bands = values(&|blit| in_bands(&scene, Fill::Blit, clip, shares, blit));
                    let case = Case { way: Way::Boxes, samples: 1, state: State::Blit };
                    found.found(case, differing(&whole, &bands));
                }
            }
        }
    }
    Ok(())
}

fn in_bands(scene: &Scene<'_>, fill: Fill, clip: Option<Area>, shares: &[f64], call: &dyn Fn()) {
    let whole = Area::new(0, 0, SIZE[0], SIZE[1]);
    let Some(mut bands) = Bands::new(fill, clip.unwrap_or(whole), whole, 0) else {
        return;
    };
    let mut shares = shares.iter().cycle();
    while let Some(band) = shares.next().and_then(|share| bands.next(*share)) {
        scene.within(&band.area, clip, call);
    }
}
