//! CUDA programs under `takt run`, on a driver without a GPU.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::daemon::{Daemon, Talking, ended, environment};
use crate::support::{app, products, takt, text, trap};

/// The folder in which programs find the driver.
fn driver() -> PathBuf {
    links("cuda-driver", &["libcuda.so.1"])
}

/// A folder in which the driver has these names.
fn links(folder: &str, names: &[&str]) -> PathBuf {
    let folder = products().join(folder);
    std::fs::create_dir_all(&folder).expect("our own folder");
    let target = app("libtakt_cuda_fake.so");
    for name in names {
        // Tests make it at the same time.
        let beside = folder.join(format!("{name}-{}", std::process::id()));
        symlink(&target, &beside).expect("our own folder");
        std::fs::rename(&beside, folder.join(name)).expect("our own folder");
    }
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

/// The lines of Takt itself.
fn of_takt(errors: &str) -> Vec<&str> {
    errors.lines().filter(|line| line.starts_with("takt: ")).collect()
}

#[test]
fn a_driver_of_the_future_is_named_and_its_programs_are_scheduled() {
    let (daemon, program) = (Daemon::start("cuda-future"), compile("threads"));
    let mut command = daemon.run(&[], &program, &[]);
    let output = ended(with_driver(command.env("TAKT_FAKE_VERSION", "15020"), "symbol"), "threads");
    let errors = text(&output.stderr);
    assert!(output.status.success() && text(&output.stdout).ends_with("done\n"), "{errors}");
    let named: Vec<&str> = of_takt(&errors).into_iter().filter(|line| line.contains("CUDA 15.2")).collect();
    assert_eq!(named.len(), 1, "{errors}");
    assert!(errors.contains("scheduled as"), "{errors}");
}

#[test]
fn without_a_gpu_one_line_says_so() {
    let (daemon, program) = (Daemon::start("cuda-no-gpu"), compile("threads"));
    let mut command = daemon.run(&[], &program, &[]);
    let output = ended(with_driver(command.env("TAKT_FAKE_DEVICES", "0"), "symbol"), "threads");
    let errors = text(&output.stderr);
    assert!(text(&output.stdout).ends_with("cuInit(0) gives 100\n"), "its own answer: {errors}");
    assert_eq!(
        of_takt(&errors),
        ["takt: the CUDA driver finds no GPU: the program runs on without CUDA being scheduled"]
    );
}

#[test]
fn a_program_for_32_bits_runs_and_is_named() {
    let program = products().join("cuda-32-bits");
    let beside = products().join(format!("cuda-32-bits-{}", std::process::id()));
    let source = beside.with_extension("s");
    // It ends with 7, and needs no library.
    let text_of = ".globl _start\n_start: movl $7, %ebx\n movl $1, %eax\n int $0x80\n";
    std::fs::write(&source, text_of).expect("our own file");
    let mut gcc = Command::new("gcc");
    gcc.args(["-m32", "-nostdlib", "-static", "-o"]).arg(&beside).arg(&source);
    if !gcc.output().expect("gcc starts").status.success() {
        return crate::support::skipped("gcc makes no programs for 32 bits here");
    }
    std::fs::rename(&beside, &program).expect("our own files");
    if Command::new(&program).status().ok().and_then(|status| status.code()) != Some(7) {
        return crate::support::skipped("this kernel runs no programs for 32 bits");
    }
    let daemon = Daemon::start("cuda-32-bits");
    let output = ended(with_driver(&mut daemon.run(&[], &program, &[]), ""), "32 bits");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{errors}");
    let named: Vec<&str> = of_takt(&errors);
    assert!(
        named.len() == 1 && named[0].contains("is a 32-bit program, so it runs without Takt"),
        "{errors}"
    );
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
    assert!(seen.contains("CUPTI counted nothing (missing)"), "{seen}");
}

/// What the doctor says of launches that CUPTI counts as well.
fn doctor_beside_cupti(program: &Path, arguments: &[&str], find: &str) -> String {
    let mut command = crate::support::takt_command("doctor");
    command.args(["--seconds", "20", "--"]).arg(program).args(arguments);
    command.env("LD_LIBRARY_PATH", links("cuda-driver-cupti", &["libcuda.so.1", "libcupti.so.13"]));
    let output = ended(environment(command.env("FIND", find)), "the doctor");
    let said = text(&output.stdout);
    said.lines().find(|line| line.contains("kernels")).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn the_doctor_compares_launches_with_cupti() {
    let long = iterations(1);
    for (program, arguments) in [
        (compute(), vec!["flood", "--iterations", &long, "--seconds", "0.3"]),
        (
            compute(),
            vec!["flood", "--iterations", &long, "--seconds", "0.3", "--kernels", "3", "--graph", "1"],
        ),
        (compile("graphs"), vec![]),
        (compile("threads"), vec![]),
        (compile("order"), vec![]),
    ] {
        for find in ["symbol", "address", "thread"] {
            let seen = doctor_beside_cupti(&program, &arguments, find);
            assert!(
                seen.starts_with("ok ") && seen.contains("launches that CUPTI counted were seen"),
                "{seen}"
            );
            assert!(!seen.contains("all 0 launches"), "{}: {seen}", program.display());
        }
    }
}

#[test]
fn the_doctor_names_launches_that_pass_by() {
    let names = ["libcuda.so.1", "libcupti.so.13", "libcuda-elsewhere.so"];
    let folder = links("cuda-driver-elsewhere", &names);
    let mut command = crate::support::takt_command("doctor");
    command.args(["--seconds", "20", "--"]).arg(compute());
    command.args(["flood", "--iterations", &iterations(1), "--seconds", "0.5"]);
    // It opens the driver by a path.
    command.env("DRIVER", folder.join("libcuda-elsewhere.so")).env("LD_LIBRARY_PATH", &folder);
    let output = ended(environment(&mut command), "the doctor");
    let said = text(&output.stdout);
    let seen = said.lines().find(|line| line.contains("kernels")).unwrap_or_else(|| panic!("{said}"));
    assert!(seen.starts_with("PROBLEM") && seen.contains("passed Takt by"), "{seen}");
    assert!(seen.contains(": 0 kernels"), "{seen}");
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
    floods.iter_mut().for_each(|flood| drop(flood.says("scheduled as")));
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

/// How many groups the daemon has granted so far.
fn granted(daemon: &Daemon) -> u32 {
    let list = text(&daemon.ask(&["list", "--json", "-"]).stdout);
    let count = list.split("\"granted\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    count.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("{list}"))
}

#[test]
fn a_program_that_waits_for_each_kernel_keeps_its_turn() {
    let (daemon, program) = (Daemon::start("cuda-kept"), compute());
    let short = iterations(1);
    // Another app, so that it is not alone; it has next to nothing to do.
    let job = ["job", "--iterations", &short, "--hz", "2", "--seconds", "60"];
    let mut other = Talking::start(with_driver(&mut daemon.run(&["--name", "other"], &program, &job), ""));
    other.says("scheduled as");
    let before = granted(&daemon);
    let flood = ["flood", "--iterations", &short, "--seconds", "3"];
    let output = ended(with_driver(&mut daemon.run(&["--name", "waits"], &program, &flood), ""), "a flood");
    let (kernels, groups) = (jobs(&output), granted(&daemon) - before);
    // A program that is kept from its processor between two kernels loses its turn.
    assert!(kernels > 20 && groups < kernels, "{groups} groups for {kernels} kernels");
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

/// The folder with libtakt-cuda as programs load it.
fn deadlines() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = products().join("libtakt-cuda");
        std::fs::create_dir_all(&folder).expect("our own folder");
        let target = app("libtakt_cuda_capi.so");
        for name in ["libtakt-cuda.so", "libtakt-cuda.so.0"] {
            // Tests make it at the same time.
            let beside = folder.join(format!("{name}-{}", std::process::id()));
            symlink(&target, &beside).expect("our own folder");
            std::fs::rename(&beside, folder.join(name)).expect("our own folder");
        }
        folder
    })
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Compiles the example in C as strictly as gcc can.
fn example() -> PathBuf {
    let program = products().join("cuda-deadlines");
    let beside = products().join(format!("cuda-deadlines-{}", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&beside);
    gcc.arg(root("examples/c/deadlines.c")).arg("-I").arg(root("crates/takt-cuda-capi/include"));
    let output = gcc.arg("-L").arg(deadlines()).args(["-ltakt-cuda", "-ldl"]).output().expect("gcc starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::rename(&beside, &program).expect("our own files");
    program
}

/// The environment of programs with libtakt-cuda.
fn with_deadlines(command: &mut Command) -> &mut Command {
    let folders = std::env::join_paths([driver(), deadlines().to_owned()]).expect("no colons");
    environment(command.env("LD_LIBRARY_PATH", folders))
}

#[test]
fn streams_have_deadlines_of_their_own() {
    let (daemon, program) = (Daemon::start("cuda-deadlines"), example());
    let output = ended(with_deadlines(&mut daemon.run(&[], &program, &["6"])), "the example in C");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && said.contains("a budget beyond its deadline is refused"),
        "{said}{errors}"
    );
    assert!(said.contains("6 jobs, "), "{said}{errors}");
    let admitted: Vec<&str> =
        errors.lines().filter(|line| line.contains("scheduled as ") && line.contains(".stream-")).collect();
    assert_eq!(admitted.len(), 2, "each stream once, whatever number of jobs it has: {errors}");
    assert!(admitted.iter().any(|line| line.contains("protected")), "{admitted:?}");
}

#[test]
fn python_gives_streams_deadlines() {
    let daemon = Daemon::start("cuda-python");
    let script = root("examples/python/deadlines.py").display().to_string();
    let mut command = daemon.run(&[], Path::new("python3"), &[&script, "5"]);
    let output = ended(with_deadlines(&mut command), "the example in Python");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.starts_with("5 jobs, "), "{said}{errors}");
    let admitted = errors.lines().filter(|line| line.contains("scheduled as ") && line.contains(".stream-1"));
    assert_eq!(admitted.count(), 1, "{errors}");
    // Without the library it runs as well.
    let mut command = Command::new("python3");
    command.args([&script, "2"]).env("TAKT_CUDA", "/no/such/library");
    let output = ended(with_driver(&mut command, "symbol"), "without the library");
    assert!(text(&output.stdout).starts_with("2 jobs, "), "{}", text(&output.stderr));
}

#[test]
fn without_takt_deadlines_do_nothing_and_say_so_once() {
    let program = example();
    for under_takt in [false, true] {
        // Takt that schedules nothing is none.
        let mut command = if under_takt { takt() } else { Command::new(&program) };
        if under_takt {
            command.arg("--").arg(&program);
        }
        let output = ended(with_deadlines(command.arg("3")), "the example alone");
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && said.contains("3 jobs, "), "{said}{errors}");
        let told: Vec<&str> = errors.lines().filter(|line| line.starts_with("takt: cuda")).collect();
        assert_eq!(
            told,
            ["takt: cudaStreamDeadlineBegin: does nothing here, the program is not scheduled \
              (takt run --schedule -- PROGRAM)"],
            "{under_takt}"
        );
    }
}

#[test]
fn programs_say_how_many_frames_they_draw() {
    let daemon = Daemon::start("cuda-target");
    let (include, library) = (root("crates/takt-cuda-capi/include"), deadlines());
    let flags = [format!("-I{}", include.display()), format!("-L{}", library.display())];
    let flags = [&flags[0], &flags[1], "-ltakt-cuda", "-lEGL", "-lGLESv2"];
    let program = trap("frame_target", &flags);
    let output = ended(with_deadlines(&mut daemon.run(&[], &program, &["12"])), "frames");
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(said, "early: 0\nimpossible: 1\nwanted: 0\ndone\n", "{errors}");
    assert!(errors.contains("glSetFrameTarget: does nothing here"), "there was no GL yet: {errors}");
    assert!(errors.contains("scheduled as trap-frame_target: protected"), "{errors}");
}

/// A program that does what it is told, line by line.
fn lines(daemon: &Daemon, options: &[&str]) -> Talking {
    let program = compile("lines");
    let mut talking = Talking::start(with_driver(&mut daemon.run(options, &program, &[]), "address"));
    talking.says("begun");
    talking
}

#[test]
fn a_job_after_the_daemon_died_or_stopped_goes_on_alone() {
    for signal in ["-KILL", "-STOP"] {
        let daemon = Daemon::start(&format!("cuda-gone{signal}"));
        let mut program = lines(&daemon, &["--period-ms", "100", "--runtime-ms", "10"]);
        program.hears("job");
        program.says("job 1 is over");
        assert!(program.heard().contains("scheduled as"), "{}", program.heard());
        daemon.signal(signal);
        program.hears("job");
        program.says("job 2 is over");
        let heard = program.heard();
        assert_eq!(heard.matches("runs on unscheduled").count(), 1, "{signal}: within that one job: {heard}");
        program.hears("capture");
        program.says("capture 3 is over");
        assert_eq!(program.end().0, "done\n");
        // So that it can be ended.
        daemon.signal("-CONT");
    }
}

#[test]
fn a_capture_survives_the_daemon() {
    let daemon = Daemon::start("cuda-captured");
    let mut program = lines(&daemon, &[]);
    program.hears("job");
    program.says("job 1 is over");
    program.hears("begin");
    program.says("begin 2 is over");
    daemon.signal("-KILL");
    program.hears("end");
    program.says("end 3 is over");
    assert_eq!(program.end().0, "done\n");
}

#[test]
fn copies_of_a_program_run_on_and_the_original_stays_scheduled() {
    let daemon = Daemon::start("cuda-forks");
    let mut program = lines(&daemon, &["--name", "forks"]);
    for line in ["job", "fork", "job"] {
        program.hears(line);
        program.says("is over");
    }
    assert!(program.heard().contains("the copy ends with 6"), "{}", program.heard());
    let list = text(&daemon.ask(&["list"]).stdout);
    assert!(list.contains("forks"), "it is still there: {list}");
    let (said, errors) = program.end();
    assert_eq!((said.as_str(), errors.matches("scheduled as forks").count()), ("done\n", 1), "{errors}");
}

#[test]
fn a_program_that_becomes_another_is_scheduled_again() {
    let daemon = Daemon::start("cuda-exec");
    let mut program = lines(&daemon, &["--name", "becomes"]);
    for line in ["job", "exec"] {
        program.hears(line);
    }
    program.says("job 1 is over");
    program.says("begun");
    program.hears("job");
    program.says("job 1 is over");
    let (said, errors) = program.end();
    assert_eq!((said.as_str(), errors.matches("scheduled as becomes").count()), ("done\n", 2), "{errors}");
}

/// Jobs of a program that the daemon's log tells of: how many came to their end, and how many did so while work of
/// theirs was with the GPU.
fn jobs_of(log: &str, name: &str) -> (usize, usize) {
    let number = |line: &str, key: &str| {
        let rest = line.split(&format!("\"{key}\":")).nth(1)?;
        rest.split([',', '}']).next()?.parse::<u64>().ok()
    };
    let (mut own, mut done, mut early) = (None, 0, 0);
    let mut flying = std::collections::BTreeSet::new();
    for line in log.lines() {
        let is = |kind: &str| line.contains(&format!("\"record\":\"{kind}\""));
        if is("app") {
            own = line.contains(&format!("\"name\":\"{name}\"")).then(|| number(line, "app")).flatten();
            flying.clear();
        }
        if own.is_none() {
            continue;
        }
        let is_own = number(line, "app") == own;
        if is("dispatch") && is_own && number(line, "reserved_ns") != Some(0) {
            flying.extend(number(line, "group"));
        } else if is("complete") {
            number(line, "group").map(|group| flying.remove(&group));
        } else if is("frame-done") && is_own {
            done += 1;
            early += usize::from(!flying.is_empty());
        }
    }
    (done, early)
}

#[test]
fn jobs_end_in_every_way_in_which_programs_wait() {
    const JOBS: usize = 12;
    let (program, log) = (compile("paces"), products().join("cuda-paces.jsonl"));
    let daemon = Daemon::with("cuda-paces", "", &["--record", &log.display().to_string()]);
    let ways = [
        "stream",
        "streams",
        "twice",
        "context",
        "event",
        "blocking",
        "default",
        "graph",
        "poll-stream",
        "spin-stream",
        "poll-event",
        "look-late",
        "copy",
        "copy-into-stream",
        "host-function",
        "callback",
        "memory",
        "written",
        "thread",
    ];
    for way in ways {
        let options = ["--name", way, "--period-ms", "25", "--runtime-ms", "4"];
        let mut command = daemon.run(&options, &program, &[way, &JOBS.to_string(), "25"]);
        let output = ended(with_driver(&mut command, "symbol"), way);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{way}: {} {errors}", text(&output.stdout));
        assert!(errors.contains("scheduled as") && !errors.contains("unscheduled"), "{way}: {errors}");
    }
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    for way in ways {
        let (done, early) = jobs_of(&log, way);
        // Where the first ones end is found out while they pass, and the last one ends with the program.
        assert!((JOBS - 4..=JOBS + 1).contains(&done), "{way}: {done} of {JOBS} jobs came to their end");
        assert_eq!(early, 0, "{way}: of {done} jobs");
    }
}

#[test]
fn what_a_stream_waits_for_is_no_time_of_its_work() {
    let (program, log) = (compile("paces"), products().join("cuda-halted.jsonl"));
    let daemon = Daemon::with("cuda-halted", "", &["--record", &log.display().to_string()]);
    let options = ["--name", "halted", "--period-ms", "60", "--runtime-ms", "20"];
    let mut command = daemon.run(&options, &program, &["halted", "10", "60"]);
    let output = ended(with_driver(&mut command, "symbol"), "halted");
    assert!(output.status.success(), "{}", text(&output.stderr));
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    let submits = log.lines().filter(|line| line.contains("\"record\":\"submit\""));
    let predicted = |line: &str| {
        let rest = line.split("\"predicted_ns\":").nth(1)?;
        rest.split([',', '}']).next()?.parse::<u64>().ok()
    };
    let last = submits.filter_map(predicted).rfind(|ns| *ns > 0).expect("groups");
    // Two kernels of a millisecond each, behind 20 ms in which the program lets the stream wait.
    assert!(last < 12_000_000, "{last} ns");
}

#[test]
fn a_driver_may_be_closed_and_opened_again() {
    let daemon = Daemon::start("cuda-reopen");
    let output = ended(with_driver(&mut daemon.run(&[], &compile("reopen"), &[]), "symbol"), "reopen");
    assert!(output.status.success(), "{} {}", output.status, text(&output.stderr));
    assert_eq!(text(&output.stdout), "20 rounds, done\n", "{}", text(&output.stderr));
}

#[test]
fn copies_made_before_cuda_begins_are_scheduled() {
    let daemon = Daemon::start("cuda-workers");
    let output = ended(with_driver(&mut daemon.run(&[], &compile("forks"), &[]), "address"), "forks");
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(text(&output.stdout), "5: 0 1 2 3 4\nthe copy ends with 0\n3: 0 1 2\ndone\n", "{errors}");
    assert_eq!(errors.matches("scheduled as").count(), 2, "both are: {errors}");
}

#[test]
fn a_program_is_scheduled_again_by_the_next_daemon() {
    let daemon = Daemon::start("cuda-again");
    let mut program = lines(&daemon, &["--name", "again"]);
    program.hears("job");
    program.says("job 1 is over");
    drop(daemon);
    program.hears("job");
    program.says("job 2 is over");
    let _next = Daemon::start("cuda-again");
    for job in 3.. {
        program.hears("job");
        program.says(&format!("job {job} is over"));
        if program.heard().matches("scheduled as again").count() == 2 {
            break;
        }
        assert!(job < 3_000, "{}", program.heard());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(program.end().0, "done\n");
}

#[test]
fn a_program_that_is_stopped_delays_others_for_seconds_and_goes_on() {
    if !crate::support::is_slow_wanted() {
        return crate::support::skipped(
            "the daemon gives up on the group of another program after ten seconds",
        );
    }
    let daemon = Daemon::with("cuda-stopped", "completion_timeout_ms = 500\n", &[]);
    let program = compute();
    let short = iterations(2);
    let flood = |seconds| ["flood", "--iterations", short.as_str(), "--seconds", seconds];
    let start = |name: &str, seconds| {
        let mut command = daemon.run(&["--name", name], &program, &flood(seconds));
        Talking::start(with_driver(&mut command, ""))
    };
    let mut stopped = start("stopped", "3");
    stopped.says("scheduled as");
    let id = stopped.id();
    let signal = |number: &str| {
        let order = format!("kill {number} {id}");
        assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell starts").success());
    };
    signal("-STOP");
    let output =
        ended(with_driver(&mut daemon.run(&["--name", "other"], &program, &flood("0.5")), ""), "other");
    let errors = text(&output.stderr);
    assert!(output.status.success() && jobs(&output) > 0 && !errors.contains("unscheduled"), "{errors}");
    signal("-CONT");
    let (said, errors) = stopped.end();
    assert!(said.contains("\"mode\": \"flood\""), "{said} {errors}");
}

#[test]
fn a_kernel_that_does_not_end_delays_others_for_seconds() {
    if !crate::support::is_slow_wanted() {
        return crate::support::skipped(
            "the daemon gives up on the group of another program after ten seconds",
        );
    }
    let daemon = Daemon::with("cuda-endless", "completion_timeout_ms = 500\n", &[]);
    let gpu = products().join("cuda-endless.gpu");
    std::fs::remove_file(&gpu).unwrap_or_default();
    // A GPU of its own, which looks at memory between two turns.
    let mut command = daemon.run(&["--name", "endless"], &compile("lines"), &[]);
    let mut program = Talking::start(with_driver(command.env("TAKT_FAKE_GPU", &gpu), "address"));
    program.says("begun");
    for (count, line) in ["job", "endless", "job"].into_iter().enumerate() {
        program.hears(line);
        program.says(&format!("{line} {} is over", count + 1));
    }
    let flood = ["flood", "--iterations", &iterations(2), "--seconds", "0.5"];
    let output = ended(with_driver(&mut daemon.run(&["--name", "other"], &compute(), &flood), ""), "other");
    let errors = text(&output.stderr);
    assert!(output.status.success() && jobs(&output) > 0 && !errors.contains("unscheduled"), "{errors}");
    program.hears("release");
    program.says("release 4 is over");
    assert_eq!(program.end().0, "done\n");
}
