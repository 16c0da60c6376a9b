//! Programs run with Takt underneath as they run without it.
//!
//! The programs in `traps` do what has broken interposers before. Each is run alone, then in all
//! ways that Takt has, and must say the same and end the same way.

use std::path::Path;
use std::process::Command;

mod support;
use support::{GL, column, products, takt, takt_command, text, trap};

/// Ways to run a program with Takt underneath.
fn ways(name: &str) -> Vec<(String, Vec<String>)> {
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
fn same(name: &str, program: &Path, arguments: &[&str]) -> String {
    let environment = [("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")];
    let alone = Command::new(program).args(arguments).envs(environment).output().expect("the trap starts");
    let said = text(&alone.stdout);
    assert!(!said.is_empty() || !alone.status.success(), "{name} says nothing: {}", text(&alone.stderr));
    for (way, options) in ways(name) {
        let output = takt()
            .args(options)
            .arg("--")
            .arg(program)
            .args(arguments)
            .envs(environment)
            .output()
            .expect("takt starts");
        assert_eq!(text(&output.stdout), said, "{name} {way}: {}", text(&output.stderr));
        assert_eq!(output.status, alone.status, "{name} {way}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), text(&alone.stderr), "{name} {way}");
    }
    said
}

#[test]
fn a_scene_looks_the_same_and_its_groups_are_seen() {
    let said = same("scene", &trap("scene", &GL), &[]);
    assert!(said.contains("llvmpipe"), "{said}");
    for way in ["vendor", "compare", "preload"] {
        let file = products().join(format!("scene-{way}.csv"));
        let kinds = column(&file, "kind");
        let count = |kind: &str| kinds.iter().filter(|seen| *seen == kind).count();
        assert_eq!(count("swap"), 20, "{way}");
        assert_eq!(count("draw"), 20, "{way}: one per frame, as the change of target comes before");
        assert_eq!(count("clear"), 20, "{way}: the texture is cleared apart");
        let draws: u64 =
            column(&file, "draws").iter().map(|cell| cell.parse::<u64>().expect("a number")).sum();
        assert_eq!(draws, 40, "{way}");
        let costs = column(&file, "measured_us");
        assert!(
            costs.iter().all(|cell| cell.parse::<f64>().is_ok_and(|cost| cost >= 0.0)),
            "{way}: {costs:?}"
        );
    }
    let predicted = column(&products().join("scene-compare.csv"), "pred_bb+mars_us");
    assert!(predicted.iter().all(|cell| cell.parse::<f64>().is_ok_and(|cost| cost > 0.0)), "{predicted:?}");
}

#[test]
fn frames_are_written_as_they_are_shown() {
    let (program, folder) = (trap("scene", &GL), products().join("frames"));
    // What an earlier run left behind.
    let _none = std::fs::remove_dir_all(&folder);
    let alone = Command::new(&program).env("LIBGL_ALWAYS_SOFTWARE", "1").output().expect("the trap starts");
    let mut command = takt();
    command.arg("--dump-frames").arg(&folder).arg("--").arg(&program).env("LIBGL_ALWAYS_SOFTWARE", "1");
    let output = command.output().expect("takt starts");
    assert_eq!(text(&output.stdout), text(&alone.stdout), "reading back changes nothing");
    let picture = |frame: usize| std::fs::read(folder.join(format!("0-{frame:06}.ppm"))).expect("a picture");
    let header = b"P6\n96 96\n255\n";
    for frame in 0..20 {
        let picture = picture(frame);
        assert!(picture.starts_with(header) && picture.len() == header.len() + 96 * 96 * 3);
        assert_eq!(picture[header.len()..header.len() + 3], [0, 0, 51], "a corner shows what was cleared");
    }
    assert_ne!(picture(0), picture(19));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 20);
}

#[test]
fn a_driver_that_is_described_but_not_installed_is_passed_over() {
    let program = trap("swaps", &GL);
    let folder = products().join("vendors");
    std::fs::create_dir_all(&folder).expect("our own folder");
    for (name, library) in [("10_missing", "libEGL_missing.so.0"), ("50_mesa", "libEGL_mesa.so.0")] {
        let text = format!(r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{library}"}}}}"#);
        std::fs::write(folder.join(format!("{name}.json")), text).expect("our own file");
    }
    let table = products().join("vendors.csv");
    let said = |command: &mut Command| {
        let output =
            command.arg("only").env("__EGL_VENDOR_LIBRARY_DIRS", &folder).output().expect("it starts");
        (text(&output.stdout), text(&output.stderr), output.status)
    };
    let alone = said(&mut Command::new(&program));
    assert_eq!(said(takt().arg("--measure").arg(&table).arg("--").arg(&program)), alone);
    assert_eq!(column(&table, "kind").iter().filter(|kind| *kind == "swap").count(), 100);
}

#[test]
fn errors_stay_errors() {
    same("errors", &trap("errors", &GL), &[]);
}

#[test]
fn client_arrays_are_not_read_beyond_their_end() {
    same("page_end", &trap("page_end", &GL), &[]);
}

#[test]
fn functions_are_found_in_every_way() {
    let program = trap("lookup", &["-ldl"]);
    // RTLD_LAZY, RTLD_NOW, and both with RTLD_GLOBAL and RTLD_DEEPBIND.
    for flags in ["1", "2", "257", "10"] {
        same("lookup", &program, &[flags]);
        let swaps = column(&products().join("lookup-vendor.csv"), "kind")
            .iter()
            .filter(|kind| *kind == "swap")
            .count();
        assert_eq!(swaps, 3, "flags {flags}");
    }
}

#[test]
fn another_dlsym_in_front_does_not_matter() {
    let other = trap("other_dlsym", &["-shared", "-fPIC", "-ldl"]);
    let program = trap("lookup", &["-ldl"]);
    let run = |command: &mut Command| {
        let output = command.env("LD_PRELOAD", &other).output().expect("it starts");
        (text(&output.stdout), output.status.code())
    };
    let alone = run(&mut Command::new(&program));
    let with = run(takt()
        .args(["--measure", &products().join("other.csv").display().to_string(), "--"])
        .arg(&program));
    assert_eq!(with, alone);
}

#[test]
fn processes_fork_and_execute() {
    let said = same("forks", &trap("forks", &GL), &[]);
    assert!(said.contains("child 7") && said.contains("grandchild 5"), "{said}");
    let mut processes = column(&products().join("forks-vendor.csv"), "process");
    processes.sort();
    processes.dedup();
    assert_eq!(processes.len(), 2, "the parent and what was executed");
}

#[test]
fn threads_share_objects() {
    same("threads", &trap("threads", &GL), &[]);
}

#[test]
fn many_contexts_come_and_go() {
    let count = if std::env::var_os("TAKT_SLOW_TESTS").is_some() { "10000" } else { "300" };
    same("contexts", &trap("contexts", &GL), &[count]);
}

#[test]
fn apps_swap_never_or_only_or_die() {
    let program = trap("swaps", &GL);
    for what in ["only", "never", "crash", "exit"] {
        same("swaps", &program, &[what]);
    }
}

#[test]
fn what_is_no_gl_program_runs_as_well() {
    let output =
        takt().args(["--", "sh", "-c", "echo out; echo err >&2; exit 7"]).output().expect("takt starts");
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("out\n", "err\n"));
    assert_eq!(output.status.code(), Some(7));
    let output = takt().args(["--", "no-such-command-of-ours"]).output().expect("takt starts");
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("no-such-command-of-ours"));
}

#[test]
fn bad_input_is_refused_with_a_reason() {
    let refused = |arguments: &[&str], word: &str| {
        let output = takt().args(arguments).output().expect("takt starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    };
    refused(&["--measure", "/no/such/folder/x.csv", "--", "true"], "/no/such/folder/x.csv");
    refused(&["--measure", "x.csv", "--mode", "bb", "--", "true"], "bb+mars");
    refused(&["--overpredict", "0", "--", "true"], "above 0");
    refused(&["true"], "--");
}

#[test]
fn the_doctor_sees_what_is_hooked() {
    let program = trap("swaps", &GL);
    let mut command = takt_command("doctor");
    let output = command.args(["--json", "-", "--"]).arg(&program).arg("only").output().expect("takt starts");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = |topic: &str| {
        let finding = findings.as_array()?.iter().find(|finding| finding["topic"] == topic)?;
        Some(format!("{} {}", finding["status"], finding["found"]))
    };
    assert!(found("trial").is_some_and(|trial| trial.contains("101 command groups")), "{findings:#}");
    assert!(found("measuring").is_some_and(|way| way.contains("by fences")), "{findings:#}");
    assert!(found("hooking").is_some_and(|way| way.contains("libEGL_takt.so")), "{findings:#}");
}
