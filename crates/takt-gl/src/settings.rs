//! What `takt run` asks for, by environment variables.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use takt_ipc::message::Hello;
use takt_predict::profile::Profile;

use crate::guard;
use crate::predict::Choice;

/// Socket of the daemon that is to schedule the program. Not the variable by which users tell tools
/// where the daemon is: that alone must not schedule anything.
pub const SOCKET: &str = "TAKT_SCHEDULED_AT";
/// What the app asks the daemon for.
pub const PRIORITY: &str = "TAKT_PRIORITY";
/// Frames per second, in millihertz.
pub const FPS: &str = "TAKT_FPS_MHZ";
/// GPU time per frame, in nanoseconds.
pub const ETPF: &str = "TAKT_ETPF_NS";
/// Longest group, in nanoseconds.
pub const MAX_SLICE: &str = "TAKT_MAX_SLICE_NS";
/// Name of the display that it draws for.
pub const DISPLAY: &str = "TAKT_DISPLAY";
/// Time between two frames of its own clock, or between two replenishments of its server, in
/// nanoseconds.
pub const PERIOD: &str = "TAKT_PERIOD_NS";
/// From the release of a frame by its own clock to its deadline, in nanoseconds.
pub const DEADLINE: &str = "TAKT_DEADLINE_NS";
/// GPU time of its server in each period, in nanoseconds.
pub const RUNTIME: &str = "TAKT_RUNTIME_NS";
/// Not empty if its server waits when it has no budget left.
pub const HARD: &str = "TAKT_HARD";

/// File that gets a row per group.
pub const MEASURE: &str = "TAKT_MEASURE";
/// Name of the app in files.
pub const NAME: &str = "TAKT_NAME";

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
/// Folders with profiles and trained models of GPUs, the first that has one counts.
pub const STORE: &str = "TAKT_STORE";
/// Whether to say which profile and models are used.
pub const VERBOSE: &str = "TAKT_VERBOSE";
/// `contexts` waits for fences as on drivers of NVIDIA, so that tests can see that elsewhere.
pub const FENCES: &str = "TAKT_FENCES";

/// File that gets facts about the driver, for `takt doctor`.
pub const FACTS: &str = "TAKT_FACTS";

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
        let path = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = env::var(NAME).ok().filter(|name| !name.is_empty());
        Self {
            app: cell(&named.unwrap_or_else(program)),
            process: std::process::id(),
            socket: path(SOCKET),
            hello: Hello {
                priority: number(PRIORITY),
                fps_mhz: number(FPS),
                etpf_ns: number(ETPF),
                max_slice_ns: number(MAX_SLICE),
                display: env::var(DISPLAY).ok().filter(|name| !name.is_empty()),
                period_ns: number(PERIOD),
                deadline_ns: number(DEADLINE),
                runtime_ns: number(RUNTIME),
                hard: env::var_os(HARD).is_some_and(|value| !value.is_empty()),
                ..Hello::default()
            },
            measure: path(MEASURE),
            offscreen: env::var(OFFSCREEN).ok().map(|text| size(&text)),
            frames: path(FRAMES),
            facts: path(FACTS),
            choice: choice(),
            profile: path(PROFILE).and_then(|path| profile(&path)),
            store: env::var_os(STORE).map(|list| env::split_paths(&list).collect()).unwrap_or_default(),
            verbose: env::var_os(VERBOSE).is_some_and(|value| !value.is_empty()),
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

fn number<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
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

/// The program's own name.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    path.file_name().map_or_else(|| "app".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Cells of our files hold no commas, quotes or line ends.
fn cell(text: &str) -> String {
    text.chars().map(|c| if c == ',' || c == '"' || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_rows() {
        assert_eq!(cell("a,b\"c\nd"), "a_b_c_d");
    }
}
