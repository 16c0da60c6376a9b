//! Who is scheduled, and on which terms.

use takt_core::contract::has_contract;
use takt_core::service::Service;
use takt_core::{AppId, AppParams, FrameDone, Priority, Span, Time};
use takt_ipc::Standing;
use takt_ipc::message::Hello;
use takt_ipc::socket::Peer;

use crate::control::config::{Admission, AppSettings, Settings};
use crate::control::contract::{self, Timing, Written};

/// A client that is or will be scheduled.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// Its slot.
    pub app: AppId,
    /// How people call it.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Whether the configuration lists its name.
    pub listed: bool,
    /// Frames per second it is to have, in millihertz.
    pub fps_mhz: u32,
    /// What it was admitted with.
    pub params: AppParams,
    /// What releases its work.
    pub timing: Timing,
    /// Longest group it may form.
    pub max_slice: Span,
    /// Whether its deadlines are guaranteed, or why not.
    pub admission: String,
    /// Whether its deadlines are guaranteed.
    pub protected: bool,
    /// Whether it waits for its release after a swap: only if a frame rate was asked for.
    pub paced: bool,
    /// What it asked for itself.
    pub asked: Terms,
    /// When it was admitted.
    pub since: Time,
    /// Its first frame that met its deadline: what was late before that was so because it started.
    pub first_met: Option<u64>,
    /// It is about to go: the scheduling loop lets it go before anybody comes in its place.
    pub leaving: bool,
}

/// What is to change about a member; what is missing stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// Importance.
    pub priority: Option<u32>,
    /// Frames per second, in millihertz.
    pub fps_mhz: Option<u32>,
    /// GPU time per frame.
    pub etpf: Option<Span>,
    /// Longest group.
    pub max_slice: Option<Span>,
    /// Whether it waits for its release after a swap.
    pub paced: Option<bool>,
    /// What releases its work.
    pub timing: Option<Timing>,
}

impl Member {
    /// All that it has.
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
    pub fn contract(&self) -> String {
        contract::describe(&self.timing, &self.params, self.fps_mhz, self.paced)
    }

    /// Whether its deadlines mean anything: those of a frame rate that was asked for, or of its server's jobs.
    pub fn is_judged(&self) -> bool {
        self.paced || self.params.server().is_some()
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing { paced: self.paced, protected: self.protected }
    }

    /// Its process and user.
    pub fn peer(&self) -> Peer {
        Peer { pid: self.pid, uid: self.uid }
    }
}

impl From<&AppSettings> for Terms {
    fn from(settings: &AppSettings) -> Self {
        Self {
            priority: settings.priority,
            fps_mhz: settings.fps_mhz,
            etpf: settings.etpf,
            max_slice: settings.max_slice,
            paced: paced(settings.fps_mhz, settings.timing.as_ref()),
            timing: settings.timing.clone(),
        }
    }
}

impl TryFrom<&Hello> for Terms {
    type Error = String;

    fn try_from(hello: &Hello) -> Result<Self, String> {
        if hello.display.as_ref().is_some_and(|display| display.chars().any(char::is_control)) {
            return Err("the name of its display has control characters".to_owned());
        }
        let written = Written {
            display: hello.display.clone(),
            own: false,
            period: hello.period_ns.map(Span::from_ns),
            deadline: hello.deadline_ns.map(Span::from_ns),
            runtime: hello.runtime_ns.map(Span::from_ns),
            hard: hello.hard.then_some(true),
            fps_mhz: hello.fps_mhz,
            etpf: hello.etpf_ns.map(Span::from_ns),
        };
        let timing = written.timing().map_err(|wrong| wrong.to_string())?;
        Ok(Self {
            priority: hello.priority,
            fps_mhz: written.fps_mhz,
            etpf: written.etpf,
            max_slice: hello.max_slice_ns.map(Span::from_ns),
            paced: paced(written.fps_mhz, timing.as_ref()),
            timing,
        })
    }
}

/// Whether an app waits for its release after a swap, if these say so.
pub(crate) fn paced(fps_mhz: Option<u32>, timing: Option<&Timing>) -> Option<bool> {
    timing.and_then(Timing::paced).or_else(|| fps_mhz.map(|_| true))
}

impl Terms {
    /// With those of `other` for what is missing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let other = other.beside(&self);
        Self {
            priority: self.priority.or(other.priority),
            fps_mhz: self.fps_mhz.or(other.fps_mhz),
            etpf: self.etpf.or(other.etpf),
            max_slice: self.max_slice.or(other.max_slice),
            paced: self.paced.or(other.paced),
            timing: self.timing.or(other.timing),
        }
    }

    /// What is left of these beside others that go before: of two contracts of different kinds, one holds.
    fn beside(mut self, above: &Self) -> Self {
        match (&above.timing, &self.timing) {
            (Some(Timing::Server { .. }), _) => (self.fps_mhz, self.etpf) = (None, None),
            (Some(Timing::Own { .. }), _) => self.fps_mhz = None,
            // A clock of its own had a rate that means nothing to a display.
            (Some(Timing::Display(_)), Some(Timing::Own { .. })) => self.fps_mhz = None,
            (None, Some(Timing::Own { .. } | Timing::Server { .. })) if above.fps_mhz.is_some() => {
                self.timing = None;
            }
            (None, Some(Timing::Server { .. })) if above.etpf.is_some() => self.timing = None,
            _ => {}
        }
        self
    }

    /// The same where the configuration has nothing to say.
    #[must_use]
    pub fn under(self, fixed: Option<&AppSettings>) -> Self {
        match fixed {
            Some(fixed) => Self::from(fixed).or(self),
            None => self,
        }
    }

    /// With the defaults for what is missing; a priority that nobody named stays as it is.
    #[must_use]
    pub fn complete(self, settings: &Settings) -> Self {
        self.or(Self {
            priority: None,
            fps_mhz: None,
            etpf: Some(Span::ZERO),
            max_slice: Some(settings.max_slice),
            paced: Some(false),
            timing: Some(Timing::default()),
        })
    }

    /// What these, if they are complete, mean to the core at that priority, and the frame rate.
    fn lower(&self, priority: Priority, settings: &Settings) -> Result<(AppParams, u32), String> {
        let etpf = checked_etpf(self.etpf.unwrap_or_default())?;
        // Whoever named no rate has that of the display.
        let fps_mhz = self.fps_mhz.filter(|_| self.paced == Some(true));
        let lowered = self.timing.clone().unwrap_or_default().lower(fps_mhz, etpf, settings)?;
        let (turns, _) = settings.timegraph;
        let service = Service { turns, reservation: lowered.reservation, ..Service::default() };
        let contract::Lowered { fps_mhz, stride, etpf, clock, .. } = lowered;
        Ok((AppParams { priority, stride, etpf, clock, service }, fps_mhz))
    }
}

/// Importance of an app that neither asks for one nor is configured.
const PRIORITY_DEFAULT: u32 = 10;
/// Most GPU time per frame that may be asked for.
const ETPF_MAX: Span = Span::from_ms(60_000);

/// Everybody who is scheduled.
#[derive(Clone, Debug)]
pub struct Members {
    slots: Vec<Option<Member>>,
}

impl Members {
    /// Forgets whoever is not meant.
    pub(crate) fn retain(&mut self, meant: impl Fn(&Member) -> bool) {
        for slot in &mut self.slots {
            slot.take_if(|member| !meant(member));
        }
    }

    /// Nobody, with that many places.
    pub fn new(places: usize) -> Self {
        Self { slots: vec![None; places] }
    }

    /// Everybody by slot.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().flatten()
    }

    /// The member at a slot.
    pub fn get(&self, app: AppId) -> Option<&Member> {
        self.slots.get(app.index())?.as_ref()
    }

    /// The member of that name, or at that slot if it is a number.
    pub fn find(&self, who: &str) -> Option<&Member> {
        let slot = who.parse().ok().and_then(|slot| self.get(AppId(slot)));
        let is_called = |member: &&Member| member.name == who;
        self.staying().find(is_called).or_else(|| self.iter().find(is_called)).or(slot)
    }

    /// A frame was finished.
    pub fn finished(&mut self, at: Time, done: &FrameDone) {
        let member = self.slots.get_mut(done.app.index()).and_then(Option::as_mut);
        // It may be one of whoever had the slot before.
        if let Some(member) = member.filter(|member| done.met && member.since <= at) {
            member.first_met.get_or_insert(done.frame);
        }
    }

    /// A member is about to go: what it has is free for others.
    pub fn leaves(&mut self, app: AppId) {
        if let Some(member) = self.slots.get_mut(app.index()).and_then(Option::as_mut) {
            member.leaving = true;
        }
    }

    /// Whoever is to stay.
    fn staying(&self) -> impl Iterator<Item = &Member> {
        self.iter().filter(|member| !member.leaving)
    }

    /// Takes a member off the list.
    pub fn remove(&mut self, app: AppId) -> Option<Member> {
        self.slots.get_mut(app.index())?.take()
    }

    /// Puts somebody back who was on the list, in the place of whoever has its slot now.
    pub fn put_back(&mut self, member: Member) {
        if let Some(slot) = self.slots.get_mut(member.app.index()) {
            *slot = Some(member);
        }
    }

    /// Puts an app on the list, or says why not.
    pub fn admit(
        &mut self,
        now: Time,
        hello: &Hello,
        peer: Peer,
        settings: &Settings,
    ) -> Result<&Member, String> {
        check_name(&hello.name)?;
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return Err(format!("all {} places are taken", self.slots.len()));
        };
        let app = AppId(u32::try_from(slot).unwrap_or(u32::MAX));
        let asked = Terms::try_from(hello)?;
        let terms = asked.clone().under(settings.app(&hello.name)).complete(settings);
        let wanted = terms.priority.unwrap_or(PRIORITY_DEFAULT);
        let priority = self.free_priority(wanted).ok_or("all priorities are taken")?;
        let (params, fps_mhz) = terms.lower(Priority(priority), settings)?;
        let (protected, mut admission) = self.judge(app, &params, settings);
        if is_refused(protected, &params, settings) {
            return Err(admission);
        }
        if priority != wanted {
            admission = format!("{admission} (priority {wanted} is taken, so it has {priority})");
        }
        let member = Member {
            app,
            name: hello.name.clone(),
            pid: peer.pid,
            uid: peer.uid,
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

    /// Remembers what a member asks for now; what is missing stays as it was.
    pub fn ask_again(&mut self, app: AppId, asked: Terms) {
        if let Some(member) = self.slots.get_mut(app.index()).and_then(Option::as_mut) {
            member.asked = asked.or(std::mem::take(&mut member.asked));
        }
    }

    /// Why a member may not have terms that it asks for itself, if so: whoever was let in under others
    /// gets no more than whoever comes now.
    pub fn refusal(&self, app: AppId, terms: Terms, settings: &Settings) -> Option<String> {
        let mut changed = self.clone();
        let member = changed.change(app, terms, settings).ok()?;
        let refused = is_refused(member.protected, &member.params, settings);
        refused.then(|| member.admission.clone())
    }

    /// Changes a member's terms, or says why not.
    pub fn change(&mut self, app: AppId, terms: Terms, settings: &Settings) -> Result<&Member, String> {
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
        let Some(member) = self.slots.get_mut(app.index()).and_then(Option::as_mut) else {
            return Err("no such app".to_owned());
        };
        member.fps_mhz = fps_mhz;
        member.params = params;
        member.timing = terms.timing.unwrap_or_default();
        member.max_slice = terms.max_slice.unwrap_or(member.max_slice);
        member.paced = terms.paced.unwrap_or(member.paced);
        (member.protected, member.admission) = (protected, admission);
        Ok(member)
    }

    /// The core says whether a member is protected; that member, if it is news.
    pub fn judged(&mut self, app: AppId, protected: bool) -> Option<&Member> {
        let member = self.slots.get_mut(app.index()).and_then(Option::as_mut)?;
        if member.protected == protected {
            return None;
        }
        (member.protected, member.admission) = (protected, admission(&member.params, protected));
        Some(member)
    }

    /// Whether the contract of an app with these parameters will be covered beside the others, and the
    /// sentence that says so: by the core's own test, for an answer before the core was told.
    fn judge(&self, app: AppId, params: &AppParams, settings: &Settings) -> (bool, String) {
        let above =
            self.staying().filter(|other| other.app != app && other.params.priority > params.priority);
        let covered = || contract::is_covered(params, above.map(|other| &other.params), settings);
        let protected = has_contract(params) && covered();
        (protected, admission(params, protected))
    }

    /// The priority nearest to the wanted one that nobody has, lower ones first.
    pub fn free_priority(&self, wanted: u32) -> Option<u32> {
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

/// Whether an app is turned away rather than scheduled without a guarantee.
fn is_refused(protected: bool, params: &AppParams, settings: &Settings) -> bool {
    !protected && has_contract(params) && settings.admission == Admission::Refuse
}

/// Names are shown on terminals and written to logs, line by line.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        Err("it has no name".to_owned())
    } else if name.chars().any(char::is_control) {
        Err(format!("its name {name:?} has control characters; give it another one"))
    } else {
        Ok(())
    }
}

fn checked_etpf(etpf: Span) -> Result<Span, String> {
    if etpf > ETPF_MAX {
        Err("it asks for more than a minute of GPU time per frame".to_owned())
    } else {
        Ok(etpf)
    }
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
        for bad in ["", "a\nb", "\u{1b}[2J", "a\u{9b}1m"] {
            let refused = members.admit(Time::ZERO, &hello(bad, None, 0), peer(1), &Settings::default());
            assert!(refused.expect_err("refused").contains("name"), "{bad:?}");
        }
        assert!(
            members.admit(Time::ZERO, &hello("Tacho 1 é", None, 0), peer(1), &Settings::default()).is_ok()
        );
    }

    #[test]
    fn what_is_refused_at_the_door_is_refused_later() {
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
        assert!(refused.starts_with("not protected"), "{refused}");
        assert!(
            members.admit(Time::ZERO, &hello("c", None, 0), peer(3), &refusing).is_ok(),
            "it reserves nothing"
        );
        assert_eq!(
            members.admit(Time::ZERO, &hello("d", None, 0), peer(4), &refusing).expect_err("full"),
            "all 3 places are taken"
        );
    }

    #[test]
    fn whoever_comes_back_does_not_meet_itself() {
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
        assert_eq!(members.judged(AppId(1), true), None, "nobody is there");
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
            members.admit(Time::ZERO, &odd, peer(2), &settings).expect_err("odd").contains("does not divide")
        );
        assert_eq!(members.find("a").map(|member| member.app), Some(AppId(0)));
        assert_eq!(members.find("0").map(|member| member.app), Some(AppId(0)));
        assert_eq!(members.find("7"), None);
    }

    #[test]
    fn timegraph_is_told_how_to_treat_apps() {
        use takt_core::service::{Enforcement, Reservation, Turns};
        let text = "policy = 'timegraph'\n[timegraph]\nturns = 'following'\nenforcement = 'apriori'";
        let settings = Settings::parse(text).expect("fine");
        let mut members = Members::new(1);
        let member =
            members.admit(Time::ZERO, &hello("a", None, 1_000), peer(1), &settings).expect("admitted");
        let service = member.params.service;
        assert_eq!(service.turns, Turns::Following);
        assert!(
            matches!(service.reservation, Reservation::Own(own) if own.enforcement == Enforcement::Apriori),
            "{service:?}"
        );
    }

    #[test]
    fn frames_are_a_server_only_where_the_policy_knows_no_frames() {
        use takt_core::service::Reservation;
        let reservation = |policy: &str| {
            let settings = Settings { policy: policy.to_owned(), ..Settings::default() };
            let mut members = Members::new(1);
            let member = members.admit(Time::ZERO, &hello("a", None, 1_000), peer(1), &settings);
            member.expect("admitted").params.service.reservation
        };
        assert_eq!(reservation("timeline"), Reservation::None);
        assert_eq!(reservation("frame-deadline"), Reservation::None);
        assert!(matches!(reservation("edf-cbs"), Reservation::Own(_)));
    }

    #[test]
    fn contracts_of_all_kinds_reach_the_core() {
        use takt_core::service::{Enforcement, Reservation};
        use takt_core::{Clock, DisplayId};
        let text = "[[display]]\nname='hud'\n[[display]]\nname='cluster'\nrefresh_hz=30\n\
            [[app]]\nname='dial'\ndisplay='cluster'\nfps=15\netpf_ms=3\n\
            [[app]]\nname='camera'\nclock='own'\nperiod_ms=33.3\ndeadline_ms=20\netpf_ms=4\n\
            [[app]]\nname='detector'\nruntime_ms=3\nperiod_ms=40\nhard=true\n\
            [[app]]\nname='rest'\nshare=0.2";
        let settings = Settings::parse(text).expect("fine");
        let mut members = Members::new(5);
        let mut admit = |name: &str| {
            members.admit(Time::ZERO, &hello(name, None, 0), peer(1), &settings).expect("admitted").clone()
        };
        let (dial, camera) = (admit("dial"), admit("camera"));
        assert_eq!(dial.params.clock, Clock::Display(DisplayId(1)));
        assert_eq!((dial.params.stride.get(), dial.paced, dial.protected), (2, true, true));
        assert_eq!(dial.contract(), "15 fps on cluster, 3.0 ms");
        let clock = Clock::Own { period: Span::from_us(33_300), deadline: Span::from_ms(20) };
        assert_eq!((camera.params.clock, camera.paced, camera.protected), (clock, true, true));
        assert_eq!(camera.contract(), "own clock 33.3 ms, due after 20 ms, 4.0 ms");
        let (detector, rest, other) = (admit("detector"), admit("rest"), admit("other"));
        let Reservation::Own(reserve) = detector.params.service.reservation else {
            panic!("{detector:?}");
        };
        assert_eq!((reserve.budget, reserve.period), (Span::from_ms(3), Span::from_ms(40)));
        assert_eq!(reserve.enforcement, Enforcement::Apriori);
        assert!(!detector.paced && detector.is_judged(), "it waits for nothing, and its jobs have deadlines");
        assert!(!other.is_judged());
        assert_eq!((detector.contract(), detector.paced), ("hard server 3 ms in 40 ms".to_owned(), false));
        assert_eq!(rest.contract(), "server 20 ms in 100 ms");
        assert_eq!((other.contract(), other.protected), ("best effort".to_owned(), false));
    }

    #[test]
    fn of_two_contracts_the_later_one_holds() {
        let settings = Settings::parse("[[display]]\nname='a'\n[[display]]\nname='b'\nrefresh_hz=50");
        let settings = settings.expect("fine");
        let mut members = Members::new(1);
        members.admit(Time::ZERO, &hello("x", None, 2_000), peer(1), &settings).expect("admitted");
        let mut change =
            |terms| members.change(AppId(0), terms, &settings).map(Member::contract).expect("changed");
        let timing = |timing: Timing| Terms {
            paced: paced(None, Some(&timing)),
            timing: Some(timing),
            ..Terms::default()
        };
        let fps = |mhz| Terms { fps_mhz: Some(mhz), paced: Some(true), ..Terms::default() };
        let (period, deadline) = (Span::from_ms(20), Span::from_ms(20));
        assert_eq!(change(timing(Timing::Own { period, deadline })), "own clock 20.0 ms, 2.0 ms");
        assert_eq!(change(timing(Timing::Display("b".to_owned()))), "50 fps on b, 2.0 ms");
        assert_eq!(change(fps(25_000)), "25 fps on b, 2.0 ms");
        let server = Timing::Server { runtime: Span::from_ms(1), period, hard: false };
        assert_eq!(change(timing(server.clone())), "server 1 ms in 20 ms");
        assert_eq!(change(Terms { priority: Some(3), ..Terms::default() }), "server 1 ms in 20 ms");
        assert_eq!(change(fps(30_000)), "30 fps", "frames of the first display");
        change(timing(server));
        assert_eq!(change(Terms { etpf: Some(deadline), ..Terms::default() }), "60 fps, 20.0 ms");
        let unknown = members.change(AppId(0), timing(Timing::Display("c".to_owned())), &settings);
        assert_eq!(unknown, Err("there is no display c; there are a, b".to_owned()));
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
}
