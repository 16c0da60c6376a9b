//! Study text in, study or error text out.

use std::path::Path;

use expect_test::{Expect, expect};

use super::*;
use crate::study::table::{Cell, Kind, Table};

const SCENARIO: &str = r#"name = "base"
duration_s = 2
[[app]]
name = "a"
priority = 2
fps = 60
swap_us = [1000, 9000]
[[app]]
name = "b"
priority = 1
fps = 30
swap_us = 3000
"#;

const SIMULATE: &str = r#"name = "depth"
repetitions = 2
[simulate]
scenario = "base.toml"
set = ["duration_s=1"]
measure = ["gpu.utilisation", "app.a.frames", "app.*.met", "sum(app.*.missed)", "event_hash"]
[[axis]]
set = "scheduler.mpcg"
values = [1, 3]
[[axis]]
name = "how"
[[axis.choice]]
label = "in order"
set = ["scheduler.policy=fifo"]
[[axis.choice]]
label = "by deadline"
set = ["scheduler.policy=frame-deadline", "app.a.etpf_us=9000"]
"#;

const SETS: &str = r#"name = "ratio"
[sets]
count = 200
tasks = 5
period_us = [16000, 125000]
[test]
analysis = "runlist"
overhead_us = 50
[[axis]]
set = "sets.utilisation"
range = { from = 0.1, to = 0.9, step = 0.2 }
[[axis]]
name = "slice"
set = "test.segment_us"
values = [1000, 4000]
"#;

fn open(path: &str) -> Result<String, String> {
    match path {
        "studies/base.toml" => Ok(SCENARIO.to_owned()),
        _ => Err(format!("{path}: no such file")),
    }
}

fn study(text: &str) -> Study {
    parse("studies/s.toml", text, &open).unwrap_or_else(|found| panic!("{found:#?}"))
}

fn table(study: &Study) -> Table {
    let rows = (0..study.jobs()).map(|job| study.row(job, study.run(job).unwrap())).collect();
    Table { columns: study.columns(), rows }
}

#[track_caller]
fn check_edit(text: &str, from: &str, to: &str, expected: Expect) {
    assert!(text.contains(from), "{from}");
    let found = parse("studies/s.toml", &text.replacen(from, to, 1), &open);
    let found = found.expect_err("there is a mistake");
    expected.assert_eq(&found.iter().map(|error| format!("{error}\n")).collect::<String>());
}

#[test]
fn a_scenario_is_played_at_every_point() {
    let study = study(SIMULATE);
    assert_eq!(study.jobs(), 8);
    let table = table(&study);
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let expected =
        "mpcg,how,seed,gpu.utilisation,app.a.frames,app.a.met,app.b.met,sum(app.*.missed),event_hash";
    assert_eq!(names.join(","), expected);
    let kinds: Vec<Kind> = table.columns.iter().map(|column| column.kind).collect();
    use Kind::{Number, Text};
    assert_eq!(kinds, [Number, Text, Number, Number, Number, Number, Number, Number, Text]);
    let hash = |row: usize| table.rows[row][8].clone();
    // Another policy, another seed, another queue depth: another run.
    assert!(hash(0) != hash(1) && hash(0) != hash(2) && hash(0) != hash(4));
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(row) {
            assert_eq!(cell.kind(), column.kind, "{column:?}");
        }
    }
    // The same as by hand.
    let sets = ["duration_s=1", "scheduler.mpcg=3", "scheduler.policy=fifo"].map(|set| set.parse().unwrap());
    let mut scenario = super::super::parse("x", SCENARIO, &sets, &open).unwrap();
    scenario.seed = 2;
    let summary = crate::study::summary_of(&scenario);
    assert_eq!(table.rows[5][8], Cell::Text(summary["event_hash"].as_str().unwrap().to_owned()));
    let missed: u64 =
        summary["apps"].as_array().unwrap().iter().map(|app| app["missed"].as_u64().unwrap()).sum();
    assert_eq!(table.rows[5][7], Cell::Float(missed as f64));
}

#[test]
fn task_sets_are_tested_at_every_point() {
    let study = study(SETS);
    let table = table(&study);
    expect![[r#"
        utilisation,slice,seed,sets,schedulable,undecided,ratio
        0.1,1000,1,200,200,0,1.0
        0.1,4000,1,200,200,0,1.0
        0.3,1000,1,200,182,0,0.91
        0.3,4000,1,200,193,0,0.965
        0.5,1000,1,200,30,0,0.15
        0.5,4000,1,200,31,0,0.155
        0.7,1000,1,200,0,0,0.0
        0.7,4000,1,200,0,0,0.0
        0.9,1000,1,200,0,0,0.0
        0.9,4000,1,200,0,0,0.0
    "#]]
    .assert_eq(&table.to_csv());
    // By default: the ratio over the first axis, one line for each choice of the second.
    let [plot] = &study.plots[..] else { panic!("{:?}", study.plots) };
    assert_eq!((plot.x, plot.series, plot.facet, plot.y.as_str()), (0, Some(1), None, "ratio"));
}

#[test]
fn every_analysis_can_be_asked() {
    let count = |test: &str| {
        let text = SETS.replace("analysis = \"runlist\"\noverhead_us = 50\n", test);
        let text = text.replace("{ from = 0.1, to = 0.9, step = 0.2 }", "{ from = 0.7, to = 0.7, step = 1 }");
        let study = study(&text);
        let row = study.run(0).unwrap();
        let Cell::Int(schedulable) = row[1] else { panic!("{row:?}") };
        schedulable
    };
    let edf = count("analysis = \"edf\"\n");
    let (lp, np) = (count("analysis = \"lp-edf\"\n"), count("analysis = \"np-edf\"\n"));
    assert_eq!(edf, 200);
    assert!(np < lp && lp <= edf, "{np} {lp}");
    assert!(count("analysis = \"edf\"\noverhead_us = 2000\n") < 200);
    assert!(count("analysis = \"edf\"\nsubmission_us = 4000\n") < 200);
}

#[test]
fn shares_can_be_bounded_and_deadlines_be_short() {
    let text = SETS.replace("tasks = 5", "tasks = 5\nshare_max = 0.3\ndeadline_min = 0.5");
    let bounded = question(
        "s",
        &text,
        &["sets.utilisation=0.9".parse().unwrap(), "test.segment_us=9".parse().unwrap()],
    );
    let sets = bounded.unwrap().sets;
    assert_eq!((sets.share_ppb_max, sets.deadline_permille_min), (300_000_000, 500));
}

#[test]
fn what_results_depend_on_is_in_the_fingerprint() {
    let base = study(SIMULATE).fingerprint;
    assert_eq!(study(SIMULATE).fingerprint, base);
    assert_ne!(study(&SIMULATE.replace("[1, 3]", "[1, 2]")).fingerprint, base);
    let other = |_: &str| Ok(SCENARIO.replace("3000", "3001"));
    assert_ne!(parse("studies/s.toml", SIMULATE, &other).unwrap().fingerprint, base);
}

#[test]
fn recordings_count_and_are_read_once() {
    let scenario = SCENARIO.replace("swap_us = 3000", "recording = \"r/b.csv\"");
    let opened = RefCell::new(Vec::new());
    let read = |cost: &str| {
        opened.borrow_mut().clear();
        let open = |path: &str| {
            opened.borrow_mut().push(path.to_owned());
            let recording = || format!("{}\n0,swap,{cost},{cost}\n", super::super::RECORDING_HEADER);
            Ok(if path.ends_with("csv") { recording() } else { scenario.clone() })
        };
        parse("studies/s.toml", SIMULATE, &open).unwrap_or_else(|found| panic!("{found:#?}"))
    };
    let one = read("100");
    assert_eq!(*opened.borrow(), ["studies/base.toml", "studies/r/b.csv"]);
    assert_ne!(one.fingerprint, read("101").fingerprint);
    assert!(one.run(0).is_ok());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn mistakes_in_keys_have_places() {
    check_edit(
        SETS,
        "count",
        "cuont",
        expect![[r#"
            studies/s.toml:3:1: cuont: there is no such key in sets
              help: did you mean count?
        "#]],
    );
    check_edit(
        SETS,
        "name = \"ratio\"\n",
        "",
        expect![[r#"
        studies/s.toml:1:1: study: the key name is missing
          help: add name = …
    "#]],
    );
    check_edit(
        SETS,
        "\"runlist\"",
        "\"runlsit\"",
        expect![[r#"
        studies/s.toml:7:12: test.analysis = "runlsit": there is no such analysis
          help: did you mean "runlist"?
    "#]],
    );
    check_edit(
        SETS,
        "step = 0.2",
        "step = 0.3",
        expect![[r#"
        studies/s.toml:11:9: axis.0.range: no whole number of steps leads from one end to the other
          help: let step divide to − from, at most 100000 times
    "#]],
    );
    check_edit(
        SETS,
        "test.segment_us",
        "segment_us",
        expect![[r#"
        studies/s.toml:15:11: axis.slice.values.0: segment_us: an axis of this study can change [sets] and [test] only
          help: write a key such as sets.utilisation or test.overhead_us
    "#]],
    );
    check_edit(
        SETS,
        "test.segment_us",
        "test.segmnt_us",
        expect![[r#"
        studies/s.toml:15:11: --set test.segmnt_us=1000: segmnt_us: there is no such key in test
          help: did you mean segment_us?
        studies/s.toml:6:1: test: the key segment_us is missing
          help: add segment_us = …, or an axis over test.segment_us
    "#]],
    );
    check_edit(
        SETS,
        "[1000, 4000]",
        "[1000, 0]",
        expect![[r#"
        studies/s.toml:15:17: --set test.segment_us=0: test.segment_us = 0: must be more than zero
          help: use a value from 1 to 60000000 us (a minute)
    "#]],
    );
    check_edit(
        SETS,
        "tasks = 5",
        "tasks = 5\nshare_max = 0.01",
        expect![[r#"
        studies/s.toml:12:9: --set sets.utilisation=0.1: sets.utilisation = 0.1: 5 tasks within share_max can demand 0.05 at most
          help: demand less, or raise share_max or tasks
    "#]],
    );
    check_edit(
        SETS,
        "[test]\n",
        "[tst]\n",
        expect![[r#"
            studies/s.toml:6:2: tst: there is no such key at the top level
              help: did you mean test?
        "#]],
    );
    check_edit(
        SETS,
        "name = \"slice\"",
        "name = \"utilisation\"",
        expect![[r#"
        studies/s.toml:1:1: study: there are two columns called utilisation
          help: give each axis a name of its own, and each measure once
    "#]],
    );
    check_edit(
        SETS,
        "[1000, 4000]",
        "[[1], 2]",
        expect![[r#"
            studies/s.toml:15:11: axis.slice.values.0 = [1]: must be a number, a string, true or false, not an array
              help: write a number, a string, true or false
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn mistakes_about_scenarios_have_places() {
    check_edit(
        SIMULATE,
        "base.toml",
        "bse.toml",
        expect![[r#"
        studies/s.toml:4:12: simulate.scenario = "bse.toml": cannot load the scenario: studies/bse.toml: no such file
          help: give the path of a scenario file, relative to this study
    "#]],
    );
    check_edit(
        SIMULATE,
        "[1, 3]",
        "[1, 3, 65]",
        expect![[r#"
        studies/s.toml:9:17: --set scheduler.mpcg=65: scheduler.mpcg = 65: is out of bounds
          help: use a value from 1 to 64 groups (IN_FLIGHT_MAX)
    "#]],
    );
    check_edit(
        SIMULATE,
        "scheduler.mpcg",
        "scheduler.mpgc",
        expect![[r#"
        studies/s.toml:9:11: --set scheduler.mpgc=1: mpgc: there is no such key in scheduler
          help: did you mean mpcg?
    "#]],
    );
    check_edit(
        SIMULATE,
        "policy=fifo",
        "policy=fif",
        expect![[r#"
        studies/s.toml:13:9: --set scheduler.policy=fif: scheduler.policy = fif: there is no such policy
          help: did you mean "fifo"?
    "#]],
    );
    check_edit(
        SIMULATE,
        "policy=fifo",
        "policy",
        expect![[r#"
        studies/s.toml:14:8: axis.how.choice.0.set.0 = "scheduler.policy": is not of the form key=value
          help: write scheduler.mpcg=3, say
    "#]],
    );
    check_edit(
        SIMULATE,
        "scheduler.mpcg",
        "seed",
        expect![[r#"
        studies/s.toml:9:11: axis.0.values.0: seed: repetitions have the seeds
          help: leave this out, and give seed and repetitions at the top level
    "#]],
    );
    check_edit(
        SIMULATE,
        "app.a.frames",
        "app.a.frmes",
        expect![[r#"
        studies/s.toml:6:31: simulate.measure.1 = "app.a.frmes": there is no figure frmes here
          help: did you mean frames?
    "#]],
    );
    check_edit(
        SIMULATE,
        "app.a.frames",
        "app.c.frames",
        expect![[r#"
        studies/s.toml:6:31: simulate.measure.1 = "app.c.frames": there is no figure c here
          help: did you mean a?
    "#]],
    );
    check_edit(
        SIMULATE,
        "app.a.frames",
        "app.a.response_us",
        expect![[r#"
            studies/s.toml:6:31: simulate.measure.1 = "app.a.response_us": is not a single figure
              help: go on with one of max, p50, p99
        "#]],
    );
    check_edit(
        SIMULATE,
        "repetitions = 2",
        "repetitions = 900000",
        expect![[r#"
        studies/s.toml:1:1: study: all combinations make 3600000 jobs
          help: use at most 1000000 (JOBS_MAX): fewer values or repetitions
    "#]],
    );
    check_edit(
        SIMULATE,
        "label = \"in order\"",
        "label = 3",
        expect![[r#"
        studies/s.toml:13:9: axis.how.choice.0.label = 3: must be a string, not an integer
          help: write a string
    "#]],
    );
    let plot = "[[plot]]\nx = \"mpgc\"\ny = \"event_hash\"\n[[axis]]\n";
    check_edit(
        SIMULATE,
        "[[axis]]\n",
        plot,
        expect![[r#"
            studies/s.toml:8:5: plot.0.x = "mpgc": there is no such axis
              help: did you mean "mpcg"?
            studies/s.toml:9:5: plot.0.y = "event_hash": there is no such column of numbers
              help: use one of "gpu.utilisation", "app.a.frames", "app.a.met", "app.b.met", "sum(app.*.missed)"
        "#]],
    );
}

#[test]
fn mistakes_in_the_scenario_are_its_own() {
    let broken = |_: &str| Ok(SCENARIO.replace("priority = 2", "priority = two"));
    let found = parse("studies/s.toml", SIMULATE, &broken).unwrap_err();
    assert_eq!((found[0].file.as_str(), found[0].line), ("studies/base.toml", 5));
}

#[test]
fn what_ships_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let open = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
            let study = parse(&path.display().to_string(), &text, &open);
            let study = study.unwrap_or_else(|found| panic!("{}: {found:#?}", path.display()));
            assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(study.name.as_str()));
            names.push(study.name);
        }
    }
    assert!(!names.is_empty());
}

/// Rewrites the file where `UPDATE_EXPECT` is set, like the other expectations.
#[test]
fn the_committed_schema_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/study.schema.json");
    expect_test::expect_file![path].assert_eq(&json_schema());
}

proptest::proptest! {
    /// Any text gets an answer.
    #[test]
    fn no_text_makes_it_panic(cut in 0..SETS.len(), put in "[\\[\\]=\".0-9a-z\n]{0,6}", of_scenario: bool) {
        let base = if of_scenario { SIMULATE } else { SETS };
        let cut = cut.min(base.len());
        let text = format!("{}{put}{}", &base[..cut], &base[(cut + put.len()).min(base.len())..]);
        let _either = parse("studies/s.toml", &text, &open);
    }
}
