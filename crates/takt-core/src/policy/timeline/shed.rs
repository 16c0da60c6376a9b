//! Lanes whose promises cannot be kept beside those of more important apps.

use alloc::vec;
use alloc::vec::Vec;

/// The lanes.
#[derive(Clone, Debug)]
pub(super) struct Shed {
    /// By lane.
    lanes: Vec<bool>,
    /// The first of them: less important apps are bound by its promises, and need slack.
    first: usize,
    /// Whether such lanes are looked for, because a protected group was held.
    sought: bool,
}

impl Default for Shed {
    fn default() -> Self {
        Self { lanes: Vec::new(), first: usize::MAX, sought: false }
    }
}

impl Shed {
    /// Takes all memory.
    pub(super) fn prepare(&mut self, apps: usize) {
        self.lanes = vec![false; apps];
    }

    /// A decision begins.
    pub(super) fn open(&mut self) {
        if core::mem::take(&mut self.sought) {
            self.lanes.fill(false);
            self.first = usize::MAX;
        }
    }

    /// Such lanes are looked for until the decision ends.
    pub(super) fn seek(&mut self) {
        self.sought = true;
    }

    pub(super) fn is_sought(&self) -> bool {
        self.sought
    }

    /// The promises of a lane bind no other protected group any more.
    pub(super) fn add(&mut self, lane: usize) {
        self.sought = true;
        self.lanes[lane] = true;
        self.first = self.first.min(lane);
    }

    pub(super) fn contains(&self, lane: usize) -> bool {
        self.lanes[lane]
    }

    /// The most important of them.
    pub(super) fn first(&self) -> usize {
        self.first
    }
}
