//! What a vertex and a fragment of a noted program cost.
//!
//! The program is drawn with values that are plausible, because those it has in its app are not
//! known here. Where its triangle lands with them is looked at first: a fragment's time is that of
//! the triangle, divided by the pixels that it covers in fact.

use takt_predict::cost::{ProfilingRun, ShaderRates};
use takt_predict::profile::Profile;
use takt_predict::programs::Sources;

use crate::Problem;
use crate::bench::{Bench, Effort};
use crate::random;
use takt_gl_api::gl::{COLOR_BUFFER_BIT, TEXTURE_2D, TEXTURE_CUBE_MAP, TRIANGLES};
use takt_gl_driver::{Gl, Vertices};
use takt_gl_driver::{UNIT_2D, UNIT_CUBE};

/// Vertices of triangles without an area.
const VERTICES: u32 = 30_000;
/// The target, on a GPU and on a renderer that needs the CPU for it.
const TARGET: [u32; 2] = [1024, 768];
const SOFTWARE_TARGET: [u32; 2] = [320, 240];
/// Side of textures.
const TEXTURE_SIDE: u32 = 64;
/// Attributes that vertices have at most.
const ATTRIBUTES_MAX: usize = 16;
/// A triangle that covers less than this share of the target says nothing about fragments.
const COVERED_MIN: f64 = 0.02;
/// Work on GPUs is repeated until it takes this long, or so often.
const LONG_NS: f64 = 1_000_000.0;
const COPIES_MAX: u32 = 64;
const ONCE: Effort = Effort { repeats_min: 2, repeats_max: 2 };

/// Why a program was not measured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unmeasured {
    /// It does not compile or link.
    #[error("the driver refuses it by itself: {0}")]
    Refused(String),
    /// It draws nothing.
    #[error("with made-up values its triangles cover nothing")]
    CoversNothing,
    /// It cannot be drawn.
    #[error("{0}")]
    Failed(#[from] Problem),
}

/// Measures programs on a GPU whose constants are known, each by itself. `progress` hears how many
/// are done.
///
/// # Errors
///
/// If the driver has no target for it.
pub fn measure(
    bench: &mut Bench,
    profile: &Profile,
    programs: &[Sources],
    quick: bool,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Result<ShaderRates, Unmeasured>>, Problem> {
    let effort = if quick { Effort::QUICK } else { Effort::THOROUGH };
    let target = if bench.is_software() { SOFTWARE_TARGET } else { TARGET };
    bench.resize(target[0], target[1])?;
    let stand = Setup::new(bench, target, effort);
    let mut all = Vec::with_capacity(programs.len());
    for sources in programs {
        progress(all.len());
        let rates = stand.rates(bench, profile, sources);
        if rates.is_err() {
            bench.recover();
        }
        all.push(rates);
    }
    stand.delete(&bench.gl);
    Ok(all)
}

/// What all programs are drawn with.
struct Setup {
    /// Vertices that are all in one place.
    place: Vertices,
    /// A triangle that covers half a target.
    half: Vertices,
    textures: [u32; 2],
    target: [u32; 2],
    effort: Effort,
}

impl Setup {
    fn new(bench: &Bench, target: [u32; 2], effort: Effort) -> Self {
        let gl = &bench.gl;
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]];
        let corners: Vec<f32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0.0, 1.0]).collect();
        let place = [0.5_f32, 0.5, 0.0, 1.0].repeat(VERTICES as usize);
        Self {
            place: Vertices::new(gl, ATTRIBUTES_MAX, &place),
            half: Vertices::new(gl, ATTRIBUTES_MAX, &corners),
            textures: textures(gl),
            target,
            effort,
        }
    }

    fn rates(
        &self,
        bench: &Bench,
        profile: &Profile,
        Sources { vertex, fragment }: &Sources,
    ) -> Result<ShaderRates, Unmeasured> {
        let gl = &bench.gl;
        let covered = self.covered(gl, vertex)?;
        let program = gl.program(vertex, fragment, &[]).map_err(Unmeasured::Refused)?;
        let inputs = prepare(gl, program);
        // Should a program put its vertices where it likes, they cover one pixel at most.
        gl.viewport(0, 0, 1, 1);
        let vertex = self.run(bench, VERTICES / 3, &|| gl.draw_at(TRIANGLES, VERTICES, &self.place, &inputs));
        self.whole_target(gl);
        let fragment = self.run(bench, 1, &|| gl.draw_at(TRIANGLES, 3, &self.half, &inputs));
        gl.delete_program(program);
        bench.check("a noted program")?;
        // Triangles are taken to cover a half.
        Ok(ShaderRates::profiled(&vertex, &fragment, covered * 2, profile))
    }

    /// Pixels that the triangle covers by a vertex shader, seen by a fragment shader of ours.
    fn covered(&self, gl: &Gl, vertex: &str) -> Result<u64, Unmeasured> {
        let program = gl.program(vertex, &white(vertex), &[]).map_err(Unmeasured::Refused)?;
        let inputs = prepare(gl, program);
        self.whole_target(gl);
        gl.clear(COLOR_BUFFER_BIT);
        gl.draw_at(TRIANGLES, 3, &self.half, &inputs);
        let [width, height] = self.target;
        let mut pixels = vec![0; width as usize * height as usize * 4];
        gl.read_pixels(width, height, &mut pixels);
        gl.delete_program(program);
        let covered = pixels.chunks(4).filter(|pixel| pixel[0] != 0).count() as u64;
        let least = COVERED_MIN * f64::from(width) * f64::from(height);
        if covered as f64 >= least { Ok(covered) } else { Err(Unmeasured::CoversNothing) }
    }

    fn whole_target(&self, gl: &Gl) {
        let [width, height] = self.target.map(u32::cast_signed);
        gl.viewport(0, 0, width, height);
    }

    /// A group of draws, so many that it can be measured well. A renderer on the CPU is slow enough,
    /// and leaves out what is drawn over.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn run(&self, bench: &Bench, triangles: u32, draw: &dyn Fn()) -> ProfilingRun {
        let copies = if bench.is_software() {
            1
        } else {
            let once = bench.time(ONCE, &mut || draw());
            (LONG_NS / once.ns.max(1.0)).ceil().clamp(1.0, f64::from(COPIES_MAX)) as u32
        };
        let total_ns = bench.time(self.effort, &mut || (0..copies).for_each(|_| draw())).ns;
        let triangles = u64::from(copies) * u64::from(triangles);
        ProfilingRun { total_ns, groups: 1, draws: u64::from(copies), triangles }
    }

    fn delete(self, gl: &Gl) {
        self.textures.into_iter().for_each(|texture| gl.delete_texture(texture));
        self.place.delete(gl);
        self.half.delete(gl);
    }
}

/// Uses a program and gives it values; the attributes that its vertices have.
fn prepare(gl: &Gl, program: u32) -> Vec<(u32, u32)> {
    gl.use_program(program);
    let mut inputs = gl.set_inputs(program);
    inputs.truncate(ATTRIBUTES_MAX);
    inputs
}

/// A fragment shader that fits a vertex shader: of its version, if that is one that says so.
fn white(vertex: &str) -> String {
    let version = vertex.lines().map(str::trim).find(|line| line.starts_with("#version 3"));
    match version {
        Some(version) => {
            format!(
                "{version}\nprecision mediump float; out vec4 white; void main() {{ white = vec4(1.0); }}"
            )
        }
        None => "precision mediump float; void main() { gl_FragColor = vec4(1.0); }".to_owned(),
    }
}

/// Small textures at the units of their kinds.
fn textures(gl: &Gl) -> [u32; 2] {
    const CUBE_FACES: std::ops::RangeInclusive<u32> = 0x8515..=0x851A;
    let side = TEXTURE_SIDE;
    let noise = random::noise(u64::from(side), side as usize * side as usize * 4);
    let new = |unit, target, images: std::ops::RangeInclusive<u32>| {
        gl.use_unit(unit);
        let texture = gl.new_texture();
        gl.bind_texture(target, texture);
        gl.linear_lookup_in(target, true);
        images.for_each(|image| gl.upload_to(image, side, side, Some(&noise)));
        texture
    };
    let cube = new(UNIT_CUBE, TEXTURE_CUBE_MAP, CUBE_FACES);
    // All other code expects the first unit.
    [new(UNIT_2D, TEXTURE_2D, TEXTURE_2D..=TEXTURE_2D), cube]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_fragment_shader_is_of_the_same_version() {
        assert!(white("#version 300 es\nin vec4 a;").starts_with("#version 300 es\n"));
        assert!(white("  #version 310 es\nin vec4 a;").contains("out vec4"));
        assert!(white("#version 100\nattribute vec4 a;").contains("gl_FragColor"));
        assert!(white("attribute vec4 a;").contains("gl_FragColor"));
    }
}
