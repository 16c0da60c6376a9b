//! The speedometer.

use std::process::ExitCode;

use clap::Parser;

use super::dial::{Dial, Face};
use super::drive;
use crate::options::{Options, Size};
use crate::run::{self, Defaults};

/// A speedometer: two textured squares, the needle turned on the CPU
///
/// The instrument that must never be late. Each frame draws the face, then the needle with a second
/// program and blending; nothing else. A minute's drive repeats for ever.
#[derive(Debug, Parser)]
#[command(name = "takt-speedometer", version)]
struct SpeedometerArgs {
    /// Pixels along the face's texture; 0 takes twice the size on screen
    #[arg(long, value_name = "N", default_value_t = 0)]
    texture: u32,
    #[command(flatten)]
    options: Options,
}

const FACE: Face = Face {
    full: 240.0,
    major: 20.0,
    minor: 5.0,
    divisor: 1.0,
    red_from: 200.0,
    unit: "KM/H",
    caption: "TAKT",
    accent: 0x3D_A9_FC,
    value: drive::speed,
};

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = SpeedometerArgs::parse();
    let defaults = Defaults { name: "speedometer", size: Size(456, 456), fps: 60.0 };
    run::run(&defaults, &args.options, &|gl, size| Ok(Box::new(Dial::new(gl, FACE, size, args.texture)?)))
}
