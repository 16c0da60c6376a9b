//! A client that a tool paused: what it submits is kept until it goes on.
//!
//! Groups that wait for a grant when the pause begins are still granted, so that nothing of the client is
//! half done. After that the core does not know it: it reserves nothing and misses nothing.

use std::collections::VecDeque;

use takt_core::limits::QUEUE_MAX;
use takt_core::{Estimate, GroupId, GroupKind};

use super::endpoint::Fault;

/// Whether a client is paused.
#[derive(Debug)]
pub(super) struct Pause {
    is_on: bool,
    /// The core does not know the client now.
    is_away: bool,
    /// What it submitted since, oldest first; never more than it holds without growing.
    kept: VecDeque<Kept>,
}

/// A group that a paused client submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kept {
    pub(super) group: GroupId,
    pub(super) kind: GroupKind,
    pub(super) estimate: Estimate,
}

impl Default for Pause {
    fn default() -> Self {
        Self { is_on: false, is_away: false, kept: VecDeque::with_capacity(QUEUE_MAX) }
    }
}

impl Pause {
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Ends the pause; returns whether the core has to meet the client again.
    pub(super) fn end(&mut self) -> bool {
        self.is_on = false;
        std::mem::take(&mut self.is_away)
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The core is told that the client left.
    pub(super) fn leave_core(&mut self) {
        self.is_away = true;
    }

    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Keeps a group for later. As many may wait as in the core.
    pub(super) fn keep(&mut self, kept: Kept) -> Result<(), Fault> {
        if self.kept.len() == QUEUE_MAX {
            return Err(Fault::TooMany);
        }
        self.kept.push_back(kept);
        Ok(())
    }

    /// Whether there is one, and the pause is over.
    pub(super) fn has_kept(&self) -> bool {
        !self.is_on && !self.kept.is_empty()
    }

    /// The next group that was kept, when the pause is over.
    pub(super) fn next_kept(&mut self) -> Option<Kept> {
        if self.is_on { None } else { self.kept.pop_front() }
    }
}
