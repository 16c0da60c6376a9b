//! Who has left: what is remembered of its frames is about nobody otherwise.

use std::collections::VecDeque;

use takt_core::Time;

use crate::control::members::{Member, Members};

/// Most who are remembered; the first to leave are forgotten first.
pub const DEPARTED_MAX: usize = 64;

/// The last who left.
#[derive(Debug, Default)]
pub struct Departed {
    /// With when they left, in that order.
    left: VecDeque<(Time, Member)>,
}

impl Departed {
    /// Somebody has left.
    pub fn add(&mut self, now: Time, member: Member) {
        if self.left.len() == DEPARTED_MAX {
            self.left.pop_front();
        }
        self.left.push_back((now, member));
    }

    /// The last to leave of that name, or of that slot if it is a number; and when.
    pub fn find(&self, who: &str) -> Option<(Time, &Member)> {
        let last = |is_it: &dyn Fn(&Member) -> bool| {
            self.left.iter().rev().find(|(_, member)| is_it(member)).map(|(left, member)| (*left, member))
        };
        let slot = who.parse().ok();
        last(&|member| member.name == who).or_else(|| last(&|member| Some(member.app.0) == slot))
    }

    /// Who was there at a time before, as far as is remembered; in slots that nobody had then, who had
    /// them last: what they did to others is remembered for a while, too.
    pub fn as_of(&self, then: Time, members: &Members) -> Members {
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
    use takt_ipc::message::Hello;
    use takt_ipc::socket::Peer;

    fn member(members: &mut Members, name: &str, since: Time) -> Member {
        let hello = Hello { name: name.to_owned(), ..Hello::default() };
        let peer = Peer { pid: 1, uid: 2 };
        members.admit(since, &hello, peer, &Settings::default()).expect("admitted").clone()
    }

    #[test]
    fn the_last_of_a_name_is_found_and_the_first_to_leave_is_forgotten() {
        let (mut members, mut departed) = (Members::new(1), Departed::default());
        for number in 0..200 {
            let then = Time::from_ms(number);
            let gone = member(&mut members, if number % 2 == 0 { "even" } else { "odd" }, then);
            members.remove(gone.app);
            departed.add(then, gone);
        }
        assert_eq!(departed.left.len(), DEPARTED_MAX);
        assert_eq!(departed.find("even").map(|(left, _)| left), Some(Time::from_ms(198)));
        assert_eq!(departed.find("0").map(|(left, _)| left), Some(Time::from_ms(199)), "a slot");
        assert_eq!(departed.find("1"), None);
    }

    #[test]
    fn slots_are_those_of_who_had_them_then() {
        let (mut members, mut departed) = (Members::new(2), Departed::default());
        let ms = Time::from_ms;
        let first = member(&mut members, "first", ms(0));
        member(&mut members, "stays", ms(1));
        members.remove(first.app);
        departed.add(ms(10), first);
        member(&mut members, "heir", ms(20));
        let names = |then| -> Vec<String> {
            departed.as_of(then, &members).iter().map(|member| member.name.clone()).collect()
        };
        assert_eq!(names(ms(10)), ["first", "stays"]);
        assert_eq!(names(ms(15)), ["first", "stays"], "nobody else had that slot");
        assert_eq!(names(ms(30)), ["heir", "stays"]);
    }
}
