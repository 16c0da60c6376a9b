//! Programs by clocks of their own, with and without swaps: their frames are seen, and held to their rate.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::daemon::{Background, Daemon, await_that, ended};
use crate::support::server::Server;
use crate::support::{GL, app, products, text, trap};

/// Frames of the trap.
const FRAMES: usize = 100;
/// Frames at the start that may pass before the rhythm is known.
const UNKNOWN: usize = 12;
/// Frames that are not held back meanwhile.
const UNHELD: usize = 20;

/// What came of a run.
struct Ran {
    /// Frames that the daemon saw end.
    frames: usize,
    took: Duration,
}

/// Runs the trap for a hundred frames under a daemon of its own.
fn run(name: &str, options: &[&str], how: &str, us: &str) -> Ran {
    let program: PathBuf = trap("unswapped", &GL);
    let began = Instant::now();
    let (output, records) = recorded(name, options, &program, &[how, us], &[]);
    let took = began.elapsed();
    assert!(output.starts_with("done"), "{output}");
    Ran { frames: records.iter().filter(|line| line["record"] == "frame-done").count(), took }
}

/// Runs a program under a daemon of its own: what it said, and what the daemon recorded.
fn recorded(
    name: &str,
    options: &[&str],
    program: &Path,
    arguments: &[&str],
    variables: &[(&'static str, String)],
) -> (String, Vec<Value>) {
    let log = products().join(format!("paced-{name}.jsonl"));
    let record = log.display().to_string();
    let daemon = Daemon::with(&format!("paced-{name}"), "", &["--record", &record]);
    let mut command = daemon.run(options, program, arguments);
    let output = ended(command.envs(variables.iter().map(|(name, value)| (name, value))), name);
    assert!(output.status.success(), "{}", text(&output.stderr));
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    let records = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (text(&output.stdout), records)
}

#[test]
fn a_program_that_never_swaps_has_frames() {
    for (how, us) in [("finish", "5000"), ("flush", "5000"), ("fence", "5000"), ("finish", "0")] {
        let ran = run(&format!("{how}-{us}"), &[], how, us);
        assert!((FRAMES - UNKNOWN..=FRAMES).contains(&ran.frames), "{how} {us}: {} frames", ran.frames);
    }
}

/// Frames that ended of each app, by its slot.
fn frames_of(records: &[Value], app: u64) -> usize {
    records.iter().filter(|line| line["record"] == "frame-done" && line["app"] == app).count()
}

#[test]
fn a_compositor_without_a_surface_has_frames_however_it_hands_them_over() {
    let program = trap("surfaceless", &GL);
    for (how, us, own) in [
        ("flush", "20000", 19),
        ("image", "20000", 19),
        ("fence", "20000", 19),
        // One that does not sleep is held to its rate.
        ("flush", "0", 20),
        ("image", "0", 20),
        ("fence", "0", 20),
    ] {
        let (name, options) = (format!("surfaceless-{how}-{us}"), ["--fps", "50", "--etpf-ms", "3"]);
        let (_, records) = recorded(&name, &options, &program, &[how, us, "100", "1"], &[]);
        let frames = frames_of(&records, 0);
        assert!((FRAMES - UNKNOWN..=FRAMES + 1).contains(&frames), "{name}: {frames} frames");
        assert_eq!(clocks(&records).last(), Some(&own), "{name}");
    }
}

#[test]
fn a_compositor_that_does_not_sleep_leaves_time_to_apps_below_it() {
    let log = products().join("paced-above.jsonl");
    let daemon = Daemon::with("paced-above", "", &["--record", &log.display().to_string()]);
    let terms = ["--name", "compositor", "--priority", "90", "--fps", "30"];
    let above = trap("surfaceless", &GL);
    let above = Background::start(&mut daemon.run(&terms, &above, &["flush", "0", "0", "400"]));
    let is_known = || text(&daemon.ask(&["list"]).stdout).contains("own clock");
    await_that("it is known that the compositor runs free", is_known);
    let below = [
        "--platform",
        "off-screen",
        "--size",
        "320x240",
        "--iterations",
        "20",
        "--frames",
        "300",
        "--fps",
        "0",
    ];
    let below = ended(&mut daemon.run(&["--priority", "5"], &app("takt-flood"), &below), "the app below");
    assert!(below.status.success(), "{}", text(&below.stderr));
    drop(above);
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let joined =
        records.iter().position(|line| line["record"] == "join" && line["app"] == 1).expect("it joined");
    let left = records.iter().rposition(|line| line["record"] == "frame-done" && line["app"] == 1);
    let together = &records[joined..left.expect("frames")];
    let (above, below) = (frames_of(together, 0), frames_of(together, 1));
    assert!(below >= 90, "{below} frames below");
    // Without a hold it draws some hundred frames per second, and apps below wait for each of them.
    let at_s = |line: &Value| line["at_ns"].as_f64().expect("a time") / 1e9;
    let seconds = at_s(together.last().expect("frames")) - at_s(&together[0]);
    assert!(above as f64 <= 33.0 * seconds + 3.0, "{above} frames above in {seconds:.2} s, at 30 FPS");
}

/// A real one: its repaint timer is a clock of its own, and it swaps pbuffers.
#[test]
fn weston_is_scheduled_by_its_own_clock() {
    let folder = products().join("paced-weston");
    let _none = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("our own folder");
    let daemon = Daemon::start("paced-weston");
    let arguments =
        ["--backend=headless-backend.so", "--use-gl", "--socket=takt", "--idle-time=0", "--no-config"];
    let mut command = daemon.run(&["--name", "weston", "--etpf-ms", "5"], Path::new("weston"), &arguments);
    command.env("XDG_RUNTIME_DIR", &folder).env_remove("WAYLAND_DISPLAY");
    let _weston = Background::start(&mut command);
    await_that("weston listens", || UnixStream::connect(folder.join("takt")).is_ok());
    let mut client = Command::new("weston-simple-egl");
    client.env("XDG_RUNTIME_DIR", &folder).env("WAYLAND_DISPLAY", "takt");
    let _client = Background::start(crate::support::daemon::environment(&mut client));
    let has_clock = || text(&daemon.ask(&["list"]).stdout).contains("own clock");
    await_that("weston has a clock of its own", has_clock);
}

#[test]
fn a_program_by_its_own_clock_is_held_to_its_rate_however_it_ends_frames() {
    for how in ["finish", "swap"] {
        let ran = run(&format!("held-{how}"), &["--fps", "60", "--pace", "own"], how, "0");
        assert!(ran.frames >= FRAMES - UNKNOWN, "{how}: {} frames", ran.frames);
        let least = Duration::from_millis(16) * u32::try_from(FRAMES - UNKNOWN).expect("few");
        assert!(ran.took >= least, "{how}: {:?} for {FRAMES} frames at 60 FPS", ran.took);
    }
}

#[test]
fn a_program_without_swaps_is_held_to_the_rate_of_a_display() {
    let ran = run("held-display", &["--fps", "60"], "finish", "0");
    assert!(ran.frames >= FRAMES - UNKNOWN, "{} frames", ran.frames);
    let least = Duration::from_millis(16) * u32::try_from(FRAMES - UNHELD).expect("few");
    assert!(ran.took >= least, "{:?} for {FRAMES} frames at 60 FPS", ran.took);
}

/// The clocks that a program was scheduled by, one after the other: 0 for a display, else the period of its own
/// in milliseconds.
fn clocks(records: &[Value]) -> Vec<u64> {
    let is_change = |line: &&Value| line["record"] == "join" || line["record"] == "change";
    let period = |line: &Value| line["clock"]["own"]["period_ns"].as_u64().unwrap_or(0);
    let mut clocks: Vec<u64> =
        records.iter().filter(is_change).map(|line| period(line) / 1_000_000).collect();
    clocks.dedup();
    clocks
}

#[derive(Debug)]
struct Clocked {
    clocks: Vec<u64>,
    /// Of each phase, how many microseconds its frames were apart and its swaps took.
    phases: Vec<(u64, u64)>,
}

/// Runs the trap of many clocks.
fn clocked(name: &str, options: &[&str], arguments: &[&str], server: Option<&Server>) -> Clocked {
    let program = trap("pacing", &["-lEGL", "-lGLESv2", "-ldl"]);
    let variables = server.map(|server| server.variables.clone()).unwrap_or_default();
    let (said, records) = recorded(name, options, &program, arguments, &variables);
    let number = |text: &str| text.trim().split(' ').next().and_then(|word| word.parse().ok());
    let phase = |line: &str| {
        let figures = line.split_once(": ").and_then(|(_, rest)| rest.split_once(','));
        figures.and_then(|(apart, swaps)| number(apart).zip(number(swaps))).expect("two figures")
    };
    Clocked { clocks: clocks(&records), phases: said.lines().map(phase).collect() }
}

/// The terms of most of these programs.
const SIXTY: [&str; 4] = ["--fps", "60", "--etpf-ms", "3"];
/// Half of a frame at 60 FPS, in microseconds: a swap that takes longer was held back.
const HALF: u64 = 8_333;

#[test]
fn a_timer_loop_on_a_pbuffer_has_a_clock_of_its_own_and_is_not_held_in_its_swap() {
    for how in ["sleep", "busy"] {
        let phase = format!("1:16667:90:{how}");
        let ran = clocked(&format!("timer-{how}"), &SIXTY, &["pbuffer", &phase], None);
        assert_eq!(ran.clocks, [0, 16], "{how}: {ran:?}");
        assert!(ran.phases[0].1 < HALF, "{how}: {ran:?}");
    }
}

#[test]
fn a_program_that_runs_free_is_held_to_its_rate_in_its_swap() {
    let ran = clocked("free", &SIXTY, &["pbuffer", "1:0:120"], None);
    assert_eq!(ran.clocks, [0, 16], "{ran:?}");
    let (apart, swaps) = ran.phases[0];
    assert!(apart > 15_000 && swaps > HALF, "{ran:?}");
}

#[test]
fn a_window_keeps_the_display_until_its_interval_or_its_sleep_says_otherwise() {
    let server = Server::x11();
    let phases = ["window", "1:0:60", "0:0:60", "1:0:60", "1:16667:240"];
    let ran = clocked("window", &SIXTY, &phases, Some(&server));
    assert_eq!(ran.clocks, [0, 16, 0, 16], "a display, free, a display, and a timer: {ran:?}");
    assert!(ran.phases[..3].iter().all(|(apart, swaps)| *apart > 15_000 && *swaps > HALF), "{ran:?}");
    assert!(ran.phases[3].1 < HALF, "its own timer waits: {ran:?}");
    // Windows that nothing shows are windows to their program.
    let unseen = [&SIXTY[..], &["--offscreen"]].concat();
    let ran = clocked("window-unseen", &unseen, &["window", "1:0:60"], Some(&server));
    assert_eq!(ran.clocks, [0], "{ran:?}");
    assert!(ran.phases[0].0 > 15_000, "{ran:?}");
}

#[test]
fn without_a_rate_the_period_is_found_and_followed() {
    let phases = ["pbuffer", "1:40000:40", "1:25000:60"];
    let ran = clocked("found", &["--etpf-ms", "3"], &phases, None);
    assert_eq!(ran.clocks.first(), Some(&0), "{ran:?}");
    let has = |ms: u64| ran.clocks.iter().any(|found| (ms - 2..=ms + 2).contains(found));
    assert!(has(39) && has(24), "{ran:?}");
    assert!(ran.phases.iter().all(|(_, swaps)| *swaps < HALF), "none asks for a rate: {ran:?}");
}

#[test]
fn what_the_user_says_about_the_clock_holds() {
    let by = |pace| [&SIXTY[..], &["--pace", pace]].concat();
    let ran = clocked("said-display", &by("display"), &["pbuffer", "1:16667:60"], None);
    assert_eq!(ran.clocks, [0], "{ran:?}");
    let ran = clocked("said-own", &by("own"), &["pbuffer", "1:0:60"], None);
    assert_eq!(ran.clocks, [16], "{ran:?}");
}

#[test]
fn our_apps_are_found_out_however_they_are_paced() {
    let flood = app("takt-flood");
    let common = ["--platform", "off-screen", "--size", "64x48", "--iterations", "1", "--frames", "150"];
    for (name, fps, more, period_ms) in [
        // One that keeps its rate by itself has 63/64 of the period, to catch up.
        ("clock", "50", &["--fps", "50"][..], 19),
        ("no-swap", "50", &["--fps", "50", "--no-swap"], 19),
        ("swap", "60", &["--fps", "0", "--pace", "swap"], 16),
    ] {
        let arguments = [&common[..], more].concat();
        let options = ["--etpf-ms", "3", "--fps", fps];
        let (_, records) = recorded(&format!("app-{name}"), &options, &flood, &arguments, &[]);
        assert_eq!(clocks(&records).last(), Some(&period_ms), "{name}: {:?}", clocks(&records));
    }
}
