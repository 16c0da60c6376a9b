//! What goes into the scheduler and what comes out.

use core::fmt;

use crate::app::{AppId, AppParams, GroupId, GroupKind, Priority};
use crate::clock::DisplayId;
use crate::config::Adjustable;
use crate::invariant::Broken;
use crate::refresh::{Period, Refresh};
use crate::time::{Cost, Estimate, Span, Time};

/// Something that happened outside. The order is part of the hashes of runs, so what is new comes last.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// An app attaches. Its first frame targets the first whole period from now (the second for
    /// strides above 1), `phase` periods later.
    Join {
        /// A free slot.
        app: AppId,
        /// What it asks for.
        params: AppParams,
        /// Periods to wait beyond the earliest first target, to stagger deadlines.
        phase: u32,
    },
    /// An app detaches or died. Its waiting groups are dropped; those in flight still run.
    Leave {
        /// Who.
        app: AppId,
    },
    /// An app's parameters change, with effect at once.
    Change {
        /// Who.
        app: AppId,
        /// All of its new parameters.
        params: AppParams,
    },
    /// An app submits a command group.
    Submit {
        /// Who.
        app: AppId,
        /// A fresh identity.
        group: GroupId,
        /// What it is to its frame.
        kind: GroupKind,
        /// How long it is predicted to run.
        estimate: Estimate,
    },
    /// The GPU finished a group. Unless it executes in [any order](crate::Gpu::TURNS),
    /// every group dispatched before this one is finished, too.
    Complete {
        /// Which one.
        group: GroupId,
        /// When it finished, not later than now.
        finished: Time,
        /// Its measured execution time.
        cost: Cost,
        /// Frames of the app that ended inside of it, besides the one that its kind ends. At most
        /// [`FRAMES_PER_GROUP_MAX`](crate::limits::FRAMES_PER_GROUP_MAX) count.
        frames: u32,
    },
    /// The refresh grid was re-anchored or its rate changed.
    Refresh {
        /// Of which display.
        display: DisplayId,
        /// The grid from now on.
        refresh: Refresh,
    },
    /// Another app's window has the input focus, or none has.
    Focus {
        /// Whose.
        app: Option<AppId>,
    },
    /// A waiting group is predicted to run for another time than was said before.
    Revise {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
        /// How long it is predicted to run.
        estimate: Estimate,
    },
    /// Parameters of the scheduler change, with effect at once: groups that wait keep the lengths
    /// that they were believed to have, and groups in flight their slots.
    Adjust(Adjustable),
    /// The open frame of an app ends here, and no group has to: all that comes later belongs to the next
    /// frame. It is done when all groups of the app that came before are, which may be so already.
    EndFrame {
        /// Who.
        app: AppId,
    },
}

/// Something the outside must do or may want to know.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Hand this group to the GPU now.
    Dispatch {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
        /// Target period of its frame.
        target: Period,
        /// When the GPU is expected to start it, by conservative prediction.
        start: Time,
        /// Gpu time reserved for it (`predC`).
        reserved: Span,
    },
    /// Take this group, the last one dispatched, back from the GPU now; it waits again and goes
    /// on where it was when it is dispatched again. Harmless if it has just finished.
    Preempt {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
    },
    /// An app is as important as this now, because the focus moved.
    Ranked {
        /// Who.
        app: AppId,
        /// Its priority from now on.
        priority: Priority,
    },
    /// The app may start its next frame at `at` (its incipient arrival).
    Release {
        /// Who.
        app: AppId,
        /// Not before.
        at: Time,
    },
    /// The app's first waiting group is held back, for a reason that differs from the last one.
    Hold {
        /// Who.
        app: AppId,
        /// Why.
        reason: Hold,
    },
    /// An event was refused; nothing changed.
    Refused {
        /// The app it concerned.
        app: AppId,
        /// The group it concerned, if any.
        group: Option<GroupId>,
        /// Why.
        reason: Refusal,
    },
    /// A deadline passed and the app's frame was not finished.
    Missed {
        /// Who.
        app: AppId,
        /// Which frame, counted from 0 since joining.
        frame: u64,
        /// The period whose end was the deadline; jobs of a server have no grid, and count as a period each.
        period: Period,
        /// The deadline.
        deadline: Time,
        /// How many deadlines in a row passed since the last report, this one included. More
        /// than one only if the core was not called for over a period.
        count: u64,
    },
    /// A frame was finished.
    FrameDone(FrameDone),
    /// An app is detached: it left, or its last group has ended.
    Left {
        /// Who.
        app: AppId,
        /// How many of its groups were waiting and are dropped.
        dropped: u32,
    },
    /// The completion of a group did not come in time; its slot was taken back.
    Lost {
        /// Whose it was.
        app: AppId,
        /// Which one.
        group: GroupId,
        /// What led to that conclusion.
        by: LostBy,
    },
    /// The scheduler has contradicted itself. This is told once: from now on every group is dispatched
    /// as soon as it is submitted, and nothing is judged or promised any more.
    Broken(Broken),
}

/// A finished frame, judged against the deadline it was meant for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FrameDone {
    /// Who.
    pub app: AppId,
    /// Which frame, counted from 0 since joining.
    pub frame: u64,
    /// The period whose end was its deadline (`desired#`); jobs of a server have no grid, and count as a period
    /// each.
    pub desired: Period,
    /// Its incipient arrival; that of a job of a server is when it came, or a period of the server after the job
    /// before it if that is later.
    pub release: Time,
    /// Its deadline.
    pub deadline: Time,
    /// When its last group finished or, if that is later, when the app ended it.
    pub finished: Time,
    /// Whether it was in time.
    pub met: bool,
}

/// Why a waiting group is not dispatched.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    /// It could break a promise of `app` (rule A): make it miss a deadline, or take the time that is kept free for it.
    Protects {
        /// Whose promise is the first that would be broken. Mostly the app is more important; but a group that is
        /// promised something waits for all promises that are due before its own (`timeline`), and one that is
        /// promised nothing for those of every app with a contract, its own included.
        app: AppId,
    },
    /// `app` was preferred: it has the earlier target, or the same and more importance (rule B).
    Behind {
        /// Who went first.
        app: AppId,
    },
    /// Reservations of apps down to `app` leave no time at all; no app below was considered.
    Exhausted {
        /// The least important app that was considered.
        app: AppId,
    },
    /// As many groups as it may add to (`mpcg`) are in flight.
    NoSlot,
    /// Nothing finite is known about its length, so it fits nowhere.
    Unbounded,
    /// The budget of its reserve is used up.
    NoBudget {
        /// When it is replenished.
        until: Time,
    },
    /// It is not its turn: `app` is on the GPU and the policy does not let another app follow it yet.
    Turn {
        /// The app on the GPU.
        app: AppId,
    },
    /// The policy decides only at its ticks.
    Tick {
        /// The next one.
        at: Time,
    },
    /// The rest of its batch has not come yet, and the policy takes whole batches.
    Batch,
    /// It could delay `app`, which is more important and has a reservation, for longer than allowed.
    Clears {
        /// The more important app that is expected first.
        app: AppId,
    },
    /// Promises reach further than the policy looks ahead, so nothing is known of what it would break.
    LookAhead,
}

impl Hold {
    /// The app whose promise or reservation it names, if it names one.
    pub fn promised(self) -> Option<AppId> {
        match self {
            Self::Protects { app } | Self::Exhausted { app } | Self::Clears { app } => Some(app),
            _ => None,
        }
    }

    /// The app that it names, if it names one.
    pub fn names(self) -> Option<AppId> {
        match self {
            Self::Behind { app } | Self::Turn { app } => Some(app),
            _ => self.promised(),
        }
    }
}

/// Why an event was refused. What is new comes last here as well.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The slot number is beyond the configured number of apps.
    NoSuchSlot,
    /// There is no display of that number.
    NoSuchDisplay,
    /// The period of its own clock is out of range, or its deadline is zero or longer than the period.
    ImpossibleClock,
    /// The slot is taken.
    SlotTaken,
    /// No app is attached at that slot.
    UnknownApp,
    /// Another app has that priority.
    PriorityTaken {
        /// Who.
        by: AppId,
        /// Which.
        priority: Priority,
    },
    /// With this stride the pattern of deadlines would repeat only after too many periods.
    LookaheadTooLong {
        /// Least common multiple of all strides.
        periods: u64,
    },
    /// The app's queue is full; submit again after the next dispatch.
    QueueFull,
    /// No such group is in flight, or none waits if that is the question.
    UnknownGroup,
    /// The app already submitted its last group.
    Exited,
    /// The app would wait for itself: its consumers depend on each other in a circle.
    FeedsItself,
    /// Only the app that has a contract can be named to share it: the named app shares one itself, or others share
    /// with this app.
    SourceOfSource,
    /// More frames of the app have ended than may wait, for its groups or to be told; end the frame again
    /// after the next one is done.
    TooManyFrames,
}

/// How a lost completion was noticed.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LostBy {
    /// A later group completed, and the GPU works in order.
    Order,
    /// It was overdue beyond the completion time-out.
    Timeout,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSlot => f.write_str("slot number beyond the configured number of apps"),
            Self::ImpossibleClock => {
                f.write_str("period of its own clock not within 0.1 ms to 4 s, or deadline longer than that")
            }
            Self::NoSuchDisplay => f.write_str("no display of that number"),
            Self::SlotTaken => f.write_str("slot is taken"),
            Self::UnknownApp => f.write_str("no app is attached there"),
            Self::PriorityTaken { by, priority } => {
                write!(f, "priority {} belongs to app {}", priority.0, by.0)
            }
            Self::LookaheadTooLong { periods } => {
                write!(f, "deadlines would repeat only every {periods} periods")
            }
            Self::QueueFull => f.write_str("queue is full"),
            Self::UnknownGroup => f.write_str("no such group in flight"),
            Self::Exited => f.write_str("app already submitted its last group"),
            Self::TooManyFrames => f.write_str("more frames have ended than may wait"),
            Self::SourceOfSource => f.write_str("a contract can be shared only with the app that has it"),
            Self::FeedsItself => f.write_str("its consumers depend on each other in a circle"),
        }
    }
}
