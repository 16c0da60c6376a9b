//! The picture as lines of text.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::picture::{Picture, Row};
use super::timeline::Lane;
use crate::table::{Table, percent};

/// What apps are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sort {
    #[default]
    Priority,
    Met,
    Gpu,
    Blocked,
    Name,
}

impl Sort {
    /// The one after it, round and round.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Priority => Self::Met,
            Self::Met => Self::Gpu,
            Self::Gpu => Self::Blocked,
            Self::Blocked => Self::Name,
            Self::Name => Self::Priority,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Met => "met, least first",
            Self::Gpu => "GPU, most first",
            Self::Blocked => "blocked, most first",
            Self::Name => "name",
        }
    }

    fn apply(self, rows: &mut [Row]) {
        match self {
            Self::Priority => rows.sort_by_key(|row| std::cmp::Reverse(row.core_priority)),
            Self::Met => rows.sort_by(|a, b| a.met.total_cmp(&b.met)),
            Self::Gpu => rows.sort_by(|a, b| b.gpu.total_cmp(&a.gpu)),
            Self::Blocked => rows.sort_by(|a, b| b.blocked_us_p99.total_cmp(&a.blocked_us_p99)),
            Self::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        }
    }
}

/// Headings.
pub(super) const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Broken promises, lost records and a daemon that does not schedule.
pub(super) const ALARM: Style = Style::new().fg(Color::Red);

/// Narrowest timeline.
const CELLS_MIN: usize = 20;

/// The picture, with a timeline that ends at column `width`.
pub(super) fn lines(picture: &Picture, width: usize, sort: Sort) -> Vec<Line<'static>> {
    let mut rows = picture.apps.clone();
    sort.apply(&mut rows);
    let daemon = &picture.daemon;
    let head = format!(
        "takt: {} at {} Hz, {} apps by {}; GPU busy {}; {} decisions, turns of {:.1} µs (longest {:.1})",
        daemon.policy,
        daemon.refresh_hz,
        rows.len(),
        sort.name(),
        percent(picture.gpu),
        daemon.decisions,
        daemon.turn_us_mean,
        daemon.turn_us_max,
    );
    let mut lines = vec![Line::styled(head, HEAD)];
    if let Some(broken) = &daemon.broken {
        lines.push(Line::styled(format!("NOT SCHEDULED, all apps run free: {broken}"), ALARM));
    }
    lines.push(Line::default());
    lines.extend(table(picture, &rows));
    lines.extend(statements(picture, &rows));
    lines.push(Line::default());
    lines.extend(timeline(picture, &rows, width));
    if picture.timeline.lost > 0 {
        let lost = format!("{} records did not reach this tool in time.", picture.timeline.lost);
        lines.push(Line::styled(lost, ALARM));
    }
    lines
}

/// From so many seconds on it is said how long an app has been held back.
const HELD_LONG_S: f64 = 1.0;

fn table(picture: &Picture, rows: &[Row]) -> Vec<Line<'static>> {
    let mut table = Table::new(
        "prio, <, <app, pid, FPS, of, met, GPU, etpf ms, pred/meas, blocked ms p50, p99, max, <contract, <held",
    );
    let ms = |us: f64| format!("{:.2}", us / 1000.0);
    for row in rows {
        let held = picture.timeline.lanes.get(&row.app).and_then(|lane| lane.held.as_ref());
        let long = row.held_s.filter(|held_s| *held_s >= HELD_LONG_S);
        let long = long.map_or_else(String::new, |held_s| format!(" for {held_s:.0} s"));
        table.row(vec![
            row.priority.to_string(),
            mark(row).to_owned(),
            row.name.clone(),
            row.pid.to_string(),
            format!("{:.1}", row.fps),
            row.fps_target.map_or_else(|| "-".to_owned(), |fps| format!("{fps:.0}")),
            if row.judged { percent(row.met) } else { "-".to_owned() },
            percent(row.gpu),
            match row.over_reserved_ms {
                Some(used_ms) => format!("{used_ms:.2} of {:.2}", row.etpf_ms),
                None => format!("{:.1}", row.etpf_ms),
            },
            if row.predicted_over_measured > 0.0 {
                format!("{:.2}", row.predicted_over_measured)
            } else {
                "-".to_owned()
            },
            ms(row.blocked_us_p50),
            ms(row.blocked_us_p99),
            ms(row.blocked_us_max),
            row.contract.clone(),
            held.map_or_else(|| "-".to_owned(), |held| held.clone() + &long),
        ]);
    }
    let text = table.render();
    let is_broken = |row: &Row| row.protected && row.judged && row.met < 1.0;
    let styles = rows.iter().map(|row| if is_broken(row) { ALARM } else { Style::new() });
    let styles = std::iter::once(HEAD).chain(styles);
    text.lines().zip(styles).map(|(text, style)| Line::styled(text.to_owned(), style)).collect()
}

/// Whether its deadlines are guaranteed, or are not although it is protected.
fn mark(row: &Row) -> &'static str {
    match (row.guaranteed, row.protected) {
        (true, _) => "*",
        (false, true) => "!",
        (false, false) => "",
    }
}

/// Why protected apps are not guaranteed anything, and who uses the GPU outside of Takt.
fn statements(picture: &Picture, rows: &[Row]) -> Vec<Line<'static>> {
    let withheld = rows.iter().filter(|row| row.protected && !row.guaranteed);
    let withheld = withheld.map(|row| format!("! {}: {}", row.name, row.admission));
    let outside = picture.daemon.outsiders.iter();
    let outside =
        outside.map(|one| format!("outside of Takt: {} (process {}), {}", one.name, one.pid, one.device));
    withheld.chain(outside).map(Line::from).collect()
}

fn timeline(picture: &Picture, rows: &[Row], width: usize) -> Vec<Line<'static>> {
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let timeline = &picture.timeline;
    let title = format!("last {} ms", timeline.span_ms);
    let margin = names.max(title.chars().count()) + 1;
    let cells = width.saturating_sub(margin).max(CELLS_MIN);
    let cell = |ms: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut off at both ends")]
        let at = (ms / timeline.span_ms.max(1e-9) * cells as f64) as usize;
        at.min(cells - 1)
    };
    let mut ticks = vec![" "; cells];
    for vsync in &timeline.vsyncs_ms {
        ticks[cell(*vsync)] = "|";
    }
    let mut lines = vec![Line::styled(format!("{title:margin$}{}", ticks.concat()), HEAD)];
    let idle = Lane::default();
    for row in rows {
        let lane = timeline.lanes.get(&row.app).unwrap_or(&idle);
        let style = if lane.misses_ms.is_empty() { Style::new() } else { ALARM };
        let mut drawn = bars(lane, timeline.span_ms, cells);
        for miss in &lane.misses_ms {
            drawn[cell(*miss)] = "!";
        }
        lines.push(Line::styled(format!("{:margin$}{}", row.name, drawn.concat()), style));
    }
    lines
}

/// Heights of a cell that was partly busy.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// How busy an app kept the GPU in each cell.
fn bars(lane: &Lane, span_ms: f64, cells: usize) -> Vec<&'static str> {
    let length = span_ms / cells as f64;
    let busy = |cell: usize| {
        let (from, to) = (cell as f64 * length, (cell + 1) as f64 * length);
        lane.runs_ms.iter().map(|(began, ended)| (ended.min(to) - began.max(from)).max(0.0)).sum::<f64>()
    };
    let level = |cell: usize| {
        let share = (busy(cell) / length.max(1e-9)).clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 8")]
        let level = (share * 8.0).ceil() as usize;
        LEVELS[level.min(8)]
    };
    (0..cells).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::super::picture::{Daemon, Outsider};
    use super::super::timeline::Timeline;
    use super::*;
    use expect_test::{Expect, expect};
    use std::collections::BTreeMap;

    fn picture() -> Picture {
        let row = |app: u32, name: &str, priority: u32| Row {
            app,
            name: name.to_owned(),
            pid: 4000 + app,
            priority,
            core_priority: priority,
            fps_target: Some(60.0),
            fps: 59.98,
            judged: true,
            met: 1.0,
            gpu: 0.123,
            predicted_over_measured: 1.08,
            ..Row::default()
        };
        let dial = Row {
            protected: true,
            guaranteed: true,
            contract: "60 fps, 3.0 ms".into(),
            etpf_ms: 3.0,
            met: 0.992,
            blocked_us_p99: 934.2,
            ..row(0, "dial", 80)
        };
        let flood = Row {
            contract: "best effort".into(),
            fps_target: None,
            judged: false,
            fps: 7.5,
            gpu: 0.7012,
            predicted_over_measured: 0.0,
            held_s: Some(12.3),
            ..row(3, "flood", 3)
        };
        let lanes = BTreeMap::from([
            (0, Lane { runs_ms: vec![(0.0, 2.5), (16.0, 17.0)], misses_ms: vec![33.4], held: None }),
            (
                3,
                Lane {
                    runs_ms: vec![(2.5, 14.5), (18.0, 40.0)],
                    held: Some("protects dial".into()),
                    ..Lane::default()
                },
            ),
        ]);
        Picture {
            daemon: Daemon {
                policy: "timeline".into(),
                refresh_hz: 60.0,
                decisions: 12_345,
                turns: 20_000,
                turn_us_mean: 1.84,
                turn_us_max: 41.2,
                broken: None,
                outsiders: Vec::new(),
            },
            gpu: 0.824,
            apps: vec![dial, flood],
            timeline: Timeline { span_ms: 40.0, vsyncs_ms: vec![0.1, 16.7, 33.4], lanes, lost: 0 },
        }
    }

    fn check(picture: &Picture, width: usize, sort: Sort, expected: &Expect) {
        expected.assert_eq(&super::super::plain(&lines(picture, width, sort), width));
    }

    #[test]
    fn a_picture_of_two_apps() {
        check(
            &picture(),
            140,
            Sort::Priority,
            &expect![[r#"
                takt: timeline at 60 Hz, 2 apps by priority; GPU busy 82.40 %; 12345 decisions, turns of 1.8 µs (longest 41.2)

                prio     app     pid   FPS  of      met      GPU  etpf ms  pred/meas  blocked ms p50   p99   max  contract        held
                  80  *  dial   4000  60.0  60  99.20 %  12.30 %      3.0       1.08            0.00  0.93  0.00  60 fps, 3.0 ms  -
                   3     flood  4003   7.5   -        -  70.12 %      0.0          -            0.00  0.00  0.00  best effort     protects dial for 12 s

                last 40 ms |                                                    |                                                     |
                dial       ████████▁                                          ▄██▇                                                    !
                flood              ██████████████████████████████████████▇           ███████████████████████████████████████████████████████████████████████
            "#]],
        );
    }

    #[test]
    fn a_broken_daemon_says_that_it_does_not_schedule() {
        let mut picture = picture();
        picture.daemon.broken = Some("broken invariant 'head'".into());
        let alarm = &lines(&picture, 140, Sort::Priority)[1];
        assert_eq!(alarm.style, ALARM);
        let text = alarm.to_string();
        assert!(text.starts_with("NOT SCHEDULED") && text.contains("'head'"), "{text}");
    }

    #[test]
    fn an_app_without_its_guarantee_is_marked_with_the_reason() {
        let mut picture = picture();
        let dial = &mut picture.apps[0];
        (dial.over_reserved_ms, dial.met, dial.guaranteed) = (Some(3.412), 1.0, false);
        dial.admission = "protected, not guaranteed: half of its frames took 3.41 ms".into();
        let outsider = Outsider { pid: 7, name: "blender".into(), device: "/dev/nvidia0".into() };
        picture.daemon.outsiders.push(outsider);
        let lines = lines(&picture, 140, Sort::Priority);
        let dial = lines[3].to_string();
        assert!(dial.starts_with("  80  !  dial ") && dial.contains("3.41 of 3.00"), "{dial}");
        assert_eq!(lines[5].to_string(), format!("! dial: {}", picture.apps[0].admission));
        assert_eq!(lines[6].to_string(), "outside of Takt: blender (process 7), /dev/nvidia0");
    }

    #[test]
    fn narrow_and_sorted_by_the_gpu() {
        check(
            &picture(),
            60,
            Sort::Gpu,
            &expect![[r#"
                takt: timeline at 60 Hz, 2 apps by GPU, most first; GPU busy

                prio     app     pid   FPS  of      met      GPU  etpf ms  p
                   3     flood  4003   7.5   -        -  70.12 %      0.0
                  80  *  dial   4000  60.0  60  99.20 %  12.30 %      3.0

                last 40 ms |                   |                   |
                flood         ██████████████▇    ███████████████████████████
                dial       ███▁               ▄▇                   !
            "#]],
        );
    }

    #[test]
    fn a_picture_without_apps() {
        check(
            &Picture::default(),
            60,
            Sort::default(),
            &expect![[r#"
            takt:  at 0 Hz, 0 apps by priority; GPU busy 0.00 %; 0 decis

            prio    app  pid  FPS  of  met  GPU  etpf ms  pred/meas  blo

            last 0 ms
        "#]],
        );
    }

    #[test]
    fn misses_and_broken_promises_stand_out() {
        let lines = lines(&picture(), 140, Sort::Priority);
        let loud: Vec<String> =
            lines.iter().filter(|line| line.style == ALARM).map(Line::to_string).collect();
        assert_eq!(loud.len(), 2, "{loud:?}");
        assert!(loud.iter().all(|text| text.contains("dial")));
    }

    #[test]
    fn every_order_comes_round() {
        let mut sort = Sort::default();
        for _ in 0..5 {
            sort.apply(&mut picture().apps);
            sort = sort.next();
        }
        assert_eq!(sort, Sort::default());
    }
}
