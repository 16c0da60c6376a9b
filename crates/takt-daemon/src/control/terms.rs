//! The terms that an app is scheduled on: as they are written, checked, merged and lowered to
//! parameters of the core.

use takt_core::service::Service;
use takt_core::{AppParams, Priority, Span};
use takt_ipc::message::Hello;

use super::config::Settings;
use super::contract::{Lowered, Timing, ms};
use super::mistake::{Mistake, mistake};

/// Shortest period of an own clock or of a server, as of the fastest display.
const PERIOD_MIN: Span = Span::from_ms(1);
/// Longest period of an own clock: its grid counts nanoseconds in 32 bits.
const OWN_PERIOD_MAX: Span = Span::from_ms(4_000);
/// Longest period of a server.
const SERVER_PERIOD_MAX: Span = Span::from_ms(60_000);
/// Most GPU time per frame that an app may reserve.
const ETPF_MAX: Span = Span::from_ms(60_000);

/// Terms of an app; the missing ones come from elsewhere.
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

impl Terms {
    /// With those of `other` for the missing ones.
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

    /// These without what contradicts `above`: of two contracts of different kinds, one holds.
    fn beside(mut self, above: &Self) -> Self {
        match (&above.timing, &self.timing) {
            (Some(Timing::Server { .. }), _) => (self.fps_mhz, self.etpf) = (None, None),
            (Some(Timing::Own { .. }), _) => self.fps_mhz = None,
            // The rate of an own clock means nothing to a display.
            (Some(Timing::Display(_)), Some(Timing::Own { .. })) => self.fps_mhz = None,
            (None, Some(Timing::Own { .. } | Timing::Server { .. })) if above.fps_mhz.is_some() => {
                self.timing = None;
            }
            (None, Some(Timing::Server { .. })) if above.etpf.is_some() => self.timing = None,
            _ => {}
        }
        self
    }

    /// With those of the configuration first.
    #[must_use]
    pub fn under(self, configured: Option<&Self>) -> Self {
        configured.map_or_else(Self::default, Self::clone).or(self)
    }

    /// With the defaults for the missing ones; a missing priority stays missing.
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

    /// The parameters of the core for complete terms at that priority, and the frame rate.
    pub(super) fn lower(&self, priority: Priority, settings: &Settings) -> Result<(AppParams, u32), String> {
        let etpf = self.etpf.unwrap_or_default();
        if etpf > ETPF_MAX {
            return Err("it asks for more than a minute of GPU time per frame".to_owned());
        }
        // An app without a rate of its own has that of the display.
        let fps_mhz = self.fps_mhz.filter(|_| self.paced == Some(true));
        let lowered = self.timing.clone().unwrap_or_default().lower(fps_mhz, etpf, settings)?;
        let Lowered { fps_mhz, stride, etpf, clock, reservation } = lowered;
        let service = Service { turns: settings.timegraph.turns, reservation, ..Service::default() };
        Ok((AppParams { priority, stride, etpf, clock, service }, fps_mhz))
    }
}

/// Terms with units, as a file, a tool or an app writes them; [`Self::check`] makes sense of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct UncheckedTerms {
    pub(super) priority: Option<u32>,
    pub(super) max_slice: Option<Span>,
    /// Name of a display.
    pub(super) display: Option<String>,
    /// Whether it names a clock of its own.
    pub(super) own: bool,
    /// Time between two frames of an own clock, or between two replenishments.
    pub(super) period: Option<Span>,
    /// From the release of a frame to its deadline.
    pub(super) deadline: Option<Span>,
    /// GPU time of a server.
    pub(super) runtime: Option<Span>,
    /// Whether that server waits when it has no budget.
    pub(super) hard: Option<bool>,
    pub(super) fps_mhz: Option<u32>,
    pub(super) etpf: Option<Span>,
}

impl TryFrom<&Hello> for Terms {
    type Error = String;

    fn try_from(hello: &Hello) -> Result<Self, String> {
        if hello.display.as_ref().is_some_and(|display| !takt_ipc::name::is_name(display)) {
            let allowed = takt_ipc::name::ALLOWED;
            return Err(format!("the name of its display has other characters than {allowed}"));
        }
        let unchecked = UncheckedTerms {
            priority: hello.priority,
            max_slice: hello.max_slice_ns.map(Span::from_ns),
            display: hello.display.clone(),
            own: false,
            period: hello.period_ns.map(Span::from_ns),
            deadline: hello.deadline_ns.map(Span::from_ns),
            runtime: hello.runtime_ns.map(Span::from_ns),
            hard: hello.hard.then_some(true),
            fps_mhz: hello.fps_mhz,
            etpf: hello.etpf_ns.map(Span::from_ns),
        };
        unchecked.check().map_err(|mistake| mistake.to_string())
    }
}

impl UncheckedTerms {
    /// The terms, if they do not contradict each other.
    pub(super) fn check(self) -> Result<Terms, Mistake> {
        let timing = match (self.runtime, self.period) {
            (Some(runtime), _) => Some(self.server(runtime)?),
            (None, Some(period)) => Some(self.own(period)?),
            (None, None) => self.frames()?,
        };
        let Self { priority, fps_mhz, etpf, max_slice, .. } = self;
        let paced = timing.as_ref().and_then(Timing::paced).or_else(|| fps_mhz.map(|_| true));
        Ok(Terms { priority, fps_mhz, etpf, max_slice, paced, timing })
    }

    fn server(&self, runtime: Span) -> Result<Timing, Mistake> {
        let with = "a server (runtime_ms) has jobs, not frames: remove this, or runtime_ms";
        if let Some(etpf) = self.etpf.filter(|etpf| *etpf > Span::ZERO) {
            return Err(mistake("etpf_ms", ms(etpf), with));
        }
        if let Some(deadline) = self.deadline {
            let remedy = "a server's deadline is its period: remove this; a job with an earlier deadline has a \
                          clock of its own, with etpf_ms instead of runtime_ms";
            return Err(mistake("deadline_ms", ms(deadline), remedy));
        }
        self.without_frames(with)?;
        if self.own {
            return Err(mistake("clock", "own", with));
        }
        let Some(period) = self.period else {
            return Err(mistake("runtime_ms", ms(runtime), "add period_ms, the time in which it has that"));
        };
        check_period(period, SERVER_PERIOD_MAX)?;
        check_within("runtime_ms", runtime, period)?;
        Ok(Timing::Server { runtime, period, hard: self.hard.unwrap_or(false) })
    }

    fn own(&self, period: Span) -> Result<Timing, Mistake> {
        self.without_frames("an app with a clock of its own (period_ms) has no display: remove one of them")?;
        self.without_hard()?;
        check_period(period, OWN_PERIOD_MAX)?;
        let deadline = self.deadline.unwrap_or(period);
        check_within("deadline_ms", deadline, period)?;
        match self.etpf {
            Some(etpf) if etpf > deadline => {
                let remedy = format!("no frame of that length ends within {} ms: use less", ms(deadline));
                Err(mistake("etpf_ms", ms(etpf), remedy))
            }
            _ => Ok(Timing::Own { period, deadline }),
        }
    }

    fn frames(&self) -> Result<Option<Timing>, Mistake> {
        self.without_hard()?;
        if let Some(deadline) = self.deadline {
            let remedy = "it counts from a clock of its own: add period_ms";
            return Err(mistake("deadline_ms", ms(deadline), remedy));
        }
        if self.own {
            return Err(mistake("clock", "own", "add period_ms, the time between two frames"));
        }
        Ok(self.display.clone().map(Timing::Display))
    }

    fn without_frames(&self, remedy: &str) -> Result<(), Mistake> {
        if let Some(mhz) = self.fps_mhz {
            return Err(mistake("fps", f64::from(mhz) / 1000.0, remedy));
        }
        self.display.as_ref().map_or(Ok(()), |display| Err(mistake("display", display, remedy)))
    }

    fn without_hard(&self) -> Result<(), Mistake> {
        let remedy = "only a server can be hard: add runtime_ms and period_ms";
        self.hard.map_or(Ok(()), |hard| Err(mistake("hard", hard, remedy)))
    }
}

fn check_period(period: Span, most: Span) -> Result<(), Mistake> {
    if (PERIOD_MIN..=most).contains(&period) {
        return Ok(());
    }
    Err(mistake("period_ms", ms(period), format!("use {} to {} ms", ms(PERIOD_MIN), ms(most))))
}

fn check_within(key: &str, span: Span, period: Span) -> Result<(), Mistake> {
    if span > Span::ZERO && span <= period {
        return Ok(());
    }
    Err(mistake(key, ms(span), format!("use more than 0, and no more than period_ms ({})", ms(period))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::members::{Member, Members};
    use takt_core::{AppId, Time};
    use takt_ipc::socket::Peer;

    const PEER: Peer = Peer { pid: 1, uid: 1000 };

    fn hello(name: &str, etpf_us: u64) -> Hello {
        Hello { name: name.to_owned(), etpf_ns: Some(etpf_us * 1000), ..Hello::default() }
    }

    #[test]
    fn timegraph_is_told_how_to_treat_apps() {
        use takt_core::service::{Enforcement, Reservation, Turns};
        let text = "policy = 'timegraph'\n[timegraph]\nturns = 'following'\nenforcement = 'apriori'";
        let settings = Settings::parse(text).expect("fine");
        let mut members = Members::new(1);
        let member = members.admit(Time::ZERO, &hello("a", 1_000), PEER, &settings).expect("admitted");
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
            let member = members.admit(Time::ZERO, &hello("a", 1_000), PEER, &settings);
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
        let mut members = Members::new(8);
        let mut admit = |name: &str| {
            members.admit(Time::ZERO, &hello(name, 0), PEER, &settings).expect("admitted").clone()
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
        members.admit(Time::ZERO, &hello("x", 2_000), PEER, &settings).expect("admitted");
        let mut change =
            |terms| members.change(AppId(0), terms, &settings).map(Member::contract).expect("changed");
        let timing =
            |timing: Timing| Terms { paced: timing.paced(), timing: Some(timing), ..Terms::default() };
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
}
