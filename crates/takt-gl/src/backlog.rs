//! How far programs may be ahead of the GPU where no window stops them.
//!
//! A window has few buffers: a program that swaps faster than the GPU draws waits for one of them.
//! A pbuffer's swap waits for nothing, so that a program which never finishes a frame itself would
//! queue up seconds of work. Where pbuffers stand for windows, a swap therefore waits until no more
//! than [`FRAMES`] frames are unfinished.

use std::collections::VecDeque;

use crate::entry::{Id, Ptr, real};
use crate::gl;

/// Frames that may be unfinished when a swap returns, as with a window of three buffers.
const FRAMES: usize = 2;

/// Fences are taken away some frames after they were passed, because llvmpipe's threads may still
/// write to them when they count as passed already (see `measure::fence`).
const KEPT: usize = 8;

/// A GPU that has not finished a frame after that long never will.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Fences behind the last frames of a context. All is to be called where it is current.
#[derive(Default, Debug)]
pub(crate) struct Backlog(VecDeque<usize>);

impl Backlog {
    /// A frame was handed to the driver: waits until few enough are unfinished. `newer` if the
    /// context knows GL ES 3; others have no fences, and finish each frame.
    pub(crate) fn swapped(&mut self, newer: bool) {
        let calls = [Id::glFenceSync, Id::glClientWaitSync, Id::glDeleteSync];
        if !newer || !calls.into_iter().all(Id::is_there) {
            // SAFETY: the context is current; finishing never fails.
            return unsafe { real::glFinish() };
        }
        // SAFETY: the context is current.
        let fence = unsafe { real::glFenceSync(gl::SYNC_GPU_COMMANDS_COMPLETE, 0) } as usize;
        if fence == 0 {
            return;
        }
        self.0.push_back(fence);
        if let Some(fence) = self.0.len().checked_sub(FRAMES + 1).and_then(|at| self.0.get(at)) {
            // SAFETY: a fence of the current context, which was flushed with the frame after it.
            unsafe { real::glClientWaitSync(*fence as Ptr, 0, PATIENCE_NS) };
        }
        if self.0.len() > FRAMES + KEPT
            && let Some(old) = self.0.pop_front()
        {
            // SAFETY: nobody else knows it.
            unsafe { real::glDeleteSync(old as Ptr) };
        }
    }
}
