//! When a context must ask for leave, and for how much.

use takt_core::Span;

use super::context::State;
use super::gather::Gathering;
use crate::clock;
use crate::gate::{self, Pass};
use crate::group::End;

/// What a context may do at the moment.
#[derive(Default, Debug)]
pub(super) struct Leave {
    pass: Option<Pass>,
    /// What this frame has contained so far by prediction, and all of the one before. Not what was
    /// granted: grants may be longer, and each frame would ask for what the one before had too much.
    frame: Span,
    frame_before: Span,
    /// Frames that go into one group.
    pub(super) gathering: Gathering,
}

impl Leave {
    /// Whether the current group has leave.
    pub(super) fn has_pass(&self) -> bool {
        self.pass.is_some()
    }

    /// The leave of the current group.
    pub(super) fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    /// What the current group may contain beyond the frames that have ended inside of it.
    pub(super) fn credit(&self) -> Option<Span> {
        self.pass.map(|pass| pass.credit.saturating_sub(self.gathering.contained()))
    }

    /// So much more of the frame is in groups.
    pub(super) fn contains(&mut self, predicted: Span) {
        self.frame += predicted;
    }

    /// What this frame has in groups so far.
    pub(super) fn frame(&self) -> Span {
        self.frame
    }

    /// The group is handed to the driver; its pass goes with it.
    pub(super) fn end_group(&mut self) -> Option<Pass> {
        self.gathering.end();
        self.pass.take().and_then(gate::hand_over)
    }

    /// Forgets a pass that was given back because nothing was done with it, and looks whether somebody
    /// else is there.
    pub(super) fn check(&mut self) {
        let (held, alone) = gate::look(self.pass.as_ref());
        self.pass.take_if(|_| !held);
        self.gathering.set_alone(alone);
    }

    /// Whether the current group is longer than it may be now, or nobody knows, because somebody has
    /// come.
    fn is_in_the_way(&self) -> bool {
        let long = self.gathering.coasts() || self.pass.is_some_and(|pass| pass.alone);
        long && !self.gathering.is_alone()
    }

    /// A pass came, or nobody gives any.
    pub(super) fn granted(&mut self, pass: Option<Pass>) {
        self.pass = pass;
        self.gathering.begin(clock::now_ns());
    }

    /// What the rest of the frame will need if it goes on like the one before.
    fn rest(&self) -> Span {
        self.frame_before.saturating_sub(self.frame)
    }

    pub(super) fn end_frame(&mut self) {
        self.frame_before = std::mem::take(&mut self.frame);
    }
}

impl State {
    /// Hands the current group over if it contains as much as it was granted, so that the next
    /// command begins another one. True if it did.
    pub fn make_room(&mut self) -> bool {
        self.leave.check();
        if self.leave.is_in_the_way() {
            return self.make_way();
        }
        let known = !self.leave.gathering.coasts();
        let full = known && self.leave.credit().is_some_and(|credit| self.pending() >= credit);
        full && self.submit(End::Limit)
    }

    /// Hands the current group over, and looks at everything that follows. True if there was
    /// something.
    pub(super) fn make_way(&mut self) -> bool {
        let handed_over = self.submit(End::Limit);
        self.leave.gathering.stop_coasting();
        handed_over
    }

    /// Asks for leave for the current group, which has its first command, unless it has leave.
    pub fn ask(&mut self) {
        if !gate::is_wanted() || self.leave.pass.is_some() || self.builder.is_empty() {
            return;
        }
        self.ask_for(self.pending());
    }

    /// Asks for leave for a group that begins with that, unless there is some.
    pub(super) fn ask_for(&mut self, need: Span) {
        if self.leave.pass.is_some() {
            return;
        }
        let leave = &mut self.leave;
        leave.gathering.set_alone(gate::is_alone());
        leave.gathering.asks(clock::now_ns(), need);
        let most = longest(need, gate::slice());
        let estimate = leave.rest().max(leave.gathering.wanted()).min(most);
        leave.granted(gate::ask(need, need.max(estimate)));
    }

    /// Asks for leave to swap; none where nobody schedules. With `idle`, that takes no time of the GPU.
    pub fn ask_to_swap(&mut self, idle: bool) -> Option<Pass> {
        if !gate::is_wanted() {
            return None;
        }
        // No time at all says that there is nothing to do, which nobody can predict.
        let shown = || self.predicted_swap().most.max(Span::from_ns(1));
        let pass = gate::ask_to_swap(if idle { Span::ZERO } else { shown() });
        self.leave.end_frame();
        self.unasked.end_frame();
        self.leave.granted(pass);
        pass
    }
}

/// How long a group may be that begins with so much: a slice; where that is more than a slice by
/// itself, what follows within another one goes with it, and need not be switched to once more.
fn longest(need: Span, slice: Span) -> Span {
    if need > slice { need + slice } else { slice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_long_command_goes_with_it() {
        let [slice, short, long] = [1_000, 300, 1_600].map(Span::from_us);
        assert_eq!([longest(short, slice), longest(slice, slice)], [slice, slice]);
        assert_eq!(longest(long, slice), Span::from_us(2_600));
        assert_eq!(longest(long, Span::FOREVER), Span::FOREVER);
    }

    #[test]
    fn what_a_frame_asks_for_does_not_grow() {
        let mut leave = Leave::default();
        for _ in 0..100 {
            // More is granted than was asked for, and the group contains less.
            let asked = leave.rest().max(Span::from_us(10));
            assert!(asked <= Span::from_us(1_500), "{asked:?}");
            let credit = asked + Span::from_us(200);
            leave.granted(Some(Pass { number: 0, life: 0, fills: false, credit, frames: 0, alone: false }));
            leave.contains(Span::from_us(1_500));
            assert!(leave.end_group().is_some());
            leave.end_frame();
        }
    }
}
