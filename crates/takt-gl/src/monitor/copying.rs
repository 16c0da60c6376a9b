//! Copies: what is uploaded, moved inside of the GPU's memory, or made into mipmaps.
//!
//! They are frequent and mostly short, and programs stop for long between them, to fetch what comes
//! next. Leave for each of them would be waited for and held in vain. So a copy asks only where it
//! matters: where those of a frame that had none would come to more than [`FREE`].

use takt_core::Span;
use takt_predict::predictor::Work;

use super::context::State;
use super::current::flush;
use crate::gate;

/// What copies of a frame may take without leave, by prediction.
const FREE: Span = Span::from_us(200);

/// Copies are looked at together until they are so many, or have so many bytes.
const LOOK_COPIES: u32 = 8;
const LOOK_BYTES: u64 = 64 << 10;

/// Copies of a frame that had no leave.
#[derive(Default, Debug)]
pub(super) struct Unasked {
    /// What those took that are with the driver.
    gone: Span,
    /// Those that came since somebody looked.
    copies: u32,
    bytes: u64,
}

impl Unasked {
    /// Another copy: whether it is time to look.
    fn is_due(&mut self, bytes: u64) -> bool {
        self.copies += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let due = self.copies >= LOOK_COPIES || self.bytes >= LOOK_BYTES;
        if due {
            (self.copies, self.bytes) = (0, 0);
        }
        due
    }

    /// Whether copies that take so long, in a group of their own, need leave.
    fn is_too_much(&self, pending: Span) -> bool {
        self.gone + pending > FREE
    }

    /// A group went to the driver without leave.
    pub(super) fn went(&mut self, predicted: Span) {
        self.gone += predicted;
    }

    /// The frame ends.
    pub(super) fn end_frame(&mut self) {
        self.gone = Span::ZERO;
    }
}

impl State {
    /// A copy is about to be made, of so many bytes as are stated: asks for leave where that matters.
    pub fn about_to_copy(&mut self, work: Work) {
        let due = gate::is_wanted() && self.unasked.is_due(bytes(&work));
        if due && self.make_room() {
            flush();
        }
        self.work(work);
        if due && !self.leave.has_pass() && self.unasked.is_too_much(self.pending()) {
            self.ask();
        }
        self.begins();
    }
}

fn bytes(work: &Work) -> u64 {
    match *work {
        Work::Load { bytes }
        | Work::Upload { bytes }
        | Work::Mipmap { bytes }
        | Work::Copy { bytes }
        | Work::Buffer { bytes } => bytes,
        Work::Clear { .. } | Work::Resolve(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_small_copies_are_not_looked_at() {
        let mut unasked = Unasked::default();
        let looks = (0..80).filter(|_| unasked.is_due(100)).count();
        assert_eq!(looks, 10);
        assert!(unasked.is_due(1 << 20), "a large one is");
        assert!(!unasked.is_due(LOOK_BYTES / 2));
        assert!(unasked.is_due(LOOK_BYTES / 2));
        assert!(unasked.is_due(u64::MAX));
    }

    #[test]
    fn what_goes_without_leave_is_bounded_in_each_frame() {
        let mut unasked = Unasked::default();
        let group = Span::from_us(60);
        let mut free = Span::ZERO;
        for _ in 0..100 {
            if !unasked.is_too_much(group) {
                unasked.went(group);
                free += group;
            }
        }
        assert_eq!(free, Span::from_us(180));
        unasked.end_frame();
        assert!(!unasked.is_too_much(group), "the next frame has as much");
        assert!(unasked.is_too_much(Span::from_us(201)));
    }
}
