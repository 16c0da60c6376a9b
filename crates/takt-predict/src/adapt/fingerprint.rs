//! What kind of scene a group draws, coarse enough that frames of the same scene agree.

use crate::cost::FragmentState;

/// The second key of a correction.
///
/// Quake 3 draws walls, sky and players with one program. What tells them apart without looking
/// at the picture: how many vertices there are, to within a factor of two, where they are drawn
/// to, and what happens to fragments.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Fingerprint {
    /// Number of binary digits of the number of vertices.
    pub vertex_digits: u32,
    /// The render target.
    pub target: u64,
    /// What happens to fragments.
    pub state: FragmentState,
}

impl Fingerprint {
    /// The kind of scene of a group with so many vertices.
    pub fn new(vertices: u64, target: u64, state: FragmentState) -> Self {
        Self { vertex_digits: u64::BITS - vertices.leading_zeros(), target, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double() {
        let digits = |vertices| Fingerprint::new(vertices, 0, FragmentState::default()).vertex_digits;
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(digits), [0, 1, 2, 2, 3, 10, 11, 64]);
    }
}
