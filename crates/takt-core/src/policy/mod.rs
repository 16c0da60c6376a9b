//! The seam between the scheduler and the rule that picks the next command group, and Takt's own rule.
//!
//! Other rules implement [`Policy`] in crates of their own. [`servers`] and their [`bandwidth`] are accounts that
//! several of them keep.
//!
//! A policy sees the time, the refresh grid, when the GPU will be free, and the [`Lane`]s of all
//! apps, and is told when groups come and end. It changes nothing but its own accounts, the lanes'
//! targets and the reasons for holding groups back; the [`crate::Scheduler`] does all
//! bookkeeping. It never learns whether it runs in the simulator or in the daemon.

pub mod bandwidth;
pub mod servers;
mod timeline;

pub use timeline::Timeline;

use crate::app::{AppId, GroupKind};
use crate::config::Config;
use crate::refresh::{Period, Refresh};
use crate::scheduler::Lane;
use crate::time::{Span, Time};

/// Decides which app's first waiting group goes to the GPU next.
pub trait Policy: Send + core::fmt::Debug {
    /// The name it is selected by.
    fn name(&self) -> &'static str;

    /// Takes all the memory it will ever need; the first call, before any other.
    fn prepare(&mut self, config: &Config) {
        let _ = config;
    }

    /// Apps joined, left or changed their parameters, or the focus moved.
    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        let _ = (now, lanes);
    }

    /// The app of `lane` submitted a group; `was_idle` if it had nothing waiting or in flight.
    fn submitted(&mut self, now: Time, lane: &Lane, was_idle: bool) {
        let _ = (now, lane, was_idle);
    }

    /// The first waiting group of the lane at `index` is dispatched, or, if that has no head, one that is booked on
    /// another frame; says who pays for it and when it is due, if not with its frame.
    fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Paid> {
        let _ = (context, lanes, index);
        None
    }

    /// A group of the app of `lane` ended.
    fn ended(&mut self, now: Time, ended: &Ended, lane: &Lane) {
        let _ = (now, ended, lane);
    }

    /// Whether the group that was dispatched last, of the lane at `running`, is to be taken back
    /// from the GPU. Asked before each decision, and only where the GPU can do that
    /// ([`crate::Gpu::Preemptive`]). If the answer is yes, the group is its lane's head again.
    fn preempts(&mut self, context: &Context, lanes: &[Lane], running: usize) -> bool {
        let _ = (context, lanes, running);
        false
    }

    /// Whether a choice that is not followed does no harm: the next one is made as if it had not been
    /// asked for, but for targets that cannot be met any more.
    fn chooses_freely(&self) -> bool {
        false
    }

    /// Whether it lets a protected app wait for another one where [`crate::scheduler::Turn::waits_for`] says so,
    /// and protected apps go by their due dates: then they pay for few changes of contexts.
    fn keeps_apart(&self) -> bool {
        false
    }

    /// How long the group that was picked last could have been, and still been picked.
    fn room(&self) -> Span {
        Span::ZERO
    }

    /// When to decide again if nothing happens before, although nothing may run now.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// When the app of `lane` may start its next frame; `planned` is its incipient arrival, or now
    /// if that is over.
    fn release(&mut self, now: Time, lane: &Lane, planned: Time, refresh: &Refresh) -> Time {
        let _ = (now, lane, refresh);
        planned
    }

    /// Whether apps share the frames of another one under it ([`crate::service::Reservation::Shared`]).
    fn shares_frames(&self) -> bool {
        false
    }

    /// Whether it lets divisible work in apart from all other work ([`Self::choose_divisible`]); if not, no work
    /// is divisible.
    fn divides(&self) -> bool {
        false
    }

    /// Picks a lane with waiting divisible work ([`Lane::divisible`]), or none. Asked when no such work is in flight,
    /// after all other decisions.
    fn choose_divisible(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let _ = (context, lanes);
        None
    }

    /// Picks a lane with a waiting group, or none if nothing may run now. Every lane with a
    /// waiting group that was not picked gets the reason in [`Lane::hold`].
    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize>;
}

/// What a policy may know besides the lanes.
#[derive(Copy, Clone, Debug)]
pub struct Context {
    /// The time of the decision.
    pub now: Time,
    /// The period it falls in (`current#`).
    pub current: Period,
    /// When the GPU has done all that was dispatched at the latest, by conservative prediction.
    pub free_c: Time,
    /// When the GPU has done all that was dispatched at the earliest, by optimistic prediction.
    pub free_o: Time,
    /// When a group picked now starts at the latest, by conservative prediction (`t_ref_c`).
    pub ready_c: Time,
    /// When a group picked now starts at the earliest, by optimistic prediction (`t_ref_o`).
    pub ready_o: Time,
    /// Groups in flight.
    pub in_flight: usize,
    /// Whose group was dispatched last, if that one is in flight.
    pub newest: Option<AppId>,
    /// Parameters of the scheduler.
    pub config: Config,
}

/// Which contract a dispatched group runs on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Paid {
    /// Whose contract it is.
    pub by: AppId,
    /// When it is due.
    pub due: Time,
    /// Whether that was promised.
    pub promised: bool,
}

/// A group that is over.
#[derive(Copy, Clone, Debug)]
pub struct Ended {
    /// When it ended.
    pub finished: Time,
    /// How long the GPU can have been occupied by it since it was dispatched (again).
    pub occupied: Span,
    /// What it was believed to take at most when it was dispatched.
    pub believed: Span,
    /// By how much earlier the GPU is free for another group, because it ended. Where contexts take turns, others may
    /// have had the time that it did not use.
    pub freed: Span,
    /// What it was to its frame.
    pub kind: GroupKind,
}
