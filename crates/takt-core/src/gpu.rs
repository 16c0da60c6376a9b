//! How the GPU executes what was dispatched, as far as the scheduler must know.
//!
//! No policy compares models; `timeline` asks only whether a change of contexts costs something
//! ([`Gpu::excludes`]). The scheduler asks three questions, and each model has its
//! answers here and in [`crate::scheduler`]'s account of groups in flight: may another group enter; by when
//! is everything in flight over; and which dispatched work can one more group still make late?
//!
//! [`Divisible`] work may be beside all of that: one group of it enters whatever is in flight, need not be
//! over for another group to begin, and makes nothing late, because every other group is charged for it.

use crate::charge::Charge;
use crate::time::Span;

/// The execution model of a GPU.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Gpu {
    /// Executes groups in the order of dispatch, each to its end.
    #[default]
    InOrder,
    /// Executes in order, but a group can be taken back ([`crate::Action::Preempt`]) and goes on later.
    Preemptive,
    /// Contexts take turns. Groups of several contexts that are in flight together end together, and a
    /// completion says nothing about groups that were dispatched before.
    TimeShared {
        /// How long a context keeps the GPU while another one has work.
        slice: Span,
        /// What a change of contexts costs.
        switch: Span,
    },
}

/// Work that the GPU interrupts: contexts of compute at any instruction, draws that were cut between pieces.
///
/// It need not end for other groups to begin. What it costs them is a turn of its context before each turn of
/// theirs, as long as it has one context at a time.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Divisible {
    /// How long its context keeps the GPU while another one has work.
    pub slice: Span,
    /// Longest piece that is not interrupted: what runs when the slice is over runs on for as long.
    pub quantum: Span,
    /// How long every other context keeps the GPU at least while this one has work.
    pub own_slice: Span,
    /// What a change of contexts costs.
    pub switch: Span,
}

impl Divisible {
    /// How much longer a group of that length takes at most beside such work: each of its turns waits for one
    /// turn of that, with a change of contexts before and after it.
    pub fn delay(&self, length: Span) -> Span {
        if length >= Span::FOREVER {
            return Span::ZERO;
        }
        self.turn().times(length.as_ns().div_ceil(self.own_slice.as_ns().max(1)).max(1))
    }

    /// A turn of such work, with the changes of contexts before and after it. A piece may begin just before
    /// the slice is over.
    fn turn(&self) -> Span {
        self.slice + self.quantum + self.switch.times(2)
    }
}

impl Gpu {
    /// A time-shared GPU whose switches cost nothing.
    pub const TURNS: Self = Self::TimeShared { slice: Span::from_ms(1), switch: Span::ZERO };

    /// Whether it gives groups back.
    pub const fn gives_back(self) -> bool {
        matches!(self, Self::Preemptive)
    }

    /// Whether contexts take turns.
    pub const fn is_time_shared(self) -> bool {
        matches!(self, Self::TimeShared { .. })
    }

    /// Whether it has an order of its own, in which all contexts with work take turns: then a scheduler that wants just
    /// that needs only to keep them filled.
    pub const fn serves_all_in_turn(self) -> bool {
        self.is_time_shared()
    }

    /// Whether a group that is dispatched later can delay one that was dispatched before.
    pub const fn later_work_delays(self) -> bool {
        self.is_time_shared()
    }

    /// What a change of contexts costs.
    pub const fn switch(self) -> Span {
        match self {
            Self::TimeShared { switch, .. } => switch,
            _ => Span::ZERO,
        }
    }

    /// Whether protected apps have the GPU one at a time, because a change of contexts costs something.
    pub fn excludes(self) -> bool {
        self.switch() > Span::ZERO
    }

    /// The longest group [beside](Charge::Beside) others that keeps the GPU no longer than `total`, its switches
    /// included.
    pub fn without_switches(self, total: Span) -> Span {
        match self {
            Self::TimeShared { slice, switch } if switch > Span::ZERO && total < Span::FOREVER => {
                let (slice, switch) = (slice.as_ns().max(1), switch.times(2).as_ns());
                let turn = slice.saturating_add(switch);
                let (turns, rest) = (total.as_ns() / turn, total.as_ns() % turn);
                Span::from_ns(turns * slice + rest.saturating_sub(switch))
            }
            _ => total,
        }
    }

    /// The switches that a group of that length pays for.
    pub fn switches(self, length: Span, charge: Charge) -> Span {
        match self {
            Self::TimeShared { slice, switch } if switch > Span::ZERO && length < Span::FOREVER => {
                let turns = match charge {
                    Charge::Stays => 0,
                    Charge::Enters => 1,
                    Charge::Beside => length.as_ns().div_ceil(slice.as_ns().max(1)).max(1),
                };
                switch.times(2).times(turns)
            }
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_pays_once_and_others_for_each_turn() {
        let gpu = Gpu::TimeShared { slice: Span::from_us(10), switch: Span::from_us(3) };
        for (length, beside) in [(0, 6), (1, 6), (10, 6), (11, 12), (40, 24)] {
            let length = Span::from_us(length);
            assert_eq!(gpu.switches(length, Charge::Stays), Span::ZERO);
            assert_eq!(gpu.switches(length, Charge::Enters), Span::from_us(6));
            assert_eq!(gpu.switches(length, Charge::Beside), Span::from_us(beside), "{length:?}");
        }
        assert_eq!(Gpu::TURNS.switches(Span::from_ms(9), Charge::Beside), Span::ZERO);
        assert!(!Gpu::TURNS.excludes() && gpu.excludes());
    }

    #[test]
    fn each_turn_waits_for_one_of_divisible_work() {
        let [slice, quantum, own_slice, switch] = [300, 200, 2000, 50].map(Span::from_us);
        let divisible = Divisible { slice, quantum, own_slice, switch };
        let delays = [0, 1, 2000, 2001, 6000].map(|us| divisible.delay(Span::from_us(us)));
        assert_eq!(delays, [600, 600, 600, 1200, 1800].map(Span::from_us));
        assert_eq!(divisible.delay(Span::FOREVER), Span::ZERO);
    }

    #[test]
    fn switches_that_were_added_are_taken_out_again() {
        let gpu = Gpu::TimeShared { slice: Span::from_us(10), switch: Span::from_us(3) };
        for length in [1, 9_999, 10_000, 10_001, 25_000, 30_000, 123_456].map(Span::from_ns) {
            let total = length + gpu.switches(length, Charge::Beside);
            assert_eq!(gpu.without_switches(total), length);
            let more = gpu.without_switches(total + Span::from_ns(1));
            assert!(more + gpu.switches(more, Charge::Beside) <= total + Span::from_ns(1), "{more:?}");
        }
        assert_eq!(gpu.without_switches(Span::from_us(2)), Span::ZERO);
        assert_eq!(gpu.without_switches(Span::FOREVER), Span::FOREVER);
        assert_eq!(Gpu::TURNS.without_switches(Span::from_ms(7)), Span::from_ms(7));
    }
}
