//! Cutting a dispatch into boxes of workgroups.

use super::slicer::Cuttable;

/// Some of the workgroups of a dispatch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Groups {
    /// The first of them.
    pub first: [u32; 3],
    /// How many there are, to each side.
    pub count: [u32; 3],
    /// Their share of the whole dispatch.
    pub share: f64,
}

/// What is left of a dispatch.
///
/// Workgroups may run in any order, so pieces need not follow any. They go by rows, then by layers, so that
/// each piece is a box: some layers, some rows of a layer, or a part of a row.
#[derive(Clone, Debug)]
pub struct Grid {
    size: [u32; 3],
    /// The first workgroup that is left.
    next: [u32; 3],
}

impl Grid {
    /// A dispatch of so many workgroups; none if there are not at least two.
    pub fn new(size: [u32; 3]) -> Option<Self> {
        let fits = size.iter().try_fold(1_u64, |all, side| all.checked_mul(u64::from(*side)));
        fits.filter(|all| *all > 1).map(|_| Self { size, next: [0; 3] })
    }

    fn all(&self) -> f64 {
        self.size.iter().map(|side| f64::from(*side)).product()
    }
}

impl Cuttable for Grid {
    type Piece = Groups;

    fn is_over(&self) -> bool {
        self.next[2] >= self.size[2]
    }

    fn share(piece: &Groups) -> f64 {
        piece.share
    }

    fn next(&mut self, share: f64) -> Option<Groups> {
        if self.is_over() {
            return None;
        }
        let ([width, rows, layers], [x, y, z]) = (self.size, self.next);
        let wanted = (share * self.all()).max(1.0);
        let row = f64::from(width);
        let layer = row * f64::from(rows);
        let count = if x == 0 && y == 0 && wanted >= layer {
            [width, rows, sides(wanted / layer, layers - z)]
        } else if x == 0 && wanted >= row {
            [width, sides(wanted / row, rows - y), 1]
        } else {
            [sides(wanted, width - x), 1, 1]
        };
        let first = self.next;
        self.next = self.behind(count);
        let share = count.iter().map(|side| f64::from(*side)).product::<f64>() / self.all();
        Some(Groups { first, count, share })
    }
}

impl Grid {
    /// What follows a box that begins at the first workgroup that is left.
    fn behind(&self, [columns, rows, layers]: [u32; 3]) -> [u32; 3] {
        let ([width, height, _], [x, y, z]) = (self.size, self.next);
        if x + columns < width {
            [x + columns, y, z]
        } else if y + rows < height {
            [0, y + rows, z]
        } else {
            [0, 0, z + layers]
        }
    }
}

/// As many as wanted, at least one and at most as many as there are.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn sides(wanted: f64, most: u32) -> u32 {
    wanted.clamp(1.0, f64::from(most)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_workgroup_runs_once(
            size in [1..9_u32, 1..9_u32, 1..9_u32],
            shares in prop::collection::vec(prop_oneof![0.0..0.02_f64, 0.0..1.2_f64], 1..6),
        ) {
            let Some(mut grid) = Grid::new(size) else { return Ok(()) };
            let [width, height, depth] = size.map(|side| side as usize);
            let mut seen = vec![0; width * height * depth];
            let (mut pieces, mut sum) = (0, 0.0);
            while let Some(Groups { first, count, share }) = grid.next(shares[pieces % shares.len()]) {
                let wanted = shares[pieces % shares.len()] * seen.len() as f64;
                prop_assert!(share * seen.len() as f64 <= wanted.max(1.0) + 1e-9);
                (pieces, sum) = (pieces + 1, sum + share);
                for z in first[2]..first[2] + count[2] {
                    for y in first[1]..first[1] + count[1] {
                        for x in first[0]..first[0] + count[0] {
                            seen[(z as usize * height + y as usize) * width + x as usize] += 1;
                        }
                    }
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1), "{:?}", seen);
            prop_assert!(grid.is_over() && (sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_has_no_two_workgroups_is_not_cut() {
        for size in [[1, 1, 1], [0, 5, 5], [u32::MAX, u32::MAX, u32::MAX]] {
            assert!(Grid::new(size).is_none(), "{size:?}");
        }
        let mut long = Grid::new([u32::MAX, 1, 1]).expect("it has many");
        assert_eq!(long.next(0.5).map(|piece| piece.count), Some([u32::MAX / 2, 1, 1]));
    }
}
