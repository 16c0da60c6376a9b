//! What is drawn: primitives of all sizes and places, each with colours, depths and slopes of its own.

use takt_gl::shadow::drawing::{Drawing, VertexSource};
use takt_gl::slice::Area;
use takt_gl_api::gl;
use takt_gl_driver::{Feedback, Gl, Mesh, Targets};
use takt_rng::Rng;

use takt_predict::exactness::State;

use super::first;
use crate::Problem;

/// Vertices of the scene: as many as points, lines and triangles can share.
const VERTICES: usize = 150;
/// Width of wide lines, and size of points.
const WIDE: f32 = 5.0;

/// Something to draw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    mode: u32,
    width: f32,
    /// Capabilities that are enabled meanwhile.
    capabilities: &'static [u32],
}

impl Shape {
    pub(super) const TRIANGLES: Self = Self { mode: gl::TRIANGLES, width: 1.0, capabilities: &[] };

    /// All primitives that the driver has.
    pub(super) fn all(targets: Targets) -> impl Iterator<Item = Self> {
        let thin = [gl::TRIANGLES, gl::POINTS, gl::LINES].map(|mode| Self { mode, ..Self::TRIANGLES });
        let width = WIDE.min(targets.range_end(gl::ALIASED_LINE_WIDTH_RANGE));
        let wide = Self { mode: gl::LINES, width, ..Self::TRIANGLES };
        thin.into_iter().chain(Some(wide).filter(|wide| wide.width > 1.0))
    }

    /// The same, blended.
    pub(super) const fn blended(self) -> Self {
        Self { capabilities: &[gl::BLEND], ..self }
    }

    /// The same with depth and stencil tests.
    pub(super) const fn tested(self) -> Self {
        Self { capabilities: &[gl::DEPTH_TEST, gl::STENCIL_TEST], ..self }
    }

    pub(super) fn state(self) -> State {
        match self.mode {
            gl::POINTS => State::Points,
            gl::LINES if self.width > 1.0 => State::WideLines,
            gl::LINES => State::Lines,
            _ => State::Triangles,
        }
    }

    /// Lists of the same primitives.
    pub(super) const fn list(mode: u32) -> Self {
        Self { mode, ..Self::TRIANGLES }
    }

    pub(super) fn drawing(self) -> Drawing {
        let (mode, source) = (self.mode, VertexSource::Arrays { first: 0 });
        Drawing::new(mode, source, i32::try_from(VERTICES).unwrap_or(0), 1)
    }
}

/// Vertices, and a program that draws them.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    gl: &'a Gl,
    targets: Targets,
    mesh: Mesh,
    program: u32,
}

/// Vertices that are recorded.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    gl: &'a Gl,
    feedback: Feedback,
    mesh: Mesh,
    program: u32,
}

impl<'a> Recording<'a> {
    /// Something to record, if the driver records at all.
    pub(super) fn new(gl: &'a Gl) -> Option<Self> {
        let feedback = Feedback::load().ok()?;
        let fragment =
            "#version 300 es\nprecision highp float; in vec4 p; out vec4 c; void main() { c = p; }";
        let program = feedback.program(gl, VERTEX, fragment, "p").ok()?;
        Some(Self { gl, feedback, mesh: Mesh::new(gl, &[4, 4], &vertices(), &[]), program })
    }

    /// The primitives that transform feedback records of such a draw.
    pub(super) fn values(&self, mode: u32, draw: impl FnOnce(&dyn Fn(Drawing))) -> Option<Vec<[f32; 4]>> {
        let range = |drawing: Drawing| {
            let count = usize::try_from(drawing.count).unwrap_or(0);
            self.gl.draw_range(mode, &self.mesh, first(&drawing), count);
        };
        self.gl.use_program(self.program);
        self.feedback.record(self.gl, mode, VERTICES, || draw(&range))
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.gl.delete_program(self.program);
    }
}

const VERTEX: &str = "#version 300 es\n\
    in vec4 at; in vec4 tint; out vec4 p; flat out float kind; \
    void main() { p = tint; kind = float(gl_VertexID % 7) / 7.0; gl_PointSize = 1.0 + float(gl_VertexID % 9); gl_Position = at; }";

impl<'a> Scene<'a> {
    /// A scene for targets whose shaders write that kind of vector.
    pub(super) fn new(gl: &'a Gl, targets: Targets, vector: &str) -> Result<Self, Problem> {
        let scale = if vector == "uvec4" { "uvec4(c * 255.0)" } else { "c" };
        let fragment = format!(
            "#version 300 es\nprecision highp float; in vec4 p; flat in float kind; out highp {vector} colour; \
             void main() {{ vec4 c = fract(p * 3.7 + vec4(kind, gl_FragCoord.xy * 0.013, dFdx(p.x) * 5.0)); \
             c = 0.9 * c + (gl_FrontFacing ? 0.1 : 0.0); colour = {scale}; }}"
        );
        let refused = |reason| Problem::Refused { what: "the program of the self-test", reason };
        let program = gl.program(VERTEX, &fragment, &["at", "tint"]).map_err(refused)?;
        Ok(Self { gl, targets, mesh: Mesh::new(gl, &[4, 4], &vertices(), &[]), program })
    }

    /// Nothing is on the target.
    pub(super) fn clear(&self) {
        self.gl.disable(gl::SCISSOR_TEST);
        self.gl.clear_color(0.2, 0.3, 0.4, 0.5);
        self.gl.clear(gl::COLOR_BUFFER_BIT | gl::DEPTH_BUFFER_BIT | gl::STENCIL_BUFFER_BIT);
    }

    /// Clears set other values from now on: some that lie between what formats can hold.
    pub(super) fn other_clear_values(&self) {
        self.gl.clear_color(0.7, 0.1, 0.9, 0.45);
    }

    /// Clears everything within the scissor.
    pub(super) fn clear_all(&self) {
        self.gl.clear(gl::COLOR_BUFFER_BIT | gl::DEPTH_BUFFER_BIT | gl::STENCIL_BUFFER_BIT);
    }

    /// State for a shape.
    pub(super) fn begin(&self, shape: Shape, clip: Option<Area>) {
        self.gl.use_program(self.program);
        self.targets.line_width(shape.width);
        shape.capabilities.iter().for_each(|capability| self.gl.enable(*capability));
        self.gl.usual_functions();
        self.targets.stencil_func(gl::GREATER, 3, 0xff);
        self.targets.stencil_op(gl::KEEP, gl::INCR, gl::INCR);
        if let Some(clip) = clip {
            self.gl.enable(gl::SCISSOR_TEST);
            self.scissor(&clip);
        }
    }

    /// And nothing of it afterwards.
    pub(super) fn end(&self, shape: Shape) {
        let scissor = std::iter::once(&gl::SCISSOR_TEST);
        scissor.chain(shape.capabilities).for_each(|capability| self.gl.disable(*capability));
    }

    /// Draws, as the client does it.
    pub(super) fn draw(&self, drawing: Drawing) {
        let count = usize::try_from(drawing.count).unwrap_or(0);
        self.gl.draw_range(drawing.mode, &self.mesh, first(&drawing), count);
    }

    /// Draws with the scissor narrowed to a box, as the client does it.
    pub(super) fn within(&self, area: &Area, clip: Option<Area>, draw: impl FnOnce()) {
        self.scissor(area);
        self.gl.enable(gl::SCISSOR_TEST);
        draw();
        match clip {
            Some(clip) => self.scissor(&clip),
            None => self.gl.disable(gl::SCISSOR_TEST),
        }
    }

    fn scissor(&self, area: &Area) {
        self.gl.scissor(area.left, area.low, area.right - area.left, area.high - area.low);
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        self.gl.delete_program(self.program);
    }
}

/// Large primitives and small ones, with a position and a colour each.
fn vertices() -> Vec<f32> {
    let mut rng = Rng::seeded(5);
    let mut number = |scale: f64| (rng.unit() * 2.0 - 1.0) * scale;
    let mut all = Vec::with_capacity(VERTICES * 8);
    for primitive in 0..VERTICES / 6 {
        let (scale, at) = (if primitive % 3 == 0 { 1.4 } else { 0.15 }, [number(0.9), number(0.9)]);
        for _ in 0..6 {
            let place = [at[0] + number(scale), at[1] + number(scale), number(0.9), 1.0];
            let tint = [number(1.0), number(1.0), number(1.0), number(1.0)];
            #[expect(clippy::cast_possible_truncation, reason = "what is rounded off does not matter")]
            all.extend(place.into_iter().chain(tint).map(|value| value as f32));
        }
    }
    all
}
