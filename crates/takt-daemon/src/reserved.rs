//! How far estimates of an app with reserved time are believed.

use takt_core::{Estimate, GroupKind, Span};

/// What an app has reserved.
///
/// A group that is predicted to end periods later waits for all that end before, and one that never
/// runs is never measured: a single wrong estimate would keep an app with reserved time off the GPU
/// for good. And a swap that is believed to take as long as all of its frame would be planned for the
/// next period, and its app released a period later. So no group is believed to take longer than
/// what is left of its frame's reservation.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Reserved {
    /// Per frame, if anything.
    pub(crate) per_frame: Option<Span>,
    /// How much of that the current frame has asked for.
    asked: Span,
}

/// The part of a reservation that each group may take: frames may need more than they reserved.
const LEAST_PARTS: u64 = 8;

impl Reserved {
    /// What is believed of the estimate of the next group.
    pub(crate) fn believed(&mut self, estimate: Estimate, kind: GroupKind) -> Estimate {
        let Some(per_frame) = self.per_frame else {
            return estimate;
        };
        let least = Span::from_ns(per_frame.as_ns() / LEAST_PARTS);
        let believed = estimate.min(Estimate::new(per_frame.saturating_sub(self.asked).max(least)));
        self.asked = if kind.ends_frame() { Span::ZERO } else { self.asked + believed.span() };
        believed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_believed_to_take_what_it_reserved_and_little_more() {
        let mut reserved = Reserved { per_frame: Some(Span::from_ms(8)), ..Reserved::default() };
        let mut believed = |ms: u64, kind: GroupKind| {
            reserved.believed(Estimate::new(Span::from_ms(ms)), kind).span().as_ns() / 1_000_000
        };
        assert_eq!(believed(3, GroupKind::Draw), 3);
        assert_eq!(believed(100, GroupKind::Draw), 5);
        assert_eq!(believed(100, GroupKind::Swap), 1, "nothing is left");
        assert_eq!(believed(100, GroupKind::Swap), 8, "of the next frame");
    }

    #[test]
    fn without_a_reservation_all_is_believed() {
        let estimate = Estimate::new(Span::from_ms(500));
        assert_eq!(Reserved::default().believed(estimate, GroupKind::Swap), estimate);
    }
}
