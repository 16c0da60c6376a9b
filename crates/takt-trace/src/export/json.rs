//! Every record as one line of JSON.
//!
//! The first line describes the run, each further line is one record. Names and units here are a
//! promise to other programs, so they are spelt out rather than derived from the core's types,
//! whose names may change.

use std::io::{self, Write};

use serde::Serialize;
use takt_core::event::LostBy;
use takt_core::{Action, AppParams, Event, Hold, Period, Refresh, Refusal, Span, Time};

use super::sink::Sink;
use crate::lives::kind_name;
use crate::record::{GpuRecord, Meta, Observer, Record};

/// Version of the format, in the first line; grows when a reader would have to change.
pub const VERSION: u32 = 1;

/// Writes records as lines of JSON.
#[derive(Debug)]
pub struct Json<W> {
    out: Sink<W>,
    line: Vec<u8>,
}

impl<W: Write> Json<W> {
    /// Writes the line that describes the run to `out`.
    pub fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let mut json = Self { out: Sink::new(out), line: Vec::new() };
        json.write(&head(meta));
        json.out.check()?;
        Ok(json)
    }

    /// Flushes; returns the first error there was.
    pub fn finish(self) -> io::Result<()> {
        self.out.finish()
    }

    fn write(&mut self, line: &impl Serialize) {
        self.line.clear();
        // Serialising these types into memory cannot fail; if it did, the line is dropped.
        if serde_json::to_writer(&mut self.line, line).is_ok() {
            self.line.push(b'\n');
            self.out.put(&self.line);
        }
    }
}

impl<W: Write> Observer for Json<W> {
    fn record(&mut self, at: Time, record: &Record) {
        let what = match record {
            Record::In(event) => event_line(event),
            Record::Out(action) => action_line(action),
            Record::Gpu(gpu) => gpu_line(gpu),
            Record::Vsync(period) => Line::Vsync { period: period.0 },
        };
        self.write(&Stamped { at_ns: at.as_ns(), what });
    }
}

#[derive(Serialize)]
struct Head<'a> {
    record: &'static str,
    version: u32,
    scenario: &'a str,
    policy: &'a str,
    refresh_mhz: u32,
    origin_ns: u64,
    apps: Vec<HeadApp<'a>>,
}

#[derive(Serialize)]
struct HeadApp<'a> {
    app: usize,
    name: &'a str,
    priority: u32,
    fps_mhz: u32,
}

#[derive(Serialize)]
struct Stamped {
    at_ns: u64,
    #[serde(flatten)]
    what: Line,
}

#[derive(Serialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
enum Line {
    Join {
        app: u32,
        #[serde(flatten)]
        params: Params,
        phase: u32,
    },
    Leave {
        app: u32,
    },
    Change {
        app: u32,
        #[serde(flatten)]
        params: Params,
    },
    Submit {
        app: u32,
        group: u64,
        kind: &'static str,
        predicted_ns: Option<u64>,
    },
    Complete {
        group: u64,
        finished_ns: u64,
        cost_ns: u64,
    },
    Focus {
        app: Option<u32>,
    },
    Refresh {
        refresh_mhz: u32,
        origin_ns: u64,
    },
    Dispatch {
        app: u32,
        group: u64,
        target: u64,
        start_ns: u64,
        reserved_ns: Option<u64>,
    },
    Release {
        app: u32,
        release_ns: u64,
    },
    Hold {
        app: u32,
        reason: &'static str,
        by: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        until_ns: Option<u64>,
    },
    Preempt {
        app: u32,
        group: u64,
    },
    Ranked {
        app: u32,
        priority: u32,
    },
    Refused {
        app: u32,
        group: Option<u64>,
        reason: &'static str,
        detail: String,
    },
    Missed {
        app: u32,
        frame: u64,
        period: u64,
        deadline_ns: u64,
        count: u64,
    },
    FrameDone {
        app: u32,
        frame: u64,
        period: u64,
        release_ns: u64,
        deadline_ns: u64,
        finished_ns: u64,
        met: bool,
    },
    Left {
        app: u32,
        dropped: u32,
    },
    Lost {
        app: u32,
        group: u64,
        by: &'static str,
    },
    GpuQueued {
        app: u32,
        group: u64,
    },
    GpuStarted {
        app: u32,
        group: u64,
    },
    GpuFinished {
        app: u32,
        group: u64,
        started_ns: u64,
    },
    GpuPreempted {
        app: u32,
        group: u64,
        started_ns: Option<u64>,
        stays: bool,
    },
    GpuStalled {
        until_ns: u64,
    },
    GpuClock {
        permille: u32,
    },
    Vsync {
        period: u64,
    },
}

#[derive(Serialize)]
struct Params {
    priority: u32,
    stride: u32,
    etpf_ns: u64,
}

fn head(meta: &Meta) -> Head<'_> {
    let apps = meta.apps.iter().enumerate();
    Head {
        record: "run",
        version: VERSION,
        scenario: &meta.scenario,
        policy: &meta.policy,
        refresh_mhz: meta.refresh.mhz(),
        origin_ns: origin_ns(&meta.refresh),
        apps: apps
            .map(|(slot, app)| HeadApp {
                app: slot,
                name: &app.name,
                priority: app.priority.0,
                fps_mhz: app.fps_mhz,
            })
            .collect(),
    }
}

fn event_line(event: &Event) -> Line {
    match *event {
        Event::Join { app, params, phase } => Line::Join { app: app.0, params: params_of(&params), phase },
        Event::Leave { app } => Line::Leave { app: app.0 },
        Event::Change { app, params } => Line::Change { app: app.0, params: params_of(&params) },
        Event::Submit { app, group, kind, estimate } => Line::Submit {
            app: app.0,
            group: group.0,
            kind: kind_name(kind),
            predicted_ns: finite(estimate.span()),
        },
        Event::Complete { group, finished, cost } => {
            Line::Complete { group: group.0, finished_ns: finished.as_ns(), cost_ns: cost.span().as_ns() }
        }
        Event::Focus { app } => Line::Focus { app: app.map(|app| app.0) },
        Event::Refresh(refresh) => {
            Line::Refresh { refresh_mhz: refresh.mhz(), origin_ns: origin_ns(&refresh) }
        }
    }
}

fn action_line(action: &Action) -> Line {
    match *action {
        Action::Dispatch { app, group, target, start, reserved } => Line::Dispatch {
            app: app.0,
            group: group.0,
            target: target.0,
            start_ns: start.as_ns(),
            reserved_ns: finite(reserved),
        },
        Action::Preempt { app, group } => Line::Preempt { app: app.0, group: group.0 },
        Action::Ranked { app, priority } => Line::Ranked { app: app.0, priority: priority.0 },
        Action::Release { app, at } => Line::Release { app: app.0, release_ns: at.as_ns() },
        Action::Hold { app, reason } => hold_line(app.0, reason),
        Action::Refused { app, group, reason } => Line::Refused {
            app: app.0,
            group: group.map(|group| group.0),
            reason: refusal_name(reason),
            detail: reason.to_string(),
        },
        Action::Missed { app, frame, period, deadline, count } => {
            Line::Missed { app: app.0, frame, period: period.0, deadline_ns: deadline.as_ns(), count }
        }
        Action::FrameDone(done) => Line::FrameDone {
            app: done.app.0,
            frame: done.frame,
            period: done.desired.0,
            release_ns: done.release.as_ns(),
            deadline_ns: done.deadline.as_ns(),
            finished_ns: done.finished.as_ns(),
            met: done.met,
        },
        Action::Left { app, dropped } => Line::Left { app: app.0, dropped },
        Action::Lost { app, group, by } => Line::Lost {
            app: app.0,
            group: group.0,
            by: match by {
                LostBy::Order => "order",
                LostBy::Timeout => "timeout",
            },
        },
    }
}

fn hold_line(app: u32, reason: Hold) -> Line {
    let (reason, by, until) = match reason {
        Hold::Protects { app } => ("protects", Some(app), None),
        Hold::Clears { app } => ("clears", Some(app), None),
        Hold::Behind { app } => ("behind", Some(app), None),
        Hold::Exhausted { app } => ("exhausted", Some(app), None),
        Hold::NoSlot => ("no-slot", None, None),
        Hold::Unbounded => ("unbounded", None, None),
        Hold::NoBudget { until } => ("no-budget", None, Some(until)),
        Hold::Turn { app } => ("turn", Some(app), None),
        Hold::Tick { at } => ("tick", None, Some(at)),
        Hold::Batch => ("batch", None, None),
    };
    Line::Hold { app, reason, by: by.map(|by| by.0), until_ns: until.map(Time::as_ns) }
}

fn refusal_name(reason: Refusal) -> &'static str {
    match reason {
        Refusal::NoSuchSlot => "no-such-slot",
        Refusal::SlotTaken => "slot-taken",
        Refusal::UnknownApp => "unknown-app",
        Refusal::PriorityTaken { .. } => "priority-taken",
        Refusal::LookaheadTooLong { .. } => "lookahead-too-long",
        Refusal::QueueFull => "queue-full",
        Refusal::UnknownGroup => "unknown-group",
        Refusal::Exited => "exited",
        Refusal::FeedsItself => "feeds-itself",
    }
}

fn gpu_line(record: &GpuRecord) -> Line {
    match *record {
        GpuRecord::Queued { app, group } => Line::GpuQueued { app: app.0, group: group.0 },
        GpuRecord::Started { app, group } => Line::GpuStarted { app: app.0, group: group.0 },
        GpuRecord::Finished { app, group, started } => {
            Line::GpuFinished { app: app.0, group: group.0, started_ns: started.as_ns() }
        }
        GpuRecord::Preempted { app, group, started, stays } => {
            let started_ns = started.map(Time::as_ns);
            Line::GpuPreempted { app: app.0, group: group.0, started_ns, stays }
        }
        GpuRecord::Stalled { until } => Line::GpuStalled { until_ns: until.as_ns() },
        GpuRecord::Clock { permille } => Line::GpuClock { permille },
    }
}

fn params_of(params: &AppParams) -> Params {
    Params { priority: params.priority.0, stride: params.stride.get(), etpf_ns: params.etpf.as_ns() }
}

/// Unbounded spans become `null`: a reader must not calculate with a sentinel.
fn finite(span: Span) -> Option<u64> {
    (span < Span::FOREVER).then(|| span.as_ns())
}

fn origin_ns(refresh: &Refresh) -> u64 {
    refresh.start(Period(0)).as_ns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Pick, meta, run};
    use expect_test::expect;
    use takt_core::{AppId, Estimate, GroupId, GroupKind};

    fn export(records: &[(Time, Record)]) -> String {
        let mut bytes = Vec::new();
        let mut json = Json::new(&mut bytes, &meta("test")).unwrap();
        for (at, record) in records {
            json.record(*at, record);
        }
        json.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The first line of each kind pins names and units.
    #[test]
    fn names_are_stable() {
        let (app, group) = (AppId(2), GroupId(9));
        let mut records = run(Pick::Oldest, 3);
        let rare = [
            Record::In(Event::Leave { app }),
            Record::In(Event::Refresh(Refresh::HZ_60)),
            Record::Out(Action::Release { app, at: Time::from_us(9) }),
            Record::In(Event::Focus { app: Some(app) }),
            Record::Out(Action::Hold { app, reason: Hold::NoBudget { until: Time::from_us(9) } }),
            Record::Out(Action::Preempt { app, group }),
            Record::Out(Action::Ranked { app, priority: takt_core::Priority(7) }),
            Record::Out(Action::Refused {
                app,
                group: Some(group),
                reason: Refusal::LookaheadTooLong { periods: 420 },
            }),
            Record::Out(Action::Left { app, dropped: 2 }),
            Record::Out(Action::Lost { app, group, by: LostBy::Order }),
            Record::Gpu(GpuRecord::Queued { app, group }),
            Record::Gpu(GpuRecord::Preempted { app, group, started: Some(Time::ZERO), stays: false }),
            Record::Gpu(GpuRecord::Stalled { until: Time::from_us(9) }),
            Record::Gpu(GpuRecord::Clock { permille: 700 }),
        ];
        records.extend(rare.map(|record| (Time::from_us(1), record)));
        let text = export(&records);
        let mut kinds = std::collections::BTreeSet::new();
        let mut firsts = String::new();
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            if kinds.insert(value["record"].as_str().unwrap().to_owned()) {
                firsts.push_str(line);
                firsts.push('\n');
            }
        }
        expect![[r#"
            {"record":"run","version":1,"scenario":"three made-up apps","policy":"test","refresh_mhz":60000,"origin_ns":0,"apps":[{"app":0,"name":"navi, \"beta\" <b>&co","priority":20,"fps_mhz":30000},{"app":1,"name":"cluster","priority":30,"fps_mhz":60000},{"app":2,"name":"game","priority":10,"fps_mhz":60000}]}
            {"at_ns":0,"record":"vsync","period":0}
            {"at_ns":0,"record":"join","app":0,"priority":20,"stride":2,"etpf_ns":3000000,"phase":0}
            {"at_ns":100000,"record":"submit","app":0,"group":0,"kind":"draw","predicted_ns":1540000}
            {"at_ns":100000,"record":"dispatch","app":0,"group":0,"target":1,"start_ns":100000,"reserved_ns":1740000}
            {"at_ns":100000,"record":"hold","app":1,"reason":"behind","by":0}
            {"at_ns":100000,"record":"gpu-started","app":0,"group":0}
            {"at_ns":1500000,"record":"gpu-finished","app":0,"group":0,"started_ns":100000}
            {"at_ns":1500000,"record":"complete","group":0,"finished_ns":1500000,"cost_ns":1400000}
            {"at_ns":13603000,"record":"frame-done","app":2,"frame":0,"period":0,"release_ns":0,"deadline_ns":16666000,"finished_ns":13603000,"met":true}
            {"at_ns":16666000,"record":"missed","app":1,"frame":0,"period":0,"deadline_ns":16666000,"count":1}
            {"at_ns":1000,"record":"leave","app":2}
            {"at_ns":1000,"record":"refresh","refresh_mhz":60000,"origin_ns":0}
            {"at_ns":1000,"record":"release","app":2,"release_ns":9000}
            {"at_ns":1000,"record":"focus","app":2}
            {"at_ns":1000,"record":"preempt","app":2,"group":9}
            {"at_ns":1000,"record":"ranked","app":2,"priority":7}
            {"at_ns":1000,"record":"refused","app":2,"group":9,"reason":"lookahead-too-long","detail":"deadlines would repeat only every 420 periods"}
            {"at_ns":1000,"record":"left","app":2,"dropped":2}
            {"at_ns":1000,"record":"lost","app":2,"group":9,"by":"order"}
            {"at_ns":1000,"record":"gpu-queued","app":2,"group":9}
            {"at_ns":1000,"record":"gpu-preempted","app":2,"group":9,"started_ns":0,"stays":false}
            {"at_ns":1000,"record":"gpu-stalled","until_ns":9000}
            {"at_ns":1000,"record":"gpu-clock","permille":700}
        "#]].assert_eq(&firsts);
    }

    #[test]
    fn unbounded_estimates_are_null() {
        let submit = Record::In(Event::Submit {
            app: AppId(0),
            group: GroupId(1),
            kind: GroupKind::Sync,
            estimate: Estimate::UNBOUNDED,
        });
        let text = export(&[(Time::ZERO, submit)]);
        assert!(text.ends_with("\"kind\":\"sync\",\"predicted_ns\":null}\n"), "{text}");
    }
}
