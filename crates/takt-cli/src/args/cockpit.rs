//! Arguments of the commands for a running cockpit.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use takt_cockpit::geometry::{Point, Rect};
use takt_cockpit::input::Act;
use takt_cockpit::windows::{Motion, Subject};

/// What to ask a cockpit (takt-compositor; see docs/cockpit.md). It answers its own user and root.
#[derive(Subcommand, Debug)]
pub(crate) enum CockpitCommand {
    /// List its displays, windows and programs.
    List(CockpitListArgs),
    /// Show a window.
    Show(WindowArgs),
    /// Do not show a window.
    Hide(WindowArgs),
    /// Move a window on its display, or back to where its rule puts it.
    Place(PlaceArgs),
    /// Make a window transparent.
    Opacity(OpacityArgs),
    /// Bring a window in front of the others of its layer and priority.
    Raise(WindowArgs),
    /// Ask the client of a window to close it.
    Close(WindowArgs),
    /// Tell whether the vehicle moves.
    Motion(MotionArgs),
    /// Do what an input device does that has no file (an `[[input]]` section without device).
    Input(InputArgs),
    /// Write a picture of what a display shows (PNG).
    Shot(ShotArgs),
}

/// Where the cockpit is.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct CockpitArgs {
    /// Folder of its sockets [default: takt-cockpit in $XDG_RUNTIME_DIR, for root without one
    /// /run/takt-cockpit, else takt-cockpit-UID among temporary files].
    #[arg(long, value_name = "DIR", env = "TAKT_COCKPIT")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct CockpitListArgs {
    /// Write all of it as JSON; - is standard output, without the tables.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct WindowArgs {
    /// The window: the name of its rule, or # and its number. A name means the one in front.
    pub(crate) window: Subject,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct PlaceArgs {
    /// The window: the name of its rule, or # and its number.
    pub(crate) window: Subject,
    /// The new place, in pixels of its display [default: where its rule puts it].
    #[arg(value_name = "WxH+X+Y")]
    pub(crate) area: Option<Rect>,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct OpacityArgs {
    /// The window: the name of its rule, or # and its number.
    pub(crate) window: Subject,
    /// From 0 (invisible) to 1 (opaque).
    pub(crate) opacity: f64,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct MotionArgs {
    /// The state.
    pub(crate) motion: MotionArg,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct InputArgs {
    /// The device: the name of its section.
    pub(crate) device: String,
    #[command(subcommand)]
    pub(crate) act: ActArg,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

/// What a device does. Places are pixels of its display; keys and buttons have their numbers in Linux.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ActArg {
    /// A finger touches, and is lifted.
    Tap {
        /// Where.
        #[arg(value_name = "X,Y")]
        at: Point,
    },
    /// A finger moves from one place to another.
    Swipe {
        /// From here.
        #[arg(value_name = "X,Y")]
        from: Point,
        /// To there.
        #[arg(value_name = "X,Y")]
        to: Point,
    },
    /// The pointer is there.
    Point {
        /// Where.
        #[arg(value_name = "X,Y")]
        at: Point,
    },
    /// A button of the pointer is pressed, and released.
    Click {
        /// Which one: 272 is the left one, 273 the right one.
        #[arg(default_value_t = 272)]
        button: u32,
    },
    /// The wheel of the pointer turns.
    Scroll {
        /// By so many clicks, downwards.
        #[arg(allow_negative_numbers = true)]
        clicks: i32,
    },
    /// A key is pressed, and released.
    Key {
        /// Which one: 28 is enter, 1 is escape.
        key: u32,
    },
    /// A knob turns.
    Turn {
        /// By so many steps, clockwise.
        #[arg(allow_negative_numbers = true)]
        steps: i32,
    },
}

impl ActArg {
    /// One after the other.
    pub(crate) fn acts(&self) -> Vec<Act> {
        let finger = 0;
        match *self {
            Self::Tap { at } => vec![Act::Down { finger, at }, Act::Up { finger }],
            Self::Swipe { from, to } => {
                let between = |part: i32| {
                    let at = |from: i32, to: i32| from + (to - from) * part / SWIPE_STEPS;
                    Act::Drag { finger, at: Point { x: at(from.x, to.x), y: at(from.y, to.y) } }
                };
                let moves = (1..=SWIPE_STEPS).map(between);
                let (first, last) = (Act::Down { finger, at: from }, Act::Up { finger });
                std::iter::once(first).chain(moves).chain(std::iter::once(last)).collect()
            }
            Self::Point { at } => vec![Act::Point { at }],
            Self::Click { button } => vec![Act::Press { button }, Act::Release { button }],
            Self::Scroll { clicks } => vec![Act::Scroll { x: 0, y: clicks }],
            Self::Key { key } => vec![Act::KeyDown { key }, Act::KeyUp { key }],
            Self::Turn { steps } => vec![Act::Turn { steps }],
        }
    }
}

/// Places that a swipe passes.
const SWIPE_STEPS: i32 = 8;

#[derive(ClapArgs, Debug)]
pub(crate) struct ShotArgs {
    /// The display, by its name.
    pub(crate) output: String,
    /// The file to write.
    #[arg(value_name = "FILE.png")]
    pub(crate) file: PathBuf,
    /// A part of it, in its pixels.
    #[arg(long, value_name = "WxH+X+Y")]
    pub(crate) part: Option<Rect>,
    /// Write what the picture shows as JSON; - is standard output.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cockpit: CockpitArgs,
}

/// Whether the vehicle moves.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum MotionArg {
    /// It stands.
    Parked,
    /// It moves, or may move.
    Moving,
}

impl From<MotionArg> for Motion {
    fn from(motion: MotionArg) -> Self {
        match motion {
            MotionArg::Parked => Self::Parked,
            MotionArg::Moving => Self::Moving,
        }
    }
}
