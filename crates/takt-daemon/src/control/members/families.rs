//! Processes that one command started are one app: its contract is reserved once, and one of them has it.
//!
//! That is the first one to come. It hands the contract on to the first one that has work if it had none itself by
//! then, and to one that is left when it goes.

use takt_core::AppId;

use super::{Member, Members};
use crate::control::config::Client;
use crate::control::rights::{Decision, Limit, Rule};

/// What a member is in its family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Tells its family from others of its user.
    pub(crate) number: u64,
    /// It has the contract, if there is one.
    holds: bool,
    /// It had work for the GPU.
    worked: bool,
}

impl Member {
    pub(super) fn family_number(&self) -> Option<u64> {
        self.family.map(|part| part.number)
    }

    /// Whether another member is of the same app.
    pub(super) fn is_kin_of(&self, other: &Self) -> bool {
        self.family.is_some()
            && self.family_number() == other.family_number()
            && self.is_beside(&other.client())
    }

    /// Whether it has the contract of its app, or is one by itself.
    pub(super) fn holds(&self) -> bool {
        self.family.is_none_or(|part| part.holds)
    }

    fn is_beside(&self, client: &Client<'_>) -> bool {
        self.identity.uid == client.who.uid && self.domain.name == client.domain.name
    }
}

impl Members {
    /// What a client becomes in a family: it has the contract unless another process of the family does. Clients of
    /// one process have one each, for they use the GPU in ways that are scheduled differently.
    pub(super) fn part(&self, number: u64, client: &Client<'_>) -> Part {
        Part { number, holds: self.holder(None, client, number).is_none(), worked: false }
    }

    /// Why a client does not get the contract that it asks for, if another process of its family has it.
    pub(super) fn held_by_kin(
        &self,
        app: Option<AppId>,
        client: &Client<'_>,
        family: Option<u64>,
    ) -> Option<Limit> {
        let holder = self.holder(app, client, family?)?;
        let text = format!("process {} of the same app has its contract", holder.identity.pid);
        Some(Limit { rule: Rule::Family, text })
    }

    /// Another process's member that has the contract of a family.
    fn holder(&self, app: Option<AppId>, client: &Client<'_>, number: u64) -> Option<&Member> {
        let own = client.who.pid;
        let other = |member: &Member| Some(member.app) != app && (own == 0 || member.identity.pid != own);
        let holds = |member: &Member| member.family.is_some_and(|part| part.number == number && part.holds);
        self.staying().find(|member| holds(member) && other(member) && member.is_beside(client))
    }

    /// A member has work: the member that has its contract, which never had any, if that is another one.
    pub(crate) fn works(&mut self, app: AppId) -> Option<AppId> {
        let part = self.get_mut(app)?.family.as_mut()?;
        if std::mem::replace(&mut part.worked, true) || part.holds {
            return None;
        }
        let (number, member) = (part.number, self.get(app)?);
        let holder = self.holder(Some(app), &member.client(), number)?;
        holder.family.is_some_and(|part| !part.worked).then_some(holder.app)
    }

    /// Members that are to have the contract of their family, which none has any more; of each family one that has
    /// work, if there is one.
    pub(crate) fn heirs(&self) -> Vec<AppId> {
        let mut heirs: Vec<&Member> = Vec::new();
        let orphans = self.staying().filter(|member| !member.holds());
        let orphans = orphans.filter(|member| {
            !self
                .staying()
                .any(|other| other.is_kin_of(member) && other.family.is_some_and(|part| part.holds))
        });
        for orphan in orphans {
            let works = |member: &Member| member.family.is_some_and(|part| part.worked);
            match heirs.iter_mut().find(|heir| heir.is_kin_of(orphan)) {
                None => heirs.push(orphan),
                Some(heir) if works(orphan) && !works(heir) => *heir = orphan,
                Some(_) => {}
            }
        }
        heirs.into_iter().map(|heir| heir.app).collect()
    }

    /// What a member does not get by now of what it asked for.
    pub(crate) fn decided_again(&mut self, app: AppId, decision: &Decision) {
        if let Some(member) = self.get_mut(app) {
            (member.rule, member.limits) = (decision.rule(), decision.text());
        }
    }

    /// A member has the contract of its family from now on, or no more.
    pub(crate) fn set_holds(&mut self, app: AppId, holds: bool) {
        if let Some(part) = self.get_mut(app).and_then(|member| member.family.as_mut()) {
            part.holds = holds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Identity;
    use crate::control::view::View;
    use takt_core::{Span, Time};
    use takt_ipc::message::Hello;

    fn join(members: &mut Members, family: u64, pid: u32) -> AppId {
        let name = "browser".to_owned();
        let family = Some(family);
        let hello = Hello { name, etpf_ns: Some(6_000_000), family, ..Hello::default() };
        let who = Identity { pid, ..Identity::default() };
        members.admit(Time::ZERO, &hello, &who, &Settings::default()).expect("admitted").app
    }

    fn reserved(members: &Members) -> Vec<(u32, Span)> {
        members.staying().map(|member| (member.identity.pid, member.params.etpf)).collect()
    }

    #[test]
    fn a_contract_is_reserved_once_for_all_processes_of_an_app() {
        let mut members = Members::new(8);
        let first = join(&mut members, 7, 100);
        let second = join(&mut members, 7, 101);
        join(&mut members, 8, 200);
        let six = Span::from_ms(6);
        assert_eq!(
            reserved(&members),
            [(100, six), (101, Span::ZERO), (200, six)],
            "another start has its own"
        );
        let limits = members.get(second).map(|member| member.limits.clone());
        assert_eq!(limits.as_deref(), Some("process 100 of the same app has its contract"));
        // One that was started twice is ambiguous, one process of several is not.
        assert!(members.find("browser", &View::All).is_err());
        assert_eq!(members.heirs(), []);
        members.leaves(first);
        assert_eq!(members.heirs(), [second]);
        let mut both = Members::new(8);
        let holder = join(&mut both, 7, 100);
        join(&mut both, 7, 101);
        assert_eq!(both.find("browser", &View::All).map(|member| member.app), Ok(holder));
    }

    #[test]
    fn the_process_that_works_is_to_have_the_contract() {
        let mut members = Members::new(8);
        let (launcher, game) = (join(&mut members, 7, 100), join(&mut members, 7, 101));
        assert_eq!(members.works(game), Some(launcher));
        assert_eq!(members.works(game), None, "once");
        let mut members = Members::new(8);
        let (compositor, client) = (join(&mut members, 7, 100), join(&mut members, 7, 101));
        assert_eq!(members.works(compositor), None);
        assert_eq!(members.works(client), None, "the other one works as well");
    }

    #[test]
    fn an_heir_is_one_that_works() {
        let mut members = Members::new(8);
        let [first, second, third] = [100, 101, 102].map(|pid| join(&mut members, 7, pid));
        members.works(first);
        members.works(third);
        members.leaves(first);
        assert_eq!(members.heirs(), [third]);
        members.set_holds(third, true);
        assert_eq!(members.heirs(), []);
        assert!(members.get(second).is_some_and(|member| !member.holds()));
    }

    #[test]
    fn clients_of_one_process_have_a_contract_each() {
        let mut members = Members::new(8);
        join(&mut members, 7, 100);
        join(&mut members, 7, 100);
        assert_eq!(reserved(&members), [(100, Span::from_ms(6)); 2]);
    }
}
