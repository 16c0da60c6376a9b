//! What threads read of a session without its lock: a draw that finds its grant unchanged takes none.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use takt_core::Span;
use takt_ipc::region::Region;
use takt_slices::Role;

use super::{ALONE, Grant, Session};
use crate::link::Link;

/// A copy of what the link says. It is written whenever the lock is released.
#[derive(Debug)]
pub(super) struct View {
    /// Changes when a grant may have been taken back, and with each connection.
    epoch: AtomicU64,
    /// The longest group among others, in nanoseconds.
    slice_ns: AtomicU64,
    /// A thread waits for a grant.
    waited_for: AtomicBool,
    /// Frames begin by a clock of the program's own.
    own_clock: AtomicBool,
    /// How long a turn of its contexts is to last, in microseconds; 0 for the driver's own.
    turn_us: AtomicU64,
    /// The daemon is to hear what was found out, or has not answered yet.
    untold: AtomicBool,
}

/// What a stream keeps of a session, to compare it with the view.
#[derive(Default, Debug)]
pub(crate) struct Watch {
    epoch: u64,
    region: Option<Region>,
}

impl View {
    pub(super) const fn new() -> Self {
        Self {
            epoch: AtomicU64::new(0),
            slice_ns: AtomicU64::new(u64::MAX),
            waited_for: AtomicBool::new(false),
            own_clock: AtomicBool::new(false),
            turn_us: AtomicU64::new(0),
            untold: AtomicBool::new(false),
        }
    }

    pub(super) fn publish(&self, link: &Link) {
        self.slice_ns.store(link.slice().as_ns(), Ordering::Relaxed);
        self.waited_for.store(link.is_waited_for(), Ordering::Relaxed);
        self.own_clock.store(link.has_own_clock(), Ordering::Relaxed);
        self.turn_us.store(link.turn_us(), Ordering::Relaxed);
        self.untold.store(link.is_untold(), Ordering::Relaxed);
        self.epoch.store(link.epoch(), Ordering::Release);
    }

    #[inline]
    pub(super) fn has_own_clock(&self) -> bool {
        self.own_clock.load(Ordering::Relaxed)
    }

    pub(super) fn turn_us(&self) -> u64 {
        self.turn_us.load(Ordering::Relaxed)
    }

    pub(super) fn is_untold(&self) -> bool {
        self.untold.load(Ordering::Relaxed)
    }
}

impl Session {
    /// Whether the program has a contract. Takes no lock.
    #[inline]
    pub fn reserves(&self) -> bool {
        self.view.turn_us() == Role::Contract.slice_us()
    }

    /// Whether the grant still counts, if there is one; brings `watch` up to date.
    pub(crate) fn look(&self, grant: Option<&Grant>, watch: &mut Watch) -> bool {
        self.locked(|link| {
            *watch = Watch { epoch: link.epoch(), region: link.region().cloned() };
            grant.is_none_or(|grant| !grant.fills || link.is_open(grant.number, grant.life))
        })
    }

    /// Whether nothing happened to grants and connection since the watch was brought up to date. Takes
    /// no lock.
    #[inline]
    pub(crate) fn is_unchanged(&self, watch: &Watch) -> bool {
        self.view.epoch.load(Ordering::Acquire) == watch.epoch
    }

    /// Whether this client is the only one and none of its threads waits. Takes no lock.
    #[inline]
    pub(crate) fn is_alone_by(&self, watch: &Watch) -> bool {
        watch.region.as_ref().is_some_and(|region| region.solitude().is_alone())
            && !self.view.waited_for.load(Ordering::Relaxed)
    }

    /// The longest group that is to be formed. Takes no lock.
    #[inline]
    pub(crate) fn slice_by(&self, watch: &Watch) -> Span {
        let slice = Span::from_ns(self.view.slice_ns.load(Ordering::Relaxed));
        if self.is_alone_by(watch) { slice.times(ALONE) } else { slice }
    }
}
