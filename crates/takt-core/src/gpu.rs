//! How the GPU executes what was dispatched, as far as the scheduler must know.
//!
//! A policy never asks which model it is. The scheduler asks three questions, and each model has its
//! answers here and in [`crate::scheduler`]'s account of groups in flight: may another group enter; by when
//! is everything in flight over; and which dispatched work can one more group still make late?

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

/// Which changes of contexts a group pays for. Why that is enough is said in
/// [`analysis::contracts`](crate::analysis::contracts::Gpu).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Charge {
    /// It follows a group of its own app, of the same protected frame.
    Stays,
    /// It is the first one of a protected frame, or comes by a protected server: one change to its app, and one
    /// back to the protected app that it displaces.
    Enters,
    /// Its app is not protected: each of its turns may interrupt others, which is one change to it and one back.
    Beside,
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
