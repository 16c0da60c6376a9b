//! `takt sim`: simulate a scenario and tell who met which deadlines.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context;
use takt_core::{Span, Time};
use takt_report::Run;
use takt_sim::{Scenario, meta};
use takt_trace::export::{Csv, Json, Perfetto};
use takt_trace::{Meta, Observer, Record, Summary};

use crate::Answer;
use crate::args::{SimArgs, WINDOW_S, Window};
use crate::load;
use crate::output;
use crate::table::{Table, ms, percent};

pub(crate) fn run(args: &SimArgs) -> anyhow::Result<Answer> {
    let mut scenario = load::load(&args.scenario)?;
    if let Some(policy) = &args.policy {
        scenario.policy.clone_from(policy);
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    let mut trace = args.trace.as_deref().map(|path| Trace::create(path, &meta(&scenario))).transpose()?;
    let summary = load::simulate(&scenario, &mut trace);
    if let (Some(trace), Some(path)) = (trace, &args.trace) {
        trace.finish().with_context(|| output::cannot_write(path))?;
    }
    output::json(args.json.as_deref(), &summary)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&summary, args.misses))?;
    }
    if let Some(folder) = &args.report {
        let page = folder.join("index.html");
        let run = report_run(&scenario, summary, args.window);
        output::file(&page, &takt_report::render(&[run]))?;
        if !output::is_stdout(args.json.as_deref()) {
            output::print(&format!("report: {}\n", page.display()))?;
        }
    }
    Ok(Answer::Yes)
}

/// What a page about the run needs.
pub(crate) fn report_run(scenario: &Scenario, summary: Summary, window: Option<Window>) -> Run {
    let window = window.unwrap_or_else(|| interesting(scenario, &summary));
    let (start, length) = (at(window.start_s), at(window.length_s).since(Time::ZERO));
    let timeline = load::timeline(scenario, start, length);
    Run { summary, meta: meta(scenario), timeline }
}

/// Around the first miss of the most important app that missed a deadline, else the beginning.
fn interesting(scenario: &Scenario, summary: &Summary) -> Window {
    let rank = |name: &str| summary.apps.iter().position(|app| app.name == name);
    let first = summary.misses.iter().min_by_key(|miss| rank(&miss.app));
    let warm_up_s = span_s(scenario.warm_up);
    let start_s = first.map_or(warm_up_s, |miss| (miss.deadline_s - WINDOW_S / 2.0).max(0.0));
    Window { start_s, length_s: WINDOW_S }
}

fn span_s(span: Span) -> f64 {
    span.as_ns() as f64 / 1e9
}

fn at(seconds: f64) -> Time {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a checked range of seconds")]
    let ns = (seconds * 1e9) as u64;
    Time::from_ns(ns)
}

/// The run as a table with a few explained misses.
fn describe(summary: &Summary, misses: usize) -> String {
    let mut table = Table::new(&[
        "prio",
        "<app",
        "target",
        "FPS",
        "met",
        "missed",
        "p50 ms",
        "p99 ms",
        "max ms",
        "blocked ms",
        "GPU",
        "under",
    ]);
    for app in &summary.apps {
        table.row(vec![
            app.priority.to_string(),
            app.name.clone(),
            format!("{:.1}", app.fps_target),
            format!("{:.2}", app.fps),
            percent(app.met),
            app.missed.to_string(),
            ms(app.response_us.p50),
            ms(app.response_us.p99),
            ms(app.response_us.max),
            ms(app.blocking_us_max),
            percent(app.gpu_share),
            percent(app.under_predicted),
        ]);
    }
    let scheduler = &summary.scheduler;
    let mut text = format!(
        "{} under {}, {} s, seed {}, event hash {}\n\n{}\nGPU busy {}, {} decisions for {} dispatched groups",
        summary.scenario,
        summary.policy,
        summary.duration_s,
        summary.seed,
        summary.event_hash,
        table.render(),
        percent(summary.gpu.utilisation),
        scheduler.runs,
        scheduler.dispatched,
    );
    if scheduler.lost > 0 {
        text += &format!(", {} completions lost", scheduler.lost);
    }
    text += ".\nTimes: from release to end of frame; blocked: ready, but less important work ran.\n";
    text + &explain(summary, misses)
}

/// The first misses of the most important apps, in words.
fn explain(summary: &Summary, count: usize) -> String {
    let total: u64 = summary.apps.iter().map(|app| app.missed).sum();
    if total == 0 || count == 0 {
        return String::new();
    }
    let rank = |name: &str| summary.apps.iter().position(|app| app.name == name);
    let mut misses: Vec<_> = summary.misses.iter().collect();
    misses.sort_by_key(|miss| rank(&miss.app));
    let mut text = format!("\nWhy deadlines were missed ({} of {total}):\n", count.min(misses.len()));
    for miss in misses.iter().take(count) {
        text += &format!("  {}\n", miss.sentence);
    }
    text
}

/// A trace file of one of the formats.
pub(crate) enum Trace {
    Perfetto(Box<Perfetto<BufWriter<File>>>),
    Csv(Csv<BufWriter<File>>),
    Json(Json<BufWriter<File>>),
}

impl Trace {
    /// A file whose format follows from its name.
    pub(crate) fn create(path: &Path, meta: &Meta) -> anyhow::Result<Self> {
        let out = output::create(path)?;
        let trace = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Csv::new(out, meta).map(Self::Csv),
            Some("jsonl" | "json") => Json::new(out, meta).map(Self::Json),
            _ => Perfetto::new(out, meta).map(|trace| Self::Perfetto(Box::new(trace))),
        };
        trace.with_context(|| output::cannot_write(path))
    }

    pub(crate) fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Perfetto(trace) => trace.finish(),
            Self::Csv(trace) => trace.finish(),
            Self::Json(trace) => trace.finish(),
        }
    }
}

impl Observer for Trace {
    fn record(&mut self, at: Time, record: &Record) {
        match self {
            Self::Perfetto(trace) => trace.record(at, record),
            Self::Csv(trace) => trace.record(at, record),
            Self::Json(trace) => trace.record(at, record),
        }
    }
}
