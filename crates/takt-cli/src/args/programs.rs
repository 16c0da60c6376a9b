//! Arguments of the commands for real programs, and for the daemon that schedules them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use takt_client::family::Children;
use takt_daemon::control::ask::{Ask, Bound, Limits, WrittenTerms};
use takt_daemon::control::pacing::Pace;

/// Runs a program with Takt underneath, for this run only: it installs nothing, and schedules programs
/// that this one starts as well (see --children). The program replaces the process of `takt`, so its signals and its
/// exit code are its own. Exit code 127: no such command, 126: it cannot be run.
#[derive(ClapArgs, Debug)]
#[command(override_usage = "takt run [OPTIONS] -- COMMAND [ARGUMENT]...")]
pub(crate) struct RunArgs {
    /// How calls are caught.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) hook: crate::hook::Way,
    /// Write one row per command group: what it was and how long it took (CSV; see
    /// docs/measuring.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) measure: Option<PathBuf>,
    /// The same with predictions of all models and of the history beside the measured times;
    /// `takt report FILE` says how good they were.
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    pub(crate) compare: Option<PathBuf>,
    /// Predict by one model: bb, ts, ratio or sequence for fragments, + profiled or mars for
    /// shaders.
    #[arg(long, value_name = "MODEL")]
    pub(crate) mode: Option<takt_gl::predict::Combination>,
    /// Multiply every prediction.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) overpredict: f64,
    /// Constants of the GPU for predictions. Default: what `takt profile` has kept for the
    /// program's GPU and driver, else rough ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Render without a screen: windows become off-screen surfaces of their own size, or of WxH.
    /// The program still needs its X server or compositor; the GPU needs neither.
    #[arg(long, value_name = "WxH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(value_parser = window_size)]
    pub(crate) offscreen: Option<String>,
    /// Write a picture of each frame to DIR, as CONTEXT-FRAME.ppm; slow, and frames that are read
    /// back cost time that is measured.
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_frames: Option<PathBuf>,
    /// Where `takt profile` and `takt train` have kept their results [default: takt/gpus in
    /// $XDG_DATA_HOME, else in ~/.local/share, then in $XDG_DATA_DIRS].
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Name of the app in files and for the daemon. Default: what the program was called by.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How to treat programs that this one starts: inherit (they belong to the app and share its contract), own (they
    /// are apps of their own, without the terms given here), or none (Takt leaves them alone).
    #[arg(long, value_name = "WHAT", default_value_t, value_parser = children)]
    pub(crate) children: Children,
    #[command(flatten)]
    pub(crate) schedule: ScheduleArgs,
    /// Print what Takt puts under the program, and the constants and models that it predicts by.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Checks loader, drivers, devices and rights. With a command, it also runs that program for a moment
/// and checks what Takt hooks. Each problem comes with a remedy.
#[derive(ClapArgs, Debug)]
#[command(override_usage = "takt doctor [OPTIONS] [-- COMMAND [ARGUMENT]...]")]
pub(crate) struct DoctorArgs {
    /// How calls are caught.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) hook: crate::hook::Way,
    /// How long the program may run.
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Write the findings as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn children(text: &str) -> Result<Children, String> {
    match text {
        "inherit" => Ok(Children::Inherit),
        "own" => Ok(Children::Own),
        "none" => Ok(Children::None),
        _ => Err("known are inherit, own and none".to_owned()),
    }
}

fn window_size(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text if takt_gl::settings::size(text).is_some() => Ok(text.to_owned()),
        _ => Err("write a size such as 800x600, each side from 1 to 16384".to_owned()),
    }
}

/// What a program asks the daemon for. Without any of these the daemon does not schedule it.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Scheduling")]
pub(crate) struct ScheduleArgs {
    /// Have the daemon schedule the program; each of the following does so, too. If none runs, one
    /// is started for all programs of this user; it ends soon after the last of them.
    #[arg(long)]
    pub(crate) schedule: bool,
    /// Start no daemon: without one, the program runs unscheduled. A daemon that is named by --socket
    /// is never started.
    #[arg(long)]
    pub(crate) no_daemon: bool,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// What an app gets, or asks for.
#[derive(ClapArgs, Debug)]
pub(crate) struct TermsArgs {
    /// Importance; the higher number wins.
    #[arg(long)]
    priority: Option<u32>,
    /// Frames per second. The program is held to it. For frames of a display it must divide the refresh rate.
    #[arg(long)]
    fps: Option<f64>,
    /// GPU time reserved per frame, in milliseconds.
    #[arg(long)]
    etpf_ms: Option<f64>,
    /// Longest piece of GPU work at once, in milliseconds; 0 sets no limit.
    #[arg(long)]
    max_slice_ms: Option<f64>,
    /// The display that it draws for, by its name in the daemon's configuration [default: the first].
    #[arg(long, value_name = "NAME")]
    display: Option<String>,
    /// Shortest time between two frames of an app with a clock of its own, in milliseconds; with
    /// --runtime-ms, the period of its server.
    #[arg(long)]
    period_ms: Option<f64>,
    /// Time from the begin of a frame by its own clock to the deadline, in milliseconds [default: the period].
    #[arg(long)]
    deadline_ms: Option<f64>,
    /// What decides when the app begins its frames [default: auto, or display with --display].
    #[arg(long, value_enum, value_name = "CLOCK")]
    pace: Option<PaceArg>,
    /// Serve the app by a budget, for jobs instead of frames: so much GPU time in each period, in milliseconds, as its
    /// jobs take alone.
    #[arg(long)]
    runtime_ms: Option<f64>,
    /// Most waits of the app for its own work within a frame or job (glFinish, a read-back).
    #[arg(long, requires = "gap_ms")]
    gaps: Option<u32>,
    /// Longest of these waits, in milliseconds; the reservation includes them.
    #[arg(long, requires = "gaps")]
    gap_ms: Option<f64>,
    /// The app that consumes the results of this one. While it waits for them, its deadline counts for this app.
    #[arg(long, value_name = "APP")]
    feeds: Option<String>,
    /// Share the contract of that app, as one of its processes: the work is part of that app's frames, or runs on its
    /// server.
    #[arg(long, value_name = "APP", conflicts_with_all = ["etpf_ms", "runtime_ms", "period_ms", "feeds"])]
    shares: Option<String>,
    /// Let a server that has used up its GPU time wait for its next period, even if the GPU is idle.
    #[arg(long)]
    hard: bool,
}

impl TermsArgs {
    pub(crate) fn terms(&self) -> WrittenTerms {
        let Self { priority, fps, etpf_ms, max_slice_ms, period_ms, deadline_ms, runtime_ms, .. } = *self;
        let (display, hard) = (self.display.clone(), self.hard.then_some(true));
        WrittenTerms {
            priority,
            fps,
            etpf_ms,
            max_slice_ms,
            display,
            period_ms,
            deadline_ms,
            pace: self.pace.map(Pace::from),
            runtime_ms,
            gaps: self.gaps,
            gap_ms: self.gap_ms,
            feeds: self.feeds.clone(),
            shares: self.shares.clone(),
            hard,
        }
    }
}

/// What decides when a program begins its frames.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PaceArg {
    /// A display: its swap waits for the next frame.
    Display,
    /// Itself: it waits only before a frame that would come sooner than --fps or --period-ms allows.
    Own,
    /// Takt finds out: own if the program sleeps between frames, or its swap would not wait for a display.
    Auto,
}

impl From<PaceArg> for Pace {
    fn from(pace: PaceArg) -> Self {
        match pace {
            PaceArg::Display => Self::Display,
            PaceArg::Own => Self::Own,
            PaceArg::Auto => Self::Auto,
        }
    }
}

fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("write milliseconds, 0 or more, e.g. 1.5".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1000.0 => Ok(value),
        _ => Err("write a number above 0 and up to 1000, e.g. 1.2".to_owned()),
    }
}

/// Where the daemon is.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct SocketArgs {
    /// The daemon's socket [default: the user's own, takt/control in $XDG_RUNTIME_DIR or else
    /// takt-UID/control among temporary files; if no daemon answers there, the machine's, /run/takt/control].
    #[arg(long, value_name = "PATH", env = "TAKT_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

impl SocketArgs {
    /// Where to look for a daemon.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(takt_ipc::find::default_path)
    }

    /// Whether the user said where it is.
    pub(crate) fn is_given(&self) -> bool {
        self.socket.is_some()
    }
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ServeArgs {
    /// Configuration file (TOML; see docs/daemon.md). It is read again when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Accept only a configuration that root owns and that is signed by this public key of minisign, in
    /// FILE.minisig (see docs/rights.md).
    #[arg(long, value_name = "KEY", requires = "config")]
    pub(crate) sealed_by: Option<PathBuf>,
    /// Name of the policy, instead of the configuration's.
    #[arg(long, value_parser = PossibleValuesParser::new(takt_policies::NAMES))]
    pub(crate) policy: Option<String>,
    /// Measure nothing. Without this, the first start on a GPU measures it for 10 s at most and keeps the result.
    #[arg(long)]
    pub(crate) no_measure: bool,
    /// Run as a process of its own; this command returns when the daemon answers.
    #[arg(long)]
    pub(crate) background: bool,
    /// Tell the daemon at this socket to end; its programs continue unscheduled.
    #[arg(long, conflicts_with_all = ["background", "config", "policy", "idle_s", "log", "record", "metrics"])]
    pub(crate) stop: bool,
    /// End after so many seconds without a client.
    #[arg(long, value_name = "S")]
    pub(crate) idle_s: Option<u32>,
    /// Where messages go. Default: standard error; in the background, beside the socket.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Messages are JSON objects, one per line.
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Write all that happens, from the start, as a log that `takt replay` plays again (*.jsonl).
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Hand out counters for Prometheus at unix:PATH or at 127.0.0.1:PORT, under /metrics.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<takt_daemon::observe::exporter::Address>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

impl ServeArgs {
    /// Where to listen.
    pub(crate) fn own_path(&self) -> PathBuf {
        self.socket.socket.clone().unwrap_or_else(takt_ipc::find::own_path)
    }
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ListArgs {
    /// Write apps and figures as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SetArgs {
    /// The app: its name, NAME@USER, pid:PROCESS, or its slot. A name alone means the app that the
    /// configuration lists.
    #[arg(required_unless_present_any = ["policy", "state", "mpcg", "max_blocking_ms", "max_stretch_ms"])]
    pub(crate) app: Option<String>,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
    #[command(flatten)]
    pub(crate) steering: SteeringArgs,
    /// Only say whose contract would hold or break, and change nothing.
    #[arg(long, conflicts_with = "state")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten, next_help_heading = "Options for all apps, without the name of one")]
    pub(crate) common: CommonArgs,
}

/// Orders about an app that change no terms.
#[derive(ClapArgs, Debug)]
pub(crate) struct SteeringArgs {
    /// Grant it nothing until --resume: the app stands still in its next GPU command.
    #[arg(long, requires = "app", group = "steering")]
    pause: bool,
    /// Let it go on after --pause.
    #[arg(long, requires = "app", group = "steering")]
    resume: bool,
    /// End its scheduling: it runs on, and may not come back for so many seconds.
    #[arg(long, requires = "app", group = "steering", value_name = "S", num_args = 0..=1,
          default_missing_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    evict: Option<u32>,
    /// Let it come back after --evict.
    #[arg(long, requires = "app", group = "steering")]
    readmit: bool,
}

impl SteeringArgs {
    /// The order about that app, if there is one.
    pub(crate) fn order(&self, app: &str) -> Option<Ask> {
        let app = app.to_owned();
        match self {
            Self { pause: true, .. } => Some(Ask::Pause { app }),
            Self { resume: true, .. } => Some(Ask::Resume { app }),
            Self { evict: Some(for_s), .. } => Some(Ask::Evict { app, for_s: Some(*for_s) }),
            Self { readmit: true, .. } => Some(Ask::Readmit { app }),
            _ => None,
        }
    }
}

/// What holds for all apps, until the configuration says something new about it or the daemon ends.
#[derive(ClapArgs, Debug)]
pub(crate) struct CommonArgs {
    /// Have another policy decide from now on (docs/policies.md).
    #[arg(long, value_parser = PossibleValuesParser::new(takt_policies::NAMES))]
    pub(crate) policy: Option<String>,
    /// Tell the state of the vehicle, such as parked: a configuration may wait for it (docs/rights.md).
    #[arg(long, value_name = "NAME")]
    pub(crate) state: Option<String>,
    /// Most groups granted and not finished at once.
    #[arg(long)]
    mpcg: Option<u32>,
    /// How long apps that reserve nothing may delay a more important one that does, in milliseconds;
    /// inf sets no limit.
    #[arg(long, value_parser = milliseconds)]
    max_blocking_ms: Option<f64>,
    /// How long groups of apps that reserve nothing may be while no other app waits, in milliseconds; 0
    /// makes them no longer than their apps ask for.
    #[arg(long, value_parser = milliseconds)]
    max_stretch_ms: Option<f64>,
}

impl CommonArgs {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            mpcg: self.mpcg,
            max_blocking_ms: self.max_blocking_ms.map(Bound::from),
            max_stretch_ms: self.max_stretch_ms.map(Bound::from),
        }
    }
}

#[derive(ClapArgs, Debug)]
pub(crate) struct WhyArgs {
    /// The app: its name, NAME@USER, pid:PROCESS, or its slot.
    pub(crate) app: String,
    /// Only this frame, counted from 0 since it joined.
    #[arg(long)]
    pub(crate) frame: Option<u64>,
    /// List misses before its first frame in time, too: those of its start.
    #[arg(long)]
    pub(crate) all: bool,
    /// Write the misses with their causes as JSON; - is standard output, without the sentences.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}
