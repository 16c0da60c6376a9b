//! What apps were promised, put on the board.

use super::board::{Promise, ns};
use super::columns::Owes;
use super::gaps::Pausing;
use super::walk::Share;
use super::{Pass, Ready, Timeline};
use crate::config::Config;
use crate::policy::bandwidth::Server;
use crate::scheduler::{Head, Lane};
use crate::time::Span;

/// What decides whether a group is part of a promise.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Sizes {
    pub(super) per_group: Span,
    pub(super) longest_group: Span,
    /// What the first group waits for on its way to the GPU.
    pub(super) under_way: Span,
    pub(super) per_frame: Span,
    /// How late an end is known, and how long a group is under way, in nanoseconds.
    pub(super) completion: i64,
    pub(super) dispatch: i64,
    /// Groups that are dispatched later may delay those before.
    pub(super) later_work_delays: bool,
    /// See [`crate::Tuning::given_up_max`].
    pub(super) given_up_max: u64,
}

impl Sizes {
    pub(super) fn of(config: &Config) -> Self {
        let per_group = config.per_group();
        let changes = config.margins.turnaround() + config.gpu.switch().times(2);
        let later_work_delays = config.gpu.later_work_delays();
        Self {
            per_group,
            longest_group: config.longest_group(),
            under_way: if later_work_delays { changes } else { per_group },
            per_frame: config.per_frame(),
            completion: config.margins.completion_upper.as_signed_ns(),
            dispatch: config.margins.dispatch_upper.as_signed_ns(),
            later_work_delays,
            given_up_max: config.tuning.given_up_max.into(),
        }
    }
}

/// What a lane has for its next frame; the same throughout a decision.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Frame {
    pub(super) due: i64,
    /// What is still promised to it.
    pub(super) owed: i64,
    /// Its first group is beyond what was promised.
    pub(super) is_exceeded: bool,
    /// It is in a gap that the app has declared.
    pub(super) pauses: bool,
    /// It cannot be in time even if nothing else goes before it: it binds no group.
    pub(super) is_late: bool,
}

impl Frame {
    #[inline]
    pub(super) fn new(lane: &Lane, due: i64, sizes: Sizes, ready: &Ready, pause: Pausing) -> Self {
        let Sizes { per_group, longest_group, .. } = sizes;
        let exceeds = |head: Head| !lane.is_within_promise(&head, per_group, longest_group);
        let is_exceeded = lane.head.is_some_and(exceeds);
        let owed = owed(lane, is_exceeded, &pause).min(pause.time_left(due));
        // What the first group waits for on its way to the GPU is over by the time that it is free for it.
        let earliest = ready.free + owed - sizes.under_way.as_signed_ns();
        let is_late = lane.clock.is_own() && ns(lane.release_of(lane.target)) < ready.now && due < earliest;
        Self { due, owed, is_exceeded, pauses: pause.now, is_late }
    }
}

impl Timeline {
    /// Moves the target of a frame on that cannot meet it any more; says when it is due.
    #[inline]
    pub(super) fn aim(&mut self, lane: &mut Lane, ready: &Ready, pause: &Pausing) -> i64 {
        match lane.head {
            _ if lane.clock.is_own() => {}
            None => self.give_up_hopeless_frames(lane, ready, pause),
            Some(head) => {
                let due = self.board.due_of(lane, lane.target);
                let earliest = ready.optimistic + head.optimistic.as_signed_ns();
                if earliest < due {
                    return due;
                }
                lane.target = lane.target.max(self.board.period_at(lane, earliest));
            }
        }
        self.board.due_of(lane, lane.target)
    }

    /// Moves the target of an app that has not submitted its frame on by whole strides, as long as not even an
    /// immediate start could finish in time what is reserved for it.
    ///
    /// Without this the reservation of a silent app would follow the present and take time in every period,
    /// although the app is entitled to it in every stride only.
    fn give_up_hopeless_frames(&mut self, lane: &mut Lane, ready: &Ready, pause: &Pausing) {
        let (before, owed) = (lane.target, owed(lane, false, pause));
        let rest = owed.min(pause.time_left(self.board.due_of(lane, before)));
        let frames = (0..self.sizes.given_up_max).map(|frame| lane.target + frame * lane.stride.periods());
        let hopeful = frames.into_iter().find(|target| self.board.due_of(lane, *target) >= ready.free + rest);
        lane.target = hopeful.unwrap_or(lane.target);
        lane.target = lane.target.max(self.board.period_at(lane, ready.optimistic));
        if rest > 0 {
            let due = self.board.due_of(lane, lane.target);
            // A frame that is owed no more than the time that is left is given up when that is over, and not before.
            let shrinks = rest < owed && lane.target == before;
            let lapse = if shrinks { ready.now + due - ready.optimistic } else { due - rest + 1 };
            self.lapse = self.lapse.min(lapse);
        }
    }

    /// Adds what `lane` owes to the board: its frame, those to come, and what it has on the GPU.
    pub(super) fn promise(&mut self, lanes: &[Lane], owner: usize, pass: &Pass<'_>) {
        let lane = &lanes[owner];
        let on_gpu = if lane.protected { lane.on_gpu_promised } else { lane.on_gpu_due };
        if let Some(due) = on_gpu.filter(|_| lane.has_budget() || lane.protected) {
            self.board.promise_end(ns(due), owner);
        }
        let (rest, etpf) = (self.frames[owner].owed, lane.etpf.as_signed_ns());
        if lane.protected && !lane.has_budget() {
            self.promise_server(lanes, owner, pass);
        } else if lane.clock.is_own() {
            self.promise_own_clock(lane, owner, pass);
        } else if rest > 0 || etpf > 0 {
            let pauses = self.frames[owner].pauses;
            if lane.head.is_none() && ns(lane.release_of(lane.target)) == pass.ready.now {
                // It may come at this very moment, and is absent from the next one on.
                self.lapse = self.lapse.min(pass.ready.now + 1);
            }
            self.board.promise_frames(lane, owner, Owes { rest, etpf, pauses });
        }
    }

    /// What is left of the budget of a server by its deadline, and its share of the GPU from there on: then
    /// whatever comes, whenever it comes, is promised no more than that.
    fn promise_server(&mut self, lanes: &[Lane], owner: usize, pass: &Pass<'_>) {
        let slot = lanes[owner].app.index();
        let Some((due, span)) = self.accounts.promise(slot, pass.context, lanes) else {
            return;
        };
        let Some(reserve) = self.accounts.servers.get(slot).map(Server::reserve) else {
            return;
        };
        let share = Share::of(reserve.budget.as_signed_ns(), reserve.period.as_signed_ns());
        let (due, span) = (ns(due), span.as_signed_ns());
        let first = Promise { release: i64::MIN, due, span, owner, absent: false, share };
        self.board.promise_share(first);
    }

    /// Keeps time free for what a lane has beyond its promises, from those that are less important.
    pub(super) fn keep_free(&mut self, lanes: &[Lane], owner: usize, pass: &Pass<'_>) {
        let lane = &lanes[owner];
        if !lane.protected || self.shed.contains(owner) {
            return self.promise(lanes, owner, pass);
        }
        if let Some(due) = lane.on_gpu_due.filter(|due| lane.on_gpu_promised != Some(*due)) {
            self.board.promise_end(ns(due), owner);
        }
        if !lane.has_budget() {
            return self.keep_free_for_server(lanes, owner, pass);
        }
        if lane.front.enqueued <= lane.etpf {
            return;
        }
        let beyond = lane.front.remaining(lane.etpf).as_signed_ns() - self.frames[owner].owed;
        if beyond > 0 && !lane.clock.is_own() {
            self.board.promise_frames(lane, owner, Owes { rest: beyond, etpf: 0, pauses: false });
        }
    }

    /// Keeps time free for a group that is longer than what its server promises. Without this, shorter work of less
    /// important apps would fit into the slack again and again, and the group never.
    fn keep_free_for_server(&mut self, lanes: &[Lane], owner: usize, pass: &Pass<'_>) {
        let Some((due, span)) = self.accounts.beyond(pass.context, lanes, owner) else {
            return;
        };
        let (due, span) = (ns(due), span.as_signed_ns());
        let share = Share::default();
        self.board.promise(Promise { release: i64::MIN, due, span, owner, absent: false, share });
    }

    /// Frames by the app's own clock: the next one is released now at the earliest. So is what waits behind
    /// work that was not promised: it is unknown when that goes.
    fn promise_own_clock(&mut self, lane: &Lane, owner: usize, pass: &Pass<'_>) {
        let Frame { owed: rest, pauses, is_late, .. } = self.frames[owner];
        let (now, etpf) = (pass.ready.now, lane.etpf.as_signed_ns());
        let config = &pass.context.config;
        let period = lane.grid.period_span().as_signed_ns();
        let begun = lane.front.enqueued > Span::ZERO;
        let planned = ns(lane.release_of(lane.target));
        if lane.head.is_none() {
            let suspended = planned.saturating_add(period.saturating_mul(config.tuning.suspend_after.into()));
            if now > suspended {
                return;
            }
            self.lapse = self.lapse.min(suspended + 1);
        }
        let beyond = !lane.is_protected_now() || self.frames[owner].is_exceeded;
        let (mut release, mut span) = match lane.head {
            Some(_) if lane.protected && beyond => ((planned + period).max(now), etpf),
            _ if begun => (planned, rest),
            _ => (planned.max(now), rest),
        };
        let deadline = period - lane.tail.as_signed_ns();
        while release < self.board.end() && !self.board.is_full() {
            let due = release + deadline;
            // What is late even without another group binds none.
            if span > 0 && (release >= now || !is_late) {
                let absent = begun && lane.head.is_none() && release == planned && !pauses;
                self.board.promise(Promise { release, due, span, owner, absent, share: Share::default() });
            }
            // A frame that has not begun begins now at the earliest.
            (release, span) = ((release + period).max(now), etpf);
        }
        self.board.goes_on();
    }
}

/// What is still owed to the front frame of a lane. A protected frame is owed what it was promised and no
/// more, and nothing from the first group on that is beyond it: that one needs slack.
fn owed(lane: &Lane, is_exceeded: bool, pause: &Pausing) -> i64 {
    if lane.protected && is_exceeded {
        return 0;
    }
    let reserved = lane.front.reserved(lane.etpf);
    let owed = if lane.protected {
        promised(lane, reserved)
    } else {
        reserved.saturating_sub(lane.front.dispatched)
    };
    (owed.as_signed_ns() - pause.over).max(0)
}

/// The same of a protected frame, all of whose groups are part of its promise.
fn promised(lane: &Lane, reserved: Span) -> Span {
    if lane.front.dispatched == Span::ZERO {
        return (reserved + lane.turn.owed).min(lane.etpf);
    }
    match reserved.min(lane.etpf).saturating_sub(lane.front.dispatched) {
        Span::ZERO => Span::ZERO,
        rest => rest + lane.turn.owed,
    }
}
