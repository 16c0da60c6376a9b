//! Scenario text in, model or error text out.

mod clocks;
mod fuzz;
mod promises;

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use super::*;

/// A minimal scenario; tests add to it or break it.
const BASE: &str = r#"name = "base"
duration_s = 10
[[app]]
name = "a"
priority = 2
fps = 60
swap_us = 100
[[app]]
name = "b"
priority = 1
fps = 30
swap_us = 100
"#;

fn no_files(path: &str) -> Result<String, String> {
    Err(format!("no such file: {path}"))
}

fn errors(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<Override> = overrides.iter().map(|o| o.parse().unwrap()).collect();
    match parse("x.toml", text, &overrides, &no_files) {
        Ok(_) => "fine\n".to_owned(),
        Err(found) => found.iter().map(|d| format!("{d}\n")).collect(),
    }
}

/// The errors of `text`.
#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&errors(text, &[]));
}

/// The errors of the base scenario with one piece of its text replaced.
#[track_caller]
fn check_edit(from: &str, to: &str, expected: Expect) {
    assert!(BASE.contains(from));
    check(&BASE.replacen(from, to, 1), expected);
}

fn scenario_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Name and text of every scenario that ships.
pub(super) fn shipped() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenario_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn shipped_scenarios_are_fine() {
    let shipped = shipped();
    assert!(shipped.len() >= 9);
    for (name, text) in shipped {
        let scenario = parse(&name, &text, &[], &no_files).unwrap_or_else(|found| {
            let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"))
        });
        assert_eq!(scenario.name, name, "a scenario is called like its file");
        assert!(text.starts_with("#:schema ../docs/schema/scenario.schema.json\n"));
    }
}

#[test]
fn thesis_mixed_has_the_table_s_apps() {
    let (_, text) = shipped().into_iter().find(|(name, _)| name == "thesis-mixed").unwrap();
    let scenario = parse("", &text, &[], &no_files).unwrap();
    let lines: Vec<String> = scenario
        .apps
        .iter()
        .map(|app| {
            let (priority, stride) = (app.params.priority.0, app.params.stride.get());
            format!("P{priority} {} /{stride} {}", app.name, app.params.etpf)
        })
        .collect();
    expect![[r#"
        P17 speedometer /1 2100.000us
        P16 tachometer /1 2100.000us
        P15 shading /2 2300.000us
        P14 texture20 /3 2500.000us
        P13 build-1 /2 0.000us
        P12 build-2 /2 0.000us
        P11 quake3 /2 0.000us
        P10 texture-1 /1 0.000us
        P9 texture-2 /1 0.000us
        P8 texture-3 /1 0.000us
        P7 texture-4 /1 0.000us
        P6 texture-5 /1 0.000us
        P5 texture-6 /1 0.000us
        P4 texture-7 /1 0.000us
        P3 texture-8 /1 0.000us
        P2 texture-9 /1 0.000us
        P1 texture-10 /1 0.000us"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn all_errors_come_at_once() {
    check(
        r#"nam = "base"
duration_s = -1
seed = 1.5
[scheduler]
mpcg = 65
polcy = "fifo"
[gpu]
queue = "many"
[[app]]
name = "a b"
priority = 1
fps = 45
etpf_us = nan
"#,
        expect![[r#"
            x.toml:1:1: nam: there is no such key at the top level
              help: did you mean name?
            x.toml:1:1: scenario: the key name is missing
              help: add name = …
            x.toml:2:14: duration_s = -1: must not be negative
              help: use a value from 0.000000001 to 86400 s (DURATION_NS_MAX)
            x.toml:3:8: seed = 1.5: must be a whole number
              help: leave out the fraction
            x.toml:5:8: scheduler.mpcg = 65: is out of bounds
              help: use a value from 1 to 64 groups (IN_FLIGHT_MAX)
            x.toml:6:1: polcy: there is no such key in scheduler
              help: did you mean policy?
            x.toml:8:9: gpu.queue = "many": must be a number, not a string
              help: write a number
            x.toml:9:1: app.a b: neither swap_us nor swap_mix is given
              help: add swap_us = … (GPU time in microseconds)
            x.toml:10:8: app.a b.name = "a b": the name has other characters than letters, digits, - and _
              help: use a short name such as "tachometer-2"
            x.toml:12:7: app.a b.fps = 45: 45 FPS does not divide the refresh rate of 60 Hz
              help: use one of 60, 30, 20, 15, 12, 10, 7.5, 6, 5, 4, 3.75, 3, …
            x.toml:13:11: app.a b.etpf_us = nan: is not a number
              help: use a value from 0 to 60000000 us (SPAN_NS_MAX)
        "#]],
    );
}

#[test]
fn shape_and_values_are_judged_together() {
    check_edit(
        "duration_s = 10",
        "duration_s = inf\ncolour = 1",
        expect![[r#"
            x.toml:2:14: duration_s = inf: is not finite
              help: use a value from 0.000000001 to 86400 s (DURATION_NS_MAX)
            x.toml:3:1: colour: there is no such key at the top level
              help: known keys are name, description, duration_s, warm_up_s, seed, display, scheduler, gpu, app, focus
        "#]],
    );
    check_edit(
        "[[app]]",
        "[gpu]\nqueue = 0\nclok = []\n[[app]]",
        expect![[r#"
            x.toml:4:9: gpu.queue = 0: must be more than zero
              help: use a value from 1 to 4096 groups (GPU_QUEUE_MAX)
            x.toml:5:1: clok: there is no such key in gpu
              help: did you mean clock?
        "#]],
    );
}

#[test]
fn syntax_errors_have_places() {
    check(
        "name = \"base\nduration_s = = 1\n",
        expect![[r#"
            x.toml:1:13: name = "base: invalid basic string, expected `"`
              help: mend the TOML syntax here (see https://toml.io)
            x.toml:2:14: =: extra `=`, expected nothing
              help: mend the TOML syntax here (see https://toml.io)
            x.toml:2:16: duration_s = = 1: unexpected key or value, expected newline, `#`
              help: mend the TOML syntax here (see https://toml.io)
        "#]],
    );
    check(
        "",
        expect![[r#"
            x.toml:1:1: scenario: the key name is missing
              help: add name = …
            x.toml:1:1: scenario: the key duration_s is missing
              help: add duration_s = …
            x.toml:1:1: scenario: there is no app
              help: add at least one [[app]] table
        "#]],
    );
    check_edit(
        "name = \"b\"",
        "name = \"b\"\nname = \"c\"",
        expect![[r#"
            x.toml:10:1: name: duplicate key
              help: keep only one of them
        "#]],
    );
}

#[test]
fn impossible_rates_list_the_possible_ones() {
    check_edit(
        "fps = 30",
        "fps = 45",
        expect![[r#"
            x.toml:11:7: app.b.fps = 45: 45 FPS does not divide the refresh rate of 60 Hz
              help: use one of 60, 30, 20, 15, 12, 10, 7.5, 6, 5, 4, 3.75, 3, …
        "#]],
    );
    check_edit(
        "fps = 30",
        "stride = 241",
        expect![[r#"
            x.toml:11:10: app.b.stride = 241: is out of bounds
              help: use a value from 1 to 240 periods (STRIDE_MAX)
        "#]],
    );
    check_edit(
        "fps = 30",
        "fps = 30\nstride = 2",
        expect![[r#"
            x.toml:12:10: app.b.stride = 2: app.b.fps is given already (line 11)
              help: give only one of fps and stride
        "#]],
    );
    check_edit(
        "fps = 30\n",
        "",
        expect![[r#"
            x.toml:8:1: app.b: neither fps nor stride is given
              help: add fps = … (frames per second), stride = … (periods per frame) or period_us = …
        "#]],
    );
    check_edit(
        "[[app]]",
        "[display]\nperiod_us = 1000\n[[app]]",
        expect![[r#"
            x.toml:8:7: app.a.fps = 60: the display is given by its period, not by its rate
              help: use stride = … (periods per frame), or display.refresh_hz
            x.toml:13:7: app.b.fps = 30: the display is given by its period, not by its rate
              help: use stride = … (periods per frame), or display.refresh_hz
        "#]],
    );
}

#[test]
fn strides_must_repeat_soon() {
    let apps: String = [7, 11, 13, 2]
        .iter()
        .map(|stride| {
            format!("[[app]]\nname = \"s{stride}\"\npriority = 1{stride}\nstride = {stride}\nswap_us = 1\n")
        })
        .collect();
    check(
        &format!("{BASE}{apps}"),
        expect![[r#"
            x.toml:26:10: app.s13.stride = 13: the apps' strides (1, 2, 7, 11, 13) repeat only every 2002 periods
              help: use rates with a common multiple of at most 1022 periods (LOOKAHEAD_MAX)
        "#]],
    );
}

#[test]
fn names_and_priorities_are_unique() {
    check_edit(
        "name = \"b\"",
        "name = \"a\"",
        expect![[r#"
            x.toml:9:8: app.a.name = "a": another app is called a (line 4)
              help: give each app its own name
        "#]],
    );
    check_edit(
        "priority = 1",
        "priority = 2",
        expect![[r#"
            x.toml:10:12: app.b.priority = 2: app a has priority 2 too (line 5)
              help: give each app its own priority
        "#]],
    );
    check_edit(
        "priority = 1",
        "priority = 4\ncount = 3",
        expect![[r#"
            x.toml:10:12: app.b.priority = 4: app a has priority 2 too (line 5)
              help: give each app its own priority
        "#]],
    );
    check_edit(
        "priority = 1",
        "priority = 1\ncount = 3",
        expect![[r#"
            x.toml:10:12: app.b.priority = 1: the priorities of 3 apps fall below zero
              help: use at least 2
        "#]],
    );
    let swap = "[[app.change]]\nat_s = 3\npriority = 2\n";
    check(
        &format!("{BASE}{swap}"),
        expect![[r#"
            x.toml:15:12: app.b.change.0.priority = 2: app a has priority 2 too (line 5)
              help: give each app its own priority
        "#]],
    );
}

#[test]
fn ranges_and_shares_make_sense() {
    check_edit(
        "swap_us = 100",
        "swap_us = [3, 2]",
        expect![[r#"
            x.toml:7:11: app.a.swap_us = [3, 2]: the lower bound is above the upper one
              help: write [lo, hi] with lo not above hi
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_us = [3, 2, 1]",
        expect![[r#"
            x.toml:7:11: app.a.swap_us = [3, 2, 1]: must be a number or a range [lo, hi], not an array
              help: write a number or a range [lo, hi]
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_us = 60_000_000.001",
        expect![[r#"
            x.toml:7:11: app.a.swap_us = 60_000_000.001: is out of bounds
              help: use a value from 0 to 60000000 us (SPAN_NS_MAX)
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_mix = [{ share = 0.5, us = 1 }, { share = 0.4, us = 2 }]",
        expect![[r#"
            x.toml:7:23: app.a.swap_mix.0.share: the shares of swap_mix sum to 0.9
              help: make the shares sum to 1
        "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "draws = [{}]\n",
        expect![[r#"
            x.toml:3:1: app.a: neither swap_us nor swap_mix is given
              help: add swap_us = … (GPU time in microseconds)
            x.toml:7:10: app.a.draws.0: neither us nor mix is given
              help: add us = … (GPU time in microseconds)
        "#]],
    );
}

#[test]
fn lives_go_forward() {
    check_edit(
        "swap_us = 100",
        "swap_us = 100\njoin_s = 5\nleave_s = 4",
        expect![[r#"
            x.toml:9:11: app.a.leave_s = 4: the app ends before it joins
              help: use a time after join_s = 5
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_us = 100\ncrash_s = 5\nhang_s = 4",
        expect![[r#"
            x.toml:9:10: app.a.hang_s = 4: app.a.crash_s is given already (line 8)
              help: give only one of leave_s, crash_s and hang_s
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_us = 100\ncrash_notice_ms = 4",
        expect![[r#"
            x.toml:8:19: app.a.crash_notice_ms = 4: the app does not crash
              help: add crash_s = …, or drop crash_notice_ms
        "#]],
    );
    check(
        &format!("{BASE}[[app.change]]\nat_s = 0\nfps = 60\n"),
        expect![[r#"
            x.toml:14:8: app.b.change.0.at_s = 0: the app has not joined by then
              help: use a time between the app's join and end
        "#]],
    );
    check(
        &format!("{BASE}[[app.phase]]\nfrom_s = 2\nuntil_s = 1\n"),
        expect![[r#"
            x.toml:15:11: app.b.phase.0.until_s = 1: the phase ends before it begins
              help: use a time after from_s = 2
        "#]],
    );
    check(
        &format!("{BASE}phase = [{{ from_s = 1, until_s = 3 }}, {{ from_s = 2, until_s = 4 }}]"),
        expect![[r#"
            x.toml:13:50: app.b.phase.1.from_s = 2: the phase before it (line 13) is not over
              help: make the phases of an app follow one another
        "#]],
    );
}

#[test]
fn runs_have_a_length() {
    check_edit(
        "duration_s = 10",
        "duration_s = 10\nwarm_up_s = 10",
        expect![[r#"
            x.toml:3:13: warm_up_s = 10: nothing is left to judge of the duration
              help: make warm_up_s less than duration_s
        "#]],
    );
    check_edit(
        "duration_s = 10",
        "duration_s = 100_000",
        expect![[r#"
            x.toml:2:14: duration_s = 100_000: is out of bounds
              help: use a value from 0.000000001 to 86400 s (DURATION_NS_MAX)
        "#]],
    );
}

#[test]
fn the_scheduler_is_known() {
    check_edit(
        "[[app]]",
        "[scheduler]\npolicy = \"fido\"\n[[app]]",
        expect![[r#"
            x.toml:4:10: scheduler.policy = "fido": there is no such policy
              help: did you mean "fifo"?
        "#]],
    );
    check_edit(
        "[[app]]",
        "[scheduler.margins]\nlower = 1.2\nuper = 2\n[[app]]",
        expect![[r#"
            x.toml:3:1: scheduler.margins: lower is above upper
              help: set both, lower not above upper
            x.toml:5:1: uper: there is no such key in scheduler.margins
              help: did you mean upper?
        "#]],
    );
}

#[test]
fn sizes_are_bounded() {
    check_edit(
        "priority = 1",
        "priority = 5000\ncount = 4096",
        expect![[r#"
            x.toml:11:9: app.b.count = 4096: too many apps in all
              help: have at most 4096 (APPS_MAX)
        "#]],
    );
    let deep = format!("x = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    expect![[r#"
        x.toml:1:85: [: cannot recurse further; max recursion depth met
          help: mend the TOML syntax here (see https://toml.io)
    "#]]
    .assert_eq(&errors(&deep, &[]));
    let huge = "#".repeat(FILE_BYTES_MAX + 1);
    check(
        &huge,
        expect![[r#"
            x.toml:1:1: the scenario has 4194305 bytes
              help: use at most 4194304 (FILE_BYTES_MAX)
        "#]],
    );
    let many: String = (0..1000).map(|i| format!("k{i} = 1\n")).collect();
    assert_eq!(errors(&many, &[]).lines().count(), 2 * (DIAGNOSTICS_MAX + 1));
}

#[test]
fn overrides_replace_values() {
    let set = |overrides: &[&str]| {
        let overrides: Vec<Override> = overrides.iter().map(|o| o.parse().unwrap()).collect();
        parse("x.toml", BASE, &overrides, &no_files).unwrap()
    };
    assert_eq!(set(&["scheduler.mpcg=3"]).config.mpcg, 3);
    assert_eq!(set(&["scheduler.policy=fifo"]).policy, "fifo");
    assert_eq!(set(&["app.b.prediction.scale=inf"]).apps[1].prediction.scale_permille, None);
    assert!(set(&["app.*.unpaced=true"]).apps.iter().all(|app| app.pace == crate::model::Pace::Unpaced));
    assert_eq!(set(&["app.1.priority=7"]).apps[1].params.priority.0, 7);
    let both = set(&["display.refresh_hz=90", "app.*.fps=45"]);
    assert_eq!(both.apps[0].params.stride.get(), 2);
}

#[test]
fn overrides_are_blamed_for_their_errors() {
    let check = |overrides: &[&str], expected: Expect| {
        expected.assert_eq(&errors(BASE, overrides));
    };
    check(
        &["scheduler.mpcg=65"],
        expect![[r#"
            --set scheduler.mpcg=65:1:16: scheduler.mpcg = 65: is out of bounds
              help: use a value from 1 to 64 groups (IN_FLIGHT_MAX)
        "#]],
    );
    check(
        &["scheduler.mpgc=3"],
        expect![[r#"
            --set scheduler.mpgc=3:1:16: mpgc: there is no such key in scheduler
              help: did you mean mpcg?
        "#]],
    );
    check(
        &["sheduler.mpcg=3"],
        expect![[r#"
            --set sheduler.mpcg=3:1:15: sheduler: there is no such key at the top level
              help: did you mean scheduler?
        "#]],
    );
    check(
        &["app.bb.fps=30"],
        expect![[r#"
            --set app.bb.fps=30:1:12: bb: there is no such element
              help: did you mean b?
        "#]],
    );
    check(
        &["name.x=1", "duration_s=[1,"],
        expect![[r#"
            --set name.x=1:1:8: x: a string has no keys
              help: end the key one segment earlier
            --set duration_s=[1,:1:12: duration_s = [1,: must be a number, not a string
              help: write a number
        "#]],
    );
    check(
        &["seed=3", "display.refresh_hz=90"],
        expect![[r#"
            x.toml:6:7: app.a.fps = 60: 60 FPS does not divide the refresh rate of 90 Hz (because of --set display.refresh_hz=90)
              help: use one of 90, 45, 30, 22.5, 18, 15, 11.25, 10, 9, 7.5, 6, 5.625, …
        "#]],
    );
    check(
        &["app.b.priority=2"],
        expect![[r#"
            --set app.b.priority=2:1:16: app.b.priority = 2: app a has priority 2 too (line 5)
              help: give each app its own priority
        "#]],
    );
    assert!("mpcg".parse::<Override>().is_err());
}

#[test]
fn recordings_are_read() {
    let text = BASE.replacen("swap_us = 100", "recording = \"r.csv\"", 1);
    let check = |csv: &str, expected: Expect| {
        let load = |_: &str| Ok(csv.to_owned());
        expected.assert_eq(&match parse("x.toml", &text, &[], &load) {
            Ok(scenario) => format!("{:?}\n", scenario.apps[0].work),
            Err(found) => found.iter().map(|d| format!("{d}\n")).collect(),
        });
    };
    check(
        "delay_us,kind,cost_us,predicted_us\n# first frame\n1,draw,750.5,760\n\n0,swap,0.001,\n",
        expect![[r#"
            Recorded([RecordedGroup { delay: 1.000us, kind: Draw, cost: 750.500us, predicted: Some(760.000us), make: 0.000us }, RecordedGroup { delay: 0.000us, kind: Swap, cost: 0.001us, predicted: None, make: 0.000us }])
        "#]],
    );
    check(
        "delay_us,kind,cost_us,predicted_us,make_us\n1,draw,750.5,760,20\n0,swap,1,,0.5\n",
        expect![[r#"
        Recorded([RecordedGroup { delay: 1.000us, kind: Draw, cost: 750.500us, predicted: Some(760.000us), make: 20.000us }, RecordedGroup { delay: 0.000us, kind: Swap, cost: 1.000us, predicted: None, make: 0.500us }])
    "#]],
    );
    check(
        "delay_us,kind,cost_us,predicted_us,make_us\n1,swap,2,\n1,swap,2,3,x\n",
        expect![[r#"
        r.csv:2:1: a row has 5 fields, not 4
          help: write delay_us,kind,cost_us,predicted_us,make_us
        r.csv:3:12: make_us = x: is not a number
          help: write microseconds, such as 750 or 385.5
    "#]],
    );
    check(
        "delay,kind\n",
        expect![[r#"
            r.csv:1:1: "delay,kind" is not the header of a recording
              help: begin with delay_us,kind,cost_us,predicted_us
        "#]],
    );
    check(
        "delay_us,kind,cost_us,predicted_us\n",
        expect![[r#"
            r.csv:1:1: the recording does not end with a swap
              help: add the row of the frame's swap
        "#]],
    );
    check(
        "delay_us,kind,cost_us,predicted_us\n1,dra,-2,\n 1, swap, x, nan\n1,2\n",
        expect![[r#"
            r.csv:2:3: kind = dra: there is no such kind of group
              help: use draw, swap or sync
            r.csv:2:7: cost_us = -2: must not be negative
              help: use a value from 0 to 60000000 us (SPAN_NS_MAX)
            r.csv:3:11: cost_us = x: is not a number
              help: write microseconds, such as 750 or 385.5
            r.csv:3:14: predicted_us = nan: is not a number
              help: use a value from 0 to 60000000 us (SPAN_NS_MAX)
            r.csv:4:1: a row has 4 fields, not 2
              help: write delay_us,kind,cost_us,predicted_us
        "#]],
    );
}

#[test]
fn a_recording_that_is_not_there_is_named() {
    let text = BASE.replacen("swap_us = 100", "recording = \"r.csv\"", 1);
    expect![[r#"
        x.toml:7:13: app.a.recording = "r.csv": cannot load the recording: no such file: r.csv
          help: give the path of a CSV file, relative to the scenario
    "#]]
    .assert_eq(&errors(&text, &[]));
}

#[test]
fn recordings_may_stand_in_the_scenario() {
    let csv = "\"\"\"\ndelay_us,kind,cost_us,predicted_us\n1,draw,750.5,x\n\"\"\"";
    check_edit(
        "swap_us = 100",
        &format!("recording_csv = {csv}"),
        expect![[r#"
            x.toml:9:14: predicted_us = x: is not a number
              help: write microseconds, such as 750 or 385.5
        "#]],
    );
    check_edit(
        "swap_us = 100",
        "swap_us = 1\nrecording = \"r.csv\"",
        expect![[r#"
            x.toml:8:13: app.a.recording = "r.csv": app.a.swap_us is given already (line 7)
              help: give only one of recording, recording_csv and draws with swap
        "#]],
    );
}

#[test]
fn the_examples_in_the_manual_are_fine() {
    let manual = scenario_dir().join("../docs/scenarios.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let blocks = manual.split("```toml\n").skip(1);
    let examples: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        assert_eq!(errors(example, &[]), "fine\n");
    }
}
