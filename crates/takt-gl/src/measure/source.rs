//! What measures: some drivers' timer queries tell the truth, others' do not.

use std::fmt;
use std::ops::RangeInclusive;

/// What measures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    /// Fences.
    Fences(Doubt),
    /// Timer queries of the GPU.
    Timer {
        /// What they said of long work, as a share of what fences said.
        ratio: f64,
    },
}

/// Why timer queries do not measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Doubt {
    /// The driver has none.
    NoTimer,
    /// They said this of long work, as a share of what fences said.
    Wrong(f64),
    /// Nothing took long enough to compare.
    TooShort,
}

/// Times may differ so much and still agree: what is before and after the GPU's work counts for
/// fences alone.
const AGREE: RangeInclusive<f64> = 0.7..=1.1;

impl Source {
    /// The better one, given what timers say of long work as a share of what fences say.
    pub fn by_ratio(ratio: f64) -> Self {
        if AGREE.contains(&ratio) { Self::Timer { ratio } } else { Self::Fences(Doubt::Wrong(ratio)) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fences(Doubt::NoTimer) => f.write_str("fences (the driver has no timer queries)"),
            Self::Fences(Doubt::TooShort) => {
                f.write_str("fences (nothing took long enough to see whether timer queries are right)")
            }
            Self::Fences(Doubt::Wrong(ratio)) => {
                write!(f, "fences (timer queries are wrong here: {ratio:.3} of the time of long work)")
            }
            Self::Timer { ratio } => {
                write!(f, "timer queries (right here: {ratio:.3} of the time of long work)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_right_is_wrong() {
        for ratio in [0.0, 0.69, 1.11, f64::NAN, f64::INFINITY] {
            assert!(matches!(Source::by_ratio(ratio), Source::Fences(Doubt::Wrong(_))), "{ratio}");
        }
        assert_eq!(Source::by_ratio(0.98), Source::Timer { ratio: 0.98 });
    }
}
