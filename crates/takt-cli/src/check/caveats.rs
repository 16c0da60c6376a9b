//! What a scenario contains that the guarantee assumes away.

use takt_core::service::Reservation;
use takt_core::{Span, contract};
use takt_predict::profile::Sharing;
use takt_sim::Scenario;
use takt_sim::demand::{gaps, may_overrun};
use takt_sim::model::AppSpec;

use super::us;

/// All of it, a sentence each. `measured` is what is known of the GPU of this machine.
pub(super) fn caveats(scenario: &Scenario, measured: Option<Sharing>) -> Vec<String> {
    let mut out = Vec::new();
    if scenario.policy != takt_policies::NAMES[0] {
        out.push(format!("the policy is {}", scenario.policy));
    }
    of_apps(scenario, &mut out);
    of_delays(scenario, measured, &mut out);
    of_turns(scenario, &mut out);
    out
}

fn of_apps(scenario: &Scenario, out: &mut Vec<String>) {
    let margins = &scenario.config.margins;
    if let Some(names) = names(scenario, |app| may_overrun(app, margins)) {
        out.push(format!("groups may run longer than their conservative prediction: {names}"));
    }
    if let Some(names) = names(scenario, |app| app.submit_delay.hi + app.cpu.hi > Span::ZERO) {
        out.push(format!("frames may arrive later than their release: {names}"));
    }
    let has_contract = |app: &AppSpec| contract::has_contract(&app.params);
    if let Some(names) = names(scenario, |app| has_contract(app) && has_more_gaps(app)) {
        out.push(format!("frames or jobs have more or longer gaps than gaps and gap_us declare: {names}"));
    }
    if let Some(names) = names(scenario, |app| has_shared_gaps(scenario, app)) {
        out.push(format!("frames have both gaps and sources, of which nothing is proven: {names}"));
    }
    let reserve = |app: &AppSpec| match app.params.service.reservation {
        Reservation::Own(reserve) => Some(reserve),
        _ => None,
    };
    let serves = scenario.policy == "timeline" || scenario.policy.starts_with("edf-cbs");
    let unserved = |app: &AppSpec| reserve(app).is_some() && !serves;
    if let Some(names) = names(scenario, unserved) {
        out.push(format!("{} does not serve budgets by their deadlines: {names}", scenario.policy));
    }
    let early = |app: &AppSpec| {
        let server = app.params.framed().server();
        server.is_some_and(|reserve| reserve.deadline < reserve.period)
    };
    if let Some(names) = names(scenario, early) {
        out.push(format!("budgets are wanted before the end of their periods: {names}"));
    }
}

/// Whether an app may wait within a frame more often or longer than it has declared.
fn has_more_gaps(app: &AppSpec) -> bool {
    let (has, declared) = (gaps(app), app.params.service.gaps);
    has.count > declared.count || has.count > 0 && has.length > declared.length
}

/// Whether the frames of an app have gaps, and other apps share them.
fn has_shared_gaps(scenario: &Scenario, owner: &AppSpec) -> bool {
    let index = scenario.apps.iter().position(|app| app.name == owner.name);
    let shares = |app: &AppSpec| match app.params.service.reservation {
        Reservation::Shared(shared) => Some(shared.index()) == index,
        _ => false,
    };
    contract::has_shared_gaps(&owner.params, scenario.apps.iter().any(shares))
}

fn of_delays(scenario: &Scenario, measured: Option<Sharing>, out: &mut Vec<String>) {
    let (gpu, margins) = (&scenario.gpu, &scenario.config.margins);
    let measured = measured.map(|sharing| sharing.delay_us).filter(|delay| *delay > us(margins.turnaround()));
    if let Some(delay) = measured {
        let known = us(margins.turnaround());
        out.push(format!(
            "dispatch and completion took {delay:.0} us on this machine, the margins say {known:.0}"
        ));
    } else if gpu.dispatch_delay.hi > margins.dispatch_upper
        || gpu.completion_delay.hi > margins.completion_upper
    {
        out.push("dispatch or completion may take longer than the margins say".to_owned());
    }
    if gpu.lost_completion_ppm > 0 || !gpu.stalls.is_empty() || !gpu.clock.is_empty() {
        out.push("the GPU stalls, changes its clock or loses completions".to_owned());
    }
}

fn of_turns(scenario: &Scenario, out: &mut Vec<String>) {
    let gpu = &scenario.gpu;
    let slice = scenario.config.tuning.timeslice;
    let counted = gpu.switch > Span::ZERO && gpu.is_time_shared() || gpu.divisible.is_some();
    let shorter = |app: &AppSpec| counted && app.params.service.timeslice_or(slice) < slice;
    if let Some(names) = names(scenario, shorter) {
        out.push(format!("turns are shorter than the test counts with: {names}"));
    }
    if !gpu.is_time_shared() {
        if gpu.switch > Span::ZERO {
            out.push(format!("a change between apps costs {} us, which no margin has", us(gpu.switch)));
        }
        return;
    }
    if scenario.policy != "timeline" {
        out.push(format!("{} does not keep promises where contexts take turns", scenario.policy));
    }
    if gpu.late_ends {
        out.push("groups that outlast their turn are seen to end a turn later".to_owned());
    }
}

fn names(scenario: &Scenario, wanted: impl Fn(&AppSpec) -> bool) -> Option<String> {
    let names: Vec<&str> =
        scenario.apps.iter().filter(|app| wanted(app)).map(|app| app.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
