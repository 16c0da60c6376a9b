//! Running the apps.

use std::process::{Command, Output};

use serde_json::Value;

/// Every app, with arguments that make its work small and the same in every run.
pub(crate) const APPS: &[(&str, &[&str])] = &[
    (env!("CARGO_BIN_EXE_takt-speedometer"), &[]),
    (env!("CARGO_BIN_EXE_takt-tachometer"), &["--texture", "128"]),
    (env!("CARGO_BIN_EXE_takt-map"), &[]),
    (env!("CARGO_BIN_EXE_takt-menu"), &["--dwell", "0.2"]),
    (env!("CARGO_BIN_EXE_takt-scene"), &["--texture", "64", "--shader", "marble", "--objects", "3"]),
    (env!("CARGO_BIN_EXE_takt-flood"), &["--iterations", "5", "--primitives", "100", "--draws", "2"]),
];

/// A run of some frames that reads all pixels back.
pub(crate) fn validated(program: &str, arguments: &[&str], platform: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--platform", platform, "--size", "160x120", "--frames", "5", "--fps", "0"]);
    command.args(["--swap-interval", "0", "--validate", "--json"]).args(arguments);
    command
}

/// What a run printed, one object per thread; it must have succeeded.
pub(crate) fn results(command: &mut Command) -> Vec<Value> {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The hash of a run's pixels.
pub(crate) fn hash(command: &mut Command) -> String {
    let result = &results(command)[0];
    assert_eq!((&result["frames"], &result["gl_errors"]), (&5.into(), &0.into()), "{command:?}: {result}");
    result["hash"].as_str().expect("a hash").to_owned()
}

/// Everything that a program printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
