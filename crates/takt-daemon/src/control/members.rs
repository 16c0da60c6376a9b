//! The clients that are scheduled.

use std::path::PathBuf;

use takt_core::contract::has_contract;
use takt_core::{AppId, AppParams, FrameDone, Priority, Span, Time};
use takt_ipc::Standing;
use takt_ipc::message::Hello;
use takt_ipc::name;
use takt_ipc::socket::Peer;

use super::config::{Admission, Settings};
use super::contract::{self, Timing};
use super::quarantine::Origin;
use super::terms::Terms;

/// A client that is or will be scheduled.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Member {
    /// Its slot.
    pub(crate) app: AppId,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    /// Its executable, where the system tells.
    pub(crate) executable: Option<PathBuf>,
    /// Whether the configuration lists its name.
    pub(crate) listed: bool,
    /// Its frame rate, in millihertz.
    pub(crate) fps_mhz: u32,
    /// Its parameters in the core.
    pub(crate) params: AppParams,
    pub(crate) timing: Timing,
    /// Longest group it may form.
    pub(crate) max_slice: Span,
    /// Whether its deadlines are guaranteed, or why not, in words.
    pub(crate) admission: String,
    /// Whether its deadlines are guaranteed.
    pub(crate) protected: bool,
    /// Whether it waits for its release after a swap: only with a frame rate of its own.
    pub(crate) paced: bool,
    /// The terms that it asked for itself.
    pub(crate) asked: Terms,
    pub(crate) since: Time,
    /// Its first frame that met its deadline: misses before that are those of its start.
    pub(crate) first_met: Option<u64>,
    /// It is about to leave: the scheduling loop removes it before another client gets its slot.
    pub(crate) leaving: bool,
}

impl Member {
    fn terms(&self) -> Terms {
        Terms {
            priority: Some(self.params.priority.0),
            fps_mhz: Some(self.fps_mhz),
            etpf: Some(self.params.etpf),
            max_slice: Some(self.max_slice),
            paced: Some(self.paced),
            timing: Some(self.timing.clone()),
        }
    }

    /// Its contract in a few words.
    pub(crate) fn contract(&self) -> String {
        contract::describe(&self.timing, &self.params, self.fps_mhz, self.paced)
    }

    /// Whether its deadlines mean anything: those of its own frame rate, or of its server's jobs.
    pub(crate) fn is_judged(&self) -> bool {
        self.paced || self.params.server().is_some()
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing { paced: self.paced, protected: self.protected }
    }

    /// Its user and executable.
    pub(crate) fn origin(&self) -> Origin {
        Origin { uid: self.uid, executable: self.executable.clone() }
    }
}

/// Importance of an app without a priority.
const PRIORITY_DEFAULT: u32 = 10;

/// The clients that are scheduled, by slot.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    slots: Vec<Option<Member>>,
    own_uid: u32,
}

/// How long an app waits before it asks for a slot again.
const AGAIN: Span = Span::from_ms(1_000);

/// Why an app is not scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// When it may ask again; none if that would change nothing.
    pub(crate) again: Option<Span>,
}

impl Refusal {
    /// The answer may differ when other apps leave.
    pub(crate) fn for_now(reason: String) -> Self {
        Self { reason, again: Some(AGAIN) }
    }
}

impl From<String> for Refusal {
    /// The answer would be the same.
    fn from(reason: String) -> Self {
        Self { reason, again: None }
    }
}

impl Members {
    /// Removes the members that `keep` rejects.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Member) -> bool) {
        for slot in &mut self.slots {
            slot.take_if(|member| !keep(member));
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

    /// The member at that slot if `who` is a number, else the member of that name.
    pub(crate) fn find(&self, who: &str) -> Option<&Member> {
        if let Some(slot) = name::slot(who) {
            return self.get(AppId(slot));
        }
        let has_name = |member: &&Member| member.name == who;
        self.staying().find(has_name).or_else(|| self.iter().find(has_name))
    }

    /// A user may have three times as many slots as it leaves free, so that no user takes the last one from
    /// another. The daemon's own user and root may have all.
    fn check_quota(&self, uid: u32) -> Result<(), Refusal> {
        let (taken, held) = (self.iter().count(), self.iter().filter(|member| member.uid == uid).count());
        let free = self.slots.len() - taken;
        if free == 0 || uid == 0 || uid == self.own_uid || held < free * 3 {
            return Ok(());
        }
        let all = self.slots.len();
        Err(Refusal::for_now(format!("user {uid} has {held} of {all} slots; the rest is for other users")))
    }

    /// A member runs that executable.
    pub(crate) fn runs(&mut self, app: AppId, executable: Option<PathBuf>) {
        if let Some(member) = self.get_mut(app) {
            member.executable = executable;
        }
    }

    pub(crate) fn finished(&mut self, at: Time, done: &FrameDone) {
        // The frame may be of the client that had the slot before.
        if let Some(member) = self.get_mut(done.app).filter(|member| done.met && member.since <= at) {
            member.first_met.get_or_insert(done.frame);
        }
    }

    /// A member is about to leave: its priority and its reservation are available to others.
    pub(crate) fn leaves(&mut self, app: AppId) {
        if let Some(member) = self.get_mut(app) {
            member.leaving = true;
        }
    }

    /// The members that are not about to leave.
    fn staying(&self) -> impl Iterator<Item = &Member> {
        self.iter().filter(|member| !member.leaving)
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

    /// Puts an app on the list, or says why not.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        hello: &Hello,
        peer: Peer,
        settings: &Settings,
    ) -> Result<&Member, Refusal> {
        check_name(&hello.name)?;
        self.check_quota(peer.uid)?;
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return Err(Refusal::for_now(format!("all {} slots are taken", self.slots.len())));
        };
        let app = AppId(u32::try_from(slot).unwrap_or(u32::MAX));
        let asked = Terms::try_from(hello)?;
        let terms = asked.clone().under(settings.app(&hello.name)).complete(settings);
        let wanted = terms.priority.unwrap_or(PRIORITY_DEFAULT);
        let priority = self.unused_priority(wanted).ok_or_else(|| "all priorities are taken".to_owned())?;
        let (params, fps_mhz) = terms.lower(Priority(priority), settings)?;
        let (protected, mut admission) = self.judge(app, &params, settings);
        if is_refused(protected, &params, settings) {
            return Err(Refusal::for_now(admission));
        }
        if priority != wanted {
            admission = format!("{admission} (priority {wanted} is taken, so it has {priority})");
        }
        let member = Member {
            app,
            name: hello.name.clone(),
            pid: peer.pid,
            uid: peer.uid,
            executable: None,
            listed: settings.app(&hello.name).is_some(),
            fps_mhz,
            params,
            timing: terms.timing.unwrap_or_default(),
            max_slice: terms.max_slice.unwrap_or(settings.max_slice),
            admission,
            protected,
            paced: terms.paced.unwrap_or(false),
            asked,
            since: now,
            first_met: None,
            leaving: false,
        };
        Ok(self.slots[slot].insert(member))
    }

    /// Remembers the terms that a member asks for now; the missing ones stay.
    pub(crate) fn ask_again(&mut self, app: AppId, asked: Terms) {
        if let Some(member) = self.get_mut(app) {
            member.asked = asked.or(std::mem::take(&mut member.asked));
        }
    }

    /// Why a member may not have terms that it asks for itself, if so: it gets no more than a client that
    /// joins with them.
    pub(crate) fn refusal(&self, app: AppId, terms: Terms, settings: &Settings) -> Option<String> {
        let mut changed = self.clone();
        let member = changed.change(app, terms, settings).ok()?;
        let refused = is_refused(member.protected, &member.params, settings);
        refused.then(|| member.admission.clone())
    }

    /// Changes a member's terms, or says why not.
    pub(crate) fn change(
        &mut self,
        app: AppId,
        terms: Terms,
        settings: &Settings,
    ) -> Result<&Member, String> {
        let member = self.get(app).ok_or("no such app")?;
        let terms = terms.or(member.terms());
        let priority = Priority(terms.priority.unwrap_or(member.params.priority.0));
        if let Some(other) =
            self.staying().find(|other| other.app != app && other.params.priority == priority)
        {
            return Err(format!("priority {} belongs to {}", priority.0, other.name));
        }
        let (params, fps_mhz) = terms.lower(priority, settings)?;
        let (protected, admission) = self.judge(app, &params, settings);
        let member = self.get_mut(app).ok_or("no such app")?;
        member.fps_mhz = fps_mhz;
        member.params = params;
        member.timing = terms.timing.unwrap_or_default();
        member.max_slice = terms.max_slice.unwrap_or(member.max_slice);
        member.paced = terms.paced.unwrap_or(member.paced);
        (member.protected, member.admission) = (protected, admission);
        Ok(member)
    }

    /// Takes the core's verdict whether a member is protected; returns the member if that differs.
    pub(crate) fn judged(&mut self, app: AppId, protected: bool) -> Option<&Member> {
        let member = self.get_mut(app)?;
        if member.protected == protected {
            return None;
        }
        (member.protected, member.admission) = (protected, admission(&member.params, protected));
        Some(member)
    }

    /// Whether the contract of an app with these parameters will be covered beside the others, and the
    /// sentence that says so: by the core's own test, to answer before the core has judged.
    fn judge(&self, app: AppId, params: &AppParams, settings: &Settings) -> (bool, String) {
        let above =
            self.staying().filter(|other| other.app != app && other.params.priority > params.priority);
        let covered = || contract::is_covered(params, above.map(|other| &other.params), settings);
        let protected = has_contract(params) && covered();
        (protected, admission(params, protected))
    }

    /// The priority nearest to the wanted one that no member has, lower ones first.
    pub(crate) fn unused_priority(&self, wanted: u32) -> Option<u32> {
        let taken = |priority: &u32| self.staying().any(|member| member.params.priority.0 == *priority);
        (0..=wanted)
            .rev()
            .find(|priority| !taken(priority))
            .or_else(|| (wanted.checked_add(1)?..=u32::MAX).find(|priority| !taken(priority)))
    }
}

/// Whether an app with these parameters is protected, in words.
fn admission(params: &AppParams, protected: bool) -> String {
    if protected && params.etpf == Span::ZERO {
        "protected: its runtime is guaranteed in each period".to_owned()
    } else if protected {
        "protected: its deadlines are guaranteed".to_owned()
    } else if has_contract(params) {
        let why = "it and the more important apps reserve more than the GPU has";
        format!("not protected: {why}; lower an etpf, a runtime or a frame rate")
    } else {
        "not protected: it reserves no GPU time".to_owned()
    }
}

/// Whether the configuration refuses an app rather than scheduling it without a guarantee.
fn is_refused(protected: bool, params: &AppParams, settings: &Settings) -> bool {
    !protected && has_contract(params) && settings.admission == Admission::Refuse
}

/// Names are shown on terminals and written to logs, line by line.
fn check_name(name: &str) -> Result<(), String> {
    if name::is_name(name) {
        return Ok(());
    }
    Err(format!(
        "its name \"{}\" has other characters than {}, or none",
        name.escape_default(),
        name::ALLOWED
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, priority: Option<u32>, etpf_us: u64) -> Hello {
        Hello { name: name.to_owned(), priority, etpf_ns: Some(etpf_us * 1000), ..Hello::default() }
    }

    fn peer(pid: u32) -> Peer {
        Peer { pid, uid: 1000 }
    }

    #[test]
    fn names_do_not_steer_terminals() {
        let mut members = Members::new(1);
        for bad in ["", "a\nb", "\u{1b}[2J", "a\u{9b}1m", "a\u{202e}b", "Tacho 1", "é"] {
            let refused = members.admit(Time::ZERO, &hello(bad, None, 0), peer(1), &Settings::default());
            let reason = refused.expect_err("refused").reason;
            assert!(reason.contains("name") && reason.is_ascii(), "{bad:?}: {reason}");
        }
        assert!(
            members.admit(Time::ZERO, &hello("Tacho_1.x", None, 0), peer(1), &Settings::default()).is_ok()
        );
    }

    #[test]
    fn terms_that_a_join_may_not_have_are_refused_later() {
        let settings = Settings { admission: Admission::Refuse, ..Settings::default() };
        let mut members = Members::new(2);
        members.admit(Time::ZERO, &hello("a", Some(9), 9_000), peer(1), &settings).expect("admitted");
        members.admit(Time::ZERO, &hello("b", Some(1), 0), peer(2), &settings).expect("it reserves nothing");
        let etpf = |us| Terms { etpf: Some(Span::from_us(us)), ..Terms::default() };
        let refused = members.refusal(AppId(1), etpf(9_000), &settings).expect("too much");
        assert!(refused.starts_with("not protected"), "{refused}");
        assert_eq!(members.refusal(AppId(1), etpf(1_000), &settings), None);
        assert_eq!(members.refusal(AppId(1), etpf(9_000), &Settings::default()), None);
    }

    #[test]
    fn what_cannot_be_guaranteed_is_not_promised() {
        let mut members = Members::new(3);
        let settings = Settings::default();
        let first =
            members.admit(Time::ZERO, &hello("a", Some(9), 9_000), peer(1), &settings).expect("admitted");
        assert!(first.protected, "{first:?}");
        let second =
            members.admit(Time::ZERO, &hello("b", Some(9), 9_000), peer(2), &settings).expect("admitted");
        assert!(!second.protected);
        assert_eq!(second.params.priority, Priority(8));
        assert!(second.admission.contains("priority 9 is taken"), "{}", second.admission);
        let more = Terms { priority: Some(20), ..Terms::default() };
        assert!(members.change(AppId(1), more, &settings).expect("changed").protected);
        let refusing = Settings { admission: Admission::Refuse, ..settings };
        let refused =
            members.admit(Time::ZERO, &hello("c", Some(1), 9_000), peer(3), &refusing).expect_err("too much");
        assert!(refused.reason.starts_with("not protected"), "{refused:?}");
        assert!(refused.again.is_some(), "others may leave");
        assert!(
            members.admit(Time::ZERO, &hello("c", None, 0), peer(3), &refusing).is_ok(),
            "it reserves nothing"
        );
        assert_eq!(
            members.admit(Time::ZERO, &hello("d", None, 0), peer(4), &refusing).expect_err("full"),
            Refusal::for_now("all 3 slots are taken".to_owned())
        );
    }

    #[test]
    fn a_client_that_reconnects_gets_its_priority() {
        let settings = Settings::default();
        let mut members = Members::new(2);
        members.admit(Time::ZERO, &hello("a", Some(9), 9_000), peer(1), &settings).expect("admitted");
        members.leaves(AppId(0));
        let again = members.admit(Time::ZERO, &hello("a", Some(9), 9_000), peer(1), &settings);
        let again = again.expect("admitted");
        assert_eq!((again.app, again.params.priority, again.protected), (AppId(1), Priority(9), true));
    }

    #[test]
    fn the_core_has_the_last_word() {
        let settings = Settings::default();
        let mut members = Members::new(2);
        members.admit(Time::ZERO, &hello("a", Some(1), 9_000), peer(1), &settings).expect("admitted");
        assert_eq!(members.judged(AppId(0), true), None, "as expected");
        let taken_back = members.judged(AppId(0), false).expect("news");
        assert!(!taken_back.protected && taken_back.admission.starts_with("not protected: it and the more"));
        assert!(members.judged(AppId(0), true).expect("news").protected);
        assert_eq!(members.judged(AppId(1), true), None, "no such member");
    }

    #[test]
    fn the_file_outranks_the_app() {
        let settings = Settings::parse("[[app]]\nname='a'\npriority=5\nfps=30").expect("fine");
        let mut members = Members::new(2);
        let asks = Hello { fps_mhz: Some(60_000), ..hello("a", Some(99), 0) };
        let member = members.admit(Time::ZERO, &asks, peer(1), &settings).expect("admitted");
        assert_eq!((member.params.priority.0, member.fps_mhz), (5, 30_000));
        let odd = Hello { fps_mhz: Some(45_000), ..hello("b", None, 0) };
        assert!(
            members
                .admit(Time::ZERO, &odd, peer(2), &settings)
                .expect_err("odd")
                .reason
                .contains("does not divide")
        );
        assert_eq!(members.find("a").map(|member| member.app), Some(AppId(0)));
        assert_eq!(members.find("0").map(|member| member.app), Some(AppId(0)));
        assert_eq!(members.find("7"), None);
    }

    #[test]
    fn what_an_app_asks_for_later_is_remembered() {
        let settings = Settings::default();
        let mut members = Members::new(1);
        assert!(
            !members.admit(Time::ZERO, &hello("a", Some(9), 0), peer(1), &settings).expect("admitted").paced
        );
        let more = Terms::try_from(&Hello { fps_mhz: Some(30_000), ..Hello::default() }).expect("fine");
        members.ask_again(AppId(0), more.clone());
        let member = members.change(AppId(0), more, &settings).expect("changed");
        assert!(member.paced);
        assert_eq!((member.asked.priority, member.asked.fps_mhz), (Some(9), Some(30_000)));
    }

    #[test]
    fn terms_that_contradict_others_change_nothing() {
        let settings = Settings::default();
        let mut members = Members::new(2);
        members.admit(Time::ZERO, &hello("a", Some(1), 0), peer(1), &settings).expect("admitted");
        members.admit(Time::ZERO, &hello("b", Some(2), 0), peer(2), &settings).expect("admitted");
        let before = members.get(AppId(0)).cloned();
        let taken = Terms { priority: Some(2), etpf: Some(Span::from_ms(1)), ..Terms::default() };
        assert_eq!(members.change(AppId(0), taken, &settings), Err("priority 2 belongs to b".to_owned()));
        assert_eq!(members.get(AppId(0)).cloned(), before);
        assert!(members.change(AppId(9), Terms::default(), &settings).is_err());
    }

    #[test]
    fn no_user_takes_the_last_slot_from_another() {
        let (mut members, settings) = (Members::new(64), Settings::default());
        let mut join = |uid| {
            let peer = Peer { pid: 1, uid };
            members.admit(Time::ZERO, &hello("a", None, 0), peer, &settings).map(|_| ())
        };
        let own = rustix::process::geteuid().as_raw();
        let mut taken = |uid| std::iter::from_fn(|| join(uid).ok()).count();
        assert_eq!([taken(own + 1), taken(own + 2), taken(own + 3)], [48, 12, 3]);
        assert_eq!(taken(own), 1, "the daemon's own user may have the last one");
        let refused = join(own + 1).expect_err("full");
        assert!(refused.again.is_some(), "{refused:?}");
    }

    #[test]
    fn numbers_are_slots_whatever_apps_are_called() {
        let (mut members, settings) = (Members::new(8), Settings::default());
        for name in ["dial", "0", "7"] {
            members.admit(Time::ZERO, &hello(name, None, 0), peer(1), &settings).expect("admitted");
        }
        let found = |who: &str| members.find(who).map(|member| member.name.as_str());
        assert_eq!([found("0"), found("1"), found("dial")], [Some("dial"), Some("0"), Some("dial")]);
        assert_eq!(found("7"), None, "no such slot, and an app called so does not take its place");
    }
}
