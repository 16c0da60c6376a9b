//! The commands that the documents tell newcomers to type run as they stand there.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::{app, takt_command, text};

/// What a clone has that the commands read.
const TRACKED: [&str; 4] = ["docs", "examples", "scenarios", "studies"];
/// Ends commands that hang; they take some seconds.
const PATIENCE_S: &str = "120";
/// Stops the daemon that a command started before the one that failed.
const PROLOGUE: &str = "trap 'takt serve --stop >/dev/null 2>&1 || true' EXIT\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the page is there")
}

/// All `sh` blocks below a heading, up to the next heading of that level.
fn commands(text: &str, heading: &str) -> String {
    let mut found = String::new();
    let (mut below, mut fenced) = (false, false);
    for line in text.lines() {
        match line {
            "```sh" if below => fenced = true,
            "```" => fenced = false,
            _ if fenced => found.extend([line, "\n"]),
            _ if line.starts_with("## ") => below = line == heading,
            _ => {}
        }
    }
    assert!(!found.is_empty(), "no commands below {heading}");
    found
}

/// A folder that looks like a clone after `make build apps`, with a home and sockets of its own.
struct Checkout {
    folder: PathBuf,
}

impl Checkout {
    /// Sockets need short paths, so it lies among temporary files.
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("takt-{name}-{}", std::process::id()));
        for part in ["target", "run", "home"] {
            std::fs::create_dir_all(folder.join(part)).expect("our own folder can be made");
        }
        let only_us = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder.join("run"), only_us).expect("our own folder");
        for part in TRACKED {
            let tracked = root().join(part).canonicalize().expect("it is in the repository");
            symlink(tracked, folder.join(part)).expect("our own link can be made");
        }
        let built = app("takt").parent().expect("a folder").to_owned();
        symlink(built, folder.join("target/release")).expect("our own link can be made");
        Self { folder }
    }

    fn run(&self, commands: &str) -> Output {
        // Builds what lies beside the command, if need be.
        let takt = takt_command("help");
        let mut bash = std::process::Command::new("timeout");
        bash.args([PATIENCE_S, "bash", "-eu", "-o", "pipefail", "-c"]).arg(format!("{PROLOGUE}{commands}"));
        bash.envs(takt.get_envs().filter_map(|(key, value)| Some((key, value?))));
        bash.current_dir(&self.folder).env_remove("TAKT_SOCKET");
        bash.env("HOME", self.folder.join("home")).env("XDG_RUNTIME_DIR", self.folder.join("run"));
        bash.output().expect("bash starts")
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // Nothing depends on it; the system empties its temporary files.
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn passed(output: &Output) -> String {
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}\n{said}\n{}", output.status, text(&output.stderr));
    said
}

#[test]
fn first_commands_run_as_they_stand() {
    let checkout = Checkout::new("first");
    let said = passed(&checkout.run(&commands(&page("docs/run.md"), "## First commands")));
    for wanted in [
        "Covered: 4 of 4 apps",
        "No violation in 200",
        "own clock 33.3 ms",
        // Where the core decides otherwise than this log says: scripts/example-log.sh.
        "examples/dial.jsonl: equal.",
        "out/robot.jsonl: equal.",
    ] {
        assert!(said.contains(wanted), "no '{wanted}' in\n{said}");
    }
    for written in ["car/index.html", "car.csv", "car.json", "study/results.csv", "live.pftrace"] {
        assert!(checkout.folder.join("out").join(written).exists(), "{written}");
    }
}

#[test]
fn the_readme_begins_with_commands_that_run() {
    let readme = page("README.md");
    let all = commands(&readme, "## Two commands");
    // `make` runs this very test.
    let (made, typed): (Vec<&str>, Vec<&str>) = all.lines().partition(|line| line.starts_with("make "));
    assert_eq!(made.len(), 2, "{made:?}");
    let said = passed(&Checkout::new("readme").run(&typed.join("\n")));
    assert!(said.contains("Covered: 4 of 4 apps") && said.contains("car under timeline"), "{said}");
}

#[test]
fn the_readmes_own_program_is_scheduled() {
    let readme = page("README.md");
    let typed = commands(&readme, "## Your first own program");
    let with_path = format!("export PATH=\"$PWD/target/release:$PATH\"\n{typed}");
    let output = Checkout::new("own").run(&with_path);
    let said = passed(&output);
    assert!(said.contains("command groups were seen"), "{said}");
    let row = said.lines().find(|line| line.starts_with("dial ")).expect("a row of takt list");
    assert!(row.contains("own clock 16.4 ms, 3.0 ms") || row.contains("60 fps, 3.0 ms"), "{row}");
    let told = text(&output.stderr);
    assert!(told.contains("scheduled as dial: protected"), "{told}");
}

#[test]
fn the_robots_contracts_hold_together() {
    let script = "export PATH=\"$PWD/target/release:$PATH\"
        takt serve --config examples/robot.toml --background
        for name in camera detector planner viewer; do
            takt run --name $name --schedule -- takt-speedometer --platform off-screen --fps 10 --seconds 3 &
        done
        wait";
    let output = Checkout::new("robot").run(script);
    passed(&output);
    let said = text(&output.stderr);
    for name in ["camera", "detector", "planner", "viewer"] {
        assert!(said.contains(&format!("scheduled as {name}: protected")), "{name}:\n{said}");
    }
}

#[test]
fn the_car_needs_takt() {
    let checkout = Checkout::new("car");
    let met = |policy: &str| {
        let simulate = format!("target/release/takt sim examples/car.toml --policy {policy} --json -");
        let told: Value = serde_json::from_str(&passed(&checkout.run(&simulate))).expect("JSON");
        let apps = told["apps"].as_array().expect("apps").clone();
        let share = |name: &str| apps.iter().find(|app| app["name"] == name).expect(name)["met"].as_f64();
        ["speedometer", "tachometer", "camera", "map"].map(|name| share(name).expect("a share"))
    };
    assert_eq!(met("timeline"), [1.0; 4]);
    assert!(met("fifo").iter().all(|share| *share < 0.5));
}
