//! What `takt run` asks for, by environment variables.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use takt_client::environment::{Environment, path};
use takt_ipc::message::Hello;
use takt_predict::profile::Profile;

use crate::guard;
use crate::predict::Choice;

pub use takt_client::environment::{
    BY_DISPLAY, DEADLINE, DISPLAY, ETPF, FACTS, FAMILY, FEEDS, FPS, GAP, GAPS, HARD, MAX_SLICE, NAME, PERIOD,
    PRIORITY, RUNTIME, SHARES, SOCKET, VERBOSE,
};

/// File that gets a row per group.
pub const MEASURE: &str = "TAKT_MEASURE";

/// Model that predicts, such as `bb+mars`; `all` for all of them.
pub const MODE: &str = "TAKT_MODE";
/// Factor on predictions.
pub const OVERPREDICT: &str = "TAKT_OVERPREDICT";
/// File with the constants of the machine.
pub const PROFILE: &str = "TAKT_PROFILE";

/// Size of windows that are not shown, as WxH; empty for the windows' own.
pub const OFFSCREEN: &str = "TAKT_OFFSCREEN";
/// Folder that gets a picture of each frame.
pub const FRAMES: &str = "TAKT_FRAMES";
/// Folder in which each process counts what slicing does, in a file with its number.
pub const TALLY: &str = "TAKT_TALLY";
/// Folders with profiles and trained models of GPUs, the first that has one counts.
pub const STORE: &str = "TAKT_STORE";
/// `contexts` waits for fences as on drivers of NVIDIA, so that tests can see that elsewhere.
pub const FENCES: &str = "TAKT_FENCES";

/// What to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the app.
    pub app: String,
    /// The process that these settings were read in.
    pub process: u32,
    /// Where a daemon schedules.
    pub socket: Option<PathBuf>,
    /// What the app asks it for; the name is [`Self::app`].
    pub hello: Hello,
    /// Where measurements go.
    pub measure: Option<PathBuf>,
    /// Whether windows are done without, and of what size they are then.
    pub offscreen: Option<Option<[u32; 2]>>,
    /// Where pictures of frames go.
    pub frames: Option<PathBuf>,
    /// Where facts about the driver go.
    pub facts: Option<PathBuf>,
    /// Which models predict.
    pub choice: Choice,
    /// Constants of the machine, if a file was named.
    pub profile: Option<Profile>,
    /// Folders with profiles and models.
    pub store: Vec<PathBuf>,
    /// Whether to say which of them are used.
    pub verbose: bool,
    /// Whether fences of GL are preferred wherever there are such.
    pub fences_of_contexts: bool,
}

impl Settings {
    fn read() -> Self {
        let Environment { app, process, socket, hello, facts, verbose, left_out } = Environment::read();
        let wanted = |name| env::var_os(name).filter(|_| !left_out);
        let file = |name| path(name).filter(|_| !left_out);
        Self {
            app,
            process,
            socket,
            hello,
            measure: file(MEASURE),
            offscreen: wanted(OFFSCREEN).map(|text| size(&text.to_string_lossy())),
            frames: file(FRAMES),
            facts,
            choice: choice(),
            profile: path(PROFILE).and_then(|path| profile(&path)),
            store: env::var_os(STORE).map(|list| env::split_paths(&list).collect()).unwrap_or_default(),
            verbose,
            fences_of_contexts: env::var(FENCES).is_ok_and(|value| value == "contexts"),
        }
    }

    /// Whether calls have to be looked at.
    pub fn watches(&self) -> bool {
        let watched = [&self.measure, &self.frames, &self.socket];
        watched.iter().any(|path| path.is_some()) || self.offscreen.is_some()
    }
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        guard::stay_in_this_process();
        Settings::read()
    })
}

/// `takt run` has checked what it passes on; other values are not ours.
fn choice() -> Choice {
    let overpredict = env::var(OVERPREDICT).ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    match env::var(MODE).as_deref() {
        Ok("all") => Choice::all(overpredict),
        Ok(name) => name.parse().map_or_else(|_| Choice::default(), |one| Choice::one(one, overpredict)),
        Err(_) => Choice::default(),
    }
}

fn profile(path: &Path) -> Option<Profile> {
    let text = std::fs::read_to_string(path);
    let profile = text.map_err(|error| error.to_string());
    let profile = profile.and_then(|text| Profile::parse(&text).map_err(|error| error.to_string()));
    profile
        .inspect_err(|problem| {
            guard::say(&format!("{}: {problem}; rough constants are used", path.display()))
        })
        .ok()
}

/// A size as WxH, of which neither is zero.
pub fn size(text: &str) -> Option<[u32; 2]> {
    let (width, height) = text.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
    Some([side(width)?, side(height)?])
}

/// Largest side of a window that is not shown.
const SIDE_MAX: u32 = 16384;

/// What a GPU is called in the store: `GL_RENDERER`, and for Mesa's renderer on CPUs the number of
/// threads it was told to use, because that makes another machine of it.
pub fn gpu_name(renderer: &str) -> String {
    match env::var("LP_NUM_THREADS") {
        Ok(threads) if renderer.contains("llvmpipe") && !threads.is_empty() => {
            format!("{renderer}, {} threads", threads.trim())
        }
        _ => renderer.to_owned(),
    }
}
