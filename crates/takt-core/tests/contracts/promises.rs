//! What apps with a promise have in work, and what they are owed from now on.

use std::collections::VecDeque;

use crate::Rng;
use crate::gpu::Delays;
use crate::sets::{App, Charge};

/// A frame that was released and is not over.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: u64,
    pub(crate) due: u64,
    /// From when on the next group is there; `None` while the app waits for groups to end.
    pub(crate) there: Option<u64>,
    pub(crate) groups: VecDeque<u64>,
    pub(crate) in_flight: usize,
    /// The gap that is still to come: before so many last groups, and how long.
    pub(crate) gap: Option<(usize, u64)>,
    /// The end of the gap that has begun.
    pub(crate) gap_ends: u64,
}

/// The server of an app.
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub(crate) size: u64,
    pub(crate) budget: u64,
    pub(crate) deadline: u64,
    /// Lengths and arrivals.
    pub(crate) backlog: VecDeque<(u64, u64)>,
    pub(crate) in_flight: usize,
}

/// An app while it runs.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) app: App,
    pub(crate) frames: VecDeque<Frame>,
    pub(crate) server: Server,
    /// The next frame or job comes then, but is due as if it came at `counts` at the earliest.
    pub(crate) next: u64,
    pub(crate) counts: u64,
    pub(crate) begun: u64,
}

/// Work that is owed.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) release: u64,
    pub(crate) due: u64,
    pub(crate) owed: u64,
    /// The part of it without which it cannot be met: no delays.
    pub(crate) least: u64,
    /// Whether it must be met.
    pub(crate) counts: bool,
}

/// Costs of groups and frames in ticks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Costs {
    pub(crate) delays: Delays,
    pub(crate) charge: Charge,
    /// Nothing that is dispatched makes what was dispatched before late.
    pub(crate) in_order: bool,
}

impl Costs {
    pub(crate) fn group(&self, length: u64) -> u64 {
        self.delays.inflated(length) + self.charge.per_group
    }

    /// A group of a server, which may come alone.
    pub(crate) fn served(&self, length: u64) -> u64 {
        self.group(length) + self.charge.per_frame
    }

    /// A whole frame, or a budget.
    pub(crate) fn frame(&self, app: &App) -> u64 {
        if app.server {
            return app.groups.iter().map(|length| self.served(*length)).sum();
        }
        let groups: u64 = app.groups.iter().map(|length| self.group(*length)).sum();
        groups + app.gap.map_or(0, |(_, length)| length + self.charge.per_frame) + self.charge.per_frame
    }

    fn rest(&self, frame: &Frame, now: u64) -> u64 {
        let groups: u64 = frame.groups.iter().map(|length| self.group(*length)).sum();
        let gap = frame.gap.map_or(0, |(_, length)| length + self.charge.per_frame);
        let whole = if frame.groups.is_empty() { 0 } else { self.charge.per_frame };
        groups + gap + whole + frame.gap_ends.saturating_sub(now)
    }
}

impl State {
    /// `phases` are those of the displays.
    pub(crate) fn new(app: App, phases: &[u64], costs: &Costs, rng: &mut Rng) -> Self {
        let next = match app.display {
            Some((display, stride)) => {
                phases[display as usize] + rng.between(0, stride - 1) * (app.period / stride)
            }
            None if rng.percent(40) => 0,
            None => rng.between(0, app.period),
        };
        let server = Server { size: costs.frame(&app), ..Server::default() };
        Self { app, frames: VecDeque::new(), server, next, counts: next, begun: 0 }
    }

    /// Due date and length of the group that could go next.
    pub(crate) fn ready(&mut self, now: u64, costs: &Costs) -> Option<(u64, u64)> {
        if self.app.server {
            let (length, _) = *self.server.backlog.front()?;
            while self.server.budget < costs.served(length) {
                self.server.budget += self.server.size;
                self.server.deadline += self.app.period;
            }
            return Some((self.server.deadline, length));
        }
        let frame = self.frames.iter().find(|frame| !frame.groups.is_empty())?;
        let there = frame.there.is_some_and(|there| there <= now);
        frame.groups.front().filter(|_| there).map(|length| (frame.due, *length))
    }

    /// Everything that is owed to it up to a horizon; into `to`.
    pub(crate) fn promises(&self, now: u64, horizon: u64, costs: &Costs, to: &mut Vec<Promise>) {
        if self.app.server {
            return self.budgets(now, horizon, to);
        }
        for frame in self.frames.iter().filter(|frame| !(costs.in_order && frame.groups.is_empty())) {
            let least = frame.groups.iter().sum();
            let owed = costs.rest(frame, now);
            to.push(Promise { release: now, due: frame.due, owed, least, counts: true });
        }
        let (owed, least) = (costs.frame(&self.app), 0);
        let mut release = self.counts.max(now);
        if self.app.display.is_some() {
            release = self.counts;
        }
        while release <= horizon {
            to.push(Promise { release, due: release + self.app.deadline, owed, least, counts: true });
            release += self.app.period;
        }
    }

    /// The rest of the budget, and a fluid from then on, in steps of whole ticks.
    fn budgets(&self, now: u64, horizon: u64, to: &mut Vec<Promise>) {
        let Server { size, budget, deadline, ref backlog, .. } = self.server;
        let (period, from) = (self.app.period, self.fluid_from(now));
        if !self.idle() {
            to.push(Promise { release: now, due: deadline, owed: budget, least: 0, counts: false });
        }
        let arrival = backlog.front().map_or(now, |(_, arrival)| *arrival);
        let due = deadline.max(arrival + period);
        to.push(Promise { release: now, due, owed: 0, least: 0, counts: true });
        for work in 1.. {
            let [release, due] = [work - 1, work].map(|work| from + (work * period).div_ceil(size));
            if release > horizon {
                break;
            }
            to.push(Promise { release, due, owed: 1, least: 0, counts: work % size == 0 });
        }
    }

    /// A server has had what it may have until then, or has it waiting.
    pub(crate) fn fluid_from(&self, now: u64) -> u64 {
        let Server { size, budget, deadline, .. } = self.server;
        match self.idle() {
            true => now.max(deadline.saturating_sub((budget * self.app.period).div_ceil(size))),
            false => deadline,
        }
    }

    /// Whether a server has nothing to do, so that an arrival may give it a new deadline.
    fn idle(&self) -> bool {
        self.server.backlog.is_empty() && self.server.in_flight == 0
    }

    /// A job of a server arrives: some groups, none longer than the longest.
    pub(crate) fn job_arrives(&mut self, now: u64, rng: &mut Rng) {
        let Server { size, budget, deadline, .. } = self.server;
        if self.idle() && (deadline <= now || budget * self.app.period >= (deadline - now) * size) {
            self.server.budget = size;
            self.server.deadline = now + self.app.period;
        }
        for _ in 0..rng.between(1, 4) {
            let length = self.app.groups[rng.index(self.app.groups.len())];
            self.server.backlog.push_back((length, now));
        }
    }
}
