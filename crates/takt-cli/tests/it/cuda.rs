//! CUDA programs under `takt run`, on a driver without a GPU.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::daemon::{Daemon, Talking, ended, environment};
use crate::support::{products, takt, text};

/// The folder in which programs find the driver.
fn driver() -> PathBuf {
    let folder = products().join("cuda-driver");
    std::fs::create_dir_all(&folder).expect("our own folder");
    let target = crate::support::app("libtakt_cuda_fake.so");
    // Tests make it at the same time.
    let beside = folder.join(format!("driver-{}", std::process::id()));
    symlink(target, &beside).expect("our own folder");
    std::fs::rename(&beside, folder.join("libcuda.so.1")).expect("our own folder");
    folder
}

/// Compiles a program of the tests of takt-cuda-hook.
fn compile(name: &str) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../takt-cuda-hook/tests/programs/{name}.c"));
    let program = products().join(format!("cuda-{name}"));
    let beside = products().join(format!("cuda-{name}-{}", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&beside).arg(source).args(["-ldl", "-lpthread"]);
    let output = gcc.output().expect("gcc starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::rename(&beside, &program).expect("our own files");
    program
}

fn with_driver<'a>(command: &'a mut Command, find: &str) -> &'a mut Command {
    environment(command.env("LD_LIBRARY_PATH", driver()).env("FIND", find))
}

fn alone(program: &Path, find: &str) -> Output {
    ended(with_driver(&mut Command::new(program), find), "the program alone")
}

#[test]
fn programs_find_takt_by_every_name_of_the_driver() {
    let program = compile("names");
    for library in ["libcuda.so.1", "libcuda.so"] {
        for hook in ["auto", "preload"] {
            let mut command = takt();
            command.args(["--verbose", "--hook", hook, "--"]).arg(&program).env("LIBRARY", library);
            let output = ended(with_driver(&mut command, "symbol"), library);
            let (said, errors) = (text(&output.stdout), text(&output.stderr));
            assert!(
                said.contains("cuLaunchKernel: ours by name, ours by address"),
                "{library}: {said}{errors}"
            );
            assert!(errors.contains("cuda-driver/libcuda.so.1"), "it says which driver is behind: {errors}");
        }
    }
}

#[test]
fn nested_runs_stand_in_front_of_the_driver_once() {
    let program = compile("names");
    let mut command = takt();
    command.arg("--").arg(env!("CARGO_BIN_EXE_takt")).args(["run", "--verbose", "--"]).arg(&program);
    let output = ended(with_driver(&mut command, "symbol"), "nested");
    assert!(text(&output.stdout).contains("ours by name"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("cuda-driver/libcuda.so.1"), "{}", text(&output.stderr));
}

#[test]
fn without_a_driver_nothing_of_it_is_in_the_environment() {
    let variables = |takt: &mut Command| text(&ended(takt.args(["--", "env"]), "env").stdout);
    let without = variables(takt().env_remove("LD_LIBRARY_PATH"));
    if without.contains("takt/hook/cuda") {
        // This machine has a driver of its own.
        return;
    }
    assert!(!without.contains("libtakt_ioctl"), "{without}");
    let mut with = takt();
    let with = variables(with_driver(&mut with, "symbol"));
    assert!(with.contains("takt/hook/cuda") && with.contains("LD_PRELOAD="), "{with}");
    assert!(with.contains("libtakt_ioctl.so"), "{with}");
}

#[test]
fn scheduled_programs_do_the_same() {
    let daemon = Daemon::start("cuda-same");
    for name in ["order", "graphs", "threads"] {
        let program = compile(name);
        for find in ["symbol", "thread"] {
            let expected = alone(&program, find);
            let mut command = daemon.run(&[], &program, &[]);
            let output = ended(with_driver(&mut command, find), name);
            assert_eq!(text(&output.stdout), text(&expected.stdout), "{name}: {}", text(&output.stderr));
            assert!(output.status.success(), "{name}: {}", text(&output.stderr));
            assert!(text(&output.stderr).contains("scheduled as"), "{name}: {}", text(&output.stderr));
        }
    }
}

/// The load of experiments, which runs until it is told to end.
fn compute() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/native/compute.c");
    let program = products().join("cuda-compute");
    let beside = products().join(format!("cuda-compute-{}", std::process::id()));
    let output =
        Command::new("gcc").args(["-O1", "-Wall", "-o"]).arg(&beside).arg(source).arg("-ldl").output();
    assert!(output.expect("gcc starts").status.success());
    std::fs::rename(&beside, &program).expect("our own files");
    program
}

/// A kernel of so many milliseconds, in iterations of the driver without a GPU.
fn iterations(ms: u64) -> String {
    (ms * 1_000_000 / 20).to_string()
}

#[test]
fn kernels_that_are_longer_than_any_group_run() {
    let (daemon, program) = (Daemon::start("cuda-long"), compute());
    let long = iterations(120);
    let arguments = ["flood", "--iterations", &long, "--seconds", "2"];
    // Another app, so that it is not alone.
    let mut other =
        Talking::start(with_driver(&mut daemon.run(&["--name", "other"], &program, &arguments), ""));
    other.says("scheduled as");
    let began = Instant::now();
    let output = ended(with_driver(&mut daemon.run(&[], &program, &arguments), ""), "a flood");
    assert!(output.status.success() && jobs(&output) >= 2, "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    other.end();
}

#[test]
fn a_runtime_longer_than_its_period_is_named_and_the_program_runs() {
    let (daemon, program) = (Daemon::start("cuda-too-long"), compile("threads"));
    let options = ["--runtime-ms", "20", "--period-ms", "16.7"];
    let output = ended(with_driver(&mut daemon.run(&options, &program, &[]), "symbol"), "threads");
    let errors = text(&output.stderr);
    assert!(errors.contains("--runtime-ms 20 is longer than --period-ms 16.7"), "{errors}");
    assert!(output.status.success() && text(&output.stdout).ends_with("done\n"), "{errors}");
    assert!(errors.contains("scheduled as"), "best effort: {errors}");
}

#[test]
fn the_doctor_sees_every_launch() {
    let program = compute();
    let mut command = crate::support::takt_command("doctor");
    command.args(["--seconds", "20", "--"]).arg(&program);
    command.args(["flood", "--iterations", &iterations(1), "--seconds", "0.3"]);
    let output = ended(with_driver(&mut command, ""), "the doctor");
    let said = text(&output.stdout);
    assert!(said.contains("cuda-driver/libcuda.so.1 is the driver"), "{said}");
    let seen = said.lines().find(|line| line.contains("kernels")).unwrap_or_else(|| panic!("{said}"));
    assert!(seen.contains("a driver of version 13.0") && !seen.contains(": 0 kernels"), "{seen}");
}

#[test]
fn all_launches_of_a_program_are_counted_when_it_ends() {
    let (program, facts) = (compute(), products().join("cuda-counted.facts"));
    let mut command = takt();
    command.arg("--").arg(&program).args(["flood", "--iterations", &iterations(1), "--seconds", "0.5"]);
    let output = ended(with_driver(command.env("TAKT_FACTS", &facts), ""), "a flood");
    let said = text(&output.stdout);
    let made =
        said.split("\"launches\": ").nth(1).and_then(|rest| rest.split('}').next()).expect("it counts");
    let seen = std::fs::read_to_string(facts.with_extension("cuda")).expect("facts");
    assert!(seen.contains(&format!("cuda.kernels={}\n", made.trim())), "{made} {seen}");
}

/// How many kernels a load of experiments has run.
fn jobs(output: &Output) -> u32 {
    let said = text(&output.stdout);
    let jobs = said.split("\"jobs\": ").nth(1).and_then(|rest| rest.split(',').next());
    jobs.and_then(|jobs| jobs.parse().ok()).unwrap_or_else(|| panic!("{said} {}", text(&output.stderr)))
}

#[test]
fn a_job_with_a_contract_and_floods_share_a_gpu() {
    let (daemon, program) = (Daemon::start("cuda-shared"), compute());
    let gpu = products().join("cuda-shared.gpu");
    std::fs::remove_file(&gpu).unwrap_or_default();
    let (long, short) = (iterations(40), iterations(2));
    let flood = ["flood", "--iterations", &long, "--seconds", "3"];
    let mut floods: Vec<Talking> = (0..3)
        .map(|n| {
            let name = format!("flood-{n}");
            let mut command = daemon.run(&["--name", &name], &program, &flood);
            Talking::start(with_driver(command.env("TAKT_FAKE_GPU", &gpu), ""))
        })
        .collect();
    floods.iter_mut().for_each(|flood| flood.says("scheduled as"));
    let options = ["--name", "job", "--period-ms", "50", "--runtime-ms", "10"];
    let job = ["job", "--iterations", &short, "--hz", "20", "--seconds", "2"];
    let mut command = daemon.run(&options, &program, &job);
    let output = ended(with_driver(command.env("TAKT_FAKE_GPU", &gpu), ""), "the job");
    assert!(output.status.success() && jobs(&output) > 5, "{}", text(&output.stderr));
    for flood in floods {
        let (said, _) = flood.end();
        assert!(!said.contains("\"jobs\": 0,"), "each of them has its turns: {said}");
    }
}

#[test]
fn programs_outlive_their_daemon_and_each_other() {
    let (daemon, program) = (Daemon::start("cuda-killed"), compute());
    let short = iterations(2);
    let flood = |seconds| ["flood", "--iterations", short.as_str(), "--seconds", seconds];
    let start = |name: &str, seconds| {
        let mut command = daemon.run(&["--name", name], &program, &flood(seconds));
        Talking::start(with_driver(&mut command, ""))
    };
    let (mut killed, mut other) = (start("killed", "60"), start("other", "4"));
    killed.says("scheduled as");
    other.says("scheduled as");
    // What it holds of the GPU goes with it.
    drop(killed);
    let output = ended(with_driver(&mut daemon.run(&[], &program, &flood("0.5")), ""), "one beside it");
    assert!(jobs(&output) > 0);
    daemon.signal("-KILL");
    other.says("runs on unscheduled");
    let (said, _) = other.end();
    assert!(said.contains("\"mode\": \"flood\""), "{said}");
}
