//! What tests that run programs with Takt underneath have in common.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod built;
pub(crate) mod daemon;
pub(crate) mod server;

/// Folder of the test's own products.
pub(crate) fn products() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// What the command puts under programs, the apps, libtakt-cuda, and a CUDA driver without a GPU.
const BESIDE: [&str; 7] = [
    "takt-hook",
    "takt-hook-glx",
    "takt-cuda-hook",
    "takt-cuda-capi",
    "takt-slices-hook",
    "takt-apps",
    "takt-cuda-fake",
];

/// Builds what lies beside the command, once.
fn build() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built::packages(&BESIDE));
}

/// `takt run`, with everything beside it.
pub(crate) fn takt() -> Command {
    takt_command("run")
}

/// The same for any of its commands.
pub(crate) fn takt_command(name: &str) -> Command {
    build();
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
    command.arg(name).env("XDG_CACHE_HOME", products().join("cache"));
    // What is noted about traps is of no use to the user that runs the tests.
    command.env("XDG_DATA_HOME", products().join("data"));
    command
}

/// What is built beside the command, by the name of its file: an app of ours, or a library.
pub(crate) fn app(name: &str) -> PathBuf {
    build();
    Path::new(env!("CARGO_BIN_EXE_takt")).with_file_name(name)
}

/// Whether tests that take minutes are wanted.
pub(crate) fn is_slow_wanted() -> bool {
    std::env::var_os("TAKT_SLOW_TESTS").is_some()
}

/// Says why a test was not made.
#[expect(clippy::print_stderr, reason = "the log should say so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
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

/// Compiles a trap. Tests that share one run at the same time, so it is put there as a whole.
pub(crate) fn trap(name: &str, flags: &[&str]) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/traps/{name}.c"));
    let program = products().join(format!("trap-{name}"));
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let beside = products().join(format!("trap-{name}.{}-{number}", std::process::id()));
    let output = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Wno-unused-function", "-o"])
        .arg(&beside)
        .arg(source)
        .args(flags)
        .output()
        .expect("gcc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&beside, &program).expect("our own files");
    program
}

/// What traps link to.
pub(crate) const GL: [&str; 3] = ["-lEGL", "-lGLESv2", "-lpthread"];

/// A driver that draws the same everywhere.
pub(crate) const SOFTWARE: [(&str, &str); 2] = [("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")];

/// Ways to run a program with Takt underneath.
pub(crate) fn ways(name: &str) -> Vec<(String, Vec<String>)> {
    let table = |way: &str| products().join(format!("{name}-{way}.csv")).display().to_string();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    vec![
        ("plain".to_owned(), words(&["--hook", "vendor"])),
        ("measured".to_owned(), words(&["--hook", "vendor", "--measure", &table("vendor")])),
        ("compared".to_owned(), words(&["--hook", "vendor", "--compare", &table("compare")])),
        ("preloaded".to_owned(), words(&["--hook", "preload", "--compare", &table("preload")])),
    ]
}

/// Runs a trap alone and in all ways; returns what it said.
pub(crate) fn same(name: &str, program: &Path, arguments: &[&str]) -> String {
    let alone = Command::new(program).args(arguments).envs(SOFTWARE).output().expect("the trap starts");
    let said = text(&alone.stdout);
    assert!(!said.is_empty() || !alone.status.success(), "{name} says nothing: {}", text(&alone.stderr));
    for (way, options) in ways(name) {
        let output = takt()
            .args(options)
            .arg("--")
            .arg(program)
            .args(arguments)
            .envs(SOFTWARE)
            .output()
            .expect("takt starts");
        assert_eq!(text(&output.stdout), said, "{name} {way}: {}", text(&output.stderr));
        assert_eq!(output.status, alone.status, "{name} {way}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), text(&alone.stderr), "{name} {way}");
    }
    said
}
