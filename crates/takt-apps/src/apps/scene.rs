//! Turning bodies: a load that can be chosen in every direction.

mod bodies;
mod shaders;

use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use serde_json::Value;
use takt_gl_api::gl::{BLEND, COLOR_BUFFER_BIT, CULL_FACE, DEPTH_BUFFER_BIT, DEPTH_TEST, TEXTURE_2D};
use takt_gl_driver::{Gl, Mesh};

use self::bodies::Model;
use self::shaders::Shader;
use crate::gfx::{self, Beyond};
use crate::load;
use crate::matrix::{self, Matrix};
use crate::options::{Options, Size};
use crate::paint::{Canvas, mix, rgb};
use crate::run::{self, App, Defaults, Frame};
use crate::shape::Shape;

/// A scene player: turning bodies, with model, shader, texture and samples to choose
///
/// Frames depend on their number alone, so that two runs with the same arguments can be compared
/// pixel by pixel. Vertices grow with --detail and --objects, fragments with --size and --msaa,
/// the work per fragment with --shader and --loops, memory traffic with --texture.
#[derive(Debug, Parser)]
#[command(name = "takt-scene", version)]
struct SceneArgs {
    /// What turns
    #[arg(long, value_enum, default_value_t = Model::Knot)]
    model: Model,
    /// Segments around the model
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = Range::<u16>::new().range(3..=250))]
    detail: u16,
    /// How many of them, one draw each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<u32>::new().range(1..=10_000))]
    objects: u32,
    /// How they are lit
    #[arg(long, value_enum, default_value_t = Shader::Phong)]
    shader: Shader,
    /// Loops per fragment of the marble shader
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = loops())]
    loops: u32,
    /// Length of a frame on the GPU, in milliseconds: the marble shader with as many loops as that takes
    ///
    /// The number is found at start by timing frames with glFinish, so start it alone; the statistics
    /// say it, for --shader marble --loops in later runs.
    #[arg(long, value_name = "MS", conflicts_with_all = ["shader", "loops"], value_parser = load::length_ms)]
    frame_ms: Option<f64>,
    /// Pixels along a texture; 0 draws without one
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = Range::<u32>::new().range(0..=8192))]
    texture: u32,
    #[command(flatten)]
    options: Options,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = SceneArgs::parse();
    let defaults = Defaults { name: "scene", size: Size(800, 600), fps: 0.0 };
    run::run(&defaults, &args.options, &|gl, size| Ok(Box::new(Scene::new(gl, &args, size)?)))
}

struct Scene {
    program: u32,
    matrix: i32,
    turn: i32,
    colour: i32,
    mesh: Mesh,
    texture: Option<u32>,
    objects: u32,
    /// Loops of the marble shader.
    loops: Option<u32>,
    /// The measured time for the chosen number of loops.
    measured_ms: Option<f64>,
}

/// Most loops of the marble shader.
const LOOPS_MAX: u32 = 100_000;

fn loops() -> Range<u32> {
    Range::new().range(1..=u64::from(LOOPS_MAX))
}

impl Scene {
    fn new(gl: &Gl, args: &SceneArgs, size: (u32, u32)) -> anyhow::Result<Self> {
        let shader = if args.frame_ms.is_some() { Shader::Marble } else { args.shader };
        let (vertices, indices) = bodies::build(args.model, args.detail);
        let length = gfx::texture_length(gl, args.texture);
        let mut scene = Self {
            program: 0,
            matrix: 0,
            turn: 0,
            colour: 0,
            mesh: Mesh::new(gl, &[3, 3, 2], &vertices, &indices),
            texture: (args.texture > 0).then(|| gfx::texture(gl, &tiles(length), Beyond::Repeat)),
            objects: args.objects,
            loops: None,
            measured_ms: None,
        };
        scene.compile(gl, shader, args.loops)?;
        if let Some(wanted_ms) = args.frame_ms {
            let found = load::find(wanted_ms, LOOPS_MAX, |loops| {
                scene.compile(gl, shader, loops)?;
                Ok(load::shortest_ms(gl, || scene.draw(gl, &Frame { time: 0.0, size })))
            })?;
            scene.compile(gl, shader, found.loops)?;
            scene.measured_ms = Some(found.ms);
        }
        Ok(scene)
    }

    fn compile(&mut self, gl: &Gl, shader: Shader, loops: u32) -> anyhow::Result<()> {
        gl.delete_program(self.program);
        let (vertex, fragment) = shader.sources(loops, self.texture.is_some());
        self.program = gfx::program(gl, &vertex, &fragment, &["position", "normal", "texel"])?;
        self.matrix = gl.uniform(self.program, "matrix");
        self.turn = gl.uniform(self.program, "turn");
        self.colour = gl.uniform(self.program, "colour");
        self.loops = (shader == Shader::Marble).then_some(loops);
        Ok(())
    }
}

/// A texture of tiles with light joints.
fn tiles(length: u32) -> Canvas {
    let mut canvas = Canvas::new(length, length, 4.0);
    canvas.fill(&Shape::panel([0.0; 2], [5.0; 2], 0.0), rgb(0xFF_FF_FF));
    for tile in 0..16_u16 {
        let middle = [f32::from(tile % 4) * 2.0 - 3.0, f32::from(tile / 4) * 2.0 - 3.0];
        let shade = f32::from(tile * 7 % 16) / 15.0;
        let colour = mix(rgb(0x7A_86_94), rgb(0xC8_D2_DE), shade);
        canvas.fill(&Shape::panel(middle, [0.9; 2], 0.25), colour);
    }
    canvas
}

/// Colours of bodies, in turn.
const COLOURS: [[f32; 3]; 5] =
    [[0.95, 0.45, 0.25], [0.25, 0.65, 0.95], [0.35, 0.80, 0.50], [0.95, 0.75, 0.25], [0.70, 0.50, 0.95]];

impl App for Scene {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        let (width, height) = frame.size;
        gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
        gl.clear_color(0.05, 0.06, 0.08, 1.0);
        gl.clear(COLOR_BUFFER_BIT | DEPTH_BUFFER_BIT);
        gl.enable(DEPTH_TEST);
        gl.enable(CULL_FACE);
        gl.disable(BLEND);
        gl.use_program(self.program);
        if let Some(texture) = self.texture {
            gl.bind_texture(TEXTURE_2D, texture);
        }
        let side = (1..=self.objects).find(|side| side * side >= self.objects).unwrap_or(1);
        let view = matrix::perspective(0.8, frame.aspect(), 0.5, 100.0);
        let view = matrix::product(&view, &matrix::translation(0.0, 0.0, -2.9 * side as f32));
        #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
        let time = frame.time.rem_euclid(3600.0) as f32;
        for object in 0..self.objects {
            let place = |at: u32| (at as f32 - (side - 1) as f32 / 2.0) * 2.4;
            let turn = pose(time, object);
            let at = matrix::translation(place(object % side), place(object / side), 0.0);
            gl.set_matrices(self.matrix, 4, &matrix::product(&view, &matrix::product(&at, &turn)));
            gl.set_matrices(self.turn, 4, &turn);
            let [r, g, b] = COLOURS[object as usize % COLOURS.len()];
            gl.set_vec3(self.colour, r, g, b);
            gl.draw_mesh(&self.mesh);
        }
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let triangles = self.mesh.index_count() / 3 * self.objects as usize;
        let mut facts = vec![("draws", self.objects.into()), ("triangles", triangles.into())];
        facts.extend(self.loops.map(|loops| ("loops", loops.into())));
        facts.extend(self.measured_ms.map(|ms| ("calibrated_ms", ms.into())));
        facts
    }
}

fn pose(time: f32, object: u32) -> Matrix {
    let start = object as f32 * 0.7;
    let about_y = matrix::rotation([0.0, 1.0, 0.0], time * 0.8 + start);
    matrix::product(&about_y, &matrix::rotation([1.0, 0.0, 0.0], 0.5 + time * 0.37 + start))
}
