//! TimeGraph's prediction by history (section 5.3 there), for comparison and as a fallback.
//!
//! Groups with the same commands and sizes are taken to cost the same. A record holds the exact
//! list and the mean cost; an unknown list is predicted to cost as much as the dearest record.

use takt_core::{Cost, Estimate, Span};

/// Records that are kept; the one used least recently makes room.
pub const RECORDS: usize = 100;
/// Commands of a list that is kept; longer ones are always unknown.
pub const COMMANDS_MAX: usize = 512;

/// A command and the size of its data.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Command {
    /// Which command.
    pub method: u32,
    /// How much data.
    pub size: u32,
}

/// What the history says about a list.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HistoryAnswer {
    /// The list is known: its mean cost.
    Hit(Estimate),
    /// It is not: the largest mean of all lists.
    Miss(Estimate),
}

impl HistoryAnswer {
    /// The estimate, known or not.
    pub fn estimate(self) -> Estimate {
        match self {
            Self::Hit(estimate) | Self::Miss(estimate) => estimate,
        }
    }
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    records: Vec<Record>,
    clock: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Record {
    commands: Vec<Command>,
    total: Span,
    count: u32,
    used: u64,
}

impl Record {
    fn mean(&self) -> Span {
        Span::from_ns(self.total.as_ns() / u64::from(self.count.max(1)))
    }
}

impl Default for History {
    fn default() -> Self {
        Self { records: Vec::with_capacity(RECORDS), clock: 0 }
    }
}

impl History {
    /// Predicts the group with these commands.
    pub fn predict(&self, commands: &[Command]) -> HistoryAnswer {
        if let Some(record) = self.records.iter().find(|record| record.commands == commands) {
            return HistoryAnswer::Hit(Estimate::new(record.mean()));
        }
        let dearest = self.records.iter().map(Record::mean).max();
        HistoryAnswer::Miss(Estimate::new(dearest.unwrap_or(Span::ZERO)))
    }

    /// Learns the undisturbed cost of a group.
    pub fn learn(&mut self, commands: &[Command], cost: Cost) {
        if commands.len() > COMMANDS_MAX {
            return;
        }
        self.clock += 1;
        let known = self.records.iter().position(|record| record.commands == commands);
        let at = known.unwrap_or_else(|| self.make_room(commands));
        let record = &mut self.records[at];
        record.used = self.clock;
        if record.count == COUNT_MAX {
            // Keeps the mean and lets newer costs count for more.
            record.total = Span::from_ns(record.total.as_ns() / 2);
            record.count /= 2;
        }
        record.total = Span::from_ns(record.total.as_ns().saturating_add(cost.span().as_ns()));
        record.count += 1;
    }

    /// An empty record for these commands.
    fn make_room(&mut self, commands: &[Command]) -> usize {
        if self.records.len() < RECORDS {
            let mut list = Vec::with_capacity(COMMANDS_MAX);
            list.extend_from_slice(commands);
            self.records.push(Record { commands: list, total: Span::ZERO, count: 0, used: 0 });
            return self.records.len() - 1;
        }
        let oldest = self.records.iter().enumerate().min_by_key(|(_, record)| record.used);
        let at = oldest.map_or(0, |(at, _)| at);
        let record = &mut self.records[at];
        record.commands.clear();
        record.commands.extend_from_slice(commands);
        (record.total, record.count) = (Span::ZERO, 0);
        at
    }
}

/// Costs that a mean is taken over before older ones fade.
const COUNT_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(numbers: &[u32]) -> Vec<Command> {
        numbers.iter().map(|&method| Command { method, size: method * 2 }).collect()
    }

    fn us(us: u64) -> Cost {
        Cost::new(Span::from_us(us))
    }

    fn estimate(us: u64) -> Estimate {
        Estimate::new(Span::from_us(us))
    }

    #[test]
    fn known_lists_cost_their_mean_and_others_the_most() {
        let mut history = History::default();
        assert_eq!(history.predict(&list(&[1])), HistoryAnswer::Miss(estimate(0)));
        history.learn(&list(&[1]), us(10));
        history.learn(&list(&[1]), us(30));
        history.learn(&list(&[1, 2]), us(100));
        assert_eq!(history.predict(&list(&[1])), HistoryAnswer::Hit(estimate(20)));
        assert_eq!(history.predict(&list(&[2, 1])), HistoryAnswer::Miss(estimate(100)), "order matters");
        let other_size = [Command { method: 1, size: 3 }];
        assert_eq!(history.predict(&other_size).estimate(), estimate(100));
    }

    #[test]
    fn endless_lists_are_not_kept() {
        let mut history = History::default();
        let long = vec![Command::default(); COMMANDS_MAX + 1];
        history.learn(&long, us(10));
        assert_eq!(history.predict(&long), HistoryAnswer::Miss(estimate(0)));
    }

    proptest! {
        #[test]
        fn the_last_hundred_lists_are_known(lists in prop::collection::vec(0u32..150, 1..400)) {
            let mut history = History::default();
            let mut order: Vec<u32> = Vec::new();
            for number in lists {
                history.learn(&list(&[number]), us(u64::from(number) + 1));
                order.retain(|&other| other != number);
                order.push(number);
            }
            let kept = &order[order.len().saturating_sub(RECORDS)..];
            for number in 0..150 {
                let hit = matches!(history.predict(&list(&[number])), HistoryAnswer::Hit(_));
                prop_assert_eq!(hit, kept.contains(&number), "{}", number);
            }
        }
    }
}
