//! Studies as people and job runners use them: the same results whatever happens on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use takt_sim::study::journal;
use takt_sim::study::table::Cell;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn takt() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
    command.current_dir(root());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of its own for each test, with these studies in it.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("our own folder can be emptied");
    }
    fs::create_dir_all(&folder).expect("our own folder can be made");
    fs::write(folder.join("sets.toml"), SETS).expect("a study can be written");
    let scenario = root().join("scenarios/thesis-mixed.toml");
    let simulate = SIMULATE.replace("SCENARIO", &scenario.display().to_string());
    fs::write(folder.join("simulate.toml"), simulate).expect("a study can be written");
    folder
}

/// 60 jobs, too short to notice.
const SETS: &str = r#"name = "sets"
repetitions = 3
[sets]
count = 20
tasks = 4
period_us = [16000, 125000]
[test]
analysis = "np-edf"
[[axis]]
set = "sets.utilisation"
range = { from = 0.1, to = 1, step = 0.1 }
[[axis]]
set = "test.overhead_us"
values = [0, 500]
"#;

/// 8 jobs.
const SIMULATE: &str = r#"name = "simulate"
repetitions = 2
[simulate]
scenario = "SCENARIO"
set = ["duration_s=2"]
measure = ["gpu.utilisation", "app.*.met", "mean(app.*.fps)", "event_hash"]
[[axis]]
set = "scheduler.mpcg"
values = [1, 4]
[[axis]]
set = "scheduler.policy"
values = ["fifo", "frame-deadline"]
"#;

/// Runs a study of `folder` to its end in the folder `out` beside it.
#[track_caller]
fn sweep(folder: &Path, study: &str, out: &str, more: &[&str]) -> Output {
    let output = try_sweep(folder, study, out, more);
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn try_sweep(folder: &Path, study: &str, out: &str, more: &[&str]) -> Output {
    let mut command = takt();
    command.arg("sweep").arg(folder.join(study)).arg("--out").arg(folder.join(out)).args(more);
    command.output().expect("takt starts")
}

#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    for word in words {
        assert!(stderr(output).contains(word), "{word} is not in: {}", stderr(output));
    }
}

/// All that a finished study leaves behind, but the journals.
fn results(folder: &Path, out: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder.join(out))
        .expect("there are results")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending != "tsv"))
        .map(|path| {
            (path.file_name().expect("a name").display().to_string(), fs::read(&path).expect("a file"))
        })
        .collect();
    files.sort();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["index.html", "plot-1.svg", "results.csv"]);
    files
}

#[test]
fn threads_make_no_difference() {
    let folder = scratch("sweep-threads");
    for study in ["sets.toml", "simulate.toml"] {
        sweep(&folder, study, "one", &["--threads", "1"]);
        sweep(&folder, study, "five", &["--threads", "5"]);
        assert_eq!(results(&folder, "one"), results(&folder, "five"));
        for out in ["one", "five"] {
            fs::remove_dir_all(folder.join(out)).expect("our own folder");
        }
    }
}

#[test]
fn a_finished_study_is_not_computed_again() {
    let folder = scratch("sweep-again");
    sweep(&folder, "sets.toml", "out", &[]);
    let before = results(&folder, "out");
    let output = sweep(&folder, "sets.toml", "out", &["--json", "-"]);
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((outcome["jobs"].as_u64(), outcome["reused"].as_u64()), (Some(60), Some(60)));
    assert_eq!(outcome["rows"].as_array().map(Vec::len), Some(60));
    assert_eq!(results(&folder, "out"), before);
}

#[test]
fn a_journal_may_end_anywhere() {
    let folder = scratch("sweep-torn");
    sweep(&folder, "sets.toml", "whole", &["--threads", "2"]);
    let expected = results(&folder, "whole");
    let journal = fs::read(folder.join("whole/journal.tsv")).expect("a journal");
    let cuts = (0..journal.len()).step_by(journal.len() / 12).chain([1, journal.len() - 1]);
    for cut in cuts {
        let out = folder.join("cut");
        fs::create_dir_all(&out).expect("our own folder");
        fs::write(out.join("journal.tsv"), &journal[..cut]).expect("a torn journal");
        sweep(&folder, "sets.toml", "cut", &[]);
        assert_eq!(results(&folder, "cut"), expected, "cut at {cut}");
        let lines = fs::read_to_string(out.join("journal.tsv")).expect("a journal").lines().count();
        assert_eq!(lines, 61, "cut at {cut}");
        fs::remove_dir_all(out).expect("our own folder");
    }
}

/// Kills a run as soon as some jobs are finished; returns whether it was caught at work.
fn kill_midway(study: &Path, out: &Path, jobs: usize) -> bool {
    let mut command = takt();
    command.arg("sweep").arg(study).arg("--out").arg(out).args(["--threads", "2"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("takt starts");
    let finished = || fs::read_to_string(out.join("journal.tsv")).map_or(0, |text| text.lines().count());
    let before = finished();
    while finished() < before + 5 && child.try_wait().expect("our child").is_none() {
        thread::yield_now();
    }
    child.kill().expect("our child can be killed");
    child.wait().expect("our child ends");
    finished() < jobs + 1
}

/// Killed for good several times, the study goes on where it was.
#[test]
fn killing_it_loses_nothing() {
    let folder = scratch("sweep-kill");
    let study = folder.join("sets.toml");
    // Long enough to be caught at work.
    let longer = SETS.replace("count = 20", "count = 60").replace("tasks = 4", "tasks = 7");
    fs::write(&study, longer).expect("a study can be written");
    sweep(&folder, "sets.toml", "whole", &["--threads", "1"]);
    let out = folder.join("killed");
    let caught = (0..3).filter(|_| kill_midway(&study, &out, 60)).count();
    assert!(caught > 0, "the study is too short to be interrupted");
    let finished = fs::read_to_string(out.join("journal.tsv")).expect("a journal").lines().count();
    let output = sweep(&folder, "sets.toml", "killed", &["--threads", "3", "--json", "-"]);
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // The first line is the header, and the last one may be torn.
    let reused = usize::try_from(outcome["reused"].as_u64().expect("a number")).expect("small");
    assert!(reused + 2 >= finished && reused < finished, "{reused} of {finished}");
    assert!(reused >= 5);
    assert_eq!(results(&folder, "killed"), results(&folder, "whole"));
}

#[test]
fn parts_make_the_whole() {
    let folder = scratch("sweep-shards");
    for study in ["sets.toml", "simulate.toml"] {
        sweep(&folder, study, "whole", &[]);
        for part in ["2/3", "1/3", "3/3"] {
            // One after the other in a common folder, and each in a folder of its own.
            sweep(&folder, study, "together", &["--shard", part]);
            sweep(&folder, study, &format!("apart-{}", &part[..1]), &["--shard", part]);
        }
        sweep(&folder, study, "together", &["--merge"]);
        assert_eq!(results(&folder, "together"), results(&folder, "whole"));
        let apart = ["apart-1", "apart-2", "apart-3"].map(|name| folder.join(name).display().to_string());
        sweep(&folder, study, "merged", &["--merge", &apart[0], &apart[1], &apart[2]]);
        assert_eq!(results(&folder, "merged"), results(&folder, "whole"));
        for out in ["whole", "together", "merged", "apart-1", "apart-2", "apart-3"] {
            fs::remove_dir_all(folder.join(out)).expect("our own folder");
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let folder = scratch("sweep-missing");
    sweep(&folder, "sets.toml", "out", &["--shard", "1/3"]);
    sweep(&folder, "sets.toml", "out", &["--shard", "2/3"]);
    let output = try_sweep(&folder, "sets.toml", "out", &["--merge"]);
    refused(&output, &["20 of 60 jobs are missing", "part 3/3 is not there: 20 jobs"]);
    let journal = folder.join("out/journal-2-of-3.tsv");
    let text = fs::read_to_string(&journal).expect("a journal");
    let shorter: String = text.lines().take(6).map(|line| format!("{line}\n")).collect();
    fs::write(&journal, shorter).expect("a journal");
    let output = try_sweep(&folder, "sets.toml", "out", &["--merge"]);
    refused(
        &output,
        &["35 of 60 jobs are missing", "part 2/3 is not finished: 15 jobs", "part 3/3 is not there"],
    );
    assert!(!folder.join("out/results.csv").exists());
    refused(&try_sweep(&folder, "sets.toml", "none", &["--merge"]), &["cannot read"]);
}

#[test]
fn a_journal_of_something_else_is_refused() {
    let folder = scratch("sweep-other");
    sweep(&folder, "sets.toml", "out", &[]);
    refused(
        &try_sweep(&folder, "simulate.toml", "out", &[]),
        &["another study, sets, not of simulate", "--out"],
    );
    fs::write(folder.join("sets.toml"), SETS.replace("count = 20", "count = 21")).expect("a study");
    refused(&try_sweep(&folder, "sets.toml", "out", &[]), &["has changed since the journal was begun"]);
    refused(&try_sweep(&folder, "sets.toml", "out", &["--merge"]), &["has changed"]);
    fs::write(folder.join("sets.toml"), SETS).expect("a study");
    let path = folder.join("out/journal.tsv");
    let text = fs::read_to_string(&path).expect("a journal");
    fs::rename(&path, folder.join("out/journal-1-of-2.tsv")).expect("our own file");
    refused(&try_sweep(&folder, "sets.toml", "out", &["--shard", "1/2"]), &["it is for part 1/1, not 1/2"]);
    fs::write(&path, text.replacen("i20", "i21", 1)).expect("a journal");
    refused(&try_sweep(&folder, "sets.toml", "out", &[]), &["is damaged", "line 2", "checksum"]);
}

/// Another version of the program would give other results: they are not mixed.
#[test]
fn results_of_another_version_are_refused() {
    let folder = scratch("sweep-version");
    sweep(&folder, "sets.toml", "out", &[]);
    let path = folder.join("out/journal.tsv");
    let text = fs::read_to_string(&path).expect("a journal");
    let header = text.lines().next().expect("a header");
    let other = journal::entry(0, &[Cell::Int(20), Cell::Int(7), Cell::Int(0), Cell::Float(0.35)]);
    fs::write(&path, format!("{header}\n{other}")).expect("a journal");
    refused(&try_sweep(&folder, "sets.toml", "out", &[]), &["another version of takt", "utilisation = 0.1"]);
}

#[test]
fn two_at_once_are_kept_apart() {
    let folder = scratch("sweep-lock");
    sweep(&folder, "sets.toml", "out", &[]);
    let file = fs::File::open(folder.join("out/journal.tsv")).expect("a journal");
    file.lock().expect("it is free");
    refused(&try_sweep(&folder, "sets.toml", "out", &[]), &["another takt sweep is working on it"]);
    drop(file);
    sweep(&folder, "sets.toml", "out", &[]);
}

#[test]
fn bad_input_is_named() {
    let folder = scratch("sweep-bad");
    refused(&try_sweep(&folder, "none.toml", "out", &[]), &["none.toml"]);
    fs::write(folder.join("bad.toml"), SETS.replace("np-edf", "np-fed")).expect("a study");
    refused(&try_sweep(&folder, "bad.toml", "out", &[]), &["bad.toml:8:12", "did you mean \"np-edf\"?"]);
    refused(&try_sweep(&folder, "sets.toml", "out", &["--shard", "4/3"]), &["4/3", "2/8"]);
    refused(
        &try_sweep(&folder, "sets.toml", "out", &["--shard", "1/3", "--merge"]),
        &["cannot be used with"],
    );
    let output = sweep(&folder, "sets.toml", "out", &["--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("60 jobs"));
    assert!(!folder.join("out").exists());
}

/// The script that spreads a study with a job runner gives what one process gives.
#[test]
fn a_job_runner_can_spread_a_study() {
    let folder = scratch("sweep-runner");
    sweep(&folder, "simulate.toml", "whole", &[]);
    let mut command = Command::new(root().join("scripts/sweep-parallel.sh"));
    command.env("TAKT", env!("CARGO_BIN_EXE_takt")).arg(folder.join("simulate.toml"));
    let output = command.arg(folder.join("spread")).args(["3", "2"]).output().expect("the script starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(results(&folder, "spread"), results(&folder, "whole"));
}
