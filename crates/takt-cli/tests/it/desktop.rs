//! Desktop GL, on GLX and on EGL.

use std::process::{Command, Output};

use crate::support::daemon::{Background, Daemon, assert_same, await_that, ended, environment};
use crate::support::server::Server;
use crate::support::{column, products, takt, text, trap};

/// What traps of desktop GL link to.
const DESKTOP: [&str; 3] = ["-lEGL", "-lGL", "-lX11"];

fn at<'a>(server: &Server, command: &'a mut Command) -> &'a mut Command {
    environment(command).envs(server.variables.iter().map(|(name, value)| (name, value)))
}

#[test]
fn a_program_draws_and_hears_the_same_and_is_seen() {
    let (server, daemon) = (Server::x11(), Daemon::start("desktop"));
    let program = trap("desktop", &DESKTOP);
    for mode in [&["glx"][..], &["glx", "core"], &["egl"], &["egl", "core"]] {
        let name = mode.join("-");
        let run = |command: &mut Command, how: &str| -> Output {
            ended(at(&server, command), &format!("{name} {how}"))
        };
        let alone = run(Command::new(&program).args(mode), "alone");
        assert!(alone.status.success(), "{name}: {}", text(&alone.stderr));
        let table = products().join(format!("desktop-{name}.csv"));
        for option in ["--measure", "--compare"] {
            let with = run(takt().arg(option).arg(&table).arg("--").arg(&program).args(mode), option);
            assert_same(&with, &alone, &format!("{name} {option}"));
            // Each of its frames is shown.
            let frames = text(&alone.stdout).matches("error").count() - 1;
            let kinds = column(&table, "kind");
            assert_eq!(kinds.iter().filter(|kind| *kind == "swap").count(), frames, "{name} {kinds:?}");
            assert!(kinds.iter().filter(|kind| *kind != "swap").count() >= frames, "{name} {kinds:?}");
        }
        let table = products().join(format!("desktop-{name}-scheduled.csv"));
        std::fs::remove_file(&table).unwrap_or_default();
        let file = table.display().to_string();
        let scheduled = run(&mut daemon.run(&["--measure", &file], &program, mode), "scheduled");
        let groups = column(&table, "command").into_iter().zip(column(&table, "granted_us"));
        let read =
            groups.filter(|(command, _)| command == "glGetTexImage").map(|(_, granted)| !granted.is_empty());
        assert_eq!(read.collect::<Vec<_>>(), [true; 3], "{name}: read-backs are asked for");
        assert_same(&scheduled, &alone, &format!("{name} scheduled"));
        assert!(text(&scheduled.stderr).contains("scheduled as"), "{name}: {}", text(&scheduled.stderr));
    }
}

#[test]
fn gears_turn_on_glx() {
    let server = Server::x11();
    let table = products().join("glxgears.csv");
    std::fs::remove_file(&table).unwrap_or_default();
    let mut command = takt();
    command.arg("--measure").arg(&table).args(["--", "glxgears"]);
    let program = Background::start(at(&server, &mut command));
    let swaps = || std::fs::read_to_string(&table).unwrap_or_default().matches(",swap,").count();
    await_that("frames of glxgears", || swaps() > 5);
    drop(program);
    // Gears are display lists: work of unknown extent.
    assert!(column(&table, "kind").iter().any(|kind| kind == "unknown"));
}

#[test]
fn the_x_server_says_which_driver_it_wants() {
    let server = Server::x11();
    let program = trap("desktop", &DESKTOP);
    let folder = products().join("glx-drivers");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::write(folder.join("libGLX_aaa.so.0"), "no driver at all").expect("our own file");
    let alone = ended(at(&server, Command::new(&program).arg("glx")), "alone");
    let table = products().join("glx-drivers.csv");
    let run = |variables: &[(&str, &str)], wrapper: &[&str]| {
        let mut command = takt();
        command.args(["--verbose", "--measure"]).arg(&table).arg("--").args(wrapper).arg(&program).arg("glx");
        command.env("LD_LIBRARY_PATH", &folder).envs(variables.iter().copied());
        let output = ended(at(&server, &mut command), "several drivers");
        assert_same(&output, &alone, "several drivers");
        (text(&output.stderr), column(&table, "kind").len())
    };
    let (said, groups) = run(&[], &[]);
    assert!(said.contains("libGLX_aaa.so.0 and libGLX_mesa.so.0"), "{said}");
    assert!(groups > 5, "the X server wants Mesa");
    let (said, groups) = run(&[("__GLX_VENDOR_LIBRARY_NAME", "mesa")], &[]);
    assert!(!said.contains("libGLX_aaa") && groups > 5, "{said}");
    // A program that does not find our library gets its driver all the same.
    let (_, groups) = run(&[], &["env", "-u", "LD_LIBRARY_PATH"]);
    assert_eq!(groups, 0);
}
