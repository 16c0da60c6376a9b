//! `takt check`: can the reserved times be guaranteed?

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Serialize;
use takt_core::analysis::cbs;
use takt_core::analysis::frames::{self, Demand};
use takt_core::service::Reservation;
use takt_core::{AppParams, Span, Time};
use takt_sim::Scenario;
use takt_sim::demand::{frame_demand, may_overrun};
use takt_sim::model::{AppSpec, End};

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
    /// The time that is judged: the worst one, if apps join, leave or change.
    at_s: f64,
    /// Whether every app can have its `etpf` in every frame; the scenario's phases count if all
    /// apps join together.
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
    /// Every app that is attached at that time, most important first.
    apps: Vec<AppVerdict>,
    /// The bandwidth servers when they demand most; null under policies that have none.
    servers: Option<Servers>,
    /// What the scenario contains that the guarantee assumes away.
    caveats: Vec<String>,
}

/// Apps with a reserve of their own under `edf-cbs` and `edf-cbs-hard`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Servers {
    /// How many there are.
    count: usize,
    /// What they demand together at most, as a share of the GPU (0..).
    share: f64,
    /// Whether each can have its budget by its deadline on a GPU that can be preempted.
    admitted: bool,
    /// Whether the GPU of the scenario can be.
    preemptive: bool,
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
    /// Whether the guarantee covers the app: it is in the protected set and its frames fit into its
    /// `etpf`. The caveats apply.
    covered: bool,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Answer> {
    let scenario = load::load(&args.scenario)?;
    let verdict = judge(&scenario);
    output::json(args.json.as_deref(), &verdict)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&verdict))?;
    }
    let servers_fit = verdict.servers.as_ref().is_none_or(|servers| servers.admitted);
    // That reservations fit together is of no use to apps whose frames do not fit into them.
    let reserves = verdict.apps.iter().any(|app| app.etpf_us > 0.0);
    let covers = verdict.apps.iter().any(|app| app.covered);
    Ok(if verdict.schedulable && servers_fit && (covers || !reserves) { Answer::Yes } else { Answer::No })
}

/// The apps that are attached together at some time, with what they then ask for.
type Together<'a> = Vec<(&'a AppSpec, AppParams)>;

/// Judges every time between two joins, changes or departures; the worst one is the verdict.
fn judge(scenario: &Scenario) -> Verdict {
    let mut times: Vec<Time> = scenario.apps.iter().map(|app| app.join).collect();
    times.extend(scenario.apps.iter().flat_map(|app| app.changes.iter().map(|change| change.at)));
    times.extend(scenario.apps.iter().filter_map(ends));
    times.sort_unstable();
    times.dedup();
    let verdicts = times.iter().map(|at| (*at, together(scenario, *at))).filter(|(_, apps)| !apps.is_empty());
    let verdicts = verdicts.map(|(at, apps)| judge_together(scenario, at, &apps));
    let servers = times.iter().filter_map(|at| servers(scenario, &together(scenario, *at)));
    let servers = servers.max_by(|a, b| {
        (!a.admitted, a.share).partial_cmp(&(!b.admitted, b.share)).unwrap_or(Ordering::Equal)
    });
    let worst = verdicts.min_by(|a, b| {
        let key = |verdict: &Verdict| verdict.slack_us.unwrap_or(-verdict.reserved);
        key(a).total_cmp(&key(b))
    });
    let worst = worst.unwrap_or_else(|| judge_together(scenario, Time::ZERO, &Vec::new()));
    Verdict { servers, ..worst }
}

/// The servers among apps that are attached together.
fn servers(scenario: &Scenario, apps: &Together<'_>) -> Option<Servers> {
    if !scenario.policy.starts_with("edf-cbs") {
        return None;
    }
    let reserves = apps.iter().filter_map(|(_, params)| match params.service.reservation {
        // A deadline shorter than the period lets a server use its budget that often.
        Reservation::Own(reserve) => Some((reserve.budget, reserve.period.min(reserve.deadline))),
        _ => None,
    });
    let reserves: Vec<(Span, Span)> = reserves.collect();
    let servers = reserves.iter().map(|(budget, within)| cbs::Server::new(budget.as_ns(), within.as_ns()));
    Some(Servers {
        count: reserves.len(),
        share: reserves.iter().map(|(budget, within)| us(*budget) / us(*within)).sum(),
        admitted: servers.collect::<Option<Vec<_>>>().is_some_and(|servers| cbs::admits(&servers)),
        preemptive: scenario.gpu.model == takt_sim::model::GpuModel::Preemptive,
    })
}

fn ends(app: &AppSpec) -> Option<Time> {
    match app.end? {
        End::Leave(at) => Some(at),
        End::Crash { at, notice } => Some(at + notice),
        // Its reservation stays.
        End::Hang(_) => None,
    }
}

/// Who is there at `at`, most important first.
fn together(scenario: &Scenario, at: Time) -> Together<'_> {
    let there = |app: &&AppSpec| app.join <= at && ends(app).is_none_or(|end| at < end);
    let params = |app: &AppSpec| {
        let changed = app.changes.iter().rev().find(|change| change.at <= at);
        changed.map_or(app.params, |change| change.params)
    };
    let mut apps: Together<'_> = scenario.apps.iter().filter(there).map(|app| (app, params(app))).collect();
    apps.sort_by_key(|(_, params)| std::cmp::Reverse(params.priority));
    apps
}

fn judge_together(scenario: &Scenario, at: Time, apps: &Together<'_>) -> Verdict {
    let period = scenario.config.refresh.period_span();
    let set: Vec<Demand> = apps
        .iter()
        .map(|(app, params)| Demand { stride: params.stride, etpf: params.etpf, phase: app.phase })
        .collect();
    // Phases help only apps that start together.
    let phased =
        apps.iter().any(|(app, _)| app.phase > 0) && apps.iter().all(|(app, _)| app.join == apps[0].0.join);
    let test = if phased { frames::is_schedulable_staggered } else { frames::is_schedulable };
    let stagger = frames::best_stagger(period, &set);
    let staggered: Vec<Demand> =
        set.iter().zip(&stagger).map(|(demand, &phase)| Demand { phase, ..*demand }).collect();
    let protected = if test(period, &set) { set.len() } else { frames::protected(period, &set) };
    let slack = frames::slack(period, &set, test);
    let slack_staggered = frames::slack(period, &staggered, frames::is_schedulable_staggered);
    let judged = apps.iter().enumerate().map(|(index, (app, params))| {
        let needs = frame_demand(app, &scenario.config);
        let headroom = match index < protected {
            true => frames::headroom(period, &set[..protected], index, test),
            false => None,
        };
        AppVerdict {
            name: app.name.clone(),
            priority: params.priority.0,
            fps: f64::from(scenario.config.refresh.mhz()) / 1000.0 / f64::from(params.stride.get()),
            stride: params.stride.get(),
            etpf_us: us(params.etpf),
            headroom_us: headroom.map(us),
            needs_us: needs.map(us),
            covered: index < protected && needs.is_some_and(|needs| needs <= params.etpf),
        }
    });
    let demanded: f64 = set.iter().map(|d| us(d.etpf) / f64::from(d.stride.get())).sum();
    Verdict {
        scenario: scenario.name.clone(),
        at_s: us(at.since(Time::ZERO)) / 1e6,
        schedulable: slack.is_some(),
        slack_us: slack.map(us),
        protected,
        schedulable_staggered: slack_staggered.is_some(),
        slack_staggered_us: slack_staggered.map(us),
        stagger,
        reserved: demanded / us(period),
        apps: judged.collect(),
        servers: None,
        caveats: caveats(scenario),
    }
}

/// What the scenario contains that the guarantee assumes away.
fn caveats(scenario: &Scenario) -> Vec<String> {
    let margins = &scenario.config.margins;
    let mut out = Vec::new();
    if scenario.policy != takt_core::policy::NAMES[0] {
        out.push(format!("the policy is {}", scenario.policy));
    }
    let names = |wanted: &dyn Fn(&AppSpec) -> bool| {
        let names: Vec<&str> =
            scenario.apps.iter().filter(|app| wanted(app)).map(|app| app.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = names(&|app| may_overrun(app, margins)) {
        out.push(format!("groups may run longer than their conservative prediction: {names}"));
    }
    if let Some(names) = names(&|app| app.submit_delay.hi + app.cpu.hi > Span::ZERO) {
        out.push(format!("frames may arrive later than their release: {names}"));
    }
    let gpu = &scenario.gpu;
    if gpu.is_time_shared() {
        out.push("the GPU does not execute groups in the order of their dispatch".to_owned());
        out.push("swaps that are said to cost nothing are not waited for".to_owned());
    }
    if gpu.dispatch_delay.hi > margins.dispatch_upper || gpu.completion_delay.hi > margins.completion_upper {
        out.push("dispatch or completion may take longer than the margins say".to_owned());
    }
    if gpu.lost_completion_ppm > 0 || !gpu.stalls.is_empty() || !gpu.clock.is_empty() {
        out.push("the GPU stalls, changes its clock or loses completions".to_owned());
    }
    out
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
        "<covered by the guarantee",
    ]);
    let ms = |us: f64| format!("{:.3}", us / 1000.0);
    let or_dash = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), ms);
    for (index, (app, phase)) in verdict.apps.iter().zip(&verdict.stagger).enumerate() {
        let covered = match app.covered {
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
            covered.to_owned(),
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
        (None, None) => match verdict.apps.get(verdict.protected) {
            Some(first) => format!(
                "Not schedulable: {reserved}. {} is the first app that does not fit below the {} before it; \
                 lower its etpf or frame rate.",
                first.name, verdict.protected
            ),
            None => format!("Not schedulable: {reserved}."),
        },
    };
    let reserving = verdict.apps.iter().filter(|app| app.etpf_us > 0.0);
    let covered = reserving.clone().filter(|app| app.covered).count();
    let mut notes = format!("Covered: {covered} of {} apps with a reservation.\n", reserving.count());
    for caveat in &verdict.caveats {
        notes += &format!("The guarantee assumes otherwise: {caveat}.\n");
    }
    notes += &verdict.servers.as_ref().map(describe_servers).unwrap_or_default();
    let when =
        if verdict.at_s > 0.0 { format!(", worst from {:.3} s on", verdict.at_s) } else { String::new() };
    format!("{}{when}\n\n{}\n{sentence}\n{notes}", verdict.scenario, table.render())
}

fn describe_servers(servers: &Servers) -> String {
    let Servers { count, share, .. } = servers;
    let demand = format!("Bandwidth servers: {count}, {:.1} % of the GPU", share * 100.0);
    match (servers.admitted, servers.preemptive) {
        (true, true) => format!("{demand}; each has its budget by its deadline.\n"),
        (true, false) => {
            format!("{demand}; each has its budget by its deadline, and one group of each place in flight.\n")
        }
        (false, _) => format!(
            "{demand}: not admitted, since their budgets do not fit into their deadlines; \
             lower reserve_us or lengthen period_us or deadline_us.\n"
        ),
    }
}
