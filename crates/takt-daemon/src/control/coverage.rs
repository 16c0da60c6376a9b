//! Which contracts hold together, and why one does not, in words; for previews and for `takt check`.

use takt_core::analysis::contracts::{Claim, Reason, Verdict};
use takt_core::{AppParams, Config, Span, contract};

use super::contract::ms;

/// Why an app is promised nothing whose contract fits ([`contract::has_shared_gaps`]).
pub const SHARED_GAPS: &str = "its frames have both gaps and sources, for which nothing is promised yet";

/// A contract to be judged beside others.
#[derive(Copy, Clone, Debug)]
pub struct Contract<'a> {
    /// Its app.
    pub name: &'a str,
    /// What that asks for.
    pub params: AppParams,
    /// Whether other apps share it.
    pub shared: bool,
}

/// Why a contract does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lack {
    /// In one clause.
    pub why: String,
    /// The time that is missing, where that is known.
    pub missing: Option<Span>,
}

/// What holds for each of these contracts, most important first: none where it holds, else why it does not.
pub fn lacks(contracts: &[Contract<'_>], config: &Config) -> Vec<Option<Lack>> {
    let names: Vec<&str> = contracts.iter().map(|contract| contract.name).collect();
    let claims: Vec<_> = contracts.iter().map(|one| contract::claim(&one.params, config)).collect();
    let verdicts = contract::coverage(&claims, config).verdicts;
    let lack = |(index, verdict): (usize, Verdict)| match verdict {
        Verdict::Covered => {
            let Contract { params, shared, .. } = &contracts[index];
            let shared_gaps = contract::has_shared_gaps(params, *shared);
            shared_gaps.then(|| Lack { why: SHARED_GAPS.to_owned(), missing: None })
        }
        Verdict::Uncovered(reason) => {
            let missing = missing(reason, &claims[..=index], config);
            Some(Lack { why: why_not(reason, missing, index, &names), missing })
        }
    };
    verdicts.into_iter().enumerate().map(lack).collect()
}

/// The time that the last of these claims lacks, where that is known.
fn missing(reason: Reason, claims: &[Claim], config: &Config) -> Option<Span> {
    match reason {
        Reason::Missing { time, .. } => Some(time),
        Reason::Overload { .. } => {
            let last = claims.len().checked_sub(1)?;
            let largest = contract::largest_span(claims, last, config).unwrap_or_default();
            Some(claims[last].span.saturating_sub(largest))
        }
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
