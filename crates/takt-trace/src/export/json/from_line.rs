//! The record that a line stands for.

use takt_core::event::Refusal;
use takt_core::limits::APPS_MAX;
use takt_core::{
    Action, AppId, Broken, Cost, DisplayId, Estimate, Event, FrameDone, GroupId, Hold, Invariant, Period,
    Priority, Span, Time,
};

use super::line::{Line, Refused};
use super::params::forever;
use crate::record::{AppMeta, GpuRecord, Record};
use crate::summary::HeldBy;

/// What a line stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// A slot belongs to this app from now on.
    App(AppId, AppMeta),
    /// Something happened.
    Record(Record),
}

impl Line {
    /// What it stands for, or what is wrong with it.
    pub(super) fn entry(self) -> Result<Entry, String> {
        let record = match self {
            Self::App { app, name, priority, fps_mhz } => {
                let meta = AppMeta { name, priority: Priority(priority), fps_mhz, jobs: None };
                return Ok(Entry::App(slot(app)?, meta));
            }
            Self::Vsync { period } => Record::Vsync(Period(period)),
            Self::Turn => Record::Turn,
            Self::Policy { name } => Record::Policy(policy_name(&name)?),
            Self::Gap { records } => Record::Gap { records },
            Self::Join { .. }
            | Self::Leave { .. }
            | Self::Change { .. }
            | Self::Submit { .. }
            | Self::EndFrame { .. }
            | Self::Revise { .. }
            | Self::Complete { .. }
            | Self::Focus { .. }
            | Self::Refresh { .. }
            | Self::Adjust(_) => Record::In(self.event()?),
            Self::GpuQueued { .. }
            | Self::GpuStarted { .. }
            | Self::GpuFinished { .. }
            | Self::GpuPreempted { .. }
            | Self::GpuStalled { .. }
            | Self::GpuClock { .. } => Record::Gpu(self.gpu()?),
            other => Record::Out(other.action()?),
        };
        Ok(Entry::Record(record))
    }

    fn event(self) -> Result<Event, String> {
        Ok(match self {
            Self::Join { app, params, phase } => {
                Event::Join { app: slot(app)?, params: params.params()?, phase }
            }
            Self::Leave { app } => Event::Leave { app: slot(app)? },
            Self::Change { app, params } => Event::Change { app: slot(app)?, params: params.params()? },
            Self::Submit { app, group, kind, predicted_ns } => Event::Submit {
                app: slot(app)?,
                group: GroupId(group),
                kind,
                estimate: Estimate::new(forever(predicted_ns)),
            },
            Self::EndFrame { app } => Event::EndFrame { app: slot(app)? },
            Self::Revise { app, group, predicted_ns } => Event::Revise {
                app: slot(app)?,
                group: GroupId(group),
                estimate: Estimate::new(forever(predicted_ns)),
            },
            Self::Complete { group, finished_ns, cost_ns, frames } => Event::Complete {
                group: GroupId(group),
                finished: Time::from_ns(finished_ns),
                cost: Cost::new(Span::from_ns(cost_ns)),
                frames: frames.unwrap_or(0),
            },
            Self::Focus { app } => Event::Focus { app: app.map(slot).transpose()? },
            Self::Refresh { display, refresh_mhz, origin_ns } => Event::Refresh {
                display: DisplayId(display),
                refresh: super::head::grid(refresh_mhz, origin_ns)?,
            },
            Self::Adjust(adjustable) => Event::Adjust(adjustable),
            _ => return Err("this is no event".to_owned()),
        })
    }

    fn action(self) -> Result<Action, String> {
        Ok(match self {
            Self::Dispatch { app, group, target, start_ns, reserved_ns } => Action::Dispatch {
                app: slot(app)?,
                group: GroupId(group),
                target: Period(target),
                start: Time::from_ns(start_ns),
                reserved: forever(reserved_ns),
            },
            Self::Release { app, release_ns } => {
                Action::Release { app: slot(app)?, at: Time::from_ns(release_ns) }
            }
            Self::Hold { app, reason, by, until_ns } => {
                Action::Hold { app: slot(app)?, reason: hold(reason, by, until_ns)? }
            }
            Self::Preempt { app, group } => Action::Preempt { app: slot(app)?, group: GroupId(group) },
            Self::Ranked { app, priority } => {
                Action::Ranked { app: slot(app)?, priority: Priority(priority) }
            }
            Self::Refused { app, group, reason, by, number, .. } => Action::Refused {
                app: slot(app)?,
                group: group.map(GroupId),
                reason: refusal(reason, by, number)?,
            },
            Self::Missed { app, frame, period, deadline_ns, count } => Action::Missed {
                app: slot(app)?,
                frame,
                period: Period(period),
                deadline: Time::from_ns(deadline_ns),
                count: deadlines(count)?,
            },
            Self::FrameDone { app, frame, period, release_ns, deadline_ns, finished_ns, met } => {
                Action::FrameDone(FrameDone {
                    app: slot(app)?,
                    frame,
                    desired: Period(period),
                    release: Time::from_ns(release_ns),
                    deadline: Time::from_ns(deadline_ns),
                    finished: Time::from_ns(finished_ns),
                    met,
                })
            }
            Self::Left { app, dropped } => Action::Left { app: slot(app)?, dropped },
            Self::Lost { app, group, by } => Action::Lost { app: slot(app)?, group: GroupId(group), by },
            Self::Broken { invariant, app, noticed_ns, .. } => Action::Broken(Broken {
                what: Invariant::by_name(&invariant).ok_or_else(|| format!("no invariant {invariant}"))?,
                app: app.map(slot).transpose()?,
                at: Time::from_ns(noticed_ns),
            }),
            _ => return Err("this is no action".to_owned()),
        })
    }

    fn gpu(self) -> Result<GpuRecord, String> {
        Ok(match self {
            Self::GpuQueued { app, group } => GpuRecord::Queued { app: slot(app)?, group: GroupId(group) },
            Self::GpuStarted { app, group } => GpuRecord::Started { app: slot(app)?, group: GroupId(group) },
            Self::GpuFinished { app, group, started_ns } => GpuRecord::Finished {
                app: slot(app)?,
                group: GroupId(group),
                started: Time::from_ns(started_ns),
            },
            Self::GpuPreempted { app, group, started_ns, stays } => GpuRecord::Preempted {
                app: slot(app)?,
                group: GroupId(group),
                started: started_ns.map(Time::from_ns),
                stays,
            },
            Self::GpuStalled { until_ns } => GpuRecord::Stalled { until: Time::from_ns(until_ns) },
            Self::GpuClock { permille } => GpuRecord::Clock { permille },
            _ => return Err("this is nothing a GPU does".to_owned()),
        })
    }
}

/// An app by its number. Observers have tables with a place for each, so it is none that no core has.
fn slot(number: u32) -> Result<AppId, String> {
    match number as usize {
        slot if slot < APPS_MAX => Ok(AppId(number)),
        _ => Err(format!("app {number}: there are {APPS_MAX} at most")),
    }
}

/// So many deadlines at once, one at least.
fn deadlines(count: u64) -> Result<u64, String> {
    match u32::try_from(count) {
        Ok(1..) => Ok(count),
        _ => Err(format!("count = {count}: a miss is of 1 to {} deadlines", u32::MAX)),
    }
}

fn hold(reason: HeldBy, by: Option<u32>, until_ns: Option<u64>) -> Result<Hold, String> {
    let app = || by.ok_or_else(|| "by: which app?".to_owned()).and_then(slot);
    let until = || until_ns.map(Time::from_ns).ok_or_else(|| "until_ns: until when?".to_owned());
    Ok(match reason {
        HeldBy::Protects => Hold::Protects { app: app()? },
        HeldBy::Clears => Hold::Clears { app: app()? },
        HeldBy::Behind => Hold::Behind { app: app()? },
        HeldBy::Exhausted => Hold::Exhausted { app: app()? },
        HeldBy::LookAhead => Hold::LookAhead,
        HeldBy::NoSlot => Hold::NoSlot,
        HeldBy::Unbounded => Hold::Unbounded,
        HeldBy::NoBudget => Hold::NoBudget { until: until()? },
        HeldBy::Turn => Hold::Turn { app: app()? },
        HeldBy::Tick => Hold::Tick { at: until()? },
        HeldBy::Batch => Hold::Batch,
    })
}

fn refusal(reason: Refused, by: Option<u32>, number: Option<u64>) -> Result<Refusal, String> {
    let number = || number.ok_or_else(|| "number: which one?".to_owned());
    Ok(match reason {
        Refused::NoSuchSlot => Refusal::NoSuchSlot,
        Refused::ImpossibleClock => Refusal::ImpossibleClock,
        Refused::NoSuchDisplay => Refusal::NoSuchDisplay,
        Refused::SlotTaken => Refusal::SlotTaken,
        Refused::UnknownApp => Refusal::UnknownApp,
        Refused::PriorityTaken => {
            let by = by.ok_or_else(|| "by: which app?".to_owned()).and_then(slot)?;
            let priority = u32::try_from(number()?).map_err(|error| format!("number: {error}"))?;
            Refusal::PriorityTaken { by, priority: Priority(priority) }
        }
        Refused::LookaheadTooLong => Refusal::LookaheadTooLong { periods: number()? },
        Refused::QueueFull => Refusal::QueueFull,
        Refused::UnknownGroup => Refusal::UnknownGroup,
        Refused::Exited => Refusal::Exited,
        Refused::TooManyFrames => Refusal::TooManyFrames,
        Refused::FeedsItself => Refusal::FeedsItself,
        Refused::SourceOfSource => Refusal::SourceOfSource,
    })
}

/// The policy of that name, as this program spells it.
pub(super) fn policy_name(name: &str) -> Result<&'static str, String> {
    let known = takt_policies::NAMES.iter().find(|known| **known == name);
    known.copied().ok_or_else(|| format!("no policy {name}; there are {}", takt_policies::NAMES.join(", ")))
}
