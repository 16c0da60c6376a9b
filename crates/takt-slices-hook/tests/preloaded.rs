//! The library itself, preloaded into a program that does what the vendor's libraries do, with a driver in C behind it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[path = "../../takt-cli/tests/support/built.rs"]
mod built;

fn products() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn compile(source: &str, product: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let product = products().join(product);
    // Tests that run at the same time each put a whole file there.
    let beside = product.with_extension(std::process::id().to_string());
    let output = Command::new("gcc")
        .args(["-O1", "-Wall", "-o"])
        .arg(&beside)
        .arg(source)
        .args(flags)
        .output()
        .expect("gcc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&beside, &product).expect("our own files");
    product
}

/// The library under test.
fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built::packages(&["takt-slices-hook"])).join("libtakt_ioctl.so")
}

fn run(mood: &str) -> String {
    let driver = compile("driver.c", &format!("driver-{mood}.so"), &["-shared", "-fPIC"]);
    let program = compile("program.c", &format!("program-{mood}"), &["-ldl", "-lpthread"]);
    let preload = format!("{}:{}", library().display(), driver.display());
    let output = Command::new(program)
        .env("LD_PRELOAD", preload)
        .env("FAKE_DRIVER", mood)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn slices_of_a_willing_driver_are_kept() {
    let expected = "\
other calls: -1 Inappropriate ioctl for device
errno is the program's: yes
read: groups 2 kept 2 status 0 slices 1024 to 1024
set: groups 2 kept 2 status 0 slices 300 to 300
changes by the library: 0
changes by the driver: 1
set again: groups 2 kept 2 status 0 slices 300 to 300
one less: groups 1 kept 1 status 0 slices 300 to 300
restored: groups 1 kept 1 status 0 slices 1024 to 1024
child: groups 0 kept 0 status 0 slices 0 to 0
closed: groups 1 kept 0 status ffffffff slices 0 to 0
after threads: groups 0 kept 0 status 0 slices 0 to 0
";
    assert_eq!(run("keeps"), expected);
}

#[test]
fn drivers_that_do_not_keep_slices_are_found_out() {
    for (mood, set) in [
        ("deaf", "set: groups 2 kept 0 status 0 slices 1024 to 1024\n"),
        ("refuses", "set: groups 2 kept 0 status 1b slices 0 to 0\n"),
        ("garbage", "set: groups 2 kept 0 status a5a5a5a5 slices 0 to 0\n"),
    ] {
        let said = run(mood);
        assert!(said.contains(set), "{mood}: {said}");
    }
}

#[test]
fn a_program_without_a_driver_sees_nothing_of_it() {
    let program = compile("program.c", "program-alone", &["-ldl", "-lpthread"]);
    let output = Command::new(&program).env("LD_PRELOAD", library()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("set: groups 0 kept 0 status 0"), "{said}");
    let output = Command::new(program).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no table\n");
}
