//! A host that serves the channels of a runlist in turn, each for a timeslice.
//!
//! A channel has its turn until it drains or its timeslice ends; work that comes when it has just
//! drained waits for its next turn. What costs nothing needs no turn, and no GPU: it is over with the
//! work before it in its channel. With late ends, the end of a job that outlasts its timeslice is such work, and
//! needs one. Without rivals no channel is interrupted: at the end of its
//! timeslice its next one begins. A timeslice begins when the context is loaded.
//!
//! A GPU that executes in order beside divisible work has one channel for all other work, and one for each app
//! with divisible work.

use std::collections::VecDeque;

use takt_core::service::Level;
use takt_core::{AppId, Span, Time};
use takt_policies::channels::Channels;

use super::unit::Unit;
use super::{GpuEvent, Job, Taken, insert_by_arrival};
use crate::model::{GpuModel, GpuSpec};

/// What it costs to tell of the end of a job, and the least that is left of one that is interrupted:
/// next to nothing, but a turn.
const FENCE: Span = Span::from_ns(1);

/// How a channel is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// How often it occurs in the runlist.
    pub level: Level,
    /// Longest turn; at least a nanosecond.
    pub timeslice: Span,
    /// Its jobs cannot be interrupted: its turn ends with the job that runs.
    pub uninterruptible: bool,
    /// Its jobs are divisible work.
    pub divisible: bool,
    /// Its jobs are interrupted only after multiples of this time; zero for anywhere.
    pub quantum: Span,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            level: Level::default(),
            timeslice: Span::from_ms(1),
            uninterruptible: false,
            divisible: false,
            quantum: Span::ZERO,
        }
    }
}

/// Serves the channels of a runlist in turn.
#[derive(Clone, Debug)]
pub struct Host {
    unit: Unit,
    capacity: usize,
    /// Dispatched jobs on their way to their channels.
    coming: VecDeque<(Time, Job)>,
    /// By slot number; in order, that of all other work comes first.
    channels: Vec<HostState>,
    /// There is divisible work.
    divides: bool,
    /// All work that is not divisible has one channel.
    in_order: bool,
    /// Slots whose work is divisible, where there is one channel for all others.
    divided: Vec<bool>,
    runlist: Channels,
    turn: Option<Turn>,
    /// Jobs in all channels.
    queued: usize,
    /// Those of them that cost nothing.
    free: usize,
    /// The end of a job that outlasts its timeslice is work for a turn of its own.
    late_ends: bool,
    /// Whose turn was found to be next when the timeslice of the job that runs was over.
    next: Option<AppId>,
}

#[derive(Clone, Debug, Default)]
struct HostState {
    channel: Channel,
    jobs: VecDeque<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    app: AppId,
    /// When its timeslice ends; `NEVER` if that has been and the job that runs may not be
    /// interrupted.
    ends: Time,
    /// Its timeslice is over, and a piece of the job that runs is not.
    over: bool,
}

impl Host {
    pub(super) fn new(spec: &GpuSpec) -> Self {
        Self {
            unit: Unit::new(spec),
            capacity: spec.queue.max(1) as usize,
            coming: VecDeque::new(),
            channels: Vec::new(),
            divides: spec.divisible.is_some(),
            in_order: spec.model == GpuModel::InOrder,
            divided: Vec::new(),
            runlist: Channels::default(),
            turn: None,
            queued: 0,
            free: 0,
            late_ends: spec.late_ends,
            next: None,
        }
    }

    pub(super) fn set_channel(&mut self, app: AppId, channel: Channel) {
        if self.in_order {
            self.divided.resize(self.divided.len().max(app.index() + 1), false);
            self.divided[app.index()] = channel.divisible;
        }
        let state = self.state(self.channel_of(app));
        let before = core::mem::replace(&mut state.channel, channel);
        // A list that is read from its beginning may give divisible work one turn more than others are charged for.
        if !self.divides || before.level != channel.level {
            self.rebuild();
        }
    }

    /// The channel of an app.
    fn channel_of(&self, app: AppId) -> AppId {
        match self.divided.get(app.index()) {
            _ if !self.in_order => app,
            Some(true) => AppId(app.0 + 1),
            _ => AppId(0),
        }
    }

    /// The state of a channel, made on first sight.
    fn state(&mut self, app: AppId) -> &mut HostState {
        if self.channels.len() <= app.index() {
            self.channels.resize_with(app.index() + 1, HostState::default);
            self.rebuild();
        }
        &mut self.channels[app.index()]
    }

    fn rebuild(&mut self) {
        let levels = self.channels.iter().map(|state| state.channel.level);
        self.runlist.replace((0..).map(AppId).zip(levels));
    }

    pub(super) fn dispatch(&mut self, arrives: Time, job: Job) {
        // A process hands over one after the other, independently of others.
        let channel = self.channel_of(job.app);
        let mut coming = core::mem::take(&mut self.coming);
        insert_by_arrival(&mut coming, 0, (arrives, job), |other| self.channel_of(other.app) == channel);
        self.coming = coming;
    }

    pub(super) fn next_at(&self) -> Time {
        let mut at = self.unit.next_at();
        if let Some((arrives, _)) = self.coming.front().filter(|_| self.queued < self.capacity) {
            at = at.min(*arrives);
        }
        if self.queued > 0 {
            at = at.min(self.unit.free_at());
        }
        match self.turn {
            Some(turn) if self.unit.running().is_some() => at.min(turn.ends),
            _ => at,
        }
    }

    pub(super) fn step(&mut self, now: Time) -> Option<GpuEvent> {
        let executes_from = self.unit.stalled_until().max(now);
        if let Some(event) = self.unit.step(now) {
            if let GpuEvent::Finished { job, started } = event
                && let Some(taken) = self.end_later(job, started)
            {
                return Some(GpuEvent::Suspended(taken));
            }
            match (event, &mut self.turn) {
                (GpuEvent::Finished { job, .. }, _) => self.finished(now, self.channel_of(job.app)),
                // No time of a turn passes in a stall.
                (GpuEvent::Stalled { until }, Some(turn)) => turn.ends += until.since(executes_from),
                _ => {}
            }
            return Some(event);
        }
        if let Some((arrives, job)) = self.coming.front().copied()
            && arrives <= now
            && self.queued < self.capacity
        {
            self.coming.pop_front();
            self.state(self.channel_of(job.app)).jobs.push_back(job);
            self.queued += 1;
            self.free += usize::from(job.cost == Span::ZERO);
            return Some(GpuEvent::Queued(job));
        }
        self.pass_free(now).or_else(|| self.end_turn(now)).or_else(|| self.serve(now))
    }

    /// Ends a job that costs nothing and is the first in its channel.
    fn pass_free(&mut self, now: Time) -> Option<GpuEvent> {
        if self.free == 0 {
            return None;
        }
        let mut first = self.channels.iter().filter_map(|state| state.jobs.front());
        let job = *first.find(|job| job.cost == Span::ZERO)?;
        self.free -= 1;
        self.finished(now, self.channel_of(job.app));
        Some(GpuEvent::Finished { job, started: now })
    }

    /// Leaves the end of a job to its channel's next turn, if this one should have been over by now and
    /// others wait for theirs.
    fn end_later(&mut self, job: Job, started: Time) -> Option<Taken> {
        let channel = self.channel_of(job.app);
        let jobs = &mut self.channels[channel.index()].jobs;
        // The end itself is not put off again.
        let late = self.late_ends && job.cost != FENCE && self.queued > jobs.len();
        self.turn.take_if(|turn| late && turn.ends == Time::NEVER)?;
        let job = Job { cost: FENCE, ..job };
        *jobs.front_mut()? = job;
        Some(Taken { job, started: Some(started) })
    }

    fn finished(&mut self, now: Time, app: AppId) {
        let jobs = &mut self.channels[app.index()].jobs;
        jobs.pop_front();
        self.queued -= 1;
        let over = |turn: &Turn| turn.over || jobs.is_empty() || turn.ends <= now || turn.ends == Time::NEVER;
        self.turn.take_if(|turn| turn.app == app && over(turn));
    }

    /// Interrupts the job that runs if its timeslice is over and others wait.
    fn end_turn(&mut self, now: Time) -> Option<GpuEvent> {
        let turn = self.turn.as_mut().filter(|turn| turn.ends <= now)?;
        self.unit.running()?;
        let state = &mut self.channels[turn.app.index()];
        if self.queued == state.jobs.len() {
            *turn = Turn { ends: now + state.channel.timeslice, over: false, ..*turn };
            return None;
        }
        if let Some(rest) = rest_of_piece(self.unit.ran(now), state.channel.quantum) {
            *turn = Turn { ends: now + rest, over: true, ..*turn };
            return None;
        }
        if state.channel.uninterruptible {
            turn.ends = Time::NEVER;
            if self.late_ends {
                self.next = self.advance();
            }
            return None;
        }
        let mut taken = self.unit.interrupt(now)?;
        taken.job.cost = taken.job.cost.max(FENCE);
        if let Some(first) = state.jobs.front_mut() {
            *first = taken.job;
        }
        self.turn = None;
        Some(GpuEvent::Suspended(taken))
    }

    /// The next entry of the runlist that has work.
    fn advance(&mut self) -> Option<AppId> {
        let channels = &self.channels;
        self.runlist.advance(|app| !channels[app.index()].jobs.is_empty())
    }

    /// Goes on in the turn, or with the next one.
    fn serve(&mut self, now: Time) -> Option<GpuEvent> {
        if self.queued == 0 || self.unit.free_at() > now {
            return None;
        }
        let app = match self.turn {
            Some(turn) => turn.app,
            None => {
                // Who was next may have been the one that has just ended.
                let next = self.next.take().filter(|app| !self.channels[app.index()].jobs.is_empty());
                let app = next.or_else(|| self.advance())?;
                let state = &self.channels[app.index()];
                let loading = self.unit.loading(state.jobs.front()?.app);
                let ends = now + loading + state.channel.timeslice;
                self.turn = Some(Turn { app, ends, over: false });
                app
            }
        };
        let job = self.channels[app.index()].jobs.front().copied()?;
        self.unit.begin(now, job)
    }
}

/// What is left of the piece that runs, if something is.
fn rest_of_piece(ran: Span, quantum: Span) -> Option<Span> {
    let into = ran.as_ns().checked_rem(quantum.as_ns())?;
    (into > 0).then(|| quantum.saturating_sub(Span::from_ns(into)))
}
