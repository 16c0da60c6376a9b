//! How long a program waits for a daemon that could answer and does not.

use std::time::Duration;

use takt_core::Span;

/// How long the daemon may take. It is another process on the same machine, so not long: a program
/// that waits for nothing loses frames. A daemon that is gone or stopped is never waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// To admit us at the start, before anything was drawn, and to answer when we ask for other terms.
    /// Later admissions are not waited for.
    pub answer: Duration,
    /// To say how long groups may be.
    pub greeting: Span,
    /// To say anything at all while we wait for a grant.
    pub silence: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Self { answer: Duration::from_millis(500), greeting: Span::from_ms(100), silence: Span::from_ms(50) }
    }
}

impl Patience {
    /// Variable with the silence to bear in milliseconds, for machines that are too busy for their
    /// daemon.
    pub const VARIABLE: &str = "TAKT_PATIENCE_MS";

    /// As the environment says; the usual where it says nothing, or nothing that is a number.
    pub fn of_environment() -> Self {
        Self::said(std::env::var(Self::VARIABLE).ok().as_deref())
    }

    fn said(silence_ms: Option<&str>) -> Self {
        let usual = Self::default();
        // An hour is without end.
        let Some(ms) =
            silence_ms.and_then(|text| text.trim().parse::<u64>().ok()).map(|ms| ms.min(3_600_000))
        else {
            return usual;
        };
        let silence = Span::from_ms(ms);
        Self {
            answer: usual.answer.max(Duration::from_millis(ms)),
            greeting: usual.greeting.max(silence),
            silence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_may_ask_for_more() {
        for nothing in [None, Some(""), Some("long"), Some("-1")] {
            assert_eq!(Patience::said(nothing), Patience::default(), "{nothing:?}");
        }
        let more = Patience::said(Some("2000"));
        assert_eq!((more.silence, more.greeting), (Span::from_ms(2_000), Span::from_ms(2_000)));
        assert_eq!(more.answer, Duration::from_secs(2));
        let less = Patience::said(Some("20"));
        assert_eq!(less, Patience { silence: Span::from_ms(20), ..Patience::default() });
        assert_eq!(Patience::said(Some(&u64::MAX.to_string())).silence, Span::from_ms(3_600_000));
    }
}
