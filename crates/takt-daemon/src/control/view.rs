//! Which apps a tool sees.

use super::identity::Identity;
use super::members::{Member, Members};
use super::rights::Domain;

/// The name under which an app is mentioned to tools that may not see it; no client can have it.
pub(crate) const HIDDEN: &str = "(another app)";

/// What a tool sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// All apps.
    All,
    /// Apps of its domain; where no domain is listed for it, those of its user.
    Own {
        /// The name of its domain.
        domain: String,
        /// Its user, if others are in the same domain.
        uid: Option<u32>,
    },
}

impl View {
    /// What a tool of a domain sees.
    pub(crate) fn of(who: &Identity, domain: &Domain) -> Self {
        match domain.rights.see {
            true => Self::All,
            false => Self::own(who, domain),
        }
    }

    /// The apps that count as a client's own.
    pub(crate) fn own(who: &Identity, domain: &Domain) -> Self {
        Self::Own { domain: domain.name.clone(), uid: domain.unlisted.then_some(who.uid) }
    }

    /// Whether it sees that app.
    pub(crate) fn sees(&self, member: &Member) -> bool {
        match self {
            Self::All => true,
            Self::Own { domain, uid } => {
                member.domain.name == *domain && uid.is_none_or(|uid| member.identity.uid == uid)
            }
        }
    }

    /// Whether it sees all apps of that domain.
    pub(crate) fn sees_domain(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Own { domain, uid } => domain == name && uid.is_none(),
        }
    }

    /// The members, with those that it does not see under a name that says nothing.
    pub(crate) fn masked(&self, mut members: Members) -> Members {
        members.rename(|member| !self.sees(member), HIDDEN);
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use takt_core::Time;
    use takt_ipc::message::Hello;

    #[test]
    fn without_the_right_a_tool_sees_its_own_apps() {
        let text = "[[domain]]\nname='ivi'\ngroup=5\nsee=false\n[[domain]]\nname='admin'\nuser=9";
        let settings = Settings::parse(text).expect("fine");
        let mut members = Members::new(8);
        let base = settings.domains.own_uid + 10;
        let user = |uid| Identity { uid: base + uid, ..Identity::default() };
        let ivi = |uid| Identity { groups: vec![5], ..user(uid) };
        for (name, who) in [("a", user(1)), ("b", user(2)), ("c", ivi(1)), ("d", ivi(2))] {
            let hello = Hello { name: name.to_owned(), ..Hello::default() };
            members.admit(Time::ZERO, &hello, &who, &settings).expect("admitted");
        }
        let seen = |who: &Identity| -> Vec<String> {
            let view = View::of(who, settings.domains.of(who));
            let masked = view.masked(members.clone());
            masked.iter().map(|member| member.name.clone()).filter(|name| name != HIDDEN).collect()
        };
        assert_eq!(seen(&user(1)), ["a"], "other unlisted users are others");
        assert_eq!(seen(&ivi(3)), ["c", "d"], "a domain is one");
        assert_eq!(seen(&Identity { uid: 9, ..Identity::default() }), ["a", "b", "c", "d"]);
        assert_eq!(seen(&Identity::default()), ["a", "b", "c", "d"], "root");
    }
}
