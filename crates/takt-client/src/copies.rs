//! A process is not copied while a thread of ours is inside a driver.
//!
//! A driver locks what it works on. If `fork` copied the process at such a moment, the lock would stay held in
//! the copy, where the thread that holds it does not exist, and the copy would wait for it in its next call. So
//! threads of ours enter a driver by [`inside_driver`], and `fork` waits until they are out.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that are inside a driver.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Copies that are being made: no thread enters until they are.
static COPYING: AtomicU32 = AtomicU32::new(0);

/// How often either side looks whether the other one is done.
const LOOK: Duration = Duration::from_micros(20);
/// How long a copy waits for a driver that does not come back.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a call of a driver may wait at once, because a copy waits as long.
pub const CALL_NS_MAX: u64 = 5_000_000;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Calls a driver from a thread of ours. Such calls may be nested.
pub fn inside_driver<T>(call: impl FnOnce() -> T) -> T {
    let _inside = Inside::enter();
    call()
}

/// Leaves where a call ends, by a panic as well.
struct Inside;

impl Inside {
    fn enter() -> Self {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            // One of both sees the other: each says what it does before it looks.
            while !try_enter() {
                thread::sleep(LOOK);
            }
        }
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn try_enter() -> bool {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let free = COPYING.load(Ordering::SeqCst) == 0;
    if !free {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
    free
}

/// The process is about to be copied.
pub(crate) fn begin() {
    COPYING.fetch_add(1, Ordering::SeqCst);
    // A thread of ours that makes the copy itself is inside only once.
    let own = u32::from(DEPTH.get() > 0);
    let begun = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > own && begun.elapsed() < PATIENCE {
        thread::sleep(LOOK);
    }
}

/// It was, and this is the original.
pub(crate) fn end() {
    COPYING.fetch_sub(1, Ordering::SeqCst);
}

/// It was, and this is the copy, which has one thread.
pub(crate) fn begin_anew() {
    INSIDE.store(u32::from(DEPTH.get() > 0), Ordering::SeqCst);
    COPYING.store(0, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_copy_waits_for_a_call_and_the_next_call_for_the_copy() {
        let (entered, is_inside) = mpsc::sync_channel(1);
        let (leave, may_leave) = mpsc::sync_channel::<()>(1);
        let (again, is_inside_again) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            let ours = scope.spawn(move || {
                inside_driver(|| {
                    inside_driver(|| entered.send(())).expect("the test listens");
                    may_leave.recv().expect("the test says so");
                });
                inside_driver(|| again.send(())).expect("the test listens");
            });
            is_inside.recv().expect("it enters");
            let copies = scope.spawn(|| {
                begin();
                let inside = INSIDE.load(Ordering::SeqCst);
                (inside, is_inside_again.try_recv().is_ok(), is_inside_again)
            });
            while COPYING.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            leave.send(()).expect("it waits for that");
            let (inside, entered_meanwhile, is_inside_again) = copies.join().expect("the copy is made");
            // A thread that looks whether it may enter counts for a moment.
            assert!(inside <= 1 && !entered_meanwhile);
            end();
            is_inside_again.recv().expect("it enters again");
            ours.join().expect("it ends");
        });
    }
}
