//! Tracks of the same name on which things that overlap are drawn side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use crate::export::packets::{Packets, Place, TrackId};

/// Lanes of one name; as many as were ever needed at the same time.
#[derive(Debug)]
pub(super) struct Lanes {
    place: Place,
    name: &'static str,
    made: usize,
    /// Free lanes, lowest first, so that a picture fills from the top.
    free: BinaryHeap<Reverse<(usize, TrackId)>>,
}

/// A lane in use.
#[derive(Copy, Clone, Debug)]
pub(super) struct Lane {
    pub(super) track: TrackId,
    row: usize,
}

impl Lanes {
    pub(super) fn new(place: Place, name: &'static str) -> Self {
        Self { place, name, made: 0, free: BinaryHeap::new() }
    }

    /// A free lane; a new one if there is none.
    pub(super) fn take<W: Write>(&mut self, out: &mut Packets<W>) -> Lane {
        if let Some(Reverse((row, track))) = self.free.pop() {
            return Lane { track, row };
        }
        let row = self.made;
        self.made += 1;
        let track = out.track(self.place, self.name, "");
        Lane { track, row }
    }

    pub(super) fn give_back(&mut self, lane: Lane) {
        self.free.push(Reverse((lane.row, lane.track)));
    }
}
