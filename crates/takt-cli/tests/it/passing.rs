//! Programs that pass Takt by: the user is told, and sandboxes that hide Takt's files stop no program.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::daemon::{Talking, assert_same, await_that, ended, environment};
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

/// Programs whose environment does not lead to Takt any more, and those that a launcher leaves behind.
#[test]
fn what_launchers_do_to_programs_is_told() {
    let server = Server::x11();
    let display = format!("DISPLAY={}", server.variables[0].1);
    let cleaned = ["env", "-i", &display, "LIBGL_ALWAYS_SOFTWARE=1", "glxgears"];
    let programs: [(&str, &[&str], &str, &str); 3] = [
        ("cleaned", &cleaned, "takt: glxgears (process ", "lacks Takt's variables"),
        (
            "path",
            &["env", "LD_LIBRARY_PATH=/nowhere", "glxgears"],
            "takt: glxgears (process ",
            "LD_LIBRARY_PATH",
        ),
        ("left", &["sh", "-c", "vkcube & exit 0"], "takt: vkcube (process ", "draws with Vulkan"),
    ];
    let mut running = programs.map(|(name, words, who, what)| {
        let table = products().join(format!("launched-{name}.csv"));
        (Talking::start(&mut measured(&server, &table, words)), who, what)
    });
    for (program, who, what) in &mut running {
        let line = program.says(who);
        assert!(line.contains(*what), "{line}");
    }
}

/// What a launcher leaves behind says nothing more to its reader, so the look from outside must not keep it waiting.
#[test]
fn a_reader_does_not_wait_for_what_a_launcher_has_left() {
    let server = Server::x11();
    let table = products().join("passing-quiet.csv");
    let mut command = measured(&server, &table, &["sh", "-c", "es2gears_x11 >/dev/null 2>&1 & echo $!"]);
    let output = ended(&mut command, "the launcher");
    let left = text(&output.stdout).trim().to_owned();
    assert!(Path::new("/proc").join(&left).exists(), "{output:?}");
    let swaps = || column(&table, "kind").iter().filter(|kind| *kind == "swap").count();
    await_that("it draws, and is seen", || swaps() > 5);
    assert!(Command::new("sh").args(["-c", &format!("kill {left}")]).status().expect("a shell").success());
}

/// Whether a process looks at the program that is measured into that file.
fn looks(file: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("there").flatten();
    let mut words = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words.any(|words| text(&words).contains(file))
}

#[test]
fn the_doctor_ends_what_a_launcher_has_left() {
    let server = Server::x11();
    let file = products().join("passing-left.pid");
    std::fs::remove_file(&file).unwrap_or_default();
    let order = format!("vkcube & echo $! >{}", file.display());
    let mut command = takt_command("doctor");
    command.args(["--seconds", "3", "--", "sh", "-c", &order]);
    let found = text(&ended(at(&server, &mut command), "the doctor").stdout);
    assert!(found.contains("draws with Vulkan"), "{found}");
    let left = std::fs::read_to_string(&file).expect("the shell wrote it");
    let process = Path::new("/proc").join(left.trim()).join("exe");
    await_that("what was started has ended", || std::fs::read_link(&process).is_err());
}

#[test]
fn a_window_without_a_gpu_is_told_and_the_program_ends_as_it_would() {
    let server = Server::x11();
    let program = trap("idle_window", &["-lX11"]).display().to_string();
    let mut program =
        Talking::start(&mut measured(&server, &products().join("passing-idle.csv"), &[&program]));
    program.says("it draws on the processor, so it is not scheduled");
    // What looks at it holds none of its pipes when it has ended, and ends with it.
    assert_eq!(program.end().0, "done\n");
    await_that("the look has ended", || !looks("passing-idle.csv"));
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
