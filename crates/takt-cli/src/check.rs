//! `takt check`: can the reserved times be guaranteed?

mod caveats;
mod config;
mod gpu;
mod shared;
mod suggest;
#[cfg(test)]
mod tests;
mod text;

use std::cmp::Ordering;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Serialize;
use takt_analysis::cbs;
use takt_core::analysis::contracts::{self, Claim, Kind, Reason};
use takt_core::contract;
use takt_core::service::Reservation;
use takt_core::{AppParams, Config, DisplayId, Span, Stride, Time};
use takt_predict::profile::Sharing;
use takt_sim::Scenario;
use takt_sim::demand::{groups_exceed, shared_frame_demand};
use takt_sim::model::{AppSpec, End};

use crate::Answer;
use crate::args::CheckArgs;
use crate::load;
use crate::output;
pub(crate) use gpu::GpuChoice;
use suggest::{Judged, Stagger, Suggestion};

/// The answer, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Name of the scenario.
    scenario: String,
    /// The GPU that is judged.
    gpu: String,
    /// The time that is judged: the worst one, if apps join, leave or change.
    at_s: f64,
    /// Whether all contracts hold together.
    schedulable: bool,
    /// GPU time per refresh period that one more app could reserve; null if not schedulable.
    slack_us: Option<f64>,
    /// How many of the most important apps are guaranteed together.
    protected: usize,
    /// Whether the set is schedulable with the best stagger.
    schedulable_staggered: bool,
    /// Slack with the best stagger; null if not schedulable, or if not all frames are of one display.
    slack_staggered_us: Option<f64>,
    /// Periods by which to delay the first deadline of each app, most important first; empty if not
    /// all frames are of one display.
    stagger: Vec<u32>,
    /// Reserved share of the GPU (0..).
    reserved: f64,
    /// Every app that is attached at that time, most important first.
    apps: Vec<AppVerdict>,
    /// The bandwidth servers when they demand most; null under policies that have none.
    servers: Option<Servers>,
    /// What the scenario contains that the guarantee assumes away.
    caveats: Vec<String>,
    /// What could be changed.
    suggestions: Vec<Suggestion>,
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
    /// What it claims.
    contract: ContractKind,
    /// Frames per second wanted, or periods of a server.
    fps: f64,
    /// Refresh periods per frame.
    stride: u32,
    /// GPU time reserved per frame, or per period of a server.
    etpf_us: f64,
    /// How much `etpf` could grow, all else unchanged; null if the app is not in the protected set.
    headroom_us: Option<f64>,
    /// The most that a frame of this workload may need, all margins, delays, switches and turns of
    /// divisible work included; null if it has no bound.
    needs_us: Option<f64>,
    /// Whether the guarantee covers the app: it is in the protected set and its frames fit into its
    /// `etpf`. The caveats apply.
    covered: bool,
    /// Why it is not covered; null if it is.
    why_not: Option<String>,
    /// The time that is missing for it to be covered; null if it is covered, claims nothing or
    /// follows an app that is not covered.
    missing_us: Option<f64>,
    /// The app whose contract it runs on; null if it runs on its own, or on none.
    runs_on: Option<RunsOn>,
}

/// The contract of another app.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct RunsOn {
    /// Whose it is.
    app: String,
    /// What each group is charged besides its length, in microseconds.
    per_group_us: f64,
}

/// What an app claims.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ContractKind {
    /// Frames of a display.
    Display,
    /// Frames by its own clock.
    OwnClock,
    /// A budget in every period.
    Server,
    /// Nothing.
    None,
}

impl From<Kind> for ContractKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Frames { display: Some(_), .. } => Self::Display,
            Kind::Frames { display: None, .. } => Self::OwnClock,
            Kind::Server { .. } => Self::Server,
            Kind::None => Self::None,
        }
    }
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Answer> {
    if let Some(file) = &args.config {
        return config::run(file, args);
    }
    let Some(scenario) = &args.scenario else { bail!("name a scenario, or a configuration with --config") };
    let mut scenario = load::load(scenario)?;
    let measured = gpu::choose(&mut scenario, args.gpu)?;
    let verdict = judge(&scenario, measured);
    output::json(args.json.as_deref(), &verdict)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&text::describe(&verdict))?;
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
fn judge(scenario: &Scenario, measured: Option<Sharing>) -> Verdict {
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
    Verdict { servers, caveats: caveats::caveats(scenario, measured), ..worst }
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

/// The apps that are there at `at`, most important first.
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
    let config = &scenario.config;
    let claims: Vec<Claim> = apps.iter().map(|(_, params)| contract::claim(params, config)).collect();
    let judged = judge_apps((scenario, config), apps, &claims);
    let protected = contract::coverage(&claims, config).covered;
    let slack = slack(&claims, config);
    let stagger = suggest::stagger(config, apps, &claims);
    let suggestions =
        suggest::all(&Judged { scenario, config, apps, claims: &claims, verdicts: &judged }, &stagger);
    let Stagger { phases, slack: slack_staggered } = stagger;
    let reserved = claims.iter().filter_map(|claim| Some(us(claim.span) / us(period(claim)?))).sum();
    Verdict {
        scenario: scenario.name.clone(),
        gpu: gpu::name(config),
        at_s: us(at.since(Time::ZERO)) / 1e6,
        schedulable: slack.is_some(),
        slack_us: slack.map(us),
        protected,
        schedulable_staggered: slack.is_some() || slack_staggered.is_some(),
        slack_staggered_us: slack_staggered.map(us),
        stagger: phases,
        reserved,
        apps: judged,
        servers: None,
        caveats: Vec::new(),
        suggestions,
    }
}

/// GPU time per period of the first display that one more app could reserve; `None` if not all are covered.
fn slack(claims: &[Claim], config: &Config) -> Option<Span> {
    if !contract::is_covered(claims, config) {
        return None;
    }
    let kind = Kind::of_display(0, config.display(DisplayId(0)).period_span(), Stride::ONE);
    let nothing = Claim { kind, span: Span::ZERO, group_max: Span::ZERO };
    let probe = [claims, &[nothing]].concat();
    Some(contract::largest_span(&probe, claims.len(), config).unwrap_or(Span::ZERO))
}

/// The shortest time between two frames or budgets.
fn period(claim: &Claim) -> Option<Span> {
    match claim.kind {
        Kind::Frames { period, .. } | Kind::Server { period } => Some(period),
        Kind::None => None,
    }
}

/// What holds for each app of those that are attached together.
fn judge_apps(
    (scenario, config): (&Scenario, &Config),
    apps: &Together<'_>,
    claims: &[Claim],
) -> Vec<AppVerdict> {
    let coverage = contract::coverage(claims, config);
    let names: Vec<&str> = apps.iter().map(|(app, _)| app.name.as_str()).collect();
    let judged = apps.iter().enumerate().map(|(index, (app, params))| {
        let claim = &claims[index];
        let largest = match index < coverage.covered {
            true => contract::largest_span(&claims[..coverage.covered], index, config),
            false => contract::largest_span(&claims[..=index], index, config),
        };
        let sources = shared::sources(scenario, apps, app);
        let needs = shared_frame_demand(app, &sources, config);
        let lack = match coverage.verdicts[index] {
            contracts::Verdict::Uncovered(reason) => Some(Lack::new(reason, claim, largest)),
            contracts::Verdict::Covered if contract::has_shared_gaps(params, !sources.is_empty()) => {
                Some(Lack { why: Why::SharedGaps, missing: None })
            }
            contracts::Verdict::Covered => Lack::of_frames(claim, needs).or_else(|| {
                Lack::of_groups(std::iter::once(app).chain(&sources), !sources.is_empty(), config)
            }),
        };
        AppVerdict {
            name: app.name.clone(),
            priority: params.priority.0,
            contract: claim.kind.into(),
            fps: rate(config, params, claim),
            stride: params.stride.get(),
            etpf_us: us(claim.span),
            headroom_us: largest
                .filter(|_| index < coverage.covered)
                .map(|largest| us(largest.saturating_sub(claim.span))),
            needs_us: needs.map(us),
            covered: lack.is_none(),
            why_not: lack.map(|lack| text::why_not(&lack, index, &names)),
            missing_us: lack.and_then(|lack| lack.missing).map(us),
            runs_on: None,
        }
    });
    let mut judged: Vec<AppVerdict> = judged.collect();
    shared::by_others((scenario, config), apps, &mut judged);
    judged
}

/// Frames per second, or periods of a server.
fn rate(config: &Config, params: &AppParams, claim: &Claim) -> f64 {
    match claim.kind {
        Kind::Frames { period, display: None, .. } | Kind::Server { period } => 1e6 / us(period),
        Kind::Frames { .. } | Kind::None => {
            let refresh = config.display(params.clock.display().unwrap_or_default());
            f64::from(refresh.mhz()) / 1000.0 / f64::from(params.stride.get())
        }
    }
}

/// Why an app is not covered.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Lack {
    why: Why,
    /// The time that is missing, where that is known.
    missing: Option<Span>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Why {
    /// The contract does not hold, together with those before it.
    Contract(Reason),
    /// The contract holds, but frames may need more than it, or have no bound.
    Frames,
    /// The contract holds, but groups may be longer than those of protected apps may be.
    Groups,
    /// The contract holds, but its frames have both gaps and sources.
    SharedGaps,
}

impl Lack {
    /// The contract does not hold; it would with a span of `largest`.
    fn new(reason: Reason, claim: &Claim, largest: Option<Span>) -> Self {
        let missing = match reason {
            Reason::Missing { time, .. } => Some(time),
            Reason::Overload { .. } => Some(claim.span.saturating_sub(largest.unwrap_or(Span::ZERO))),
            _ => None,
        };
        Self { why: Why::Contract(reason), missing }
    }

    /// Whether frames may need more than was claimed. Jobs of a server may: they are due later then.
    fn of_frames(claim: &Claim, needs: Option<Span>) -> Option<Self> {
        let is_server = matches!(claim.kind, Kind::Server { .. });
        if is_server || needs.is_some_and(|needs| needs <= claim.span) {
            return None;
        }
        Some(Self { why: Why::Frames, missing: needs.map(|needs| needs.saturating_sub(claim.span)) })
    }

    /// Whether groups of these apps, which may be `several` sources of one frame, may be longer than those of
    /// protected apps may be.
    fn of_groups<'a>(
        mut apps: impl Iterator<Item = &'a &'a AppSpec>,
        several: bool,
        config: &Config,
    ) -> Option<Self> {
        let most =
            apps.try_fold(Span::ZERO, |most, app| Some(most.max(groups_exceed(app, several, config)?)));
        let limited = config.tuning.group_max < Span::FOREVER && most != Some(Span::ZERO);
        limited.then_some(Self { why: Why::Groups, missing: most })
    }
}

fn us(span: Span) -> f64 {
    span.as_ns() as f64 / 1000.0
}
