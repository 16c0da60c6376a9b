//! Clients that take part in the contract of another one, or in the minimum share of their domain. They name the
//! other one; here it is found, whenever clients come, change and go.

use std::path::PathBuf;

use takt_core::contract::has_contract;
use takt_core::service::{Reservation, Service};
use takt_core::{AppId, AppParams, Span};

use super::{Member, Members};
use crate::control::config::{Client, Settings};

/// A client and whose contract it wants to take part in; names are empty for none.
pub(super) struct Partner<'a> {
    pub(super) app: AppId,
    pub(super) client: Client<'a>,
    pub(super) feeds: &'a str,
    pub(super) shares: &'a str,
}

impl Members {
    /// The parameters of a client with its part in the contract of another one, if that is there; and the period of
    /// the server that it runs on by that.
    pub(super) fn linked(
        &self,
        partner: &Partner<'_>,
        params: AppParams,
        settings: &Settings,
    ) -> (AppParams, Option<Span>) {
        let Some(owner) = self.owner(partner, &params, settings) else {
            return in_share(partner, params, settings);
        };
        let service = match partner.shares {
            "" => Service { feeds: Some(owner.app), ..params.service },
            _ => Service { reservation: Reservation::Shared(owner.app), ..params.service },
        };
        let period = owner.params.framed().server().map(|server| server.period).or(owner.served);
        (AppParams { service, ..params }, period)
    }

    /// The member whose contract a client takes part in: of its own domain, and of its own user unless the
    /// configuration says so. Where that lists the member by its executable, it is no other program's.
    fn owner(&self, partner: &Partner<'_>, params: &AppParams, settings: &Settings) -> Option<&Member> {
        let Partner { app, client, feeds, shares } = *partner;
        let name = if shares.is_empty() { feeds } else { shares };
        let same = |written: &Option<String>, wanted: &str| written.as_deref().unwrap_or_default() == wanted;
        let configured = settings
            .section(&client)
            .is_some_and(|section| same(&section.terms.feeds, feeds) && same(&section.terms.shares, shares));
        let executes = |listed: &PathBuf| {
            client.who.executable.as_ref().is_some_and(|found| found.trusted && found.path == *listed)
        };
        let is_for = |member: &Member| {
            let listed = settings.section(&member.client()).and_then(|section| section.executable.as_ref());
            listed.is_none_or(executes)
        };
        let is_own = |member: &Member| member.identity.uid == client.who.uid && is_for(member);
        let may = |member: &&Member| configured || is_own(member);
        let fits = |member: &&Member| match shares {
            "" => !self.feeds(member, app),
            _ => !has_contract(params) && has_contract(&member.params) && member.shares.is_empty(),
        };
        let named = self.of_domain(client.domain).filter(|member| member.name == name && member.app != app);
        named.filter(may).filter(fits).max_by_key(|member| member.params.priority)
    }

    /// Whether clients share the contract of the member in that slot.
    pub(in crate::control) fn has_sources(&self, owner: AppId) -> bool {
        self.staying().any(|member| member.params.service.reservation == Reservation::Shared(owner))
    }

    /// Members whose groups the server of the client in that slot may pay for: itself, those that share it, and those
    /// that produce for it.
    pub(in crate::control) fn paid_by(&self, owner: AppId) -> impl Iterator<Item = &Member> {
        let shares = move |member: &Member| member.params.service.reservation == Reservation::Shared(owner);
        self.iter().filter(move |member| self.feeds(member, owner) || shares(member))
    }

    /// Whether a member produces for the client in that slot, be it through others.
    fn feeds(&self, member: &Member, app: AppId) -> bool {
        let next = |member: &&Member| member.params.service.feeds.and_then(|app| self.get(app));
        core::iter::successors(Some(member), next).take(self.slots.len()).any(|member| member.app == app)
    }

    /// Finds the contracts that clients take part in anew, and what servers reserve beside the others that are there;
    /// returns the clients whose parameters changed with that.
    pub(crate) fn link(&mut self, settings: &Settings) -> Vec<AppId> {
        let partners: Vec<AppId> = self.staying().map(|member| member.app).collect();
        let mut changed = Vec::new();
        for app in partners {
            let Some(member) = self.get(app) else { continue };
            let Member { feeds, shares, .. } = member;
            let partner = Partner { app, client: member.client(), feeds, shares };
            let params = member.timing.reserves(alone(member.params), settings);
            let (params, served) = self.linked(&partner, params, settings);
            if let Some(member) =
                self.get_mut(app).filter(|member| member.params != params || member.served != served)
            {
                (member.params, member.served) = (params, served);
                changed.push(app);
            }
        }
        changed
    }
}

/// An app without a contract has its part in the minimum share of its domain, if there is one. Work that the GPU
/// interrupts has none: it has a slot of its own beside all promises, which no server serves.
fn in_share(partner: &Partner<'_>, params: AppParams, settings: &Settings) -> (AppParams, Option<Span>) {
    let alone = params.service.reservation == Reservation::None && params.service.feeds.is_none();
    let names_none = partner.shares.is_empty() && partner.feeds.is_empty();
    let possible = names_none && alone && !has_contract(&params) && !params.service.divisible;
    match settings.share_of(partner.client.domain).filter(|_| possible) {
        None => (params, None),
        Some(server) => {
            let service = Service { reservation: Reservation::Shared(server.app), ..params.service };
            (AppParams { service, ..params }, Some(server.share.period()))
        }
    }
}

/// The same parameters without a part in the contract of another app.
fn alone(params: AppParams) -> AppParams {
    let reservation = match params.service.reservation {
        Reservation::Shared(_) => Reservation::None,
        reservation => reservation,
    };
    AppParams { service: Service { reservation, feeds: None, ..params.service }, ..params }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::identity::{Executable, Identity};
    use crate::control::terms::Terms;
    use takt_core::Time;
    use takt_ipc::message::Hello;

    fn hello(name: &str, shares: Option<&str>, etpf_ms: u64) -> Hello {
        let (name, shares) = (name.to_owned(), shares.map(str::to_owned));
        Hello { name, shares, etpf_ns: (etpf_ms > 0).then_some(etpf_ms * 1_000_000), ..Hello::default() }
    }

    fn admit(members: &mut Members, hello: &Hello, uid: u32, settings: &Settings) -> AppId {
        let who = Identity { uid, groups: vec![7], ..Identity::default() };
        members.admit(Time::ZERO, hello, &who, settings).expect("admitted").app
    }

    fn shared_with(members: &Members, app: AppId) -> Option<AppId> {
        match members.get(app)?.params.service.reservation {
            Reservation::Shared(owner) => Some(owner),
            _ => None,
        }
    }

    #[test]
    fn a_source_finds_its_owner_whenever_that_comes_and_goes() {
        let (mut members, settings) = (Members::new(4), Settings::default());
        let source = admit(&mut members, &hello("worker", Some("game"), 0), 0, &settings);
        assert_eq!(shared_with(&members, source), None);
        let game = admit(&mut members, &hello("game", None, 4), 0, &settings);
        assert_eq!(members.link(&settings), [source]);
        assert_eq!(shared_with(&members, source), Some(game));
        assert_eq!(members.get(source).map(Member::contract).as_deref(), Some("shares game"));
        assert_eq!(members.link(&settings), []);
        members.leaves(game);
        assert_eq!((members.link(&settings), shared_with(&members, source)), (vec![source], None));
        members.remove(game);
        // Another app has its slot.
        let other = admit(&mut members, &hello("other", None, 4), 0, &settings);
        assert_eq!((other, members.link(&settings).len()), (game, 0));
        let game = admit(&mut members, &hello("game", None, 4), 0, &settings);
        assert_eq!(members.link(&settings), [source]);
        assert_eq!(shared_with(&members, source), Some(game));
        let alone = Terms { shares: Some(String::new()), ..Terms::default() };
        members.change(source, alone, &settings).expect("changed");
        assert_eq!((shared_with(&members, source), members.link(&settings).len()), (None, 0));
    }

    #[test]
    fn no_user_takes_part_in_the_contract_of_another_one_unless_the_file_says_so() {
        let (mut members, settings) = (Members::new(4), Settings::default());
        admit(&mut members, &hello("game", None, 4), 0, &settings);
        let source = admit(&mut members, &hello("worker", Some("game"), 0), 1000, &settings);
        assert_eq!(shared_with(&members, source), None);
        let text = "[[domain]]\nname='all'\ngroup=7\n\
                    [[app]]\nname='game'\ndomain='all'\n[[app]]\nname='worker'\ndomain='all'\nshares='game'";
        let settings = Settings::parse(text).expect("fine");
        let mut members = Members::new(4);
        let game = admit(&mut members, &hello("game", None, 4), 1001, &settings);
        let source = admit(&mut members, &hello("worker", None, 0), 1000, &settings);
        assert_eq!(shared_with(&members, source), Some(game));
    }

    /// Any program of a user may be what another one of its programs was made to run.
    #[test]
    fn no_other_program_takes_part_in_the_contract_of_one_that_is_listed_by_its_executable() {
        let text = "[[domain]]\nname='ivi'\nuser=77\n[[app]]\nname='map'\ndomain='ivi'\n\
                    executable='/usr/bin/map'\nfps=60\netpf_ms=4";
        let (mut members, settings) = (Members::new(8), Settings::parse(text).expect("fine"));
        let mut add = |hello: &Hello, path: &str, trusted: bool| {
            let executable = Some(Executable { path: path.into(), trusted });
            let who = Identity { uid: 77, executable, ..Identity::default() };
            members.admit(Time::ZERO, hello, &who, &settings).expect("admitted").app
        };
        let map = add(&hello("map", None, 0), "/usr/bin/map", true);
        let partner = |name: &str| hello(name, Some("map"), 0);
        let other = add(&partner("other"), "/home/x/other", false);
        let mounted = add(&partner("mounted"), "/usr/bin/map", false);
        let thread = add(&partner("thread"), "/usr/bin/map", true);
        let shared = [other, mounted, thread].map(|app| shared_with(&members, app));
        assert_eq!(shared, [None, None, Some(map)]);
    }

    #[test]
    fn producers_run_on_the_server_of_their_consumer() {
        let (mut members, settings) = (Members::new(4), Settings::default());
        let feeds = |name: &str, of: &str| Hello { feeds: Some(of.to_owned()), ..hello(name, None, 0) };
        let server = Hello { runtime_ns: Some(3_000_000), period_ns: Some(40_000_000), ..feeds("a", "c") };
        let a = admit(&mut members, &server, 0, &settings);
        let b = admit(&mut members, &feeds("b", "a"), 0, &settings);
        let c = admit(&mut members, &feeds("c", "b"), 0, &settings);
        assert_eq!(members.link(&settings), [], "a circle is not closed");
        let of = |app| members.get(app).map(|member| (member.params.service.feeds, member.served));
        assert_eq!(of(a), Some((None, None)));
        assert_eq!(of(b), Some((Some(a), Some(Span::from_ms(40)))));
        assert_eq!(of(c), Some((Some(b), Some(Span::from_ms(40)))));
        assert!(members.get(c).is_some_and(Member::is_judged));
    }
}
