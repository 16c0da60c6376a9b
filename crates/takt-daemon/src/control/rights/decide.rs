//! The decision: which of the terms that a client asks for it gets.

use takt_core::Span;

use super::{Domain, Rule};
use crate::control::contract::ms;
use crate::control::terms::Terms;

/// GPU time that is reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reserved {
    /// Per frame.
    pub etpf: Span,
    /// Of frames and servers, as a share of the GPU in millionths.
    pub share_ppm: u64,
}

impl std::ops::Add for Reserved {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { etpf: self.etpf + other.etpf, share_ppm: self.share_ppm.saturating_add(other.share_ppm) }
    }
}

/// What the other apps of a domain have, and what is kept for those of them that the configuration lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Apps that are scheduled.
    pub apps: usize,
    /// The time that they reserve.
    pub reserved: Reserved,
}

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked<'a> {
    /// The terms, with those of the configuration where they are for this client.
    pub terms: &'a Terms,
    /// The time that these reserve.
    pub reserved: Reserved,
    /// Longest group of apps without the right to more.
    pub slice_max: Span,
    /// By which rule these are the terms: [`Rule::WithinRights`], [`Rule::ListedApp`],
    /// [`Rule::NameOfAnotherDomain`] or [`Rule::ExecutableHash`].
    pub by: Rule,
    /// Whether an app is refused rather than scheduled without the time that it asks for.
    pub refuses: bool,
}

/// Something that a client asked for and does not get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// By which rule.
    pub rule: Rule,
    /// What it asked for, what it gets, and what to do about it.
    pub text: String,
}

/// What was decided about a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The terms that it gets; none if it is refused.
    pub terms: Option<Terms>,
    /// What it does not get, in the order in which it was decided.
    pub limits: Vec<Limit>,
    /// By which rule it got the rest.
    by: Rule,
}

impl Decision {
    /// The rule that decided: the one that refused, else the first one that took something away, else the
    /// one that granted.
    pub fn rule(&self) -> Rule {
        let decisive = if self.terms.is_none() { self.limits.last() } else { self.limits.first() };
        decisive.map_or(self.by, |limit| limit.rule)
    }

    /// What it does not get, in words; empty if it gets everything.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.limits.iter().map(|limit| limit.text.as_str()).collect();
        texts.join("; ")
    }
}

/// Decides which of the terms that a client of a domain asks for it gets, beside the other apps of that
/// domain.
pub fn decide(domain: &Domain, asked: &Asked<'_>, used: &Used) -> Decision {
    let mut decision = Decision { terms: None, limits: Vec::new(), by: asked.by };
    let rights = &domain.rights;
    let mut limit = |rule: Rule, what: String| {
        let text = format!("{what} (domain {}, rule {rule}): {}", domain.name, remedy(domain, rule));
        decision.limits.push(Limit { rule, text });
    };
    if let Some(most) = rights.apps_max.filter(|most| used.apps >= *most) {
        limit(Rule::AppsMax, format!("{} apps are scheduled and {most} may be", used.apps));
        return decision;
    }
    match asked.by {
        Rule::NameOfAnotherDomain => {
            limit(asked.by, "the terms listed for this name are for another domain or executable".to_owned());
        }
        Rule::ExecutableHash => {
            limit(asked.by, "its executable has not the contents that are listed for it".to_owned());
        }
        _ => {}
    }
    let mut terms = asked.terms.clone();
    if let Some(priority) = terms.priority.filter(|priority| *priority > rights.priority_max) {
        let most = rights.priority_max;
        limit(Rule::PriorityMax, format!("it asks for priority {priority} and gets {most}"));
        terms.priority = Some(most);
    }
    if let Some(slice) = terms.max_slice.filter(|slice| *slice > asked.slice_max && !rights.uncut) {
        let (slice, most) = (if_bounded(slice), if_bounded(asked.slice_max));
        limit(Rule::Uncut, format!("it asks for groups of {slice} and gets {most}"));
        terms.max_slice = Some(asked.slice_max);
    }
    if let Some((rule, what)) = beyond(domain, asked.reserved, used.reserved) {
        limit(rule, what);
        if asked.refuses && rights.etpf_max != Some(Span::ZERO) {
            return decision;
        }
        terms = terms.without_contract();
    }
    Decision { terms: Some(terms), ..decision }
}

/// Which limit of a domain a reservation would exceed beside the others, and in words.
fn beyond(domain: &Domain, asked: Reserved, used: Reserved) -> Option<(Rule, String)> {
    let (rights, all) = (&domain.rights, asked + used);
    if let Some(most) = rights.etpf_max.filter(|most| asked.etpf > Span::ZERO && all.etpf > *most) {
        let (asked, most, used) = (ms(asked.etpf), ms(most), ms(used.etpf));
        let what = format!("it asks for {asked} ms per frame of {most} ms, of which {used} ms are reserved");
        return Some((Rule::EtpfMax, what));
    }
    let most = rights.share_max_ppm.filter(|most| asked.share_ppm > 0 && all.share_ppm > *most)?;
    let (asked, most, used) = (percent(asked.share_ppm), percent(most), percent(used.share_ppm));
    Some((
        Rule::ShareMax,
        format!("it asks for {asked} % of the GPU of {most} %, of which {used} % are reserved"),
    ))
}

/// What to do about a limit.
fn remedy(domain: &Domain, rule: Rule) -> String {
    let key = match rule {
        Rule::NameOfAnotherDomain => {
            return "name the domain of this client in the [[app]] section".to_owned();
        }
        Rule::ExecutableHash => {
            return "install the released program, or list the sha256 of this one".to_owned();
        }
        Rule::PriorityMax => "priority_max",
        Rule::EtpfMax => "etpf_ms_max",
        Rule::ShareMax => "share_max",
        Rule::AppsMax => "apps_max",
        _ => "uncut",
    };
    match domain.unlisted {
        true => "list its user, unit or container in a [[domain]] section of the daemon's configuration"
            .to_owned(),
        false => format!("ask for less, or change {key} of the domain in the daemon's configuration"),
    }
}

fn if_bounded(span: Span) -> String {
    if span == Span::FOREVER { "any length".to_owned() } else { format!("{} ms", ms(span)) }
}

fn percent(ppm: u64) -> f64 {
    ppm as f64 / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::super::{Belonging, Domains, Level, Rights};
    use super::*;
    use crate::control::contract::Timing;

    const SLICE: Span = Span::from_ms(1);

    fn domain(level: Level, rights: Rights) -> Domain {
        Domain { name: "ivi".to_owned(), level, belonging: Belonging::default(), rights, unlisted: false }
    }

    fn asked(terms: &Terms, share_ppm: u64) -> Asked<'_> {
        let reserved = Reserved { etpf: terms.etpf.unwrap_or_default(), share_ppm };
        Asked { terms, reserved, slice_max: SLICE, by: Rule::WithinRights, refuses: false }
    }

    fn greedy() -> Terms {
        Terms {
            priority: Some(u32::MAX),
            etpf: Some(Span::from_ms(16)),
            max_slice: Some(Span::FOREVER),
            ..Terms::default()
        }
    }

    #[test]
    fn an_unlisted_user_that_asks_for_everything_is_best_effort() {
        let unlisted = Domains::default().unlisted;
        let terms = greedy();
        let decision = decide(&unlisted, &asked(&terms, 960_000), &Used::default());
        let granted = decision.terms.as_ref().expect("scheduled");
        assert_eq!((granted.etpf, granted.max_slice), (Some(Span::ZERO), Some(SLICE)));
        assert!(
            unlisted.core_priority(granted.priority.expect("one"))
                < domain(Level::BestEffort, Rights::default()).core_priority(0)
        );
        let rules: Vec<Rule> = decision.limits.iter().map(|limit| limit.rule).collect();
        assert_eq!(rules, [Rule::PriorityMax, Rule::Uncut, Rule::EtpfMax]);
        assert_eq!(decision.rule(), Rule::PriorityMax);
        assert!(decision.text().contains("it asks for 16 ms per frame of 0 ms"), "{}", decision.text());
        assert!(
            decision.text().contains("domain unlisted, rule etpf-max): list its user"),
            "{}",
            decision.text()
        );
        let refusing = Asked { refuses: true, ..asked(&terms, 960_000) };
        assert_eq!(decide(&unlisted, &refusing, &Used::default()), decision, "not even by admission");
        let server = Terms {
            timing: Some(Timing::Server {
                runtime: SLICE,
                period: Span::from_ms(2),
                hard: true,
                share: false,
            }),
            ..Terms::default()
        };
        let decision = decide(&unlisted, &asked(&server, 500_000), &Used::default());
        assert_eq!(decision.rule(), Rule::ShareMax);
        assert_eq!(decision.terms.and_then(|terms| terms.timing), Some(Timing::default()));
    }

    #[test]
    fn within_its_rights_a_client_gets_what_it_asks_for() {
        let rights = Rights { etpf_max: Some(Span::from_ms(16)), uncut: true, ..Level::Standard.rights() };
        let terms = Terms { priority: Some(80), ..greedy() };
        let decision = decide(&domain(Level::Standard, rights), &asked(&terms, 960_000), &Used::default());
        assert_eq!((decision.rule(), decision.terms.as_ref()), (Rule::WithinRights, Some(&terms)));
        assert_eq!(decision.text(), "");
        let listed = Asked { by: Rule::ListedApp, ..asked(&terms, 0) };
        assert_eq!(
            decide(&domain(Level::Standard, rights), &listed, &Used::default()).rule(),
            Rule::ListedApp
        );
    }

    #[test]
    fn the_apps_of_a_domain_share_its_time() {
        let rights = Rights {
            etpf_max: Some(Span::from_ms(5)),
            share_max_ppm: Some(300_000),
            apps_max: Some(3),
            ..Rights::default()
        };
        let ivi = domain(Level::Standard, rights);
        let terms = Terms { etpf: Some(Span::from_ms(3)), ..Terms::default() };
        let used = |apps, etpf_ms, share_ppm| {
            let reserved = Reserved { etpf: Span::from_ms(etpf_ms), share_ppm };
            Used { apps, reserved }
        };
        let of = |refuses, used: Used| {
            let decision = decide(&ivi, &Asked { refuses, ..asked(&terms, 180_000) }, &used);
            (decision.rule(), decision.terms.and_then(|terms| terms.etpf))
        };
        assert_eq!(of(true, used(2, 2, 120_000)), (Rule::WithinRights, Some(Span::from_ms(3))));
        assert_eq!(of(false, used(2, 3, 0)), (Rule::EtpfMax, Some(Span::ZERO)), "scheduled without it");
        assert_eq!(of(true, used(2, 3, 0)), (Rule::EtpfMax, None), "refused");
        assert_eq!(of(true, used(2, 0, 120_001)), (Rule::ShareMax, None));
        assert_eq!(of(false, used(3, 0, 0)), (Rule::AppsMax, None));
    }

    #[test]
    fn a_listed_name_is_no_right() {
        let ivi = domain(Level::Standard, Level::Standard.rights());
        let terms = Terms { priority: Some(7), ..Terms::default() };
        let forged = Asked { by: Rule::NameOfAnotherDomain, ..asked(&terms, 0) };
        let decision = decide(&ivi, &forged, &Used::default());
        assert_eq!((decision.rule(), decision.terms.as_ref()), (Rule::NameOfAnotherDomain, Some(&terms)));
        assert!(
            decision.text().contains("for another domain or executable (domain ivi"),
            "{}",
            decision.text()
        );
    }
}
