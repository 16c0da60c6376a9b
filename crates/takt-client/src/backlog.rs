//! How far programs may be ahead of the GPU where no window stops them.
//!
//! A window has few buffers: a program that swaps faster than the GPU draws waits for one of them. A
//! swap without a window waits for nothing, so a program that never finishes a frame itself would queue
//! up seconds of work. There, a swap waits until no more than [`FRAMES`] frames are unfinished.

use std::collections::VecDeque;

/// Frames that may be unfinished when a swap returns, as with a window of three buffers.
pub const FRAMES: usize = 2;

/// Passed fences are kept for some frames, because threads of a driver may still write to them.
const KEPT: usize = 8;

/// Fences behind the last frames of a context.
#[derive(Debug)]
pub struct Backlog<F>(VecDeque<F>);

impl<F> Default for Backlog<F> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<F> Backlog<F> {
    /// A frame with this fence was handed to the driver: the fence to wait for now, if any.
    pub fn push(&mut self, fence: F) -> Option<&F> {
        self.0.push_back(fence);
        self.0.get(self.0.len().checked_sub(FRAMES + 1)?)
    }

    /// A fence that is long passed and can be removed, if any.
    pub fn take_old(&mut self) -> Option<F> {
        if self.0.len() > FRAMES + KEPT { self.0.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_wait_for_the_frame_before_the_last_two() {
        let mut backlog = Backlog::default();
        assert_eq!([1, 2].map(|frame| backlog.push(frame).copied()), [None, None]);
        for frame in 3..100 {
            assert_eq!(backlog.push(frame), Some(&(frame - 2)));
            let removed = backlog.take_old();
            assert_eq!(removed, (frame > 10).then(|| frame - 10), "after it was waited for");
        }
    }
}
