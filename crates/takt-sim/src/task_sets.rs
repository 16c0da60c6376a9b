//! Random sets of recurring tasks, for studies of the analyses.
//!
//! * **Shares.** UUniFast (Bini, Buttazzo 2005) draws the shares of n tasks evenly from all that
//!   have a given sum. Cutting the sum at n − 1 even random places gives the same distribution; it
//!   needs no roots, so integers suffice and every machine draws the same sets.
//! * **Bounded shares.** Draws in which a task has too large a share are thrown away, as in
//!   UUniFast-Discard (Davis, Burns 2011). Where most would be, the distances to the bound are
//!   drawn instead: they are distributed alike, and have the smaller sum.
//! * **Cost.** n log n per draw.

use takt_analysis::task::{Task, Ticks};

use crate::rng::Rng;

/// The whole GPU, in the unit of shares.
pub const WHOLE_PPB: u64 = 1_000_000_000;

/// Draws that are thrown away before a bound is called out of reach.
const DRAWS_MAX: u32 = 100_000;

/// Shares of `count` tasks that add up to `total_ppb`, evenly distributed.
pub fn uunifast(rng: &mut Rng, count: usize, total_ppb: u64) -> Vec<u64> {
    let Some(cuts) = count.checked_sub(1) else {
        return Vec::new();
    };
    let mut places: Vec<u64> = (0..cuts).map(|_| rng.between(0, total_ppb)).collect();
    places.push(total_ppb);
    places.sort_unstable();
    let mut before = 0;
    for place in &mut places {
        (*place, before) = (*place - before, *place);
    }
    places
}

/// The same with no share above `most_ppb`; `None` if there is no such draw, or none was found.
pub fn uunifast_bounded(rng: &mut Rng, count: usize, total_ppb: u64, most_ppb: u64) -> Option<Vec<u64>> {
    let room = u64::try_from(count).ok()?.checked_mul(most_ppb)?.checked_sub(total_ppb)?;
    for _ in 0..DRAWS_MAX {
        let mut shares = uunifast(rng, count, total_ppb.min(room));
        if shares.iter().all(|share| *share <= most_ppb) {
            if room < total_ppb {
                shares.iter_mut().for_each(|share| *share = most_ppb - *share);
            }
            return Some(shares);
        }
    }
    None
}

/// Which sets to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskSets {
    /// Tasks per set.
    pub tasks: usize,
    /// Demanded share of the GPU; rounding execution times down to ticks loses a little of it.
    pub utilisation_ppb: u64,
    /// Largest share of one task.
    pub share_ppb_max: u64,
    /// Shortest and longest period.
    pub period: (Ticks, Ticks),
    /// Shortest deadline in thousandths of the period; 1000 makes deadlines and periods equal.
    pub deadline_permille_min: u32,
}

impl TaskSets {
    /// The sets of HERCULES D5.2, section 2.4.2: periods of 16 to 125 ms in µs, deadlines at the
    /// end of the period.
    pub const fn hercules(tasks: usize, utilisation_ppb: u64) -> Self {
        Self {
            tasks,
            utilisation_ppb,
            share_ppb_max: WHOLE_PPB,
            period: (16_000, 125_000),
            deadline_permille_min: 1000,
        }
    }

    /// Draws a set; `None` if no shares within the bound were found or periods are out of range.
    pub fn draw(&self, rng: &mut Rng) -> Option<Vec<Task>> {
        let shares = uunifast_bounded(rng, self.tasks, self.utilisation_ppb, self.share_ppb_max)?;
        shares.into_iter().map(|share| self.task(rng, share)).collect()
    }

    fn task(&self, rng: &mut Rng, share_ppb: u64) -> Option<Task> {
        let period = rng.between(self.period.0, self.period.1);
        let part = |whole: u64, numerator: u64, denominator: u64| {
            let part = u128::from(whole) * u128::from(numerator) / u128::from(denominator);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let wcet = part(period, share_ppb, WHOLE_PPB).max(1);
        let shortest = part(period, self.deadline_permille_min.into(), 1000);
        // A deadline shorter than the job could not be met by anything.
        let deadline = rng.between(shortest.min(period), period).max(wcet);
        Task::new(wcet, deadline, period).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let mut rng = Rng::new(1, 0);
        for count in 1..30 {
            let shares = uunifast(&mut rng, count, 950_000_000);
            assert_eq!(shares.len(), count);
            assert_eq!(shares.iter().sum::<u64>(), 950_000_000);
        }
        assert!(uunifast(&mut rng, 0, 5).is_empty());
    }

    /// The share of one of n tasks exceeds x·U with probability (1 − x)^(n − 1).
    #[test]
    fn shares_are_distributed_as_by_uunifast() {
        let mut rng = Rng::new(2, 0);
        let mut above = [[0u32; 3]; 5];
        for _ in 0..40_000 {
            for (above, share) in above.iter_mut().zip(uunifast(&mut rng, 5, WHOLE_PPB)) {
                for (above, tenths) in above.iter_mut().zip([1, 3, 6]) {
                    *above += u32::from(share > tenths * WHOLE_PPB / 10);
                }
            }
        }
        let expected = [0.6561, 0.2401, 0.0256].map(|probability| probability * 40_000.0);
        for task in above {
            for (found, expected) in task.iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() < 500.0, "{above:?} {expected}");
            }
        }
    }

    #[test]
    fn bounds_are_kept_or_refused() {
        let mut rng = Rng::new(3, 0);
        for most in [60, 100, 200, 500] {
            for _ in 0..20 {
                let shares = uunifast_bounded(&mut rng, 20, 1_000, most).unwrap();
                assert!(shares.iter().all(|share| *share <= most));
                assert_eq!(shares.iter().sum::<u64>(), 1_000);
            }
        }
        assert_eq!(uunifast_bounded(&mut rng, 20, 1_000, 49), None);
        assert_eq!(uunifast_bounded(&mut rng, usize::MAX, 1_000, u64::MAX), None);
    }

    #[test]
    fn sets_are_pinned() {
        let sets = TaskSets { deadline_permille_min: 800, ..TaskSets::hercules(3, 950_000_000) };
        let set = sets.draw(&mut Rng::new(1, 0)).unwrap();
        let text: Vec<String> =
            set.iter().map(|task| format!("{},{},{}", task.wcet(), task.deadline(), task.period())).collect();
        expect_test::expect![[r#"
            24170,75857,79281
            4485,87226,88114
            67468,110416,113541"#]]
        .assert_eq(&text.join("\n"));
    }
}
