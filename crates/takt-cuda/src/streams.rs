//! Streams of the program: which one a call means, and which ones a command group touched.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use takt_cuda_api::{Id, Ptr, real, result, stream};

/// A stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    /// Its handle; one of [`stream::LEGACY`] and [`stream::PER_THREAD`] for default streams.
    pub handle: usize,
    /// The context of a default stream; 0 for others, whose handle suffices.
    pub context: usize,
    /// The thread whose default stream it is; 0 for others.
    pub thread: u64,
}

/// A stream that a group touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// Which one.
    pub stream: Stream,
    /// Its context.
    pub context: usize,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
    static TOUCHED: Cell<[(u64, u64); CACHED]> = const { Cell::new([(0, 0); CACHED]) };
}

/// Streams that a thread remembers to have touched.
const CACHED: usize = 8;

/// The number of this thread, from 1.
pub fn thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}

/// The context of this thread; 0 if it has none.
#[inline]
pub fn current_context() -> usize {
    let mut context: Ptr = std::ptr::null_mut();
    // SAFETY: there is room for the handle.
    let told = unsafe { real::cuCtxGetCurrent((&raw mut context).cast()) };
    if told == result::SUCCESS { context.addr() } else { 0 }
}

impl Stream {
    /// The stream that a handle means, in a call whose default stream is that of the thread if `is_thread`.
    #[inline]
    pub fn of(handle: usize, is_thread: bool) -> Self {
        match (handle, is_thread) {
            (stream::LEGACY, _) | (stream::DEFAULT, false) => {
                Self { handle: stream::LEGACY, context: current_context(), thread: 0 }
            }
            (stream::PER_THREAD, _) | (stream::DEFAULT, true) => {
                Self { handle: stream::PER_THREAD, context: current_context(), thread: thread() }
            }
            _ => Self { handle, context: 0, thread: 0 },
        }
    }

    /// Its handle, as the driver has it.
    pub fn pointer(&self) -> Ptr {
        std::ptr::without_provenance_mut(self.handle)
    }

    /// Its context.
    pub fn find_context(&self) -> usize {
        if self.context != 0 {
            return self.context;
        }
        let mut context: Ptr = std::ptr::null_mut();
        // SAFETY: a stream of the program, and room for the handle.
        let told = unsafe { real::cuStreamGetCtx(self.pointer(), (&raw mut context).cast()) };
        if told == result::SUCCESS { context.addr() } else { current_context() }
    }

    /// Whether it is being captured, or using it now would spoil a capture.
    pub fn is_captured(&self) -> bool {
        let mut status = 0_u32;
        // SAFETY: a stream of the program, and room for the number.
        let told = unsafe { real::cuStreamIsCapturing(self.pointer(), (&raw mut status).cast()) };
        status != 0 || matches!(told, result::STREAM_CAPTURE_IMPLICIT | result::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Whether another thread cannot name it.
    pub fn is_of_another_thread(&self) -> bool {
        self.thread != 0 && self.thread != thread()
    }

    fn mixed(&self) -> u64 {
        let words = [self.handle as u64, self.context as u64, self.thread];
        words
            .iter()
            .fold(0, |mixed: u64, word| (mixed ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29))
    }

    /// Whether this thread has touched it in that epoch; if not, it has from now on.
    #[inline]
    pub fn is_touched(&self, epoch: u64) -> bool {
        let mixed = self.mixed();
        let at = (mixed >> 58) as usize % CACHED;
        let mut touched = TOUCHED.get();
        if touched[at] == (mixed, epoch) {
            return true;
        }
        touched[at] = (mixed, epoch);
        TOUCHED.set(touched);
        false
    }
}

/// Does something with a context current, and puts things back. Without that context, if it is gone.
pub fn in_context<T>(context: usize, act: impl FnOnce() -> T) -> T {
    if context == 0 || current_context() == context {
        return act();
    }
    // SAFETY: a context that the program made; if it is gone, the driver says so.
    let pushed = unsafe { real::cuCtxPushCurrent_v2(std::ptr::without_provenance_mut(context)) };
    let done = act();
    if pushed == result::SUCCESS {
        let mut before: Ptr = std::ptr::null_mut();
        // SAFETY: there is room for the handle.
        unsafe { real::cuCtxPopCurrent_v2((&raw mut before).cast()) };
    }
    done
}

/// The device of a context that is current.
pub fn current_device() -> Option<i32> {
    let mut device = 0_i32;
    // SAFETY: there is room for the number.
    let told = unsafe { real::cuCtxGetDevice((&raw mut device).cast()) };
    (told == result::SUCCESS).then_some(device)
}

/// Whether the driver knows what is at an address: memory of a device, or of the host that it allocated or was told of.
pub fn is_known(address: u64) -> bool {
    let mut kind = 0_u32;
    // SAFETY: any address may be asked for, and there is room for the number.
    let told = unsafe { real::cuPointerGetAttribute((&raw mut kind).cast(), MEMORY_KIND, address) };
    told != result::INVALID_VALUE
}

/// What is asked for at an address (`CU_POINTER_ATTRIBUTE_MEMORY_TYPE`).
const MEMORY_KIND: u32 = 2;

/// Whether the driver can record an event behind all work of a context.
pub fn can_record_contexts() -> bool {
    !Id::cuCtxRecordEvent.function().is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_are_told_apart() {
        assert_eq!(Stream::of(0, false), Stream::of(stream::LEGACY, true));
        assert_eq!(Stream::of(0, true), Stream::of(stream::PER_THREAD, false));
        assert_ne!(Stream::of(0, true), Stream::of(0, false));
        let other = std::thread::scope(|scope| scope.spawn(|| Stream::of(0, true)).join().unwrap());
        assert!(other.is_of_another_thread() && !Stream::of(0, true).is_of_another_thread());
        assert_eq!(Stream::of(0x5000, true), Stream { handle: 0x5000, context: 0, thread: 0 });
    }

    #[test]
    fn a_thread_remembers_what_it_touched_until_the_epoch_ends() {
        let stream = Stream::of(0x5000, false);
        assert!(!stream.is_touched(7) && stream.is_touched(7) && !stream.is_touched(8));
        for handle in 0..1000 {
            Stream::of(0x6000 + 16 * handle, false).is_touched(8);
        }
        // It may have been forgotten, which only costs a look.
        stream.is_touched(8);
        assert!(stream.is_touched(8));
    }
}
