//! What the driver under an app remembers about the cost of its groups, where estimates come from
//! experience (`prediction.history`) instead of the truth.
//!
//! Groups are told apart by what a driver could see: their place in the frame (a draw of the
//! scenario, or the swap) and how large they are (the part of the mixture their cost is from).

use std::collections::VecDeque;

use takt_core::{Cost, Estimate, GroupId, Span};
use takt_predict::adapt::{Command, History};

use crate::model::{AppSpec, Prediction};

/// The table of one app.
#[derive(Debug)]
pub(crate) struct Memory {
    history: History,
    /// Groups whose cost is not known yet.
    open: VecDeque<(GroupId, Command)>,
}

/// What a group looks like to a driver.
pub(crate) fn look(place: usize, size: usize) -> Command {
    let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    Command { method: number(place), size: number(size) }
}

impl Memory {
    /// A table as large as the app's model of prediction says, if it has one at any time; `switch`
    /// is what a switch between apps costs.
    pub(crate) fn of(app: &AppSpec, switch: Span) -> Option<Self> {
        let phases = app.phases.iter().filter_map(|phase| phase.prediction.as_ref());
        let records = std::iter::once(&app.prediction).chain(phases).find_map(|model| model.history)?;
        Some(Self { history: History::new(records as usize, switch), open: VecDeque::new() })
    }

    /// What the table says about a group of that look.
    pub(crate) fn estimate(&self, look: Command, model: &Prediction) -> Estimate {
        let Some(scale) = model.scale_permille else {
            return Estimate::UNBOUNDED;
        };
        let answer = self.history.predict(&[look]).estimate().span().max(model.floor);
        Estimate::new(if scale == 1000 { answer } else { answer.scaled(scale, 1000) })
    }

    /// A group of that look was submitted.
    pub(crate) fn submitted(&mut self, group: GroupId, look: Command) {
        self.open.push_back((group, look));
    }

    /// A group has ended; `switched` if one of another app ran before it.
    pub(crate) fn completed(&mut self, group: GroupId, cost: Cost, switched: bool) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == group) else {
            return;
        };
        // Groups of an app end in order: the completions of those before it were lost.
        let look = self.open.drain(..=at).next_back().map(|(_, look)| look).unwrap_or_default();
        if switched {
            self.history.learn_after_switch(&[look], cost);
        } else {
            self.history.learn(&[look], cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use takt_core::{Event, Time};
    use takt_trace::{Observer, Record};

    use crate::scenario;
    use crate::world::World;

    /// The estimates of an app's groups, in microseconds, in the order of their submission.
    fn estimates(prediction: &str) -> Vec<u64> {
        let text = format!(
            "name = \"t\"\nduration_s = 1\n[gpu]\nswitch_us = 5\n[[app]]\nname = \"a\"\npriority = 1\nfps = 10\n\
             draws = [{{ us = 300, count = 2 }}]\nswap_us = 100\nprediction = {prediction}\n"
        );
        let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
        let mut seen = Estimates::default();
        World::new(&scenario, &mut seen).run_until(Time::from_ms(450));
        seen.0
    }

    #[derive(Default)]
    struct Estimates(Vec<u64>);

    impl Observer for Estimates {
        fn record(&mut self, _at: Time, record: &Record) {
            if let Record::In(Event::Submit { estimate, .. }) = record {
                self.0.push(estimate.span().as_us());
            }
        }
    }

    #[test]
    fn the_first_frame_is_unknown_and_the_next_ones_are_not() {
        // A frame is submitted at once, before any of its groups has ended.
        assert_eq!(estimates("{ history = 10 }")[..6], [5, 5, 5, 305, 305, 105]);
        assert_eq!(estimates("{ history = 10, scale = 2, floor_us = 50 }")[..4], [100, 100, 100, 610]);
        assert_eq!(estimates("{}")[..3], [300, 300, 100]);
    }

    #[test]
    fn a_table_of_one_record_knows_the_last_group_only() {
        assert_eq!(estimates("{ history = 1 }")[3..6], [105, 105, 105]);
    }
}
