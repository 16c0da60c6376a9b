//! Apps, their parameters, and the command groups they submit.

use core::hash::{Hash, Hasher};

use crate::clock::Clock;
use crate::limits::STRIDE_MAX;
use crate::service::{Reservation, Reserve, Service};
use crate::time::Span;

/// Slot number of an app. Chosen by the caller, below the configured number of slots; it may be
/// reused after [`crate::Event::Leave`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppId(pub u32);

impl AppId {
    /// The slot as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Identity of a command group, unique among the groups the scheduler still knows.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u64);

/// Importance of an app; the higher number wins. Unique among the apps of a scheduler.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(pub u32);

/// Refresh periods between two frames of an app (refresh rate ÷ frame rate), at least 1.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stride(u32);

impl Stride {
    /// A frame in every period.
    pub const ONE: Self = Self(1);

    /// A stride of `periods`; `None` if it is zero or beyond [`STRIDE_MAX`].
    pub const fn new(periods: u32) -> Option<Self> {
        if periods >= 1 && periods <= STRIDE_MAX { Some(Self(periods)) } else { None }
    }

    /// Periods between two frames.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Periods between two frames, for period arithmetic.
    pub const fn periods(self) -> u64 {
        self.0 as u64
    }

    /// How many periods before its target period a frame may start to arrive: none for a frame
    /// in every period, one otherwise. (The *incipient arrival* is never earlier than two
    /// periods before the deadline.)
    pub const fn lead(self) -> u64 {
        if self.0 == 1 { 0 } else { 1 }
    }
}

/// What an app asks for. All of it may change while it runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AppParams {
    /// Importance; unique.
    pub priority: Priority,
    /// Periods between two frames.
    pub stride: Stride,
    /// GPU time demanded per frame; zero reserves nothing for future frames.
    pub etpf: Span,
    /// What releases its frames.
    pub clock: Clock,
    /// Which server it has, and how policies treat it.
    pub service: Service,
}

impl AppParams {
    /// Its bandwidth server, if it has one of its own in place of frames.
    pub fn server(&self) -> Option<Reserve> {
        let Reservation::Own(reserve) = self.service.reservation else {
            return None;
        };
        let serves = reserve.budget > Span::ZERO && reserve.period > Span::ZERO;
        (serves && self.etpf == Span::ZERO).then_some(reserve)
    }

    /// The same, with jobs of a server that have gaps as frames by a clock of the app's own: a budget for each job,
    /// which is due by the deadline of the server.
    ///
    /// A server promises its budget to whatever comes, so what comes after a gap is due a period after it came. A job
    /// with gaps needs one due date for all of its groups, as a frame has.
    #[must_use]
    pub fn framed(self) -> Self {
        let Some(reserve) = self.server().filter(|_| self.service.gaps.count > 0) else {
            return self;
        };
        let Reserve { budget, period, deadline, .. } = reserve;
        let clock = Clock::Own { period, deadline: deadline.min(period) };
        Self { etpf: budget, stride: Stride::ONE, clock, ..self }
    }
}

/// Hashes of runs with one display do not depend on there being others.
impl Hash for AppParams {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.priority, self.stride, self.etpf).hash(state);
        if self.clock != Clock::default() {
            self.clock.hash(state);
        }
        self.service.hash(state);
    }
}

/// What a command group is to its frame.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum GroupKind {
    /// Drawing work.
    Draw,
    /// Ends the frame.
    Swap,
    /// A synchronisation point inside the frame.
    Sync,
    /// The app's last group: when it completes, the app has left.
    Exit,
}

impl GroupKind {
    /// Whether the group is the last one of its frame.
    pub const fn ends_frame(self) -> bool {
        matches!(self, Self::Swap | Self::Exit)
    }

    /// Whether the app waits, or may wait, for this group and all before it.
    pub const fn ends_batch(self) -> bool {
        !matches!(self, Self::Draw)
    }
}
