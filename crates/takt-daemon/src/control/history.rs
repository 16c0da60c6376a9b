//! The clients that left: records of the last seconds still name their slots.

use std::collections::VecDeque;

use takt_core::Time;

use super::members::{Member, Members};

/// Most clients that are remembered; the first to leave are forgotten first.
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
            self.left.pop_front();
        }
        self.left.push_back((now, member));
    }

    /// The last to leave that slot if `who` is a number, else the last of that name; and when.
    pub(crate) fn find(&self, who: &str) -> Option<(Time, &Member)> {
        let is_it = |member: &Member| match takt_ipc::name::slot(who) {
            Some(slot) => member.app.0 == slot,
            None => member.name == who,
        };
        self.left.iter().rev().find(|(_, member)| is_it(member)).map(|(left, member)| (*left, member))
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
        assert_eq!(history.find("even").map(|(left, _)| left), Some(Time::from_ms(198)));
        assert_eq!(history.find("0").map(|(left, _)| left), Some(Time::from_ms(199)), "a slot");
        assert_eq!(history.find("1"), None);
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
