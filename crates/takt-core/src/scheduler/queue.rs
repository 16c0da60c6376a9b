//! The waiting groups of one app: a ring of fixed size.

use alloc::boxed::Box;
use alloc::vec;

use super::lane::{Head, Ledger};
use crate::app::{GroupId, GroupKind};
use crate::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use crate::time::{Span, Time};

/// A group that waits for dispatch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) group: GroupId,
    pub(super) head: Head,
    /// It is the last group of its frame, as its kind says or because the frame ended behind it.
    pub(super) ends_frame: bool,
    /// It is part of a frame of the app that its app is a source of.
    pub(super) booked: bool,
}

impl Waiting {
    /// Whether the app waits, or may wait, for this group and all before it.
    pub(super) fn ends_batch(&self) -> bool {
        self.ends_frame || self.head.kind.ends_batch()
    }
}

const VACANT: Waiting = Waiting {
    group: GroupId(0),
    head: Head {
        length: Span::ZERO,
        first: false,
        conservative: Span::ZERO,
        gap: Span::ZERO,
        way: Span::ZERO,
        optimistic: Span::ZERO,
        order: 0,
        submitted: Time::ZERO,
        kind: GroupKind::Draw,
        preempted: false,
    },
    ends_frame: false,
    booked: false,
};

/// Room for all that may be submitted and for all that may come back from the GPU.
const PLACES: usize = QUEUE_MAX + IN_FLIGHT_MAX;

/// Groups in submission order.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ring: Box<[Waiting]>,
    first: usize,
    len: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { ring: vec![VACANT; PLACES].into_boxed_slice(), first: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.len >= QUEUE_MAX
    }

    /// Appends a group; the caller has checked that there is room.
    pub(super) fn push(&mut self, waiting: Waiting) {
        assert!(!self.is_full(), "a full queue refuses groups");
        self.ring[(self.first + self.len) % PLACES] = waiting;
        self.len += 1;
    }

    /// A group comes back from the GPU and is the next one again.
    pub(super) fn push_front(&mut self, waiting: Waiting) {
        assert!(self.len < PLACES, "no more come back than were in flight");
        self.first = (self.first + PLACES - 1) % PLACES;
        self.ring[self.first] = waiting;
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = *self.front()?;
        self.first = (self.first + 1) % PLACES;
        self.len -= 1;
        Some(waiting)
    }

    pub(super) fn front(&self) -> Option<&Waiting> {
        self.iter().next()
    }

    /// The group that was submitted last.
    pub(super) fn back_mut(&mut self) -> Option<&mut Waiting> {
        let last = self.len.checked_sub(1)?;
        Some(&mut self.ring[(self.first + last) % PLACES])
    }

    /// The waiting group at that position.
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut Waiting> {
        (position < self.len).then(|| &mut self.ring[(self.first + position) % PLACES])
    }

    /// The waiting group of that number.
    pub(super) fn find_mut(&mut self, group: GroupId) -> Option<&mut Waiting> {
        let offset = self.iter().position(|waiting| waiting.group == group)?;
        Some(&mut self.ring[(self.first + offset) % PLACES])
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Waiting> {
        (0..self.len).map(|offset| &self.ring[(self.first + offset) % PLACES])
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        let (behind, front) = self.ring.split_at_mut(self.first);
        front.iter_mut().chain(behind).take(self.len)
    }

    /// The account of the first frame in the queue if none of it was dispatched yet. Each frame
    /// is accounted from its own groups, so that two frames never mix. What is booked is in another account.
    pub(super) fn front_ledger(&self, per_group: Span) -> Ledger {
        let mut ledger = Ledger::default();
        for waiting in self.iter() {
            if !waiting.booked {
                ledger.enqueued += waiting.head.taken(per_group);
            }
            if waiting.ends_frame {
                ledger.complete = true;
                break;
            }
        }
        ledger
    }
}
