//! The simulated part: 17 apps of a car.

use std::path::{Path, PathBuf};

use anyhow::Context;
use takt_core::Span;
use takt_sim::{Scenario, meta};
use takt_trace::Summary;

use super::Told;
use crate::args::{WINDOW_S, Window};
use crate::load;
use crate::output;
use crate::sim::{Trace, report_run};
use crate::table::{Table, percent};

const SCENARIO: &str = include_str!("../../../../scenarios/thesis-mixed.toml");

/// The two sides: what a driver does on its own, and what Takt does.
const POLICIES: [&str; 2] = ["fifo", "timeline"];

pub(super) fn run(seconds: u32, out: &Path) -> anyhow::Result<Told<[Summary; 2]>> {
    let mut runs = Vec::new();
    for policy in POLICIES {
        let mut scenario = load::parse("scenarios/thesis-mixed.toml", SCENARIO, &[], None)?;
        scenario.duration = Span::from_ms(u64::from(seconds) * 1000);
        scenario.warm_up = Span::from_ms(1000);
        scenario.policy = policy.to_owned();
        let summary = traced(&scenario, &trace_path(out, policy))?;
        let window = Window { start_s: 1.0, length_s: WINDOW_S };
        runs.push(report_run(&scenario, summary, Some(window)));
    }
    let page = out.join("index.html");
    output::file(&page, &takt_report::render(&runs))?;
    let figures = [runs[0].summary.clone(), runs[1].summary.clone()];
    let text = format!(
        "{}\nReport:  {} (open it in a browser)\nTraces:  {} (the first 10 s; drop them into the Perfetto UI)\n",
        describe(&figures[0], &figures[1]),
        page.display(),
        POLICIES.map(|policy| trace_path(out, policy).display().to_string()).join(", ")
    );
    Ok(Told { text, figures })
}

fn trace_path(out: &Path, policy: &str) -> PathBuf {
    out.join(format!("{policy}.perfetto-trace"))
}

/// Seconds of the run that go into the trace file; all of it would be large and slow to open.
const TRACED: Span = Span::from_ms(10_000);

fn traced(scenario: &Scenario, path: &Path) -> anyhow::Result<Summary> {
    let mut short = scenario.clone();
    short.duration = scenario.duration.min(TRACED);
    let mut trace = Trace::create(path, &meta(scenario))?;
    takt_sim::run(&short, &mut trace);
    trace.finish().with_context(|| output::cannot_write(path))?;
    Ok(load::simulate(scenario, &mut ()))
}

fn describe(fifo: &Summary, takt: &Summary) -> String {
    let mut table = Table::new("prio, <app, target, |, fifo FPS, met, |, takt FPS, met");
    for (before, after) in fifo.apps.iter().zip(&takt.apps) {
        table.row(vec![
            before.priority.to_string(),
            before.name.clone(),
            format!("{:.0}", before.fps_target),
            "|".to_owned(),
            format!("{:.1}", before.fps),
            percent(before.met),
            "|".to_owned(),
            format!("{:.1}", after.fps),
            percent(after.met),
        ]);
    }
    let first = |summary: &Summary| summary.apps.first().map_or((0.0, 0.0), |app| (app.fps, app.met));
    let ((fps_before, met_before), (fps_after, met_after)) = (first(fifo), first(takt));
    format!(
        "17 apps share one GPU that cannot be preempted; together they want about twice its time.\n\
         Simulated for {} s, in submission order (fifo) and under Takt (timeline):\n\n{}\n\
         GPU busy: fifo {}, takt {}.\n\n\
         In submission order the speedometer runs at {fps_before:.1} FPS and meets {} of its deadlines; \
         under Takt it runs at {fps_after:.1} FPS and meets {}.\n",
        takt.judged_s,
        table.render(),
        percent(fifo.gpu.utilisation),
        percent(takt.gpu.utilisation),
        percent(met_before),
        percent(met_after),
    )
}
