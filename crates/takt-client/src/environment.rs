//! What `takt run` asks a library in a program for, by environment variables.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use takt_ipc::message::Hello;
use takt_os::sandbox;

use crate::family::{Family, Role};
use crate::{Patience, Session, guard};

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
/// How often it waits for its own groups within a frame or job at most.
pub const GAPS: &str = "TAKT_GAPS";
/// How long each of these gaps lasts at most, in nanoseconds.
pub const GAP: &str = "TAKT_GAP_NS";
/// Name of the app that consumes what it produces.
pub const FEEDS: &str = "TAKT_FEEDS";
/// Name of the app whose contract it shares.
pub const SHARES: &str = "TAKT_SHARES";
/// Not empty if a display says when its frames begin, whatever the library finds out.
pub const BY_DISPLAY: &str = "TAKT_BY_DISPLAY";
/// Not empty if its server waits when it has no budget left.
pub const HARD: &str = "TAKT_HARD";

/// What becomes of programs that the app starts: a [`Family`].
pub const FAMILY: &str = "TAKT_FAMILY";
/// Name of the app in files and for the daemon.
pub const NAME: &str = "TAKT_NAME";
/// File that gets facts about the driver, for `takt doctor`.
pub const FACTS: &str = "TAKT_FACTS";
/// Whether to say what the library does, and by which constants.
pub const VERBOSE: &str = "TAKT_VERBOSE";

/// What the variables say, as far as it does not depend on an API.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Name of the app.
    pub app: String,
    /// The process that they were read in.
    pub process: u32,
    /// Where a daemon schedules.
    pub socket: Option<PathBuf>,
    /// What the app asks it for.
    pub hello: Hello,
    /// Where facts about the driver go.
    pub facts: Option<PathBuf>,
    /// Whether to say more.
    pub verbose: bool,
    /// The user wants nothing of Takt in this process.
    pub left_out: bool,
}

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Self {
        sandbox::note();
        let process = std::process::id();
        let family = text(FAMILY).and_then(|text| text.parse::<Family>().ok());
        let role = family.as_ref().map_or(Role::Alone, |family| family.role(process));
        let named = text(NAME).filter(|_| role != Role::OnItsOwn);
        let app = cell(&named.unwrap_or_else(|| program(family.as_ref(), process)));
        let hello = match role {
            Role::OnItsOwn | Role::LeftOut => Hello::default(),
            Role::Alone | Role::Member => asked(),
        };
        let family = family.filter(|_| role == Role::Member).map(|family| family.number);
        Self {
            process,
            socket: path(SOCKET).filter(|_| role != Role::LeftOut),
            hello: Hello { name: takt_ipc::name::nearest(&app), family, ..hello },
            facts: path(FACTS),
            verbose: is_set(VERBOSE),
            left_out: role == Role::LeftOut,
            app,
        }
    }
}

/// What the app asks a daemon for.
fn asked() -> Hello {
    Hello {
        priority: number(PRIORITY),
        fps_mhz: number(FPS),
        etpf_ns: number(ETPF),
        max_slice_ns: number(MAX_SLICE),
        display: text(DISPLAY),
        feeds: text(FEEDS),
        shares: text(SHARES),
        period_ns: number(PERIOD),
        deadline_ns: number(DEADLINE),
        runtime_ns: number(RUNTIME),
        gaps: number(GAPS),
        gap_ns: number(GAP),
        hard: is_set(HARD),
        by_display: is_set(BY_DISPLAY),
        ..Hello::default()
    }
}

/// A session with the daemon at that socket, for what the app asks for; without a socket everything passes.
pub fn session(socket: Option<PathBuf>, hello: Hello) -> Session {
    match socket {
        Some(socket) => Session::new(socket, hello, guard::say, Patience::of_environment()),
        None => Session::absent(guard::say),
    }
}

/// The path that a variable names, if it names one.
pub fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

fn number<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}

/// What the program was called by, as far as that can be told: many commands are links. Some programs write other
/// things there, with spaces.
fn program(family: Option<&Family>, process: u32) -> String {
    let script = || family.filter(|family| family.root == process)?.script();
    let typed = || env::args_os().next().filter(|word| !word.to_string_lossy().contains(' '));
    let path = script().map(PathBuf::from).or_else(|| typed().map(PathBuf::from));
    let path = path.filter(|path| path.file_name().is_some()).or_else(|| env::current_exe().ok());
    let name = path.as_deref().and_then(Path::file_name);
    name.map_or_else(|| "app".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Cells of our files hold no commas, quotes or line ends.
fn cell(text: &str) -> String {
    text.chars().map(|c| if c == ',' || c == '"' || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_the_name_that_it_was_called_by() {
        let own = env::args().next().expect("it was called by something");
        let own = Path::new(&own).file_name().expect("a file").to_string_lossy().into_owned();
        assert_eq!(program(None, 1), own);
    }

    #[test]
    fn names_cannot_break_rows() {
        assert_eq!(cell("a,b\"c\nd"), "a_b_c_d");
    }
}
