//! Programs that pass Takt by: the user is told, and sandboxes that hide Takt's files stop no program.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::daemon::{Talking, assert_same, ended, environment};
use crate::support::server::Server;
use crate::support::{column, products, takt, takt_command, text, trap};

fn at<'a>(server: &Server, command: &'a mut Command) -> &'a mut Command {
    environment(command).envs(server.variables.iter().map(|(name, value)| (name, value)))
}

/// The words before a program that shows it a system without what lies in Takt's cache.
fn sandbox() -> Vec<String> {
    let words = ["bwrap", "--die-with-parent", "--unshare-pid", "--bind", "/", "/", "--dev", "/dev"];
    let cache = products().join("cache").display().to_string();
    words.iter().copied().chain(["--proc", "/proc", "--tmpfs", &cache, "--"]).map(str::to_owned).collect()
}

/// A program that is measured.
fn measured(server: &Server, table: &Path, words: &[&str]) -> Command {
    let mut command = takt();
    command.arg("--measure").arg(table).arg("--").args(words);
    at(server, &mut command);
    command
}

#[test]
fn what_passes_by_is_told_with_its_api_and_what_to_do() {
    let server = Server::x11();
    let hidden: Vec<String> = sandbox().into_iter().chain(["glxgears".to_owned()]).collect();
    let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
    let cleared = ["env", "-u", "__EGL_VENDOR_LIBRARY_FILENAMES", "es2gears_x11"];
    let programs: [(&str, &[&str], &str, &str); 3] = [
        ("vulkan", &["vkcube"], "takt: vkcube (process ", "draws with Vulkan, which passes Takt by"),
        ("cleared", &cleared, "takt: es2gears_x11 (process ", "put takt run in front of the program itself"),
        ("sandbox", &hidden, "takt: glxgears (process ", "in a sandbox that hides Takt's files"),
    ];
    let mut running = programs.map(|(name, words, who, what)| {
        let table = products().join(format!("passing-{name}.csv"));
        (Talking::start(&mut measured(&server, &table, words)), who, what)
    });
    for (program, who, what) in &mut running {
        let line = program.says(who);
        assert!(line.contains(*what), "{line}");
    }
}

#[test]
fn a_window_without_a_gpu_is_told_and_the_program_ends_as_it_would() {
    let server = Server::x11();
    let program = trap("idle_window", &["-lX11"]).display().to_string();
    let mut program =
        Talking::start(&mut measured(&server, &products().join("passing-idle.csv"), &[&program]));
    program.says("it draws on the processor, so it is not scheduled");
    // What looks at it holds none of its pipes when it has ended.
    assert_eq!(program.end().0, "done\n");
}

#[test]
fn the_doctor_names_what_will_pass_by() {
    let server = Server::x11();
    let look = |words: &[&str]| -> Output {
        let mut command = takt_command("doctor");
        command.arg("--").args(words);
        ended(at(&server, &mut command), "the doctor")
    };
    let found = text(&look(&["vkcube"]).stdout);
    let line = found.lines().find(|line| line.contains("passes by")).unwrap_or_else(|| panic!("{found}"));
    assert!(line.starts_with("PROBLEM") && line.contains("draws with Vulkan"), "{line}");
    let found = text(&look(&["es2gears_x11"]).stdout);
    assert!(found.contains("ok       trial") && !found.contains("passes by"), "{found}");
}

#[test]
fn programs_in_a_sandbox_draw_as_without_takt() {
    let server = Server::x11();
    let program = trap("desktop", &["-lEGL", "-lGL", "-lX11"]).display().to_string();
    for mode in ["egl", "glx"] {
        let alone = ended(at(&server, Command::new(&program).arg(mode)), "alone");
        assert!(alone.status.success(), "{mode}: {}", text(&alone.stderr));
        let sandbox = sandbox();
        let words: Vec<&str> = sandbox.iter().map(String::as_str).chain([program.as_str(), mode]).collect();
        let table = products().join(format!("passing-{mode}.csv"));
        let hidden = ended(&mut measured(&server, &table, &words), mode);
        assert_same(&hidden, &alone, &format!("{mode} in a sandbox"));
        assert_eq!(column(&table, "kind").len(), 0, "{mode}: nothing was seen");
    }
}

/// libEGL must not find the driver that lies behind ours a second time.
#[test]
fn a_driver_and_its_devices_are_there_once() {
    let server = Server::x11();
    let alone = ended(at(&server, &mut Command::new("eglinfo")), "alone");
    assert!(text(&alone.stdout).contains("Device #0"), "{}", text(&alone.stdout));
    let table = products().join("passing-devices.csv");
    let with = ended(&mut measured(&server, &table, &["eglinfo"]), "with Takt");
    assert_eq!(text(&with.stdout), text(&alone.stdout));
    // Takt under Takt is Takt once.
    let outer = measured(&server, &table, &[]).get_program().to_owned();
    let outer = outer.to_string_lossy().into_owned();
    let twice = ended(&mut measured(&server, &table, &[&outer, "run", "--", "eglinfo"]), "twice");
    assert_eq!(text(&twice.stdout), text(&alone.stdout));
}
