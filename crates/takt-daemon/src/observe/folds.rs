//! How many lines each user gets in a second.
//!
//! Users share nothing: each has so many lines per second of each kind, and what is more is counted and
//! becomes one line. User namespaces give one person thousands of users, so the table is bounded; users
//! of listed apps, and the daemon's own, have tables that others cannot fill.

use crate::control::user::Rank;

/// Most lines per second of one kind about one user; what is more is one line.
pub(crate) const LINES_MAX: u64 = 16;
/// Most users and kinds of a rank that are told apart in a second.
const KEYS_MAX: usize = 64;

/// Lines of one kind about one user in this second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fold {
    /// The user; none stands for all that found no room in the table.
    pub(crate) uid: Option<u32>,
    pub(crate) rank: Rank,
    pub(crate) kind: String,
    count: u64,
}

impl Fold {
    /// Lines that were not written.
    pub(crate) fn times(&self) -> u64 {
        self.count.saturating_sub(LINES_MAX)
    }
}

/// All lines of this second.
#[derive(Debug, Default)]
pub(crate) struct Folds(Vec<Fold>);

impl Folds {
    /// Counts a line; says whether it is to be written.
    pub(crate) fn admit(&mut self, uid: u32, rank: Rank, kind: &str) -> bool {
        let fold = self.fold(uid, rank, kind);
        fold.count += 1;
        fold.count <= LINES_MAX
    }

    /// What was counted and not written in this second, which is over.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Fold> + use<> {
        std::mem::take(&mut self.0).into_iter().filter(|fold| fold.times() > 0)
    }

    fn fold(&mut self, uid: u32, rank: Rank, kind: &str) -> &mut Fold {
        let find = |folds: &[Fold], uid: Option<u32>| {
            folds.iter().position(|fold| (fold.uid, fold.rank, fold.kind.as_str()) == (uid, rank, kind))
        };
        let crowded = self.0.iter().filter(|fold| fold.rank == rank).count() >= KEYS_MAX;
        let uid = Some(uid).filter(|uid| !crowded || find(&self.0, Some(*uid)).is_some());
        let at = find(&self.0, uid).unwrap_or_else(|| {
            self.0.push(Fold { uid, rank, kind: kind.to_owned(), count: 0 });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_share_no_lines() {
        let mut folds = Folds::default();
        let written =
            |folds: &mut Folds, uid, rank| (0..100).filter(|_| folds.admit(uid, rank, "left")).count();
        assert_eq!(written(&mut folds, 1, Rank::Other), 16);
        assert_eq!(written(&mut folds, 2, Rank::Other), 16, "another user");
        // So many users that they find no room.
        let refused = (0..10_000).filter(|uid| folds.admit(*uid, Rank::Other, "refused")).count();
        assert!(folds.0.len() <= KEYS_MAX + 1);
        assert_eq!(written(&mut folds, 7, Rank::Listed), 16, "listed apps have room of their own");
        assert_eq!(written(&mut folds, 0, Rank::Own), 16);
        let counted: u64 = folds.take().map(|fold| fold.times()).sum();
        assert_eq!(counted, 4 * 84 + 10_000 - refused as u64, "every line is written or counted");
        assert_eq!(folds.take().count(), 0, "a new second");
    }
}
