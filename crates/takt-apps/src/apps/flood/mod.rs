//! A load of chosen length.

mod computing;
mod copying;
mod shading;

use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Range;
use serde_json::Value;
use takt_gl_driver::Gl;

use crate::load;
use crate::options::{Options, Size};
use crate::run::{self, App, Defaults, Frame};
use computing::{Dispatches, Recorded, Spread, Vertices};
use copying::Copies;
use shading::{Fragments, ManyDraws, ToTexture};

/// A flood of work, as long as you like: what a broken or hostile app does to a GPU
///
/// By default, each draw covers the surface with a shader that loops; --kind has other work. How often
/// it must loop for --draw-ms, or be repeated, is found at start by timing it with glFinish, so start
/// it alone, or fix --iterations to have the same work, and the same pixels, in every run. Without
/// --primitives a draw is one triangle with a long shader, which only the scissor can cut; with it, a
/// draw has many small triangles, which can also be cut into ranges.
#[derive(Debug, Parser)]
#[command(name = "takt-flood", version)]
struct FloodArgs {
    /// What takes so long
    #[arg(long, value_enum, value_name = "KIND", default_value = "fragment")]
    kind: Kind,
    /// Length of a draw, or of other work, on the GPU, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0, value_parser = load::length_ms)]
    draw_ms: f64,
    /// Loops of the shader, or how often short work is repeated; skips the calibration
    #[arg(long, value_name = "N", value_parser = Range::<u32>::new().range(1..=u64::from(load::LOOPS_MAX)))]
    iterations: Option<u32>,
    /// Draws, or whatever --kind says, per frame, each flushed to the driver on its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<u32>::new().range(1..=10_000))]
    draws: u32,
    /// Triangles per draw, side by side, instead of one large triangle
    #[arg(long, value_name = "N", conflicts_with = "long_shader", value_parser = primitives())]
    primitives: Option<u32>,
    /// Few long invocations instead of many: no part of such work is shorter than all of it, so cutting
    /// it does not help; for --kind vertex, compute and feedback
    #[arg(long)]
    narrow: bool,
    /// One triangle with a long shader per draw; this is the default
    #[arg(long)]
    long_shader: bool,
    #[command(flatten)]
    options: Options,
}

/// What takes so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kind {
    /// A draw with a long fragment shader
    Fragment,
    /// A draw of points with a long vertex shader
    Vertex,
    /// A dispatch of a long compute shader
    Compute,
    /// A draw with a long vertex shader whose results are recorded by transform feedback, and not seen
    Feedback,
    /// Many short draws
    ManyDraws,
    /// A draw to a texture with a long fragment shader
    RenderToTexture,
    /// Uploads of a texture
    Upload,
    /// Copies between framebuffers
    Blit,
    /// Mipmaps of a texture
    Mipmap,
}

impl Kind {
    fn load(self, gl: &Gl, args: &FloodArgs, size: (u32, u32)) -> anyhow::Result<Box<dyn Load>> {
        anyhow::ensure!(
            self == Self::Fragment || args.primitives.is_none(),
            "--primitives is for --kind fragment only"
        );
        let computes = matches!(self, Self::Vertex | Self::Compute | Self::Feedback);
        anyhow::ensure!(computes || !args.narrow, "--narrow is for --kind vertex, compute and feedback only");
        let spread = if args.narrow { Spread::Narrow } else { Spread::Wide };
        Ok(match self {
            Self::Fragment => Box::new(Fragments::new(gl, args.primitives.unwrap_or(1))),
            Self::Vertex => Box::new(Vertices::new(spread)),
            Self::Compute => Box::new(Dispatches::new(gl, spread)?),
            Self::Feedback => Box::new(Recorded::new(gl, spread)?),
            Self::ManyDraws => Box::new(ManyDraws::new(gl)?),
            Self::RenderToTexture => Box::new(ToTexture::new(gl, size)?),
            Self::Upload => Box::new(Copies::uploads(gl)),
            Self::Blit => Box::new(Copies::blits(gl)?),
            Self::Mipmap => Box::new(Copies::mipmaps(gl)),
        })
    }

    /// As the command line has it.
    fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Work whose length can be chosen.
trait Load {
    /// From now on it loops this often, or is repeated this often.
    fn prepare(&mut self, gl: &Gl, loops: u32) -> anyhow::Result<()>;

    /// Hands it to the driver once.
    fn once(&self, gl: &Gl, time: f32);
}

fn primitives() -> Range<u32> {
    Range::new().range(2..=1_000_000)
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = FloodArgs::parse();
    let defaults = Defaults { name: "flood", size: Size(800, 480), fps: 0.0 };
    run::run(&defaults, &args.options, &|gl, size| Ok(Box::new(Flood::new(gl, &args, size)?)))
}

struct Flood {
    load: Box<dyn Load>,
    kind: Kind,
    draws: u32,
    narrow: bool,
    primitives: u32,
    iterations: u32,
    /// What the calibration measured for the chosen number of loops.
    measured_ms: Option<f64>,
}

impl Flood {
    fn new(gl: &Gl, args: &FloodArgs, size: (u32, u32)) -> anyhow::Result<Self> {
        let (primitives, iterations) = (args.primitives.unwrap_or(1), args.iterations.unwrap_or(1));
        let mut load = args.kind.load(gl, args, size)?;
        load.prepare(gl, iterations)?;
        let (kind, draws, narrow) = (args.kind, args.draws, args.narrow);
        let mut flood = Self { load, kind, draws, narrow, primitives, iterations, measured_ms: None };
        if args.iterations.is_none() {
            flood.calibrate(gl, args.draw_ms, size)?;
        }
        Ok(flood)
    }

    fn calibrate(&mut self, gl: &Gl, wanted_ms: f64, size: (u32, u32)) -> anyhow::Result<()> {
        viewport(gl, size);
        let found = load::find(wanted_ms, load::LOOPS_MAX, |loops| {
            self.load.prepare(gl, loops)?;
            Ok(self.measure(gl))
        })?;
        self.load.prepare(gl, found.loops)?;
        self.iterations = found.loops;
        // Drivers compile at the first draw; that must not count as the first frame.
        self.measure(gl);
        self.measured_ms = Some(found.ms);
        Ok(())
    }

    fn measure(&self, gl: &Gl) -> f64 {
        load::shortest_ms(gl, || self.load.once(gl, 0.0))
    }
}

fn viewport(gl: &Gl, (width, height): (u32, u32)) {
    gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
}

impl App for Flood {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        viewport(gl, frame.size);
        for draw in 0..self.draws {
            if draw > 0 {
                gl.flush();
            }
            #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
            self.load.once(gl, frame.time.rem_euclid(1000.0) as f32);
        }
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = vec![
            ("kind", self.kind.name().into()),
            ("draws", self.draws.into()),
            ("narrow", self.narrow.into()),
            ("primitives", self.primitives.into()),
            ("iterations", self.iterations.into()),
        ];
        facts.extend(self.measured_ms.map(|ms| ("calibrated_ms", ms.into())));
        facts
    }
}
