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

    /// The longest group that keeps the GPU no longer than `total`, its switches included.
    pub fn without_switches(self, total: Span) -> Span {
        match self {
            Self::TimeShared { slice, switch } if switch > Span::ZERO && total < Span::FOREVER => {
                let (slice, switch) = (slice.as_ns().max(1), switch.as_ns());
                let turn = slice.saturating_add(switch);
                let (turns, rest) = (total.as_ns() / turn, total.as_ns() % turn);
                Span::from_ns(turns * slice + rest.saturating_sub(switch))
            }
            _ => total,
        }
    }

    /// The switches that a group of that length can cost, one for each slice that it needs.
    pub fn switches(self, length: Span) -> Span {
        match self {
            Self::TimeShared { slice, switch } if switch > Span::ZERO && length < Span::FOREVER => {
                switch.times(length.as_ns().div_ceil(slice.as_ns().max(1)).max(1))
            }
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_that_were_added_are_taken_out_again() {
        let gpu = Gpu::TimeShared { slice: Span::from_us(10), switch: Span::from_us(3) };
        for length in [1, 9_999, 10_000, 10_001, 25_000, 30_000, 123_456].map(Span::from_ns) {
            let total = length + gpu.switches(length);
            assert_eq!(gpu.without_switches(total), length);
            let more = gpu.without_switches(total + Span::from_ns(1));
            assert!(more + gpu.switches(more) <= total + Span::from_ns(1), "{more:?}");
        }
        assert_eq!(gpu.without_switches(Span::from_us(2)), Span::ZERO);
        assert_eq!(gpu.without_switches(Span::FOREVER), Span::FOREVER);
        assert_eq!(Gpu::TURNS.without_switches(Span::from_ms(7)), Span::from_ms(7));
    }
}
