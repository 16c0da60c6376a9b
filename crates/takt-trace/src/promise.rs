//! What an app was promised, as far as records tell: so much GPU time in each frame, by when.

use takt_core::{AppId, AppParams, Clock, DisplayId, Refresh, Span, Time};

use crate::metrics::{micros, seconds};
use crate::record::Meta;
use crate::summary::Promise;

/// A promise that others wait for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Promised {
    /// To whom.
    pub(crate) app: AppId,
    /// GPU time in each frame.
    per_frame: Span,
    due: Due,
}

/// By when it is to be kept.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Due {
    At(Time),
    /// So long after the app begins its frame, by its own clock.
    After(Span),
    /// On a grid that records do not tell, or no deadline of it was seen yet.
    Unknown,
}

impl Promised {
    /// The promise to `app` that is due first, from `at` on; `seen` is one of its deadlines, `refresh` the
    /// grid of the first display. None if nothing is promised to it.
    pub(crate) fn of(
        app: AppId,
        params: &AppParams,
        seen: Option<Time>,
        refresh: &Refresh,
        at: Time,
    ) -> Option<Self> {
        let due = match (params.clock, seen) {
            (Clock::Own { deadline, .. }, _) => Due::After(deadline),
            (Clock::Display(DisplayId(0)), Some(seen)) => {
                let stride = params.stride.periods();
                let (before, now) = (refresh.period_ending_near(seen), refresh.period_ending_near(at));
                let strides = now.0.saturating_sub(before.0).div_ceil(stride);
                Due::At(refresh.end(before + strides * stride))
            }
            (Clock::Display(_), _) => Due::Unknown,
        };
        (params.etpf > Span::ZERO).then_some(Self { app, per_frame: params.etpf, due })
    }

    /// In a few words.
    pub(crate) fn words(&self) -> String {
        let ms = |span: Span| format!("{:.2} ms", micros(span) / 1000.0);
        let per_frame = format!("{} per frame", ms(self.per_frame));
        match self.due {
            Due::At(at) => format!("{per_frame}, next due at {:.4} s", seconds(at.since(Time::ZERO))),
            Due::After(span) => format!("{per_frame}, due {} after it begins", ms(span)),
            Due::Unknown => per_frame,
        }
    }

    /// For programs.
    pub(crate) fn summary(&self, meta: &Meta) -> Promise {
        Promise {
            app: meta.name(self.app),
            per_frame_us: micros(self.per_frame),
            due_s: match self.due {
                Due::At(at) => Some(seconds(at.since(Time::ZERO))),
                Due::After(_) | Due::Unknown => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::{Priority, Service, Stride};

    fn words(clock: Clock, etpf: Span, seen: Option<u64>, at_ms: u64) -> Option<String> {
        let params = AppParams {
            priority: Priority(1),
            stride: Stride::new(2).expect("in range"),
            etpf,
            clock,
            service: Service::default(),
        };
        // Periods of 10 ms: a frame every 20.
        let refresh = Refresh::from_mhz(100_000).expect("a rate");
        let promised =
            Promised::of(AppId(3), &params, seen.map(Time::from_ms), &refresh, Time::from_ms(at_ms));
        promised.map(|promised| promised.words())
    }

    #[test]
    fn what_is_due_next_follows_from_any_deadline_seen() {
        let (first, etpf) = (Clock::default(), Span::from_us(3_500));
        let said = |seen, at_ms| words(first, etpf, seen, at_ms).expect("a promise");
        assert_eq!(said(Some(30), 30), "3.50 ms per frame, next due at 0.0300 s");
        assert_eq!(said(Some(30), 40), "3.50 ms per frame, next due at 0.0500 s");
        assert_eq!(said(Some(30), 110), "3.50 ms per frame, next due at 0.1100 s");
        assert_eq!(said(Some(90), 50), "3.50 ms per frame, next due at 0.0900 s", "it may be ahead");
        assert_eq!(said(None, 40), "3.50 ms per frame");
    }

    #[test]
    fn other_clocks_tell_less() {
        let etpf = Span::from_ms(4);
        let own = Clock::Own { period: Span::from_ms(33), deadline: Span::from_ms(20) };
        assert_eq!(
            words(own, etpf, Some(30), 40).as_deref(),
            Some("4.00 ms per frame, due 20.00 ms after it begins")
        );
        let second = Clock::Display(DisplayId(1));
        assert_eq!(words(second, etpf, Some(30), 40).as_deref(), Some("4.00 ms per frame"));
        assert_eq!(words(Clock::default(), Span::ZERO, Some(30), 40), None, "nothing is promised");
    }
}
