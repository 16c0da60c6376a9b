//! Compares the contracts of all apps before and after an order.

use std::collections::BTreeMap;

use takt_core::AppId;
use takt_core::contract::has_contract;

use super::ask::{AppPreview, ContractPreview, PreviewAnswer};
use super::config::Settings;
use super::coverage::{self, Contract, Lack};
use super::members::{Member, Members};
use super::view::HIDDEN;

/// Apps, and what they are scheduled by.
pub(super) struct World<'a> {
    pub(super) members: &'a Members,
    pub(super) settings: &'a Settings,
}

/// What differs between two worlds.
pub(super) fn compare(now: &World<'_>, then: &World<'_>) -> PreviewAnswer {
    let (before, after) = (now.contracts(), then.contracts());
    let mut answer = PreviewAnswer::default();
    let mut members: Vec<&Member> = now.members.iter().filter(|member| !member.leaving).collect();
    members.sort_by_key(|member| std::cmp::Reverse(member.params.priority));
    for member in members {
        let Some(was) = before.get(&member.app) else { continue };
        let is = after.get(&member.app);
        let holds = |contract: Option<&ContractPreview>| contract.and_then(|one| one.covered) == Some(true);
        match (holds(Some(was)), holds(is)) {
            (true, false) => answer.loses.push(member.name.clone()),
            (false, true) => answer.gains.push(member.name.clone()),
            _ => {}
        }
        if member.name != HIDDEN {
            let guaranteed = Some(member.statement.is_guaranteed());
            let was = ContractPreview { guaranteed, ..was.clone() };
            let name = member.name.clone();
            answer.apps.push(AppPreview { app: member.app.0, name, before: was, after: is.cloned() });
        }
    }
    answer
}

impl World<'_> {
    /// The contracts of all apps that stay.
    fn contracts(&self) -> BTreeMap<AppId, ContractPreview> {
        let Self { members, settings } = self;
        let mut all: Vec<&Member> = members.iter().filter(|member| !member.leaving).collect();
        all.sort_by_key(|member| std::cmp::Reverse(member.params.priority));
        let counts = |member: &&&Member| has_contract(&member.params) && !member.stands_still();
        let promised: Vec<&Member> = all.iter().filter(counts).copied().collect();
        let claims: Vec<_> = promised
            .iter()
            .map(|member| Contract {
                name: &member.name,
                params: member.params,
                shared: members.has_sources(member.app),
            })
            .collect();
        let lacks = coverage::lacks(&claims, &settings.core);
        let mut lacks: BTreeMap<AppId, Option<Lack>> =
            promised.iter().map(|member| member.app).zip(lacks).collect();
        let keeps = takt_policies::keeps_contracts(&settings.policy);
        let contract = |member: &Member| {
            let (covered, why_not) = match lacks.remove(&member.app) {
                _ if !has_contract(&member.params) => (None, None),
                None => (Some(false), Some("it is paused".to_owned())),
                Some(_) if !keeps => (Some(false), Some(format!("policy {} keeps none", settings.policy))),
                Some(lack) => (Some(lack.is_none()), lack.map(|lack| lack.why)),
            };
            let (priority, contract, paused) = (member.priority(), member.contract(), member.paused);
            ContractPreview { priority, contract, covered, why_not, guaranteed: None, paused }
        };
        let mut contract = contract;
        all.into_iter().map(|member| (member.app, contract(member))).collect()
    }
}
