//! Several displays, and clocks of which the scheduler knows.

use expect_test::expect;
use takt_core::{Clock, Config, DisplayId, Refresh, Span, Stride, Time};

use super::{BASE, check, check_edit, no_files, parse};
use crate::model::{Jobs, Pace};

/// Two displays, and an app of each kind.
const SEVERAL: &str = r#"name = "several"
duration_s = 10
[scheduler]
group_max_us = 2000
[[display]]
name = "cluster"
[[display]]
name = "head-unit"
refresh_hz = 90
phase_us = 3000
[[app]]
name = "dials"
priority = 9
fps = 60
swap_us = 100
[[app]]
name = "map"
priority = 8
display = "head-unit"
fps = 30
swap_us = 100
[[app.change]]
at_s = 6
clock = "display"
[[app.change]]
at_s = 4
clock = { period_us = 50000 }
[[app.change]]
at_s = 2
fps = 45
[[app]]
name = "camera"
priority = 7
clock = "own"
period_us = 33000
deadline_us = 20000
offset_us = 100
swap_us = 100
[[app]]
name = "slow"
priority = 6
clock = { period_us = 10000, deadline_us = 9000 }
period_us = 11000
swap_us = 100
[[app]]
name = "flood"
priority = 1
clock = { period_us = 10000 }
unpaced = true
swap_us = 100
"#;

fn own(period: u64, deadline: u64) -> Clock {
    Clock::Own { period: Span::from_us(period), deadline: Span::from_us(deadline) }
}

#[test]
fn displays_and_clocks_have_their_place() {
    let scenario = parse("x.toml", SEVERAL, &[], &no_files).unwrap();
    let config = &scenario.config;
    let hz_90 = Refresh::from_mhz(90_000).unwrap().with_origin(Time::ZERO + Span::from_us(3000));
    assert_eq!((config.refresh, config.more_displays[0]), (Refresh::HZ_60, hz_90));
    assert_eq!(config.more_displays[1..], Config::default().more_displays[1..]);
    assert_eq!(config.tuning.group_max, Span::from_us(2000));
    let [dials, map, camera, slow, flood] = &scenario.apps[..] else {
        panic!("{:?}", scenario.apps);
    };
    assert_eq!((dials.params.clock, dials.fps_mhz), (Clock::default(), 60_000));
    let shown = Clock::Display(DisplayId(1));
    let stride = |periods| Stride::new(periods).unwrap();
    assert_eq!((map.params.clock, map.params.stride, map.fps_mhz), (shown, stride(3), 30_000));
    let changes: Vec<_> =
        map.changes.iter().map(|change| (change.params.clock, change.params.stride)).collect();
    // By time: a rate is that of the display that the app has by then.
    assert_eq!(
        changes,
        [(shown, stride(2)), (own(50_000, 50_000), stride(1)), (Clock::default(), stride(1))]
    );
    let jobs = |offset, period, deadline| {
        let us = Span::from_us;
        Pace::Periodic(Jobs { offset: us(offset), period: us(period), deadline: us(deadline) })
    };
    assert_eq!((camera.params.clock, camera.pace), (own(33_000, 20_000), jobs(100, 33_000, 20_000)));
    assert_eq!((slow.params.clock, slow.pace), (own(10_000, 9000), jobs(0, 11_000, 11_000)));
    assert_eq!((flood.params.clock, flood.pace), (own(10_000, 10_000), Pace::Unpaced));
    assert_eq!(camera.params.stride, Stride::ONE);
}

/// Files from before these keys: one display, and jobs of which the scheduler knows nothing.
#[test]
fn old_files_mean_what_they_meant() {
    let old = "[display]\nrefresh_hz = 120\n";
    let text = BASE.replacen("fps = 60\n", "period_us = 50000\ndeadline_us = 70000\n", 1);
    let scenario = parse("x.toml", &format!("{text}{old}"), &[], &no_files).unwrap();
    assert_eq!(scenario.config.refresh, Refresh::from_mhz(120_000).unwrap());
    assert_eq!(scenario.config.more_displays, Config::default().more_displays);
    let app = &scenario.apps[0];
    assert_eq!((app.params.clock, app.params.stride.get(), app.fps_mhz), (Clock::default(), 6, 20_000));
}

#[test]
fn displays_make_sense() {
    check(
        &format!(
            "{BASE}[[display]]\nname = \"a\"\nphase_us = 1\n[[display]]\nrefresh_hz = 50\nphase_us = 20000\n\
             [[display]]\nname = \"a\"\nrefresh_hz = 0\n"
        ),
        expect![[r#"
            x.toml:15:12: display.a.phase_us = 1: phases count from the first display, which this is
              help: use 0
            x.toml:16:1: display.1: the key name is missing
              help: add name = …, by which apps choose it
            x.toml:18:12: display.1.phase_us = 20000: is not below the display's period
              help: use less than 20000 us
            x.toml:20:8: display.a.name = "a": another display is called a (line 14)
              help: give each display its own name
            x.toml:21:14: display.a.refresh_hz = 0: must be more than zero
              help: use a value from 1 to 1000 Hz (REFRESH_MHZ)
        "#]],
    );
    check(
        &format!("{BASE}[display]\nphase_us = 1\n"),
        expect![[r#"
        x.toml:14:12: display.phase_us = 1: phases count from the first display, which this is
          help: use 0
    "#]],
    );
    let five: String = (1..=5).map(|number| format!("[[display]]\nname = \"d{number}\"\n")).collect();
    check(
        &format!("{BASE}{five}"),
        expect![[r#"
        x.toml:21:1: display.d5: there are 5 displays
          help: have at most 4 (DISPLAYS_MAX)
    "#]],
    );
    check(
        &format!("display = 60\n{BASE}"),
        expect![[r#"
        x.toml:1:11: display = 60: must be a table, not an integer
          help: write a table
    "#]],
    );
}

#[test]
fn apps_have_displays_that_are_there() {
    check_edit(
        "fps = 60\n",
        "fps = 60\ndisplay = \"hud\"\n",
        expect![[r#"
        x.toml:7:11: app.a.display = "hud": there is no such display
          help: give displays names, in [[display]] tables
    "#]],
    );
    let two = "[[display]]\nname = \"hud\"\n[[display]]\nname = \"left\"\nrefresh_hz = 75\n";
    let with = |text: &str| BASE.replacen("fps = 60\n", text, 1) + two;
    check(
        &with("display = \"hut\"\nfps = 60\n"),
        expect![[r#"
        x.toml:6:11: app.a.display = "hut": there is no such display
          help: did you mean "hud"?
    "#]],
    );
    check(
        &with("display = \"left\"\nfps = 60\n"),
        expect![[r#"
        x.toml:7:7: app.a.fps = 60: 60 FPS does not divide the refresh rate of 75 Hz
          help: use one of 75, 37.5, 25, 18.75, 15, 12.5, 9.375, 7.5, 6.25, 5, 3.75, 3.125, …
    "#]],
    );
    check(
        &with("display = \"left\"\nfps = 75\nclock = \"display\"\n"),
        expect![[r#"
        fine
    "#]],
    );
    check(
        &with("display = 1\nfps = 60\n"),
        expect![[r#"
        x.toml:6:11: app.a.display = 1: must be a string, not an integer
          help: write a string
    "#]],
    );
}

#[test]
fn own_clocks_make_sense() {
    let edit = |text: &str, expected| check_edit("fps = 60\n", text, expected);
    edit(
        "clock = \"own\"\n",
        expect![[r#"
        x.toml:6:9: app.a.clock = "own": the app has no clock of its own
          help: add period_us = …, or write clock = { period_us = … }
    "#]],
    );
    edit(
        "clock = \"owm\"\nfps = 60\n",
        expect![[r#"
        x.toml:6:9: app.a.clock = "owm": there is no such choice
          help: did you mean "own"?
    "#]],
    );
    edit(
        "clock = 5\nfps = 60\n",
        expect![[r#"
        x.toml:6:9: app.a.clock = 5: must be a string or a table, not an integer
          help: write a string or a table
    "#]],
    );
    edit(
        "clock = \"own\"\nperiod_us = 1000\ndeadline_us = 1000.001\n",
        expect![[r#"
        x.toml:8:15: app.a.deadline_us = 1000.001: the deadline is after the period
          help: use at most 1000 us
    "#]],
    );
    edit(
        "clock = \"own\"\nperiod_us = 50\n",
        expect![[r#"
        x.toml:7:13: app.a.period_us = 50: is out of bounds
          help: use a value from 100 to 4000000 us (OWN_PERIODS)
    "#]],
    );
    edit(
        "clock = { period_us = 0, deadline_us = 0 }\n",
        expect![[r#"
        x.toml:6:23: app.a.clock.period_us = 0: must be more than zero
          help: use a value from 100 to 4000000 us (OWN_PERIODS)
        x.toml:6:40: app.a.clock.deadline_us = 0: must be more than zero
          help: use a value from 1 to 60000000 us (SPAN_NS_MAX)
    "#]],
    );
    edit(
        "clock = { deadline_us = 10 }\n",
        expect![[r#"
        x.toml:6:9: app.a.clock: the key period_us is missing
          help: add period_us = …
    "#]],
    );
}

#[test]
fn own_clocks_need_no_display() {
    let edit = |text: &str, expected| check_edit("fps = 60\n", text, expected);
    edit(
        "clock = \"own\"\nperiod_us = 1000\nfps = 60\n",
        expect![[r#"
        x.toml:8:7: app.a.fps = 60: the app's own clock says how often its frames come
          help: leave it out, or have a display instead of the clock
    "#]],
    );
    edit(
        "clock = \"own\"\nperiod_us = 1000\nstride = 2\n",
        expect![[r#"
        x.toml:8:10: app.a.stride = 2: the app's own clock says how often its frames come
          help: leave it out, or have a display instead of the clock
    "#]],
    );
    edit(
        "clock = \"own\"\nperiod_us = 1000\nphase_periods = 1\n",
        expect![[r#"
        x.toml:8:17: app.a.phase_periods = 1: an app with a clock of its own has no periods of a display
          help: use offset_us = … instead
    "#]],
    );
    let both = BASE.replacen("fps = 60\n", "clock = \"own\"\nperiod_us = 1000\ndisplay = \"hud\"\n", 1);
    check(
        &format!("{both}[display]\nname = \"hud\"\n"),
        expect![[r#"
        x.toml:8:11: app.a.display = "hud": an app with a clock of its own has no display
          help: leave out one of clock and display
    "#]],
    );
}

#[test]
fn changes_of_clocks_make_sense() {
    let change = |text: &str, expected| check(&format!("{BASE}[[app.change]]\nat_s = 1\n{text}"), expected);
    change(
        "display = \"x\"\n",
        expect![[r#"
        x.toml:15:11: app.b.change.0.display = "x": there is no such display
          help: give displays names, in [[display]] tables
    "#]],
    );
    change(
        "clock = \"own\"\n",
        expect![[r#"
        x.toml:15:9: app.b.change.0.clock = "own": the app has no clock of its own
          help: add period_us = …, or write clock = { period_us = … }
    "#]],
    );
    change(
        "clock = { period_us = 1000 }\nstride = 2\n",
        expect![[r#"
        x.toml:16:10: app.b.change.0.stride = 2: the app's own clock says how often its frames come
          help: leave it out, or have a display instead of the clock
    "#]],
    );
    change(
        "clock = { period_us = 1000 }\n[[app.change]]\nat_s = 2\nfps = 30\n",
        expect![[r#"
        x.toml:18:7: app.b.change.1.fps = 30: the app's own clock says how often its frames come
          help: leave it out, or have a display instead of the clock
    "#]],
    );
    change(
        "",
        expect![[r#"
        x.toml:13:1: app.b.change.0: the change changes nothing
          help: add fps, stride, display, clock, etpf_us or priority
    "#]],
    );
}
