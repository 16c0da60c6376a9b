//! What one vertex or one fragment of a generated program costs.
//!
//! The same is drawn with few and with many of them, in turns; the difference is theirs alone, and
//! what a group and a draw cost is in neither.

use takt_predict::cost::FragmentState;
use takt_predict::shaders::Submodel;

use super::Plan;
use super::generate::{Generated, VARIABLES_MAX};
use crate::Problem;
use crate::bench::{Bench, Effort};
use crate::random;
use takt_gl_api::gl::{
    COLOR_BUFFER_BIT, DEPTH_BUFFER_BIT, MAX_TEXTURE_SIZE, MAX_VARYING_VECTORS, MAX_VERTEX_ATTRIBS,
    TEXTURE_2D, TRIANGLE_STRIP, TRIANGLES,
};
use takt_gl_driver::{Gl, Vertices};

const NAMES: [&str; VARIABLES_MAX as usize] = ["a0", "a1", "a2", "a3", "a4", "a5"];
/// Vertices, and pixels of a side, that are few.
const FEW: u32 = 300;
const SMALL: u32 = 64;
/// Draws need not be longer than this: a draw that is shorter than what a busy machine gives to one
/// program at a time is sometimes not disturbed at all.
const ENOUGH_NS: f64 = 1_500_000.0;
const ONCE: Effort = Effort { repeats_min: 2, repeats_max: 2 };
/// Work on GPUs is repeated until it takes this long, or so often.
const LONG_NS: f64 = 300_000.0;
const COPIES_MAX: u32 = 64;

/// What all jobs draw with.
pub(super) struct Stand {
    /// Vertices that are all in one place.
    place: Vertices,
    rectangle: Vertices,
    /// A texture of one texel.
    texel: u32,
    effort: Effort,
    vertices: u32,
    side: u32,
}

impl Stand {
    pub(super) fn new(bench: &mut Bench, plan: &Plan) -> Result<Self, Problem> {
        bench.resize(plan.side, plan.side)?;
        let gl = &bench.gl;
        let limits = [gl.integer(MAX_VERTEX_ATTRIBS), gl.integer(MAX_VARYING_VECTORS)];
        if limits.iter().any(|limit| *limit < VARIABLES_MAX) {
            let reason = format!("it has {limits:?} of them, and {VARIABLES_MAX} are needed");
            return Err(Problem::Refused { what: "many attributes and varyings", reason });
        }
        gl.clear(COLOR_BUFFER_BIT | DEPTH_BUFFER_BIT);
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
        let corners: Vec<f32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0.0, 1.0]).collect();
        let place = [0.13_f32, 0.29, 0.41, 0.53].repeat(plan.vertices as usize);
        Ok(Self {
            place: Vertices::new(gl, NAMES.len(), &place),
            rectangle: Vertices::new(gl, 1, &corners),
            texel: texture(gl, 1, 1),
            effort: plan.effort,
            vertices: plan.vertices,
            side: plan.side,
        })
    }

    /// Nanoseconds per vertex or fragment; none if the driver refuses the program.
    pub(super) fn measure(
        &self,
        bench: &Bench,
        submodel: Submodel,
        job: &Generated,
    ) -> Result<Option<f64>, Problem> {
        let gl = &bench.gl;
        let names = &NAMES[..job.attributes.len()];
        let Ok(program) = gl.program(&job.vertex, &job.fragment, names) else { return Ok(None) };
        gl.use_program(program);
        gl.bind_texture(TEXTURE_2D, self.texel);
        let ns = match submodel {
            Submodel::VertexAux | Submodel::VertexCommands => {
                let draw = |count: u32| gl.draw(TRIANGLES, count, &self.place, &job.attributes);
                let few_ns = bench.time(ONCE, &mut || draw(FEW)).ns;
                let many = enough_vertices(few_ns, self.vertices);
                self.rate(bench, f64::from(many - FEW), &|| draw(FEW), &|| draw(many))
            }
            Submodel::FragmentAux | Submodel::FragmentCommands => {
                bench.set_state(job.state);
                let small_ns = bench.time(ONCE, &mut || self.fill(gl, SMALL)).ns;
                let large = enough_pixels(small_ns, self.side);
                let more = pixels(large) - pixels(SMALL);
                let ns = self.rate(bench, more, &|| self.fill(gl, SMALL), &|| self.fill(gl, large));
                bench.set_state(FragmentState::default());
                ns
            }
            Submodel::Texture => {
                let most = gl.integer(MAX_TEXTURE_SIZE);
                let texture = texture(gl, job.texture.width.min(most), job.texture.height.min(most));
                let side = self.side / 2;
                let fill = |texture| {
                    gl.bind_texture(TEXTURE_2D, texture);
                    self.fill(gl, side);
                };
                let ns = self.rate(bench, pixels(side), &|| fill(self.texel), &|| fill(texture));
                gl.delete_texture(texture);
                ns
            }
        };
        gl.delete_program(program);
        bench.check("a generated shader")?;
        Ok(Some(ns))
    }

    fn fill(&self, gl: &Gl, side: u32) {
        gl.viewport(0, 0, side.cast_signed(), side.cast_signed());
        gl.draw(TRIANGLE_STRIP, 4, &self.rectangle, &[4]);
    }

    /// Time per unit, of which `more` has so many more than `less`.
    fn rate(&self, bench: &Bench, units: f64, less: &dyn Fn(), more: &dyn Fn()) -> f64 {
        let copies = copies(bench, more);
        let many = |work: &dyn Fn()| (0..copies).for_each(|_| work());
        let ns = bench.difference(self.effort, &mut || many(less), &mut || many(more));
        // Noise can leave less than nothing of a cheap shader.
        (ns / units / f64::from(copies)).max(0.0)
    }
}

fn pixels(side: u32) -> f64 {
    f64::from(side) * f64::from(side)
}

/// Vertices that take long enough, if few of them take so long.
fn enough_vertices(few_ns: f64, most: u32) -> u32 {
    let wanted = [1, 3, 10, 30, 100].map(|times| times * FEW * 3);
    let long = |count: &u32| few_ns * f64::from(*count) / f64::from(FEW) >= ENOUGH_NS;
    wanted.into_iter().find(long).unwrap_or(most).clamp(FEW * 3, most / 3 * 3)
}

/// The side of a square that takes long enough, if a small one takes so long.
fn enough_pixels(small_ns: f64, most: u32) -> u32 {
    let long = |side: &u32| small_ns * pixels(*side) / pixels(SMALL) >= ENOUGH_NS;
    (2..).map(|times| times * SMALL).take_while(|side| *side < most).find(long).unwrap_or(most)
}

/// How often to draw the same, for a time that can be measured well. A renderer on the CPU is slow
/// enough, and leaves out what is drawn over.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn copies(bench: &Bench, work: &dyn Fn()) -> u32 {
    if bench.is_software() {
        return 1;
    }
    let once = bench.time(ONCE, &mut || work());
    (LONG_NS / once.ns.max(1.0)).ceil().clamp(1.0, f64::from(COPIES_MAX)) as u32
}

fn texture(gl: &Gl, width: u32, height: u32) -> u32 {
    let texture = gl.new_texture();
    gl.bind_texture(TEXTURE_2D, texture);
    gl.linear_lookup(true);
    let noise =
        random::noise(u64::from(width) << 32 | u64::from(height), width as usize * height as usize * 4);
    gl.upload(width, height, Some(&noise));
    texture
}
