//! Which app a tool means.
//!
//! A name is what a client says of itself, so any client can have the name of a listed app. It means the app that
//! the configuration lists, else the one of the most important domain. If that leaves several, none of them is
//! meant, and the tool hears how to name each.

use takt_ipc::name::{Wanted, wanted};

use super::{Member, Members};
use crate::control::view::View;

/// Most apps that are named where several could be meant.
const CHOICES_MAX: usize = 4;

/// Why no app is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unfound {
    /// There is none.
    Unknown(String),
    /// There are several; in words, with a way to name each.
    Several(String),
}

impl From<Unfound> for String {
    fn from(unfound: Unfound) -> Self {
        match unfound {
            Unfound::Unknown(who) => format!("no app {who}; takt list shows them"),
            Unfound::Several(text) => text,
        }
    }
}

impl Members {
    /// The member that is meant, of those that a tool sees.
    pub(crate) fn find(&self, who: &str, view: &View) -> Result<&Member, Unfound> {
        let candidates = |leaving: bool| {
            let seen = self.iter().filter(|member| member.leaving == leaving && view.sees(member));
            meant(who, seen)
        };
        // One that is about to leave has made room for another one of its name.
        let found = [candidates(false), candidates(true)].into_iter().find(|found| !found.is_empty());
        match found.as_deref() {
            None => Err(Unfound::Unknown(who.to_owned())),
            Some(&[member]) => Ok(member),
            Some(several) => Err(Unfound::Several(choices(who, several))),
        }
    }
}

/// Those that are meant, the most trusted ones alone if it is by name.
pub(in crate::control) fn meant<'a>(who: &str, of: impl Iterator<Item = &'a Member>) -> Vec<&'a Member> {
    let wanted = wanted(who);
    let mut found: Vec<&Member> = of.filter(|member| fits(member, wanted)).collect();
    if let Wanted::Name(..) = wanted {
        let highest = found.iter().map(|member| member.standing_of_name()).max();
        found.retain(|member| Some(member.standing_of_name()) == highest);
        // Of the processes of one app, the one with its contract.
        let holder = found.iter().copied().find(|member| member.holds());
        if let Some(holder) = holder.filter(|holder| found.iter().all(|member| member.is_kin_of(holder))) {
            found = vec![holder];
        }
    }
    found
}

fn fits(member: &Member, wanted: Wanted<'_>) -> bool {
    match wanted {
        Wanted::Slot(slot) => member.app.0 == slot,
        Wanted::Process(pid) => member.identity.pid == pid,
        Wanted::Name(name, user) => {
            member.name == name && user.is_none_or(|user| member.identity.uid == user)
        }
    }
}

impl Member {
    /// How much its name is its own: more for a listed app, then more for a more important domain.
    pub(in crate::control) fn standing_of_name(&self) -> (bool, u32) {
        (self.listed, self.domain.band())
    }
}

/// The ways to name each of several apps.
fn choices(who: &str, several: &[&Member]) -> String {
    let ways = several.iter().take(CHOICES_MAX).map(|member| {
        let Member { app, identity, domain, .. } = member;
        format!("{} (pid:{}, user {}, domain {})", app.0, identity.pid, identity.uid, domain.name)
    });
    let mut ways: Vec<String> = ways.collect();
    if several.len() > CHOICES_MAX {
        ways.push(format!("{} more", several.len() - CHOICES_MAX));
    }
    format!(
        "{who} means {} apps: {}; give the slot, pid:PROCESS or NAME@USER instead",
        several.len(),
        ways.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Identity;
    use crate::control::rights::Domains;
    use takt_core::{AppId, Time};
    use takt_ipc::message::Hello;

    /// Another user than that of the daemon.
    const STRANGER: u32 = 64_001;
    const CLUSTER: u32 = 64_002;

    fn settings() -> Settings {
        let text = "[[domain]]\nname='cluster'\nuser=64002\n[[domain]]\nname='ivi'\nuser=64003\n\
                    [[app]]\nname='dial'\ndomain='cluster'";
        Settings::parse(text).expect("fine")
    }

    fn join(members: &mut Members, name: &str, uid: u32, pid: u32, settings: &Settings) -> AppId {
        let hello = Hello { name: name.to_owned(), ..Hello::default() };
        let who = Identity { uid, pid, ..Identity::default() };
        members.admit(Time::ZERO, &hello, &who, settings).expect("admitted").app
    }

    fn found(members: &Members, who: &str) -> Result<AppId, String> {
        members.find(who, &View::All).map(|member| member.app).map_err(String::from)
    }

    #[test]
    fn an_impostor_that_comes_first_does_not_capture_the_name_of_a_listed_app() {
        let (mut members, settings) = (Members::new(8), settings());
        let impostor = join(&mut members, "dial", STRANGER, 11, &settings);
        assert_eq!(found(&members, "dial"), Ok(impostor), "it is the only one");
        // A domain that is more important than none, but does not list the app.
        let namesake = join(&mut members, "dial", 64_003, 12, &settings);
        assert_eq!(found(&members, "dial"), Ok(namesake));
        let dial = join(&mut members, "dial", CLUSTER, 13, &settings);
        assert_eq!(found(&members, "dial"), Ok(dial));
        // All of them can be named.
        for (app, pid, uid) in [(impostor, 11, STRANGER), (namesake, 12, 64_003), (dial, 13, CLUSTER)] {
            for who in [app.0.to_string(), format!("pid:{pid}"), format!("dial@{uid}")] {
                assert_eq!(found(&members, &who), Ok(app), "{who}");
            }
        }
        members.leaves(dial);
        assert_eq!(found(&members, "dial"), Ok(namesake), "it is about to leave");
        assert_eq!(found(&members, &dial.0.to_string()), Ok(dial));
        for none in ["dial@7", "pid:7", "7", "map"] {
            assert_eq!(found(&members, none), Err(format!("no app {none}; takt list shows them")));
        }
    }

    #[test]
    fn a_name_of_equals_is_answered_with_the_choices() {
        let (mut members, settings) = (Members::new(8), Settings::default());
        let first = join(&mut members, "game", STRANGER, 11, &settings);
        let second = join(&mut members, "game", STRANGER + 1, 12, &settings);
        let said = found(&members, "game").expect_err("which one?");
        assert_eq!(
            said,
            "game means 2 apps: 0 (pid:11, user 64001, domain unlisted), \
             1 (pid:12, user 64002, domain unlisted); give the slot, pid:PROCESS or NAME@USER instead"
        );
        let own = View::own(&Identity { uid: STRANGER, ..Identity::default() }, &Domains::default().unlisted);
        assert_eq!(members.find("game", &own).map(|member| member.app), Ok(first), "the other is not seen");

        assert_eq!(found(&members, "game@64002"), Ok(second));
    }
}
