//! Options that every app has.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::RangedU64ValueParser as Range;
use takt_gl_api::egl;

/// Options of every app.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Stop after this many frames [default: run until the window is closed or Ctrl-C]
    #[arg(long, value_name = "N", value_parser = Range::<u64>::new().range(1..))]
    pub(crate) frames: Option<u64>,
    /// Number of the first frame: begin in the middle of the show
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = Range::<u64>::new().range(..1 << 40))]
    pub(crate) first_frame: u64,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = positive)]
    pub(crate) seconds: Option<f64>,
    /// Release frames at this rate; 0 draws as fast as possible [default: what suits the app]
    #[arg(long, value_name = "F", value_parser = rate)]
    pub(crate) fps: Option<f64>,
    /// What releases frames
    #[arg(long, value_enum, value_name = "WHAT", default_value = "clock")]
    pub(crate) pace: Pace,
    /// Never swap: finish each frame instead, as programs do that draw for other programs
    #[arg(long, conflicts_with = "finish")]
    pub(crate) no_swap: bool,
    /// Size of the window or surface [default: what suits the app]
    #[arg(long, value_name = "WxH")]
    pub(crate) size: Option<Size>,
    /// Where to draw: auto, x11, wayland, off-screen, surfaceless, device or device:N
    ///
    /// `auto` takes Wayland if WAYLAND_DISPLAY is set, X11 if DISPLAY is, and draws off-screen
    /// otherwise. `off-screen` takes the first GPU that EGL can open without a window system, or
    /// Mesa's surfaceless platform if there is none.
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub(crate) platform: Platform,
    /// Samples per pixel
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = Range::<u32>::new().range(0..=64))]
    pub(crate) msaa: u32,
    /// Frames that may be unfinished on the GPU before the app waits
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<usize>::new().range(1..=64))]
    pub(crate) in_flight: usize,
    /// Wait for the end of each frame on the GPU before it is handed over, not after
    ///
    /// A swap that waits, for a display or for a scheduler, then counts for no frame.
    #[arg(long, conflicts_with = "in_flight")]
    pub(crate) finish: bool,
    /// Wait for the display at each swap: 0 never, 1 each refresh [default: 0 with a frame rate, else 1]
    #[arg(long, value_name = "N", value_parser = Range::<u32>::new().range(0..=8))]
    pub(crate) swap_interval: Option<u32>,
    /// Ask the driver for this priority (EGL_IMG_context_priority)
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) egl_priority: Option<Priority>,
    /// Draw the same in this many threads, each with its own context; off-screen only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Range::<usize>::new().range(1..=64))]
    pub(crate) threads: usize,
    /// Let the contexts of all threads share objects
    #[arg(long)]
    pub(crate) share: bool,
    /// Move with the clock, not with the frame number: late frames show as jumps, and runs differ
    #[arg(long)]
    pub(crate) real_time: bool,
    /// Draw the first frame this often before anything is measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What is written, and where.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Output {
    /// Write a frame's picture to this file, .png or .ppm
    #[arg(long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,
    /// Which frame to write, by number [default: the last of --frames, or the first]
    #[arg(long, value_name = "N", requires = "dump")]
    pub(crate) dump_frame: Option<u64>,
    /// Read back every frame, print a hash over all their pixels, and fail on any GL error
    #[arg(long)]
    pub(crate) validate: bool,
    /// Fail unless --validate gives this hash
    #[arg(long, value_name = "HASH", requires = "validate", value_parser = hash)]
    pub(crate) expect_hash: Option<u64>,
    /// Print statistics as JSON, one object per thread and line
    #[arg(long)]
    pub(crate) json: bool,
    /// Write one line per frame to this CSV file: times in ns of CLOCK_MONOTONIC
    #[arg(long, value_name = "FILE")]
    pub(crate) frame_log: Option<PathBuf>,
    /// Print a line of statistics on standard error every so many seconds
    #[arg(long, value_name = "S", value_parser = positive)]
    pub(crate) report_every: Option<f64>,
}

/// Width and height in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size(pub(crate) u32, pub(crate) u32);

/// No driver takes surfaces larger than this.
const LENGTH_MAX: u32 = 16_384;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let length = |text: &str| text.parse().ok().filter(|length| (1..=LENGTH_MAX).contains(length));
        let parts = text.split_once('x').and_then(|(width, height)| Some((length(width)?, length(height)?)));
        let (width, height) =
            parts.ok_or_else(|| format!("write it as 800x480, each number from 1 to {LENGTH_MAX}"))?;
        Ok(Self(width, height))
    }
}

/// Where to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Platform {
    Auto,
    X11,
    Wayland,
    OffScreen,
    Surfaceless,
    Device(Option<usize>),
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "x11" => Ok(Self::X11),
            "wayland" => Ok(Self::Wayland),
            "off-screen" | "offscreen" => Ok(Self::OffScreen),
            "surfaceless" => Ok(Self::Surfaceless),
            "device" => Ok(Self::Device(None)),
            _ => {
                let number = text.strip_prefix("device:").and_then(|number| number.parse().ok());
                let known = "auto, x11, wayland, off-screen, surfaceless, device and device:N";
                number.map(|number| Self::Device(Some(number))).ok_or_else(|| format!("known are {known}"))
            }
        }
    }
}

/// What releases frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Pace {
    /// The app sleeps until its next period begins.
    Clock,
    /// Swaps come back when the next frame may begin, as a scheduler's or a display's do; the app
    /// waits for the GPU before each swap, and --fps only says when frames are due.
    Swap,
}

/// What `EGL_IMG_context_priority` offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Priority {
    High,
    Medium,
    Low,
}

impl Priority {
    /// The value in an attribute list.
    pub(crate) const fn level(self) -> i32 {
        match self {
            Self::High => egl::CONTEXT_PRIORITY_HIGH_IMG,
            Self::Medium => egl::CONTEXT_PRIORITY_MEDIUM_IMG,
            Self::Low => egl::CONTEXT_PRIORITY_LOW_IMG,
        }
    }

    /// What a driver answers.
    pub(crate) const fn name(level: i32) -> &'static str {
        match level {
            egl::CONTEXT_PRIORITY_HIGH_IMG => "high",
            egl::CONTEXT_PRIORITY_MEDIUM_IMG => "medium",
            egl::CONTEXT_PRIORITY_LOW_IMG => "low",
            _ => "unknown",
        }
    }
}

/// Frames per second that are still told apart from nonsense.
const RATE_MAX: f64 = 100_000.0;

fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|rate| (0.0..=RATE_MAX).contains(rate));
    number.ok_or_else(|| format!("a number from 0 to {RATE_MAX} is wanted"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && *number < 1e9);
    number.ok_or_else(|| "a number above 0 is wanted".to_owned())
}

fn hash(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_error| "16 hexadecimal digits are wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("800x480".parse(), Ok(Size(800, 480)));
        for bad in ["", "800", "0x480", "800x", "99999x1", "-1x1", "8x4x2"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn platforms() {
        assert_eq!("device:3".parse(), Ok(Platform::Device(Some(3))));
        assert_eq!("offscreen".parse(), Ok(Platform::OffScreen));
        for bad in ["", "device:", "device:x", "windows"] {
            assert!(bad.parse::<Platform>().is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(rate("59.94"), Ok(59.94));
        assert!(rate("-1").is_err() && rate("nan").is_err() && rate("inf").is_err());
        assert!(positive("0").is_err() && positive("x").is_err());
    }
}
