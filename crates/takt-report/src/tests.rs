//! The page of a made-up run: what must be in it, and what must never be.

#[path = "../../takt-trace/src/sample.rs"]
mod sample;

use std::collections::BTreeMap;

use takt_core::{Action, FrameDone, Span};
use takt_trace::summary::{GpuSummary, PD_FFT_BINS, Quantiles, SchedulerSummary};
use takt_trace::{AppSummary, Cause, CauseKind, GpuRecord, Log, Meta, Miss, Record, Summary};

use self::sample::Pick;
use crate::{Run, render};

const PERIODS: u64 = 60;

fn run(policy: &str, pick: Pick) -> Run {
    let meta = sample::meta(policy);
    let mut timeline = Log::new();
    timeline.records = sample::run(pick, PERIODS);
    let summary = summary(&meta, &timeline);
    Run { summary, meta, timeline }
}

/// Figures good enough to draw; the real ones come from the metrics.
fn summary(meta: &Meta, log: &Log) -> Summary {
    let mut frames: BTreeMap<u32, Vec<FrameDone>> = BTreeMap::new();
    let mut windows = [0.0; 20];
    for (at, record) in &log.records {
        match record {
            Record::Out(Action::FrameDone(done)) => {
                frames.entry(done.app.0).or_default().push(*done);
            }
            Record::Gpu(GpuRecord::Finished { started, .. }) => {
                let window = usize::try_from(at.as_ns() / 50_000_000).unwrap();
                if let Some(busy) = windows.get_mut(window) {
                    *busy += ms(at.since(*started)) / 50.0;
                }
            }
            _ => {}
        }
    }
    let utilisation = windows.iter().sum::<f64>() / windows.len() as f64;
    let mut apps = Vec::new();
    let mut misses = Vec::new();
    for (slot, app) in meta.apps.iter().enumerate() {
        let done = &frames[&u32::try_from(slot).unwrap()];
        let late = done.iter().filter(|done| !done.met);
        misses.extend(late.map(|done| miss(&app.name, done)));
        apps.push(app_summary(app, done));
    }
    apps.sort_by_key(|app: &AppSummary| std::cmp::Reverse(app.priority));
    misses.sort_by(|a, b| a.deadline_s.total_cmp(&b.deadline_s));
    Summary {
        scenario: meta.scenario.clone(),
        policy: meta.policy.clone(),
        seed: 1,
        duration_s: 1.0,
        judged_s: 1.0,
        event_hash: "0123456789abcdef".to_owned(),
        gpu: GpuSummary {
            utilisation,
            windows_from_s: 0.0,
            window_s: 0.05,
            utilisation_windows: windows.iter().map(|busy| busy.min(1.0)).collect(),
        },
        scheduler: SchedulerSummary {
            runs: 4321,
            dispatched: 450,
            runs_per_dispatched: 1.0,
            lost: 0,
            refused: 0,
        },
        apps,
        misses,
        misses_omitted: 3,
    }
}

fn app_summary(app: &takt_trace::AppMeta, done: &[FrameDone]) -> AppSummary {
    let missed = done.iter().filter(|done| !done.met).count() as u64;
    let mut pd_fft = vec![0; PD_FFT_BINS];
    for done in done {
        let allowed = done.deadline.since(done.release).as_ns();
        let twentieths = done.finished.since(done.release).as_ns() * 20 / allowed;
        pd_fft[usize::try_from(twentieths).unwrap().min(PD_FFT_BINS - 1)] += 1;
    }
    let deadlines = done.len() as u64;
    AppSummary {
        name: app.name.clone(),
        priority: app.priority.0,
        fps_target: f64::from(app.fps_mhz) / 1000.0,
        fps: deadlines as f64 * 0.97,
        frames: deadlines,
        deadlines,
        missed,
        met: 1.0 - missed as f64 / deadlines as f64,
        blocking_us_max: 6300.0,
        blocking_us: Quantiles { p50: 0.0, p99: 4100.0, max: 6300.0 },
        predicted_over_measured: 1.1,
        response_us: Quantiles { p50: 4000.0, p99: 15_900.0, max: 20_000.0 },
        frame_gpu_us: Quantiles { p50: 3000.0, p99: 3600.0, max: 3700.0 },
        gpu_share: 0.3,
        under_predicted: 0.1,
        pd_fft,
        causes: BTreeMap::new(),
        jobs: None,
    }
}

fn miss(app: &str, done: &FrameDone) -> Miss {
    Miss {
        app: app.to_owned(),
        frame: done.frame,
        deadline_s: ms(done.deadline.since(takt_core::Time::ZERO)) / 1000.0,
        late_us: Some(ms(done.finished.since(done.deadline)) * 1000.0),
        cause: Cause {
            kind: CauseKind::Blocking,
            culprit: Some("game".to_owned()),
            culprit_us: None,
            held: None,
            took_us: 6300.0,
            predicted_us: None,
            promise: None,
            measured_us: None,
        },
        sentence: format!("{app} waited 6.3 ms for a draw of game, which goes in order"),
    }
}

fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

fn both() -> Vec<Run> {
    vec![run("fifo", Pick::Oldest), run("frame-deadline", Pick::Important)]
}

/// Set `TAKT_REPORT_OUT` to a path to look at the page.
#[test]
fn a_page_has_all_sections_for_every_run() {
    let page = render(&both());
    if let Some(path) = std::env::var_os("TAKT_REPORT_OUT") {
        std::fs::write(path, &page).unwrap();
    }
    for heading in [
        "Apps",
        "Met deadlines and frame rates",
        "GPU utilisation",
        "Timing diagram",
        "When frames finish",
        "Missed deadlines and their causes",
        "Runs",
    ] {
        assert_eq!(page.matches(&format!("<h2>{heading}</h2>")).count(), 1, "{heading}");
    }
    assert_eq!(page.matches("<canvas").count(), 2);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<svg").count(), 2 + 2 + 2 * 3);
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let page = render(&both());
    for outside in ["http:", "https:", "src=\"", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let mut runs = both();
    let evil = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(1)>";
    for run in &mut runs {
        run.meta.scenario = evil.to_owned();
        run.meta.policy = evil.to_owned();
        run.meta.apps[0].name = evil.to_owned();
        run.summary.scenario = evil.to_owned();
        run.summary.policy = evil.to_owned();
        run.summary.event_hash = evil.to_owned();
        for app in &mut run.summary.apps {
            app.name = evil.to_owned();
        }
        for miss in &mut run.summary.misses {
            miss.app = evil.to_owned();
            miss.sentence = evil.to_owned();
        }
    }
    let page = render(&runs);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    let scripts = 2 + runs.len();
    assert_eq!(page.matches("<script").count(), scripts);
    assert_eq!(page.matches("</script>").count(), scripts);
}

#[test]
fn the_same_runs_give_the_same_page() {
    assert_eq!(render(&both()), render(&both()));
}

#[test]
fn odd_inputs_do_no_harm() {
    assert!(render(&[]).contains("No runs"));
    let mut run = run("fifo", Pick::Oldest);
    run.timeline = Log::new();
    run.summary.gpu.utilisation_windows.clear();
    run.summary.gpu.utilisation = f64::NAN;
    run.summary.duration_s = f64::INFINITY;
    run.summary.apps.clear();
    run.summary.misses.clear();
    let page = render(&[run]);
    assert!(!page.contains("\"NaN") && !page.contains("\"inf"));
    assert!(page.contains("all 0 deadlines met"));
}

/// A recording that begins in the middle knows executions without submissions.
#[test]
fn a_window_shows_groups_from_before() {
    let mut run = run("fifo", Pick::Oldest);
    run.timeline.records.drain(..501);
    let page = render(&[run]);
    assert!(page.contains("\"submitted\":[-1"), "no group without submission");
}

#[test]
fn jobs_of_own_clocks_are_shown_only_where_there_are_any() {
    let mut runs = both();
    assert!(!render(&runs).contains("own clocks"));
    let app = &mut runs[1].summary.apps[0];
    app.name = "<sensor>".to_owned();
    app.jobs = Some(takt_trace::summary::JobsSummary {
        period_us: 10_000.0,
        deadline_us: 5_000.0,
        count: 1200,
        late: 7,
        response_us: Quantiles { p50: 2_000.0, p99: 4_900.0, max: 6_000.0 },
        histogram: vec![0, 1193, 7],
    });
    let page = render(&runs);
    let (_, section) = page.split_once("own clocks").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    assert!(section.contains("&lt;sensor&gt;") && !section.contains("<sensor>"), "{section}");
    assert!(section.contains("7 of 1\u{202f}200") || section.contains("7 of 1 200"), "{section}");
    assert_eq!(section.matches("<svg").count(), 1);
}
