//! Swaps of windows that are not there wait as those of windows would.

use takt_client::backlog::Backlog;

use crate::entry::{Id, Ptr, real};
use crate::gl;

/// A GPU that has not finished a frame after that long never will.
const PATIENCE_NS: u64 = 10_000_000_000;

/// A frame was handed to the driver: waits until few enough are unfinished. Call it where the context
/// is current. Without GL ES 3 (`newer`) there are no fences, and each frame is finished.
pub(super) fn swapped(backlog: &mut Backlog<usize>, newer: bool) {
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
    if let Some(fence) = backlog.push(fence) {
        // SAFETY: a fence of the current context, which was flushed with the frame after it.
        unsafe { real::glClientWaitSync(*fence as Ptr, 0, PATIENCE_NS) };
    }
    if let Some(old) = backlog.take_old() {
        // SAFETY: only this context knows it.
        unsafe { real::glDeleteSync(old as Ptr) };
    }
}
