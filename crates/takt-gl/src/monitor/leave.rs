//! When a context must ask for leave, and for how much.

use takt_core::{GroupKind, Span};

use super::context::State;
use crate::gate::{self, Pass};
use crate::group::End;

/// What a context may do at the moment.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Leave {
    pass: Option<Pass>,
    /// Time granted in this frame, and in the one before.
    frame: Span,
    frame_before: Span,
}

impl Leave {
    /// The group is handed to the driver; its pass goes with it.
    pub(super) fn end_group(&mut self) -> Option<Pass> {
        self.pass.take()
    }

    fn granted(&mut self, pass: Option<Pass>) {
        if let Some(pass) = pass {
            self.frame += pass.credit;
        }
        self.pass = pass;
    }

    /// What the rest of the frame will need if it goes on like the one before.
    fn rest(&self) -> Span {
        self.frame_before.saturating_sub(self.frame)
    }

    fn end_frame(&mut self) {
        self.frame_before = std::mem::take(&mut self.frame);
    }
}

impl State {
    /// Hands the current group over if it contains as much as it was granted, so that the next
    /// command begins another one. True if it did.
    pub fn make_room(&mut self) -> bool {
        let full = self.leave.pass.is_some_and(|pass| self.pending() >= pass.credit);
        full && self.submit(End::Limit)
    }

    /// Asks for leave for the current group, which has its first command, unless it has leave.
    pub fn ask(&mut self) {
        if !gate::is_wanted() || self.leave.pass.is_some() || self.builder.is_empty() {
            return;
        }
        let estimate = self.pending().max(self.leave.rest().min(gate::slice()));
        self.leave.granted(gate::ask(GroupKind::Draw, estimate));
    }

    /// Asks for leave to swap; none where nobody schedules.
    pub fn ask_to_swap(&mut self) -> Option<Pass> {
        if !gate::is_wanted() {
            return None;
        }
        let pass = gate::ask(GroupKind::Swap, self.predicted_swap());
        self.leave.granted(pass);
        self.leave.end_frame();
        pass
    }
}
