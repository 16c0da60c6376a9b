//! Jobs of servers, and whether they were in time.

use alloc::boxed::Box;
use core::num::NonZeroU32;
use expect_test::{Expect, expect};
use std::format;
use std::string::String;
use std::vec::Vec;

use super::fifo::Fifo;
use super::rig;
use crate::app::{AppId, AppParams, GroupId, GroupKind, Priority, Stride};
use crate::clock::Clock;
use crate::config::{Config, Margins};
use crate::event::{Action, Event};
use crate::refresh::Refresh;
use crate::scheduler::Scheduler;
use crate::service::{Enforcement, Reservation, Reserve, Service};
use crate::time::{Cost, Estimate, Span, Time};

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&rig::play(script, Box::new(Fifo)));
}

#[test]
fn a_job_is_due_after_a_period_of_its_server() {
    // The display's deadlines are at 1000 and 2000: A is late for one and has time, B the other way round.
    check(
        "A 2 posterior 100/3000
         B 3 posterior 100/400
         C 1
         until 3000
         @0 C 1500s
         @10 A 100s
         @1600 B 500s",
        expect![[r#"
            0..1500 C 1500s for 0
            10 hold A: no slot
            1000 C missed frame 0 for 0 ×1
            1500 C frame 0 late 0
            1500..1600 A 100s for 0
            1600 A frame 0 met 0
            1600..2100 B 500s for 2
            2000 B missed frame 0 for 0 ×1
            2100 B frame 0 late 0
        "#]],
    );
}

#[test]
fn apps_that_share_a_server_are_judged_by_its_period() {
    check(
        "A 2 posterior 100/3000
         B 3 shares 0
         until 2000
         @0 A 900s
         @0 B 300s",
        expect![[r#"
            0..900 A 900s for 0
            0 hold B: behind A
            900 A frame 0 met 0
            900..1200 B 300s for 0
            1200 B frame 0 met 0
        "#]],
    );
}

const APP: AppId = AppId(0);

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// An app with a server of that period, or without one.
fn params(period: Option<u64>) -> AppParams {
    let reserve = |period| Reserve {
        budget: Span::from_ns(100),
        period: Span::from_ns(period),
        deadline: Span::from_ns(period),
        enforcement: Enforcement::Posterior,
    };
    let reservation = period.map_or(Reservation::None, |period| Reservation::Own(reserve(period)));
    let service = Service { reservation, ..Service::default() };
    AppParams {
        priority: Priority(1),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: Clock::default(),
        service,
    }
}

/// One app, on a display with periods of 1000 ns. A completion is heard of within 50 ns.
struct Stage {
    scheduler: Scheduler,
    groups: u64,
}

impl Stage {
    fn new(period: Option<u64>) -> Self {
        Self::with(params(period))
    }

    fn with(params: AppParams) -> Self {
        let refresh = Refresh::from_period_ns(NonZeroU32::new(1000).unwrap());
        let margins = Margins { completion_upper: Span::from_ns(50), ..Margins::NONE };
        let config = Config { refresh, margins, mpcg: 8, ..Config::default() };
        let mut stage = Self { scheduler: Scheduler::new(config, Box::new(Fifo)), groups: 0 };
        stage.handle(0, Event::Join { app: APP, params, phase: 0 });
        stage
    }

    fn handle(&mut self, now: u64, event: Event) {
        self.scheduler.handle_event(at(now), event);
        self.scheduler.check_invariants();
    }

    fn submit(&mut self, now: u64, kind: GroupKind) -> GroupId {
        let group = GroupId(self.groups);
        self.groups += 1;
        let estimate = Estimate::new(Span::from_ns(10));
        self.handle(now, Event::Submit { app: APP, group, kind, estimate });
        group
    }

    /// The group ended a moment before `now`, and so many frames inside of it.
    fn complete(&mut self, now: u64, group: GroupId, frames: u32) {
        let (finished, cost) = (at(now - 1), Cost::new(Span::from_ns(10)));
        self.handle(now, Event::Complete { group, finished, cost, frames });
    }

    fn change(&mut self, now: u64, period: Option<u64>) {
        self.handle(now, Event::Change { app: APP, params: params(period) });
    }

    /// What was told of deadlines by `now`, while time passes as the scheduler asks for.
    fn told(&mut self, now: u64) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            while let Some(action) = self.scheduler.poll_action() {
                told.extend(said(&action));
            }
            match self.scheduler.poll_timeout().filter(|next| *next <= at(now)) {
                Some(next) => self.scheduler.handle_timeout(next),
                None => return told,
            }
        }
    }
}

fn said(action: &Action) -> Option<String> {
    match *action {
        Action::Missed { frame, deadline, count, .. } => {
            Some(format!("{count} missed from {frame}, due {}", deadline.as_ns()))
        }
        Action::FrameDone(done) => {
            let judged = if done.met { "met" } else { "late" };
            let (release, due) = (done.release.as_ns(), done.deadline.as_ns());
            Some(format!("{} {judged}, {release} to {due}", done.frame))
        }
        _ => None,
    }
}

#[test]
fn a_job_is_released_a_period_after_the_one_before_at_the_earliest() {
    let mut stage = Stage::new(Some(400));
    let jobs = [0, 5, 10].map(|now| stage.submit(now, GroupKind::Swap));
    assert!(stage.told(300).is_empty());
    for (job, now) in jobs.into_iter().zip([301, 302, 1250]) {
        stage.complete(now, job, 0);
    }
    let expected =
        ["0 met, 0 to 400", "1 met, 400 to 800", "1 missed from 2, due 1200", "2 late, 800 to 1200"];
    assert_eq!(stage.told(1900), expected);
    let group = stage.submit(2000, GroupKind::Draw);
    assert!(stage.told(2100).is_empty());
    stage.complete(2100, group, 0);
    stage.handle(2399, Event::EndFrame { app: APP });
    assert_eq!(stage.told(2400), ["3 met, 2000 to 2400"], "a job that comes later is released when it comes");
}

#[test]
fn each_job_is_told_to_be_late_once() {
    let mut stage = Stage::new(Some(400));
    let jobs = [0, 5, 10].map(|now| stage.submit(now, GroupKind::Swap));
    // All is heard of the first deadline 50 ns after it.
    assert!(stage.told(449).is_empty());
    assert_eq!(stage.told(450), ["1 missed from 0, due 400"]);
    assert_eq!(stage.told(851), ["1 missed from 1, due 800"]);
    assert_eq!(stage.told(1201), [""; 0]);
    // It is known before that time that the last one is late.
    for job in jobs {
        stage.complete(1230, job, 0);
    }
    let rest = ["1 missed from 2, due 1200", "0 late, 0 to 400", "1 late, 400 to 800", "2 late, 800 to 1200"];
    assert_eq!(stage.told(5000), rest, "an idle app misses nothing");
}

#[test]
fn frames_that_end_inside_of_a_group_are_jobs_a_period_apart() {
    let mut stage = Stage::new(Some(400));
    let first = stage.submit(0, GroupKind::Draw);
    assert!(stage.told(100).is_empty());
    stage.complete(100, first, 2);
    assert_eq!(stage.told(100), ["0 met, 0 to 400", "1 met, 400 to 800"]);
    // What follows was not begun with them.
    let (draw, swap) = (stage.submit(900, GroupKind::Draw), stage.submit(900, GroupKind::Swap));
    assert!(stage.told(1000).is_empty());
    stage.complete(1000, draw, 1);
    stage.complete(1100, swap, 0);
    assert_eq!(stage.told(9000), ["2 met, 900 to 1300", "3 met, 1300 to 1700"]);
}

#[test]
fn work_that_is_there_when_a_server_comes_counts_as_come_then() {
    let mut stage = Stage::new(None);
    let groups = [GroupKind::Swap, GroupKind::Swap, GroupKind::Draw].map(|kind| stage.submit(0, kind));
    assert!(stage.told(10).is_empty());
    stage.change(100, Some(400));
    for group in groups {
        stage.complete(550, group, 0);
    }
    stage.handle(700, Event::EndFrame { app: APP });
    let expected =
        ["1 missed from 0, due 500", "0 late, 100 to 500", "1 met, 500 to 900", "2 met, 900 to 1300"];
    assert_eq!(stage.told(700), expected);
}

#[test]
fn without_its_server_an_app_is_judged_by_the_display_again() {
    let mut stage = Stage::new(Some(5000));
    let group = stage.submit(0, GroupKind::Swap);
    assert!(stage.told(3100).is_empty());
    stage.change(3100, None);
    assert_eq!(stage.told(4100), ["1 missed from 0, due 4000"], "nothing that was not owed before");
    stage.complete(4200, group, 0);
    assert_eq!(stage.told(4300), ["0 late, 0 to 1000"]);
}

#[test]
fn a_frame_that_ends_late_is_missed_before_its_deadline_is_judged() {
    let mut stage = Stage::new(None);
    let group = stage.submit(0, GroupKind::Swap);
    assert!(stage.told(1010).is_empty(), "what ended in time may be heard of until 1050");
    stage.complete(1021, group, 0);
    assert_eq!(stage.told(1100), ["1 missed from 0, due 1000", "0 late, 0 to 1000"]);
    let group = stage.submit(2100, GroupKind::Draw);
    assert!(stage.told(3010).is_empty());
    stage.complete(3021, group, 1);
    let expected = ["1 missed from 1, due 3000", "1 late, 2000 to 3000"];
    assert_eq!(stage.told(3021), expected, "inside of a group, too");
}

#[test]
fn a_frame_of_an_own_clock_that_ends_late_is_missed_once() {
    let clock = Clock::Own { period: Span::from_ns(700_000), deadline: Span::from_ns(600_000) };
    let mut stage = Stage::with(AppParams { clock, etpf: Span::from_ns(50), ..params(None) });
    let group = stage.submit(100, GroupKind::Swap);
    assert!(stage.told(600_110).is_empty());
    stage.complete(600_121, group, 0);
    assert_eq!(stage.told(600_160), ["1 missed from 0, due 600100", "0 late, 100 to 600100"]);
    assert!(stage.told(9_000_000).is_empty(), "frames that never began are not missed");
}
