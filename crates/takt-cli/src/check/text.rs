//! A verdict in words.

use takt_daemon::control::coverage;

use super::{AppVerdict, ContractKind, Lack, Servers, Verdict, Why, us};
use crate::table::Table;

/// Why an app is not covered; the names are those of all apps, most important first.
pub(super) fn why_not(lack: &Lack, index: usize, names: &[&str]) -> String {
    match (lack.why, lack.missing) {
        (Why::Frames, None) => "its frames have no bound".to_owned(),
        (Why::Frames, Some(missing)) => {
            format!("its frames may need {:.0} us more than etpf", us(missing).ceil())
        }
        (Why::Groups, None) => "its groups have no bound, and group_max limits them".to_owned(),
        (Why::Groups, Some(missing)) => {
            format!("its groups may be {:.0} us longer than group_max", us(missing).ceil())
        }
        (Why::SharedGaps, _) => coverage::SHARED_GAPS.to_owned(),
        (Why::Contract(reason), missing) => coverage::why_not(reason, missing, index, names),
    }
}

/// The verdict, for people.
pub(super) fn describe(verdict: &Verdict) -> String {
    let reserving = verdict.apps.iter().filter(|app| app.contract != ContractKind::None);
    let covered = super::suggest::covered(&verdict.apps);
    let mut notes = format!("Covered: {covered} of {} apps with a contract.\n", reserving.count());
    for caveat in &verdict.caveats {
        notes += &format!("The guarantee assumes otherwise: {caveat}.\n");
    }
    notes += &verdict.servers.as_ref().map(servers).unwrap_or_default();
    for suggestion in &verdict.suggestions {
        notes += &format!("Suggestion: {}.\n", suggestion.text);
    }
    let when =
        if verdict.at_s > 0.0 { format!(", worst from {:.3} s on", verdict.at_s) } else { String::new() };
    let head = format!("{}{when}; GPU {}", verdict.scenario, verdict.gpu);
    format!("{head}\n\n{}\n{}\n{notes}", table(verdict), sentence(verdict))
}

fn ms(us: f64) -> String {
    format!("{:.3}", us / 1000.0)
}

fn table(verdict: &Verdict) -> String {
    let mut table = Table::new(
        "prio, <app, <contract, FPS, etpf ms, could grow by, frame needs, stagger, <covered by the guarantee",
    );
    let or_dash = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), ms);
    for (index, app) in verdict.apps.iter().enumerate() {
        let phase = verdict.stagger.get(index).map_or_else(|| "-".to_owned(), u32::to_string);
        table.row(vec![
            app.priority.to_string(),
            app.name.clone(),
            contract(app).to_owned(),
            format!("{:.1}", app.fps),
            ms(app.etpf_us),
            or_dash(app.headroom_us),
            or_dash(app.needs_us),
            phase,
            covered_by(app),
        ]);
    }
    table.render()
}

/// Whether the guarantee covers an app, and by which contract.
fn covered_by(app: &AppVerdict) -> String {
    match (&app.why_not, &app.runs_on) {
        (Some(why), _) => format!("no: {why}"),
        (None, Some(on)) => {
            format!("yes: by the contract of {}, {:.0} us for each group", on.app, on.per_group_us.ceil())
        }
        (None, None) => "yes".to_owned(),
    }
}

const fn contract(app: &AppVerdict) -> &'static str {
    match app.contract {
        ContractKind::Display => "display",
        ContractKind::OwnClock => "own clock",
        ContractKind::Server => "server",
        ContractKind::None => "none",
    }
}

fn sentence(verdict: &Verdict) -> String {
    let reserved = format!("{:.1} % of the GPU reserved", verdict.reserved * 100.0);
    match (verdict.slack_us, verdict.slack_staggered_us) {
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
    }
}

fn servers(servers: &Servers) -> String {
    let Servers { count, share, .. } = servers;
    let demand = format!("Bandwidth servers: {count}, {:.1} % of the GPU", share * 100.0);
    match (servers.admitted, servers.preemptive) {
        (true, true) => format!("{demand}; each has its budget by its deadline.\n"),
        (true, false) => {
            format!("{demand}; each has its budget by its deadline, and one group for each slot in flight.\n")
        }
        (false, _) => format!(
            "{demand}: not admitted, since their budgets do not fit into their deadlines; \
             lower reserve_us or lengthen period_us or deadline_us.\n"
        ),
    }
}
