//! Reserves, own clocks, GPU models and the focus: which promises they make.

use expect_test::{Expect, expect};
use takt_core::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use takt_core::{AppId, Service, Span, Stride, Time};

use super::{BASE, check, check_edit, no_files, parse};
use crate::model::{FocusChange, GpuModel, Interrupts, Jobs, Pace};

/// A scenario with a bit of everything.
const EVERYTHING: &str = r#"name = "promises"
duration_s = 10
[scheduler]
tick_us = 500
admission = 0.9
timeslice_us = 2000
background = { reserve_us = 2000, period_us = 20000, enforcement = "apriori" }
[gpu]
model = "runlist"
switch_us = 7.5
completion_poll_us = 250
divisible = { slice_us = 300, quantum_us = 0.5 }
[[app]]
name = "sensor"
priority = 9
period_us = 50000
deadline_us = 20000
offset_us = 100
swap_us = 100
service = { reserve_us = 3000, period_us = 50000, feeds = "game-2", level = "high" }
[[app]]
name = "game"
count = 2
priority = 5
fps = 60
swap_us = 100
[app.service]
follows_focus = true
turns = "following"
shared_with = "sensor"
level = "low"
timeslice_us = 1500
uninterruptible = true
divisible = true
[[app]]
name = "rest"
priority = 1
unpaced = true
fps = 60
swap_us = 100
service = { background = true }
[[focus]]
at_s = 4
[[focus]]
at_s = 2
app = "game-1"
"#;

#[test]
fn everything_has_its_place() {
    let scenario = parse("x.toml", EVERYTHING, &[], &no_files).unwrap();
    let us = Span::from_us;
    let tuning = &scenario.config.tuning;
    assert_eq!((tuning.tick, tuning.admission_permille, tuning.timeslice), (us(500), 900, us(2000)));
    let reserve = |budget, period, enforcement| Reserve {
        budget: us(budget),
        period: us(period),
        deadline: us(period),
        enforcement,
    };
    assert_eq!(tuning.background, reserve(2000, 20_000, Enforcement::Apriori));
    let gpu = &scenario.gpu;
    assert_eq!(
        (gpu.model, gpu.switch, gpu.completion_poll),
        (GpuModel::Runlist, Span::from_ns(7500), us(250))
    );
    assert_eq!(gpu.divisible, Some(Interrupts { slice: us(300), quantum: Span::from_ns(500) }));
    let [sensor, game, other, rest] = &scenario.apps[..] else {
        panic!("{:?}", scenario.apps);
    };
    assert_eq!(
        sensor.pace,
        Pace::Periodic(Jobs { offset: us(100), period: us(50_000), deadline: us(20_000) })
    );
    // 50 ms are three periods of the display.
    assert_eq!((sensor.params.stride, sensor.fps_mhz), (Stride::new(3).unwrap(), 20_000));
    let own = Reservation::Own(reserve(3000, 50_000, Enforcement::Posterior));
    let expected =
        Service { reservation: own, feeds: Some(AppId(2)), level: Level::High, ..Service::default() };
    assert_eq!(sensor.params.service, expected);
    let expected = Service {
        follows_focus: true,
        turns: Turns::Following,
        reservation: Reservation::Shared(AppId(0)),
        feeds: None,
        level: Level::Low,
        timeslice: us(1500),
        uninterruptible: true,
        divisible: true,
        gaps: Gaps::default(),
    };
    assert_eq!((game.params.service, other.params.service), (expected, expected));
    assert_eq!((rest.params.service.reservation, rest.pace), (Reservation::Background, Pace::Unpaced));
    let moved = |ms, app| FocusChange { at: Time::from_ms(ms), app };
    assert_eq!(scenario.focus, [moved(2000, Some(AppId(1))), moved(4000, None)]);
}

#[test]
fn not_every_gpu_interrupts() {
    check_edit(
        "[[app]]",
        "[gpu]\nmodel = \"preemptive\"\ndivisible = { slice_us = 0 }\n[[app]]",
        expect![[r#"
            x.toml:5:13: gpu.divisible: this model of a GPU interrupts no work by itself
              help: use model = "in-order" or "runlist"
            x.toml:5:26: gpu.divisible.slice_us = 0: must be more than zero
              help: use a value from 1 to 60000000 us (SPAN_NS_MAX)
        "#]],
    );
}

#[test]
fn gaps_are_part_of_what_is_promised() {
    let with = |keys: &str, expected: Expect| {
        check_edit("swap_us = 100\n", &format!("swap_us = 100\n{keys}\n"), expected);
    };
    with(
        "gaps = 2",
        expect![[r#"
        x.toml:8:8: app.a.gaps = 2: how long the gaps last is not known
          help: add gap_us = …
    "#]],
    );
    with(
        "gap_us = 2",
        expect![[r#"
        x.toml:8:10: app.a.gap_us = 2: how many gaps a frame has is not known
          help: add gaps = …, or drop gap_us
    "#]],
    );
    with(
        "gaps = 0\ngap_us = 2",
        expect![[r#"
        x.toml:8:8: app.a.gaps = 0: must be more than zero
          help: use a value from 1 to 65536 gaps (GAPS_MAX)
    "#]],
    );
    with(
        "gaps = 2\ngap_us = 50",
        expect![[r#"
        x.toml:8:8: app.a.gaps = 2: the app is promised nothing that gaps could be part of
          help: add etpf_us = … or service.reserve_us = …, which includes the gaps, or drop gaps and gap_us
    "#]],
    );
    with(
        "gaps = 2\ngap_us = 50\netpf_us = 100",
        expect![[r#"
        x.toml:8:8: app.a.gaps = 2: its gaps take 100 us of the 100 us per frame
          help: add them to etpf_us or service.reserve_us, or lower gaps or gap_us
    "#]],
    );
}

#[test]
fn reserves_make_sense() {
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { reserve_us = 10, period_us = 5, enforcement = \"posteriori\" }\n",
        expect![[r#"
            x.toml:8:26: app.a.service.reserve_us = 10: the reserve is longer than its period
              help: use at most 5 us
            x.toml:8:59: app.a.service.enforcement = "posteriori": there is no such choice
              help: did you mean "posterior"?
        "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { reserve_us = 10 }\n",
        expect![[r#"
        x.toml:8:26: app.a.service.reserve_us = 10: the reserve has no period
          help: add period_us = …
    "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { reserve_us = 10, period_us = 10, background = true }\n",
        expect![[r#"
            x.toml:8:59: app.a.service.background = true: app.a.service.reserve_us is given already (line 8)
              help: give only one of reserve_us, shared_with and background
        "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { period_us = 10, level = \"highest\" }\n",
        expect![[r#"
            x.toml:8:25: app.a.service.period_us = 10: there is no reserve that this could belong to
              help: add reserve_us = …, or drop period_us
            x.toml:8:37: app.a.service.level = "highest": there is no such choice
              help: did you mean "high"?
        "#]],
    );
    check(
        &format!("{BASE}[scheduler.background]\nperiod_us = 10\n"),
        expect![[r#"
        x.toml:13:1: scheduler.background: the default reserve is longer than the period
          help: add reserve_us = …, not above period_us
    "#]],
    );
}

#[test]
fn apps_that_are_named_exist() {
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { shared_with = \"c\", feeds = \"aa\" }\n",
        expect![[r#"
        x.toml:8:27: app.a.service.shared_with = "c": there is no such app
          help: did you mean "a"?
        x.toml:8:40: app.a.service.feeds = "aa": there is no such app
          help: did you mean "a"?
    "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { shared_with = \"b\" }\n",
        expect![[r#"
        x.toml:8:27: app.a.service.shared_with = "b": that app has neither a reserve nor frames of its own
          help: name one with a reserve_us or an etpf_us, or give it one
    "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { shared_with = \"a\" }\n",
        expect![[r#"
        x.toml:8:27: app.a.service.shared_with = "a": that app has neither a reserve nor frames of its own
          help: name one with a reserve_us or an etpf_us, or give it one
    "#]],
    );
    check(
        &format!("{BASE}[[focus]]\nat_s = 1\napp = \"sea\"\n"),
        expect![[r#"
        x.toml:15:7: focus.0.app = "sea": there is no such app
          help: did you mean "a"?
    "#]],
    );
    check(
        &format!("{BASE}[[focus]]\nat_s = 1\n[[focus]]\nat_s = 1\napp = \"a\"\n"),
        expect![[r#"
        x.toml:16:8: focus.1.at_s = 1: same time as focus.0.at_s (line 14)
          help: give each its own time
    "#]],
    );
}

#[test]
fn frames_are_shared_at_first_hand_by_apps_without_frames() {
    let owned = BASE.replacen("swap_us = 100\n", "swap_us = 100\netpf_us = 900\n", 1);
    let read = |file: &str| parse("x.toml", file, &[], &no_files).map(|scenario| scenario.apps);
    let apps = read(&format!("{owned}starts_with = \"a\"\nservice = {{ shared_with = \"a\" }}\n")).unwrap();
    assert_eq!(apps[1].params.service.reservation, Reservation::Shared(AppId(0)));
    assert_eq!(apps[1].pace, Pace::With(AppId(0)));
    check(
        &format!("{owned}etpf_us = 10\nservice = {{ shared_with = \"a\" }}\n"),
        expect![[r#"
        x.toml:15:27: app.b.service.shared_with = "a": an app that shares frames has none of its own
          help: leave out etpf_us or shared_with
    "#]],
    );
    let sharing = "etpf_us = 900\nservice = { shared_with = \"b\" }\n";
    let both = BASE.replacen("swap_us = 100\n", &format!("swap_us = 100\n{sharing}"), 1);
    check(
        &format!("{both}etpf_us = 10\nservice = {{ shared_with = \"a\" }}\n"),
        expect![[r#"
        x.toml:9:27: app.a.service.shared_with = "b": that app shares what another one has
          help: name an app without a shared_with
        x.toml:16:27: app.b.service.shared_with = "a": that app shares what another one has
          help: name an app without a shared_with
    "#]],
    );
}

#[test]
fn an_app_that_others_begin_with_begins_by_itself() {
    let first = BASE.replacen("swap_us = 100\n", "swap_us = 100\nstarts_with = \"b\"\n", 1);
    check(
        &format!("{first}starts_with = \"a\"\n"),
        expect![[r#"
        x.toml:8:15: app.a.starts_with = "b": that app begins its frames with those of another one
          help: name an app without a starts_with
        x.toml:14:15: app.b.starts_with = "a": that app begins its frames with those of another one
          help: name an app without a starts_with
    "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nunpaced = true\nstarts_with = \"c\"\n",
        expect![[r#"
        x.toml:9:15: app.a.starts_with = "c": app.a.unpaced is given already (line 8)
          help: give only one of unpaced, period_us and starts_with
    "#]],
    );
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nstarts_with = \"c\"\n",
        expect![[r#"
        x.toml:8:15: app.a.starts_with = "c": there is no such app
          help: did you mean "a"?
    "#]],
    );
}

#[test]
fn no_app_feeds_itself() {
    check_edit(
        "swap_us = 100\n",
        "swap_us = 100\nservice = { feeds = \"a\" }\n",
        expect![[r#"
        x.toml:8:21: app.a.service.feeds = "a": the apps depend on each other in a circle
          help: leave one of their feeds out
    "#]],
    );
    let circle = BASE.replacen("swap_us = 100\n", "swap_us = 100\nservice = { feeds = \"b\" }\n", 1);
    check(
        &format!("{circle}service = {{ feeds = \"a\" }}\n"),
        expect![[r#"
        x.toml:14:21: app.b.service.feeds = "a": the apps depend on each other in a circle
          help: leave one of their feeds out
    "#]],
    );
}

#[test]
fn clocks_make_sense() {
    check_edit(
        "fps = 60\n",
        "fps = 60\nunpaced = true\nperiod_us = 100\n",
        expect![[r#"
        x.toml:8:13: app.a.period_us = 100: app.a.unpaced is given already (line 7)
          help: give only one of unpaced, period_us and starts_with
    "#]],
    );
    check_edit(
        "fps = 60\n",
        "fps = 60\ndeadline_us = 100\noffset_us = 1\n",
        expect![[r#"
        x.toml:7:15: app.a.deadline_us = 100: the app has no clock of its own that this could belong to
          help: add period_us = …, or drop deadline_us
        x.toml:8:13: app.a.offset_us = 1: the app has no clock of its own that this could belong to
          help: add period_us = …, or drop offset_us
    "#]],
    );
    check_edit(
        "fps = 60\n",
        "period_us = 0.5\n",
        expect![[r#"
        x.toml:6:13: app.a.period_us = 0.5: is out of bounds
          help: use a value from 1 to 60000000 us (SPAN_NS_MAX)
    "#]],
    );
    check_edit(
        "fps = 60\n",
        "",
        expect![[r#"
        x.toml:3:1: app.a: neither fps nor stride is given
          help: add fps = … (frames per second), stride = … (periods per frame) or period_us = …
    "#]],
    );
}

#[test]
fn the_gpu_is_known() {
    check(
        &format!("{BASE}[gpu]\nmodel = \"in order\"\ncompletion_poll_us = 0.1\n"),
        expect![[r#"
        x.toml:14:9: gpu.model = "in order": there is no such choice
          help: did you mean "in-order"?
        x.toml:15:22: gpu.completion_poll_us = 0.1: is out of bounds
          help: use a value from 1 to 60000000 us (SPAN_NS_MAX)
    "#]],
    );
}
