//! `takt policies`: the same scenarios under one policy after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Serialize;
use takt_sim::{Scenario, summarize};
use takt_trace::{AppSummary, Summary};

use crate::Answer;
use crate::args::{PoliciesArgs, ScenarioArgs};
use crate::load;
use crate::output;
use crate::table::{Table, ms, percent};

/// A scenario under a policy, in a few figures.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Figures {
    /// Name of the scenario.
    scenario: String,
    /// Policy that decided.
    policy: String,
    /// Share of its deadlines that the most important app met (0..1).
    met_first: f64,
    /// Share of all deadlines of all apps that were met (0..1).
    met_all: f64,
    /// Frames per second of the most important app.
    fps_first: f64,
    /// Frames per second of all apps together.
    fps_all: f64,
    /// Share of the time that the GPU executed (0..1).
    utilisation: f64,
    /// Longest time that a ready group of the most important app waited for less important ones.
    blocking_first_us: f64,
    /// Decisions per dispatched group.
    runs_per_dispatched: f64,
    /// Each app, most important first.
    apps: Vec<AppFigures>,
}

/// What became of one app.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct AppFigures {
    /// Unique name.
    name: String,
    /// Deadlines that came due: those of its jobs if its own clock releases them, else those of the
    /// display.
    deadlines: u64,
    /// How many of them were missed.
    missed: u64,
    /// Share of them that were met (0..1); 1 if none came due.
    met: f64,
    /// Frames per second.
    fps: f64,
    /// Longest time from the release of a frame or job to its end.
    response_us_max: f64,
    /// Longest time that a ready group waited for work of less important apps.
    blocking_us_max: f64,
}

pub(crate) fn run(args: &PoliciesArgs) -> anyhow::Result<Answer> {
    let names = if args.policies.is_empty() {
        takt_policies::NAMES.iter().map(|name| (*name).to_owned()).collect()
    } else {
        args.policies.clone()
    };
    let mut scenarios = Vec::new();
    for file in &args.files {
        let scenario = load::load(&ScenarioArgs { file: file.clone(), sets: args.sets.clone() })?;
        scenarios.extend(names.iter().map(|policy| Scenario { policy: policy.clone(), ..scenario.clone() }));
    }
    if args.histograms.is_some() && args.files.len() > 1 {
        bail!("--histograms draws a single scenario, and there are {}", args.files.len());
    }
    let runs = play(&scenarios, args.threads)?;
    if let Some(path) = &args.histograms {
        output::file(path, &takt_report::histograms(&runs))?;
    }
    let figures: Vec<Figures> = runs.iter().map(Figures::of).collect();
    output::json(args.json.as_deref(), &figures)?;
    if !output::is_stdout(args.json.as_deref()) {
        let table = table(&figures);
        output::print(&if args.markdown { table.markdown() } else { table.render() + LEGEND })?;
    }
    Ok(Answer::Yes)
}

const LEGEND: &str = "
first: the most important app. all: all apps together. blocked: its longest wait for less important ones.
runs: decisions per dispatched group. Apps with a clock of their own are judged by it.
";

/// Plays all scenarios; the summaries come in their order with any number of threads.
fn play(scenarios: &[Scenario], threads: Option<u32>) -> anyhow::Result<Vec<Summary>> {
    let threads = threads
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |threads| threads as usize);
    let bar = output::progress(scenarios.len() as u64, "policies");
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(number) else {
                return done;
            };
            done.push((number, summarize(scenario)));
            bar.inc(1);
        }
    };
    let mut runs = thread::scope(|scope| {
        let spawn =
            |number| thread::Builder::new().name(format!("policies-{number}")).spawn_scoped(scope, work);
        let workers = (0..threads.min(scenarios.len())).map(spawn).collect::<Result<Vec<_>, _>>()?;
        let done = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        anyhow::Ok(done.flatten().collect::<Vec<_>>())
    })?;
    bar.finish_and_clear();
    runs.sort_by_key(|(number, _)| *number);
    Ok(runs.into_iter().map(|(_, summary)| summary).collect())
}

impl Figures {
    fn of(summary: &Summary) -> Self {
        let apps: Vec<AppFigures> = summary.apps.iter().map(AppFigures::of).collect();
        let of_first = |figure: fn(&AppFigures) -> f64| apps.first().map_or(0.0, figure);
        let deadlines = apps.iter().map(|app| app.deadlines).sum();
        let missed = apps.iter().map(|app| app.missed).sum();
        Self {
            scenario: summary.scenario.clone(),
            policy: summary.policy.clone(),
            met_first: of_first(|app| app.met),
            met_all: met(missed, deadlines),
            fps_first: of_first(|app| app.fps),
            fps_all: apps.iter().map(|app| app.fps).sum(),
            utilisation: summary.gpu.utilisation,
            blocking_first_us: of_first(|app| app.blocking_us_max),
            runs_per_dispatched: summary.scheduler.runs_per_dispatched,
            apps,
        }
    }
}

impl AppFigures {
    fn of(app: &AppSummary) -> Self {
        let (deadlines, missed) = app.judged();
        let response = app.judged_response_us();
        Self {
            name: app.name.clone(),
            deadlines,
            missed,
            met: met(missed, deadlines),
            fps: app.fps,
            response_us_max: response.max,
            blocking_us_max: app.blocking_us_max,
        }
    }
}

/// Share of deadlines met (0..1); 1 if none came due.
pub(crate) fn met(missed: u64, deadlines: u64) -> f64 {
    if deadlines == 0 { 1.0 } else { (deadlines - missed) as f64 / deadlines as f64 }
}

fn table(figures: &[Figures]) -> Table {
    let mut table =
        Table::new("<scenario, <policy, met first, met all, FPS first, FPS all, GPU busy, blocked ms, runs");
    for row in figures {
        table.row(vec![
            row.scenario.clone(),
            row.policy.clone(),
            percent(row.met_first),
            percent(row.met_all),
            format!("{:.2}", row.fps_first),
            format!("{:.1}", row.fps_all),
            percent(row.utilisation),
            ms(row.blocking_first_us),
            format!("{:.3}", row.runs_per_dispatched),
        ]);
    }
    table
}
