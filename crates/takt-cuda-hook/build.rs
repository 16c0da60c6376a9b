//! Gives the library the name of the driver, and has it need the driver under another one.
//!
//! Programs that ask for `libcuda.so.1` get this library. It needs `libcuda-driver.so`, which `takt run` puts beside
//! it as a link to the real driver. So the loader finds every name that this library does not have in the driver,
//! whatever the driver's version.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What the library needs; `takt-cuda` has the same name.
const DRIVER: &str = "libcuda-driver.so";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    let source = out.join("driver.c");
    fs::write(&source, "").expect("cargo's folder can be written");
    // Nothing of this stand-in is used but its name.
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let made = Command::new(linker)
        .args(["-shared", "-nostdlib", &format!("-Wl,-soname,{DRIVER}"), "-o"])
        .arg(out.join(DRIVER))
        .arg(&source)
        .status()
        .expect("a linker is there, as for all of Rust");
    assert!(made.success(), "the linker made no stand-in for the driver");
    for argument in [
        "-Wl,-soname,libcuda.so.1".to_owned(),
        "-Wl,--no-as-needed".to_owned(),
        out.join(DRIVER).display().to_string(),
        "-Wl,--as-needed".to_owned(),
        // A program may close its driver while threads of ours run.
        "-Wl,-z,nodelete".to_owned(),
        // Beside the library, and nowhere else.
        "-Wl,-rpath,$ORIGIN:$ORIGIN/none".to_owned(),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
