//! What tests that run programs with Takt underneath have in common.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Folder of the test's own products.
pub(crate) fn products() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Builds the library beside the command, once; `cargo test` alone does not.
pub(crate) fn takt() -> Command {
    takt_command("run")
}

/// The same for any of its commands.
pub(crate) fn takt_command(name: &str) -> Command {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--package", "takt-hook", "--target-dir"])
            .arg(
                Path::new(env!("CARGO_BIN_EXE_takt"))
                    .parent()
                    .and_then(Path::parent)
                    .expect("a target folder"),
            )
            .status()
            .expect("cargo starts");
        assert!(status.success());
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
    command.arg(name).env("XDG_CACHE_HOME", products().join("cache"));
    command
}

/// What was said.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Cells of a column of what was measured.
pub(crate) fn column(file: &Path, name: &str) -> Vec<String> {
    let table = std::fs::read_to_string(file).expect("a table was written");
    let mut lines = table.lines();
    let at = lines.next().and_then(|line| line.split(',').position(|cell| cell == name)).expect("the column");
    lines.map(|line| line.split(',').nth(at).expect("a full row").to_owned()).collect()
}

/// Compiles a trap.
pub(crate) fn trap(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/traps/{name}.c"));
    let program = products().join(format!("trap-{name}"));
    let output = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Wno-unused-function", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags)
        .output()
        .expect("gcc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What traps link to.
pub(crate) const GL: [&str; 3] = ["-lEGL", "-lGLESv2", "-lpthread"];
