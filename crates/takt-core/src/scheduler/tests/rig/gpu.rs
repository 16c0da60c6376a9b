//! The GPUs that scripts run on.

use alloc::collections::VecDeque;
use std::vec::Vec;

use crate::app::{AppId, GroupId};
use crate::gpu::Gpu;
use crate::time::{Span, Time};

/// A model of the GPU.
pub(super) enum RigGpu {
    InOrder(InOrder),
    TimeShared(TimeShared),
}

/// A dispatched group.
#[derive(Copy, Clone)]
pub(super) struct Work {
    pub(super) app: AppId,
    pub(super) group: GroupId,
    /// When it reaches the GPU.
    pub(super) arrives: Time,
    /// How long the GPU takes for it.
    pub(super) cost: Span,
}

/// A group that ended.
#[derive(Copy, Clone)]
pub(super) struct Ended {
    pub(super) group: GroupId,
    pub(super) at: Time,
    pub(super) cost: Span,
}

impl RigGpu {
    /// Takes a group; says when it begins and ends, if that is known in advance.
    pub(super) fn dispatch(&mut self, work: Work) -> Option<(Time, Time)> {
        match self {
            Self::InOrder(gpu) => Some(gpu.dispatch(work)),
            Self::TimeShared(gpu) => {
                gpu.arriving.push(work);
                None
            }
        }
    }

    /// When the next group ends, if that is not after `until` and nothing else comes before.
    pub(super) fn next_end(&self, until: Time) -> Option<Time> {
        match self {
            Self::InOrder(gpu) => gpu.groups.front().map(|(_, _, end)| *end),
            Self::TimeShared(gpu) => gpu.clone().run(until).map(|ended| ended.at),
        }
    }

    /// The next group that has ended by `now`.
    pub(super) fn take_ended(&mut self, now: Time) -> Option<Ended> {
        match self {
            Self::InOrder(gpu) => gpu.take_ended(now),
            Self::TimeShared(gpu) => gpu.run(now),
        }
    }

    /// The group that was dispatched last leaves the GPU; returns what is left of it.
    pub(super) fn take_back(&mut self, group: GroupId, now: Time) -> Span {
        match self {
            Self::InOrder(gpu) => gpu.take_back(group, now),
            Self::TimeShared(_) => panic!("a time-shared GPU gives nothing back"),
        }
    }
}

/// Runs each group to its end, in the order of dispatch.
#[derive(Default)]
pub(super) struct InOrder {
    /// When each group begins and ends.
    groups: VecDeque<(GroupId, Time, Time)>,
    free: Time,
}

impl InOrder {
    fn dispatch(&mut self, work: Work) -> (Time, Time) {
        let begins = self.free.max(work.arrives);
        self.free = begins + work.cost;
        self.groups.push_back((work.group, begins, self.free));
        (begins, self.free)
    }

    fn take_ended(&mut self, now: Time) -> Option<Ended> {
        let (group, begun, at) = *self.groups.front().filter(|(_, _, end)| *end <= now)?;
        self.groups.pop_front();
        Some(Ended { group, at, cost: at.since(begun) })
    }

    fn take_back(&mut self, group: GroupId, now: Time) -> Span {
        let (last, begins, end) = self.groups.pop_back().expect("only what was dispatched comes back");
        assert_eq!(group, last, "the last one comes back first");
        self.free = self.groups.back().map_or(now, |(_, _, end)| *end);
        end.since(now.max(begins))
    }
}

/// Serves apps round-robin, a time slice each. Groups of one app run in order. A group without any
/// work ends as soon as it is the first of its app, without waiting for a slice.
#[derive(Clone)]
pub(super) struct TimeShared {
    slice: Span,
    /// The cost of each change from one app to another.
    switch: Span,
    clock: Time,
    /// Groups that have not reached the GPU yet.
    arriving: Vec<Work>,
    /// Apps with work in the order of their slices; the first one has the GPU.
    contexts: VecDeque<Context>,
    /// Whose slice it is, and what is left of it and of the switch to that app.
    current: Option<AppId>,
    slice_left: Span,
    switch_left: Span,
}

/// The groups of one app, each with the time that it still needs.
#[derive(Clone)]
struct Context {
    app: AppId,
    groups: VecDeque<(Work, Span)>,
}

impl TimeShared {
    pub(super) fn new(slice: Span, switch: Span) -> Self {
        assert!(slice > Span::ZERO, "a slice has some length");
        Self {
            slice,
            switch,
            clock: Time::ZERO,
            arriving: Vec::new(),
            contexts: VecDeque::new(),
            current: None,
            slice_left: Span::ZERO,
            switch_left: Span::ZERO,
        }
    }

    /// How the scheduler is told of this GPU: the only place that does so.
    pub(super) fn model(&self) -> Gpu {
        Gpu::TimeShared { slice: self.slice, switch: self.switch }
    }

    /// Runs to the next end of a group, or to `until` if none ends by then.
    fn run(&mut self, until: Time) -> Option<Ended> {
        loop {
            self.admit();
            if let Some(ended) = self.take_done() {
                return Some(ended);
            }
            if self.clock >= until {
                return None;
            }
            let next = self.arriving.iter().map(|work| work.arrives).fold(until, Time::min);
            if self.contexts.is_empty() {
                self.clock = next;
            } else {
                self.work(next);
            }
        }
    }

    /// Groups reach the GPU.
    fn admit(&mut self) {
        let now = self.clock;
        for work in self.arriving.extract_if(.., |work| work.arrives <= now) {
            let index = self.contexts.iter().position(|context| context.app == work.app);
            let index = index.unwrap_or_else(|| {
                self.contexts.push_back(Context { app: work.app, groups: VecDeque::new() });
                self.contexts.len() - 1
            });
            self.contexts[index].groups.push_back((work, work.cost));
        }
    }

    /// Takes out a group of which nothing is left.
    fn take_done(&mut self) -> Option<Ended> {
        let done = |context: &Context| context.groups.front().is_some_and(|(_, left)| *left == Span::ZERO);
        let index = self.contexts.iter().position(done)?;
        let (work, _) = self.contexts[index].groups.pop_front()?;
        if self.contexts[index].groups.is_empty() {
            self.contexts.remove(index);
        }
        Some(Ended { group: work.group, at: self.clock, cost: work.cost })
    }

    /// Works for the first app until its group or its slice is over, at most until `until`.
    fn work(&mut self, until: Time) {
        self.begin_slice();
        let most = until.since(self.clock);
        let (_, left) = &mut self.contexts[0].groups[0];
        let spent = if self.switch_left > Span::ZERO {
            let spent = self.switch_left.min(most);
            self.switch_left -= spent;
            spent
        } else {
            let spent = self.slice_left.min(*left).min(most);
            *left -= spent;
            self.slice_left -= spent;
            spent
        };
        self.clock += spent;
    }

    /// The next app has the GPU if the slice is over or its app has no more work.
    fn begin_slice(&mut self) {
        if self.current == Some(self.contexts[0].app) {
            if self.slice_left > Span::ZERO {
                return;
            }
            self.contexts.rotate_left(1);
        }
        let next = self.contexts[0].app;
        let changes = self.current.is_some_and(|current| current != next);
        self.switch_left = if changes { self.switch } else { Span::ZERO };
        self.slice_left = self.slice;
        self.current = Some(next);
    }
}
