//! The runlist: in which order a GPU's host looks after its channels.
//!
//! * **Rule.** Every channel of a level occurs once before each single entry of a lower level, and
//!   all of the next higher level once before it comes round: two high and two medium channels give
//!   `H1 H2 M1 H1 H2 M2`. The list repeats; entries without work are skipped.
//! * **Consequence.** Between two entries of a high channel lie one entry of each other high one
//!   and a single entry of a lower level.
//! * **Source.** HERCULES D5.2, section 2.1.1 and appendix.
//! * **Cost.** The list is never written down, since it may be as long as the product of its
//!   levels' lengths. Three positions stand for it, and finding the next entry with work takes one
//!   pass over the channels.
//!
//! The modelled GPU and the policy `runlist` walk the same list.

use alloc::vec::Vec;

use takt_core::app::AppId;
use takt_core::service::Level;

const LEVELS: usize = 3;

/// A runlist and the place where its host is.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    /// The channels of each level, highest first, in the order they were added.
    levels: [Vec<AppId>; LEVELS],
    /// The next entry of each level, before the higher levels come round again.
    next: [usize; LEVELS],
}

impl Channels {
    /// An empty list with memory for that many channels.
    pub fn with_capacity(channels: usize) -> Self {
        Self { levels: core::array::from_fn(|_| Vec::with_capacity(channels)), next: [0; LEVELS] }
    }

    /// A new list takes the place of this one and is read from its beginning.
    pub fn replace(&mut self, channels: impl IntoIterator<Item = (AppId, Level)>) {
        self.levels.iter_mut().for_each(Vec::clear);
        self.next = [0; LEVELS];
        for (app, level) in channels {
            let level = match level {
                Level::High => 0,
                Level::Medium => 1,
                Level::Low => 2,
            };
            self.levels[level].push(app);
        }
    }

    /// The next entry whose channel has work, and moves past it; `None` if no channel has any.
    pub fn advance(&mut self, mut has_work: impl FnMut(AppId) -> bool) -> Option<AppId> {
        // Down to this level there is nothing to find, so the way through it need not be walked.
        let idle = self.levels.iter().position(|level| level.iter().any(|app| has_work(*app)))?;
        loop {
            let app = self.step(idle);
            if has_work(app) {
                return Some(app);
            }
        }
    }

    /// The next entry of the list, or the next one of level `from` or below.
    fn step(&mut self, from: usize) -> AppId {
        let mut level = from;
        loop {
            if let Some(app) = self.levels[level].get(self.next[level]).copied() {
                self.next[level] += 1;
                self.next[..level].fill(0);
                return app;
            }
            level += 1;
            if self.levels[level..].iter().all(Vec::is_empty) {
                // The list is over: its lowest level begins anew, and the higher ones came before.
                level -= 1;
                while self.levels[level].is_empty() {
                    level -= 1;
                }
                self.next[level] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    const NAMES: [&str; 6] = ["H1", "H2", "M1", "M2", "L1", "L2"];

    fn list(apps: &[&str]) -> Channels {
        let channel = |name: &&str| {
            let (app, _) = (0..).map(AppId).zip(NAMES).find(|(_, other)| other == name).unwrap();
            let level = match name.as_bytes()[0] {
                b'H' => Level::High,
                b'M' => Level::Medium,
                _ => Level::Low,
            };
            (app, level)
        };
        let mut list = Channels::with_capacity(apps.len());
        list.replace(apps.iter().map(channel));
        list
    }

    fn walk(list: &mut Channels, entries: usize, has_work: impl Fn(&str) -> bool) -> String {
        let names: Vec<&str> = (0..entries)
            .map(|_| NAMES[list.advance(|app| has_work(NAMES[app.index()])).unwrap().index()])
            .collect();
        names.join(" ")
    }

    #[test]
    fn two_high_and_two_medium_channels() {
        let mut list = list(&["H1", "H2", "M1", "M2"]);
        assert_eq!(walk(&mut list, 9, |_| true), "H1 H2 M1 H1 H2 M2 H1 H2 M1");
    }

    #[test]
    fn low_channels_come_after_all_medium_ones() {
        let mut list = list(&["L1", "M2", "H1", "M1", "L2"]);
        assert_eq!(walk(&mut list, 13, |_| true), "H1 M2 H1 M1 H1 L1 H1 M2 H1 M1 H1 L2 H1");
    }

    #[test]
    fn missing_levels_are_passed_over() {
        assert_eq!(walk(&mut list(&["H1", "H2", "L1", "L2"]), 7, |_| true), "H1 H2 L1 H1 H2 L2 H1");
        assert_eq!(walk(&mut list(&["M1", "M2", "L1", "L2"]), 7, |_| true), "M1 M2 L1 M1 M2 L2 M1");
        assert_eq!(walk(&mut list(&["H1", "H2"]), 5, |_| true), "H1 H2 H1 H2 H1");
        assert_eq!(walk(&mut list(&["M1", "M2"]), 3, |_| true), "M1 M2 M1");
        assert_eq!(walk(&mut list(&["L1", "L2"]), 3, |_| true), "L1 L2 L1");
        assert_eq!(list(&[]).advance(|_| true), None);
        assert_eq!(list(&["H1"]).advance(|_| false), None);
    }

    /// Skipping must give the same entries as reading the list one by one.
    #[test]
    fn channels_without_work_are_skipped() {
        let all = ["H1", "H2", "M1", "M2", "L1", "L2"];
        for busy in 1..1_u32 << all.len() {
            let has_work = |name: &str| busy & 1 << NAMES.iter().position(|n| *n == name).unwrap() != 0;
            let mut written: Vec<&str> = Vec::new();
            for low in ["L1", "L2"] {
                for lower in ["M1", "M2", low] {
                    written.extend(["H1", "H2", lower]);
                }
            }
            let expected: Vec<&str> =
                written.iter().cycle().filter(|name| has_work(name)).take(40).copied().collect();
            assert_eq!(walk(&mut list(&all), 40, has_work), expected.join(" "), "{busy:b}");
        }
    }

    #[test]
    fn a_new_list_is_read_from_its_beginning() {
        let mut list = list(&["H1", "H2", "M1"]);
        assert_eq!(walk(&mut list, 2, |_| true), "H1 H2");
        list.replace(vec![(AppId(1), Level::High), (AppId(0), Level::Low)]);
        assert_eq!(walk(&mut list, 3, |_| true), "H2 H1 H2");
    }
}
