//! Recorded calls, replayed with and without Takt: the same pixels, errors and return values.
//!
//! apitrace records what programs call and replays it. The replay is recorded once more, so that
//! what each call returned can be compared, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::server::Server;
use crate::support::{GL, SOFTWARE, column, products, takt, text, trap};

/// Records what a program calls.
fn record(name: &str, program: &mut Command) -> PathBuf {
    let trace = products().join(format!("{name}.trace"));
    let mut command = Command::new("apitrace");
    command.args(["trace", "--api", "egl", "--output"]).arg(&trace);
    command.arg(program.get_program()).args(program.get_args()).envs(SOFTWARE);
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().expect("apitrace starts; packages.txt lists it");
    assert!(trace.is_file(), "{name}: {}", text(&output.stderr));
    trace
}

/// Every call with its arguments and what it returned; handles are different in every run.
fn calls(trace: &Path) -> Vec<String> {
    let output = Command::new("apitrace").args(["dump", "--color=never"]).arg(trace).output();
    let output = output.expect("apitrace starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| !line.starts_with("//")).map(without_handles).collect()
}

fn without_handles(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.chars().take_while(char::is_ascii_hexdigit).count();
        // Enums are short, and they matter.
        rest.push_str(if digits > 6 { "HANDLE" } else { "0x" });
        rest.push_str(&part[if digits > 6 { digits } else { 0 }..]);
    }
    rest
}

/// The command that replays a recording.
fn replaying(command: &mut Command) -> &mut Command {
    command.envs(SOFTWARE).env("WAFFLE_PLATFORM", "surfaceless_egl")
}

/// Hashes of all frames of a replay.
fn frames(command: &mut Command, trace: &Path) -> Vec<String> {
    replaying(command).args(["--headless", "--snapshot-prefix=-", "--snapshot-format=MD5"]).arg(trace);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| line.len() == 32).map(str::to_owned).collect()
}

/// Replays a recording alone and with Takt, and compares all there is.
fn compare(name: &str, trace: &Path) -> (usize, usize) {
    let alone = frames(&mut Command::new("eglretrace"), trace);
    for way in ["vendor", "preload"] {
        let table = products().join(format!("{name}-{way}.csv"));
        let mut command = takt();
        command.args(["--hook", way, "--compare"]).arg(&table).args(["--", "eglretrace"]);
        assert_eq!(frames(&mut command, trace), alone, "{name} {way}");
        let seen = column(&table, "kind").iter().filter(|kind| *kind == "swap").count();
        assert!(seen >= alone.len(), "{name} {way}: {seen} swaps of {}", alone.len());
    }
    let again = |name: &str| products().join(format!("{name}.trace"));
    let retrace = |command: &mut Command, into: &Path| {
        replaying(command).args(["trace", "--api", "egl", "--output"]).arg(into);
        command.args(["eglretrace", "--headless"]).arg(trace);
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
        calls(into)
    };
    let replayed = retrace(&mut Command::new("apitrace"), &again(&format!("{name}-alone")));
    let table = products().join(format!("{name}-again.csv"));
    let with =
        retrace(takt().arg("--compare").arg(table).args(["--", "apitrace"]), &again(&format!("{name}-with")));
    for (number, (with, alone)) in with.iter().zip(&replayed).enumerate() {
        assert_eq!(with, alone, "{name}: call {number}");
    }
    assert_eq!(with.len(), replayed.len(), "{name}");
    (alone.len(), replayed.len())
}

#[test]
fn recorded_traps_replay_the_same() {
    let trace = record("recorded-scene", &mut Command::new(trap("scene", &GL)));
    let (frames, calls) = compare("recorded-scene", &trace);
    assert!(frames >= 20 && calls > 500, "{frames} frames, {calls} calls");
}

#[test]
fn errors_are_recorded_the_same() {
    // What programs ask for, replays do not; so this one is recorded twice.
    let program = trap("deleted", &GL);
    let alone = calls(&record("deleted-alone", &mut Command::new(&program)));
    let mut command = takt();
    command.args(["--compare"]).arg(products().join("recorded-deleted.csv")).arg("--").arg(&program);
    let mut with = Command::new(command.get_program());
    with.args(command.get_args().take_while(|word| *word != "--")).args(["--", "apitrace", "trace"]);
    let trace = products().join("deleted-with.trace");
    with.args(["--api", "egl", "--output"]).arg(&trace).arg(&program).envs(SOFTWARE);
    with.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = with.output().expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(calls(&trace), alone);
    assert!(alone.iter().filter(|call| call.contains("glGetError() = GL_INVALID")).count() == 7, "{alone:?}");
}

#[test]
fn a_recorded_benchmark_replays_the_same() {
    let server = Server::x11();
    let scenes = [
        "build",
        "texture:texture-filter=mipmap",
        "shading:shading=phong",
        "bump:bump-render=high-poly",
        "effect2d",
        "pulsar",
        "desktop:effect=blur",
        "buffer",
        "ideas",
        "jellyfish",
        "shadow",
        "refract",
        "loop",
    ];
    let mut program = Command::new("glmark2-es2");
    program.args(["--size", "96x72"]);
    for scene in scenes {
        program.args(["-b", &format!("{scene}:duration=0.02")]);
    }
    program.envs(server.variables.iter().map(|(name, value)| (name, value)));
    let (frames, calls) = compare("recorded-benchmark", &record("recorded-benchmark", &mut program));
    assert!(frames >= scenes.len() && calls > 2000, "{frames} frames, {calls} calls");
}
