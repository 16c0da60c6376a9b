//! What kind of scene a group draws, coarse enough that frames of the same scene agree.

use crate::cost::FragmentState;

/// The second key of a correction.
///
/// Quake 3 draws walls, sky and players with one program. What tells them apart without looking
/// at the picture: how many vertices there are, to within a factor of two, where they are drawn
/// to, and what happens to fragments. And how long models say it takes, to within a factor of
/// eight: what gets in the way of a speck, times as much as a wall is larger, would be seconds.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Fingerprint {
    /// Number of binary digits of the number of vertices.
    pub vertex_digits: u32,
    /// The render target.
    pub target: u64,
    /// What happens to fragments.
    pub state: FragmentState,
    /// Number of octal digits of what models say, in units of 4 µs.
    pub size_digits: u32,
}

impl Fingerprint {
    /// The kind of scene of a group with so many vertices.
    pub fn new(vertices: u64, target: u64, state: FragmentState) -> Self {
        Self { vertex_digits: u64::BITS - vertices.leading_zeros(), target, state, size_digits: 0 }
    }

    /// The same for a group that takes so long by its model.
    #[must_use]
    pub fn of_size(self, ns: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as is meant")]
        let units = ns as u64 / SIZE_UNIT_NS;
        Self { size_digits: (u64::BITS - units.leading_zeros()).div_ceil(3), ..self }
    }
}

/// What is shorter is of one size.
const SIZE_UNIT_NS: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_eight_times_as_long() {
        let digits = |us: f64| Fingerprint::default().of_size(us * 1e3).size_digits;
        assert_eq!(
            [0.0, 4.0, 5.0, 30.0, 33.0, 250.0, 270.0, 2_000.0, 2_200.0].map(digits),
            [0, 0, 1, 1, 2, 2, 3, 3, 4]
        );
        assert_eq!([f64::NAN, -1.0, f64::INFINITY].map(digits), [0, 0, 18]);
    }

    #[test]
    fn buckets_double() {
        let digits = |vertices| Fingerprint::new(vertices, 0, FragmentState::default()).vertex_digits;
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(digits), [0, 1, 2, 2, 3, 10, 11, 64]);
    }
}
