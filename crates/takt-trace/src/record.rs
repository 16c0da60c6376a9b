//! The records of a run, in the order they happened.

use takt_core::{Action, AppId, Event, GroupId, Hold, Period, Priority, Refresh, Span, Time};

use crate::lives::Lives;

/// One thing that happened.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Record {
    /// Went into the scheduler.
    In(Event),
    /// Came out of the scheduler.
    Out(Action),
    /// Happened on the GPU.
    Gpu(GpuRecord),
    /// A refresh period began.
    Vsync(Period),
    /// The scheduler's actions so far were all fetched, and it was asked what is due now
    /// ([`takt_core::Scheduler::handle_timeout`]). Only live runs say so: with it, they can be
    /// [replayed](crate::replay).
    Turn,
    /// Another policy decides from now on.
    Policy(&'static str),
    /// Records are missing here, because the reader was too slow.
    Gap {
        /// How many.
        records: u64,
    },
}

/// What the GPU did.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum GpuRecord {
    /// A dispatched group reached the GPU's queue.
    Queued {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
    },
    /// The GPU began to execute a group.
    Started {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
    },
    /// The GPU finished a group. Precedes the completion event, which may be late or lost.
    Finished {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
        /// When it had begun or, if it was preempted, gone on.
        started: Time,
    },
    /// The GPU stopped executing a group that is not finished.
    Preempted {
        /// Whose it is.
        app: AppId,
        /// Which one.
        group: GroupId,
        /// Since when it ran, if it had begun.
        started: Option<Time>,
        /// Its timeslice is over, and it goes on in the next one; otherwise it was given back and
        /// goes on when it is dispatched again.
        stays: bool,
    },
    /// The GPU does nothing until `until`.
    Stalled {
        /// End of the stall.
        until: Time,
    },
    /// The GPU's clock changed to this share of its nominal speed.
    Clock {
        /// 1000 is nominal speed.
        permille: u32,
    },
}

/// Sees every record as it happens.
pub trait Observer {
    /// `record` happened at `at`. Times never decrease.
    fn record(&mut self, at: Time, record: &Record);

    /// Another app has the slot `app` from now on. Only live runs say so: in others, all
    /// apps are known beforehand.
    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        let _ = (at, app, meta);
    }
}

/// Sees nothing, costs nothing.
impl Observer for () {
    #[inline]
    fn record(&mut self, _at: Time, _record: &Record) {}
}

impl<O: Observer + ?Sized> Observer for &mut O {
    #[inline]
    fn record(&mut self, at: Time, record: &Record) {
        (**self).record(at, record);
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        (**self).meet(at, app, meta);
    }
}

/// Two observers of the same run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn record(&mut self, at: Time, record: &Record) {
        self.0.record(at, record);
        self.1.record(at, record);
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        self.0.meet(at, app, meta);
        self.1.meet(at, app, meta);
    }
}

/// An observer that may be switched off.
impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn record(&mut self, at: Time, record: &Record) {
        if let Some(observer) = self {
            observer.record(at, record);
        }
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        if let Some(observer) = self {
            observer.meet(at, app, meta);
        }
    }
}

/// Keeps records in memory, all of them or those of a window.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The records kept, in order.
    pub records: Vec<(Time, Record)>,
    before: Lives,
    from: Time,
    until: Option<Time>,
}

impl Log {
    /// Keeps everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps what happens in `[from, from + length)`.
    pub fn window(from: Time, length: Span) -> Self {
        Self { from, until: Some(from + length), ..Self::default() }
    }

    /// The groups that were under way when the window began, and the frames counted until then.
    pub fn before(&self) -> &Lives {
        &self.before
    }
}

impl Observer for Log {
    fn record(&mut self, at: Time, record: &Record) {
        if at < self.from {
            self.before.see(at, record);
        } else if self.until.is_none_or(|until| at < until) {
            self.records.push((at, *record));
        }
    }
}

/// Why a group is held back, in a few words; `name` tells how an app is called.
pub fn why_held(reason: Hold, name: impl Fn(AppId) -> String) -> String {
    match reason {
        Hold::Protects { app } => format!("protects {}", name(app)),
        Hold::Clears { app } => format!("clears the way for {}", name(app)),
        Hold::Behind { app } => format!("behind {}", name(app)),
        Hold::Exhausted { app } => format!("no time left down to {}", name(app)),
        Hold::LookAhead => "promises beyond the look-ahead".to_owned(),
        Hold::NoSlot => "no slot".to_owned(),
        Hold::Unbounded => "unbounded estimate".to_owned(),
        Hold::NoBudget { .. } => "no budget".to_owned(),
        Hold::Turn { app } => format!("turn of {}", name(app)),
        Hold::Tick { .. } => "waits for the tick".to_owned(),
        Hold::Batch => "batch not complete".to_owned(),
    }
}

/// What the numbers in the records stand for.
#[derive(Clone, PartialEq, Debug)]
pub struct Meta {
    /// Name of the scenario or of the host.
    pub scenario: String,
    /// Name of the policy.
    pub policy: String,
    /// The refresh grid at the start.
    pub refresh: Refresh,
    /// The apps by slot number.
    pub apps: Vec<AppMeta>,
}

/// What is known of an app beforehand.
#[derive(Clone, PartialEq, Debug)]
pub struct AppMeta {
    /// Unique name.
    pub name: String,
    /// Priority at the start.
    pub priority: Priority,
    /// Frame rate wanted at the start, in millihertz.
    pub fps_mhz: u32,
    /// When its jobs are released, if its own clock does that.
    pub jobs: Option<JobsMeta>,
}

/// Jobs that an app's own clock releases; each ends with a swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobsMeta {
    /// Release of the first job.
    pub first: Time,
    /// Time between two releases.
    pub period: Span,
    /// From the release of a job to when it should be done.
    pub deadline: Span,
    /// No job is released from then on.
    pub until: Time,
}

impl Meta {
    /// The app's name, or its slot number if it has none.
    pub fn name(&self, app: AppId) -> String {
        self.apps.get(app.index()).map_or_else(|| format!("app{}", app.0), |meta| meta.name.clone())
    }
}
