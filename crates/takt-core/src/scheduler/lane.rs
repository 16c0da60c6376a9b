//! What a policy sees of an app.

use super::queue::Waiting;
use crate::app::{AppId, AppParams, GroupKind, Priority, Stride};
use crate::clock::Clock;
use crate::event::Hold;
use crate::limits::QUEUE_MAX;
use crate::refresh::{Period, Refresh};
use crate::service::Service;
use crate::time::{Span, Time};

/// The scheduling state of one app, small enough to scan a thousand of them.
///
/// Lanes are kept in falling order of priority.
#[derive(Copy, Clone, Debug)]
pub struct Lane {
    /// Whose lane it is.
    pub app: AppId,
    /// Importance.
    pub priority: Priority,
    /// Periods between two frames.
    pub stride: Stride,
    /// GPU time demanded per frame.
    pub etpf: Span,
    /// What releases its frames.
    pub clock: Clock,
    /// The grid that its periods are numbered on: its display's, or that of its own clock.
    pub grid: Refresh,
    /// How long before the end of a period its frame is due.
    pub tail: Span,
    /// Which server it has, and how policies treat it.
    pub service: Service,
    /// Whether its contract is covered, together with those of all more important apps.
    pub protected: bool,
    /// Whether its groups may run on the protected server of another app, which it shares or produces for.
    pub hosted: bool,
    /// Whether its groups are divisible work, which has a slot of its own on the GPU. Changes only when it has
    /// nothing there.
    pub divisible: bool,
    /// The frame with which it returned after it was suspended, or that waited behind work beyond its
    /// promise: that one is not protected.
    pub returning: Option<Period>,
    /// How many of its groups are in flight.
    pub in_flight: u32,
    /// The period whose end the next frame to be dispatched should meet (`target#`).
    pub target: Period,
    /// What `target` was before it moved on because it could not be met any more: the period whose
    /// end that frame should have met.
    pub due: Period,
    /// The first deadline, of those that are not over, that a group of it on the GPU should meet, where
    /// groups that come later delay it.
    pub on_gpu_due: Option<Time>,
    /// The same of groups that are part of what was promised.
    pub on_gpu_promised: Option<Time>,
    /// The frame whose groups are dispatched next.
    pub front: Ledger,
    /// How its open frame waits for groups of its own.
    pub pause: Pause,
    /// The first waiting group.
    pub head: Option<Head>,
    /// How its next group gets to the GPU, where protected apps have it one at a time.
    pub turn: Turn,
    /// How many of its groups wait.
    pub waiting: u32,
    /// How many of those end a batch: by their kind ([`GroupKind::ends_batch`]), or with their frame.
    pub batches: u32,
    /// Why the first waiting group was passed over by the last decision.
    pub hold: Option<Hold>,
    /// The reason that was last told to the outside.
    pub(super) hold_told: Option<Hold>,
}

impl Lane {
    pub(super) fn new(app: AppId, params: AppParams, grid: Refresh, target: Period) -> Self {
        Self {
            app,
            priority: params.priority,
            stride: params.stride,
            etpf: params.etpf,
            clock: params.clock,
            grid,
            tail: params.clock.tail(),
            service: params.service,
            protected: false,
            hosted: false,
            divisible: false,
            returning: None,
            in_flight: 0,
            target,
            due: target,
            on_gpu_due: None,
            on_gpu_promised: None,
            front: Ledger::default(),
            pause: Pause::default(),
            head: None,
            turn: Turn::default(),
            waiting: 0,
            batches: 0,
            hold: None,
            hold_told: None,
        }
    }

    /// What its app asked for.
    pub fn params(&self) -> AppParams {
        let Self { priority, stride, etpf, clock, service, .. } = *self;
        AppParams { priority, stride, etpf, clock, service }
    }

    /// The next frame to be dispatched should meet the end of this period.
    pub(super) fn aim_at(&mut self, period: Period) {
        (self.target, self.due) = (period, period);
    }

    /// When a frame for that period may begin.
    pub fn release_of(&self, target: Period) -> Time {
        self.grid.incipient_arrival(target, self.stride)
    }

    /// When a frame for that period is due.
    pub fn due_of(&self, target: Period) -> Time {
        self.grid.end(target) - self.tail
    }

    /// The period of its grid that `time` falls in.
    pub fn period_at(&self, time: Time) -> Period {
        self.grid.period_at(time)
    }

    /// The app begins the frame for its target now: a clock of its own runs late from here on.
    pub(super) fn begin(&mut self, now: Time) {
        if self.clock.is_own() && now > self.grid.start(self.target) {
            self.grid = self.grid.starting(self.target, now);
        }
    }

    /// Whether it begins a frame now after so many periods of its own clock in which it began none.
    pub(super) fn is_silent(&self, now: Time, periods: u32) -> bool {
        let begins = self.clock.is_own() && self.head.is_none() && self.front.enqueued == Span::ZERO;
        let patience = self.grid.period_span().times(periods.into());
        begins && now > self.release_of(self.target) + patience
    }

    /// Whether its frame, which has begun, was promised for a period before its target.
    pub fn is_late(&self) -> bool {
        self.has_budget() && self.front.enqueued > Span::ZERO && self.target > self.due
    }

    /// Whether the frame of its own clock that goes next should have begun.
    pub(super) fn is_behind(&self, now: Time) -> bool {
        self.clock.is_own() && self.head.is_some() && self.release_of(self.target) < now
    }

    /// Whether a whole batch waits, or as much of one as can wait.
    pub fn has_batch(&self) -> bool {
        self.batches > 0 || self.waiting as usize >= QUEUE_MAX
    }

    pub(super) fn came(&mut self, waiting: &Waiting) {
        self.waiting += 1;
        self.batches += u32::from(waiting.ends_batch());
    }

    pub(super) fn went(&mut self, waiting: &Waiting) {
        self.waiting -= 1;
        self.batches -= u32::from(waiting.ends_batch());
    }

    /// Whether its frame goes on, though none of it waits, and has gaps left: its next group may come at any time.
    pub fn may_pause(&self) -> bool {
        let open = self.front.enqueued > Span::ZERO && !self.front.complete;
        self.pause.left > 0 && open && self.head.is_none() && self.has_budget()
    }

    /// Whether the GPU may be working for it.
    pub fn is_on_gpu(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether its groups have the GPU to themselves, as far as protected apps go, where changes of contexts cost
    /// something.
    pub fn is_kept_apart(&self) -> bool {
        self.protected || self.hosted
    }

    /// Whether the frame that is dispatched next is protected.
    pub fn is_protected_now(&self) -> bool {
        self.protected && self.returning != Some(self.target)
    }

    /// Whether that group, its first one, is within what its frame was promised, if anything was: what frames are
    /// promised, and how long their groups may be.
    pub fn is_within_promise(&self, head: &Head, per_group: Span, longest: Span) -> bool {
        self.front.dispatched + head.taken(per_group) <= self.etpf && head.conservative <= longest
    }

    /// Whether it has GPU time of its own in each frame, promised or not.
    pub fn has_budget(&self) -> bool {
        self.etpf > Span::ZERO
    }

    /// Whether anything is reserved for this app, now or in future frames.
    pub fn reserves(&self) -> bool {
        self.has_budget() || self.front.remaining(self.etpf) > Span::ZERO
    }
}

/// The account of one frame. Times are conservative and include the per-group dispatch delay.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Ledger {
    /// Work submitted so far.
    pub enqueued: Span,
    /// Work dispatched so far.
    pub dispatched: Span,
    /// Whether the frame has ended, or its last group was submitted, so that `enqueued` is all of it.
    pub complete: bool,
}

impl Ledger {
    /// The same, if so much of the frame was dispatched before.
    pub(super) fn after(self, dispatched: Span) -> Self {
        Self { enqueued: self.enqueued + dispatched, dispatched, ..self }
    }

    /// What is set aside for the frame: what it is known to need, and while it is not complete
    /// at least what its app demands per frame.
    pub fn reserved(&self, etpf: Span) -> Span {
        if self.complete { self.enqueued } else { self.enqueued.max(etpf) }
    }

    /// What is still to be dispatched of the reserved time.
    pub fn remaining(&self, etpf: Span) -> Span {
        self.reserved(etpf).saturating_sub(self.dispatched)
    }
}

/// The gaps of the frame that an app submits, as far as it has declared any.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Pause {
    /// How many gaps the frame may still have.
    pub left: u32,
    /// By when the group that was dispatched last is over, unless later work delays it.
    pub ends_by: Time,
    /// Since when it is known that none of the app's groups is in flight.
    pub since: Time,
}

/// How the next group of a protected app gets to a GPU that protected apps have one at a time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Turn {
    /// Another protected app has groups in flight; these come first.
    pub waits_for: Option<AppId>,
    /// That one has left since it dispatched them.
    pub gone: bool,
    /// What it costs that what this app displaces goes on, unless the frame has paid for it.
    pub disturbs: Span,
    /// What the way back of this app itself costs.
    pub checked: Span,
    /// What the frame is owed besides its groups.
    pub owed: Span,
    /// What the change to it costs once it is dispatched.
    pub(super) enters: Span,
}

/// The first waiting group of an app.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Conservative prediction (`predC`) without what the GPU adds.
    pub length: Span,
    /// It is the first one of its frame, or the first one after a gap that its app has declared.
    pub first: bool,
    /// The same with what the GPU adds: the switches that it pays for, and turns of divisible work.
    pub conservative: Span,
    /// What its frame has reserved for the gap before it.
    pub gap: Span,
    /// What a frame with gaps has reserved for the way of this group to the GPU.
    pub way: Span,
    /// Optimistic prediction (`predO`).
    pub optimistic: Span,
    /// Position in the order of all submissions.
    pub order: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// What it is to its frame.
    pub kind: GroupKind,
    /// It was on the GPU before and was taken back.
    pub preempted: bool,
}

impl Head {
    /// What it takes of the account of its frame.
    pub fn taken(&self, per_group: Span) -> Span {
        self.conservative + per_group + self.gap + self.way
    }
}
