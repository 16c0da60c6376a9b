//! `takt check`: can the reserved times be guaranteed?

use schemars::JsonSchema;
use serde::Serialize;
use takt_core::Span;
use takt_core::analysis::frames::{self, Demand};
use takt_sim::Scenario;
use takt_sim::demand::frame_demand;

use crate::Answer;
use crate::args::CheckArgs;
use crate::load;
use crate::output;
use crate::table::Table;

/// The answer, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Name of the scenario.
    scenario: String,
    /// Whether every app can have its `etpf` in every frame, if all first deadlines coincide.
    schedulable: bool,
    /// GPU time per refresh period that one more app could reserve; null if not schedulable.
    slack_us: Option<f64>,
    /// How many of the most important apps are guaranteed together.
    protected: usize,
    /// Whether the set is schedulable with the best stagger.
    schedulable_staggered: bool,
    /// Slack with the best stagger; null if not schedulable.
    slack_staggered_us: Option<f64>,
    /// Periods by which to delay the first deadline of each app, most important first.
    stagger: Vec<u32>,
    /// Reserved share of the GPU (0..).
    reserved: f64,
    /// Every app, most important first.
    apps: Vec<AppVerdict>,
}

/// What holds for one app.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct AppVerdict {
    /// Unique name.
    name: String,
    /// Importance, higher wins.
    priority: u32,
    /// Frames per second wanted.
    fps: f64,
    /// Refresh periods per frame.
    stride: u32,
    /// GPU time reserved per frame.
    etpf_us: f64,
    /// How much `etpf` could grow, all else unchanged; null if the set is not schedulable.
    headroom_us: Option<f64>,
    /// The most that a frame of this workload may need, all margins and delays included; null if
    /// it has no bound.
    needs_us: Option<f64>,
    /// Whether the guarantee covers the app: it is in the protected set and its frames fit.
    guaranteed: bool,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Answer> {
    let scenario = load::load(&args.scenario)?;
    let verdict = judge(&scenario);
    output::json(args.json.as_deref(), &verdict)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&verdict))?;
    }
    Ok(if verdict.schedulable { Answer::Yes } else { Answer::No })
}

fn judge(scenario: &Scenario) -> Verdict {
    let mut specs: Vec<_> = scenario.apps.iter().collect();
    specs.sort_by_key(|app| std::cmp::Reverse(app.params.priority));
    let period = scenario.config.refresh.period_span();
    let set: Vec<Demand> = specs
        .iter()
        .map(|app| Demand { stride: app.params.stride, etpf: app.params.etpf, phase: 0 })
        .collect();
    let stagger = frames::best_stagger(period, &set);
    let staggered: Vec<Demand> =
        set.iter().zip(&stagger).map(|(demand, &phase)| Demand { phase, ..*demand }).collect();
    let protected = frames::protected(period, &set);
    let slack = frames::slack(period, &set, frames::is_schedulable);
    let slack_staggered = frames::slack(period, &staggered, frames::is_schedulable_staggered);
    let apps = specs.iter().enumerate().map(|(index, app)| {
        let needs = frame_demand(app, &scenario.config);
        let etpf = app.params.etpf;
        AppVerdict {
            name: app.name.clone(),
            priority: app.params.priority.0,
            fps: f64::from(app.fps_mhz) / 1000.0,
            stride: app.params.stride.get(),
            etpf_us: us(etpf),
            headroom_us: frames::headroom(period, &set, index, frames::is_schedulable).map(us),
            needs_us: needs.map(us),
            guaranteed: index < protected && needs.is_some_and(|needs| needs <= etpf),
        }
    });
    let demanded: f64 = set.iter().map(|d| us(d.etpf) / f64::from(d.stride.get())).sum();
    Verdict {
        scenario: scenario.name.clone(),
        schedulable: slack.is_some(),
        slack_us: slack.map(us),
        protected,
        schedulable_staggered: slack_staggered.is_some(),
        slack_staggered_us: slack_staggered.map(us),
        stagger,
        reserved: demanded / us(period),
        apps: apps.collect(),
    }
}

fn us(span: Span) -> f64 {
    span.as_ns() as f64 / 1000.0
}

fn describe(verdict: &Verdict) -> String {
    let mut table = Table::new(&[
        "prio",
        "<app",
        "FPS",
        "etpf ms",
        "could grow by",
        "frame needs",
        "stagger",
        "<guaranteed",
    ]);
    let ms = |us: f64| format!("{:.3}", us / 1000.0);
    let or_dash = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), ms);
    for (index, (app, phase)) in verdict.apps.iter().zip(&verdict.stagger).enumerate() {
        let guaranteed = match app.guaranteed {
            true => "yes",
            false if index >= verdict.protected => "no: below the protected set",
            false if app.etpf_us == 0.0 => "no: nothing is reserved",
            false => "no: its frames may need more than etpf",
        };
        table.row(vec![
            app.priority.to_string(),
            app.name.clone(),
            format!("{:.1}", app.fps),
            ms(app.etpf_us),
            or_dash(app.headroom_us),
            or_dash(app.needs_us),
            phase.to_string(),
            guaranteed.to_owned(),
        ]);
    }
    let reserved = format!("{:.1} % of the GPU reserved", verdict.reserved * 100.0);
    let sentence = match (verdict.slack_us, verdict.slack_staggered_us) {
        (Some(slack), _) => {
            format!("Schedulable: {reserved}; another app could reserve {} ms in every period.", ms(slack))
        }
        (None, Some(slack)) => format!(
            "Not schedulable as it is, but with first deadlines staggered as shown \
             ({} ms of slack per period): {reserved}.",
            ms(slack)
        ),
        (None, None) => format!(
            "Not schedulable: {reserved}. The {} most important of {} apps are; \
             lower an etpf or a frame rate below them.",
            verdict.protected,
            verdict.apps.len()
        ),
    };
    format!("{}\n\n{}\n{sentence}\n", verdict.scenario, table.render())
}
