//! Tells what a scheduler does, a line for each thing.

use core::fmt::Write;
use std::borrow::ToOwned;
use std::format;
use std::string::String;

use super::gpu::{Ended, RigGpu};
use super::{Group, Rig};
use crate::app::{AppId, GroupKind};
use crate::event::{Action, Hold};
use crate::refresh::Period;
use crate::time::{Span, Time};

/// A group that goes to the GPU.
pub(super) struct Granted {
    pub(super) group: Group,
    pub(super) target: Period,
    /// When the scheduler expects it to start, and how long to take.
    pub(super) start: Time,
    pub(super) reserved: Span,
    /// When it begins and ends, if that is known.
    pub(super) runs: Option<(Time, Time)>,
}

impl Rig {
    pub(super) fn tell_grant(&mut self, granted: &Granted) {
        let when = match granted.runs {
            Some((from, to)) => format!("{}..{}", from.as_ns(), to.as_ns()),
            None => format!("{} grant", self.now.as_ns()),
        };
        write!(self.out, "{when} {} for {}", self.named(granted.group), granted.target.0).unwrap();
        if self.scheduler.config().tuning.stretch > Span::ZERO {
            write!(self.out, " within {}", granted.reserved.as_ns()).unwrap();
        }
        if self.tells_predictions {
            write!(self.out, ", starts by {}", granted.start.as_ns()).unwrap();
        }
        writeln!(self.out).unwrap();
    }

    /// The end of a group; nothing where it was told in advance.
    pub(super) fn tell_end(&mut self, ended: Ended) {
        if matches!(self.gpu, RigGpu::TimeShared(_)) {
            let group = self.named(self.group(ended.group));
            writeln!(self.out, "{} end {group}", ended.at.as_ns()).unwrap();
        }
    }

    /// Whose group it is, its length and `s` for a swap.
    fn named(&self, group: Group) -> String {
        let swap = if group.kind == GroupKind::Swap { "s" } else { "" };
        format!("{} {}{swap}", self.names[group.app.index()], group.cost)
    }

    pub(super) fn tell(&mut self, action: &Action) {
        let name = |app: AppId| self.names.get(app.index()).map_or("?", String::as_str);
        let now = self.now.as_ns();
        let line = match action {
            Action::Hold { app, reason } => {
                let why = match reason {
                    Hold::Protects { app } => format!("protects {}", name(*app)),
                    Hold::Clears { app } => format!("clears {}", name(*app)),
                    Hold::Behind { app } => format!("behind {}", name(*app)),
                    Hold::Exhausted { app } => format!("exhausted by {}", name(*app)),
                    Hold::LookAhead => "look-ahead".to_owned(),
                    Hold::NoSlot => "no slot".to_owned(),
                    Hold::Unbounded => "unbounded".to_owned(),
                    Hold::NoBudget { until } => format!("no budget until {}", until.as_ns()),
                    Hold::Turn { app } => format!("turn of {}", name(*app)),
                    Hold::Tick { at } => format!("tick at {}", at.as_ns()),
                    Hold::Batch => "batch is not complete".to_owned(),
                };
                format!("{now} hold {}: {why}", name(*app))
            }
            Action::Missed { app, frame, period, count, .. } => {
                format!("{now} {} missed frame {frame} for {} ×{count}", name(*app), period.0)
            }
            Action::FrameDone(done) => {
                let how = if done.met { "met" } else { "late" };
                format!("{now} {} frame {} {how} {}", name(done.app), done.frame, done.desired.0)
            }
            Action::Refused { app, reason, .. } => format!("{now} refused {}: {reason}", name(*app)),
            Action::Lost { app, by, .. } => format!("{now} lost a group of {} ({by:?})", name(*app)),
            Action::Left { app, dropped } => format!("{now} {} left, {dropped} dropped", name(*app)),
            Action::Ranked { app, priority } => format!("{now} {} ranks {}", name(*app), priority.0),
            Action::Preempt { app, .. } => format!("{now} preempt {}", name(*app)),
            Action::Broken(broken) => format!("{now} {broken}"),
            Action::Dispatch { .. } | Action::Release { .. } => return,
        };
        writeln!(self.out, "{line}").unwrap();
    }
}
