//! `takt run`: a program with Takt underneath.
//!
//! The program replaces this process, so signals, exit code, process id and terminal
//! are its own. Nothing is installed: only its environment differs.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use takt_client::family::{Children, Family};
use takt_core::Span;
use takt_daemon::control::ask::WrittenTerms;
use takt_daemon::control::contract::Timing;
use takt_daemon::control::pacing::Pace;
use takt_daemon::control::terms::Terms;
use takt_gl::predict::{Choice, Combination};
use takt_gl::settings;
use takt_predict::profile::{PROFILE_BYTES_MAX, Profile};

use crate::Answer;
use crate::args::{RunArgs, ScheduleArgs};
use crate::hook::{Hooking, Way, program};
use crate::temporary::fresh_folder;
use crate::watch::Kin;
use crate::{background, load, watch};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Answer> {
    let hooking = Hooking::prepare(args.hook)?;
    if args.verbose {
        crate::output::warn(&format!("takt: {hooking}"));
    }
    let (name, arguments) = args.command.split_first().context("no command was given")?;
    warn_of(Path::new(name), hooking.way);
    let mut command = Command::new(name);
    command.args(arguments);
    command.envs(hooking.variables.iter().map(|(name, value)| (name, value)));
    let terms = terms(&args.schedule)?;
    // The daemon wants to know beforehand what groups cost.
    let mode = args.mode.or_else(|| terms.is_some().then(Combination::default));
    predict(&mut command, args, mode)?;
    render(&mut command, args, hooking.way)?;
    if args.verbose {
        command.env(settings::VERBOSE, "1");
    }
    if let Some(name) = &args.name {
        command.env(settings::NAME, name);
    }
    let is_looked_at = terms.is_some() || args.measure.is_some() || args.compare.is_some();
    let daemon = terms.as_ref().map(|_| args.schedule.socket.path());
    if let Some(terms) = terms {
        command.envs(terms);
    }
    let (mark, variable) = mark(args.children, Path::new(name));
    command.env(settings::FAMILY, variable);
    if is_looked_at {
        let tally = args.verbose.then(|| fresh_folder(&std::env::temp_dir(), "takt-tally")).transpose()?;
        command.envs(tally.iter().map(|folder| (settings::TALLY, folder)));
        let duties = watch::Duties { tally: tally.as_deref(), daemon: daemon.as_deref() };
        let kin = Kin::of(std::process::id()).marked(mark);
        let kin = if args.children == Children::None { kin.alone() } else { kin };
        watch::beside(kin, &watch::Ways::of(&hooking), duties);
    }
    // Comes back only if it failed.
    let error = command.exec();
    let (code, problem) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, format!("cannot find the command '{}'", name.display())),
        _ => (NOT_EXECUTABLE, format!("cannot run '{}': {error}", name.display())),
    };
    crate::output::warn(&format!("takt: {problem}"));
    Ok(Answer::Exit(code))
}

/// What marks a command that this process becomes or starts, and all that the command starts, in their environments:
/// `NAME=VALUE`, and the value. Its number must differ from those of other families of this user, also where processes
/// of containers have the same numbers.
pub(crate) fn mark(children: Children, command: &Path) -> (String, String) {
    let command = command.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let root = std::process::id();
    let number = takt_os::clock::now().as_ns().rotate_left(u32::BITS) ^ u64::from(root);
    let family = Family { children, root, number, command }.to_string();
    (format!("{}={family}", settings::FAMILY), family)
}

/// Says how the program is to predict and measure its groups.
fn predict(command: &mut Command, args: &RunArgs, mode: Option<Combination>) -> anyhow::Result<()> {
    let choice = match (&args.compare, mode) {
        (Some(_), _) => Choice::all(args.overpredict),
        (None, Some(mode)) => Choice::one(mode, args.overpredict),
        (None, None) => Choice::default(),
    };
    if let Some(path) = args.compare.as_ref().or(args.measure.as_ref()) {
        command.env(settings::MEASURE, new_table(path, &takt_gl::measure::header(&choice))?);
    }
    match (&args.compare, mode) {
        (Some(_), _) => command.env(settings::MODE, "all"),
        (None, Some(mode)) => command.env(settings::MODE, mode.to_string()),
        (None, None) => command,
    };
    command.env(settings::OVERPREDICT, args.overpredict.to_string());
    if let Some(profile) = &args.profile {
        command.env(settings::PROFILE, checked_profile(profile)?);
    }
    let stores = args.store.as_ref().map_or_else(takt_calibrate::store::all, |store| vec![store.clone()]);
    let stores = std::env::join_paths(stores.iter().filter_map(|store| std::path::absolute(store).ok()));
    command.env(settings::STORE, stores.context("the path of a store contains a colon")?);
    Ok(())
}

/// Says where the program is to draw.
fn render(command: &mut Command, args: &RunArgs, way: Way) -> anyhow::Result<()> {
    if let Some(size) = &args.offscreen {
        if way == Way::Preload {
            bail!("--offscreen needs libglvnd: only its drivers can be given another display");
        }
        command.env(settings::OFFSCREEN, size);
    }
    if let Some(folder) = &args.dump_frames {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        command.env(settings::FRAMES, folder.canonicalize()?);
    }
    Ok(())
}

/// Warns of a program that ignores its environment, or is for 32 bits: it would run without Takt.
fn warn_of(command: &Path, way: Way) {
    let Some(path) = program::find(command) else {
        return;
    };
    if program::is_for_32_bits(&program::head(&path)) {
        crate::output::warn(&format!(
            "takt: {} is a 32-bit program, so it runs without Takt; 64-bit programs that it starts are hooked",
            path.display()
        ));
    }
    let shown = path.display();
    match program::gain(&path) {
        Some(gain) if gain.keeps_out(way) => {
            crate::output::warn(&format!("takt: {shown} {gain}; to hook it, {}", gain.remedy()));
        }
        Some(gain) => crate::output::warn(&format!("takt: {shown} {}", gain.without_glx())),
        None => {}
    }
}

/// What the program is to ask the daemon for, as variables; none if it is not to be scheduled.
fn terms(args: &ScheduleArgs) -> anyhow::Result<Option<Vec<(&'static str, OsString)>>> {
    let given = args.terms.terms();
    if !args.schedule && given == WrittenTerms::default() {
        return Ok(None);
    }
    let terms = possible(given).checked().map_err(anyhow::Error::msg)?;
    let socket = args.socket.path();
    if !args.no_daemon && !args.socket.is_given() {
        // Without one the program runs all the same.
        if let Err(error) = background::ensure(&socket) {
            crate::output::warn(&format!("takt: {error:#}"));
        }
    }
    let mut variables = vec![(settings::SOCKET, socket.into_os_string())];
    for (name, value) in asked(&terms) {
        variables.extend(value.map(|value| (name, OsString::from(value))));
    }
    Ok(Some(variables))
}

/// The terms without a server that could never be. The program is not to blame, so it runs.
fn possible(given: WrittenTerms) -> WrittenTerms {
    match (given.runtime_ms, given.period_ms) {
        (Some(runtime), Some(period)) if runtime > period => {
            crate::output::warn(&format!(
                "takt: --runtime-ms {runtime} is longer than --period-ms {period}: the program runs without a contract"
            ));
            WrittenTerms { runtime_ms: None, period_ms: None, deadline_ms: None, hard: None, ..given }
        }
        _ => given,
    }
}

/// Terms as variables.
fn asked(terms: &Terms) -> [(&'static str, Option<String>); 14] {
    let ns = |span: Option<Span>| span.map(|span| span.as_ns().to_string());
    let (mut display, mut is_hard) = (None, false);
    let [period, deadline, runtime] = match &terms.timing {
        None => [None; 3],
        Some(Timing::Display(name)) => {
            display = Some(name.clone());
            [None; 3]
        }
        Some(Timing::Own { period, deadline }) => [Some(*period), Some(*deadline), None],
        Some(Timing::Server { runtime, period, hard, .. }) => {
            is_hard = *hard;
            [Some(*period), None, Some(*runtime)]
        }
    };
    [
        (settings::PRIORITY, terms.priority.map(|priority| priority.to_string())),
        (settings::FPS, terms.fps_mhz.map(|mhz| mhz.to_string())),
        (settings::ETPF, ns(terms.etpf)),
        (settings::MAX_SLICE, ns(terms.max_slice)),
        (settings::DISPLAY, display.filter(|name| !name.is_empty())),
        (settings::BY_DISPLAY, (terms.pace == Some(Pace::Display)).then(|| "1".to_owned())),
        (settings::PERIOD, ns(period)),
        (settings::DEADLINE, ns(deadline)),
        (settings::RUNTIME, ns(runtime)),
        (settings::HARD, is_hard.then(|| "1".to_owned())),
        (settings::GAPS, terms.gaps.map(|gaps| gaps.count.to_string())),
        (settings::GAP, ns(terms.gaps.map(|gaps| gaps.length))),
        (settings::FEEDS, terms.feeds.clone()),
        (settings::SHARES, terms.shares.clone()),
    ]
}

/// The path of a profile for use from anywhere. A program that runs already could only warn of a
/// bad one, and go on with rough constants.
fn checked_profile(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let text = load::read(path, PROFILE_BYTES_MAX as u64).with_context(|| format!("cannot read {shown}"))?;
    if let Err(mistake) = Profile::parse(&text) {
        bail!("{shown}: {mistake}; docs/prediction.md describes profile files");
    }
    path.canonicalize().with_context(|| format!("cannot find {shown}"))
}

/// Makes a file that holds nothing but column names, and gives its path for use from anywhere.
fn new_table(path: &Path, header: &str) -> anyhow::Result<PathBuf> {
    fs::write(path, header).with_context(|| format!("cannot write {}", path.display()))?;
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}

/// As shells and env(1) have it.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(terms: &WrittenTerms) -> Vec<(&'static str, String)> {
        let all = asked(&terms.checked().expect("they make sense"));
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    #[test]
    fn contracts_are_handed_to_the_program() {
        let server = WrittenTerms {
            runtime_ms: Some(3.0),
            period_ms: Some(40.0),
            hard: Some(true),
            ..WrittenTerms::default()
        };
        let pairs = [("TAKT_PERIOD_NS", "40000000"), ("TAKT_RUNTIME_NS", "3000000"), ("TAKT_HARD", "1")];
        assert_eq!(variables(&server), pairs.map(|(name, value)| (name, value.to_owned())));
        let own = WrittenTerms {
            period_ms: Some(33.3),
            etpf_ms: Some(4.0),
            gaps: Some(2),
            gap_ms: Some(0.5),
            ..WrittenTerms::default()
        };
        let pairs = [
            ("TAKT_ETPF_NS", "4000000"),
            ("TAKT_PERIOD_NS", "33300000"),
            ("TAKT_DEADLINE_NS", "33300000"),
            ("TAKT_GAPS", "2"),
            ("TAKT_GAP_NS", "500000"),
        ];
        assert_eq!(variables(&own), pairs.map(|(name, value)| (name, value.to_owned())));
        let display =
            WrittenTerms { display: Some("hud".to_owned()), fps: Some(30.0), ..WrittenTerms::default() };
        let pairs = [("TAKT_FPS_MHZ", "30000"), ("TAKT_DISPLAY", "hud")];
        assert_eq!(variables(&display), pairs.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn contradictions_are_found_before_the_program_starts() {
        let terms = WrittenTerms { hard: Some(true), ..WrittenTerms::default() };
        assert_eq!(
            terms.checked().expect_err("hard, but no server"),
            "hard = true: only a server can be hard: add runtime_ms and period_ms"
        );
    }
}
