//! Which ways of cutting change nothing on the driver at hand: each is tried, and values are compared bit by bit.
//!
//! Pieces are made by the very code that cuts draws of programs ([`takt_gl::slice`]): ranges of all sizes, bands, and
//! boxes down to the smallest. Each [`State`] is tried by itself at each number of samples that the driver has, and
//! blended as well: then a fragment that is drawn twice shows, which opaque ones hide most of the time.

mod fill;
mod scene;
mod target;

use takt_gl::shadow::drawing::{Drawing, VertexSource};
use takt_gl::slice::{Area, Cut, Cuttable as _, Tiles};
use takt_gl_api::gl;
use takt_gl_driver::{Gl, Targets};
use takt_predict::exactness::{Case, Exactness, SAMPLES, State, Way};

use crate::{Bench, Problem};
use scene::{Recording, Scene, Shape};
use target::{FORMATS, Format, Kind, SIZE, Target};

/// How large pieces are, as shares of the draw, in turn: large ones, small ones, the smallest.
const SHARES: [&[f64]; 3] = [&[0.34], &[0.11, 0.04, 0.02], &[0.004, 0.3, 0.001]];

/// Tries all ways of cutting in all states.
///
/// # Errors
///
/// If the driver lacks what every driver of GL ES 3.0 has, or refuses a plain program.
pub fn exactness(bench: &Bench) -> Result<Exactness, Problem> {
    let targets = Targets::load()?;
    let mut found = Exactness::default();
    let limit = bench.gl.integer(gl::MAX_SAMPLES).max(1);
    for samples in SAMPLES.into_iter().filter(|samples| *samples <= limit) {
        shapes(&bench.gl, targets, &[Kind::Texture, Kind::Renderbuffer], samples, &mut found)?;
        for (kind, state) in [(Kind::Texture, State::Texture), (Kind::Renderbuffer, State::Renderbuffer)] {
            triangles(&bench.gl, targets, (kind, FORMATS[0], state), samples, &mut found)?;
        }
        for format in FORMATS {
            triangles(&bench.gl, targets, (Kind::Renderbuffer, format, format.state), samples, &mut found)?;
        }
        let surface = bench.on_surface(samples, SIZE.into(), |gl| {
            shapes(gl, targets, &[Kind::Surface], samples, &mut found)?;
            triangles(gl, targets, (Kind::Surface, FORMATS[0], State::Surface), samples, &mut found)
        });
        surface.transpose()?;
    }
    for format in FORMATS {
        fill::blits(&bench.gl, targets, format, &mut found)?;
    }
    recorded(&bench.gl, &mut found);
    bench.recover();
    Ok(found)
}

/// What vertex shaders compute, recorded whole and in ranges.
fn recorded(gl: &Gl, found: &mut Exactness) {
    let Some(recording) = Recording::new(gl) else {
        return;
    };
    for mode in [gl::POINTS, gl::LINES, gl::TRIANGLES] {
        let drawing = Shape::list(mode).drawing();
        let whole = recording.values(mode, |draw| draw(drawing));
        for shares in SHARES {
            let ranges = recording.values(mode, |draw| {
                let (mut cut, mut shares) = (Cut::new(drawing, true, None), shares.iter().cycle());
                while let Some(piece) = shares.next().and_then(|share| cut.next(*share)) {
                    draw(piece.drawing);
                }
            });
            // Only the bits count.
            let bits =
                |values: &[[f32; 4]]| values.iter().map(|value| value.map(f32::to_bits)).collect::<Vec<_>>();
            let (whole, ranges) = (whole.as_deref().map(bits), ranges.as_deref().map(bits));
            let differing = match (whole, ranges) {
                (Some(whole), Some(ranges)) => {
                    whole.iter().zip(&ranges).filter(|(one, other)| one != other).count()
                }
                _ => usize::MAX,
            };
            // Nothing that is recorded depends on samples.
            for samples in SAMPLES {
                found.found(Case { way: Way::Ranges, samples, state: State::Feedback }, differing as u64);
            }
        }
    }
}

/// Primitives, blending and tests, on the first of these kinds that there is. Samples of textures can be told apart;
/// render buffers and surfaces only show their mean.
fn shapes(
    gl: &Gl,
    targets: Targets,
    kinds: &[Kind],
    samples: u32,
    found: &mut Exactness,
) -> Result<(), Problem> {
    let open = |kind: &Kind| Target::new(gl, targets, *kind, FORMATS[0], samples);
    let Some(target) = kinds.iter().find_map(open) else {
        return Ok(());
    };
    let scene = Scene::new(gl, targets, FORMATS[0].vector)?;
    let mut trial = Trial { scene: &scene, target: &target, samples, found };
    for shape in Shape::all(targets) {
        trial.shape(shape, shape.state());
        trial.shape(shape.blended(), shape.state());
    }
    trial.shape(Shape::TRIANGLES.blended(), State::Blend);
    trial.shape(Shape::TRIANGLES.tested(), State::Tests);
    trial.clears();
    Ok(())
}

/// Triangles on a kind of target in a format, which is that state.
fn triangles(
    gl: &Gl,
    targets: Targets,
    (kind, format, state): (Kind, Format, State),
    samples: u32,
    found: &mut Exactness,
) -> Result<(), Problem> {
    let Some(target) = Target::new(gl, targets, kind, format, samples) else {
        return Ok(());
    };
    let scene = Scene::new(gl, targets, format.vector)?;
    let mut trial = Trial { scene: &scene, target: &target, samples, found };
    trial.shape(Shape::TRIANGLES, state);
    if state != State::Integer {
        trial.shape(Shape::TRIANGLES.blended(), state);
        trial.clears();
    }
    Ok(())
}

/// What is drawn where, and what is found.
struct Trial<'a> {
    scene: &'a Scene<'a>,
    target: &'a Target<'a>,
    samples: u32,
    found: &'a mut Exactness,
}

impl Trial<'_> {
    /// Draws a shape whole and in pieces, and notes how many values differ.
    fn shape(&mut self, shape: Shape, state: State) {
        for clip in CLIPS {
            let whole = self.values(shape, clip, |drawing| self.scene.draw(drawing));
            for (way, shares) in Way::ALL.into_iter().flat_map(|way| SHARES.map(|shares| (way, shares))) {
                let pieces = self.values(shape, clip, |drawing| self.in_pieces(drawing, way, clip, shares));
                self.found.found(Case { way, samples: self.samples, state }, differing(&whole, &pieces));
            }
        }
    }

    /// What is on the target after a shape was drawn.
    fn values(&self, shape: Shape, clip: Option<Area>, draw: impl FnOnce(Drawing)) -> (Vec<u8>, usize) {
        self.target.bind();
        self.scene.clear();
        self.scene.begin(shape, clip);
        draw(shape.drawing());
        self.scene.end(shape);
        self.target.read()
    }

    fn in_pieces(&self, drawing: Drawing, way: Way, clip: Option<Area>, shares: &[f64]) {
        let whole = Area::new(0, 0, SIZE[0], SIZE[1]);
        let tiles = Tiles::new(clip.unwrap_or(whole), whole).filter(|_| way == Way::Boxes);
        let mut cut = Cut::new(drawing, way == Way::Ranges, tiles);
        let mut shares = shares.iter().cycle();
        while let Some(piece) = shares.next().and_then(|share| cut.next(*share)) {
            match &piece.area {
                Some(area) => self.scene.within(area, clip, || self.scene.draw(piece.drawing)),
                None => self.scene.draw(piece.drawing),
            }
        }
    }
}

/// The program's own scissor: none, and one off the grain of boxes.
const CLIPS: [Option<Area>; 2] = [None, Some(Area { left: 13, low: 7, right: 74, high: 66 })];

fn differing((whole, bytes): &(Vec<u8>, usize), (pieces, _): &(Vec<u8>, usize)) -> u64 {
    let pairs = whole.chunks_exact(*bytes).zip(pieces.chunks_exact(*bytes));
    pairs.filter(|(whole, piece)| whole != piece).count() as u64
}

/// The first vertex of a drawing.
fn first(drawing: &Drawing) -> usize {
    match drawing.source {
        VertexSource::Arrays { first } => usize::try_from(first).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
