//! Which window keys and knobs go to.
//!
//! It is the dialogue in front, if there is one; else the window that was touched last, if it is shown and may
//! have them; else the one in front of those that may.

use takt_core::Time;

use super::{Deed, Inputs, Shut, Target};
use crate::config::Kind;
use crate::geometry::Point;
use crate::windows::{WindowId, Windows};

impl Inputs {
    /// Where keys of a device go.
    pub(super) fn for_keys(&self, windows: &Windows, device: usize) -> Target {
        let output = self.config.inputs[device].output;
        let gate = |id: WindowId| self.gate(windows, device, (id, Point::default()));
        if let Some(dialogue) = windows.dialogue(output) {
            return gate(dialogue);
        }
        let chosen = self.chosen[output].filter(|id| windows.shown_on(*id) == Some(output));
        let in_front = windows.scene(output).windows.iter().rev().map(|placed| placed.id);
        let mut refused: Option<(Option<WindowId>, Shut)> = None;
        for id in chosen.into_iter().chain(in_front) {
            match gate(id) {
                Target::Refused(id, shut) => drop(refused.get_or_insert((id, shut))),
                target => return target,
            }
        }
        refused.map_or(Target::Nothing, |(id, shut)| Target::Refused(id, shut))
    }

    /// A window was touched: keys go to it, if it may have any.
    pub(super) fn choose(&mut self, windows: &Windows, (output, id): (usize, WindowId), now: Time) {
        if self.chosen[output] != Some(id) {
            self.chosen[output] = Some(id);
            self.review_output(windows, output, now);
        }
    }

    /// Finds out anew where keys go.
    pub(super) fn review_focus(&mut self, windows: &Windows, now: Time) {
        for output in 0..self.focus.len() {
            self.review_output(windows, output, now);
        }
    }

    fn review_output(&mut self, windows: &Windows, output: usize, now: Time) {
        let inputs = self.config.inputs.iter().enumerate();
        let keys = inputs
            .filter(|(_, input)| input.output == output && matches!(input.kind, Kind::Keys | Kind::Rotary));
        let target = keys.map(|(device, _)| device).find_map(|device| match self.for_keys(windows, device) {
            Target::Window(id, _) => Some(id),
            Target::Nothing | Target::Refused(..) => None,
        });
        self.set_focus(output, target, now);
    }

    pub(super) fn set_focus(&mut self, output: usize, to: Option<WindowId>, now: Time) {
        let before = std::mem::replace(&mut self.focus[output], to);
        if before == to {
            return;
        }
        // A client of windows on two displays hears in order which one is left.
        if let Some(before) = before {
            self.deliver(before, Deed::Unfocus, now);
        }
        if let Some(to) = to {
            self.deliver(to, Deed::Focus, now);
        }
    }
}
