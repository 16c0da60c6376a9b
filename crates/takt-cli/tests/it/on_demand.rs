//! Programs that ask to be scheduled find a daemon, or start one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::daemon::environment;
use crate::support::{GL, products, takt, takt_command, text};

/// Long enough for any machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for the sockets of a user.
fn home(name: &str) -> PathBuf {
    let folder = products().join(format!("on-demand-{name}"));
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn program(name: &str) -> PathBuf {
    let program = products().join(format!("on-demand-{name}-swaps"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traps/swaps.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wno-unused-function", "-o"]).arg(&program).arg(source).args(GL);
    assert!(gcc.status().expect("gcc starts").success());
    program
}

/// `command` as a user whose sockets are in `home`.
fn of_user(home: &Path, mut command: Command) -> Command {
    environment(&mut command);
    command.env("XDG_RUNTIME_DIR", home).env_remove("TAKT_SOCKET");
    command.env("TAKT_SYSTEM_SOCKET", home.join("system/control"));
    command
}

fn stop(home: &Path) {
    let output = of_user(home, takt_command("serve")).arg("--stop").output().expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let until = Instant::now() + PATIENCE;
    while home.join("takt/control.lock").exists() {
        assert!(Instant::now() < until, "the daemon does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn programs_that_start_at_once_share_one_daemon() {
    let home = home("shared");
    let program = program("shared");
    let run = |n: usize| {
        let mut command = of_user(&home, takt());
        command.args(["--name", &format!("app{n}"), "--schedule", "--"]).arg(&program).arg("only");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("takt starts")
    };
    let programs: Vec<_> = (0..4).map(run).collect();
    let mut started = 0;
    for program in programs {
        let output = program.wait_with_output().expect("it ends");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("takt: scheduled as app"), "{said}");
        started += said.matches("takt: started a daemon at").count();
    }
    assert_eq!(started, 1, "one of them starts it");
    let list = of_user(&home, takt_command("list")).output().expect("takt starts");
    assert!(list.status.success(), "it outlives the programs: {}", text(&list.stderr));
    stop(&home);
    assert!(!home.join("takt/control").exists(), "nothing stays behind");
}

#[test]
fn the_machines_daemon_serves_who_has_none() {
    let home = home("machine");
    let program = program("machine");
    let system = home.join("system/control");
    let mut serve = of_user(&home, takt_command("serve"));
    let machines = serve
        .args(["--background", "--idle-s", "60", "--socket"])
        .arg(&system)
        .output()
        .expect("takt starts");
    assert!(machines.status.success(), "{}", text(&machines.stderr));
    // A daemon of the user was killed and has left its socket behind.
    std::fs::create_dir(home.join("takt")).expect("a folder");
    drop(takt_ipc::socket::Listener::bind(&home.join("takt/control")).expect("a socket"));
    let run = || {
        let mut command = of_user(&home, takt());
        command.args(["--name", "app", "--schedule", "--"]).arg(&program).arg("only").stdout(Stdio::null());
        let output = command.output().expect("takt starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    let log = || std::fs::read_to_string(home.join("system/control.log")).expect("a log");
    let joined = || log().lines().filter(|line| line.contains(" joined ")).count();
    let said = run();
    assert!(said.contains("takt: scheduled as app") && !said.contains("started a daemon"), "{said}");
    assert_eq!(joined(), 1, "{}", log());
    // Stopping means one's own.
    let stop_own = of_user(&home, takt_command("serve")).arg("--stop").output().expect("takt starts");
    assert!(text(&stop_own.stderr).contains("no daemon answers"), "{}", text(&stop_own.stderr));
    // One's own comes first.
    let own = of_user(&home, takt_command("serve")).arg("--background").output().expect("takt starts");
    assert!(own.status.success(), "{}", text(&own.stderr));
    assert!(run().contains("takt: scheduled as app"));
    assert_eq!(joined(), 1, "{}", log());
    stop(&home);
    let mut serve = of_user(&home, takt_command("serve"));
    assert!(serve.args(["--stop", "--socket"]).arg(&system).status().expect("takt starts").success());
}

#[test]
fn no_daemon_starts_without_a_request() {
    let home = home("unwanted");
    let program = program("unwanted");
    let absent = home.join("absent.socket");
    for arguments in [
        vec!["--no-daemon", "--schedule"],
        vec!["--schedule", "--socket", absent.to_str().expect("UTF-8")],
        vec![],
    ] {
        let mut command = of_user(&home, takt());
        command.args(&arguments).arg("--").arg(&program).arg("only").stdout(Stdio::null());
        let output = command.output().expect("takt starts");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("no daemon answers"), !arguments.is_empty(), "{said}");
        assert!(!home.join("takt").exists(), "{arguments:?} started a daemon");
    }
}

#[test]
fn a_daemon_in_the_background_ends_without_clients() {
    let home = home("idle");
    let serve = |arguments: &[&str]| {
        of_user(&home, takt_command("serve")).args(arguments).output().expect("takt starts")
    };
    let config = home.join("takt.toml");
    std::fs::write(&config, "mpcg = 0").expect("written");
    let wrong = serve(&["--background", "--config", config.to_str().expect("UTF-8")]);
    assert!(
        text(&wrong.stderr).contains("takt.toml: line 1: mpcg = 0: use 1 to 64"),
        "{}",
        text(&wrong.stderr)
    );
    let started = serve(&["--background", "--idle-s", "5"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    assert!(text(&started.stdout).contains("takt/control.log"), "{}", text(&started.stdout));
    let until = Instant::now() + PATIENCE;
    while home.join("takt/control").exists() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let gone = serve(&["--stop"]);
    assert!(text(&gone.stderr).contains("no daemon answers"), "{}", text(&gone.stderr));
}

#[test]
fn a_daemon_in_the_background_inherits_nothing() {
    let home = home("inherits");
    let serve = takt_command("serve");
    let mut shell = of_user(&home, Command::new("sh"));
    shell.args(["-c", "exec 9</dev/null; exec \"$0\" serve --background"]).arg(serve.get_program());
    shell.env("NOTIFY_SOCKET", "/nowhere").env("WATCHDOG_USEC", "1000000");
    let started = shell.output().expect("sh starts");
    let said = text(&started.stdout);
    let pid = said.strip_prefix("process ").and_then(|rest| rest.split(',').next()).expect(&said);
    // It may have opened something of its own by that number since.
    let ninth = std::fs::read_link(format!("/proc/{pid}/fd/9"));
    let environment = std::fs::read(format!("/proc/{pid}/environ"));
    stop(&home);
    assert!(
        ninth.is_err() || ninth.is_ok_and(|path| path != Path::new("/dev/null")),
        "what the shell had open"
    );
    let environment = environment.expect("it ran");
    let names: Vec<_> = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    assert!(names.iter().any(|name| name.starts_with("XDG_RUNTIME_DIR=")));
    assert!(!names.iter().any(|name| name.starts_with("NOTIFY_") || name.starts_with("WATCHDOG_")));
}
