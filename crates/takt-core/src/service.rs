//! What an app is promised beyond priority and frames.
//!
//! Each policy looks at its own part and ignores the rest; `frame-deadline`, `fifo`, `frrs` and
//! `hpf` need none of it.

use core::hash::{Hash, Hasher};

use crate::app::AppId;
use crate::time::Span;

/// How the policies are to treat an app.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Service {
    /// Its priority is automatic: while it has the focus ([`crate::Event::Focus`]), it is the most
    /// important of all apps with automatic priority.
    pub follows_focus: bool,
    /// How its groups follow each other (`timegraph`).
    pub turns: Turns,
    /// GPU time set aside for it (`timegraph`, `edf-cbs`).
    pub reservation: Reservation,
    /// The consumer of what it produces: while that one waits, it has its deadline if that is
    /// earlier than its own (`edf-cbs`).
    pub feeds: Option<AppId>,
    /// How often its channel occurs in the runlist (`runlist`).
    pub level: Level,
    /// Longest time on the GPU before the next channel has its turn (`runlist`); zero takes the
    /// policy's default.
    pub timeslice: Span,
    /// Its groups cannot be interrupted, not even at the end of a timeslice.
    pub uninterruptible: bool,
    /// The GPU interrupts its groups, or executes them in short pieces. As long as it has no contract, they are
    /// divisible work where there is any ([`crate::Config::divisible`]).
    pub divisible: bool,
    /// How often it waits for its own groups within a frame or job (`timeline`).
    pub gaps: Gaps,
}

/// Gaps within a frame or job: the app waits for the end of its own groups before it submits more of the frame
/// (`glFinish`, a read-back, a stream that is synchronised), so that for a while none of it waits.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Gaps {
    /// How many of them a frame has at most.
    pub count: u32,
    /// How long each lasts at most, from when the end of the app's last group is known to its next group.
    pub length: Span,
}

/// Hashes of runs without divisible work or gaps do not depend on there being such things.
impl Hash for Service {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { follows_focus, turns, reservation, feeds, level, timeslice, uninterruptible, .. } = self;
        (follows_focus, turns, reservation, feeds, level, timeslice, uninterruptible).hash(state);
        if self.divisible {
            self.divisible.hash(state);
        }
        if self.gaps.count > 0 {
            self.gaps.hash(state);
        }
    }
}

impl Service {
    /// The timeslice of its channel, given that of channels that name none.
    pub fn timeslice_or(&self, default: Span) -> Span {
        if self.timeslice == Span::ZERO { default } else { self.timeslice }
    }
}

/// Whether an app may follow itself on the GPU without asking.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Turns {
    /// One group at a time; each completion lets the most important app go on (*predictable
    /// response time*).
    #[default]
    Single,
    /// May follow its own running group unless a more important app waits (*high
    /// throughput*).
    Following,
}

/// GPU time set aside for an app.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Reservation {
    /// Nothing is set aside and nothing is limited.
    #[default]
    None,
    /// A reserve of its own.
    Own(Reserve),
    /// The reserve of that app, together with it and others; or its frames (`timeline`).
    Shared(AppId),
    /// The reserve of apps without a specification.
    Background,
}

/// A budget that comes back in every period.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reserve {
    /// GPU time per period.
    pub budget: Span,
    /// Time between two replenishments.
    pub period: Span,
    /// From the arrival of work to its deadline (`edf-cbs`).
    pub deadline: Span,
    /// When the budget is looked at (`timegraph`).
    pub enforcement: Enforcement,
}

/// When a reserve's budget is looked at.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Enforcement {
    /// Runs while anything is left, may overrun, pays later.
    #[default]
    Posterior,
    /// Runs only if the predicted time is left.
    Apriori,
}

/// Interleaving level of a channel in the runlist.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Level {
    /// Once in the whole list.
    Low,
    /// Before each entry of a low one.
    #[default]
    Medium,
    /// Before each entry of a medium or low one.
    High,
}
