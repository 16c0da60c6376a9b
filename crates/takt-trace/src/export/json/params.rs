//! What an app asks for, as a line says it.

use serde::{Deserialize, Serialize};
use takt_core::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use takt_core::{AppId, AppParams, Clock, DisplayId, Priority, Service, Span, Stride};

#[derive(Serialize, Deserialize)]
pub(super) struct Params {
    priority: u32,
    stride: u32,
    etpf_ns: u64,
    /// What releases its frames; left out if that is the first display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<ClockLine>,
    /// What only some policies look at; left out if nothing is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<ServiceLine>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum ClockLine {
    Display(u8),
    Own { period_ns: u64, deadline_ns: u64 },
}

impl ClockLine {
    fn of(clock: Clock) -> Self {
        match clock {
            Clock::Display(display) => Self::Display(display.0),
            Clock::Own { period, deadline } => {
                Self::Own { period_ns: period.as_ns(), deadline_ns: deadline.as_ns() }
            }
        }
    }

    fn clock(self) -> Clock {
        match self {
            Self::Display(display) => Clock::Display(DisplayId(display)),
            Self::Own { period_ns, deadline_ns } => {
                Clock::Own { period: Span::from_ns(period_ns), deadline: Span::from_ns(deadline_ns) }
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ServiceLine {
    follows_focus: bool,
    follows_itself: bool,
    reservation: ReservationLine,
    feeds: Option<u32>,
    level: LevelLine,
    timeslice_ns: u64,
    uninterruptible: bool,
    /// Left out if it is not.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    divisible: bool,
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps: Option<GapsLine>,
}

/// The gaps within frames.
#[derive(Serialize, Deserialize, Clone, Copy)]
struct GapsLine {
    count: u32,
    length_ns: u64,
}

impl GapsLine {
    fn of(gaps: Gaps) -> Option<Self> {
        (gaps.count > 0).then_some(Self { count: gaps.count, length_ns: gaps.length.as_ns() })
    }

    fn gaps(self) -> Gaps {
        Gaps { count: self.count, length: Span::from_ns(self.length_ns) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReservationLine {
    None,
    Own(ReserveLine),
    Shared(u32),
    Background,
}

/// A reserve as a line says it.
#[derive(Serialize, Deserialize)]
pub(super) struct ReserveLine {
    budget_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    apriori: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LevelLine {
    Low,
    Medium,
    High,
}

impl Params {
    pub(super) fn of(params: &AppParams) -> Self {
        Self {
            priority: params.priority.0,
            stride: params.stride.get(),
            etpf_ns: params.etpf.as_ns(),
            clock: (params.clock != Clock::default()).then(|| ClockLine::of(params.clock)),
            service: (params.service != Service::default()).then(|| ServiceLine::of(&params.service)),
        }
    }

    pub(super) fn params(&self) -> Result<AppParams, String> {
        let stride = Stride::new(self.stride);
        Ok(AppParams {
            priority: Priority(self.priority),
            stride: stride.ok_or_else(|| format!("stride = {}: use 1 to 240", self.stride))?,
            etpf: Span::from_ns(self.etpf_ns),
            clock: self.clock.map_or_else(Clock::default, ClockLine::clock),
            service: self.service.as_ref().map_or_else(Service::default, ServiceLine::service),
        })
    }
}

impl ServiceLine {
    fn of(service: &Service) -> Self {
        Self {
            follows_focus: service.follows_focus,
            follows_itself: service.turns == Turns::Following,
            reservation: match service.reservation {
                Reservation::None => ReservationLine::None,
                Reservation::Own(reserve) => ReservationLine::Own(ReserveLine::of(&reserve)),
                Reservation::Shared(app) => ReservationLine::Shared(app.0),
                Reservation::Background => ReservationLine::Background,
            },
            feeds: service.feeds.map(|app| app.0),
            level: match service.level {
                Level::Low => LevelLine::Low,
                Level::Medium => LevelLine::Medium,
                Level::High => LevelLine::High,
            },
            timeslice_ns: service.timeslice.as_ns(),
            uninterruptible: service.uninterruptible,
            divisible: service.divisible,
            gaps: GapsLine::of(service.gaps),
        }
    }

    fn service(&self) -> Service {
        Service {
            follows_focus: self.follows_focus,
            turns: if self.follows_itself { Turns::Following } else { Turns::Single },
            reservation: match &self.reservation {
                ReservationLine::None => Reservation::None,
                ReservationLine::Own(reserve) => Reservation::Own(reserve.reserve()),
                ReservationLine::Shared(app) => Reservation::Shared(AppId(*app)),
                ReservationLine::Background => Reservation::Background,
            },
            feeds: self.feeds.map(AppId),
            level: match self.level {
                LevelLine::Low => Level::Low,
                LevelLine::Medium => Level::Medium,
                LevelLine::High => Level::High,
            },
            timeslice: Span::from_ns(self.timeslice_ns),
            uninterruptible: self.uninterruptible,
            divisible: self.divisible,
            gaps: self.gaps.map_or_else(Gaps::default, GapsLine::gaps),
        }
    }
}

impl ReserveLine {
    pub(super) fn of(reserve: &Reserve) -> Self {
        Self {
            budget_ns: reserve.budget.as_ns(),
            period_ns: reserve.period.as_ns(),
            deadline_ns: reserve.deadline.as_ns(),
            apriori: reserve.enforcement == Enforcement::Apriori,
        }
    }

    pub(super) fn reserve(&self) -> Reserve {
        Reserve {
            budget: Span::from_ns(self.budget_ns),
            period: Span::from_ns(self.period_ns),
            deadline: Span::from_ns(self.deadline_ns),
            enforcement: if self.apriori { Enforcement::Apriori } else { Enforcement::Posterior },
        }
    }
}

/// Unbounded spans become `null`: a reader must not calculate with a sentinel.
pub(super) fn finite(span: Span) -> Option<u64> {
    (span < Span::FOREVER).then(|| span.as_ns())
}

/// The span of a member that may be `null`.
pub(super) fn forever(ns: Option<u64>) -> Span {
    ns.map_or(Span::FOREVER, Span::from_ns)
}
