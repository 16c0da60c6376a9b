//! All tests in one program, which is linked once.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "says what was compared, or skipped")]
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../../../takt-predict/tests/camera/mod.rs"]
mod camera;
#[path = "../../../takt-predict/tests/gears/mod.rs"]
mod gears;
#[path = "../../../takt-predict/tests/models/mod.rs"]
mod models;
#[path = "../../../takt-predict/tests/scenes/mod.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod scenes;
#[path = "../shaders/mod.rs"]
mod shaders;

mod fragments;
mod glmark2_shaders;
mod mutated_shaders;
mod positions;

use takt_gl_oracle::Driver;

/// The driver, or a loud word that there is none.
fn driver() -> Option<Driver> {
    match Driver::new() {
        Ok(driver) => {
            println!("driver: {}", driver.name());
            Some(driver)
        }
        Err(reason) => {
            eprintln!("SKIPPED: no GL ES driver to compare with: {reason} (make setup installs one)");
            None
        }
    }
}
