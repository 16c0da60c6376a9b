//! What must hold inside a scheduler, by name, and that one of these did not.

use core::fmt;

use crate::app::AppId;
use crate::time::Time;

/// Something about the state of a [`crate::Scheduler`] that always holds unless its code is wrong.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Invariant {
    /// Time never runs backwards.
    Time,
    /// The clock is inside the current period.
    Period,
    /// Lanes are in the order of priorities, which are unique.
    Order,
    /// Each attached slot has one lane, and they point at each other.
    Slot,
    /// The head of a lane is the first group of its queue.
    Head,
    /// The waiting groups of a lane, and those that end a batch, are counted.
    Queue,
    /// Lanes with a waiting group are counted.
    Waiting,
    /// The ledger of a lane is that of the first frame in its queue.
    Ledger,
    /// Deadlines are judged in order.
    Judged,
    /// No frame aims at a deadline before the one in question.
    Target,
    /// No more groups keep a slot than may.
    Slots,
    /// The groups of an app that are in flight are counted.
    InFlight,
    /// Of the groups on the GPU, the first deadline is known.
    OnGpu,
    /// Groups in flight are those that were dispatched and have not ended.
    Balance,
    /// A policy chooses a lane with a waiting group.
    Choice,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Time,
        Self::Period,
        Self::Order,
        Self::Slot,
        Self::Head,
        Self::Queue,
        Self::Waiting,
        Self::Ledger,
        Self::Judged,
        Self::Target,
        Self::Slots,
        Self::InFlight,
        Self::OnGpu,
        Self::Balance,
        Self::Choice,
    ];

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Period => "period",
            Self::Order => "order",
            Self::Slot => "slot",
            Self::Head => "head",
            Self::Queue => "queue",
            Self::Waiting => "waiting",
            Self::Ledger => "ledger",
            Self::Judged => "judged",
            Self::Target => "target",
            Self::Slots => "slots",
            Self::InFlight => "in-flight",
            Self::OnGpu => "on-gpu",
            Self::Balance => "balance",
            Self::Choice => "choice",
        }
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|invariant| invariant.name() == name)
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time never runs backwards",
            Self::Period => "the clock is inside the current period",
            Self::Order => "lanes are in order and priorities unique",
            Self::Slot => "slots and lanes point at each other",
            Self::Head => "the head of a lane is the first group of its queue",
            Self::Queue => "waiting groups are counted",
            Self::Waiting => "lanes with a waiting group are counted",
            Self::Ledger => "the ledger of a lane is that of its first frame",
            Self::Judged => "deadlines are judged in order",
            Self::Target => "no frame aims at a deadline before the one in question",
            Self::Slots => "no more groups keep a slot than may",
            Self::InFlight => "groups in flight are counted for their app",
            Self::OnGpu => "the first deadline of groups on the GPU is known",
            Self::Balance => "groups in flight are those dispatched and not ended",
            Self::Choice => "a policy chooses a lane with a waiting group",
        })
    }
}

/// An invariant did not hold. The scheduler trusts itself no more, and lets everything run free.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Broken {
    /// Which one.
    pub what: Invariant,
    /// Whose state it is about, if that is one app's.
    pub app: Option<AppId>,
    /// When it was noticed.
    pub at: Time,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant '{}': {}", self.what.name(), self.what)?;
        self.app.map_or(Ok(()), |app| write!(f, " (slot {})", app.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one() {
        for invariant in Invariant::ALL {
            assert_eq!(Invariant::by_name(invariant.name()), Some(invariant));
        }
        assert_eq!(Invariant::by_name("no such"), None);
    }
}
