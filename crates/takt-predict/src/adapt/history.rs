//! TimeGraph's prediction by history (section 5.3 there), for comparison and as a fallback.
//!
//! Groups with the same commands and sizes are taken to cost the same. A record holds the exact
//! list and the mean cost; an unknown list is predicted to cost as much as the dearest record.
//! The cost of a group that ran right after one of another app says nothing about its list; what
//! it is above the mean is the impact of the switch, whose mean is added to every prediction.

use takt_core::{Cost, Estimate, Span};

/// Records that are kept unless told otherwise; the one used least recently makes room.
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
    /// The list is known: its mean cost and the impact of a switch.
    Hit(Estimate),
    /// It is not: the largest mean of all lists and the impact of a switch.
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
    records_max: usize,
    impact: Impact,
    clock: u64,
}

/// What a switch adds to the cost of a group, on average, in nanoseconds. A group may also be
/// cheaper than its mean, so single impacts are signed.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Impact {
    total: i64,
    count: u32,
}

impl Impact {
    fn mean(self) -> Span {
        Span::from_ns((self.total / i64::from(self.count.max(1))).max(0).unsigned_abs())
    }
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
        Self::new(RECORDS, Span::ZERO)
    }
}

impl History {
    /// With room for that many records (at least one) and the impact of a single switch, as it was
    /// measured beforehand.
    pub fn new(records_max: usize, impact: Span) -> Self {
        let records_max = records_max.max(1);
        let impact = Impact { total: impact.as_signed_ns(), count: 1 };
        Self { records: Vec::with_capacity(records_max), records_max, impact, clock: 0 }
    }

    /// What a switch adds on average.
    pub fn impact(&self) -> Span {
        self.impact.mean()
    }

    /// Predicts the group with these commands.
    pub fn predict(&self, commands: &[Command]) -> HistoryAnswer {
        if let Some(record) = self.records.iter().find(|record| record.commands == commands) {
            return HistoryAnswer::Hit(Estimate::new(record.mean() + self.impact()));
        }
        let dearest = self.records.iter().map(Record::mean).max();
        HistoryAnswer::Miss(Estimate::new(dearest.unwrap_or(Span::ZERO) + self.impact()))
    }

    /// Learns from the cost of a group that ran after one of another app. A list that is not
    /// known yet becomes known by it: there is nothing better.
    pub fn learn_after_switch(&mut self, commands: &[Command], cost: Cost) {
        let Some(at) = self.records.iter().position(|record| record.commands == commands) else {
            return self.learn(commands, cost);
        };
        self.clock += 1;
        let record = &mut self.records[at];
        record.used = self.clock;
        let above = cost.span().as_signed_ns().saturating_sub(record.mean().as_signed_ns());
        if self.impact.count == COUNT_MAX {
            self.impact = Impact { total: self.impact.total / 2, count: COUNT_MAX / 2 };
        }
        self.impact.total = self.impact.total.saturating_add(above);
        self.impact.count += 1;
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
        if self.records.len() < self.records_max {
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

    #[test]
    fn a_switch_is_told_from_the_cost_of_a_list() {
        let mut history = History::new(10, Span::from_us(8));
        assert_eq!(history.predict(&list(&[1])), HistoryAnswer::Miss(estimate(8)), "measured beforehand");
        history.learn_after_switch(&list(&[1]), us(100));
        assert_eq!(history.predict(&list(&[1])), HistoryAnswer::Hit(estimate(108)), "better than nothing");
        history.learn_after_switch(&list(&[1]), us(120));
        assert_eq!(history.impact(), Span::from_us(14));
        assert_eq!(history.predict(&list(&[1])), HistoryAnswer::Hit(estimate(114)), "the mean stays");
        for _ in 0..100 {
            history.learn_after_switch(&list(&[1]), us(10));
        }
        assert_eq!(history.impact(), Span::ZERO, "a switch never makes a group cheaper");
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
