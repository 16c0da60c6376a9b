//! The tachometer.

use std::process::ExitCode;

use clap::Parser;

use super::dial::{Dial, Face};
use super::drive;
use crate::options::{Options, Size};
use crate::run::{self, Defaults};

/// A tachometer: the speedometer's twin, with the engine of the same drive
#[derive(Debug, Parser)]
#[command(name = "takt-tachometer", version)]
struct TachometerArgs {
    /// Pixels along the face's texture; 0 takes twice the size on screen
    #[arg(long, value_name = "N", default_value_t = 0)]
    texture: u32,
    #[command(flatten)]
    options: Options,
}

const FACE: Face = Face {
    full: 8000.0,
    major: 1000.0,
    minor: 250.0,
    divisor: 1000.0,
    red_from: 6500.0,
    unit: "1000/MIN",
    caption: "TAKT",
    accent: 0x34_D3_99,
    value: drive::revolutions,
};

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = TachometerArgs::parse();
    let defaults = Defaults { name: "tachometer", size: Size(456, 456), fps: 60.0 };
    run::run(&defaults, &args.options, &|gl, size| Ok(Box::new(Dial::new(gl, FACE, size, args.texture)?)))
}
