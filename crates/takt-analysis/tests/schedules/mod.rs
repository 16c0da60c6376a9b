//! Small simulators that know nothing of the analyses, to look for responses above their bounds.

pub(crate) mod cbs;
pub(crate) mod edf;
pub(crate) mod runlist;

use takt_analysis::task::{Task, Ticks};
pub(crate) use takt_rng::Rng;

/// How many random sets a test plays.
pub(crate) fn rounds() -> u64 {
    if std::env::var_os("TAKT_SLOW_TESTS").is_some_and(|value| value == "1") { 100_000 } else { 3_000 }
}

/// Draws task sets and releases.
pub(crate) trait Draw {
    /// A few tasks with deadlines shorter and longer than their periods. Small numbers make
    /// coincidences likely, and those are where bounds break.
    fn tasks(&mut self) -> Vec<Task>;

    /// Releases of each task until `horizon`: all together and periodic, or from random offsets,
    /// or with random gaps as well.
    fn releases(&mut self, tasks: &[Task], horizon: Ticks) -> Vec<Vec<Ticks>>;
}

impl Draw for Rng {
    fn tasks(&mut self) -> Vec<Task> {
        let count = self.between(1, 5);
        let longest = self.between(1, 12);
        let tasks = (0..count).map(|_| {
            let period = self.between(3, 40);
            let wcet = self.between(1, longest.min(period));
            let deadline =
                if self.percent(20) { self.between(wcet, 3 * period) } else { self.between(wcet, period) };
            Task::new(wcet, deadline, period).expect("in range")
        });
        tasks.collect()
    }

    fn releases(&mut self, tasks: &[Task], horizon: Ticks) -> Vec<Vec<Ticks>> {
        let kind = self.between(0, 2);
        let releases = tasks.iter().map(|task| {
            let mut at = if kind == 0 { 0 } else { self.between(0, task.period()) };
            let mut times = Vec::new();
            while at < horizon {
                times.push(at);
                at += task.period();
                if kind == 2 && self.percent(30) {
                    at += self.between(1, task.period());
                }
            }
            times
        });
        releases.collect()
    }
}
