//! The clients that left: records of the last seconds still name their slots.

use std::collections::VecDeque;

use takt_core::Time;

use super::members::{Member, Members, meant};
use super::view::View;
use crate::observe::recent::KEPT;

/// Most clients that are remembered.
const HISTORY_MAX: usize = 64;

/// The last clients that left.
#[derive(Debug, Default)]
pub(crate) struct ClientHistory {
    /// With the times at which they left, in that order.
    left: VecDeque<(Time, Member)>,
}

impl ClientHistory {
    /// A client left.
    pub(crate) fn add(&mut self, now: Time, member: Member) {
        if self.left.len() == HISTORY_MAX {
            let forgotten = self.least(now);
            self.left.remove(forgotten);
        }
        self.left.push_back((now, member));
    }

    /// The one to forget: the first to leave of those whose records are gone, else of those that no file lists,
    /// so that clients that come and go push no listed app out.
    fn least(&self, now: Time) -> usize {
        let is_gone = |(left, _): &(Time, Member)| now.since(*left) > KEPT;
        let gone = self.left.iter().position(is_gone);
        gone.or_else(|| self.left.iter().position(|(_, member)| !member.listed)).unwrap_or(0)
    }

    /// The last to leave of those that are meant and that a tool sees; and when.
    pub(crate) fn find(&self, who: &str, view: &View) -> Option<(Time, &Member)> {
        let seen = self.left.iter().map(|(_, member)| member).filter(|member| view.sees(member));
        let last = meant(who, seen).pop()?;
        let (left, member) = self.left.iter().find(|(_, member)| std::ptr::eq(member, last))?;
        Some((*left, member))
    }

    /// The last to leave of a name that is more its own than that of `present`, while its records are there: an
    /// app that comes under the name of one that has just left does not hide it.
    pub(crate) fn find_above(
        &self,
        who: &str,
        view: &View,
        present: &Member,
        now: Time,
    ) -> Option<(Time, &Member)> {
        let is_name = matches!(takt_ipc::name::wanted(who), takt_ipc::name::Wanted::Name(..));
        let above = |(left, member): &(Time, &Member)| {
            is_name && now.since(*left) <= KEPT && member.standing_of_name() > present.standing_of_name()
        };
        self.find(who, view).filter(above)
    }

    /// The members at an earlier time, as far as they are remembered. A slot that was empty then shows its
    /// last client: records of its effects on others are kept for a while, too.
    pub(crate) fn as_of(&self, then: Time, members: &Members) -> Members {
        let mut there = members.clone();
        there.retain(|member| member.since <= then);
        for (_, member) in self.left.iter().rev().filter(|(_, member)| member.since <= then) {
            if there.get(member.app).is_none() {
                there.put_back(member.clone());
            }
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Identity;
    use takt_ipc::message::Hello;

    fn member(members: &mut Members, name: &str, since: Time) -> Member {
        let hello = Hello { name: name.to_owned(), ..Hello::default() };
        members.admit(since, &hello, &Identity::default(), &Settings::default()).expect("admitted").clone()
    }

    #[test]
    fn the_last_of_a_name_is_found_and_the_first_to_leave_is_forgotten() {
        let (mut members, mut history) = (Members::new(1), ClientHistory::default());
        for number in 0..200 {
            let then = Time::from_ms(number);
            let gone = member(&mut members, if number % 2 == 0 { "even" } else { "odd" }, then);
            members.remove(gone.app);
            history.add(then, gone);
        }
        assert_eq!(history.left.len(), HISTORY_MAX);
        let left = |who: &str| history.find(who, &View::All).map(|(left, _)| left);
        assert_eq!(left("even"), Some(Time::from_ms(198)));
        assert_eq!(left("0"), Some(Time::from_ms(199)), "a slot");
        assert_eq!(left("1"), None);
    }

    #[test]
    fn apps_that_come_and_go_do_not_hide_a_listed_one_that_left() {
        let settings = Settings::parse("[[app]]\nname = 'dial'").expect("fine");
        let (mut members, mut history) = (Members::new(2), ClientHistory::default());
        let ms = Time::from_ms;
        let mut visit = |name: &str, uid: u32, at: u64| {
            let (hello, who) = (
                Hello { name: name.to_owned(), ..Hello::default() },
                Identity { uid, ..Identity::default() },
            );
            let member = members.admit(ms(at), &hello, &who, &settings).expect("admitted").clone();
            members.remove(member.app);
            history.add(ms(at), member.clone());
            member
        };
        visit("dial", 0, 1);
        let impostor = (0..500).map(|at| visit("dial", 64_001, 10 + at)).next_back().expect("one");
        let found = |who: &str| history.find(who, &View::All).map(|(left, _)| left);
        assert_eq!(found("dial"), Some(ms(1)));
        assert_eq!(found("dial@64001"), Some(ms(509)));
        // One that is there now is another one as well, as long as there are records of the dial.
        let above =
            |who: &str, now| history.find_above(who, &View::All, &impostor, now).map(|(left, _)| left);
        assert_eq!(above("dial", ms(600)), Some(ms(1)));
        assert_eq!(above("dial@64001", ms(600)), None);
        assert_eq!(above("0", ms(600)), None, "a slot is that of the one that has it");
        assert_eq!(above("dial", ms(60_000)), None);
    }

    #[test]
    fn slots_show_the_clients_of_that_time() {
        let (mut members, mut history) = (Members::new(2), ClientHistory::default());
        let ms = Time::from_ms;
        let first = member(&mut members, "first", ms(0));
        member(&mut members, "stays", ms(1));
        members.remove(first.app);
        history.add(ms(10), first);
        member(&mut members, "heir", ms(20));
        let names = |then| -> Vec<String> {
            history.as_of(then, &members).iter().map(|member| member.name.clone()).collect()
        };
        assert_eq!(names(ms(10)), ["first", "stays"]);
        assert_eq!(names(ms(15)), ["first", "stays"], "no other client had that slot");
        assert_eq!(names(ms(30)), ["heir", "stays"]);
    }
}
