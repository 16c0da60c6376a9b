//! The open group.

use takt_client::Grant;

use crate::predict::Entry;
use crate::streams::Touched;

/// What work of unknown length is taken to need where it delays no other client, in nanoseconds.
pub(super) const NOMINAL_NS: u64 = 100_000;

/// What is in it so far.
#[derive(Default, Debug)]
pub(super) struct Group {
    pub(super) grant: Option<Grant>,
    /// How much credit it was given.
    pub(super) given_ns: u64,
    /// When it began.
    pub(super) began_ns: u64,
    /// What was left of the credit at the last look.
    pub(super) looked_ns: u64,
    /// Streams that it touched.
    pub(super) touched: Vec<Touched>,
    /// It is for one command of unknown length, of that kind.
    pub(super) alone: bool,
    pub(super) single: Option<&'static Entry>,
}

impl Group {
    pub(super) fn new(
        grant: Option<Grant>,
        began_ns: u64,
        alone: bool,
        single: Option<&'static Entry>,
    ) -> Self {
        Self { grant, given_ns: 0, began_ns, looked_ns: 0, touched: Vec::new(), alone, single }
    }
}
