//! The page on which the daemon shows that it is alive.
//!
//! One page for all clients, which they can read and only the daemon can write. A client
//! that waits and sees no beat for too long goes on without the daemon.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{SealFlags, fcntl_add_seals};
use rustix::mm::ProtFlags;
use takt_core::{Span, Time};

use crate::region::{Mapping, Shareable, sealed};

#[repr(C)]
#[derive(Debug)]
struct BeatPage {
    beat: AtomicU64,
    /// The thread that beats, as the system numbers it; zero if it is not known.
    thread: AtomicU64,
}

// SAFETY: one atomic.
unsafe impl Shareable for BeatPage {}

/// The daemon's view.
#[derive(Debug)]
pub struct Heart {
    page: Mapping<BeatPage>,
    fd: OwnedFd,
}

impl Heart {
    /// A page that has not beaten yet.
    pub fn new() -> std::io::Result<Self> {
        let fd = sealed("takt-beat", size_of::<BeatPage>())?;
        let page = Mapping::new(fd.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?;
        // From here on it cannot be mapped for writing.
        fcntl_add_seals(&fd, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(Self { page, fd })
    }

    /// From now on this thread beats; a client that waits for a beat can ask the system what it does.
    pub fn belongs_here(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        self.page.get().thread.store(thread.into(), Ordering::Release);
    }

    /// Alive at `now`.
    pub fn beat(&self, now: Time) {
        self.page.get().beat.store(now.as_ns(), Ordering::Release);
    }
}

impl AsFd for Heart {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A client's view.
#[derive(Debug)]
pub struct Pulse(Mapping<BeatPage>);

impl Pulse {
    /// The page behind a descriptor that was received.
    pub fn open(fd: BorrowedFd<'_>) -> std::io::Result<Self> {
        Ok(Self(Mapping::new(fd, ProtFlags::READ)?))
    }

    /// When the daemon was last seen alive.
    pub fn last(&self) -> Time {
        Time::from_ns(self.0.get().beat.load(Ordering::Acquire))
    }

    /// How long ago that was; nothing if `now` is before it.
    pub fn silent_for(&self, now: Time) -> Span {
        now.since(self.last())
    }

    /// The thread that beats, if that is known.
    pub fn thread(&self) -> Option<u32> {
        u32::try_from(self.0.get().thread.load(Ordering::Acquire)).ok().filter(|thread| *thread > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_see_beats_and_cannot_make_them() {
        let heart = Heart::new().expect("memfd");
        let pulse = Pulse::open(heart.as_fd()).expect("readable");
        heart.beat(Time::from_us(10));
        assert_eq!(pulse.silent_for(Time::from_us(25)), Span::from_us(15));
        assert_eq!(pulse.silent_for(Time::from_us(5)), Span::ZERO);
        assert_eq!(pulse.thread(), None);
        heart.belongs_here();
        let here = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert_eq!((pulse.thread(), pulse.last()), (Some(here), Time::from_us(10)));
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        assert!(Mapping::<BeatPage>::new(heart.as_fd(), writable).is_err(), "sealed");
        assert!(rustix::io::write(heart.as_fd(), &[0; 8]).is_err(), "sealed");
    }
}
