//! Watches protected apps: which miss deadlines, which stop drawing, and which draw again.

use takt_audit::Event;
use takt_core::{Action, AppId, Span, Time};
use takt_trace::Record;

use crate::control::members::{Member, Members};

/// A protected app that finishes no frame for this long, and for several of its periods, has stopped.
const SILENT: Span = Span::from_ms(1_000);
const SILENT_PERIODS: u64 = 10;

/// What is known of the app in each slot.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    slots: Vec<Slot>,
    /// The second, on the monotonic clock, of the last look.
    second: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Deadlines missed since the last look.
    missed: u64,
    /// When its last frame ended, if one has.
    drawn: Option<Time>,
    stalled: bool,
    resumed: bool,
}

impl Watch {
    /// Something happened.
    pub(crate) fn record(&mut self, at: Time, record: &Record) {
        match record {
            Record::Out(Action::Missed { app, count, .. }) => self.slot(*app).missed += count,
            Record::Out(Action::FrameDone(done)) => {
                let slot = self.slot(done.app);
                slot.drawn = Some(at);
                slot.resumed |= std::mem::take(&mut slot.stalled);
            }
            _ => {}
        }
    }

    /// Another client has the slot.
    pub(crate) fn forget(&mut self, app: AppId) {
        *self.slot(app) = Slot::default();
    }

    /// What happened to protected apps since the last look, once a second.
    pub(crate) fn look<'m>(&mut self, now: Time, members: &'m Members) -> Vec<(Event, u64, &'m Member)> {
        let second = now.as_ns() / 1_000_000_000;
        if second == self.second {
            return Vec::new();
        }
        self.second = second;
        let mut found = Vec::new();
        for member in members.iter() {
            let slot = self.slot(member.app);
            let missed = std::mem::take(&mut slot.missed);
            if !member.protected || !member.is_judged() {
                continue;
            }
            if missed > 0 {
                found.push((Event::Late, missed, member));
            }
            if std::mem::take(&mut slot.resumed) {
                found.push((Event::Resumed, 1, member));
            }
            // Jobs of a server come when they come.
            let silent = slot.drawn.is_some_and(|drawn| now.since(drawn) > patience(member));
            if member.paced && silent && !slot.stalled {
                slot.stalled = true;
                found.push((Event::Stalled, 1, member));
            }
        }
        found
    }

    fn slot(&mut self, app: AppId) -> &mut Slot {
        if self.slots.len() <= app.index() {
            self.slots.resize(app.index() + 1, Slot::default());
        }
        &mut self.slots[app.index()]
    }
}

fn patience(member: &Member) -> Span {
    let period_ns = 1_000_000_000_000 / u64::from(member.fps_mhz.max(1));
    Span::from_ns(period_ns.saturating_mul(SILENT_PERIODS)).max(SILENT)
}
