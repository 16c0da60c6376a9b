//! Contracts that several apps share.

use takt_core::service::Reservation;
use takt_core::{AppId, AppParams, Charge, Config, Span};
use takt_sim::Scenario;
use takt_sim::model::AppSpec;

use super::{AppVerdict, Lack, RunsOn, Together, text, us};

/// The app whose contract one with these parameters runs on, as the core has it: frames or a server that it shares, or
/// the server of the first app that it feeds, be it through others.
fn host<'a>(
    scenario: &'a Scenario,
    apps: &Together<'_>,
    params: &AppParams,
) -> Option<(&'a AppSpec, AppParams)> {
    if params.framed().etpf > Span::ZERO {
        return None;
    }
    // Jobs of a server with gaps are frames: producers do not run on their account.
    let there = |app: AppId| {
        let spec = scenario.apps.get(app.index())?;
        let (_, params) = apps.iter().find(|(other, _)| other.name == spec.name)?;
        Some((spec, params.framed()))
    };
    if let Reservation::Shared(owner) = params.service.reservation {
        return there(owner).filter(|(_, params)| takt_core::contract::has_contract(params));
    }
    let mut consumer = params.service.feeds.and_then(there);
    // Chains have no circles; the bound holds whatever they have.
    for _ in 0..apps.len() {
        let (spec, params) = consumer?;
        if params.server().is_some() {
            return Some((spec, params));
        }
        consumer = params.service.feeds.and_then(there);
    }
    None
}

/// The sources of the frames of `owner`.
pub(super) fn sources<'a>(scenario: &Scenario, apps: &Together<'a>, owner: &AppSpec) -> Vec<&'a AppSpec> {
    let is_source = |params: &AppParams| {
        let shares = matches!(params.service.reservation, Reservation::Shared(_));
        let host = host(scenario, apps, params).filter(|(_, host)| shares && host.etpf > Span::ZERO);
        host.is_some_and(|(host, _)| host.name == owner.name)
    };
    apps.iter().filter(|(_, params)| is_source(params)).map(|(app, _)| *app).collect()
}

/// Says of apps that run on the contracts of others whether those are covered.
pub(super) fn by_others(
    (scenario, config): (&Scenario, &Config),
    apps: &Together<'_>,
    judged: &mut [AppVerdict],
) {
    if scenario.policy != takt_policies::NAMES[0] {
        return;
    }
    for (index, (app, params)) in apps.iter().enumerate() {
        let own = takt_core::contract::has_contract(params);
        let Some((host, contract)) = host(scenario, apps, params).filter(|_| !own) else {
            continue;
        };
        let covered = judged.iter().any(|other| other.name == host.name && other.covered);
        let verdict = &mut judged[index];
        let per_group = us(charge(&contract, config));
        verdict.runs_on = Some(RunsOn { app: host.name.clone(), per_group_us: per_group });
        verdict.covered = covered;
        if !covered {
            verdict.why_not = Some(format!("runs on the contract of {}, which is not covered", host.name));
        } else if contract.server().is_some()
            && let Some(lack) = Lack::of_groups(std::iter::once(app), false, config)
        {
            // Frames are not covered if groups of a source are too long; a server is, for other groups.
            (verdict.covered, verdict.missing_us) = (false, lack.missing.map(us));
            verdict.why_not = Some(text::why_not(&lack, index, &[]));
        }
    }
}

/// What each group on that contract is charged besides its length.
fn charge(contract: &AppParams, config: &Config) -> Span {
    match contract.server() {
        Some(_) => config.per_arrival() + config.gpu.switches(Span::ZERO, Charge::Enters),
        None => config.per_group() + config.per_source(),
    }
}
