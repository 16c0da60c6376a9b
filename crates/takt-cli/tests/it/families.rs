//! Programs that a program starts: one contract for all of an app, apps of their own, or none of Takt's business.

use serde_json::Value;

use crate::support::daemon::{Background, Daemon, await_that};
use crate::support::server::Server;
use crate::support::text;

/// A launcher that draws nothing, and two programs that it starts.
const LAUNCHER: [&str; 2] = ["-c", "es2gears_x11 & es2gears_x11 & wait"];
/// A program that starts another one, and then draws itself.
const BOTH: [&str; 2] = ["-c", "es2gears_x11 & exec es2gears_x11"];

/// The apps that the daemon schedules.
fn apps(daemon: &Daemon) -> Vec<Value> {
    let told = text(&daemon.ask(&["list", "--json", "-"]).stdout);
    let told: Value = serde_json::from_str(&told).unwrap_or_default();
    told["apps"].as_array().cloned().unwrap_or_default()
}

fn start(server: &Server, daemon: &Daemon, options: &[&str], words: [&str; 2]) -> Background {
    let options = [&["--fps", "30", "--etpf-ms", "2"], options].concat();
    let mut command = daemon.run(&options, "sh".as_ref(), &words);
    Background::start(command.envs(server.variables.iter().map(|(name, value)| (name, value))))
}

/// The reservations of the apps, once there are so many, the smallest first.
fn reserved(daemon: &Daemon, count: usize) -> Vec<f64> {
    await_that("all draw", || apps(daemon).len() == count);
    let mut reserved: Vec<f64> = apps(daemon).iter().filter_map(|app| app["etpf_ms"].as_f64()).collect();
    reserved.sort_by(f64::total_cmp);
    reserved
}

fn names(daemon: &Daemon) -> Vec<String> {
    apps(daemon).iter().filter_map(|app| app["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn processes_of_an_app_have_one_contract_which_the_next_one_inherits() {
    let (server, daemon) = (Server::x11(), Daemon::start("family"));
    let program = start(&server, &daemon, &["--name", "hmi"], LAUNCHER);
    assert_eq!(reserved(&daemon, 2), [0.0, 2.0]);
    assert_eq!(names(&daemon), ["hmi", "hmi"]);
    let told = text(&daemon.ask(&["list"]).stdout);
    assert!(told.contains("of the same app has its contract"), "{told}");
    // The name means the process that has the contract.
    let set = daemon.ask(&["set", "hmi", "--etpf-ms", "3"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    assert_eq!(reserved(&daemon, 2), [0.0, 3.0]);
    let holder = apps(&daemon).into_iter().find(|app| app["etpf_ms"] != 0.0).expect("one has it");
    let end = format!("kill {}", holder["pid"]);
    assert!(std::process::Command::new("sh").args(["-c", &end]).status().expect("a shell").success());
    await_that("the other one has it", || {
        let apps = apps(&daemon);
        apps.len() == 1 && apps[0]["etpf_ms"] == 2.0 && apps[0]["rule"] == "within-rights"
    });
    drop(program);
}

#[test]
fn children_are_apps_of_their_own_where_the_user_says_so() {
    let (server, daemon) = (Server::x11(), Daemon::start("family-own"));
    let program = start(&server, &daemon, &["--name", "hmi", "--children", "own"], BOTH);
    assert_eq!(reserved(&daemon, 2), [0.0, 2.0]);
    let mut names = names(&daemon);
    names.sort();
    assert_eq!(names, ["es2gears_x11", "hmi"]);
    drop(program);
}

#[test]
fn children_are_left_alone_where_the_user_says_so() {
    let (server, daemon) = (Server::x11(), Daemon::start("family-none"));
    let program = start(&server, &daemon, &["--children", "none"], BOTH);
    assert_eq!(reserved(&daemon, 1), [2.0]);
    assert_eq!(names(&daemon), ["es2gears_x11"]);
    drop(program);
}

#[test]
fn a_name_of_two_apps_is_asked_about() {
    let (server, daemon) = (Server::x11(), Daemon::start("family-two"));
    let programs = [(); 2].map(|()| start(&server, &daemon, &["--name", "hmi"], ["-c", "exec es2gears_x11"]));
    assert_eq!(reserved(&daemon, 2), [2.0, 2.0], "they were started one by one");
    let set = daemon.ask(&["set", "hmi", "--etpf-ms", "3"]);
    assert!(!set.status.success());
    assert!(text(&set.stderr).contains("hmi means 2 apps"), "{}", text(&set.stderr));
    drop(programs);
}
