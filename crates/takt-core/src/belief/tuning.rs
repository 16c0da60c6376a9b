//! The numbers behind the rules.

use crate::time::Span;

/// How long work that cannot be cut waits, and what is believed of it if it may run. ADR 0057 has the
/// reasons.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeliefTuning {
    /// How long the first waiting group is held for its length before its app is told, and before it
    /// runs if it may ([`super::Uncut::Run`]). Default: 2 s.
    pub patience: Span,
    /// What is believed of a group that may run. If not even this much fits, length is not the problem.
    /// Default: 1 ms.
    pub estimate_min: Span,
    /// The part of a reservation that each group may take at least, in permille, even if nothing
    /// is left of it: frames can need more than they reserve. Default: 125.
    pub group_share_permille: u32,
    /// The cap is lifted when two groups in a row that it shortened took more than twice what it left them. Each such
    /// group counts so much; each group that was said to be longer than what its frame had left, and was not, takes one
    /// off. Default: 8.
    pub cap_wrong_weight: u32,
}

impl Default for BeliefTuning {
    fn default() -> Self {
        Self {
            patience: Span::from_ms(2_000),
            estimate_min: Span::from_ms(1),
            group_share_permille: 125,
            cap_wrong_weight: 8,
        }
    }
}
