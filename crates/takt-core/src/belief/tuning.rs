//! The numbers behind the rules.

use crate::time::Span;

/// Most measurements that a length can be asked to be confirmed by.
pub const CONFIRMATIONS_MAX: usize = 4;

/// How fast estimates decay, and where that stops. The defaults are those of ADR 0031.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tuning {
    /// How long the first waiting group keeps an estimate for which it is held, before each
    /// revision. Half a second is long beside a frame and short for a person. Default: 500 ms.
    pub patience: Span,
    /// What a revision leaves of an estimate, in permille; 1000 never revises. Default: 500.
    pub keep_permille: u32,
    /// A longer estimate counts as this one in its first revision. Without it, an unbounded
    /// estimate would take half a minute to come down. Default: 1 s.
    pub decay_from: Span,
    /// No revision goes below this. If not even this much fits, length is not the problem.
    /// Default: 1 ms.
    pub estimate_min: Span,
    /// How many groups must have taken a length before estimates of it are kept, `1..=`
    /// [`CONFIRMATIONS_MAX`]; other values count as the nearest of these. One is not enough,
    /// because drivers compile on first use. Default: 2.
    pub confirmations: usize,
    /// Estimates are compared by their number of binary digits. This many classes below that of the
    /// group count as well, so that estimates near a border are confirmed from both sides.
    /// Default: 1.
    pub classes_below: usize,
    /// The part of a reservation that each group may take at least, in permille, even if nothing
    /// is left of it: frames can need more than they reserve. Default: 125.
    pub group_share_permille: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            patience: Span::from_ms(500),
            keep_permille: 500,
            decay_from: Span::from_ms(1_000),
            estimate_min: Span::from_ms(1),
            confirmations: 2,
            classes_below: 1,
            group_share_permille: 125,
        }
    }
}
