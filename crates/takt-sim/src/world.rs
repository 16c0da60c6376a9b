//! The engine: everything that happens, in order of time.
//!
//! There are few sources of events (the GPU, the scheduler's time-outs, the script, revised
//! estimates, the apps), each with the time of its next one. The earliest goes first, ties in that order and by slot,
//! so a run has exactly one history. Below some dozens of sources a linear scan beats any heap.

mod apps;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;

use takt_core::belief::{Belief, Revision};
use takt_core::{Action, AppId, Cost, Event, GroupId, Period, Scheduler, Span, Stats, Time, policy};
use takt_trace::{AppMeta, GpuRecord, JobsMeta, Meta, Metrics, Observer, Record, RunFacts, Summary};

use crate::client::{Client, State};
use crate::gpu::{Gpu, GpuEvent, Job, Taken, insert_by_arrival};
use crate::hash::EventHash;
use crate::model::{AppSpec, End, Pace, Scenario};
use crate::rng::Rng;
use script::{Step, script};

/// A run of a scenario.
#[derive(Debug)]
pub struct World<'a, O> {
    scenario: &'a Scenario,
    scheduler: Scheduler,
    gpu: Gpu,
    clients: Vec<Client<'a>>,
    /// Apps that begin frames with those of another one: that one, and itself.
    followers: Vec<(usize, usize)>,
    script: Vec<(Time, Step)>,
    scripted: usize,
    /// Completions on their way to the scheduler, and when they arrive.
    notices: VecDeque<(Time, Notice)>,
    /// Whose group ended last.
    served: Option<AppId>,
    /// How long preempted groups ran already.
    ran: BTreeMap<GroupId, Span>,
    /// Time of the next event of each source: GPU, notices, scheduler, script, revisions, then the apps.
    next: Vec<Time>,
    now: Time,
    /// The scheduler was told something at this instant and has not been asked yet.
    told: bool,
    groups: u64,
    rng: Rng,
    hash: EventHash,
    events: u64,
    observer: O,
}

const GPU: usize = 0;
const NOTICE: usize = 1;
const TIMEOUT: usize = 2;
const SCRIPT: usize = 3;
const REVISION: usize = 4;
const APPS: usize = 5;

/// A completion.
#[derive(Clone, Copy, Debug)]
struct Notice {
    app: AppId,
    group: GroupId,
    finished: Time,
    cost: Cost,
    /// A group of another app ran before.
    switched: bool,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Hash over all records.
    pub event_hash: u64,
    /// Number of records.
    pub events: u64,
    /// The scheduler's counters.
    pub stats: Stats,
    /// When the run ended.
    pub end: Time,
}

/// Plays `scenario` to its end.
pub fn run<O: Observer>(scenario: &Scenario, observer: O) -> Outcome {
    let mut world = World::new(scenario, observer);
    world.run_until(Time::ZERO + scenario.duration);
    world.outcome()
}

/// The same, and the scheduler is told these events besides, at their times.
pub(crate) fn run_with<O: Observer>(scenario: &Scenario, events: &[(Time, Event)], observer: O) -> Outcome {
    let mut world = World::new(scenario, observer);
    world.add(events);
    world.run_until(Time::ZERO + scenario.duration);
    world.outcome()
}

/// Plays `scenario` to its end; the figures of the run.
pub fn summarize(scenario: &Scenario) -> Summary {
    let mut metrics = Metrics::new(meta(scenario), scenario.warm_up);
    let outcome = run(scenario, &mut metrics);
    metrics.finish(outcome.facts(scenario))
}

impl Outcome {
    /// What a summary says of the run as a whole.
    pub fn facts(&self, scenario: &Scenario) -> RunFacts {
        let Self { event_hash, stats, end, .. } = *self;
        RunFacts { seed: scenario.seed, event_hash, stats, end }
    }
}

/// What the numbers in the records of `scenario` stand for.
pub fn meta(scenario: &Scenario) -> Meta {
    let app = |spec: &AppSpec| AppMeta {
        name: spec.name.clone(),
        priority: spec.params.priority,
        fps_mhz: spec.fps_mhz,
        jobs: jobs_meta(spec),
    };
    Meta {
        scenario: scenario.name.clone(),
        policy: scenario.policy.clone(),
        refresh: scenario.config.refresh,
        apps: scenario.apps.iter().map(app).collect(),
    }
}

fn jobs_meta(spec: &AppSpec) -> Option<JobsMeta> {
    let Pace::Periodic(jobs) = spec.pace else {
        return None;
    };
    let until = match spec.end {
        Some(End::Leave(at) | End::Crash { at, .. } | End::Hang(at)) => at,
        None => Time::NEVER,
    };
    let first = spec.join + jobs.offset;
    Some(JobsMeta { first, period: jobs.period, deadline: jobs.deadline, until })
}

impl<'a, O: Observer> World<'a, O> {
    /// The world before anything happened.
    pub fn new(scenario: &'a Scenario, observer: O) -> Self {
        let policy =
            takt_policies::by_name(&scenario.policy).unwrap_or_else(|| Box::new(policy::Timeline::new()));
        Self::with_policy(scenario, policy, observer)
    }

    /// The same under another policy than the scenario's.
    pub fn with_policy(scenario: &'a Scenario, policy: Box<dyn policy::Policy>, observer: O) -> Self {
        let mut config = scenario.config;
        config.gpu = scenario.gpu.gpu(config.tuning.timeslice);
        config.divisible = scenario.gpu.divisible(config.tuning.timeslice);
        config.singly |= config.gpu.is_time_shared() && scenario.apps.iter().all(|app| app.synchronous);
        config.apps_max = u32::try_from(scenario.apps.len()).unwrap_or(u32::MAX).max(1);
        let clients =
            (1..).zip(&scenario.apps).map(|(stream, spec)| Client::new(spec, scenario, stream)).collect();
        let mut world = Self {
            scenario,
            scheduler: Scheduler::new(config, policy),
            gpu: Gpu::new(&scenario.gpu),
            clients,
            followers: followers(scenario),
            script: script(scenario),
            scripted: 0,
            notices: VecDeque::new(),
            served: None,
            ran: BTreeMap::new(),
            next: vec![Time::NEVER; APPS + scenario.apps.len()],
            now: Time::ZERO,
            told: false,
            groups: 0,
            rng: Rng::new(scenario.seed, 0),
            hash: EventHash::new(),
            events: 0,
            observer,
        };
        if config.divisible.is_some() {
            // All channels are there from the start: a list that grows is read from its beginning, and the
            // first app would have one turn more than it is charged for.
            (0..scenario.apps.len()).for_each(|index| world.set_channel(index));
        }
        world.schedule_script();
        world.next[GPU] = world.gpu.next_at();
        world
    }

    /// Plays until `end` (excluded).
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (source, at) = self.earliest();
            if at > self.now && self.told {
                // All that happens at this instant has been told: let the scheduler decide.
                self.told = false;
                self.obey();
                continue;
            }
            if at >= end {
                self.now = self.now.max(end);
                return;
            }
            self.now = at;
            match source {
                GPU => self.step_gpu(),
                NOTICE => self.deliver_notice(),
                TIMEOUT => self.timeout(),
                SCRIPT => self.step_script(),
                REVISION => self.revise(),
                _ => self.wake(source - APPS),
            }
        }
    }

    /// Where the run stands.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            event_hash: self.hash.finish(),
            events: self.events,
            stats: self.scheduler.stats(),
            end: self.now,
        }
    }

    /// The scheduler under test.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    #[inline]
    fn earliest(&self) -> (usize, Time) {
        let mut best = (0, self.next[0]);
        for (source, &at) in self.next.iter().enumerate().skip(1) {
            if at < best.1 {
                best = (source, at);
            }
        }
        best
    }

    #[inline]
    fn record(&mut self, record: Record) {
        self.events += 1;
        self.hash.add(self.now, &record);
        self.observer.record(self.now, &record);
    }

    fn tell(&mut self, event: Event) {
        self.record(Record::In(event));
        let before = self.scheduler.current_period();
        self.scheduler.handle_event(self.now, event);
        self.note_vsync(before);
    }

    fn timeout(&mut self) {
        let before = self.scheduler.current_period();
        self.scheduler.handle_timeout(self.now);
        self.note_vsync(before);
        self.next[TIMEOUT] = Time::NEVER;
    }

    fn note_vsync(&mut self, before: Period) {
        self.told = true;
        let period = self.scheduler.current_period();
        if period != before {
            self.record(Record::Vsync(period));
        }
    }

    /// Does what the scheduler says.
    fn obey(&mut self) {
        while let Some(action) = self.scheduler.poll_action() {
            self.record(Record::Out(action));
            match action {
                Action::Dispatch { app, group, .. } => self.dispatch(app, group),
                Action::Release { app, at } => self.release(app, at),
                Action::Refused { app, group: None, .. } => self.refused(app),
                Action::Preempt { app, group } => self.take_back(app, group),
                Action::Hold { app, reason } => {
                    if let Some(belief) = self.belief(app) {
                        belief.held(reason);
                    }
                }
                Action::Refused { .. }
                | Action::Ranked { .. }
                | Action::Missed { .. }
                | Action::Left { .. } => {}
                // The figures of such a run would mean nothing.
                Action::Broken(broken) => {
                    let Scenario { name, seed, .. } = self.scenario;
                    panic!("{name}, seed {seed}, at {} ns: {broken}", self.now.as_ns());
                }
                Action::FrameDone(done) => self.frame_done(done.app),
                Action::Lost { app, group, .. } => self.lost(app, group),
            }
        }
        self.next[TIMEOUT] = self.scheduler.poll_timeout().map_or(Time::NEVER, |at| at.max(self.now));
        self.schedule_revision();
    }

    fn belief(&mut self, app: AppId) -> Option<&mut Belief> {
        self.clients[app.index()].belief.as_mut()
    }

    fn schedule_revision(&mut self) {
        if self.scenario.belief {
            let due = self.clients.iter().filter_map(|client| client.belief.as_ref()?.next_timeout()).min();
            self.next[REVISION] = due.map_or(Time::NEVER, |at| at.max(self.now));
        }
    }

    /// Estimates that are due are revised, as the daemon does in each turn.
    fn revise(&mut self) {
        self.next[REVISION] = Time::NEVER;
        for app in (0..self.clients.len()).map(slot) {
            let now = self.now;
            if let Some(Revision { group, estimate }) = self.belief(app).and_then(|belief| belief.revise(now))
            {
                self.tell(Event::Revise { app, group, estimate });
            }
        }
    }

    /// An app that may not join gives up; one that may not change goes on as before.
    fn refused(&mut self, app: AppId) {
        if self.scheduler.lanes().iter().all(|lane| lane.app != app) && app.index() < self.clients.len() {
            self.stop(app.index());
        }
    }

    fn dispatch(&mut self, app: AppId, group: GroupId) {
        let client = &mut self.clients[app.index()];
        if let Some(belief) = &mut client.belief {
            belief.granted(self.now, group);
        }
        let Some((_, cost)) = client.submitted.pop_front() else {
            return;
        };
        if client.state == State::Blocked {
            self.next[APPS + app.index()] = client.unblock(self.now);
        }
        // What was done when it was taken back need not be done again: its completion is coming.
        let Some((cost, make)) = cost else {
            return;
        };
        if self.scenario.gpu.divisible.is_some() {
            self.set_channel(app.index());
        }
        let delay = self.scenario.gpu.dispatch_delay.draw(&mut self.rng);
        self.gpu.dispatch(self.now + delay + make, Job { app, group, cost });
        self.next[GPU] = self.gpu.next_at();
    }

    /// An app that was too far ahead goes on.
    fn frame_done(&mut self, app: AppId) {
        let client = &mut self.clients[app.index()];
        if client.state == State::Ahead {
            client.state = State::Submitting;
            self.next[APPS + app.index()] = self.now;
        }
    }

    /// Its completion did not come.
    fn lost(&mut self, app: AppId, group: GroupId) {
        if let Some(belief) = self.belief(app) {
            belief.lost(group);
        }
        self.ended(app, group);
    }

    /// An app that waited for this group goes on.
    fn ended(&mut self, app: AppId, group: GroupId) {
        if let Some(at) = self.clients[app.index()].ended(self.now, group) {
            self.next[APPS + app.index()] = at;
        }
    }

    fn take_back(&mut self, app: AppId, group: GroupId) {
        let taken = self.gpu.take_back(self.now, group);
        let left = taken.map(|taken| (taken.job.cost, Span::ZERO));
        let client = &mut self.clients[app.index()];
        client.submitted.push_front((group, left));
        if let Some(belief) = &mut client.belief {
            belief.preempted(self.now, group);
        }
        if let Some(Taken { started, .. }) = taken {
            self.note_run(group, started);
            self.record(Record::Gpu(GpuRecord::Preempted { app, group, started, stays: false }));
            self.next[GPU] = self.gpu.next_at();
        }
    }

    /// A group ran from `started` until now and is not done.
    fn note_run(&mut self, group: GroupId, started: Option<Time>) {
        let ran = started.map_or(Span::ZERO, |started| self.now.since(started));
        *self.ran.entry(group).or_default() += ran;
    }

    fn release(&mut self, app: AppId, at: Time) {
        let client = &mut self.clients[app.index()];
        if client.state == State::Asleep && !matches!(client.spec().pace, Pace::With(_)) {
            client.state = State::Waking;
            self.next[APPS + app.index()] = at.max(self.now);
        }
    }

    fn step_gpu(&mut self) {
        while let Some(event) = self.gpu.step(self.now) {
            let record = match event {
                GpuEvent::Queued(job) => GpuRecord::Queued { app: job.app, group: job.group },
                GpuEvent::Started(job) => GpuRecord::Started { app: job.app, group: job.group },
                GpuEvent::Finished { job, started } => {
                    let before = self.ran.remove(&job.group).unwrap_or_default();
                    self.notice(job, Cost::new(before + self.now.since(started)));
                    GpuRecord::Finished { app: job.app, group: job.group, started }
                }
                GpuEvent::Suspended(Taken { job: Job { app, group, .. }, started }) => {
                    self.note_run(group, started);
                    GpuRecord::Preempted { app, group, started, stays: true }
                }
                GpuEvent::Stalled { until } => GpuRecord::Stalled { until },
                GpuEvent::Clock { permille } => GpuRecord::Clock { permille },
            };
            self.record(Record::Gpu(record));
        }
        self.next[GPU] = self.gpu.next_at();
    }

    /// A completion sets out for the scheduler, unless it gets lost.
    fn notice(&mut self, job: Job, cost: Cost) {
        let spec = &self.scenario.gpu;
        // What cost nothing changed no context.
        let switched = cost.span() > Span::ZERO && self.served.replace(job.app) != Some(job.app);
        if self.rng.chance(spec.lost_completion_ppm) {
            return;
        }
        let arrives = polled(self.now + spec.completion_delay.draw(&mut self.rng), spec.completion_poll);
        // Where apps have turns, each tells of its own groups; else one end is seen after the other.
        let apart = spec.is_time_shared();
        let notice = Notice { app: job.app, group: job.group, finished: self.now, cost, switched };
        insert_by_arrival(&mut self.notices, 0, (arrives, notice), |other| !apart || other.app == job.app);
        self.next[NOTICE] = self.notices[0].0;
    }

    fn deliver_notice(&mut self) {
        if let Some((_, notice)) = self.notices.pop_front() {
            let Notice { app, group, finished, cost, switched } = notice;
            let client = &mut self.clients[app.index()];
            // If it was taken back when it was done, it waits no longer.
            client.submitted.pop_front_if(|(first, _)| *first == group);
            client.completed(self.now, group, cost, switched);
            self.ended(app, group);
            self.tell(Event::Complete { group, finished, cost, frames: 0 });
        }
        self.next[NOTICE] = self.notices.front().map_or(Time::NEVER, |(at, _)| *at);
    }
}

/// When a look every `interval` finds what happened at `at`.
#[inline]
fn polled(at: Time, interval: Span) -> Time {
    if interval == Span::ZERO {
        return at;
    }
    Time::from_ns(at.as_ns().checked_next_multiple_of(interval.as_ns()).unwrap_or(u64::MAX))
}

/// Who begins frames with whom.
fn followers(scenario: &Scenario) -> Vec<(usize, usize)> {
    let leader = |spec: &AppSpec| match spec.pace {
        Pace::With(leader) => Some(leader.index()),
        _ => None,
    };
    scenario.apps.iter().enumerate().filter_map(|(index, spec)| Some((leader(spec)?, index))).collect()
}

fn slot(index: usize) -> AppId {
    AppId(u32::try_from(index).unwrap_or(u32::MAX))
}
