//! What could be changed so that more is covered, or more fits.

use schemars::JsonSchema;
use serde::Serialize;
use takt_core::analysis::contracts::{Claim, Kind};
use takt_core::analysis::frames::{self, Demand};
use takt_core::{AppParams, Config, DisplayId, Divisible, Span, contract};
use takt_sim::Scenario;

use super::{AppVerdict, ContractKind, Together, judge_apps, us};

/// The longest slice that is suggested, in microseconds: what Takt sets for apps with a contract.
const OWN_SLICE_US_MAX: u64 = 20_000;

/// A change, and what it would do.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Suggestion {
    /// What to change.
    change: Change,
    /// Whose, if it is that of an app.
    app: Option<String>,
    /// The value to set; null for a stagger, which has one for each app.
    value_us: Option<f64>,
    /// How many apps are covered with it.
    covered: usize,
    /// The same in words.
    pub(super) text: String,
}

/// What to change.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// The time that an app reserves.
    Etpf,
    /// The periods in which apps have their first deadlines.
    Stagger,
    /// The longest group of a protected app.
    GroupMax,
    /// Whether work of other apps may be divisible.
    Divisible,
    /// How long apps with a contract keep the GPU while divisible work waits.
    OwnSlice,
}

/// The phases that leave most slack.
pub(super) struct Stagger {
    /// One for each app; none if not all frames are of one display.
    pub(super) phases: Vec<u32>,
    /// What one more app could reserve with them.
    pub(super) slack: Option<Span>,
}

/// The best stagger of apps, all frames of which are of one display.
pub(super) fn stagger(config: &Config, apps: &Together<'_>, claims: &[Claim]) -> Stagger {
    let shown = claims.iter().filter(|claim| claim.kind != Kind::None).map(|claim| match claim.kind {
        Kind::Frames { display, .. } => display,
        _ => None,
    });
    let mut displays: Vec<Option<u32>> = shown.collect();
    displays.dedup();
    let number = match displays[..] {
        [] => 0,
        [Some(number)] => number,
        _ => return Stagger { phases: Vec::new(), slack: None },
    };
    let period = config.display(DisplayId(u8::try_from(number).unwrap_or_default())).period_span();
    let demand = |claim: &Claim, stride| Demand { stride, etpf: claim.span, phase: 0 };
    let mut set: Vec<Demand> =
        apps.iter().zip(claims).map(|((_, params), claim)| demand(claim, params.stride)).collect();
    let phases = frames::best_stagger(period, &set);
    for (demand, phase) in set.iter_mut().zip(&phases) {
        demand.phase = *phase;
    }
    Stagger { slack: frames::slack(period, &set, frames::is_schedulable_staggered), phases }
}

/// Apps that are attached together, and what was said about them.
pub(super) struct Judged<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) config: &'a Config,
    pub(super) apps: &'a Together<'a>,
    pub(super) claims: &'a [Claim],
    pub(super) verdicts: &'a [AppVerdict],
}

/// All suggestions.
pub(super) fn all(judged: &Judged<'_>, stagger: &Stagger) -> Vec<Suggestion> {
    let each = (0..judged.verdicts.len()).filter_map(|index| etpf(judged, index));
    let mut out: Vec<Suggestion> = each.collect();
    if !contract::is_covered(judged.claims, judged.config) {
        out.extend(staggered(judged.verdicts, stagger));
        out.extend(group_max(judged));
    }
    out.extend(own_slice(judged));
    out.extend(undivided(judged));
    out
}

/// How many apps are covered.
pub(super) fn covered(verdicts: &[AppVerdict]) -> usize {
    verdicts.iter().filter(|app| app.covered && app.contract != ContractKind::None).count()
}

/// How many are with other parameters.
fn covered_with(scenario: &Scenario, config: &Config, apps: &Together<'_>) -> usize {
    let claims: Vec<Claim> = apps.iter().map(|(_, params)| contract::claim(params, config)).collect();
    covered(&judge_apps((scenario, config), apps, &claims))
}

/// The reservation that an app needs, if that fits, else the largest that does.
fn etpf(judged: &Judged<'_>, index: usize) -> Option<Suggestion> {
    let Judged { scenario, config, apps, claims, verdicts } = *judged;
    let app = &verdicts[index];
    if app.covered || app.missing_us.is_none() || app.contract == ContractKind::Server {
        return None;
    }
    let covered = contract::coverage(claims, config).covered;
    if index < covered && app.needs_us.is_some_and(|needs| needs <= app.etpf_us) {
        // Something else is missing.
        return None;
    }
    // With the protected set, or with all before it if it is the first that is not in it.
    let among = covered.max(index + 1);
    let largest = contract::largest_span(&claims[..among], index, config)?;
    let enough = app.needs_us.map(up_to_us).filter(|enough| *enough <= largest);
    let value = enough.unwrap_or_else(|| Span::from_us(largest.as_us()));
    let mut changed = apps.clone();
    changed[index].1 = AppParams { etpf: value, ..changed[index].1.framed() };
    let what = match (enough, app.needs_us) {
        (Some(_), _) => format!("enough for its frames; up to {} us fit", largest.as_us()),
        (None, Some(needs)) => format!("the largest that fits; its frames need {:.0} us", needs.ceil()),
        (None, None) => "the largest that fits; its frames have no bound".to_owned(),
    };
    Some(Suggestion {
        change: Change::Etpf,
        app: Some(app.name.clone()),
        value_us: Some(us(value)),
        covered: covered_with(scenario, config, &changed),
        text: format!("{}: etpf of {} us, {what}", app.name, value.as_us()),
    })
}

/// Whole microseconds, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was made from a span")]
fn up_to_us(us: f64) -> Span {
    Span::from_us(us.ceil() as u64)
}

fn staggered(judged: &[AppVerdict], stagger: &Stagger) -> Option<Suggestion> {
    let slack = stagger.slack?;
    let fits =
        |app: &&AppVerdict| app.etpf_us > 0.0 && app.needs_us.is_some_and(|needs| needs <= app.etpf_us);
    Some(Suggestion {
        change: Change::Stagger,
        app: None,
        value_us: None,
        covered: judged.iter().filter(fits).count(),
        text: format!(
            "stagger first deadlines as shown: all contracts fit, with {:.0} us to spare per period; \
             the scheduler does not count on it",
            us(slack)
        ),
    })
}

/// The longest groups with which everything is covered, if it is not as it is.
fn group_max(judged: &Judged<'_>) -> Option<Suggestion> {
    let Judged { scenario, config, apps, claims, .. } = *judged;
    let longest = contract::longest_group_max(claims, config)?;
    let mut shorter = *config;
    shorter.tuning.group_max = longest;
    Some(Suggestion {
        change: Change::GroupMax,
        app: None,
        value_us: Some(us(longest)),
        covered: covered_with(scenario, &shorter, apps),
        text: format!("groups of at most {} us (group_max): all contracts hold", longest.as_us()),
    })
}

/// The shortest slices of apps with a contract with which most are covered beside divisible work, if that is more.
fn own_slice(judged: &Judged<'_>) -> Option<Suggestion> {
    let Judged { scenario, config, apps, verdicts, .. } = *judged;
    let divisible = config.divisible?;
    let with = |us| {
        let divisible = Some(Divisible { own_slice: Span::from_us(us), ..divisible });
        covered_with(scenario, &Config { divisible, ..*config }, apps)
    };
    let (now, then) = (covered(verdicts), with(OWN_SLICE_US_MAX));
    let (mut too_short, mut enough) = (divisible.own_slice.as_us(), OWN_SLICE_US_MAX);
    if then <= now || too_short >= enough {
        return None;
    }
    while enough - too_short > 1 {
        let us = too_short + (enough - too_short) / 2;
        *if with(us) < then { &mut too_short } else { &mut enough } = us;
    }
    Some(Suggestion {
        change: Change::OwnSlice,
        app: None,
        value_us: Some(us(Span::from_us(enough))),
        covered: then,
        text: format!(
            "slices of {enough} us for apps with a contract (gpu.own_slice_us of the daemon, timeslice_us of a \
             scenario): {then} apps are covered in place of {now}"
        ),
    })
}

/// What would be covered if no work were divisible, if that is more.
fn undivided(judged: &Judged<'_>) -> Option<Suggestion> {
    let Judged { scenario, config, apps, verdicts, .. } = *judged;
    config.divisible?;
    let (now, then) =
        (covered(verdicts), covered_with(scenario, &Config { divisible: None, ..*config }, apps));
    (then > now).then(|| Suggestion {
        change: Change::Divisible,
        app: None,
        value_us: None,
        covered: then,
        text: format!("without divisible work {then} apps are covered in place of {now}"),
    })
}
