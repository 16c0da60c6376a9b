//! How many periods a decision looks at.
//!
//! A window that is too narrow is widened, so its first width changes no answer, only the cost of a decision. The next
//! decision needs about as much as the last one did; now and then half of it is tried.

/// Periods to look at first; the window grows only if that does not settle the question.
pub(super) const FIRST: usize = 4;

/// Decisions after which a window is tried that is half as wide.
const NARROWS_AFTER: u32 = 64;

/// The window of the next decision.
#[derive(Clone, Debug)]
pub(super) struct Lookahead {
    least: usize,
    window: usize,
    /// How many decisions in a row needed just that.
    kept: u32,
}

impl Default for Lookahead {
    fn default() -> Self {
        Self { least: FIRST, window: 0, kept: 0 }
    }
}

impl Lookahead {
    /// Always as far as it can.
    pub(super) fn full() -> Self {
        Self { least: usize::MAX, ..Self::default() }
    }

    /// The window to begin with.
    pub(super) fn first(&self) -> usize {
        self.window.max(self.least)
    }

    /// A decision was taken that needed so wide a window.
    pub(super) fn settled(&mut self, window: usize) {
        self.kept = if window == self.window { self.kept + 1 } else { 0 };
        let narrows = self.kept % NARROWS_AFTER == NARROWS_AFTER - 1;
        self.window = if narrows { window / 2 } else { window };
    }
}
