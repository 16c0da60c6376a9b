//! For which commands of the program grants are asked, so that one that waits too long can be named.

use std::collections::VecDeque;

use takt_core::{Estimate, GroupId};
use takt_ipc::{Command, Request};

use super::Link;

/// Groups whose commands are remembered: more than threads ever wait for.
const COMMANDS_MAX: usize = 32;

/// Commands for which the last groups were asked.
#[derive(Default)]
pub(super) struct Commands(VecDeque<(u64, &'static str)>);

impl Commands {
    fn note(&mut self, group: u64, command: &'static str) {
        self.0.retain(|(of, _)| *of != group);
        if self.0.len() >= COMMANDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((group, command));
    }

    fn of(&self, group: u64) -> Option<&'static str> {
        self.0.iter().find(|(number, _)| *number == group).map(|(_, command)| *command)
    }
}

impl Link {
    /// Notes the command for which a group is asked.
    pub(crate) fn names(&mut self, number: u64, command: &'static str) {
        if let Some(on) = &mut self.on {
            on.commands.note(number, command);
        }
    }

    /// Work waits which cannot be cut and fits nowhere: says so, and tells the daemon which command that is.
    pub(super) fn is_stuck(&mut self, group: GroupId, estimate: Estimate) {
        let Some(on) = &mut self.on else {
            return;
        };
        let command = on.commands.of(group.0).unwrap_or_default();
        if on.sender.send(&Request::Names { group, command: Command::new(command) }).is_err() {
            return self.lose("the daemon does not read what it is asked");
        }
        let what = if command.is_empty() { "work" } else { command };
        let length = match estimate {
            Estimate::UNBOUNDED => "of unknown length".to_owned(),
            estimate => format!("of {:.1} ms", estimate.span().as_ns() as f64 / 1e6),
        };
        self.say(format!(
            "{what} {length} waits: it cannot be cut and fits nowhere beside the contracts of other apps; \
             uncut = \"run\" in the [[app]] section of {} lets it run and withdraws their guarantees",
            self.hello.name
        ));
    }
}
