//! Arguments of the commands for a running cockpit.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use takt_cockpit::geometry::Rect;
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
