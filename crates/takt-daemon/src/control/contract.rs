//! What an app is promised: frames of a display, frames by a clock of its own, or a server. The core
//! judges whether a promise can be kept ([`takt_core::contract`]).

use takt_core::analysis::contracts::Kind;
use takt_core::service::{Enforcement, Reservation, Reserve, Service};
use takt_core::{AppParams, Clock, Config, Estimate, Span, Stride};

use super::config::Settings;
use super::rights::Reserved;

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
    /// A server: its jobs come at any time, and together have so much GPU time in each period.
    Server {
        /// GPU time per period, as it is with nothing else on the GPU.
        runtime: Span,
        /// Time between two replenishments.
        period: Span,
        /// Without budget it waits, even if the GPU would be idle.
        hard: bool,
        /// The runtime is a part of the GPU: what the GPU adds to work is in it.
        share: bool,
    },
}

impl Default for Timing {
    fn default() -> Self {
        Self::Display(String::new())
    }
}

impl Timing {
    /// Whether an app with this timing waits for its release after a swap; none if its frame rate decides.
    pub fn paced(&self) -> Option<bool> {
        match self {
            Self::Display(_) => None,
            Self::Own { .. } => Some(true),
            Self::Server { .. } => Some(false),
        }
    }
}

/// Milliseconds.
pub(super) fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

/// A timing in the terms of the core.
pub(super) struct Lowered {
    pub(super) fps_mhz: u32,
    pub(super) stride: Stride,
    pub(super) etpf: Span,
    pub(super) clock: Clock,
    pub(super) reservation: Reservation,
}

impl Timing {
    /// In the terms of the core, for an app with that frame rate, if it has one, and that GPU time per frame.
    pub(super) fn lower(
        &self,
        fps_mhz: Option<u32>,
        etpf: Span,
        settings: &Settings,
    ) -> Result<Lowered, String> {
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
            Self::Server { period, hard, .. } => {
                let enforcement = if *hard { Enforcement::Apriori } else { Enforcement::Posterior };
                let budget = self.budget(&settings.core);
                let reserve = Reserve { budget, period: *period, deadline: *period, enforcement };
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

    /// These parameters with what a server of this timing reserves by what the GPU adds now.
    pub(super) fn reserves(&self, params: AppParams, settings: &Settings) -> AppParams {
        let (Self::Server { .. }, Reservation::Own(reserve)) = (self, params.service.reservation) else {
            return params;
        };
        let reserve = Reserve { budget: self.budget(&settings.core), ..reserve };
        AppParams { service: Service { reservation: Reservation::Own(reserve), ..params.service }, ..params }
    }

    /// What a server reserves in each period: as much as one group is charged that takes its runtime alone, and all of
    /// the period where that is not enough.
    fn budget(&self, config: &Config) -> Span {
        match *self {
            Self::Server { runtime, share: true, .. } => runtime,
            Self::Server { runtime, period, share: false, .. } => {
                config.per_job(Estimate::new(runtime)).min(period)
            }
            Self::Display(_) | Self::Own { .. } => Span::ZERO,
        }
    }
}

/// The reservation of frames under a policy that knows budgets instead of frames: their time in each
/// period. Under any other policy it would be a second contract.
fn budget(etpf: Span, period: Span, deadline: Span, settings: &Settings) -> Reservation {
    if etpf == Span::ZERO || !knows_budgets(&settings.policy) {
        return Reservation::None;
    }
    let enforcement = settings.timegraph.enforcement;
    Reservation::Own(Reserve { budget: etpf, period, deadline, enforcement })
}

/// Whether a policy knows budgets instead of frames.
pub(super) fn knows_budgets(policy: &str) -> bool {
    ["timegraph", "edf-cbs", "edf-cbs-hard"].contains(&policy)
}

/// Whether the contract of an app is covered beside those of more important apps.
pub(super) fn is_covered<'a>(
    params: &AppParams,
    above: impl Iterator<Item = &'a AppParams>,
    settings: &Settings,
) -> bool {
    let promised = above.filter(|params| takt_core::contract::has_contract(params));
    let claim = |params: &AppParams| takt_core::contract::claim(params, &settings.core);
    let claims: Vec<_> = promised.map(claim).chain([claim(params)]).collect();
    takt_core::contract::is_covered(&claims, &settings.core)
}

/// How many contracts, most important first, are covered together.
pub(super) fn covered<'a>(promised: impl Iterator<Item = &'a AppParams>, settings: &Settings) -> usize {
    let claims: Vec<_> = promised.map(|params| takt_core::contract::claim(params, &settings.core)).collect();
    takt_core::contract::covered(&claims, &settings.core)
}

/// The time that an app with these parameters reserves.
pub(super) fn reserved(params: &AppParams, config: &Config) -> Reserved {
    let claim = takt_core::contract::claim(params, config);
    let share_ppm = match claim.kind {
        Kind::Frames { period, .. } | Kind::Server { period } => {
            claim.span.as_ns().saturating_mul(1_000_000).div_ceil(period.as_ns().max(1))
        }
        Kind::None => 0,
    };
    Reserved { etpf: params.etpf, share_ppm }
}

/// A contract in a few words.
pub(super) fn describe(timing: &Timing, params: &AppParams, fps_mhz: u32, paced: bool) -> String {
    let (rate, etpf) = (f64::from(fps_mhz) / 1000.0, format!("{:.1} ms", ms(params.etpf)));
    let owed = if params.etpf > Span::ZERO { format!(", {etpf}") } else { String::new() };
    match (timing, params.clock) {
        (Timing::Server { runtime, period, hard, .. }, _) => {
            let kind = if *hard { "hard server" } else { "server" };
            format!("{kind} {} ms in {} ms", short(*runtime), short(*period))
        }
        (_, Clock::Own { period, deadline }) if deadline < period => {
            format!("own clock {:.1} ms, due after {} ms{owed}", ms(period), short(deadline))
        }
        (_, Clock::Own { period, .. }) => format!("own clock {:.1} ms{owed}", ms(period)),
        _ if !paced && params.etpf == Span::ZERO => "best effort".to_owned(),
        (Timing::Display(name), _) if !name.is_empty() => format!("{rate} fps on {name}{owed}"),
        _ => format!("{rate} fps{owed}"),
    }
}

/// Milliseconds with at most three decimals.
fn short(span: Span) -> f64 {
    (ms(span) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use takt_core::{Divisible, Gpu, Priority};

    use super::*;

    /// A GPU like an H200, without and with work that it interrupts.
    fn settings(interrupts: bool) -> Settings {
        let us = Span::from_us;
        let mut settings = Settings::default();
        settings.core.gpu = Gpu::TimeShared { slice: us(1000), switch: us(222) };
        let divisible = Divisible { slice: us(300), quantum: us(0), own_slice: us(20_000), switch: us(222) };
        settings.core.divisible = interrupts.then_some(divisible);
        settings
    }

    fn params(timing: &Timing, settings: &Settings) -> AppParams {
        let Lowered { stride, etpf, clock, reservation, .. } =
            timing.lower(None, Span::ZERO, settings).expect("a server");
        let service = Service { reservation, ..Service::default() };
        AppParams { priority: Priority(1), stride, etpf, clock, service }
    }

    #[test]
    fn a_runtime_holds_a_kernel_of_that_length() {
        let (runtime, period) = (Span::from_ms(6), Span::from_us(16_700));
        let timing = Timing::Server { runtime, period, hard: false, share: false };
        let (before, beside) = (settings(false), settings(true));
        let params = params(&timing, &before);
        let budget = |params: &AppParams| params.server().expect("a server").budget;
        let needs = |settings: &Settings| settings.core.per_job(Estimate::new(Span::from_us(5_700)));
        assert!(needs(&before) > runtime, "what is charged is longer than the runtime");
        assert!(budget(&params) >= needs(&before) && is_covered(&params, std::iter::empty(), &before));
        assert!(budget(&params) < needs(&beside), "each group waits for a turn of what the GPU interrupts");
        let params = timing.reserves(params, &beside);
        assert!(budget(&params) >= needs(&beside) && is_covered(&params, std::iter::empty(), &beside));
    }

    #[test]
    fn a_share_is_what_it_says_and_nothing_is_more_than_the_period() {
        let (runtime, period) = (Span::from_ms(60), Span::from_ms(100));
        let share = Timing::Server { runtime, period, hard: false, share: true };
        let settings = settings(true);
        assert_eq!(params(&share, &settings).server().expect("a server").budget, runtime);
        let whole = Timing::Server { runtime: period, period, hard: false, share: false };
        assert_eq!(params(&whole, &settings).server().expect("a server").budget, period);
    }
}
