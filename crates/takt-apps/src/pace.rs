//! When frames are released.
//!
//! Frame periods form a grid that never drifts: period `k` begins at `start + k / fps`, computed
//! afresh for each. A frame belongs to the period in which it was released and is due at its end.
//! An app that is late skips the periods that are over, and does not try to catch up.

/// The grid of frame periods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    start_ns: u64,
    fps: f64,
    next: u64,
}

/// The period of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Period {
    /// Its number on the grid.
    pub(crate) number: u64,
    /// When it begins.
    pub(crate) release_ns: u64,
    /// When it ends.
    pub(crate) deadline_ns: u64,
    /// How many were skipped before it.
    pub(crate) skipped: u64,
}

impl Grid {
    /// A grid that begins at `start_ns`; the rate is above 0.
    pub(crate) fn new(start_ns: u64, fps: f64) -> Self {
        assert!(fps > 0.0, "a grid has a rate");
        Self { start_ns, fps, next: 0 }
    }

    /// The next period that is not over at `now_ns`.
    pub(crate) fn advance(&mut self, now_ns: u64) -> Period {
        let mut number = self.next;
        if self.begin_ns(number + 1) <= now_ns {
            let elapsed_s = now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            // Rounding may be off by one; the loops put it right.
            number = number.max(whole(elapsed_s * self.fps).saturating_sub(1));
            while self.begin_ns(number + 1) <= now_ns {
                number += 1;
            }
        }
        let skipped = number - self.next;
        self.next = number + 1;
        let (release_ns, deadline_ns) = (self.begin_ns(number), self.begin_ns(number + 1));
        Period { number, release_ns, deadline_ns, skipped }
    }

    fn begin_ns(&self, number: u64) -> u64 {
        self.start_ns + whole(number as f64 * 1e9 / self.fps)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is never negative"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_drift() {
        let mut grid = Grid::new(1000, 60.0);
        let mut last = grid.advance(0);
        for _ in 0..600_000 {
            last = grid.advance(last.release_ns);
        }
        // Ten thousand seconds later the period begins to the nanosecond.
        assert_eq!((last.number, last.release_ns), (600_000, 1000 + 10_000 * 1_000_000_000));
    }

    #[test]
    fn skips_what_is_over_and_nothing_else() {
        let mut grid = Grid::new(0, 100.0);
        assert_eq!(grid.advance(0), Period { number: 0, release_ns: 0, deadline_ns: 10_000_000, skipped: 0 });
        assert_eq!(grid.advance(19_999_999).number, 1, "there is still a nanosecond left");
        let late = grid.advance(50_000_000);
        assert_eq!((late.number, late.skipped, late.release_ns), (5, 3, 50_000_000));
        assert_eq!(grid.advance(50_000_001).skipped, 0);
    }

    #[test]
    fn every_period_is_taken_or_skipped() {
        let mut grid = Grid::new(7, 59.94);
        let (mut now, mut taken, mut skipped) = (7, 0, 0);
        for step in 0..10_000_u64 {
            let period = grid.advance(now);
            assert!(period.deadline_ns > now && period.deadline_ns > period.release_ns);
            (taken, skipped) = (taken + 1, skipped + period.skipped);
            assert_eq!(period.number + 1, taken + skipped);
            now = now.max(period.release_ns) + step % 7 * 9_000_000;
        }
    }
}
