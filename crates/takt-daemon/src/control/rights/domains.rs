//! The domains of a configuration, and to which of them a client belongs.

use std::path::Path;
use std::sync::Arc;

use super::{Belonging, Domain, Level, Rights};
use crate::control::identity::Identity;

/// Name of the domain of the daemon's own user and of root.
pub const OWN: &str = "own";
/// Name of the domain of all clients that fit no other one.
pub const UNLISTED: &str = "unlisted";

/// All domains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    /// Those that the configuration lists, in its order.
    pub(crate) listed: Vec<Arc<Domain>>,
    pub(crate) own: Arc<Domain>,
    pub(crate) unlisted: Arc<Domain>,
    /// The daemon's user.
    pub(crate) own_uid: u32,
}

impl Default for Domains {
    /// The daemon's own user and root may do everything; others are best effort.
    fn default() -> Self {
        let domain = |name: &str, level: Level, rights| {
            let (name, belonging) = (name.to_owned(), Belonging::default());
            Domain { unlisted: name == UNLISTED, name, level, belonging, rights }
        };
        let tools = Rights { see: true, change: true, set_state: true, set_vsync: true, ..Rights::default() };
        let all = Rights { uncut: true, ..tools };
        Self {
            listed: Vec::new(),
            own: Arc::new(domain(OWN, Level::Standard, all)),
            unlisted: Arc::new(domain(UNLISTED, Level::BestEffort, Level::BestEffort.rights())),
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }
}

impl Domains {
    /// The domain of a client.
    pub fn of(&self, who: &Identity) -> &Arc<Domain> {
        if who.tampered {
            return &self.unlisted;
        }
        let listed = self.listed.iter().find(|domain| domain.belonging.fits(who));
        let own = || (who.uid == 0 || who.uid == self.own_uid).then_some(&self.own);
        listed.or_else(own).unwrap_or(&self.unlisted)
    }

    /// Whether a listed domain may fit a client of that user; what else it asks for is not known yet.
    pub(crate) fn may_list(&self, uid: u32) -> bool {
        self.listed.iter().any(|domain| domain.belonging.user.is_none_or(|user| user == uid))
    }

    /// The users that listed domains name.
    pub(crate) fn users(&self) -> impl Iterator<Item = u32> {
        self.listed.iter().filter_map(|domain| domain.belonging.user)
    }

    /// The domain of that name.
    pub fn named(&self, name: &str) -> Option<&Arc<Domain>> {
        self.iter().find(|domain| domain.name == name)
    }

    /// All of them, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.listed.iter().chain([&self.own, &self.unlisted])
    }

    /// Who belongs to a domain, in words.
    pub fn who(&self, domain: &Domain) -> String {
        match domain.name.as_str() {
            OWN if self.own_uid == 0 => "user 0, which runs the daemon".to_owned(),
            OWN => format!("user {}, which runs the daemon, and root", self.own_uid),
            UNLISTED => "all others".to_owned(),
            _ => domain.belonging.to_string(),
        }
    }

    /// Whether a domain names that executable.
    pub fn names(&self, executable: &Path) -> bool {
        self.listed.iter().any(|domain| domain.belonging.executable.as_deref() == Some(executable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Executable;

    fn named(domains: &Domains, who: &Identity) -> String {
        domains.of(who).name.clone()
    }

    #[test]
    fn without_domains_the_daemons_user_is_standard_and_others_best_effort() {
        let domains = Domains::default();
        let user = |uid| Identity { uid, ..Identity::default() };
        assert_eq!(named(&domains, &user(0)), OWN);
        assert_eq!(named(&domains, &user(domains.own_uid)), OWN);
        let other = domains.of(&user(domains.own_uid + 1));
        assert_eq!((other.name.as_str(), other.level, other.band()), (UNLISTED, Level::BestEffort, 0));
        assert!(!other.rights.see && !other.rights.change && other.rights.etpf_max.is_some());
    }

    #[test]
    fn the_first_domain_that_fits_is_the_clients() {
        let text = "[[domain]]\nname='dial'\nuser=1001\nexecutable='/usr/bin/dial'\n\
            [[domain]]\nname='cluster'\nunit='cluster.service'\n\
            [[domain]]\nname='ivi'\nuser=1001\n\
            [[domain]]\nname='players'\ngroup=44\ncontainer='0123456789ab'\n";
        let domains = Settings::parse(text).expect("fine").domains;
        let who = Identity { uid: 1001, groups: vec![7, 44], ..Identity::default() };
        assert!(domains.may_list(5), "it may be in a unit");
        let users = Settings::parse("[[domain]]\nname='ivi'\nuser=1001").expect("fine").domains;
        assert!(users.may_list(1001) && !users.may_list(5));
        assert_eq!(named(&domains, &who), "ivi");
        let dial = |trusted| Some(Executable { path: "/usr/bin/dial".into(), trusted });
        assert_eq!(named(&domains, &Identity { executable: dial(true), ..who.clone() }), "dial");
        assert_eq!(named(&domains, &Identity { executable: dial(false), ..who.clone() }), "ivi");
        let within = |path: &str| Identity { cgroup: Some(path.to_owned()), uid: 5, ..who.clone() };
        assert_eq!(named(&domains, &within("/system.slice/cluster.service")), "cluster");
        let number = format!("/docker/{}", "0123456789abcdef".repeat(4));
        assert_eq!(named(&domains, &within(&number)), "players");
        let another = Identity { groups: vec![7], ..within(&number) };
        assert_eq!(named(&domains, &another), UNLISTED, "both must hold");
        assert_eq!(
            named(&domains, &within("/docker/0123456789ab-of-another")),
            UNLISTED,
            "it only begins so"
        );
        assert!(domains.names(Path::new("/usr/bin/dial")) && !domains.names(Path::new("/usr/bin/other")));
    }

    #[test]
    fn the_beginning_of_a_containers_name_is_not_its_name() {
        let text = "[[domain]]\nname='ivi'\ncontainer='infotainment'";
        let domains = Settings::parse(text).expect("fine").domains;
        let within = |path: &str| Identity { cgroup: Some(path.to_owned()), uid: 5, ..Identity::default() };
        assert_eq!(named(&domains, &within("/machine.slice/machine-infotainment.scope")), "ivi");
        for other in ["/lxc.payload.infotainment-guest", "/docker/infotainment2", "/docker/infotainment"] {
            let expected = if other.ends_with("infotainment") { "ivi" } else { UNLISTED };
            assert_eq!(named(&domains, &within(other)), expected, "{other}");
        }
    }
}
