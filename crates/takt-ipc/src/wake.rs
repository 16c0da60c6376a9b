//! How each side wakes the other.
//!
//! The daemon sleeps on many clients at once, so clients wake it through a file descriptor each
//! ([`Doorbell`]): a client that abuses its own disturbs nobody's. A client sleeps on one word of
//! its shared region ([`Bell`]), which costs the daemon a system call only if the client sleeps.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::sync::{AtomicU32, Ordering, fence};

/// A word to sleep on, in shared memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Bell {
    /// Counts how often it rang.
    rings: AtomicU32,
    /// Whether somebody sleeps, or is about to.
    asleep: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bell>() == 64);

impl Default for Bell {
    fn default() -> Self {
        Self { rings: AtomicU32::new(0), asleep: AtomicU32::new(0) }
    }
}

impl Bell {
    /// Tells the sleeper that something is there. Call after the something was published.
    /// `wake` is called with the word if somebody sleeps on it.
    pub fn ring_with(&self, wake: impl FnOnce(&AtomicU32)) {
        self.rings.fetch_add(1, Ordering::Release);
        // With the fence of the sleeper: either it sees what was published, or we see it sleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) != 0 {
            wake(&self.rings);
        }
    }

    /// Sleeps unless `ready` says that there is something; `wait` sleeps while the word has the
    /// given value. May return for no reason, as sleep does.
    pub fn sleep_with(&self, ready: impl FnOnce() -> bool, wait: impl FnOnce(&AtomicU32, u32)) {
        let before = self.rings.load(Ordering::Acquire);
        self.asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() {
            wait(&self.rings, before);
        }
        self.asleep.store(0, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
mod system {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::thread::futex;
    use rustix::time::Timespec;

    use super::Bell;

    impl Bell {
        /// Wakes the sleeper, if there is one.
        pub fn ring(&self) {
            // Waking cannot fail on memory that is mapped; a lost wake-up costs one time-out.
            self.ring_with(|word| {
                futex::wake(word, futex::Flags::empty(), 1).unwrap_or_default();
            });
        }

        /// Sleeps until it rings, for `timeout` at most, unless `ready` says no.
        pub fn sleep(&self, timeout: Duration, ready: impl FnOnce() -> bool) {
            self.sleep_with(ready, |word, value| wait(word, value, timeout));
        }
    }

    fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // Every outcome means the same: look again.
        match futex::wait(word, futex::Flags::empty(), value, Some(&timeout)) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// Wakes the daemon; one per client.
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A silent one.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// The one behind a descriptor that was received.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Wakes the daemon. If it has not noticed for ages, it is awake or dead: no matter.
    pub fn ring(&self) {
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).unwrap_or_default();
    }

    /// Takes note of all rings so far.
    pub fn silence(&self) {
        rustix::io::read(&self.0, &mut [0; 8]).unwrap_or_default();
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn a_bell_wakes_its_sleeper() {
        let bell = Bell::default();
        let published = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                published.store(true, Ordering::Release);
                bell.ring();
            });
            while !published.load(Ordering::Acquire) {
                bell.sleep(Duration::from_secs(60), || published.load(Ordering::Acquire));
            }
        });
    }

    #[test]
    fn a_doorbell_can_be_rung_for_ever() {
        let doorbell = Doorbell::new().expect("eventfd");
        for _ in 0..10_000 {
            doorbell.ring();
        }
        doorbell.silence();
        doorbell.silence();
    }
}
