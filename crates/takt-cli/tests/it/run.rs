//! Programs run with Takt underneath as they run without it.
//!
//! The programs in `traps` do what has broken interposers before. Each is run alone, then in all
//! ways that Takt has, and must say the same and end the same way.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use crate::support::{GL, SOFTWARE, column, is_slow_wanted, products, same, takt, takt_command, text, trap};

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
fn uniform_blocks_place_vertices_as_plain_uniforms_do() {
    let program = trap("blocks", &GL);
    let table = products().join("blocks.csv");
    let fragments = |way: &str| {
        let alone = Command::new(&program).arg(way).envs(SOFTWARE).output().expect("the trap starts");
        let mut command = takt();
        command.args(["--hook", "vendor", "--compare"]).arg(&table).arg("--").arg(&program).arg(way);
        let output = command.envs(SOFTWARE).output().expect("takt starts");
        assert_eq!(text(&output.stdout), text(&alone.stdout), "{way}: {}", text(&output.stderr));
        assert_eq!(output.status, alone.status, "{way}");
        assert!(text(&alone.stdout).starts_with("frame: error 0x500,"), "{way}: an error was pending");
        let counts = column(&table, "fragments").into_iter().map(|cell| cell.parse().expect("a number"));
        counts.filter(|count| *count > 0.0).collect::<Vec<f64>>()
    };
    let plain = fragments("plain");
    let everything = 96.0 * 96.0;
    assert_eq!(plain.len(), 8, "{plain:?}");
    assert!(plain.iter().all(|count| *count < everything / 2.0), "{plain:?}");
    assert_ne!(plain.first(), plain.last(), "it turns");
    for way in ["std140", "shared", "packed", "rows", "named", "array", "range", "copied", "formats"] {
        assert_eq!(fragments(way), plain, "{way}");
    }
    // What is written through mappings is not known, and fills all there is.
    assert_eq!(fragments("mapped"), [everything; 8]);
    same("blocks", &program, &["array"]);
}

#[test]
fn frames_are_written_as_they_are_shown() {
    let (program, folder) = (trap("scene", &GL), products().join("frames"));
    // What an earlier run left behind.
    let _none = std::fs::remove_dir_all(&folder);
    let alone = Command::new(&program).envs(SOFTWARE).output().expect("the trap starts");
    let mut command = takt();
    command.arg("--dump-frames").arg(&folder).arg("--").arg(&program).envs(SOFTWARE);
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
    let table = products().join("missing.csv");
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
fn two_drivers_work_in_one_process() {
    let program = trap("vendors", &GL);
    let folder = products().join("two-vendors");
    std::fs::create_dir_all(&folder).expect("our own folder");
    // The same driver under another name: libEGL takes it for a second one, with its own displays.
    let second = folder.join("libEGL_second.so.0");
    std::fs::copy(loaded("libEGL_mesa.so.0"), &second).expect("a copy");
    let second = second.display().to_string();
    for (name, library) in [("50_mesa", "libEGL_mesa.so.0"), ("60_second", &second)] {
        let text = format!(r#"{{"file_format_version":"1.0.0","ICD":{{"library_path":"{library}"}}}}"#);
        std::fs::write(folder.join(format!("{name}.json")), text).expect("our own file");
    }
    let said = |command: &mut Command| {
        let output = command.envs(SOFTWARE).env("__EGL_VENDOR_LIBRARY_DIRS", &folder).output();
        let output = output.expect("it starts");
        (text(&output.stdout), text(&output.stderr), output.status)
    };
    let alone = said(&mut Command::new(&program));
    assert!(alone.0.starts_with("drivers 2"), "{alone:?}");
    for way in ["vendor", "preload"] {
        let table = products().join(format!("two-{way}.csv"));
        let with = said(takt().args(["--hook", way, "--compare"]).arg(&table).arg("--").arg(&program));
        assert_eq!(with, alone, "{way}");
        let (contexts, kinds) = (column(&table, "context"), column(&table, "kind"));
        for context in ["0", "1"] {
            let swaps = contexts.iter().zip(&kinds).filter(|(of, kind)| *of == context && *kind == "swap");
            assert_eq!(swaps.count(), 55, "{way}: context {context}");
        }
    }
}

/// Path of a library, as the loader finds it.
fn loaded(name: &str) -> String {
    let output = Command::new("/sbin/ldconfig").arg("-p").output().expect("ldconfig starts");
    let list = text(&output.stdout);
    let line = list.lines().find(|line| line.trim_start().starts_with(name)).expect("the library");
    line.rsplit(' ').next().expect("a path").to_owned()
}

#[test]
fn errors_stay_errors() {
    same("errors", &trap("errors", &GL), &[]);
}

#[test]
fn no_count_is_too_large() {
    same("huge", &trap("huge", &GL), &[]);
}

#[test]
fn objects_are_deleted_while_they_are_used() {
    same("deleted", &trap("deleted", &GL), &[]);
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
        let output = command.envs(SOFTWARE).env("LD_PRELOAD", &other).output().expect("it starts");
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let alone = run(&mut Command::new(&program));
    for way in ["vendor", "preload"] {
        let table = products().join(format!("other-{way}.csv"));
        let with = run(takt().args(["--hook", way, "--measure"]).arg(&table).arg("--").arg(&program));
        assert_eq!(with, alone, "{way}");
        assert_eq!(column(&table, "kind").iter().filter(|kind| *kind == "swap").count(), 3, "{way}");
    }
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
fn processes_that_fork_before_they_draw_are_both_seen() {
    same("forks-both", &trap("forks", &GL), &["both"]);
    for way in ["vendor", "compare", "preload"] {
        let mut processes = column(&products().join(format!("forks-both-{way}.csv")), "process");
        processes.dedup();
        assert_eq!(processes.len(), 2, "{way}: the child, then the parent");
    }
}

#[test]
fn a_forked_child_draws_and_exits_like_any_other() {
    let program = trap("fork_draws", &GL);
    // A child inherits none of a renderer's threads.
    let run = |command: &mut Command| {
        let output = command.envs(SOFTWARE).env("LP_NUM_THREADS", "0").output().expect("it starts");
        (text(&output.stdout), output.status.code(), text(&output.stderr))
    };
    let alone = run(&mut Command::new(&program));
    for way in ["vendor", "preload"] {
        let table = products().join(format!("fork-draws-{way}.csv"));
        let with = run(takt().args(["--hook", way, "--measure"]).arg(&table).arg("--").arg(&program));
        assert_eq!((&with.0, &with.1), (&alone.0, &alone.1), "{way}: {}", with.2);
        assert_eq!(with.2.matches("the process was forked").count(), 1, "{way}: {}", with.2);
        let swaps = column(&table, "kind").iter().filter(|kind| *kind == "swap").count();
        assert_eq!(swaps, 60, "{way}: those of the parent");
    }
}

#[test]
fn threads_share_objects() {
    same("threads", &trap("threads", &GL), &[]);
}

#[test]
fn many_contexts_come_and_go() {
    let count = if is_slow_wanted() { "10000" } else { "500" };
    let said = same("contexts", &trap("contexts", &GL), &[count]);
    assert!(!said.contains("memory grew"), "{said}");
}

#[test]
fn fences_can_be_waited_for_in_a_context_of_ours() {
    // Drivers of NVIDIA need that; others can do it as well.
    let cases: [(&str, &[&str]); 7] = [
        ("scene", &[]),
        ("threads", &[]),
        ("errors", &[]),
        ("forks", &[]),
        ("contexts", &["100"]),
        ("swaps", &["only"]),
        ("swaps", &["exit"]),
    ];
    for (name, args) in cases {
        let program = trap(name, &GL);
        let alone = Command::new(&program).args(args).envs(SOFTWARE).output().expect("the trap starts");
        let table = products().join(format!("{name}-in-contexts.csv"));
        let mut command = takt();
        command.env("TAKT_FENCES", "contexts").args(["--hook", "vendor", "--measure"]).arg(&table);
        let output = command.arg("--").arg(&program).args(args).envs(SOFTWARE).output().expect("takt starts");
        assert_eq!(text(&output.stdout), text(&alone.stdout), "{name}");
        assert_eq!(output.status, alone.status, "{name}");
        let said = text(&output.stderr);
        assert!(!said.contains("memory grew"), "{name}: {said}");
        assert!(!column(&table, "measured_us").is_empty(), "{name}: {said}");
    }
}

#[test]
fn a_group_ends_where_the_driver_would_wait_for_it() {
    // Drivers of NVIDIA make fences of EGL only when the GPU is there.
    let program = trap("egl_fence", &GL);
    let alone = Command::new(&program).envs(SOFTWARE).output().expect("the trap starts");
    for (fences, groups) in [("", 4), ("contexts", 8)] {
        let table = products().join(format!("egl-fence-{fences}.csv"));
        let mut command = takt();
        command.env("TAKT_FENCES", fences).args(["--hook", "vendor", "--measure"]).arg(&table);
        let output = command.arg("--").arg(&program).envs(SOFTWARE).output().expect("takt starts");
        assert_eq!(text(&output.stdout), text(&alone.stdout), "{}", text(&output.stderr));
        let draws = column(&table, "kind").iter().filter(|kind| *kind == "draw").count();
        assert_eq!(draws, groups, "{fences}");
    }
}

#[test]
fn apps_swap_never_or_only_or_die() {
    let program = trap("swaps", &GL);
    for what in ["only", "never", "crash", "handler", "abort", "exit"] {
        same("swaps", &program, &[what]);
    }
}

#[test]
fn programs_with_rights_of_their_own_run_and_takt_says_that_it_stays_outside() {
    const UNPRIVILEGED: u32 = 65534;
    let program = products().join("trap-rights-of-another");
    std::fs::copy(trap("rights", &GL), &program).expect("a copy");
    let given = chown(&program, Some(UNPRIVILEGED), Some(UNPRIVILEGED))
        .and_then(|()| std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)));
    let said = |command: &mut Command| {
        let output = command.envs(SOFTWARE).output().expect("it starts");
        (text(&output.stdout), text(&output.stderr), output.status)
    };
    let alone = said(&mut Command::new(&program));
    if given.is_err() || !alone.0.starts_with("other user 1") {
        return crate::support::skipped(
            "only root can give a program to another user, where that means anything",
        );
    }
    for way in ["vendor", "preload"] {
        let table = products().join(format!("rights-{way}.csv"));
        let with = said(takt().args(["--hook", way, "--measure"]).arg(&table).arg("--").arg(&program));
        assert_eq!((with.0, with.2), (alone.0.clone(), alone.2), "{way}");
        assert!(with.1.contains("setuid") && with.1.contains("without the setuid bit"), "{way}: {}", with.1);
        assert_eq!(column(&table, "kind").len(), 0, "{way}: the environment is ignored");
    }
    let (findings, _, status) = said(takt_command("doctor").arg("--").arg(&program));
    assert_eq!(status.code(), Some(1), "{findings}");
    assert!(findings.contains("setuid") && findings.contains("not tried"), "{findings}");
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
    command.args(["--json", "-", "--seconds", "600", "--"]).arg(&program).arg("only");
    let output = command.output().expect("takt starts");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = |topic: &str| {
        let finding = findings.as_array()?.iter().find(|finding| finding["topic"] == topic)?;
        Some(format!("{} {}", finding["status"], finding["found"]))
    };
    assert!(found("trial").is_some_and(|trial| trial.contains("101 command groups")), "{findings:#}");
    assert!(found("measuring").is_some_and(|way| way.contains("by fences")), "{findings:#}");
    assert!(found("hooking").is_some_and(|way| way.contains("libEGL_takt.so")), "{findings:#}");
}

#[test]
fn the_doctor_looks_where_the_loader_looks() {
    let folder = products().join("libraries");
    std::fs::create_dir_all(&folder).expect("our own folder");
    // No libEGL of libglvnd: programs would be led past our drivers.
    std::fs::write(folder.join("libEGL.so.1"), b"\x7fELF\x02\x01").expect("our own file");
    let found = |path: &std::path::Path| {
        let output = takt_command("doctor").env("LD_LIBRARY_PATH", path).output().expect("takt starts");
        text(&output.stdout)
    };
    let other = found(&folder);
    assert!(other.contains("libraries/libEGL.so.1 is not that of libglvnd"), "{other}");
    assert!(other.contains("is preloaded"), "{other}");
    let usual = found(&products());
    assert!(usual.contains("libEGL.so.1 of libglvnd") && usual.contains("stands in front of"), "{usual}");
}

#[test]
fn the_doctor_says_what_to_do_where_nothing_can_be_prepared() {
    let file = products().join("no-folder");
    std::fs::write(&file, "").expect("our own file");
    let mut command = takt_command("doctor");
    let output = command.env("XDG_CACHE_HOME", &file).output().expect("takt starts");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("PROBLEM  hooking") && said.contains("set XDG_CACHE_HOME"), "{said}");
    let mut command = takt_command("doctor");
    let output = command.args(["--", "no-such-command-of-ours"]).output().expect("takt starts");
    let said = text(&output.stdout);
    assert!(said.contains("cannot find the command") && said.contains("check the spelling"), "{said}");
}
