//! Programs under a daemon say and show what they do alone, whatever happens to the daemon.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use takt_ipc::client;
use takt_ipc::message::{Hello, Message};
use takt_ipc::socket::Listener;

use crate::support::daemon::{Daemon, PATIENCE, Talking, alone, assert_same, await_that, ended, environment};
use crate::support::{GL, products, takt, takt_command, text, trap};

/// Runs a program that asks the daemon at `socket` for grants.
fn scheduled(socket: &Path, program: &Path, arguments: &[&str]) -> Output {
    let mut command = takt();
    command.arg("--schedule").arg("--socket").arg(socket).arg("--").arg(program).args(arguments);
    environment(&mut command).output().expect("takt starts")
}

#[test]
fn every_trap_runs_as_it_does_alone() {
    let daemon = Daemon::start("traps");
    let cases: [(&str, &[&str]); 11] = [
        ("scene", &[]),
        ("copies", &[]),
        ("errors", &[]),
        ("huge", &[]),
        ("page_end", &[]),
        ("forks", &[]),
        ("threads", &[]),
        ("contexts", &["50"]),
        ("swaps", &["only"]),
        ("swaps", &["never"]),
        ("swaps", &["crash"]),
    ];
    for (name, arguments) in cases {
        let program = trap(name, &GL);
        let output = scheduled(&daemon.socket, &program, arguments);
        assert_same(&output, &alone(&program, arguments), name);
        let said = text(&output.stderr);
        assert!(said.contains("takt: scheduled as trap-"), "{name}: {said}");
        assert!(!said.contains("unscheduled"), "neither side finds fault with the other: {name}: {said}");
    }
}

#[test]
fn copies_ask_for_grants_where_they_matter() {
    let daemon = Daemon::start("copies");
    let program = trap_as("copies", "copies");
    let granted = || {
        let mut command = takt_command("list");
        let output =
            command.args(["--json", "-", "--socket"]).arg(&daemon.socket).output().expect("takt starts");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an answer");
        answer["daemon"]["granted"].as_u64().expect("a number")
    };
    let output = scheduled(&daemon.socket, &program, &["little"]);
    assert_same(&output, &alone(&program, &["little"]), "a little");
    let little = granted();
    assert!(little < 10, "a clear asks, what is too short does not: {little}");
    let output = scheduled(&daemon.socket, &program, &[]);
    assert_same(&output, &alone(&program, &[]), "a lot");
    let (lot, said) = (granted() - little, text(&output.stderr));
    // Where a busy machine starved the daemon, the program rightly went on without it.
    assert!(lot >= 20 || said.contains("silent"), "thirty groups that only copy: {lot}, {said}");
}

#[test]
fn a_forked_child_that_draws_leaves_its_parent_scheduled() {
    let log = products().join("forked.log");
    std::fs::remove_file(&log).unwrap_or_default();
    let log_argument = log.display().to_string();
    let daemon = Daemon::with("forked", "", &["--log", &log_argument, "--log-json"]);
    let program = trap_as("fork_draws", "forked");
    // A child inherits none of a renderer's threads.
    let threads = ("LP_NUM_THREADS", "0");
    let mut command = Command::new(&program);
    let alone = environment(&mut command).envs([threads]).output().expect("the program starts");
    let output = ended(daemon.run(&[], &program, &[]).envs([threads]), "a fork");
    assert_same(&output, &alone, "a fork");
    let said = text(&output.stderr);
    assert_eq!(said.matches("the process was forked").count(), 1, "{said}");
    for blame in ["nonsense", "evicted this program", "does not read what it is asked"] {
        assert!(!said.contains(blame), "{said}");
    }
    let log = std::fs::read_to_string(&log).expect("a log");
    assert_eq!(log.matches("\"event\":\"fault\"").count(), 0, "{log}");
}

#[test]
fn a_closed_standard_error_stops_no_program() {
    let program = trap_as("unheard", "unheard");
    let output = scheduled(&products().join("absent.socket"), &program, &[]);
    assert_same(&output, &alone(&program, &[]), "unheard");
}

/// Valgrind hides parts of a process that only the C library should look for.
#[test]
fn programs_run_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return crate::support::skipped("valgrind is not installed");
    }
    let (daemon, program) = (Daemon::start("valgrind"), trap_as("swaps", "valgrind"));
    // What drivers do with their memory, and code that they make at run time, is their business.
    let valgrind = ["--quiet", "--undef-value-errors=no", "--smc-check=all-non-file"];
    let path = program.display().to_string();
    let arguments = [&valgrind[..], &[&path, "only"]].concat();
    let output = scheduled(&daemon.socket, "valgrind".as_ref(), &arguments);
    assert_same(&output, &alone(&program, &["only"]), "valgrind");
    let said = text(&output.stderr);
    assert!(said.contains("takt: scheduled as ") && !said.contains("takt_"), "{said}");
    assert!(!said.contains("unscheduled"), "{said}");
}

#[test]
fn without_a_daemon_programs_run_on_and_say_so_once() {
    let program = trap_as("scene", "absent");
    let output = scheduled(&products().join("absent.socket"), &program, &[]);
    assert_same(&output, &alone(&program, &[]), "absent");
    let said = text(&output.stderr);
    assert_eq!(said.matches("not scheduled: no daemon answers").count(), 1, "{said}");
}

#[test]
fn knowing_where_the_daemon_is_schedules_nothing() {
    let program = trap_as("scene", "unasked");
    let mut command = takt();
    command.env("TAKT_SOCKET", products().join("absent.socket")).arg("--").arg(&program);
    let output = environment(&mut command).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[]), "unasked");
    assert_eq!(text(&output.stderr), "", "no daemon was asked");
}

#[test]
fn a_killed_daemon_stops_no_program_and_its_successor_takes_over() {
    let daemon = Daemon::start("killed");
    let mut program = Talking::start(&mut daemon.run(&[], &trap_as("swaps", "killed"), &["long"]));
    program.says("scheduled as");
    daemon.signal("-KILL");
    drop(daemon);
    program.says("the daemon is gone; the program runs on unscheduled");
    let _successor = Daemon::start("killed");
    program.says("scheduled as");
    let (shown, said) = program.end();
    assert!(shown.starts_with("long: error 0,"), "{shown}");
    assert_eq!(said.matches("unscheduled").count(), 1, "{said}");
    assert!(!said.contains("not scheduled"), "once is enough: {said}");
}

#[test]
fn a_stopped_daemon_stops_no_program_and_takes_over_again() {
    let daemon = Daemon::start("stopped");
    let mut program = Talking::start(&mut daemon.run(&[], &trap_as("swaps", "stopped"), &["long"]));
    program.says("scheduled as");
    daemon.signal("-STOP");
    program.says("the daemon was stopped; the program runs on unscheduled");
    daemon.signal("-CONT");
    program.says("scheduled as");
    let (shown, said) = program.end();
    assert!(shown.starts_with("long: error 0,"), "{shown}");
    assert_eq!(said.matches("unscheduled").count(), 1, "{said}");
    assert!(!said.contains("is taken"), "it meets itself: {said}");
}

#[test]
fn a_daemon_that_stays_stopped_stops_no_program() {
    let daemon = Daemon::start("stays");
    let mut program = Talking::start(&mut daemon.run(&[], &trap_as("swaps", "stays"), &["long"]));
    program.says("scheduled as");
    daemon.signal("-STOP");
    let (shown, said) = program.end();
    assert!(shown.starts_with("long: error 0,"), "{shown}");
    assert!(said.matches("unscheduled").count() <= 1, "it is said once: {said}");
    daemon.signal("-CONT");
}

#[test]
fn a_daemon_of_another_version_is_told_apart() {
    let socket = products().join("version.socket");
    std::fs::remove_file(&socket).unwrap_or_default();
    let listener = Listener::bind(&socket).expect("bound");
    let program = trap_as("scene", "version");
    let alone = alone(&program, &[]);
    let output = std::thread::scope(|scope| {
        let running = scope.spawn(|| scheduled(&socket, &program, &[]));
        let mut newer = Message::Refused { reason: "no".to_owned(), again_ms: None }.encode();
        newer[4] = 77;
        let mut answered = Vec::new();
        // `takt run` itself has a connection that says nothing, so which one is the program's is not known.
        while !running.is_finished() {
            match listener.accept().expect("a socket") {
                Some((connection, _)) => {
                    rustix::net::send(&connection, &newer, rustix::net::SendFlags::empty()).expect("sent");
                    answered.push(connection);
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        running.join().expect("no panic")
    });
    assert_same(&output, &alone, "version");
    let said = text(&output.stderr);
    let versions = format!("the other side speaks version 77, this one {}; upgrade", takt_ipc::VERSION);
    assert!(said.contains(&versions), "{said}");
    std::fs::remove_file(&socket).expect("removed");
}

#[test]
fn a_frame_rate_is_kept_and_seen() {
    let daemon = Daemon::start("paced");
    let program = trap_as("swaps", "paced");
    let mut command = takt();
    command.args(["--name", "dial", "--priority", "9", "--fps", "60", "--etpf-ms", "2"]);
    command.arg("--socket").arg(&daemon.socket).arg("--").arg(&program).arg("only");
    let began = Instant::now();
    let output = environment(&mut command).output().expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("scheduled as dial: protected"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("unscheduled"), "{}", text(&output.stderr));
    // A hundred frames at 60 per second cannot take less, but for the first six, at which Takt looks.
    assert!(began.elapsed() > Duration::from_millis(1_500), "{:?}", began.elapsed());
    let list = takt_command("list").arg("--socket").arg(&daemon.socket).output().expect("takt starts");
    assert!(text(&list.stdout).contains("Policy timeline"), "{}", text(&list.stdout));
}

/// Its blits are said to take far longer than they do, and the dial does not leave that much.
#[test]
fn work_that_fits_nowhere_waits_is_named_and_runs_when_the_contract_ends() {
    let socket = products().join("waits-whole.metrics");
    std::fs::remove_file(&socket).unwrap_or_default();
    let daemon = Daemon::with("waits-whole", "", &["--metrics", &format!("unix:{}", socket.display())]);
    let program = trap_as("long_blit", "waits-whole");
    let options = ["--overpredict", "1000", "--name", "mirror"];
    let mut waiting = Talking::start(&mut daemon.run(&options, &program, &[]));
    waiting.says("it blits");
    let dial = Hello {
        name: "dial".to_owned(),
        priority: Some(90),
        fps_mhz: Some(60_000),
        etpf_ns: Some(14_000_000),
        ..Hello::default()
    };
    let dial = client::join(&daemon.socket, &dial, PATIENCE).expect("joined");
    let said = waiting.says("waits: it cannot be cut and fits nowhere beside the contracts of other apps");
    let length = |said: &str, behind: &str| {
        let ms = said.split(behind).nth(1).and_then(|rest| rest.split(" ms").next());
        ms.and_then(|ms| ms.parse::<f64>().ok()).unwrap_or_else(|| panic!("no length: {said}"))
    };
    assert!(said.contains("takt: glBlitFramebuffer of ") && said.contains("uncut = \"run\""), "{said}");
    let ms = length(&said, "glBlitFramebuffer of ");
    assert!(ms > 14.0, "{said}");
    let mut listed = String::new();
    await_that("the list names the command", || {
        listed = text(&daemon.ask(&["list"]).stdout);
        listed.contains("mirror waits: glBlitFramebuffer, of ")
    });
    assert!(listed.contains("uncut = \"run\" in its [[app]] section lets it run."), "{listed}");
    assert!((length(&listed, "glBlitFramebuffer, of ") - ms).abs() < 0.2, "{listed}");
    let metric = "takt_uncut_seconds{app=\"mirror\",slot=\"0\",command=\"glBlitFramebuffer\"} ";
    let mut page = String::new();
    await_that("the metric names the command", || {
        page = metrics(&socket);
        page.contains(metric)
    });
    let seconds = page.split(metric).nth(1).and_then(|rest| rest.lines().next()).expect("a value");
    assert!((seconds.parse::<f64>().expect("a number") * 1e3 - ms).abs() < 0.2, "{seconds}");
    drop(dial);
    waiting.end();
}

/// What a monitoring tool gets; nothing if it is too slow.
fn metrics(socket: &Path) -> String {
    let fetch = || -> std::io::Result<String> {
        let mut visitor = UnixStream::connect(socket)?;
        visitor.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
        let mut page = String::new();
        visitor.read_to_string(&mut page)?;
        Ok(page)
    };
    fetch().unwrap_or_default()
}

/// Programs of all kinds under each policy, while terms and policy change: what they show is what
/// they show alone, and the daemon finds fault with none.
#[test]
fn every_policy_schedules_real_programs() {
    let program = trap_as("swaps", "policies");
    for policy in ["timeline", "frame-deadline", "fifo", "hpf", "timegraph", "edf-cbs"] {
        let log = products().join(format!("policy-{policy}.log"));
        std::fs::remove_file(&log).unwrap_or_default();
        let log_argument = log.display().to_string();
        let daemon = Daemon::with(policy, "", &["--policy", policy, "--log", &log_argument, "--log-json"]);
        let run = |name: &str, terms: &[&str], what: &str| {
            let options = [&["--name", name], terms].concat();
            let mut program = Talking::start(&mut daemon.run(&options, &program, &[what]));
            program.says(&format!("scheduled as {name}: "));
            program
        };
        let dial = run("dial", &["--priority", "90", "--fps", "60", "--etpf-ms", "2"], "long");
        let game = run("game", &["--priority", "20"], "unseen");
        let map = run("map", &["--priority", "10"], "long");
        let set = |arguments: &[&str]| {
            let output = daemon.ask(&[&["set"], arguments].concat());
            assert!(output.status.success(), "{policy}: {}", text(&output.stderr));
        };
        set(&["game", "--priority", "95"]);
        set(&["map", "--fps", "30", "--etpf-ms", "1"]);
        set(&["--policy", "fifo"]);
        set(&["--policy", policy]);
        // Under `hpf` no app draws while the most important app is in a frame, and `game` has no end of it.
        for (program, says) in [(game, "unseen"), (dial, "long"), (map, "long")] {
            let (shown, said) = program.end();
            assert!(shown.starts_with(&format!("{says}: error 0,")), "{policy}: {shown}");
            assert!(!said.contains("unscheduled"), "{policy}: {said}");
        }
        let log = std::fs::read_to_string(&log).expect("a log");
        let events = |event: &str, app: &str| {
            let (event, app) = (format!("\"event\":\"{event}\""), format!("\"app\":\"{app}\""));
            log.lines().filter(|line| line.contains(&event) && line.contains(&app)).count()
        };
        assert_eq!(log.matches("\"event\":\"fault\"").count(), 0, "{policy}: {log}");
        for name in ["dial", "game", "map"] {
            assert_eq!(events("joined", name), 1, "{policy}: {log}");
        }
        assert!(events("changed", "game") >= 1 && events("changed", "map") >= 1, "{policy}: {log}");
        assert_eq!(log.matches("\"event\":\"policy\"").count(), 2, "{policy}: {log}");
    }
}

/// A copy of a trap under another name, so that tests do not compile over each other.
fn trap_as(name: &str, copy: &str) -> PathBuf {
    let program = products().join(format!("scheduled-{copy}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/traps/{name}.c"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wno-unused-function", "-o"]).arg(&program).arg(source).args(GL);
    assert!(gcc.status().expect("gcc starts").success());
    program
}
