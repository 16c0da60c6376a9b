//! When frames are released.
//!
//! Frame periods form a grid that never drifts: period `k` begins at `start + k / fps`, computed
//! afresh for each. A frame belongs to the period in which it was released and is due at its end.
//! An app that is late skips the periods that are over, and does not try to catch up. Where swaps
//! decide when a frame begins, the grid begins anew with each frame: two clocks of different phase
//! would find each other's frames late.

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

    /// A period that begins now, because the compositor says when frames begin. What whole periods
    /// have passed since the one before are skipped, and the grid goes on from here.
    pub(crate) fn restart(&mut self, now_ns: u64) -> Period {
        let since = now_ns.saturating_sub(self.begin_ns(self.next));
        let skipped = if self.next == 0 { 0 } else { whole((since as f64 / 1e9 * self.fps).floor()) };
        self.next += skipped;
        // So that the period of this number begins now.
        self.start_ns = now_ns.saturating_sub(whole(self.next as f64 * 1e9 / self.fps));
        Period { skipped, ..self.advance(now_ns) }
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
    fn restarts_with_each_frame_where_swaps_decide() {
        let mut grid = Grid::new(0, 100.0);
        let mut restart = |ms: u64| {
            let period = grid.restart(ms * 1_000_000);
            (period.number, period.skipped, period.release_ns / 1_000_000, period.deadline_ns / 1_000_000)
        };
        assert_eq!(restart(3), (0, 0, 3, 13));
        assert_eq!(restart(13), (1, 0, 13, 23));
        assert_eq!(restart(28), (2, 0, 28, 38), "half a period later");
        assert_eq!(restart(59), (5, 2, 59, 69));
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
