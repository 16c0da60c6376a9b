//! The terms that an app is scheduled on: as they are written, checked, merged and lowered to
//! parameters of the core.

use std::fmt;

use takt_core::belief::Uncut;
use takt_core::limits::GAPS_MAX;
use takt_core::service::{Gaps, Service};
use takt_core::{AppParams, Priority, Span, contract};
use takt_ipc::message::{Hello, Pacing};
use takt_ipc::name;

use super::config::Settings;
use super::contract::{Lowered, Timing, ms};
use super::mistake::{Mistake, mistake};
use super::pacing::Pace;

/// Shortest period of an own clock or of a server, as of the fastest display.
const PERIOD_MIN: Span = Span::from_ms(1);
/// Longest period of an own clock: its grid counts nanoseconds in 32 bits.
pub(super) const OWN_PERIOD_MAX: Span = Span::from_ms(4_000);
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
    /// What says when it begins frames of a display, or of no clock that is named.
    pub pace: Option<Pace>,
    /// What its client found to decide that. No term: it tells which of the others hold.
    pub pacing: Option<Pacing>,
    /// What becomes of its work that cannot be cut and fits nowhere. An app cannot ask for that itself.
    pub uncut: Option<Uncut>,
    /// How it waits for its own groups within a frame or job.
    pub gaps: Option<Gaps>,
    /// Name of the app that consumes what it produces; none if it is empty.
    pub feeds: Option<String>,
    /// Name of the app whose contract it shares, instead of having one; empty for none.
    pub shares: Option<String>,
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
            pace: self.pace.or(other.pace),
            pacing: self.pacing.or(other.pacing),
            uncut: self.uncut.or(other.uncut),
            gaps: self.gaps.or(other.gaps),
            feeds: self.feeds.or(other.feeds),
            shares: self.shares.or(other.shares),
        }
    }

    /// These without what contradicts `above`: of two contracts of different kinds, one holds.
    fn beside(mut self, above: &Self) -> Self {
        if above.shares.as_ref().is_some_and(|shares| !shares.is_empty()) {
            (self.etpf, self.gaps) = (Some(Span::ZERO), None);
            self.timing = self.timing.filter(|timing| matches!(timing, Timing::Display(_)));
        } else if above.has_contract() {
            self.shares = None;
        }
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

    /// These without a contract.
    #[must_use]
    pub fn without_contract(self) -> Self {
        let is_server = matches!(self.timing, Some(Timing::Server { .. }));
        let timing = if is_server { Some(Timing::default()) } else { self.timing };
        Self { etpf: Some(Span::ZERO), timing, ..self }
    }

    /// Whether they ask for a contract.
    pub fn has_contract(&self) -> bool {
        let reserves = self.etpf.is_some_and(|etpf| etpf > Span::ZERO);
        reserves || matches!(self.timing, Some(Timing::Server { .. }))
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
            pace: Some(Pace::Auto),
            pacing: None,
            uncut: Some(Uncut::Wait),
            gaps: Some(Gaps::default()),
            feeds: Some(String::new()),
            shares: Some(String::new()),
        })
    }

    /// The parameters of the core for complete terms at that priority, and the frame rate.
    pub(in crate::control) fn lower(
        &self,
        priority: Priority,
        settings: &Settings,
    ) -> Result<(AppParams, u32), String> {
        let etpf = self.etpf.unwrap_or_default();
        if etpf > ETPF_MAX {
            return Err("it asks for more than a minute of GPU time per frame".to_owned());
        }
        let (timing, fps_mhz) = self.effective(&settings.core.refresh);
        let lowered = timing.lower(fps_mhz, etpf, settings)?;
        let Lowered { fps_mhz, stride, etpf, clock, reservation } = lowered;
        let service = Service { turns: settings.timegraph.turns, reservation, ..Service::default() };
        let params = AppParams { priority, stride, etpf, clock, service };
        Ok((self.with_gaps(params)?, fps_mhz))
    }

    /// The same parameters with the gaps of the app, which mean nothing without a contract.
    fn with_gaps(&self, params: AppParams) -> Result<AppParams, String> {
        let gaps = self.gaps.filter(|gaps| gaps.count > 0 && contract::has_contract(&params));
        let Some(gaps) = gaps else { return Ok(params) };
        let params = AppParams { service: Service { gaps, ..params.service }, ..params };
        let (all, reserved) = (gaps.length.times(gaps.count.into()), params.framed().etpf);
        if all >= reserved {
            let (all, reserved) = (ms(all), ms(reserved));
            return Err(format!(
                "its gaps take {all} of the {reserved} ms that it reserves: reserve more, or lower gaps or gap_ms"
            ));
        }
        Ok(params)
    }
}

impl fmt::Display for Terms {
    /// As keys and values of the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_ms = |span: Span| if span == Span::FOREVER { 0.0 } else { ms(span) };
        let mut all: Vec<String> = Vec::new();
        let mut put = |key: &str, value: Option<f64>| all.extend(value.map(|value| format!("{key}={value}")));
        put("priority", self.priority.map(f64::from));
        put("fps", self.fps_mhz.map(|mhz| f64::from(mhz) / 1000.0));
        put("etpf_ms", self.etpf.map(of_ms));
        put("max_slice_ms", self.max_slice.map(of_ms));
        match &self.timing {
            Some(Timing::Own { period, deadline }) => {
                put("period_ms", Some(of_ms(*period)));
                put("deadline_ms", Some(of_ms(*deadline)));
            }
            Some(Timing::Server { runtime, period, .. }) => {
                put("runtime_ms", Some(of_ms(*runtime)));
                put("period_ms", Some(of_ms(*period)));
            }
            Some(Timing::Display(name)) if !name.is_empty() => all.push(format!("display={name}")),
            _ => {}
        }
        all.extend((self.pace == Some(Pace::Display)).then(|| "pace=display".to_owned()));
        all.extend(self.pacing.map(|pacing| match pacing {
            Pacing::Unknown => "found=unknown".to_owned(),
            Pacing::Display => "found=display".to_owned(),
            Pacing::Free => "found=free".to_owned(),
            Pacing::Own { period, steady } => {
                format!("found=own found_ms={:.1} steady={steady}", ms(period))
            }
        }));
        if let Some(Gaps { count, length }) = self.gaps.filter(|gaps| gaps.count > 0) {
            all.push(format!("gaps={count} gap_ms={}", ms(length)));
        }
        for (key, name) in [("feeds", &self.feeds), ("shares", &self.shares)] {
            all.extend(name.iter().filter(|name| !name.is_empty()).map(|name| format!("{key}={name}")));
        }
        f.write_str(&all.join(" "))
    }
}

/// Terms with units, as a file, a tool or an app writes them; [`Self::check`] makes sense of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct UncheckedTerms {
    pub(super) priority: Option<u32>,
    pub(super) max_slice: Option<Span>,
    /// Name of a display.
    pub(super) display: Option<String>,
    /// What says when it begins its frames.
    pub(super) pace: Option<Pace>,
    /// Time between two frames of an own clock, or between two replenishments.
    pub(super) period: Option<Span>,
    /// From the release of a frame to its deadline.
    pub(super) deadline: Option<Span>,
    /// GPU time of a server.
    pub(super) runtime: Option<Span>,
    /// Whether that is a part of the GPU, and what the GPU adds is in it.
    pub(super) share: bool,
    /// Whether that server waits when it has no budget.
    pub(super) hard: Option<bool>,
    pub(super) fps_mhz: Option<u32>,
    pub(super) etpf: Option<Span>,
    /// Gaps within a frame or job, and the length of each.
    pub(super) gaps: Option<u32>,
    pub(super) gap: Option<Span>,
    /// Name of the app that consumes what it produces.
    pub(super) feeds: Option<String>,
    /// Name of the app whose contract it shares.
    pub(super) shares: Option<String>,
}

impl TryFrom<&Hello> for Terms {
    type Error = String;

    fn try_from(hello: &Hello) -> Result<Self, String> {
        let unchecked = UncheckedTerms {
            priority: hello.priority,
            max_slice: hello.max_slice_ns.map(Span::from_ns),
            display: hello.display.clone(),
            pace: hello.by_display.then_some(Pace::Display),
            period: hello.period_ns.map(Span::from_ns),
            deadline: hello.deadline_ns.map(Span::from_ns),
            runtime: hello.runtime_ns.map(Span::from_ns),
            share: false,
            hard: hello.hard.then_some(true),
            fps_mhz: hello.fps_mhz,
            etpf: hello.etpf_ns.map(Span::from_ns),
            gaps: hello.gaps,
            gap: hello.gap_ns.map(Span::from_ns),
            feeds: hello.feeds.clone(),
            shares: hello.shares.clone(),
        };
        let terms = unchecked.check().map_err(|mistake| mistake.to_string())?;
        Ok(Self { pacing: hello.pacing, ..terms })
    }
}

impl UncheckedTerms {
    /// The terms, if they do not contradict each other.
    pub(super) fn check(self) -> Result<Terms, Mistake> {
        self.check_names()?;
        let rate = self.fps_mhz.filter(|_| self.is_own() && self.period.is_none() && self.runtime.is_none());
        if let Some(mhz) = rate {
            // Frames of its own clock at that rate.
            let period = Span::from_ns(1_000_000_000_000 / u64::from(mhz.max(1)));
            return Self { period: Some(period), fps_mhz: None, ..self }.check();
        }
        if let Some(runtime) = self.runtime
            && self.deadline.zip(self.period).is_some_and(|(deadline, period)| deadline < period)
        {
            // Jobs that are due before the next one may come are frames by a clock of its own.
            return self.with_earlier_deadline(runtime)?.check();
        }
        let timing = match (self.runtime, self.period) {
            (Some(runtime), _) => Some(self.server(runtime)?),
            (None, Some(period)) => Some(self.own(period)?),
            (None, None) => self.frames()?,
        };
        let gaps = self.checked_gaps()?;
        self.check_shares()?;
        let Self { priority, fps_mhz, etpf, max_slice, pace, feeds, shares, .. } = self;
        let held = fps_mhz.is_some() || pace == Some(Pace::Display);
        let paced = timing.as_ref().and_then(Timing::paced).or_else(|| held.then_some(true));
        Ok(Terms {
            priority,
            fps_mhz,
            etpf,
            max_slice,
            paced,
            timing,
            pace,
            pacing: None,
            uncut: None,
            gaps,
            feeds,
            shares,
        })
    }

    fn is_own(&self) -> bool {
        self.pace == Some(Pace::Own)
    }

    fn with_earlier_deadline(self, runtime: Span) -> Result<Self, Mistake> {
        if let Some(etpf) = self.etpf {
            return Err(mistake("etpf_ms", ms(etpf), "runtime_ms says that already: remove one of them"));
        }
        Ok(Self { runtime: None, etpf: Some(runtime), ..self })
    }

    /// They are shown and logged as names of apps are; an empty one stands for none.
    fn check_names(&self) -> Result<(), Mistake> {
        for (key, name) in [("display", &self.display), ("feeds", &self.feeds), ("shares", &self.shares)] {
            if let Some(name) = name.as_ref().filter(|name| !name.is_empty() && !name::is_name(name)) {
                return Err(mistake(
                    key,
                    format!("\"{}\"", name.escape_default()),
                    format!("use {}", name::ALLOWED),
                ));
            }
        }
        Ok(())
    }

    /// An app that shares a contract has none of its own.
    fn check_shares(&self) -> Result<(), Mistake> {
        let Some(shares) = self.shares.as_ref().filter(|shares| !shares.is_empty()) else { return Ok(()) };
        if self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty()) {
            return Err(mistake("shares", shares, "it produces for another app (feeds): remove one of them"));
        }
        let spans = [("etpf_ms", self.etpf), ("runtime_ms", self.runtime), ("period_ms", self.period)];
        match spans.into_iter().find(|(_, span)| span.is_some_and(|span| span > Span::ZERO)) {
            Some((key, span)) => {
                let remedy = "an app that shares a contract has none of its own: remove this, or shares";
                Err(mistake(key, ms(span.unwrap_or_default()), remedy))
            }
            None => Ok(()),
        }
    }

    fn checked_gaps(&self) -> Result<Option<Gaps>, Mistake> {
        match (self.gaps, self.gap) {
            (None, None) => Ok(None),
            (Some(count), Some(length)) if count <= GAPS_MAX => Ok(Some(Gaps { count, length })),
            (Some(count), Some(_)) => Err(mistake("gaps", count, format!("use 0 to {GAPS_MAX}"))),
            (Some(count), None) => Err(mistake("gaps", count, "add gap_ms, how long each lasts at most")),
            (None, Some(length)) => {
                Err(mistake("gap_ms", ms(length), "add gaps, how many a frame has at most"))
            }
        }
    }

    fn server(&self, runtime: Span) -> Result<Timing, Mistake> {
        let with = "a server (runtime_ms) has jobs, not frames: remove this, or runtime_ms";
        if let Some(etpf) = self.etpf.filter(|etpf| *etpf > Span::ZERO) {
            return Err(mistake("etpf_ms", ms(etpf), with));
        }
        self.without_frames(with)?;
        if self.is_own() {
            return Err(mistake("clock", "own", with));
        }
        let Some(period) = self.period else {
            return Err(mistake("runtime_ms", ms(runtime), "add period_ms, the time in which it has that"));
        };
        check_period(period, SERVER_PERIOD_MAX)?;
        check_within("runtime_ms", runtime, period)?;
        self.deadline.map_or(Ok(()), |deadline| check_within("deadline_ms", deadline, period))?;
        Ok(Timing::Server { runtime, period, hard: self.hard.unwrap_or(false), share: self.share })
    }

    fn own(&self, period: Span) -> Result<Timing, Mistake> {
        let remedy = match self.pace {
            Some(Pace::Display) => Some("the display sets the period: remove one of them"),
            Some(Pace::Auto) => {
                Some("a clock of its own has a period: remove this, or say own instead of auto")
            }
            None | Some(Pace::Own) => None,
        };
        if let Some(remedy) = remedy {
            return Err(mistake("period_ms", ms(period), remedy));
        }
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
        if self.is_own() {
            return Err(mistake("clock", "own", "add fps, or period_ms, the time between two frames"));
        }
        // One that names no display leaves it open which.
        let any = self.pace.map(|_| String::new());
        Ok(self.display.clone().or(any).map(Timing::Display))
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
mod tests;
