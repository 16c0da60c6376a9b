//! `takt sim`: simulate a scenario and tell who met which deadlines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use takt_core::{AppId, Span, Time};
use takt_report::Run;
use takt_sim::{Scenario, meta};
use takt_trace::export::{Csv, Json, Perfetto};
use takt_trace::{AppMeta, AppSummary, Meta, Observer, Record, Summary};

use crate::Answer;
use crate::args::{SimArgs, WINDOW_S, Window};
use crate::load;
use crate::output;
use crate::policies::met;
use crate::table::{Table, ms, percent};

pub(crate) fn run(args: &SimArgs) -> anyhow::Result<Answer> {
    let mut scenario = load::load(&args.scenario)?;
    if let Some(policy) = &args.policy {
        scenario.policy.clone_from(policy);
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    let end_s = span_s(scenario.duration);
    if let Some(window) = args.window
        && (window.start_s >= end_s || window.length_s <= 0.0)
    {
        bail!("--window {}:{}: the run lasts from 0 to {end_s} s", window.start_s, window.length_s);
    }
    let mut trace = args.trace.as_deref().map(|path| Trace::create(path, &meta(&scenario))).transpose()?;
    let summary = load::simulate(&scenario, &mut trace);
    // Files come first: the reader of standard output may close it.
    let mut said = describe(&scenario, &summary, args.misses);
    if let (Some(trace), Some(path)) = (trace, &args.trace) {
        let format = trace.format();
        trace.finish().with_context(|| output::cannot_write(path))?;
        said += &format!("trace: {} ({format})\n", path.display());
    }
    let as_expected = args.expect_hash.as_ref().is_none_or(|hash| *hash == summary.event_hash);
    if !as_expected {
        output::warn(&format!("the event hash is {}, not the expected one", summary.event_hash));
    }
    let printed = summary.clone();
    if let Some(folder) = &args.report {
        let page = folder.join("index.html");
        let run = report_run(&scenario, summary, args.window);
        output::file(&page, &takt_report::render(&[run]))?;
        said += &format!("report: {}\n", page.display());
    }
    output::json(args.json.as_deref(), &printed)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&said)?;
    }
    Ok(if as_expected { Answer::Yes } else { Answer::No })
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
    // The page opens at the beginning of the window, which should show the miss.
    let start_s = first.map_or(warm_up_s, |miss| (miss.deadline_s - LEAD_S).max(0.0));
    Window { start_s, length_s: WINDOW_S }
}

/// Time before a miss that the timing diagram begins with.
const LEAD_S: f64 = 0.07;

fn span_s(span: Span) -> f64 {
    span.as_ns() as f64 / 1e9
}

fn at(seconds: f64) -> Time {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a checked range of seconds")]
    let ns = (seconds * 1e9) as u64;
    Time::from_ns(ns)
}

/// The run as a table with a few explained misses.
fn describe(scenario: &Scenario, summary: &Summary, misses: usize) -> String {
    let mut table =
        Table::new("prio, <app, target, FPS, met, missed, p50 ms, p99 ms, max ms, blocked ms, GPU, under");
    for app in &summary.apps {
        let ms = |us: f64| if app.frames == 0 { "-".to_owned() } else { ms(us) };
        let (deadlines, missed) = app.judged();
        let response = app.judged_response_us();
        table.row(vec![
            app.priority.to_string(),
            app.name.clone(),
            format!("{:.1}", app.fps_target),
            format!("{:.2}", app.fps),
            if deadlines == 0 { "-".to_owned() } else { percent(met(missed, deadlines)) },
            missed.to_string(),
            ms(response.p50),
            ms(response.p99),
            ms(response.max),
            ms(app.blocking_us_max),
            percent(app.gpu_share),
            percent(app.under_predicted),
        ]);
    }
    let scheduler = &summary.scheduler;
    let mut text = format!(
        "{} under {}, {} s judged, seed {}, event hash {}\n\n{}\nGPU busy {}, {} decisions for {} dispatched groups",
        summary.scenario,
        summary.policy,
        summary.judged_s,
        summary.seed,
        summary.event_hash,
        table.render(),
        percent(summary.gpu.utilisation),
        scheduler.runs,
        scheduler.dispatched,
    );
    if scheduler.lost > 0 {
        text += &format!(", {} completions did not come in time", scheduler.lost);
    }
    text += ".\nTimes: from release to end of frame. blocked: a ready group waited while less important ones ran. \
             under: groups that ran longer than predicted.\n";
    text + &own_clocks(summary) + &explain(scenario, summary, misses)
}

/// The jobs of apps with a clock of their own, if there are any.
fn own_clocks(summary: &Summary) -> String {
    let mut table = Table::new("<app, period ms, deadline ms, jobs, late, p50 ms, p99 ms, max ms");
    let jobs = |app: &AppSummary| app.jobs.clone().map(|jobs| (app.name.clone(), jobs));
    let all: Vec<_> = summary.apps.iter().filter_map(jobs).collect();
    if all.is_empty() {
        return String::new();
    }
    for (name, jobs) in all {
        table.row(vec![
            name,
            ms(jobs.period_us),
            ms(jobs.deadline_us),
            jobs.count.to_string(),
            jobs.late.to_string(),
            ms(jobs.response_us.p50),
            ms(jobs.response_us.p99),
            ms(jobs.response_us.max),
        ]);
    }
    format!("\nJobs released by the apps' own clocks, from release to end:\n\n{}", table.render())
}

/// The first misses of the most important apps, in words.
fn explain(scenario: &Scenario, summary: &Summary, count: usize) -> String {
    let explained = |app: &&AppSummary| app.jobs.is_none() || knows_deadlines(scenario, &app.name);
    let judged: Vec<&AppSummary> = summary.apps.iter().filter(explained).collect();
    let total: u64 = judged.iter().map(|app| app.missed).sum();
    if total == 0 || count == 0 {
        return String::new();
    }
    let rank = |name: &str| judged.iter().position(|app| app.name == name);
    let mut seen = BTreeMap::new();
    let mut misses: Vec<_> = summary
        .misses
        .iter()
        .filter_map(|miss| {
            let rank = rank(&miss.app)?;
            let turn = seen.entry(&miss.app).and_modify(|turn| *turn += 1).or_insert(0);
            Some((*turn, rank, miss))
        })
        .collect();
    misses.sort_by_key(|(turn, rank, _)| (*turn, *rank));
    let mut text = format!("\nWhy deadlines were missed ({} of {total}):\n", count.min(misses.len()));
    for (_, _, miss) in misses.iter().take(count) {
        text += &format!("  {}\n", miss.sentence);
    }
    text
}

/// Whether the scheduler knows when the jobs of that app are due: it judges the others by their display.
fn knows_deadlines(scenario: &Scenario, name: &str) -> bool {
    let app = scenario.apps.iter().find(|app| app.name == name);
    app.is_some_and(|app| app.params.clock.is_own() || scenario.server_of(&app.params).is_some())
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
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_lowercase();
        let known = ["csv", "jsonl", "perfetto-trace", "pftrace"];
        ensure!(
            known.contains(&ending.as_str()),
            "{}: the ending of the name tells the format; use one of .{}",
            path.display(),
            known.join(", .")
        );
        let out = output::create(path)?;
        let trace = match ending.as_str() {
            "csv" => Csv::new(out, meta).map(Self::Csv),
            "jsonl" => Json::new(out, meta).map(Self::Json),
            _ => Perfetto::new(out, meta).map(|trace| Self::Perfetto(Box::new(trace))),
        };
        trace.with_context(|| output::cannot_write(path))
    }

    /// What people call the format.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Self::Perfetto(_) => "open it in the Perfetto UI",
            Self::Csv(_) => "one row per command group",
            Self::Json(_) => "one JSON object per line",
        }
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

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        match self {
            Self::Perfetto(trace) => trace.meet(at, app, meta),
            Self::Csv(trace) => trace.meet(at, app, meta),
            Self::Json(trace) => trace.meet(at, app, meta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job in every 20 ms that takes 6 ms and must be done within 5, and one that takes 2 ms.
    const JOBS: &str = "
        name = 'jobs'
        duration_s = 1
        [gpu]
        dispatch_delay_us = 0
        [[app]]
        name = 'slow'
        priority = 2
        period_us = 20_000
        deadline_us = 5_000
        swap_us = 6_000
        prediction = { noise = 0.0 }
        [[app]]
        name = 'quick'
        priority = 1
        period_us = 20_000
        deadline_us = 19_000
        swap_us = 2_000
        prediction = { noise = 0.0 }
    ";

    fn said(own: bool) -> String {
        let text = if own { JOBS.replace("period_us", "clock = 'own'\nperiod_us") } else { JOBS.to_owned() };
        let scenario = load::parse("jobs", &text, &[], None).expect("a scenario");
        let summary = load::simulate(&scenario, &mut ());
        describe(&scenario, &summary, 1)
    }

    fn row<'a>(said: &'a str, app: &str) -> Vec<&'a str> {
        let row = said.lines().find(|line| line.contains(app)).expect("a row of the app");
        row.split_whitespace().collect()
    }

    #[test]
    fn jobs_are_judged_by_their_own_deadlines() {
        for own in [false, true] {
            let said = said(own);
            assert_eq!(row(&said, "slow")[4..7], ["0.00", "%", "50"], "{said}");
            assert_eq!(row(&said, "quick")[4..7], ["100.00", "%", "0"], "{said}");
            // By the display, which may be all that the scheduler knows, it is not late.
            assert_eq!(said.contains("slow frame 0 due at 0.0050 s was"), own, "{said}");
        }
    }
}
