//! A small made-up run: three apps on a GPU that executes one group at a time.
//!
//! It is no simulation of the scheduler, only a consistent story for the tests of writers and
//! pages, which is why this file names the crate from outside: the report's tests include it, too.

use takt_core::{
    Action, AppId, AppParams, Cost, Estimate, Event, FrameDone, GroupId, GroupKind, Hold, Period, Priority,
    Refresh, Service, Span, Stride, Time,
};
use takt_trace::{AppMeta, GpuRecord, Meta, Record};

/// Which waiting group goes first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Pick {
    /// The oldest.
    Oldest,
    /// That of the most important app.
    Important,
}

/// A made-up app: name, priority, periods per frame, groups per frame, cost of each.
struct SampleApp(&'static str, u32, u32, u64, u64);

const APPS: [SampleApp; 3] = [
    SampleApp("navi, \"beta\" <b>&co", 20, 2, 3, 1_400),
    SampleApp("cluster", 30, 1, 4, 900),
    SampleApp("game", 10, 1, 2, 4_000),
];

/// A group on its way.
#[derive(Copy, Clone)]
struct Job {
    app: usize,
    group: u64,
    kind: GroupKind,
    frame: u64,
    submitted: u64,
    predicted: u64,
    cost: u64,
    release: u64,
    deadline: u64,
    period: Period,
}

/// What the numbers of the run stand for.
pub(crate) fn meta(policy: &str) -> Meta {
    let app = |SampleApp(name, priority, stride, ..): &SampleApp| AppMeta {
        name: (*name).to_owned(),
        priority: Priority(*priority),
        fps_mhz: 60_000 / stride,
        jobs: None,
    };
    Meta {
        scenario: "three made-up apps".to_owned(),
        policy: policy.to_owned(),
        refresh: Refresh::HZ_60,
        apps: APPS.iter().map(app).collect(),
    }
}

/// The records of `periods` refresh periods, in order.
pub(crate) fn run(pick: Pick, periods: u64) -> Vec<(Time, Record)> {
    let mut story = Story::default();
    let grid = Refresh::HZ_60;
    for period in 0..periods {
        story.tell(us(grid.start(Period(period))), Record::Vsync(Period(period)));
    }
    for (app, SampleApp(_, priority, stride, ..)) in APPS.iter().enumerate() {
        let params = AppParams {
            priority: Priority(*priority),
            stride: Stride::new(*stride).unwrap(),
            etpf: Span::from_us(3_000),
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let app = id(app);
        let phase = 0;
        story.tell(0, Record::In(Event::Join { app, params, phase }));
    }
    let mut jobs = jobs(periods, &grid);
    let mut now = 0;
    while let Some(at) = next(&jobs, now, pick) {
        let job = jobs.remove(at);
        now = now.max(job.submitted);
        story.execute(&job, now);
        story.hold(&jobs, &job, now);
        now += job.cost;
    }
    story.records.sort_by_key(|(time, rank, _)| (*time, *rank));
    let timed = |(us, _, record)| (Time::from_us(us), record);
    story.records.into_iter().map(timed).collect()
}

#[derive(Default)]
struct Story {
    records: Vec<(u64, u8, Record)>,
}

impl Story {
    fn tell(&mut self, at: u64, record: Record) {
        let rank = match record {
            Record::Vsync(_) => 0,
            Record::Gpu(GpuRecord::Finished { .. }) => 1,
            Record::In(Event::Complete { .. }) => 2,
            Record::Out(Action::FrameDone(_) | Action::Missed { .. }) => 3,
            Record::In(_) => 4,
            Record::Out(_) => 5,
            _ => 6,
        };
        self.records.push((at, rank, record));
    }

    fn execute(&mut self, job: &Job, start: u64) {
        let (app, group) = (id(job.app), GroupId(job.group));
        let end = start + job.cost;
        self.tell(
            job.submitted,
            Record::In(Event::Submit {
                app,
                group,
                kind: job.kind,
                estimate: Estimate::new(Span::from_us(job.predicted)),
            }),
        );
        self.tell(
            start,
            Record::Out(Action::Dispatch {
                app,
                group,
                target: job.period,
                start: Time::from_us(start),
                reserved: Span::from_us(job.predicted + 200),
            }),
        );
        self.tell(start, Record::Gpu(GpuRecord::Started { app, group }));
        let started = Time::from_us(start);
        self.tell(end, Record::Gpu(GpuRecord::Finished { app, group, started }));
        self.tell(
            end,
            Record::In(Event::Complete {
                group,
                finished: Time::from_us(end),
                cost: Cost::new(Span::from_us(job.cost)),
                frames: 0,
            }),
        );
        if job.kind.ends_frame() {
            self.judge(job, end);
        }
    }

    fn judge(&mut self, job: &Job, end: u64) {
        let (app, deadline) = (id(job.app), Time::from_us(job.deadline));
        if end > job.deadline {
            let (frame, period) = (job.frame, job.period);
            self.tell(job.deadline, Record::Out(Action::Missed { app, frame, period, deadline, count: 1 }));
        }
        self.tell(
            end,
            Record::Out(Action::FrameDone(FrameDone {
                app,
                frame: job.frame,
                desired: job.period,
                release: Time::from_us(job.release),
                deadline,
                finished: Time::from_us(end),
                met: end <= job.deadline,
            })),
        );
    }

    /// The first group that waits at `now` waits behind `job`.
    fn hold(&mut self, jobs: &[Job], job: &Job, now: u64) {
        let waits = |other: &&Job| other.submitted <= now && other.app != job.app;
        if let Some(other) = jobs.iter().find(waits) {
            let reason = Hold::Behind { app: id(job.app) };
            let app = id(other.app);
            self.tell(now, Record::Out(Action::Hold { app, reason }));
        }
    }
}

fn jobs(periods: u64, grid: &Refresh) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (app, SampleApp(_, _, stride, groups, cost)) in APPS.iter().enumerate() {
        let stride = u64::from(*stride);
        for frame in 0..periods / stride {
            let last = Period(frame * stride + stride - 1);
            let release = us(grid.start(Period(frame * stride)));
            for n in 0..*groups {
                // Costs wander a little, so that pictures do not look drawn with a ruler.
                let wobble = (frame * 37 + n * 11 + app as u64 * 5) % 17 * cost / 100;
                // The game now and then draws twice as much as it thought.
                let burst = u64::from(app == 2 && frame % 7 == 2) * cost;
                jobs.push(Job {
                    app,
                    group: jobs.len() as u64,
                    kind: if n + 1 == *groups { GroupKind::Swap } else { GroupKind::Draw },
                    frame,
                    submitted: release + 100 + 150 * n,
                    predicted: cost + cost / 10,
                    cost: cost + wobble + burst,
                    release,
                    deadline: us(grid.end(last)),
                    period: last,
                });
            }
        }
    }
    jobs.sort_by_key(|job| (job.submitted, job.group));
    jobs
}

/// The next group to execute when the GPU is free from `now` on.
fn next(jobs: &[Job], now: u64, pick: Pick) -> Option<usize> {
    let from = now.max(jobs.first()?.submitted);
    let waiting = jobs.iter().take_while(|job| job.submitted <= from);
    let mut best = 0;
    for (at, job) in waiting.enumerate() {
        if pick == Pick::Important && APPS[job.app].1 > APPS[jobs[best].app].1 {
            best = at;
        }
    }
    Some(best)
}

fn id(slot: usize) -> AppId {
    AppId(u32::try_from(slot).unwrap())
}

fn us(time: Time) -> u64 {
    time.as_ns() / 1_000
}
