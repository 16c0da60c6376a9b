//! The `takt` command as people and programs use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use takt_calibrate::store::Shelf;
use takt_predict::profile::{Execution, Profile, Sharing};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn takt(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_takt")).args(args).current_dir(root()).output().expect("takt starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// A folder of its own for each test, empty.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("our own folder can be emptied");
    }
    std::fs::create_dir_all(&folder).expect("our own folder can be made");
    folder
}

const MIXED: &str = "scenarios/thesis-mixed.toml";

#[test]
fn sim_prints_the_contract_as_json() {
    let output = takt(&["sim", MIXED, "--set", "duration_s=5", "--json", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&output);
    assert_eq!(summary["scenario"], "thesis-mixed");
    assert_eq!(summary["policy"], "frame-deadline");
    assert_eq!(summary["seed"], 1);
    assert_eq!(summary["event_hash"].as_str().map(str::len), Some(16));
    for number in ["/duration_s", "/gpu/utilisation", "/scheduler/runs", "/scheduler/dispatched"] {
        assert!(summary.pointer(number).is_some_and(Value::is_number), "{number}");
    }
    let apps = summary["apps"].as_array().expect("apps are a list");
    assert_eq!(apps.len(), 17);
    for app in apps {
        assert!(app["name"].is_string());
        for number in [
            "/priority",
            "/fps_target",
            "/fps",
            "/frames",
            "/missed",
            "/met",
            "/blocking_us_max",
            "/response_us/p50",
            "/response_us/p99",
            "/response_us/max",
        ] {
            assert!(app.pointer(number).is_some_and(Value::is_number), "{number}");
        }
    }
}

#[test]
fn the_seed_decides_everything_and_nothing_else_does() {
    let hash = |args: &[&str]| {
        let all =
            [&["sim", "scenarios/drive-cycle.toml", "--set", "duration_s=10", "--json", "-"], args].concat();
        json(&takt(&all))["event_hash"].clone()
    };
    assert_eq!(hash(&[]), hash(&[]));
    assert_eq!(hash(&["--seed", "7"]), hash(&["--seed", "7", "--misses", "0"]));
    assert_ne!(hash(&["--seed", "7"]), hash(&["--seed", "8"]));
    assert_ne!(hash(&["--policy", "fifo"]), hash(&[]));
}

#[test]
fn check_answers_by_exit_code() {
    let yes = takt(&["check", "scenarios/drive-cycle.toml", "--json", "-"]);
    assert_eq!(yes.status.code(), Some(0));
    assert_eq!(json(&yes)["gpu"], "in-order");

    // Reservations fit together, but no frame with all margins fits into its own.
    let verdict = takt(&["check", MIXED, "--json", "-"]);
    assert_eq!(verdict.status.code(), Some(1));
    let verdict = json(&verdict);
    assert_eq!(verdict["schedulable"], true);
    assert!(verdict["slack_us"].as_f64().is_some_and(|slack| (10_066.0..10_067.0).contains(&slack)));
    assert_eq!(verdict["stagger"].as_array().map(Vec::len), Some(17));

    let no = takt(&["check", "scenarios/thesis-homogeneous-60.toml", "--json", "-"]);
    assert_eq!(no.status.code(), Some(1));
    let verdict = json(&no);
    assert_eq!(verdict["schedulable"], false);
    assert_eq!(verdict["slack_us"], Value::Null);
    assert_eq!(verdict["protected"], 3);
}

#[test]
fn check_covers_apps_of_several_clocks_together() {
    let check = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args = ["check", "scenarios/two-displays.toml", "--json", "-"].into_iter().chain(sets);
        takt(&args.collect::<Vec<_>>())
    };
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(0));
    let apps = json(&output)["apps"].as_array().cloned().unwrap_or_default();
    let covered: Vec<_> =
        apps.iter().filter(|app| app["covered"] == true).filter_map(|app| app["name"].as_str()).collect();
    assert_eq!(covered, ["speedometer", "camera", "head-up", "menu", "map"]);

    // A long group of one clock would keep a frame of another waiting for too long.
    let longer = json(&check(&["scheduler.group_max_us=60000000"]));
    assert_eq!((&longer["schedulable"], &longer["protected"]), (&false.into(), &4.into()));
}

#[test]
fn check_takes_another_gpu() {
    let check = |gpu: &str| takt(&["check", "scenarios/fgsds-mts1.toml", "--gpu", gpu, "--json", "-"]);
    let order = check("in-order");
    assert_eq!((order.status.code(), &json(&order)["apps"][0]["covered"]), (Some(0), &true.into()));
    // Switches that cost nothing change nothing, and that contexts take turns is no reason not to cover.
    let free = check("time-shared:1000,0");
    assert_eq!((free.status.code(), &json(&free)["apps"][0]["covered"]), (Some(0), &true.into()));
    assert!(!json(&free)["caveats"].to_string().contains("order"), "{}", stdout(&free));
    let turns = check("time-shared:1000,20");
    assert_eq!(turns.status.code(), Some(1));
    let verdict = json(&turns);
    assert_eq!(verdict["gpu"], "time-shared: turns of 1000 us, 20 us per switch");
    let why = verdict["apps"][0]["why_not"].as_str().unwrap_or_default();
    assert!(why.starts_with("its frames may need ") && why.ends_with(" us more than etpf"), "{why}");
    let changes: Vec<&Value> =
        verdict["suggestions"].as_array().into_iter().flatten().map(|one| &one["change"]).collect();
    assert!(changes.iter().any(|change| **change == "etpf"), "{changes:?}");
    let wrong = check("time-shared:0,1");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("time-shared:SLICE_US,SWITCH_US"), "{}", stderr(&wrong));
}

#[test]
fn check_takes_the_gpu_of_the_machine_from_its_profile() {
    let data = scratch("check-machine");
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.args(["check", "scenarios/fgsds-mts1.toml", "--gpu", "machine", "--json", "-"]);
        command.env("XDG_DATA_HOME", &data).env("XDG_DATA_DIRS", "/nowhere").current_dir(root());
        command.output().expect("takt starts")
    };
    let none = check();
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("run `takt profile` first"), "{}", stderr(&none));
    let keep = |execution| {
        let sharing = Some(Sharing { execution, delay_us: 4000.0 });
        let shelf = Shelf::new(&data.join("takt/gpus"), "a GPU", "1.0");
        shelf.keep_profile(Profile { sharing, ..Profile::default() }.to_text()).expect("it is kept");
    };
    keep(Execution::TimeShared { slice_us: 1024.0, switch_us: 160.0 });
    let verdict = json(&check());
    assert_eq!(verdict["gpu"], "time-shared: turns of 1024 us, 160 us per switch");
    assert!(verdict["caveats"].to_string().contains("took 4000 us on this machine"), "{verdict}");
    keep(Execution::SideBySide);
    assert!(stderr(&check()).contains("side by side"));
}

#[test]
fn check_admits_bandwidth_servers() {
    const ADAS: &str = "scenarios/hercules-adas.toml";
    let servers = |sets: &[&str]| {
        let args = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["check", ADAS, "--json", "-"].into_iter().chain(args).collect();
        let output = takt(&args);
        (output.status.code(), json(&output)["servers"].clone())
    };
    let (code, fits) = servers(&[]);
    assert_eq!((code, &fits["count"], &fits["admitted"]), (Some(0), &2.into(), &true.into()));
    // 4.4 of 32 ms, and 3.2 of 4 ms: the period of 40 ms does not count.
    assert_eq!(fits["share"], 0.9375);
    let (code, full) = servers(&["app.network.service.reserve_us=3450"]);
    assert_eq!((code, &full["share"], &full["admitted"]), (Some(0), &1.0.into(), &true.into()));
    let (code, over) = servers(&["app.network.service.reserve_us=3451"]);
    assert_eq!((code, &over["admitted"]), (Some(1), &false.into()));
    let (_, none) = servers(&["scheduler.policy=fifo"]);
    assert_eq!(none, Value::Null);
    let check = |policy| json(&takt(&["check", ADAS, "--set", policy, "--json", "-"]));
    let served = check("scheduler.policy=timeline");
    // The sphere waits for its own groups: its jobs are frames by its own clock.
    for (app, contract) in [(0, "own-clock"), (1, "server")] {
        let app = &served["apps"][app];
        assert_eq!((&app["contract"], &app["covered"]), (&contract.into(), &true.into()));
    }
    let caveats = served["caveats"].to_string();
    assert!(!caveats.contains("does not serve"), "{caveats}");
    let unserved = check("scheduler.policy=frame-deadline")["caveats"].to_string();
    let sentence = "frame-deadline does not serve budgets by their deadlines: sphere, network";
    assert!(unserved.contains(sentence), "{unserved}");
    assert!(caveats.contains("before the end of their periods: network"), "{caveats}");
    let text = stdout(&takt(&["check", ADAS]));
    let sentence = "Bandwidth servers: 2, 93.8 % of the GPU; each has its budget by its deadline.";
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn an_app_with_a_clock_of_its_own_is_not_judged_by_the_display() {
    let output = takt(&["sim", "scenarios/hercules-adas.toml", "--set", "duration_s=5"]);
    let text = stdout(&output);
    let network = text.lines().find(|line| line.contains("network")).expect("a row");
    assert_eq!(network.split_whitespace().collect::<Vec<_>>()[4..7], ["100.00", "%", "0"], "{network}");
    assert!(!text.contains("Why deadlines were missed"), "{text}");
}

#[test]
fn prove_finds_nothing_on_any_number_of_threads() {
    let mut hashes = Vec::new();
    for threads in ["1", "3"] {
        let output = takt(&["prove", "--sets", "300", "--seed", "5", "--threads", threads, "--json", "-"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let findings = json(&output);
        assert_eq!(findings["sets"], 300);
        assert_eq!(findings["violations"], 0);
        hashes.push(findings["event_hash"].clone());
    }
    assert_eq!(hashes[0], hashes[1]);
    // Pinned: what happens does not depend on the machine or on the kind of build either.
    assert_eq!(hashes[0], "c8baf305c7044c0b");
}

#[test]
fn bench_measures_decisions_without_allocations() {
    let output = takt(&["bench", "decision", "--iterations", "2000", "--apps", "20,40", "--json", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let measurements = json(&output);
    let sizes: Vec<_> = measurements.as_array().expect("a list").iter().map(|m| m["n"].as_u64()).collect();
    assert_eq!(&sizes[..2], &[Some(20), Some(40)]);
    for measurement in measurements.as_array().expect("a list") {
        assert_eq!(measurement["allocations"], 0, "{measurement}");
        assert!(measurement["mean_ns"].as_f64().is_some_and(|ns| ns > 0.0));
    }
}

#[test]
fn sim_writes_reports_and_traces_of_all_formats() {
    let folder = scratch("outputs");
    let in_folder = |name: &str| folder.join(name).display().to_string();
    for trace in ["run.perfetto-trace", "run.csv", "run.jsonl"] {
        let output = takt(&[
            "sim",
            "scenarios/faults.toml",
            "--set",
            "duration_s=5",
            "--trace",
            &in_folder(trace),
            "--report",
            &in_folder("report"),
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("report: "));
        assert!(std::fs::metadata(folder.join(trace)).is_ok_and(|file| file.len() > 10_000), "{trace}");
    }
    let page = std::fs::read_to_string(folder.join("report/index.html")).expect("the page is there");
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
    assert!(!page.contains("http://") || !page.contains("src=\"http"), "the page is self-contained");
    let csv = std::fs::read_to_string(folder.join("run.csv")).expect("the table is there");
    let columns = csv.lines().next().map_or(0, |header| header.split(',').count());
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    let jsonl = std::fs::read_to_string(folder.join("run.jsonl")).expect("the lines are there");
    assert!(jsonl.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn bad_input_is_named_with_place_value_and_remedy() {
    let folder = scratch("bad");
    let text = std::fs::read_to_string(root().join(MIXED)).expect("the scenario is there");
    let cases = [
        ("fps = 20", "fps = 45", "45 FPS does not divide the refresh rate of 60 Hz"),
        ("priority = 16", "priority = 17", "17"),
        ("etpf_us = 2300", "etpf_us = -1", "-1"),
        ("mpcg = 5", "mpgc = 5", "mpgc"),
        ("refresh_hz = 60", "refresh_hz = 0", "0"),
    ];
    for (good, bad, expected) in cases {
        assert!(text.contains(good), "{good}");
        let file = folder.join("bad.toml");
        std::fs::write(&file, text.replacen(good, bad, 1)).expect("our own file can be written");
        let line = 1 + text[..text.find(good).unwrap_or(0)].lines().count();
        for command in ["sim", "check"] {
            let output = takt(&[command, &file.display().to_string()]);
            assert_eq!(output.status.code(), Some(2), "{bad}");
            let complaint = stderr(&output);
            assert!(complaint.contains(expected), "{bad}: {complaint}");
            assert!(complaint.contains("help: "), "{bad}: {complaint}");
            let places = [format!("bad.toml:{line}:"), format!("bad.toml:{}:", line - 1)];
            assert!(places.iter().any(|place| complaint.contains(place.as_str())), "{bad}: {complaint}");
            assert!(stdout(&output).is_empty());
        }
    }
}

#[test]
fn nonsense_gets_an_error_and_exit_code_2() {
    let folder = scratch("nonsense");
    let garbage = folder.join("garbage.toml");
    std::fs::write(&garbage, [0xff, 0x00, 0xfe, b'=', b'[']).expect("our own file can be written");
    let garbage = garbage.display().to_string();
    let cases: &[&[&str]] = &[
        &["sim", "no-such-file.toml"],
        &["sim", "scenarios"],
        &["sim", &garbage],
        &["check", &garbage],
        &["sim", MIXED, "--policy", "luck"],
        &["sim", MIXED, "--set", "nothing"],
        &["sim", MIXED, "--set", "scheduler.mpcg=0"],
        &["sim", MIXED, "--set", "duration_s=1", "--window", "x"],
        &["sim", MIXED, "--set", "duration_s=1", "--trace", "/proc/no/such/place"],
        &["prove", "--strides", "0"],
        &["prove", "--strides", "7,11,13"],
        &["prove", "--apps", "9-1"],
        &["bench", "decision", "--apps", "0"],
        &["fly"],
        &[],
    ];
    for case in cases {
        let output = takt(case);
        assert_eq!(output.status.code(), Some(2), "{case:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty(), "{case:?}");
        assert!(!stderr(&output).contains("panicked"), "{case:?}: {}", stderr(&output));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_takt"))
        .args(["sim", MIXED, "--set", "duration_s=5", "--json", "-"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("takt starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("takt ends");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn demo_tells_the_story() {
    let folder = scratch("demo");
    let output = takt(&["demo", "--no-live", "--seconds", "5", "--out", &folder.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("under Takt it runs at 60.0 FPS and meets 100.00 %"),
        "{}",
        stdout(&output)
    );
    assert!(folder.join("index.html").exists());
    assert!(folder.join("timeline.perfetto-trace").exists());
}

#[test]
fn report_reads_what_sim_writes() {
    let folder = scratch("compare");
    let csv = folder.join("run.csv").display().to_string();
    let sim = takt(&["sim", MIXED, "--set", "duration_s=5", "--trace", &csv]);
    assert!(sim.status.success(), "{}", stderr(&sim));
    let out = folder.join("pages").display().to_string();
    let output = takt(&["report", &csv, "--out", &out, "--json", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures = &json(&output)[0]["figures"];
    assert_eq!(figures[0]["of"], "all");
    let model = &figures[0]["models"][0];
    assert!(model["mae_us"].as_f64().is_some_and(|mae| mae > 0.0));
    assert!(model["under_predicted"].as_f64().is_some_and(|share| (0.4..0.6).contains(&share)), "{model}");
    assert!(folder.join("pages/run.html").exists());

    std::fs::write(&csv, "measured_us,pred_a_us\n1,2\n3,x\n").expect("our own file can be written");
    let bad = takt(&["report", &csv]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("run.csv:3:2: 'x' is no time"), "{}", stderr(&bad));
}

#[test]
fn a_run_can_be_replayed() {
    let folder = scratch("replay");
    let csv = folder.join("run.csv").display().to_string();
    let sim = takt(&["sim", MIXED, "--set", "duration_s=3", "--trace", &csv]);
    assert!(sim.status.success(), "{}", stderr(&sim));
    let recording = takt(&["record", &csv, "--app", "quake3"]);
    assert!(recording.status.success(), "{}", stderr(&recording));
    std::fs::write(folder.join("quake3.csv"), stdout(&recording)).expect("our own file can be written");
    let scenario = "name = \"replay\"\nduration_s = 3\n[[app]]\nname = \"quake3\"\npriority = 1\nfps = 30\n\
                    recording = \"quake3.csv\"\n";
    std::fs::write(folder.join("replay.toml"), scenario).expect("our own file can be written");
    let replay = takt(&["sim", &folder.join("replay.toml").display().to_string(), "--json", "-"]);
    assert!(replay.status.success(), "{}", stderr(&replay));
    assert!(json(&replay)["apps"][0]["frames"].as_u64().is_some_and(|frames| frames > 30));

    let unknown = takt(&["record", &csv, "--app", "unknown"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn documents_show_what_the_demo_prints() {
    let folder = scratch("demo-page");
    let output = takt(&["demo", "--no-live", "--out", &folder.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(root().join("docs/demo.md")).expect("the page is there");
    let shown: Vec<&str> = page.lines().filter(|line| line.contains(" %  |  ")).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for line in shown {
        assert!(stdout(&output).contains(line), "docs/demo.md is stale: {line}");
    }
}

#[test]
fn policies_are_compared_side_by_side() {
    let files = ["scenarios/fgsds-mts2.toml", "scenarios/hercules-adas.toml"];
    let compare = |more: &[&str]| {
        let args = [&["policies"], &files[..], &["--set", "duration_s=3", "--json", "-"], more].concat();
        let output = takt(&args);
        assert!(output.status.success(), "{}", stderr(&output));
        json(&output)
    };
    let all = compare(&["--threads", "2"]);
    assert_eq!(all, compare(&["--threads", "1"]));
    let rows = all.as_array().expect("a list");
    assert_eq!(rows.len(), files.len() * takt_policies::NAMES.len());
    let two = compare(&["--policy", "fifo,hpf"]);
    let names: Vec<&Value> = two.as_array().expect("a list").iter().map(|row| &row["policy"]).collect();
    assert_eq!(names, ["fifo", "hpf", "fifo", "hpf"]);
    assert_eq!(two[1]["met_first"], 1.0);
    assert_eq!(two[0]["met_first"], 0.0);
    // The network's jobs are judged by its own clock: 40 ms, and the first second is warm-up.
    assert_eq!(two[2]["apps"][1]["deadlines"], 50);

    let picture = scratch("policies").join("histograms.svg");
    let file = picture.to_str().expect("a plain name");
    let output = takt(&["policies", files[0], "--set", "duration_s=3", "--histograms", file, "--markdown"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("| scenario | policy |"), "{}", stdout(&output));
    let drawn = std::fs::read_to_string(&picture).expect("the picture is there");
    assert!(drawn.contains("spam under hpf") && drawn.ends_with("</svg>\n"));
    let both = takt(&["policies", files[0], files[1], "--histograms", file]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn published_schemas_are_fresh() {
    let all = [
        "scenario", "study", "sim", "policies", "check", "prove", "sweep", "bench", "report", "doctor",
        "profile", "train", "top", "replay",
    ];
    for of in all {
        let output = takt(&["schema", of]);
        assert!(output.status.success());
        let file = root().join("docs/schema").join(format!("{of}.schema.json"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, stdout(&output)).expect("the schema can be written");
        }
        let published = std::fs::read_to_string(&file).expect("the schema is published");
        assert_eq!(published, stdout(&output), "run the tests with UPDATE_EXPECT=1 to publish it");
    }
}

#[test]
fn help_and_completions_are_there() {
    for args in [&["--help"][..], &["sim", "--help"], &["completions", "bash"], &["completions", "fish"]] {
        let output = takt(args);
        assert!(output.status.success(), "{args:?}");
        assert!(stdout(&output).len() > 200, "{args:?}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused_with_line_and_remedy() {
    let file = scratch("no-text").join("scenario.toml");
    std::fs::write(&file, b"name = \"x\"\n\xa0\n").expect("written");
    let file = file.display().to_string();
    let commands: [&[&str]; 4] =
        [&["sim", &file], &["sweep", &file], &["report", &file], &["analyze", "edf", "--sets", &file]];
    for command in commands {
        let output = takt(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let message = stderr(&output);
        assert!(message.contains("line 2: byte 0xa0 is not UTF-8; save"), "{command:?}: {message}");
    }
}
