//! Minimum shares: GPU time that is kept for the apps of a domain that have no contract of their own.
//!
//! A share is a server in the core that belongs to no client; all these apps run on it ([`Reservation::Shared`]).

use takt_core::service::{Enforcement, Reservation, Reserve, Service};
use takt_core::{AppId, AppParams, Clock, Priority, Span, Stride};

use super::BAND;

/// Most domains with a minimum share. The core has a slot for each of them beside those of clients.
pub const SHARES_MAX: u32 = 16;

/// The longest period of a server: shorter than most windows, so that a domain has its time spread over them.
const PERIOD_MAX: Span = Span::from_ms(100);
/// The part of a window that a period takes.
const PERIODS: u64 = 10;

/// Least GPU time of a domain's apps without a contract, while they have work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MinShare {
    /// Of the GPU's time, in millionths.
    pub ppm: u64,
    /// The time over which it is looked at whether they had it.
    pub window: Span,
}

impl MinShare {
    /// The server that keeps it.
    pub fn reserve(self) -> Reserve {
        let period = self.period();
        Reserve { budget: self.of(period), period, deadline: period, enforcement: Enforcement::Posterior }
    }

    /// Time between two replenishments of that.
    pub fn period(self) -> Span {
        Span::from_ns(self.window.as_ns() / PERIODS).min(PERIOD_MAX)
    }

    /// The share of a span.
    pub fn of(self, span: Span) -> Span {
        let part = u128::from(span.as_ns()) * u128::from(self.ppm) / 1_000_000;
        Span::from_ns(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

/// The server of a domain's minimum share, as the core knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareServer {
    /// Its slot, behind those of clients.
    pub app: AppId,
    /// The name of the domain.
    pub domain: String,
    /// What the domain is to have.
    pub share: MinShare,
    /// Its parameters.
    pub params: AppParams,
}

impl ShareServer {
    /// The server number `index` of all shares, in that band of priorities. It goes before the contracts of its level
    /// that clients ask for, so none of these takes its time away.
    pub(crate) fn new(index: usize, slots: usize, domain: &super::Domain, share: MinShare) -> Self {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let service = Service { reservation: Reservation::Own(share.reserve()), ..Service::default() };
        let priority = Priority(domain.core_priority(BAND - 1 - number(index)));
        let params =
            AppParams { priority, stride: Stride::ONE, etpf: Span::ZERO, clock: Clock::default(), service };
        Self { app: AppId(number(slots + index)), domain: domain.name.clone(), share, params }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_server_with_a_tenth_of_the_window() {
        let share = |window_ms| MinShare { ppm: 300_000, window: Span::from_ms(window_ms) };
        let reserve = share(500).reserve();
        assert_eq!((reserve.budget, reserve.period), (Span::from_ms(15), Span::from_ms(50)));
        assert_eq!(share(60_000).reserve().period, PERIOD_MAX);
    }
}
