//! The modelled app: wakes when released, spends CPU time, submits its groups, sleeps.

use std::collections::VecDeque;

use takt_core::belief::{Belief, Uncut};
use takt_core::{AppParams, Cost, Estimate, GroupId, GroupKind, Span, Time};
use takt_predict::adapt::Command;

use crate::memory::{Memory, look};
use crate::model::{AppSpec, End, Jobs, Outliers, Pace, Phase, Prediction, RecordedGroup, Scenario, Work};
use crate::rng::Rng;

/// A frame that waits for nothing and costs nothing takes this long all the same, or time would
/// never pass.
const UNPACED_FRAME_MIN: Span = Span::from_us(1);

/// A group about to be submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// When, counted from the start of the frame.
    pub(crate) after: Span,
    pub(crate) kind: GroupKind,
    pub(crate) cost: Span,
    pub(crate) estimate: Estimate,
    /// CPU time between its dispatch and its way to the GPU.
    make: Span,
    /// What it looks like, if its estimate comes from experience.
    look: Option<Command>,
}

impl Planned {
    /// Whether it is a swap that gives the GPU nothing to do, as is known before.
    pub(crate) fn is_idle_swap(&self) -> bool {
        self.kind == GroupKind::Swap && self.cost == Span::ZERO && self.estimate.span() == Span::ZERO
    }
}

/// What an app is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Not attached yet.
    Away,
    /// Waits for its release.
    Asleep,
    /// Starts a frame at its next wake-up.
    Waking,
    /// Submits its planned groups one by one.
    Submitting,
    /// Waits for the end of a group since that time.
    Waiting(GroupId, Time),
    /// Too many frames of it have ended and are not done; goes on when one is.
    Ahead,
    /// Its queue is full, or it submits one group at a time; goes on when one was dispatched.
    Blocked,
    /// Will never submit again.
    Done,
}

/// A simulated app at work.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    spec: &'a AppSpec,
    rng: Rng,
    pub(crate) state: State,
    pub(crate) params: AppParams,
    plan: Vec<Planned>,
    planned: usize,
    frame_start: Time,
    recorded: usize,
    memory: Option<Memory>,
    /// How far its estimates are believed, if the scenario wants that.
    pub(crate) belief: Option<Belief>,
    blocked: Time,
    /// When its next job is released, if its own clock does that.
    next_job: Time,
    /// Frames of the app that it begins its own with, for which it has not begun one.
    calls: u32,
    /// It has called those that begin frames with it.
    called: bool,
    /// Groups submitted and not dispatched, with what they really cost and what is left to make them;
    /// none if the group was taken back when it was done already.
    pub(crate) submitted: VecDeque<(GroupId, Option<(Span, Span)>)>,
}

impl<'a> Client<'a> {
    /// An app of `scenario` that has not joined yet; its random numbers are those of `stream`.
    pub(crate) fn new(spec: &'a AppSpec, scenario: &Scenario, stream: u64) -> Self {
        Self {
            spec,
            rng: Rng::new(scenario.seed, stream),
            state: State::Away,
            params: spec.params,
            plan: Vec::new(),
            planned: 0,
            frame_start: Time::ZERO,
            recorded: 0,
            next_job: Time::ZERO,
            calls: 0,
            called: false,
            memory: Memory::of(spec, scenario.gpu.switch),
            belief: scenario.belief.then(|| {
                let mut belief = Belief::default();
                belief.set_uncut(Uncut::Run);
                belief
            }),
            blocked: Time::ZERO,
            submitted: VecDeque::new(),
        }
    }

    pub(crate) fn spec(&self) -> &'a AppSpec {
        self.spec
    }

    /// Attaches at `now`; says when it starts by itself.
    pub(crate) fn join(&mut self, now: Time) -> Time {
        self.state = State::Asleep;
        self.set_params(self.params);
        if let Pace::Periodic(jobs) = self.spec.pace {
            self.state = State::Waking;
            self.next_job = now + jobs.offset;
            return self.next_job;
        }
        Time::NEVER
    }

    /// It has these parameters from now on.
    pub(crate) fn set_params(&mut self, params: AppParams) {
        self.params = params;
        if let Some(belief) = &mut self.belief {
            belief.reserve(params.etpf);
        }
    }

    /// Everything of its frame is submitted; says when it starts the next one by itself.
    pub(crate) fn rest(&mut self, now: Time) -> Time {
        self.state = State::Waking;
        match self.spec.pace {
            Pace::Released => {
                self.state = State::Asleep;
                Time::NEVER
            }
            Pace::Unpaced => now + UNPACED_FRAME_MIN,
            Pace::Periodic(_) => self.next_job.max(now),
            Pace::With(_) => {
                self.state = State::Asleep;
                self.answer(now)
            }
        }
    }

    /// Whether those that begin frames with it are to begin one; once for each of its frames.
    pub(crate) fn calls(&mut self) -> bool {
        !core::mem::replace(&mut self.called, true)
    }

    /// The app that it begins frames with begins one; says when it starts, if it can.
    pub(crate) fn call(&mut self, now: Time) -> Option<Time> {
        self.calls = self.calls.saturating_add(1);
        (self.state == State::Asleep).then(|| self.answer(now))
    }

    /// Starts a frame for one of that app, if there is one left.
    fn answer(&mut self, now: Time) -> Time {
        if self.calls == 0 {
            return Time::NEVER;
        }
        self.calls -= 1;
        self.state = State::Waking;
        now
    }

    /// Starts a frame at `now`; says when its first group comes.
    pub(crate) fn start_frame(&mut self, now: Time) -> Time {
        self.frame_start = now;
        if let Pace::Periodic(Jobs { period, .. }) = self.spec.pace {
            self.next_job += period;
        }
        self.planned = 0;
        self.called = false;
        self.plan.clear();
        if let Some(End::Leave(at)) = self.spec.end
            && now >= at
        {
            self.plan.push(Planned {
                after: Span::ZERO,
                kind: GroupKind::Exit,
                cost: Span::ZERO,
                estimate: Estimate::default(),
                make: Span::ZERO,
                look: None,
            });
        } else {
            match &self.spec.work {
                Work::Drawn { .. } => self.draw_frame(now),
                Work::Recorded(groups) => self.replay_frame(groups),
            }
        }
        self.state = State::Submitting;
        self.next_submission().unwrap_or(now)
    }

    /// The group to submit next.
    pub(crate) fn next_planned(&self) -> Option<Planned> {
        let mut planned = self.plan.get(self.planned).copied()?;
        // Experience is asked only now: groups may have ended since the frame began.
        if let (Some(memory), Some(look)) = (&self.memory, planned.look) {
            planned.estimate = memory.estimate(look, self.model(self.frame_start));
        }
        Some(planned)
    }

    /// Its frame ends without a group at `now`, where a swap of no length was planned; says when it goes on.
    pub(crate) fn end_frame(&mut self, now: Time) -> Time {
        self.planned += 1;
        if let Some(belief) = &mut self.belief {
            belief.end_frame();
        }
        self.next_submission().map_or_else(|| self.rest(now), |at| at.max(now))
    }

    /// `planned` was accepted at `now` as that group; says how far its estimate is believed.
    pub(crate) fn accepted(&mut self, now: Time, group: GroupId, planned: &Planned) -> Estimate {
        self.submitted.push_back((group, Some((planned.cost, planned.make))));
        self.planned += 1;
        if let (Some(memory), Some(look)) = (&mut self.memory, planned.look) {
            memory.submitted(group, look);
        }
        match &mut self.belief {
            Some(belief) => belief.submitted(now, group, planned.kind, planned.estimate),
            None => planned.estimate,
        }
    }

    /// One of its groups has ended; `switched` if one of another app ran before it.
    pub(crate) fn completed(&mut self, now: Time, group: GroupId, cost: Cost, switched: bool) {
        if let Some(belief) = &mut self.belief {
            belief.completed(now, group, cost);
        }
        if let Some(memory) = &mut self.memory {
            memory.completed(group, cost, switched);
        }
    }

    /// How groups of a frame that began at `start` are predicted.
    fn model(&self, start: Time) -> &'a Prediction {
        let phase = self.phase(start);
        phase.and_then(|phase| phase.prediction.as_ref()).unwrap_or(&self.spec.prediction)
    }

    /// It waits from `now` until one of its groups is dispatched.
    pub(crate) fn block(&mut self, now: Time) {
        self.state = State::Blocked;
        self.blocked = now;
    }

    /// One of its groups was dispatched; says when it goes on.
    pub(crate) fn unblock(&mut self, now: Time) -> Time {
        if self.spec.synchronous {
            // It slept, so what it has to compute is still to be computed.
            self.frame_start += now.since(self.blocked);
        }
        match self.next_submission() {
            Some(at) => {
                self.state = State::Submitting;
                at.max(now)
            }
            None => self.rest(now),
        }
    }

    /// A group of it is known to be over; says when it goes on, if it waited for that one.
    pub(crate) fn ended(&mut self, now: Time, group: GroupId) -> Option<Time> {
        match self.state {
            State::Waiting(awaited, since) if awaited == group => {
                // Nothing was computed while it waited.
                self.frame_start += now.since(since);
                self.state = State::Submitting;
                Some(self.next_submission().map_or_else(|| self.rest(now), |at| at.max(now)))
            }
            _ => None,
        }
    }

    /// When the next group comes, if the frame has one left.
    pub(crate) fn next_submission(&self) -> Option<Time> {
        self.next_planned().map(|planned| self.frame_start + planned.after)
    }

    fn phase(&self, now: Time) -> Option<&'a Phase> {
        self.spec.phases.iter().find(|phase| phase.from <= now && now < phase.until)
    }

    fn draw_frame(&mut self, now: Time) {
        let Work::Drawn { parts, swap } = &self.spec.work else {
            return;
        };
        let phase = self.phase(now);
        let (gpu_permille, groups_permille) =
            phase.map_or((1000, 1000), |phase| (phase.gpu_permille, phase.groups_permille));
        let scaled = |cost: Span| if gpu_permille == 1000 { cost } else { cost.scaled(gpu_permille, 1000) };
        let delay = self.spec.submit_delay.draw(&mut self.rng);
        let cpu = phase.and_then(|phase| phase.cpu).unwrap_or(self.spec.cpu).draw(&mut self.rng);
        for (place, part) in parts.iter().enumerate() {
            let drawn = self.rng.between(part.count.0.into(), part.count.1.into());
            let count =
                if groups_permille == 1000 { drawn } else { drawn * u64::from(groups_permille) / 1000 };
            for _ in 0..count {
                let (size, cost) = part.cost.draw(&mut self.rng);
                self.plan(part.kind, scaled(cost), look(place, size));
            }
        }
        let (size, cost) = swap.draw(&mut self.rng);
        self.plan(GroupKind::Swap, scaled(cost), look(parts.len(), size));
        // The CPU time is spent evenly: before each group comes its share.
        let groups = self.plan.len() as u64;
        for (before, planned) in (1..).zip(&mut self.plan) {
            planned.after = delay + Span::from_ns(cpu.as_ns() / groups * before);
        }
    }

    fn replay_frame(&mut self, groups: &[RecordedGroup]) {
        let mut after = self.spec.submit_delay.draw(&mut self.rng);
        for place in 0..groups.len() {
            let Some(group) = groups.get(self.recorded) else {
                return;
            };
            self.recorded = (self.recorded + 1) % groups.len();
            after += group.delay;
            self.plan(group.kind, group.cost, look(place, 0));
            if let Some(planned) = self.plan.last_mut() {
                planned.after = after;
                planned.make = group.make;
                if let Some(predicted) = group.predicted {
                    planned.estimate = Estimate::new(predicted);
                    planned.look = None;
                }
            }
            if group.kind.ends_frame() {
                return;
            }
        }
    }

    fn plan(&mut self, kind: GroupKind, cost: Span, look: Command) {
        let model = self.model(self.frame_start);
        let estimate = predict(model, cost, &mut self.rng);
        let look = model.history.map(|_| look);
        self.plan.push(Planned { after: Span::ZERO, kind, cost, estimate, make: Span::ZERO, look });
    }
}

/// What the model predicts for a group that really takes `cost`.
fn predict(model: &Prediction, cost: Span, rng: &mut Rng) -> Estimate {
    let error = match model.outliers {
        Some(Outliers { share_ppm, error_ns: (lo, hi) }) if rng.chance(share_ppm) => {
            rng.between_signed(lo, hi)
        }
        _ => {
            let noise = i64::from(model.noise_permille);
            let relative = if noise == 0 { 0 } else { rng.between_signed(-1000 * noise, 1000 * noise) };
            let absolute = i128::from(cost.as_signed_ns()) * i128::from(relative) / 1_000_000;
            i64::try_from(absolute).unwrap_or(i64::MAX).saturating_add(model.bias_ns)
        }
    };
    let Some(scale) = model.scale_permille else {
        return Estimate::UNBOUNDED;
    };
    let wrong = cost.as_signed_ns().saturating_add(error).max(0);
    let floored = Span::from_ns(wrong.cast_unsigned()).max(model.floor);
    Estimate::new(if scale == 1000 { floored } else { floored.scaled(scale, 1000) })
}
