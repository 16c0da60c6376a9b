//! Plays a script against a scheduler. See the module above for the language.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt::Write;
use core::num::NonZeroU32;
use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use crate::app::{AppId, AppParams, GroupId, GroupKind, Priority, Stride};
use crate::config::{Adjustable, Config, Margins};
use crate::event::{Action, Event, Hold};
use crate::gpu::Gpu;
use crate::policy::Policy;
use crate::refresh::Refresh;
use crate::scheduler::Scheduler;
use crate::service::{Enforcement, Level, Reservation, Reserve, Service, Turns};
use crate::time::{Cost, Estimate, Span, Time};

struct Rig {
    scheduler: Scheduler,
    names: Vec<String>,
    params: Vec<AppParams>,
    /// True costs, by group number.
    groups: Vec<(u64, GroupKind, u64)>,
    /// Dispatched groups: when each starts and ends.
    gpu: VecDeque<(GroupId, Time, Time)>,
    gpu_free: Time,
    delay: Span,
    tells_releases: bool,
    out: String,
}

/// Plays `script` to its end and tells what happened.
pub(super) fn play(script: &str, policy: Box<dyn Policy>) -> String {
    let mut margins = Margins::NONE;
    let mut config = Config {
        refresh: Refresh::from_period_ns(NonZeroU32::new(1000).unwrap()),
        mpcg: 1,
        completion_timeout: Span::from_ns(5000),
        ..Config::default()
    };
    let mut until = 4000;
    let mut tells_releases = false;
    let mut lines = Vec::new();
    for line in script.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["mpcg", n] => config.mpcg = n.parse().unwrap(),
            ["delay", n] => margins.dispatch_upper = Span::from_ns(n.parse().unwrap()),
            ["lower", n] => margins.dispatch_lower = Span::from_ns(n.parse().unwrap()),
            ["fixed", n] => margins.fixed = Span::from_ns(n.parse().unwrap()),
            ["min", n] => margins.group_min = Span::from_ns(n.parse().unwrap()),
            ["tick", n] => config.tuning.tick = Span::from_ns(n.parse().unwrap()),
            ["blocking", n] => config.tuning.blocking = Span::from_ns(n.parse().unwrap()),
            ["stretch", n] => config.tuning.stretch = Span::from_ns(n.parse().unwrap()),
            ["limit", n] => config.tuning.admission_permille = n.parse().unwrap(),
            ["background", terms] => config.tuning.background = reserve(terms, Enforcement::Posterior),
            ["until", n] => until = n.parse().unwrap(),
            ["releases"] => tells_releases = true,
            ["preemptive"] => config.gpu = Gpu::Preemptive,
            _ => lines.push(words),
        }
    }
    config.margins = margins;
    let mut rig = Rig {
        scheduler: Scheduler::new(config, policy),
        names: Vec::new(),
        params: Vec::new(),
        groups: Vec::new(),
        gpu: VecDeque::new(),
        gpu_free: Time::ZERO,
        delay: margins.dispatch_upper,
        tells_releases,
        out: String::new(),
    };
    let mut steps: Vec<(u64, Vec<&str>)> = Vec::new();
    for words in lines {
        match words[0].strip_prefix('@') {
            Some(at) => steps.push((at.parse().unwrap(), words[1..].to_vec())),
            None => rig.join(&words),
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    rig.run(steps.into(), Time::from_ns(until));
    rig.out
}

impl Rig {
    fn run(&mut self, mut steps: VecDeque<(u64, Vec<&str>)>, until: Time) {
        loop {
            self.obey();
            let next_step = steps.front().map(|(at, _)| Time::from_ns(*at));
            let next_end = self.gpu.front().map(|(_, _, end)| *end);
            let timeout = self.scheduler.poll_timeout();
            let Some(now) = [next_end, timeout, next_step].into_iter().flatten().min() else {
                return;
            };
            if now >= until {
                return;
            }
            while let Some((group, started, end)) =
                self.gpu.front().copied().filter(|(_, _, end)| *end <= now)
            {
                self.gpu.pop_front();
                let cost = Cost::new(end.since(started));
                self.scheduler.handle_event(now, Event::Complete { group, finished: end, cost, frames: 0 });
            }
            self.scheduler.handle_timeout(now);
            while steps.front().is_some_and(|(at, _)| Time::from_ns(*at) <= now) {
                let (_, words) = steps.pop_front().unwrap();
                self.step(now, &words);
            }
        }
    }

    fn join(&mut self, words: &[&str]) {
        let app = AppId(u32::try_from(self.names.len()).unwrap());
        self.names.push(words[0].to_owned());
        let priority = Priority(words[1].parse().unwrap());
        let params = AppParams {
            priority,
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: crate::Clock::default(),
            service: Service::default(),
        };
        let params = changed(params, &words[2..]);
        let phase = words.iter().position(|word| *word == "phase");
        let phase = phase.map_or(0, |position| words[position + 1].parse().unwrap());
        self.params.push(params);
        self.scheduler.handle_event(Time::ZERO, Event::Join { app, params, phase });
    }

    fn step(&mut self, now: Time, words: &[&str]) {
        if let ["set", settings @ ..] = words {
            let adjustable = adjusted(self.scheduler.config().adjustable(), settings);
            self.delay = adjustable.margins.dispatch_upper;
            self.scheduler.handle_event(now, Event::Adjust(adjustable));
            return self.scheduler.check_invariants();
        }
        let index = self.names.iter().position(|name| name == words[0]).expect("app is known");
        let app = AppId(u32::try_from(index).unwrap());
        match &words[1..] {
            ["focuses"] => self.scheduler.handle_event(now, Event::Focus { app: Some(app) }),
            ["revises", group, length] => {
                let group = GroupId(group.parse().unwrap());
                let estimate = Estimate::new(Span::from_ns(length.parse().unwrap()));
                self.scheduler.handle_event(now, Event::Revise { app, group, estimate });
            }
            ["leaves"] => self.scheduler.handle_event(now, Event::Leave { app }),
            ["exits"] => self.submit(now, app, "0", GroupKind::Exit),
            [what, ..] if what.starts_with(|c: char| c.is_ascii_digit() || c == '∞') => {
                for word in &words[1..] {
                    match word.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
                        rest if word.ends_with('s') => self.submit(now, app, rest, GroupKind::Swap),
                        rest if word.ends_with('y') => self.submit(now, app, rest, GroupKind::Sync),
                        _ => self.submit(now, app, word, GroupKind::Draw),
                    }
                }
            }
            settings => {
                self.params[index] = changed(self.params[index], settings);
                self.scheduler.handle_event(now, Event::Change { app, params: self.params[index] });
            }
        }
        self.scheduler.check_invariants();
    }

    fn submit(&mut self, now: Time, app: AppId, word: &str, kind: GroupKind) {
        let (estimate, cost) = word.split_once('/').unwrap_or((word, word));
        let number = |text: &str| if text == "∞" { u64::MAX } else { text.parse().unwrap() };
        let group = GroupId(self.groups.len() as u64);
        self.groups.push((number(estimate), kind, number(cost)));
        let estimate = Estimate::new(Span::from_ns(number(estimate)));
        self.scheduler.handle_event(now, Event::Submit { app, group, kind, estimate });
    }

    fn obey(&mut self) {
        while let Some(action) = self.scheduler.poll_action() {
            self.scheduler.check_invariants();
            match action {
                Action::Dispatch { app, group, target, reserved, .. } => {
                    let (_, kind, cost) = self.groups[usize::try_from(group.0).unwrap()];
                    let begins = self.gpu_free.max(self.now() + self.delay);
                    self.gpu_free = begins + Span::from_ns(cost);
                    self.gpu.push_back((group, begins, self.gpu_free));
                    let swap = if kind == GroupKind::Swap { "s" } else { "" };
                    let name = &self.names[app.index()];
                    let (from, to) = (begins.as_ns(), self.gpu_free.as_ns());
                    let stretches = self.scheduler.config().tuning.stretch > Span::ZERO;
                    let within =
                        if stretches { format!(" within {}", reserved.as_ns()) } else { String::new() };
                    writeln!(self.out, "{from}..{to} {name} {cost}{swap} for {}{within}", target.0).unwrap();
                }
                Action::Preempt { group, .. } => {
                    self.take_back(group);
                    self.tell(&action);
                }
                Action::Release { app, at } if self.tells_releases => {
                    writeln!(self.out, "{} starts at {}", self.names[app.index()], at.as_ns()).unwrap();
                }
                Action::Release { .. } => {}
                other => self.tell(&other),
            }
        }
    }

    /// The last group leaves the GPU; what is left of it runs later.
    fn take_back(&mut self, group: GroupId) {
        let (last, begins, end) = self.gpu.pop_back().expect("only what was dispatched comes back");
        assert_eq!(group, last, "the last one comes back first");
        let now = self.now().max(begins);
        self.groups[usize::try_from(group.0).unwrap()].2 = end.since(now).as_ns();
        self.gpu_free = self.gpu.back().map_or_else(|| self.now(), |(_, _, end)| *end);
    }

    fn now(&self) -> Time {
        self.scheduler.now
    }

    fn tell(&mut self, action: &Action) {
        let name = |app: AppId| self.names.get(app.index()).map_or("?", String::as_str);
        let now = self.now().as_ns();
        let line = match action {
            Action::Hold { app, reason } => {
                let why = match reason {
                    Hold::Protects { app } => format!("protects {}", name(*app)),
                    Hold::Clears { app } => format!("clears {}", name(*app)),
                    Hold::Behind { app } => format!("behind {}", name(*app)),
                    Hold::Exhausted { app } => format!("exhausted by {}", name(*app)),
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
            Action::Dispatch { .. } | Action::Release { .. } => return,
        };
        writeln!(self.out, "{line}").unwrap();
    }
}

fn adjusted(mut adjustable: Adjustable, settings: &[&str]) -> Adjustable {
    for pair in settings.chunks(2) {
        let span = Span::from_ns(pair[1].parse().unwrap());
        let margins = &mut adjustable.margins;
        match pair[0] {
            "mpcg" => adjustable.mpcg = pair[1].parse().unwrap(),
            "delay" => margins.dispatch_upper = span,
            "lower" => margins.dispatch_lower = span,
            "fixed" => margins.fixed = span,
            "min" => margins.group_min = span,
            "heard" => margins.completion_upper = span,
            "blocking" => adjustable.blocking = span,
            "stretch" => adjustable.stretch = span,
            other => panic!("what is {other:?}?"),
        }
    }
    adjustable
}

fn changed(mut params: AppParams, settings: &[&str]) -> AppParams {
    for pair in settings.chunks(2) {
        match pair {
            ["stride", n] => params.stride = Stride::new(n.parse().unwrap()).unwrap(),
            ["etpf", n] => params.etpf = Span::from_ns(n.parse().unwrap()),
            ["priority", n] => params.priority = Priority(n.parse().unwrap()),
            ["feeds", n] => params.service.feeds = Some(AppId(n.parse().unwrap())),
            ["level", "high"] => params.service.level = Level::High,
            ["level", "low"] => params.service.level = Level::Low,
            ["slice", n] => params.service.timeslice = Span::from_ns(n.parse().unwrap()),
            ["focus", "automatic"] => params.service.follows_focus = true,
            ["turns", "following"] => params.service.turns = Turns::Following,
            ["turns", "single"] => params.service.turns = Turns::Single,
            ["posterior", terms] => {
                params.service.reservation = Reservation::Own(reserve(terms, Enforcement::Posterior));
            }
            ["apriori", terms] => {
                params.service.reservation = Reservation::Own(reserve(terms, Enforcement::Apriori));
            }
            ["shares", n] => params.service.reservation = Reservation::Shared(AppId(n.parse().unwrap())),
            ["reserve", "background"] => params.service.reservation = Reservation::Background,
            ["reserve", "none"] => params.service.reservation = Reservation::None,
            ["interruptible", "never"] => params.service.uninterruptible = true,
            ["phase", _] => {}
            other => panic!("what is {other:?}?"),
        }
    }
    params
}

/// `Q/P` or `Q/P/D`: budget, period and deadline.
fn reserve(text: &str, enforcement: Enforcement) -> Reserve {
    let mut numbers = text.split('/').map(|number| Span::from_ns(number.parse().unwrap()));
    let (budget, period) = (numbers.next().unwrap(), numbers.next().unwrap());
    let deadline = numbers.next().unwrap_or(period);
    Reserve { budget, period, deadline, enforcement }
}
