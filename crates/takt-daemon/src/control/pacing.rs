//! What says when an app begins its frames, where neither the configuration nor the app does: what its
//! client has found out.

use serde::{Deserialize, Serialize};
use takt_core::{Refresh, Span};
use takt_ipc::message::Pacing;

use super::contract::Timing;
use super::terms::{OWN_PERIOD_MAX, Terms};

/// What says when an app begins its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A display: its swap waits for the next frame.
    Display,
    /// The app itself: it waits only before a frame that would come too soon.
    Own,
    /// Whichever its client finds.
    #[default]
    Auto,
}

/// A period that an app keeps by itself is taken for so many parts of 64. A frame that begins late moves the
/// releases of a contract, not those of the app's clock; a contract with a shorter period catches up.
const FOUND_PARTS: u32 = 63;

impl Terms {
    /// What releases the work of an app on these terms, and the rate of a display that it asks for, if it does.
    /// `refresh` is that of the first display.
    pub(super) fn effective(&self, refresh: &Refresh) -> (Timing, Option<u32>) {
        let timing = self.timing.clone().unwrap_or_default();
        // An app without a rate of its own has that of the display.
        let fps_mhz = self.fps_mhz.filter(|_| self.paced == Some(true));
        let asked = fps_mhz.map(|mhz| Span::from_ns(1_000_000_000_000 / u64::from(mhz.max(1))));
        let divides = fps_mhz.is_none_or(|mhz| refresh.stride_for(mhz).is_ok());
        let reserves = self.etpf.is_some_and(|etpf| etpf > Span::ZERO);
        let own = match self.pacing {
            None => None,
            Some(_) if !self.is_auto() => None,
            Some(Pacing::Unknown | Pacing::Display) => asked.filter(|_| !divides),
            Some(pacing @ Pacing::Own { period, steady: true }) if reserves => Some(match asked {
                Some(asked) if pacing.keeps(asked) => asked.scaled(FOUND_PARTS, 64),
                Some(asked) => asked,
                // What a client finds never reserves more than a display would.
                None => period.scaled(FOUND_PARTS, 64).min(OWN_PERIOD_MAX).max(refresh.period_span()),
            }),
            Some(_) if reserves => Some(asked.unwrap_or_else(|| refresh.period_span())),
            Some(_) => asked,
        };
        match own {
            Some(period) => (Timing::Own { period, deadline: period }, None),
            None => (timing, fps_mhz),
        }
    }

    /// Whether an app on these terms, which has a clock of its own with that period, waits for itself: it is
    /// held back before a frame that comes too soon, and not after each one.
    pub(super) fn waits_itself(&self, period: Span) -> bool {
        !self.is_auto() || self.pacing.is_some_and(|pacing| pacing.keeps(period))
    }

    fn is_auto(&self) -> bool {
        let unnamed = self.timing.as_ref().is_none_or(|timing| *timing == Timing::default());
        unnamed && self.pace != Some(Pace::Display)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Span = Span::from_ns(16_666_666);

    fn terms(fps: Option<u32>, etpf_ms: u64, pacing: Option<Pacing>) -> Terms {
        Terms {
            fps_mhz: fps.map(|fps| fps * 1000),
            paced: fps.map(|_| true),
            etpf: Some(Span::from_ms(etpf_ms)),
            pacing,
            ..Terms::default()
        }
    }

    /// The period of its own clock in microseconds, and whether it waits for itself; none with a display.
    fn own(terms: &Terms) -> Option<(u64, bool)> {
        match terms.effective(&Refresh::HZ_60).0 {
            Timing::Own { period, deadline } => {
                assert_eq!(period, deadline);
                Some((period.as_ns() / 1000, terms.waits_itself(period)))
            }
            _ => None,
        }
    }

    fn clock(ms: u64, steady: bool) -> Option<Pacing> {
        Some(Pacing::Own { period: Span::from_ms(ms), steady })
    }

    #[test]
    fn with_a_rate_the_rate_is_the_period() {
        let found = |pacing| own(&terms(Some(30), 3, pacing));
        assert_eq!(found(None), None);
        assert_eq!(found(Some(Pacing::Unknown)), None, "a display, until something else is found");
        assert_eq!(found(Some(Pacing::Display)), None);
        assert_eq!(found(Some(Pacing::Free)), Some((33_333, false)), "held back after each frame");
        assert_eq!(found(clock(33, true)), Some((32_812, true)), "it catches up with its clock");
        assert_eq!(found(clock(100, false)), Some((33_333, true)), "it draws when something happens");
        assert_eq!(found(clock(16, true)), Some((33_333, false)), "it would be too fast by itself");
        assert_eq!(own(&terms(Some(30), 0, clock(33, true))), Some((33_333, true)), "nothing reserved");
    }

    #[test]
    fn without_one_it_is_found_and_no_shorter_than_that_of_the_display() {
        let found = |pacing| own(&terms(None, 3, pacing)).map(|(us, _)| us);
        assert_eq!(found(None), None);
        assert_eq!(found(clock(100, true)), Some(98_437));
        assert_eq!(found(clock(5, true)), Some(FRAME.as_ns() / 1000));
        assert_eq!(found(clock(100, false)), Some(FRAME.as_ns() / 1000));
        assert_eq!(found(Some(Pacing::Free)), Some(FRAME.as_ns() / 1000));
        assert_eq!(found(clock(100_000, true)), Some(4_000_000), "the longest there is");
        assert_eq!(own(&terms(None, 0, clock(100, true))), None, "best effort stays what it is");
    }

    #[test]
    fn a_rate_that_no_display_has_is_a_clock_of_its_own() {
        assert_eq!(own(&terms(Some(50), 3, None)), None, "a client that does not look is told");
        assert_eq!(own(&terms(Some(50), 3, Some(Pacing::Unknown))), Some((20_000, false)));
        assert_eq!(own(&terms(Some(50), 3, Some(Pacing::Display))), Some((20_000, false)));
        assert_eq!(own(&terms(Some(50), 3, clock(20, true))), Some((19_687, true)));
    }

    #[test]
    fn what_was_said_holds_whatever_is_found() {
        let display = Terms { pace: Some(Pace::Display), ..terms(Some(30), 3, clock(33, true)) };
        let named =
            Terms { timing: Some(Timing::Display("hud".to_owned())), ..terms(Some(30), 3, clock(33, true)) };
        assert_eq!((own(&display), own(&named)), (None, None));
        let (period, deadline) = (Span::from_ms(20), Span::from_ms(10));
        let own =
            Terms { timing: Some(Timing::Own { period, deadline }), ..terms(None, 3, Some(Pacing::Free)) };
        assert_eq!(own.effective(&Refresh::HZ_60).0, Timing::Own { period, deadline });
        assert!(own.waits_itself(period));
    }
}
