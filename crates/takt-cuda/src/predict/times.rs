//! What a kind of work took lately.

/// How many times are kept.
const KEPT: usize = 32;

/// Of so many times, one may be longer than what is predicted.
const LONGER: usize = 10;

/// Times that differ by more than this factor have several causes.
const SPREAD: u64 = 2;
/// And by so much at least, in nanoseconds.
const SPREAD_NS: u64 = 20_000;
/// After so many times that can be told.
const SPREAD_AFTER: usize = 16;

/// Whether a time is the work's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Company {
    /// The GPU served this process only.
    None,
    /// Others may have had turns meanwhile, so it is an upper bound.
    Others,
}

/// The last times, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    own: [u64; KEPT],
    count: usize,
    next: usize,
    /// The shortest time beside others, while there are no others.
    least: Option<u64>,
}

impl Default for Times {
    fn default() -> Self {
        Self { own: [0; KEPT], count: 0, next: 0, least: None }
    }
}

impl Times {
    /// Takes a time into account.
    pub fn learn(&mut self, ns: u64, company: Company) {
        match company {
            Company::None => self.push(ns),
            Company::Others => {
                // A shorter one is right all the same.
                if self.predicted().is_some_and(|predicted| ns < predicted) && self.count > 0 {
                    self.push(ns);
                }
                self.least = Some(self.least.map_or(ns, |least| least.min(ns)));
            }
        }
    }

    fn push(&mut self, ns: u64) {
        self.own[self.next] = ns;
        self.next = (self.next + 1) % KEPT;
        self.count = (self.count + 1).min(KEPT);
    }

    /// What the next one will take: as much as nine of ten did. None if nothing is known.
    pub fn predicted(&self) -> Option<u64> {
        if self.count == 0 {
            return self.least;
        }
        let sorted = self.sorted();
        let known = &sorted[..self.count];
        known.get(self.count - 1 - self.count / LONGER).copied()
    }

    /// Whether times differ so much that they must depend on something else.
    pub fn is_spread(&self) -> bool {
        if self.count < SPREAD_AFTER {
            return false;
        }
        let sorted = self.sorted();
        let (low, high) = (sorted[self.count / LONGER], sorted[self.count - 1 - self.count / LONGER]);
        high > low.saturating_mul(SPREAD) && high - low > SPREAD_NS
    }

    fn sorted(&self) -> [u64; KEPT] {
        let mut sorted = self.own;
        sorted[..self.count].sort_unstable();
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(times: impl IntoIterator<Item = u64>) -> Times {
        let mut all = Times::default();
        times.into_iter().for_each(|ns| all.learn(ns, Company::None));
        all
    }

    #[test]
    fn one_long_time_in_ten_does_not_count() {
        assert_eq!(Times::default().predicted(), None);
        assert_eq!(learned([100]).predicted(), Some(100));
        assert_eq!(learned((0..20).map(|n| if n == 3 { 9_000 } else { 100 + n })).predicted(), Some(118));
        assert_eq!(learned((0..1000).map(|n| if n < 900 { 5_000 } else { 100 })).predicted(), Some(100));
    }

    #[test]
    fn times_beside_others_are_upper_bounds() {
        let mut times = Times::default();
        times.learn(9_000, Company::Others);
        times.learn(7_000, Company::Others);
        times.learn(8_000, Company::Others);
        assert_eq!(times.predicted(), Some(7_000), "nothing better is known");
        times.learn(5_000, Company::None);
        times.learn(9_000, Company::Others);
        assert_eq!(times.predicted(), Some(5_000));
        (0..40).for_each(|_| times.learn(4_000, Company::Others));
        assert_eq!(times.predicted(), Some(4_000), "it has become shorter");
    }

    #[test]
    fn two_kinds_of_times_are_noticed() {
        assert!(!learned((0..40).map(|n| 100_000 + n)).is_spread());
        assert!(learned((0..40).map(|n| if n % 2 == 0 { 100_000 } else { 400_000 })).is_spread());
        assert!(!learned((0..40).map(|n| if n % 2 == 0 { 1_000 } else { 4_000 })).is_spread(), "too short");
    }
}
