//! Plays a script against a scheduler. See the module above for the language.

mod gpu;
mod script;
mod timeline;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt::Write;
use std::borrow::ToOwned;
use std::string::String;
use std::vec::Vec;

use gpu::{Ended, RigGpu, Work};
use script::{Setup, adjusted, changed, number, span};
use timeline::Granted;

use crate::app::{AppId, AppParams, GroupId, GroupKind, Priority, Stride};
use crate::event::{Action, Event};
use crate::policy::Policy;
use crate::scheduler::Scheduler;
use crate::service::Service;
use crate::time::{Cost, Estimate, Span, Time};

struct Rig {
    scheduler: Scheduler,
    now: Time,
    gpu: RigGpu,
    names: Vec<String>,
    params: Vec<AppParams>,
    /// All that were submitted, by group number.
    groups: Vec<Group>,
    delay: Span,
    until: Time,
    tells_releases: bool,
    tells_predictions: bool,
    out: String,
}

/// What the scheduler does not know of a group.
#[derive(Copy, Clone)]
struct Group {
    app: AppId,
    kind: GroupKind,
    /// How long the GPU takes for it.
    cost: u64,
    /// Whether its completion is reported.
    reported: bool,
}

/// Plays `script` to its end and tells what happened.
pub(super) fn play(script: &str, policy: Box<dyn Policy>) -> String {
    let (setup, lines) = Setup::read(script);
    let mut rig = Rig {
        scheduler: Scheduler::new(setup.config, policy),
        now: Time::ZERO,
        gpu: setup.gpu,
        names: Vec::new(),
        params: Vec::new(),
        groups: Vec::new(),
        delay: setup.config.margins.dispatch_upper,
        until: setup.until,
        tells_releases: setup.tells_releases,
        tells_predictions: setup.tells_predictions,
        out: String::new(),
    };
    let mut steps: Vec<(Time, Vec<&str>)> = Vec::new();
    for words in lines {
        match words[0].strip_prefix('@') {
            Some(at) => steps.push((Time::from_ns(number(at)), words[1..].to_vec())),
            None => rig.join(&words),
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    rig.run(steps.into());
    rig.out
}

impl Rig {
    fn run(&mut self, mut steps: VecDeque<(Time, Vec<&str>)>) {
        loop {
            self.obey();
            let next_step = steps.front().map(|(at, _)| *at);
            let next_end = self.gpu.next_end(self.until);
            let timeout = self.scheduler.poll_timeout();
            let Some(now) = [next_end, timeout, next_step].into_iter().flatten().min() else {
                return;
            };
            if now >= self.until {
                return;
            }
            self.now = now;
            while let Some(ended) = self.gpu.take_ended(now) {
                if self.group(ended.group).reported {
                    self.complete(now, ended);
                }
            }
            self.scheduler.handle_timeout(now);
            while steps.front().is_some_and(|(at, _)| *at <= now) {
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
        match words {
            ["decisions"] => {
                let runs = self.scheduler.stats().runs;
                writeln!(self.out, "{} decisions: {runs}", now.as_ns()).unwrap();
            }
            ["set", settings @ ..] => {
                let adjustable = adjusted(self.scheduler.config().adjustable(), settings);
                self.delay = adjustable.margins.dispatch_upper;
                self.scheduler.handle_event(now, Event::Adjust(adjustable));
            }
            [name, words @ ..] => {
                let index = self.names.iter().position(|known| known == name).expect("app is known");
                self.act(now, AppId(u32::try_from(index).unwrap()), words);
            }
            [] => panic!("what happens?"),
        }
        self.scheduler.check_invariants();
    }

    /// An app does something.
    fn act(&mut self, now: Time, app: AppId, words: &[&str]) {
        match words {
            ["focuses"] => self.scheduler.handle_event(now, Event::Focus { app: Some(app) }),
            ["revises", group, length] => {
                let (group, estimate) = (GroupId(number(group)), Estimate::new(span(length)));
                self.scheduler.handle_event(now, Event::Revise { app, group, estimate });
            }
            ["reports", group] => {
                let group = GroupId(number(group));
                let cost = Span::from_ns(self.group(group).cost);
                self.complete(now, Ended { group, at: now, cost });
            }
            ["reports", group, "ended", at] => {
                let (group, at) = (GroupId(number(group)), Time::from_ns(number(at)));
                let cost = Span::from_ns(self.group(group).cost);
                self.complete(now, Ended { group, at, cost });
            }
            ["ends", "frame"] => self.scheduler.handle_event(now, Event::EndFrame { app }),
            ["leaves"] => self.scheduler.handle_event(now, Event::Leave { app }),
            ["exits"] => self.submit(now, app, "0", GroupKind::Exit),
            [what, ..] if what.starts_with(|c: char| c.is_ascii_digit() || c == '∞') => {
                for word in words {
                    let length = word.trim_end_matches(['s', 'y', '?']);
                    match &word[length.len()..] {
                        "s" | "s?" => self.submit(now, app, word, GroupKind::Swap),
                        "y" | "y?" => self.submit(now, app, word, GroupKind::Sync),
                        _ => self.submit(now, app, word, GroupKind::Draw),
                    }
                }
            }
            settings => {
                let params = changed(self.params[app.index()], settings);
                self.params[app.index()] = params;
                self.scheduler.handle_event(now, Event::Change { app, params });
            }
        }
    }

    fn submit(&mut self, now: Time, app: AppId, word: &str, kind: GroupKind) {
        let lengths = word.trim_end_matches(['s', 'y', '?']);
        let (estimate, cost) = lengths.split_once('/').unwrap_or((lengths, lengths));
        let group = GroupId(self.groups.len() as u64);
        self.groups.push(Group { app, kind, cost: number(cost), reported: !word.ends_with('?') });
        let estimate = Estimate::new(span(estimate));
        self.scheduler.handle_event(now, Event::Submit { app, group, kind, estimate });
    }

    /// The scheduler hears of the end of a group.
    fn complete(&mut self, now: Time, ended: Ended) {
        let Ended { group, at: finished, cost } = ended;
        self.tell_end(ended);
        let cost = Cost::new(cost);
        self.scheduler.handle_event(now, Event::Complete { group, finished, cost, frames: 0 });
    }

    fn obey(&mut self) {
        while let Some(action) = self.scheduler.poll_action() {
            self.scheduler.check_invariants();
            match action {
                Action::Dispatch { app, group: number, target, start, reserved } => {
                    let group = self.group(number);
                    let (arrives, cost) = (self.now + self.delay, Span::from_ns(group.cost));
                    let runs = self.gpu.dispatch(Work { app, group: number, arrives, cost });
                    self.tell_grant(&Granted { group, target, start, reserved, runs });
                }
                Action::Preempt { group, .. } => {
                    let left = self.gpu.take_back(group, self.now);
                    self.groups[usize::try_from(group.0).unwrap()].cost = left.as_ns();
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

    fn group(&self, group: GroupId) -> Group {
        self.groups[usize::try_from(group.0).unwrap()]
    }
}
