//! What a context has to do with the measuring of its groups.

use std::sync::Arc;

use crate::measure::{self, Stamped, Stamper, Waiter, Witnessed};

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Meter {
    /// Time stamps around groups, where they are of use.
    pub(super) stamper: Option<Stamper>,
    /// The context in which fences are waited for, if they need one.
    pub(super) waiter: Option<Arc<Waiter>>,
    /// Whether a frame has more than one group.
    parted: bool,
    /// The last group of the frame that is being shown, where this thread sees its end.
    pub(super) showing: Option<Witnessed>,
    /// What is known of the end of the swap that is handed over.
    pub(super) swap_end: Option<SwapEnd>,
    /// How long this thread had run when the group began, if that is of use.
    ran_ns: Option<u64>,
    /// GL tells once that its clock jumped; we asked, and the program was not told yet.
    disjoint: bool,
}

/// What is known of the end of a swap's group.
#[derive(Clone, Copy, Debug)]
pub(super) enum SwapEnd {
    /// It was over by then, with everything before it.
    Seen(u64),
    /// It is over when everything before it is.
    Before,
}

impl Meter {
    /// The driver is about to be given work; a renderer on the CPU works in this thread as well.
    #[inline]
    pub(super) fn begins(&mut self, stamps: Stamping, software: bool) {
        if let (Some(stamper), Stamping::On) = (&mut self.stamper, stamps) {
            stamper.begin();
        }
        if software && self.ran_ns.is_none() {
            self.ran_ns = Some(measure::own_ns());
        }
    }

    /// A swap begins, which renderers on the CPU do in the program's own thread.
    pub(super) fn swap_begins(&mut self) {
        self.stamper.iter_mut().for_each(Stamper::begin);
    }

    /// There was no group after all.
    pub(super) fn forget(&mut self) {
        self.stamper.iter_mut().for_each(Stamper::forget);
    }

    /// A call takes no longer than its thread has run since the group began.
    pub(super) fn in_calls(&mut self, call_ns: u64) -> u64 {
        let began_ns = self.ran_ns.take();
        began_ns.map_or(call_ns, |began_ns| call_ns.min(measure::own_ns().saturating_sub(began_ns)))
    }

    /// Ends the time stamps of a group, and reads those of groups before.
    pub(super) fn stamp_end(&mut self) -> Option<Stamped> {
        let stamper = self.stamper.as_mut()?;
        let stamped = stamper.end();
        let collected = stamper.collect();
        self.disjoint |= collected.disjoint;
        if !collected.useful {
            self.stamper = None;
        }
        stamped
    }

    /// Whether the GPU's clock has jumped since the program last asked, as far as we have asked in
    /// between.
    pub(super) fn take_disjoint(&mut self) -> bool {
        std::mem::take(&mut self.disjoint)
    }

    /// A group ends inside of a frame. The driver goes on with the next one meanwhile, so a thread must
    /// wait for its end without keeping the program from going on.
    pub(super) fn part(&mut self, display: usize, context: usize, newer: bool) {
        if !std::mem::replace(&mut self.parted, true) && self.waiter.is_none() {
            self.waiter = measure::waiter_beside(display, context, newer);
        }
    }
}

/// Whether a group gets time stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stamping {
    /// It does.
    On,
    /// It does not: nothing is learnt from it, and on llvmpipe a stamp behind a frame is a scene of its
    /// own.
    Off,
}
