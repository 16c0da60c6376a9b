//! The clients that are scheduled.
//!
//! * `member`: one of them; `finding`: which one a tool means.
//! * `admission`: on which terms a client becomes or stays one; `promises`: whether its contract can be
//!   kept; `sources`: whose contract it takes part in; `families`: which process of an app has its contract.

mod admission;
mod families;
mod finding;
mod member;
mod promises;
mod sources;
#[cfg(test)]
mod tests;

use takt_core::contract::has_contract;
use takt_core::{AppId, Divisible, FrameDone, Span, Time};
use takt_ipc::message::TimeSlices;

use super::config::{AppSettings, Client, GivenSlices, Settings};
use super::rights::{Domain, Rule};
pub(crate) use admission::{Refusal, kept_priority};
pub(crate) use finding::Unfound;
pub(in crate::control) use finding::meant;
pub(crate) use member::Member;

/// The slice that Takt sets for programs without a contract. A client that no domain lists and that says it has
/// shorter ones is not believed.
const TOLD_SLICE: Span = Span::from_us(300);

/// The clients that are scheduled, by slot.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    slots: Vec<Option<Member>>,
    own_uid: u32,
}

impl Members {
    /// Removes the members that `keep` rejects.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Member) -> bool) {
        for slot in &mut self.slots {
            slot.take_if(|member| !keep(member));
        }
    }

    /// Gives the members that `are` chosen another name, to be shown.
    pub(super) fn rename(&mut self, are: impl Fn(&Member) -> bool, name: &str) {
        for member in self.slots.iter_mut().flatten().filter(|member| are(member)) {
            name.clone_into(&mut member.name);
        }
    }

    /// No members, and that many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: vec![None; slots], own_uid: rustix::process::geteuid().as_raw() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().flatten()
    }

    pub(crate) fn get(&self, app: AppId) -> Option<&Member> {
        self.slots.get(app.index())?.as_ref()
    }

    fn get_mut(&mut self, app: AppId) -> Option<&mut Member> {
        self.slots.get_mut(app.index())?.as_mut()
    }

    /// A user may have three times as many slots as it leaves free, so that no user takes the last one from
    /// another. The daemon's own user and root may have all. Apps that the configuration lists are not counted, so
    /// what else their user runs keeps none of them out.
    fn check_quota(&self, client: &Client<'_>, settings: &Settings) -> Result<(), Refusal> {
        let uid = client.who.uid;
        if settings.section(client).is_some() {
            return Ok(());
        }
        let held = self.iter().filter(|member| member.identity.uid == uid && !member.listed).count();
        let (taken, all) = (self.iter().count(), self.slots.len());
        let free = all - taken;
        if free == 0 || uid == 0 || uid == self.own_uid || held < free * 3 {
            return Ok(());
        }
        let reason = format!("user {uid} has {held} of {all} slots; the rest is for other users");
        Err(Refusal::for_now(Rule::Slots, reason))
    }

    /// Apps that the configuration lists find a slot whenever they come: as many slots as such apps are absent
    /// are for them alone.
    fn check_kept_slots(&self, client: &Client<'_>, settings: &Settings) -> Result<(), Refusal> {
        if settings.section(client).is_some() {
            return Ok(());
        }
        let is_here = |app: &AppSettings| self.iter().any(|member| app.is_for(&member.client()));
        let absent = settings.apps.iter().filter(|app| !is_here(app)).count();
        let free = self.slots.len() - self.iter().count();
        if absent == 0 || free > absent {
            return Ok(());
        }
        let reason = format!("the last {free} of {} slots are kept for listed apps", self.slots.len());
        Err(Refusal::for_now(Rule::Slots, reason))
    }

    pub(crate) fn finished(&mut self, at: Time, done: &FrameDone) {
        // The frame may be of the client that had the slot before.
        if let Some(member) = self.get_mut(done.app).filter(|member| done.met && member.since <= at) {
            member.first_met.get_or_insert(done.frame);
        }
    }

    /// Whether an app without a contract is there whose work the GPU interrupts.
    pub(crate) fn divide(&self) -> bool {
        self.staying().any(Member::is_divisible)
    }

    /// Whether work of clients of that domain may run beside all promises because the GPU interrupts it. All others are
    /// charged for that, so clients that no domain lists may not beside contracts of others: their work is like any
    /// other that fits, or waits.
    pub(crate) fn may_divide(&self, domain: &Domain, settings: &Settings) -> bool {
        let promised = |member: &Member| !member.domain.unlisted && has_contract(&member.params);
        let is_kept = || settings.apps.iter().any(|app| app.terms.has_contract());
        !domain.unlisted || !(is_kept() || self.staying().any(promised))
    }

    /// Decides anew whose work runs beside all promises; returns the apps whose parameters changed with that.
    pub(crate) fn redivide(&mut self, settings: &Settings) -> Vec<AppId> {
        let differs = |member: &&Member| {
            let divisible = member.interrupted && self.may_divide(&member.domain, settings);
            divisible != member.params.service.divisible
        };
        let changed: Vec<AppId> = self.staying().filter(differs).map(|member| member.app).collect();
        for app in &changed {
            if let Some(member) = self.get_mut(*app) {
                member.params.service.divisible = !member.params.service.divisible;
            }
        }
        changed
    }

    /// A client says which time slices its contexts have.
    pub(crate) fn has_slices(&mut self, app: AppId, slices: TimeSlices) {
        if let Some(member) = self.get_mut(app) {
            member.slices = Some(slices);
        }
    }

    /// How the GPU interrupts work, by what clients say of their time slices; an app that says nothing has those that
    /// drivers give. `comes` if another app is about to come that has said nothing yet.
    pub(crate) fn turns(&self, drivers: Divisible, given: GivenSlices, comes: bool) -> Divisible {
        let span = |us: u32| Some(Span::from_us(u64::from(us))).filter(|span| *span > Span::ZERO);
        let (mut longest, mut shortest) = (comes.then_some(drivers.slice), None);
        for member in self.staying() {
            if member.is_divisible() {
                let slice = member.slices.and_then(|slices| span(slices.longest_us));
                longest = longest.max(Some(slice.unwrap_or(drivers.slice)));
            } else {
                let slice = member.slices.and_then(|slices| span(slices.shortest_us));
                let least = if member.domain.unlisted { TOLD_SLICE } else { Span::ZERO };
                let slice = slice.map_or(drivers.own_slice, |slice| slice.max(least.min(drivers.own_slice)));
                shortest = Some(shortest.map_or(slice, |shortest: Span| shortest.min(slice)));
            }
        }
        Divisible {
            slice: longest.filter(|_| !given.divisible).unwrap_or(drivers.slice),
            own_slice: shortest.filter(|_| !given.own).unwrap_or(drivers.own_slice),
            ..drivers
        }
    }

    /// Gives a member another length of groups; none if it has that already.
    pub(crate) fn set_slice(&mut self, app: AppId, slice: Span) -> Option<&Member> {
        let member = self.get_mut(app)?;
        let before = member.slice_now.replace(slice).unwrap_or(member.max_slice);
        (before != slice).then_some(member)
    }

    /// A member is about to leave: its priority and its reservation are available to others.
    pub(crate) fn leaves(&mut self, app: AppId) {
        if let Some(member) = self.get_mut(app) {
            member.leaving = true;
        }
    }

    /// The members that are not about to leave.
    pub(crate) fn staying(&self) -> impl Iterator<Item = &Member> {
        self.iter().filter(|member| !member.leaving)
    }

    /// The members of a domain that are not about to leave.
    pub(crate) fn of_domain(&self, domain: &Domain) -> impl Iterator<Item = &Member> {
        self.staying().filter(|member| member.domain.name == domain.name)
    }

    /// Takes a member off the list.
    pub(crate) fn remove(&mut self, app: AppId) -> Option<Member> {
        self.slots.get_mut(app.index())?.take()
    }

    /// Puts a former member back at its slot.
    pub(crate) fn put_back(&mut self, member: Member) {
        if let Some(slot) = self.slots.get_mut(member.app.index()) {
            *slot = Some(member);
        }
    }
}
