//! Plays claims against adversaries: what comes when, what best effort does, and what the GPU
//! executes first.

use crate::Rng;
use crate::gpu::{Gpu, Picks, Running};
use crate::promises::{Costs, Frame, Promise, State};
use crate::sets::App;

/// What was late, in words.
pub(crate) type Late = String;

fn late(app: usize, due: u64, ended: u64) -> Late {
    format!("app {app}, due {due}, ended or noticed {ended}")
}

pub(crate) struct Machine {
    states: Vec<State>,
    costs: Costs,
    gpu: Gpu,
    best_effort: u64,
    /// Longest best-effort group.
    longest: u64,
}

impl Machine {
    pub(crate) fn new(apps: &[App], costs: Costs, picks: Picks, rng: &mut Rng) -> Self {
        let phases = [0, rng.between(0, 40), rng.between(0, 40)];
        let states = apps.iter().map(|app| State::new(app.clone(), &phases, &costs, rng)).collect();
        let gpu = Gpu::new(costs.delays, picks);
        let best_effort = [0, 5, 30, 100][rng.index(4)];
        let longest = [2, 8, 40][rng.index(3)];
        Self { states, costs, gpu, best_effort, longest }
    }

    pub(crate) fn play(&mut self, ticks: u64, rng: &mut Rng) -> Option<Late> {
        for now in 0..ticks {
            self.gpu.hear(now);
            for index in 0..self.states.len() {
                if self.states[index].next == now {
                    self.release(index, now, rng);
                }
            }
            while self.decide(now, rng) {}
            let ended = self.gpu.tick(now, rng);
            if let Some(late) = ended.and_then(|group| self.end(&group, now + 1)) {
                return Some(late);
            }
            if let Some(late) = self.overdue(now + 1) {
                return Some(late);
            }
        }
        None
    }

    /// A frame begins or a job arrives, and the next is planned.
    fn release(&mut self, index: usize, now: u64, rng: &mut Rng) {
        let state = &mut self.states[index];
        let app = &state.app;
        if app.server {
            let pause = if rng.percent(50) { rng.between(1, 5) } else { rng.between(1, 2 * app.period) };
            state.next = now + pause;
            if state.server.backlog.len() < 12 {
                state.job_arrives(now, rng);
            }
            return;
        }
        let counts = state.counts.max(now);
        let skip = app.display.is_some() && rng.percent(10);
        if !skip {
            let late = if rng.percent(50) { app.jitter } else { rng.between(0, app.jitter) };
            let gap = app.gap.map(|(before, length)| (app.groups.len() - before, length));
            state.frames.push_back(Frame {
                id: state.begun,
                due: counts + app.deadline,
                there: Some(now + late),
                groups: app.groups.iter().copied().collect(),
                in_flight: 0,
                gap,
                gap_ends: 0,
            });
            state.begun += 1;
        }
        state.counts = counts + app.period;
        let early = app.display.is_none() && state.frames.len() < 3 && rng.percent(10);
        let paused = app.display.is_none() && rng.percent(20);
        state.next = match () {
            () if early => rng.between(now + 1, state.counts.max(now + 1)),
            () if paused => state.counts + rng.between(1, app.period),
            () => state.counts.max(now + 1),
        };
    }

    /// Dispatches one group, if one may go.
    fn decide(&mut self, now: u64, rng: &mut Rng) -> bool {
        let costs = self.costs;
        let ready = self.states.iter_mut().enumerate();
        let ready =
            ready.filter_map(|(index, state)| state.ready(now, &costs).map(|(due, c)| (due, index, c)));
        if let Some((due, index, length)) = ready.min()
            && self.gpu.has_slot(true)
            && self.passes(now, length, Some(due))
        {
            self.dispatch(index, due, length, now, rng);
            return true;
        }
        if !self.gpu.has_slot(false) || !rng.percent(self.best_effort) {
            return false;
        }
        let wanted = rng.between(1, self.longest);
        let length = if rng.percent(50) { Some(wanted) } else { None };
        let fits = |length: &u64| self.passes(now, *length, None);
        let found = match length {
            Some(length) => Some(length).filter(fits),
            None => (1..=self.longest).rev().find(fits),
        };
        if let Some(length) = found {
            self.gpu.dispatch(now, length, None, u64::MAX, rng);
        }
        found.is_some()
    }

    /// Whether all that binds a group of this length is met if it begins now.
    fn passes(&self, now: u64, length: u64, own: Option<u64>) -> bool {
        let (without, with) = (self.gpu.over(now), self.gpu.over_with(now, length));
        let longest = self.states.iter().map(|state| state.app.period.max(state.app.deadline)).max();
        let horizon = own.map_or_else(|| with + 12 * longest.unwrap_or(0), |due| due - 1);
        let mut promises: Vec<Promise> = Vec::with_capacity(64);
        for state in &self.states {
            state.promises(now, horizon, &self.costs, &mut promises);
        }
        if !self.costs.in_order {
            promises.extend(self.served_in_flight(now));
        }
        if let Some(own) = own {
            promises.retain(|promise| promise.due < own);
            return keeps(&mut promises, without, with);
        }
        match self.runs_empty(&promises, now, with, horizon) {
            Some(empty) => promises.retain(|promise| promise.release < empty),
            None => return false,
        }
        keeps(&mut promises, without, with)
    }

    /// When nothing is owed any more: from there on, the offline test speaks. `None` if that is
    /// too far away.
    fn runs_empty(&self, promises: &[Promise], now: u64, with: u64, horizon: u64) -> Option<u64> {
        // An idle server may come at once and ask for all of its budget.
        let servers = self.states.iter().filter(|state| state.app.server);
        let least =
            servers.map(|state| state.fluid_from(now) + state.app.period).max().unwrap_or(0).max(with);
        let mut idle = least;
        loop {
            let released = promises.iter().filter(|promise| promise.release < idle);
            let next = (with + released.map(|promise| promise.owed).sum::<u64>()).max(least);
            if next > horizon || next == idle {
                return (next <= horizon).then_some(next);
            }
            idle = next;
        }
    }

    /// What servers have in flight. Frames are in flight with what is left of them.
    fn served_in_flight(&self, now: u64) -> impl Iterator<Item = Promise> {
        let owners = self.gpu.groups.iter().filter_map(|group| group.owner);
        let served = owners.filter(|(app, _)| self.states[*app].app.server);
        served.map(move |(_, due)| Promise { release: now, due, owed: 0, least: 0, counts: true })
    }

    fn dispatch(&mut self, index: usize, due: u64, length: u64, now: u64, rng: &mut Rng) {
        let state = &mut self.states[index];
        let mut id = 0;
        if state.app.server {
            let (_, arrival) = state.server.backlog.pop_front().expect("ready");
            state.server.budget -= self.costs.served(length);
            state.server.in_flight += 1;
            id = due.max(arrival + state.app.period);
        } else if let Some(frame) = state.frames.iter_mut().find(|frame| !frame.groups.is_empty()) {
            frame.groups.pop_front();
            frame.in_flight += 1;
            id = frame.id;
            if frame.gap.is_some_and(|(left, _)| left == frame.groups.len()) {
                frame.there = None;
            }
        }
        self.gpu.dispatch(now, length, Some((index, id)), due, rng);
    }

    /// A group ended, truly.
    fn end(&mut self, group: &Running, now: u64) -> Option<Late> {
        let (index, id) = group.owner?;
        let state = &mut self.states[index];
        if state.app.server {
            state.server.in_flight -= 1;
            return (now >= id).then(|| late(index, id, now));
        }
        let at = state.frames.iter().position(|frame| frame.id == id)?;
        let frame = &mut state.frames[at];
        frame.in_flight -= 1;
        if frame.there.is_none() && frame.in_flight == 0 {
            let (_, length) = frame.gap.take().unwrap_or_default();
            frame.gap_ends = now + length;
            frame.there = Some(frame.gap_ends);
        }
        let due = frame.due;
        if frame.groups.is_empty() && frame.in_flight == 0 {
            state.frames.remove(at);
        }
        (now >= due).then(|| late(index, due, now))
    }

    fn overdue(&self, now: u64) -> Option<Late> {
        let frames = self.states.iter().enumerate();
        let mut frames = frames.flat_map(|(app, state)| state.frames.iter().map(move |frame| (app, frame)));
        frames.find(|(_, frame)| frame.due <= now).map(|(app, frame)| late(app, frame.due, now))
    }
}

/// Whether everything owed is met from `with` on that would be met from `without` on.
fn keeps(promises: &mut [Promise], without: u64, with: u64) -> bool {
    promises.sort_unstable_by_key(|promise| promise.due);
    let (mut owed, mut least) = (0, 0);
    promises.chunk_by(|one, next| one.due == next.due).all(|same| {
        owed += same.iter().map(|promise| promise.owed).sum::<u64>();
        least += same.iter().map(|promise| promise.least).sum::<u64>();
        let due = same[0].due;
        let asked = same.iter().any(|promise| promise.counts);
        !(asked && without + least < due && with + owed >= due)
    })
}
