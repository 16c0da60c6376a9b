//! The bundle for experiments on another machine is complete: its programs run from it with nothing
//! in their environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{GL, SOFTWARE, products, takt_command, text, trap};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn scripts_judge_and_plan_as_they_say() {
    let mut checks = Command::new("python3");
    checks.arg(repository().join("eval/test")).env("TAKT", env!("CARGO_BIN_EXE_takt"));
    good(&checks.output().expect("Python starts"));
}

#[test]
fn a_bundle_runs_by_itself() {
    // Builds the libraries and the apps beside it.
    good(&takt_command("help").output().expect("takt starts"));
    let binaries = Path::new(env!("CARGO_BIN_EXE_takt")).parent().expect("a folder");
    let bundle = products().join("eval-bundle");
    let made = Command::new(repository().join("eval/bundle.sh"))
        .arg("--binaries")
        .args([binaries, &bundle])
        .output();
    good(&made.expect("the script starts"));
    let results = products().join("eval-results");
    let output = Command::new(bundle.join("eval/run"))
        .args(["--device", "mesa", "--only", "smoke", "--budget", "300", "--out"])
        .arg(&results)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output();
    let said = good(&output.expect("Python starts"));
    assert_eq!(said.matches("works: ").count(), 5, "{said}");
    assert!(results.join("results-smoke.tar.gz").exists());
    let backlog = Command::new(trap("backlog", &GL))
        .envs(SOFTWARE)
        .envs([("PBUFFER_SIZE", "256x256")])
        .env("LD_PRELOAD", bundle.join("native/libEGL.so"))
        .output();
    let said = good(&backlog.expect("the program starts"));
    assert!(["0", "1", "2"].iter().any(|few| said == format!("unfinished {few}, error 0\n")), "{said}");
}
