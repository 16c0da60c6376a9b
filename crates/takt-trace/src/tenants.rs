//! Tells apart the apps that had the same slot one after the other.
//!
//! A daemon gives the slot of an app that has left to the next one that comes. Sums over apps
//! would otherwise be sums over slots.

use std::collections::BTreeMap;

use takt_core::{Action, AppId, Event, Hold, Time};

use crate::record::{AppMeta, GpuRecord, Observer, Record};

/// Shows an observer each app with a number of its own: those that were known beforehand, then those
/// that came, in turn.
#[derive(Clone, Debug)]
pub struct Tenants<O> {
    observer: O,
    /// The number of the app that has a slot now.
    slots: BTreeMap<AppId, AppId>,
    /// The number of the next app that comes.
    next: u32,
}

impl<O: Observer> Tenants<O> {
    /// Shows everything to `observer`, which knows so many apps beforehand.
    pub fn new(observer: O, known: usize) -> Self {
        Self { observer, slots: BTreeMap::new(), next: u32::try_from(known).unwrap_or(u32::MAX) }
    }

    /// The observer.
    pub fn finish(self) -> O {
        self.observer
    }
}

impl<O: Observer> Observer for Tenants<O> {
    fn record(&mut self, at: Time, record: &Record) {
        let mut record = *record;
        for_each_app(&mut record, |app| *app = self.slots.get(app).copied().unwrap_or(*app));
        self.observer.record(at, &record);
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        let tenant = AppId(self.next);
        self.next = self.next.saturating_add(1);
        self.slots.insert(app, tenant);
        self.observer.meet(at, tenant, meta);
    }
}

/// Every app that a record names.
fn for_each_app(record: &mut Record, mut change: impl FnMut(&mut AppId)) {
    match record {
        Record::In(event) => match event {
            Event::Join { app, .. }
            | Event::Leave { app }
            | Event::Change { app, .. }
            | Event::Submit { app, .. }
            | Event::EndFrame { app }
            | Event::Revise { app, .. } => change(app),
            Event::Focus { app } => app.iter_mut().for_each(change),
            Event::Complete { .. } | Event::Refresh { .. } | Event::Adjust(_) => {}
        },
        Record::Out(action) => match action {
            Action::Dispatch { app, .. }
            | Action::Preempt { app, .. }
            | Action::Ranked { app, .. }
            | Action::Release { app, .. }
            | Action::Refused { app, .. }
            | Action::Missed { app, .. }
            | Action::Left { app, .. }
            | Action::Lost { app, .. } => change(app),
            Action::FrameDone(done) => change(&mut done.app),
            Action::Broken(broken) => broken.app.iter_mut().for_each(change),
            Action::Hold { app, reason } => {
                change(app);
                match reason {
                    Hold::Protects { app }
                    | Hold::Behind { app }
                    | Hold::Exhausted { app }
                    | Hold::Turn { app }
                    | Hold::Clears { app } => change(app),
                    Hold::NoSlot
                    | Hold::LookAhead
                    | Hold::Unbounded
                    | Hold::NoBudget { .. }
                    | Hold::Tick { .. }
                    | Hold::Batch => {}
                }
            }
        },
        Record::Gpu(gpu) => match gpu {
            GpuRecord::Queued { app, .. }
            | GpuRecord::Started { app, .. }
            | GpuRecord::Finished { app, .. }
            | GpuRecord::Preempted { app, .. } => change(app),
            GpuRecord::Stalled { .. } | GpuRecord::Clock { .. } => {}
        },
        Record::Vsync(_) | Record::Turn | Record::Policy(_) | Record::Gap { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use takt_core::Priority;

    use super::*;

    /// What was shown: whom to meet, and whose records.
    #[derive(Default)]
    struct Shown(Vec<String>);

    impl Observer for Shown {
        fn record(&mut self, _at: Time, record: &Record) {
            let mut record = *record;
            for_each_app(&mut record, |app| self.0.push(app.0.to_string()));
        }

        fn meet(&mut self, _at: Time, app: AppId, meta: &AppMeta) {
            self.0.push(format!("{} is {}", app.0, meta.name));
        }
    }

    #[test]
    fn an_app_that_joins_later_is_another_one() {
        let slot = AppId(0);
        let meta =
            |name: &str| AppMeta { name: name.to_owned(), priority: Priority(1), fps_mhz: 0, jobs: None };
        let mut tenants = Tenants::new(Shown::default(), 2);
        let leave = Record::In(Event::Leave { app: slot });
        let held = Record::Out(Action::Hold { app: AppId(1), reason: Hold::Behind { app: slot } });
        tenants.record(Time::ZERO, &leave);
        tenants.meet(Time::ZERO, slot, &meta("x"));
        tenants.record(Time::ZERO, &leave);
        tenants.meet(Time::ZERO, slot, &meta("y"));
        tenants.record(Time::ZERO, &held);
        assert_eq!(tenants.finish().0, ["0", "2 is x", "2", "3 is y", "1", "3"]);
    }
}
