//! Which apps wait for a grant, since when, and why.

use std::collections::BTreeMap;

use takt_core::{Action, AppId, Estimate, Event, Hold, Time};
use takt_ipc::Command;
use takt_trace::{Observer, Record, why_held};

use crate::control::ask::HeldAnswer;
use crate::control::members::{Member, Members};
use crate::control::view::HIDDEN;

/// The apps that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    apps: BTreeMap<AppId, Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Groups that wait.
    groups: u32,
    /// Its last grant, or when it began to wait.
    since: Time,
    reason: Option<Hold>,
    /// The first group cannot be cut and has fitted nowhere for long.
    stuck: Option<Uncut>,
}

/// Work that cannot be cut and fits nowhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncut {
    /// How long it is predicted to take.
    pub(crate) estimate: Estimate,
    /// What the program calls; nothing until it has said so.
    pub(crate) command: Command,
}

impl Waits {
    /// How long an app has been held back, and why; none if it does not wait.
    pub(crate) fn held(&self, app: AppId, now: Time, members: &Members) -> Option<HeldAnswer> {
        let wait = self.apps.get(&app)?;
        let reason = wait.reason?;
        let name = |app| members.get(app).map(|member| member.name.clone()).unwrap_or_default();
        let for_s = now.since(wait.since).as_ns() as f64 / 1e9;
        let promise = match reason {
            Hold::Protects { app } => {
                members.get(app).filter(|member| member.name != HIDDEN).map(Member::contract)
            }
            _ => None,
        };
        let uncut_ms = wait.stuck.map(|uncut| uncut.estimate.span().as_ns() as f64 / 1e6);
        let command = wait.stuck.filter(|uncut| !uncut.command.is_empty());
        let uncut_command = command.map(|uncut| uncut.command.to_string());
        Some(HeldAnswer { why: why_held(reason, name), for_s, promise, uncut_ms, uncut_command })
    }

    /// The first group of an app cannot be cut and has fitted nowhere for long.
    pub(crate) fn stuck(&mut self, app: AppId, estimate: Estimate) {
        let stuck = Uncut { estimate, command: Command::default() };
        self.apps.entry(app).and_modify(|wait| wait.stuck = Some(stuck));
    }

    /// The app says what that is.
    pub(crate) fn named(&mut self, app: AppId, command: Command) {
        let stuck = self.apps.get_mut(&app).and_then(|wait| wait.stuck.as_mut());
        stuck.into_iter().for_each(|uncut| uncut.command = command);
    }

    /// The apps with such work.
    pub(crate) fn all_stuck(&self) -> impl Iterator<Item = (AppId, Uncut)> {
        self.apps.iter().filter_map(|(app, wait)| Some((*app, wait.stuck?)))
    }

    fn submitted(&mut self, at: Time, app: AppId) {
        let nothing = Wait { groups: 0, since: at, reason: None, stuck: None };
        self.apps.entry(app).or_insert(nothing).groups += 1;
    }

    /// One group of an app waits no longer; the others wait since then. Another reason would be recorded.
    fn settled(&mut self, at: Time, app: AppId) {
        if let Some(wait) = self.apps.get_mut(&app) {
            wait.groups -= 1;
            (wait.since, wait.stuck) = (at, None);
            if wait.groups == 0 {
                self.apps.remove(&app);
            }
        }
    }
}

impl Observer for Waits {
    fn record(&mut self, at: Time, record: &Record) {
        match *record {
            Record::In(Event::Submit { app, .. }) => self.submitted(at, app),
            Record::Out(Action::Dispatch { app, .. } | Action::Refused { app, group: Some(_), .. }) => {
                self.settled(at, app);
            }
            Record::Out(Action::Hold { app, reason }) => {
                self.apps.entry(app).and_modify(|wait| wait.reason = Some(reason));
            }
            Record::In(Event::Leave { app }) | Record::Out(Action::Left { app, .. }) => {
                self.apps.remove(&app);
            }
            // The records that follow show again which apps wait.
            Record::Gap { .. } => self.apps.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::{GroupId, GroupKind, Period, Refusal, Span};

    const APP: AppId = AppId(3);

    fn submit(group: u64) -> Record {
        let (group, kind) = (GroupId(group), GroupKind::Draw);
        Record::In(Event::Submit { app: APP, group, kind, estimate: Estimate::default() })
    }

    fn dispatch(group: u64) -> Record {
        let (group, target, start, reserved) = (GroupId(group), Period(0), Time::ZERO, Span::ZERO);
        Record::Out(Action::Dispatch { app: APP, group, target, start, reserved })
    }

    #[test]
    fn an_app_held_for_a_promise_is_told_which() {
        let hello = takt_ipc::message::Hello {
            name: "dial".to_owned(),
            fps_mhz: Some(60_000),
            etpf_ns: Some(3_000_000),
            ..Default::default()
        };
        let mut members = Members::new(4);
        let (root, settings) = Default::default();
        let dial = members.admit(Time::ZERO, &hello, &root, &settings).expect("a slot").app;
        let mut waits = Waits::default();
        waits.record(Time::ZERO, &submit(0));
        let mut held = |reason| {
            waits.record(Time::ZERO, &Record::Out(Action::Hold { app: APP, reason }));
            waits.held(APP, Time::ZERO, &members).map(|held| (held.why, held.promise))
        };
        let promised = Some("60 fps, 3.0 ms".to_owned());
        assert_eq!(held(Hold::Protects { app: dial }), Some(("protects dial".to_owned(), promised)));
        assert_eq!(held(Hold::Behind { app: dial }), Some(("behind dial".to_owned(), None)));
    }

    #[test]
    fn work_that_is_stuck_is_named_as_long_as_it_waits() {
        let (mut waits, members) = (Waits::default(), Members::new(1));
        waits.named(APP, Command::new("glClear"));
        waits.record(Time::ZERO, &submit(0));
        waits.record(Time::ZERO, &Record::Out(Action::Hold { app: APP, reason: Hold::LookAhead }));
        waits.stuck(APP, Estimate::new(Span::from_ms(96)));
        let held = |waits: &Waits| {
            waits.held(APP, Time::ZERO, &members).map(|held| (held.uncut_ms, held.uncut_command))
        };
        assert_eq!(held(&waits), Some((Some(96.0), None)), "it has not said so");
        waits.named(APP, Command::new("glBlitFramebuffer"));
        assert_eq!(held(&waits), Some((Some(96.0), Some("glBlitFramebuffer".to_owned()))));
        waits.record(Time::ZERO, &submit(1));
        waits.record(Time::ZERO, &dispatch(0));
        waits.named(APP, Command::new("glClear"));
        assert_eq!(held(&waits), Some((None, None)), "the next one is another");
    }

    #[test]
    fn waiting_counts_from_the_last_grant() {
        let mut waits = Waits::default();
        let members = Members::new(1);
        let hold = Record::Out(Action::Hold { app: APP, reason: Hold::NoSlot });
        let refused = Action::Refused { app: APP, group: Some(GroupId(2)), reason: Refusal::QueueFull };
        let held_ms = |waits: &Waits, now: u64| {
            waits.held(APP, Time::from_ms(now), &members).map(|held| held.for_s * 1e3)
        };
        waits.record(Time::from_ms(10), &submit(0));
        assert_eq!(held_ms(&waits, 20), None, "no reason was recorded");
        waits.record(Time::from_ms(10), &hold);
        assert_eq!(held_ms(&waits, 20), Some(10.0));
        waits.record(Time::from_ms(30), &submit(1));
        waits.record(Time::from_ms(30), &submit(2));
        assert_eq!(held_ms(&waits, 40), Some(30.0));
        waits.record(Time::from_ms(50), &Record::Out(refused));
        waits.record(Time::from_ms(50), &dispatch(0));
        assert_eq!(held_ms(&waits, 60), Some(10.0), "the next one");
        waits.record(Time::from_ms(70), &dispatch(1));
        assert_eq!(held_ms(&waits, 80), None);
    }
}
