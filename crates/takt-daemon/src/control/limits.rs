//! Limits that follow from the contracts and the GPU, where neither the configuration nor a tool sets them.
//!
//! * **Blocking.** With a contract there, no group of an app without one may delay it by more than
//!   `BLOCKING_MIN`, or by two changes of processes where these cost more.
//! * **Stretch.** Between releases, pieces of long draws may be as long as half of the shortest period, and
//!   `STRETCH_MAX` at most: each fence costs the GPU time.
//! * **Slice.** The draws of the only app with a contract are cut for no other: its groups may be as long as a frame
//!   of it, and so may those of any contract for work that the GPU interrupts. Without a contract, such work delays
//!   others by a turn, however long it is: `DIVISIBLE` is how long one such app keeps others of its kind waiting.
//!
//! Without a contract no app has to be on time, and all of them get short groups.

use takt_core::analysis::contracts::Kind;
use takt_core::contract::claim;
use takt_core::{Adjustable, Config, Span};

use super::members::Member;

/// No group delays a contract by less: pieces must fit somewhere.
const BLOCKING_MIN: Span = Span::from_us(300);
/// No group is stretched beyond this.
const STRETCH_MAX: Span = Span::from_ms(8);
/// The part of a period that a stretched group may take.
const STRETCH_PARTS: u64 = 2;

/// Longest group of an app without a contract whose work the GPU interrupts. From one such app to the next the GPU
/// stands still for some 0.3 ms on an H200.
const DIVISIBLE: Span = Span::from_ms(16);

/// Which limits are set by the configuration, or by a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// `max_blocking_ms`.
    pub blocking: bool,
    /// `max_stretch_ms`.
    pub stretch: bool,
}

impl Given {
    /// What either sets.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { blocking: self.blocking || other.blocking, stretch: self.stretch || other.stretch }
    }
}

/// The limits beside these apps: those that are given as they are, the others as they follow.
pub(crate) fn beside<'a>(
    members: impl Iterator<Item = &'a Member>,
    config: &Config,
    max_slice: Span,
    now: Adjustable,
    given: Given,
) -> Adjustable {
    let shortest = members.filter_map(|member| period(member, config)).min();
    let (blocking, stretch) = automatic(shortest, config.gpu.switch(), max_slice);
    Adjustable {
        blocking: if given.blocking { now.blocking } else { blocking },
        stretch: if given.stretch { now.stretch } else { stretch },
        ..now
    }
}

/// How long groups of an app may be: as its terms say, and as long as what it reserves if these say nothing special and
/// it is the only one that reserves something.
pub(crate) fn slice(member: &Member, others: &[&Member], config: &Config, usual: Span) -> Span {
    if member.is_divisible() && member.max_slice == usual {
        return usual.max(DIVISIBLE);
    }
    let reserves = |member: &Member| period(member, config).is_some();
    let alone = others.iter().all(|other| other.app == member.app || !reserves(other));
    // The GPU interrupts it for others all the same, and each grant in between would cost it time.
    let whole = alone || member.params.service.divisible;
    if member.max_slice != usual || !reserves(member) || !whole {
        return member.max_slice;
    }
    member.max_slice.max(claim(&member.params, config).span)
}

/// The period of an app's contract.
fn period(member: &Member, config: &Config) -> Option<Span> {
    match claim(&member.params, config).kind {
        Kind::Frames { period, .. } | Kind::Server { period } => Some(period),
        Kind::None => None,
    }
}

fn automatic(shortest: Option<Span>, switch: Span, max_slice: Span) -> (Span, Span) {
    let Some(period) = shortest else {
        return (max_slice, Span::ZERO);
    };
    let blocking = switch.times(2).max(BLOCKING_MIN).min(max_slice);
    let stretch = Span::from_ns(period.as_ns() / STRETCH_PARTS).min(STRETCH_MAX);
    (blocking, if stretch > max_slice { stretch } else { Span::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_periods_and_switches() {
        let (ms, us) = (Span::from_ms, Span::from_us);
        assert_eq!(automatic(None, us(160), ms(1)), (ms(1), Span::ZERO), "no app has to be on time");
        let frame = Some(us(16_667));
        assert_eq!(automatic(frame, Span::ZERO, ms(1)), (us(300), ms(8)));
        assert_eq!(automatic(frame, us(250), ms(1)), (us(500), ms(8)), "a change costs more");
        assert_eq!(automatic(frame, us(250), us(200)), (us(200), ms(8)), "no piece is longer");
        assert_eq!(automatic(Some(ms(8)), Span::ZERO, ms(1)), (us(300), ms(4)), "a shorter period");
        assert_eq!(automatic(Some(ms(2)), Span::ZERO, ms(1)), (us(300), Span::ZERO), "no room to stretch");
        assert_eq!(automatic(frame, Span::ZERO, Span::FOREVER), (us(300), Span::ZERO), "nothing is cut");
    }
}
