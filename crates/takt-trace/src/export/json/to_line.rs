//! The line that stands for a record.

use takt_core::event::Refusal;
use takt_core::{Action, Event, GroupId, Hold, Time};

use super::line::{Line, Refused};
use super::params::{Params, finite};
use crate::record::{GpuRecord, Record};

/// The line of a record.
pub(super) fn line_of(record: &Record) -> Line {
    match record {
        Record::In(event) => event_line(event),
        Record::Out(action) => action_line(action),
        Record::Gpu(gpu) => gpu_line(gpu),
        Record::Vsync(period) => Line::Vsync { period: period.0 },
        Record::Turn => Line::Turn,
        Record::Policy(name) => Line::Policy { name: (*name).to_owned() },
        Record::Gap { records } => Line::Gap { records: *records },
    }
}

fn event_line(event: &Event) -> Line {
    match *event {
        Event::Join { app, params, phase } => Line::Join { app: app.0, params: Params::of(&params), phase },
        Event::Leave { app } => Line::Leave { app: app.0 },
        Event::Change { app, params } => Line::Change { app: app.0, params: Params::of(&params) },
        Event::Submit { app, group, kind, estimate } => {
            Line::Submit { app: app.0, group: group.0, kind, predicted_ns: finite(estimate.span()) }
        }
        Event::EndFrame { app } => Line::EndFrame { app: app.0 },
        Event::Revise { app, group, estimate } => {
            Line::Revise { app: app.0, group: group.0, predicted_ns: finite(estimate.span()) }
        }
        Event::Complete { group, finished, cost, frames } => Line::Complete {
            group: group.0,
            finished_ns: finished.as_ns(),
            cost_ns: cost.span().as_ns(),
            frames: (frames > 0).then_some(frames),
        },
        Event::Focus { app } => Line::Focus { app: app.map(|app| app.0) },
        Event::Refresh { display, refresh } => Line::Refresh {
            display: display.0,
            refresh_mhz: refresh.mhz(),
            origin_ns: super::head::origin_ns(&refresh),
        },
        Event::Adjust(adjustable) => Line::Adjust(adjustable),
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
        Action::Refused { app, group, reason } => refused_line(app.0, group, reason),
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
        Action::Lost { app, group, by } => Line::Lost { app: app.0, group: group.0, by },
        Action::Broken(broken) => Line::Broken {
            invariant: broken.what.name().to_owned(),
            app: broken.app.map(|app| app.0),
            noticed_ns: broken.at.as_ns(),
            detail: broken.what.to_string(),
        },
    }
}

fn hold_line(app: u32, hold: Hold) -> Line {
    let (by, until) = match hold {
        Hold::Protects { app } | Hold::Clears { app } | Hold::Behind { app } => (Some(app), None),
        Hold::Exhausted { app } | Hold::Turn { app } => (Some(app), None),
        Hold::NoBudget { until } | Hold::Tick { at: until } => (None, Some(until)),
        Hold::LookAhead | Hold::NoSlot | Hold::Unbounded | Hold::Batch => (None, None),
    };
    Line::Hold { app, reason: hold.into(), by: by.map(|by| by.0), until_ns: until.map(Time::as_ns) }
}

fn refused_line(app: u32, group: Option<GroupId>, refusal: Refusal) -> Line {
    let (reason, by, number) = match refusal {
        Refusal::NoSuchSlot => (Refused::NoSuchSlot, None, None),
        Refusal::ImpossibleClock => (Refused::ImpossibleClock, None, None),
        Refusal::NoSuchDisplay => (Refused::NoSuchDisplay, None, None),
        Refusal::SlotTaken => (Refused::SlotTaken, None, None),
        Refusal::UnknownApp => (Refused::UnknownApp, None, None),
        Refusal::PriorityTaken { by, priority } => {
            (Refused::PriorityTaken, Some(by.0), Some(u64::from(priority.0)))
        }
        Refusal::LookaheadTooLong { periods } => (Refused::LookaheadTooLong, None, Some(periods)),
        Refusal::QueueFull => (Refused::QueueFull, None, None),
        Refusal::UnknownGroup => (Refused::UnknownGroup, None, None),
        Refusal::Exited => (Refused::Exited, None, None),
        Refusal::TooManyFrames => (Refused::TooManyFrames, None, None),
        Refusal::FeedsItself => (Refused::FeedsItself, None, None),
        Refusal::SourceOfSource => (Refused::SourceOfSource, None, None),
    };
    let group = group.map(|group| group.0);
    Line::Refused { app, group, reason, detail: refusal.to_string(), by, number }
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
