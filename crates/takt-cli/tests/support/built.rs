//! Builds packages beside the program under test; `cargo test` alone does not.
//!
//! Each test is a process under nextest, and each call of cargo takes a while to find that nothing changed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set by `make test`, which has built all packages.
const BUILT: &str = "TAKT_BUILT";

/// Builds these packages, once in each run of tests, and returns the folder of what was built.
pub(crate) fn packages(names: &[&str]) -> PathBuf {
    let products = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = products.parent().expect("a target folder");
    let stamp = products.join(format!("built-{}", names.join("-")));
    let run = std::env::var("NEXTEST_RUN_ID").ok();
    let is_noted = || run.is_some() && std::fs::read_to_string(&stamp).ok() == run;
    if std::env::var_os(BUILT).is_none() && !is_noted() {
        build(names, target);
        std::fs::write(&stamp, run.unwrap_or_default()).expect("our own file");
    }
    target.join("debug")
}

fn build(names: &[&str], target: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--target-dir"]).arg(target);
    cargo.args(names.iter().flat_map(|name| ["--package", name]));
    assert!(cargo.status().expect("cargo starts").success(), "cannot build {names:?}");
}
