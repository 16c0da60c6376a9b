//! How each side wakes the other.
//!
//! The daemon sleeps on many clients at once, so each client wakes it through a file descriptor of its
//! own ([`Doorbell`]); abusing it disturbs no other client's. A client sleeps on one word of its
//! shared region ([`Bell`]), which costs the daemon a system call only if the client sleeps.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::sync::{AtomicU32, Ordering, fence};

/// A word to sleep on, in shared memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Bell {
    /// Counts how often it rang.
    rings: AtomicU32,
    /// Whether the other side sleeps, or is about to.
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
    /// Tells the sleeper that something is there; call it after that was published. Calls `wake` with
    /// the word if the other side sleeps on it.
    pub fn ring_with(&self, wake: impl FnOnce(&AtomicU32)) {
        self.rings.fetch_add(1, Ordering::Release);
        // With the fence of the sleeper: either it sees the published record, or we see it sleep.
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

    /// Wakes the daemon. A full counter is no problem: it was rung and not silenced since.
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
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::time::Timespec;
    use takt_os::process::thread_state;

    /// Long enough for any machine; a wake-up that comes takes microseconds.
    const PATIENCE: Duration = Duration::from_secs(30);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_bell_wakes_its_sleeper() {
        let bell = Arc::new(Bell::default());
        let (tell, told) = sync_channel(1);
        let sleeper = std::thread::Builder::new().name("sleeper".to_owned());
        let sleeps = bell.clone();
        sleeper
            .spawn(move || {
                let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                tell.send(thread).expect("the test waits");
                // There is never anything: only a wake-up can end this.
                sleeps.sleep(HOUR, || false);
                tell.send(thread).expect("the test waits");
            })
            .expect("a thread");
        let thread = told.recv().expect("it started");
        // Once it has announced its sleep, nothing but the sleep itself can block it.
        while bell.asleep.load(Ordering::SeqCst) == 0
            || thread_state(std::process::id(), thread).is_none_or(|state| state.runnable)
        {
            std::thread::yield_now();
        }
        bell.ring();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(thread), "nothing woke the sleeper");
        assert_eq!(bell.asleep.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleeper_that_sees_something_does_not_sleep() {
        let bell = Bell::default();
        bell.sleep(HOUR, || true);
        let mut woken = 0;
        bell.ring_with(|_| woken += 1);
        assert_eq!(woken, 0, "waking costs a system call, and there is no sleeper");
    }

    #[test]
    fn a_doorbell_rings_until_it_is_silenced() {
        let doorbell = Doorbell::new().expect("eventfd");
        let rings = || {
            let mut fds = [PollFd::new(&doorbell, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("polled") == 1
        };
        assert!(!rings());
        for _ in 0..10_000 {
            doorbell.ring();
        }
        assert!(rings());
        doorbell.silence();
        assert!(!rings());
        doorbell.silence();
    }
}
