//! Which contracts hold together, and why one does not, in words; for previews and for `takt check`.

use takt_core::analysis::contracts::{Reason, Verdict};
use takt_core::{AppParams, Config, Span, contract};

use super::contract::ms;

/// What holds for each of these contracts, most important first: none where it holds, else why it does not.
/// The names are those of their apps.
pub fn lacks(contracts: &[(&str, AppParams)], config: &Config) -> Vec<Option<String>> {
    let names: Vec<&str> = contracts.iter().map(|(name, _)| *name).collect();
    let claims: Vec<_> = contracts.iter().map(|(_, params)| contract::claim(params, config)).collect();
    let verdicts = contract::coverage(&claims, config).verdicts;
    let lack = |(index, verdict): (usize, Verdict)| match verdict {
        Verdict::Covered => None,
        Verdict::Uncovered(reason) => Some(why_not(reason, known_missing(reason), index, &names)),
    };
    verdicts.into_iter().enumerate().map(lack).collect()
}

/// The time that is missing, where the reason itself says so.
fn known_missing(reason: Reason) -> Option<Span> {
    match reason {
        Reason::Missing { time, .. } => Some(time),
        _ => None,
    }
}

/// Why a contract does not hold; `missing` is the time that it lacks, if that is known, `index` its place
/// among the apps of these names, most important first.
pub fn why_not(reason: Reason, missing: Option<Span>, index: usize, names: &[&str]) -> String {
    let us = |span: Span| format!("{:.0} us", (span.as_ns() as f64 / 1000.0).ceil());
    match reason {
        Reason::NoClaim => "claims nothing: best effort".to_owned(),
        Reason::Unbounded => "its period, deadline or length has no bound".to_owned(),
        Reason::Overload { permille } => {
            let needs = missing
                .map_or_else(String::new, |missing| format!("needs {} less per period: ", us(missing)));
            format!("{needs}all down to it claim {:.1} % of the GPU", permille as f64 / 10.0)
        }
        Reason::Missing { time, at } => {
            format!("needs {} less in {:.1} ms", us(missing.unwrap_or(time)), ms(at))
        }
        Reason::Follows(first) => {
            format!("{} in the order: follows {}, which is not covered", ordinal(index + 1), names[first])
        }
        Reason::Limit => "the analysis gave up: too many apps or periods".to_owned(),
    }
}

fn ordinal(number: usize) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}
