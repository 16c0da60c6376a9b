//! What an app is promised, as people write it: frames of a display, frames by a clock of its own, or a
//! server. Whether a promise can be kept is judged by the core ([`takt_core::contract`]).

use takt_core::service::{Enforcement, Reservation, Reserve};
use takt_core::{AppParams, Clock, Span, Stride};

use crate::control::config::Settings;

/// Period of a server of which only the share was given.
pub const SHARE_PERIOD: Span = Span::from_ms(100);
/// Shortest period of an own clock or of a server, as of the fastest display.
const PERIOD_MIN: Span = Span::from_ms(1);
/// Longest period of an own clock: its grid counts nanoseconds in 32 bits.
const OWN_PERIOD_MAX: Span = Span::from_ms(4_000);
/// Longest period of a server.
const SERVER_PERIOD_MAX: Span = Span::from_ms(60_000);

/// What releases the work of an app.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Timing {
    /// The refresh of the display of that name; of the first one if the name is empty.
    Display(String),
    /// A clock of its own.
    Own {
        /// Shortest time between two frames.
        period: Span,
        /// From the release of a frame to its deadline.
        deadline: Span,
    },
    /// A server: its jobs come when they like, and have so much GPU time in each period.
    Server {
        /// GPU time per period.
        runtime: Span,
        /// Time between two replenishments.
        period: Span,
        /// Without budget it waits, also where the GPU would be idle.
        hard: bool,
    },
}

impl Default for Timing {
    fn default() -> Self {
        Self::Display(String::new())
    }
}

impl Timing {
    /// Whether whoever has it, and nothing else, has deadlines to wait for; none if that is up to others.
    pub fn paced(&self) -> Option<bool> {
        match self {
            Self::Display(_) => None,
            Self::Own { .. } => Some(true),
            Self::Server { .. } => Some(false),
        }
    }
}

/// A timing as it is written, in one of several ways.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Written {
    /// Name of a display.
    pub display: Option<String>,
    /// It is said to have a clock of its own.
    pub own: bool,
    /// Time between two frames of an own clock, or between two replenishments.
    pub period: Option<Span>,
    /// From the release of a frame to its deadline.
    pub deadline: Option<Span>,
    /// GPU time of a server.
    pub runtime: Option<Span>,
    /// Whether that server waits when it has no budget.
    pub hard: Option<bool>,
    /// Frames per second, in millihertz.
    pub fps_mhz: Option<u32>,
    /// GPU time per frame.
    pub etpf: Option<Span>,
}

/// Why something that is written is no timing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} = {value}: {remedy}")]
pub struct Contradiction {
    /// Which value.
    pub key: &'static str,
    /// What it is.
    pub value: String,
    /// What to do about it.
    pub remedy: String,
}

impl Written {
    /// What is meant; none if nothing was written about it.
    pub fn timing(&self) -> Result<Option<Timing>, Contradiction> {
        match (self.runtime, self.period) {
            (Some(runtime), _) => self.server(runtime).map(Some),
            (None, Some(period)) => self.own(period).map(Some),
            (None, None) => self.frames(),
        }
    }

    fn server(&self, runtime: Span) -> Result<Timing, Contradiction> {
        let with = "a server (runtime_ms) has jobs, not frames: leave this out, or runtime_ms";
        if let Some(etpf) = self.etpf.filter(|etpf| *etpf > Span::ZERO) {
            return Err(wrong("etpf_ms", ms(etpf), with));
        }
        if let Some(deadline) = self.deadline {
            let remedy = "a server's deadline is its period: leave this out; a job that is due sooner has a \
                          clock of its own, with etpf_ms instead of runtime_ms";
            return Err(wrong("deadline_ms", ms(deadline), remedy));
        }
        self.without_frames(with)?;
        if self.own {
            return Err(wrong("clock", "own", with));
        }
        let Some(period) = self.period else {
            return Err(wrong("runtime_ms", ms(runtime), "say in which time: add period_ms"));
        };
        check_period(period, SERVER_PERIOD_MAX)?;
        if runtime == Span::ZERO || runtime > period {
            let remedy = format!("use more than 0, and no more than period_ms ({})", ms(period));
            return Err(wrong("runtime_ms", ms(runtime), remedy));
        }
        Ok(Timing::Server { runtime, period, hard: self.hard.unwrap_or(false) })
    }

    fn own(&self, period: Span) -> Result<Timing, Contradiction> {
        self.without_frames(
            "an app with a clock of its own (period_ms) has no display: leave one of them out",
        )?;
        self.without_hard()?;
        check_period(period, OWN_PERIOD_MAX)?;
        let deadline = self.deadline.unwrap_or(period);
        if deadline == Span::ZERO || deadline > period {
            let remedy = format!("use more than 0, and no more than period_ms ({})", ms(period));
            return Err(wrong("deadline_ms", ms(deadline), remedy));
        }
        match self.etpf {
            Some(etpf) if etpf > deadline => {
                let remedy = format!("no frame of that length ends within {} ms: use less", ms(deadline));
                Err(wrong("etpf_ms", ms(etpf), remedy))
            }
            _ => Ok(Timing::Own { period, deadline }),
        }
    }

    fn frames(&self) -> Result<Option<Timing>, Contradiction> {
        self.without_hard()?;
        if let Some(deadline) = self.deadline {
            return Err(wrong(
                "deadline_ms",
                ms(deadline),
                "it counts from a clock of its own: add period_ms",
            ));
        }
        if self.own {
            return Err(wrong("clock", "own", "say how often: add period_ms"));
        }
        Ok(self.display.clone().map(Timing::Display))
    }

    fn without_frames(&self, remedy: &str) -> Result<(), Contradiction> {
        if let Some(mhz) = self.fps_mhz {
            return Err(wrong("fps", f64::from(mhz) / 1000.0, remedy));
        }
        match &self.display {
            Some(display) => Err(wrong("display", display, remedy)),
            None => Ok(()),
        }
    }

    fn without_hard(&self) -> Result<(), Contradiction> {
        match self.hard {
            Some(hard) => Err(wrong("hard", hard, "only a server can be: add runtime_ms and period_ms")),
            None => Ok(()),
        }
    }
}

fn check_period(period: Span, most: Span) -> Result<(), Contradiction> {
    if (PERIOD_MIN..=most).contains(&period) {
        return Ok(());
    }
    Err(wrong("period_ms", ms(period), format!("use {} to {} ms", ms(PERIOD_MIN), ms(most))))
}

fn wrong(key: &'static str, value: impl std::fmt::Display, remedy: impl Into<String>) -> Contradiction {
    Contradiction { key, value: value.to_string(), remedy: remedy.into() }
}

/// Milliseconds.
fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

/// What a timing means to the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lowered {
    /// Frames per second, in millihertz.
    pub fps_mhz: u32,
    /// Periods between two frames.
    pub stride: Stride,
    /// GPU time per frame.
    pub etpf: Span,
    /// What releases frames.
    pub clock: Clock,
    /// GPU time set aside.
    pub reservation: Reservation,
}

impl Timing {
    /// What it means to the core for an app of that frame rate, if it has one, and that GPU time per frame.
    pub fn lower(&self, fps_mhz: Option<u32>, etpf: Span, settings: &Settings) -> Result<Lowered, String> {
        match self {
            Self::Display(name) => {
                let (display, refresh) = settings.display(name)?;
                let fps_mhz = fps_mhz.unwrap_or_else(|| refresh.mhz());
                let stride = refresh.stride_for(fps_mhz).map_err(|error| error.to_string())?;
                let period = refresh.period_span().times(stride.periods());
                let reservation = budget(etpf, period, period, settings);
                Ok(Lowered { fps_mhz, stride, etpf, clock: Clock::Display(display), reservation })
            }
            Self::Own { period, deadline } => {
                let (period, deadline) = (*period, *deadline);
                let fps_mhz = u32::try_from(1_000_000_000_000 / period.as_ns().max(1)).unwrap_or(u32::MAX);
                let clock = Clock::Own { period, deadline };
                let reservation = budget(etpf, period, deadline, settings);
                Ok(Lowered { fps_mhz, stride: Stride::ONE, etpf, clock, reservation })
            }
            Self::Server { runtime, period, hard } => {
                let enforcement = if *hard { Enforcement::Apriori } else { Enforcement::Posterior };
                let reserve = Reserve { budget: *runtime, period: *period, deadline: *period, enforcement };
                Ok(Lowered {
                    fps_mhz: settings.core.refresh.mhz(),
                    stride: Stride::ONE,
                    etpf: Span::ZERO,
                    clock: Clock::default(),
                    reservation: Reservation::Own(reserve),
                })
            }
        }
    }
}

/// What frames reserve where a policy knows budgets instead of frames: their time in each of them. For all
/// others a server would be another contract.
fn budget(etpf: Span, period: Span, deadline: Span, settings: &Settings) -> Reservation {
    if etpf == Span::ZERO || !knows_budgets(&settings.policy) {
        return Reservation::None;
    }
    let (_, enforcement) = settings.timegraph;
    Reservation::Own(Reserve { budget: etpf, period, deadline, enforcement })
}

/// Whether a policy knows budgets instead of frames.
pub fn knows_budgets(policy: &str) -> bool {
    ["timegraph", "edf-cbs", "edf-cbs-hard"].contains(&policy)
}

/// Whether the contract of an app is covered beside those of more important apps.
pub fn is_covered<'a>(
    params: &AppParams,
    above: impl Iterator<Item = &'a AppParams>,
    settings: &Settings,
) -> bool {
    let promised = above.filter(|params| takt_core::contract::has_contract(params));
    let claim = |params: &AppParams| takt_core::contract::claim(params, &settings.core);
    let claims: Vec<_> = promised.map(claim).chain([claim(params)]).collect();
    takt_core::contract::is_covered(&claims, &settings.core)
}

/// A contract in a few words.
pub fn describe(timing: &Timing, params: &AppParams, fps_mhz: u32, paced: bool) -> String {
    let (rate, etpf) = (f64::from(fps_mhz) / 1000.0, format!("{:.1} ms", ms(params.etpf)));
    let owed = if params.etpf > Span::ZERO { format!(", {etpf}") } else { String::new() };
    match timing {
        Timing::Display(_) if !paced && params.etpf == Span::ZERO => "best effort".to_owned(),
        Timing::Display(name) if name.is_empty() => format!("{rate} fps{owed}"),
        Timing::Display(name) => format!("{rate} fps on {name}{owed}"),
        Timing::Own { period, deadline } if deadline < period => {
            format!("own clock {:.1} ms, due after {} ms{owed}", ms(*period), short(*deadline))
        }
        Timing::Own { period, .. } => format!("own clock {:.1} ms{owed}", ms(*period)),
        Timing::Server { runtime, period, hard } => {
            let kind = if *hard { "hard server" } else { "server" };
            format!("{kind} {} ms in {} ms", short(*runtime), short(*period))
        }
    }
}

/// Milliseconds with three digits behind the point at most.
fn short(span: Span) -> f64 {
    (ms(span) * 1000.0).round() / 1000.0
}
