//! The clients that a tool evicted: they may not come back for a while, unless a tool readmits them.

use takt_core::{Span, Time};
use takt_ipc::name::{Wanted, wanted};

use super::quarantine::Origin;

/// How long an app may not come back if the tool does not say.
pub(crate) const DEFAULT_S: u32 = 60;
/// Longest time for which an app may not come back: a day.
pub(crate) const LONGEST_S: u32 = 86_400;
/// How long a client waits at most before it asks again: it may have been readmitted.
const ASK_AGAIN: Span = Span::from_ms(5_000);
/// Most clients that are remembered; the first ones are forgotten first.
const EVICTED_MAX: usize = 64;

/// The clients that a tool evicted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evicted {
    clients: Vec<EvictedClient>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct EvictedClient {
    name: String,
    origin: Origin,
    until: Time,
    /// A tool that may change others' apps said so.
    by_operator: bool,
}

impl Evicted {
    /// A client of that name and origin may not come back before `until`. What users say of their own apps makes
    /// room before what those say who run the machine.
    pub(crate) fn add(&mut self, now: Time, (name, origin): (&str, Origin), until: Time, by_operator: bool) {
        self.forget(now);
        self.clients.retain(|client| (client.name.as_str(), &client.origin) != (name, &origin));
        if self.clients.len() == EVICTED_MAX {
            let own = self.clients.iter().position(|client| !client.by_operator);
            self.clients.remove(own.unwrap_or(0));
        }
        self.clients.push(EvictedClient { name: name.to_owned(), origin, until, by_operator });
    }

    /// In what time such a client may ask again, if it may not be scheduled now.
    pub(crate) fn pause(&self, name: &str, origin: &Origin, now: Time) -> Option<Span> {
        let client = self.clients.iter().find(|client| client.name == name && client.origin == *origin)?;
        Some(client.until.since(now)).filter(|left| *left > Span::ZERO).map(|left| left.min(ASK_AGAIN))
    }

    /// Clients that are meant by name may come back, of user `own` alone if that is given; or says why not.
    pub(crate) fn readmit(&mut self, who: &str, own: Option<u32>, now: Time) -> Result<(), String> {
        self.forget(now);
        let is_meant = |client: &EvictedClient| {
            let (name, uid) = (&client.name, client.origin.uid);
            let named = match wanted(who) {
                Wanted::Name(wanted, user) => name == wanted && user.is_none_or(|user| user == uid),
                _ => false,
            };
            named && own.is_none_or(|own| own == uid)
        };
        let mut users: Vec<u32> =
            self.clients.iter().filter(|client| is_meant(client)).map(|client| client.origin.uid).collect();
        users.sort_unstable();
        users.dedup();
        match users[..] {
            [] => Err(format!("no tool evicted {who}; takt list --json - names those that one did")),
            [_] => {
                self.clients.retain(|client| !is_meant(client));
                Ok(())
            }
            _ => {
                let all: Vec<String> = users.iter().map(|user| format!("{who}@{user}")).collect();
                Err(format!("{who} was evicted for several users: say {}", all.join(" or ")))
            }
        }
    }

    /// Names, users, and for how long they may not come back.
    pub(crate) fn all(&self, now: Time) -> impl Iterator<Item = (&str, u32, Span)> {
        let left = move |client: &EvictedClient| client.until.since(now);
        let there = self.clients.iter().filter(move |client| left(client) > Span::ZERO);
        there.map(move |client| (client.name.as_str(), client.origin.uid, left(client)))
    }

    fn forget(&mut self, now: Time) {
        self.clients.retain(|client| client.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_ms(seconds * 1000)
    }

    fn origin(uid: u32) -> Origin {
        Origin { uid, domain: "unlisted".to_owned(), executable: Some("/bin/game".into()) }
    }

    #[test]
    fn evicted_clients_stay_away_until_their_time_or_a_tool() {
        let mut evicted = Evicted::default();
        evicted.add(s(10), ("game", origin(7)), s(13), true);
        assert_eq!(evicted.pause("game", &origin(7), s(10)), Some(Span::from_ms(3_000)));
        assert_eq!(evicted.pause("map", &origin(7), s(10)), None, "another app of the same program");
        assert_eq!(evicted.pause("game", &origin(8), s(10)), None, "another user");
        assert_eq!(evicted.pause("game", &origin(7), s(13)), None, "over");
        evicted.add(s(20), ("game", origin(7)), s(900), true);
        assert_eq!(evicted.pause("game", &origin(7), s(20)), Some(ASK_AGAIN), "it may be readmitted before");
        assert_eq!(evicted.all(s(20)).collect::<Vec<_>>(), [("game", 7, Span::from_ms(880_000))]);
        assert!(evicted.readmit("game", Some(8), s(21)).is_err(), "not of that user");
        assert_eq!(evicted.readmit("game", Some(7), s(21)), Ok(()));
        assert_eq!(evicted.pause("game", &origin(7), s(21)), None);
        assert!(evicted.readmit("game", None, s(21)).is_err(), "there is none");
    }

    #[test]
    fn a_name_of_several_users_readmits_none_of_them() {
        let mut evicted = Evicted::default();
        evicted.add(s(10), ("dial", origin(7)), s(900), true);
        evicted.add(s(10), ("dial", origin(8)), s(900), true);
        let refused = evicted.readmit("dial", None, s(11));
        assert_eq!(refused, Err("dial was evicted for several users: say dial@7 or dial@8".to_owned()));
        assert_eq!(evicted.readmit("dial@8", None, s(11)), Ok(()));
        assert!(evicted.pause("dial", &origin(7), s(11)).is_some());
        assert_eq!(evicted.pause("dial", &origin(8), s(11)), None);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut evicted = Evicted::default();
        evicted.add(s(1), ("miner", origin(7)), s(99), true);
        // A user that evicts apps of its own does not end what an operator said of another one.
        for number in 0..1_000 {
            evicted.add(s(1), (&format!("x{number}"), origin(7)), s(99), false);
        }
        assert_eq!(evicted.clients.len(), EVICTED_MAX);
        assert!(evicted.pause("miner", &origin(7), s(1)).is_some());
        assert!(evicted.pause("x999", &origin(7), s(1)).is_some());
        (0..1_000).for_each(|uid| evicted.add(s(1), ("game", origin(uid)), s(99), true));
        assert_eq!(evicted.clients.len(), EVICTED_MAX);
        assert!(evicted.pause("game", &origin(999), s(1)).is_some());
    }
}
