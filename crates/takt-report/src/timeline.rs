//! The timing diagram: who submitted what, what the scheduler decided, what the GPU did.
//!
//! Records become columns of numbers here, and `drawing.js` draws them on a canvas: a picture
//! of some ten thousand groups that can be zoomed is too much for SVG.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use takt_core::{Action, AppId, Hold, Span, Time};
use takt_trace::lives::{Life, Lives, kind_name};
use takt_trace::{GpuRecord, Record};

use crate::html::{count, escape, script_json};
use crate::{Run, frames as live};

/// The script that draws all diagrams of a page, closed off from other scripts.
pub(crate) const SCRIPT: &str =
    concat!("'use strict';(() => {\n", include_str!("drawing.js"), include_str!("timeline.js"), "})();");

/// Groups beyond which a page would get too large to open; the rest is left out and said so.
const GROUPS_MAX: usize = 60_000;

/// Stands for "unknown" in columns of times, which are never negative.
const UNKNOWN: i64 = -1;

/// What the script draws. Times are nanoseconds since `origin_ns`.
#[derive(Serialize, Default)]
struct Data {
    policy: String,
    origin_ns: u64,
    length: i64,
    apps: Vec<Lane>,
    kinds: Vec<&'static str>,
    vsync: Vec<i64>,
    groups: GroupColumns,
    reasons: Vec<String>,
    /// (time, app, index into `reasons`)
    holds: Vec<(i64, usize, usize)>,
    /// (deadline, app, frame)
    misses: Vec<(i64, usize, u64)>,
    /// (from, to)
    stalls: Vec<(i64, i64)>,
    /// Nothing but frames: what a scheduler or a GPU did is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    frames_only: bool,
    #[serde(skip)]
    left_out: usize,
}

#[derive(Serialize)]
struct Lane {
    name: String,
    priority: u32,
    colour: usize,
    /// Its frames are due at some time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    judged: bool,
}

/// One entry per group in each column.
#[derive(Serialize, Default)]
struct GroupColumns {
    app: Vec<usize>,
    group: Vec<u64>,
    kind: Vec<usize>,
    frame: Vec<i64>,
    submitted: Vec<i64>,
    predicted: Vec<i64>,
    dispatched: Vec<i64>,
    reserved: Vec<i64>,
    started: Vec<i64>,
    finished: Vec<i64>,
}

/// The diagram of one run; `colour` numbers apps by name, the same on the whole page.
pub(crate) fn diagram(run: &Run, index: usize, colour: impl Fn(&str) -> usize) -> String {
    let data = Collector::new(run, colour).collect(run);
    element(&data, &in_words(&data), index)
}

/// The diagram of frames that real programs drew.
pub(crate) fn frames(run: &live::Run, index: usize) -> String {
    let origin = run.window.from;
    let since = |at: u64| i64::try_from(at).unwrap_or(i64::MAX) - i64::try_from(origin).unwrap_or(0);
    let lane = |(colour, app): (usize, &live::App)| Lane {
        name: app.name.clone(),
        priority: app.priority,
        colour,
        judged: app.fps > 0.0,
    };
    let mut data = Data {
        policy: run.name.clone(),
        length: since(run.window.until).max(1),
        apps: run.apps.iter().enumerate().map(lane).collect(),
        kinds: vec![""],
        frames_only: true,
        ..Data::default()
    };
    for (lane, app) in run.apps.iter().enumerate() {
        data.misses.extend(app.missed.iter().map(|miss| (since(miss.deadline), lane, miss.frame)));
        for frame in app.frames.iter().filter(|frame| frame.end > origin && frame.begin < run.window.until) {
            let groups = &mut data.groups;
            groups.app.push(lane);
            groups.group.push(frame.number);
            groups.kind.push(0);
            groups.frame.push(i64::try_from(frame.number).unwrap_or(UNKNOWN));
            groups.submitted.push(since(frame.begin).max(0));
            groups.predicted.push(since(frame.end) - since(frame.begin).max(0));
            for unknown in
                [&mut groups.dispatched, &mut groups.reserved, &mut groups.started, &mut groups.finished]
            {
                unknown.push(UNKNOWN);
            }
        }
    }
    let words = format!(
        "{} s {}: {} frames of {} apps, {} deadlines missed.",
        run.window.seconds(),
        run.name,
        count(data.groups.app.len() as u64),
        data.apps.len(),
        count(data.misses.len() as u64)
    );
    element(&data, &words, index)
}

fn element(data: &Data, words: &str, index: usize) -> String {
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    let mut out = format!(
        "<div class=\"timeline\" data-source=\"timeline-{index}\">{TOOLBAR}\
         <div class=\"stage\"><canvas tabindex=\"0\" role=\"img\" aria-label=\"Timing diagram of \
         {}\">{}</canvas><div class=\"tip\" hidden></div></div>\
         <noscript><p class=\"note\">The diagram needs JavaScript.</p></noscript>\
         <p class=\"note\">{}</p></div>",
        escape(&data.policy),
        escape(words),
        escape(words)
    );
    out.push_str(&format!(
        "<script type=\"application/json\" id=\"timeline-{index}\">{}</script>",
        script_json(&json)
    ));
    out
}

const TOOLBAR: &str = "<p class=\"toolbar noprint\">\
<button type=\"button\" data-act=\"in\" title=\"Zoom in (+)\">+</button>\
<button type=\"button\" data-act=\"out\" title=\"Zoom out (-)\">−</button>\
<button type=\"button\" data-act=\"left\" title=\"Earlier (left arrow)\">◀</button>\
<button type=\"button\" data-act=\"right\" title=\"Later (right arrow)\">▶</button>\
<button type=\"button\" data-act=\"all\" title=\"Show all (0)\">all</button>\
<button type=\"button\" data-act=\"previous\" title=\"Previous missed deadline (p)\">previous miss</button>\
<button type=\"button\" data-act=\"next\" title=\"Next missed deadline (n)\">next miss</button>\
<span>Wheel zooms, dragging moves; keys: + − ◀ ▶ 0 p n</span></p>";

/// The gist of the picture for those who cannot see it.
fn in_words(data: &Data) -> String {
    let executed = data.groups.started.iter().filter(|t| **t >= 0).count();
    let ms = data.length / 1_000_000;
    let mut text = format!(
        "{ms} ms of recording: {} groups of {} apps executed, {} deadlines missed.",
        count(executed as u64),
        data.apps.len(),
        count(data.misses.len() as u64)
    );
    if data.left_out > 0 {
        let left_out = count(data.left_out as u64);
        text.push_str(&format!(" {left_out} later groups are left out."));
    }
    text
}

/// Goes through the records once.
struct Collector {
    data: Data,
    origin: Time,
    last: Time,
    lanes: BTreeMap<AppId, usize>,
    lives: Lives,
    known: Vec<Life>,
    reasons: BTreeMap<String, usize>,
}

impl Collector {
    fn new(run: &Run, colour: impl Fn(&str) -> usize) -> Self {
        let records = &run.timeline.records;
        let mut order: Vec<_> = (0u32..).map(AppId).zip(&run.meta.apps).collect();
        order.sort_by_key(|(id, app)| (Reverse(app.priority), *id));
        let apps = order.iter().map(|(_, app)| Lane {
            name: app.name.clone(),
            priority: app.priority.0,
            colour: colour(&app.name),
            judged: false,
        });
        let origin = records.first().map_or(Time::ZERO, |(at, _)| *at);
        Self {
            data: Data {
                policy: run.meta.policy.clone(),
                origin_ns: origin.as_ns(),
                apps: apps.collect(),
                kinds: vec!["draw", "swap", "sync", "exit", "group"],
                ..Data::default()
            },
            origin,
            last: origin,
            lanes: order.iter().enumerate().map(|(lane, (id, _))| (*id, lane)).collect(),
            lives: Lives::new(),
            known: Vec::new(),
            reasons: BTreeMap::new(),
        }
    }

    fn collect(mut self, run: &Run) -> Data {
        // What was under way when the recording began, so that frames keep their numbers.
        self.lives = run.timeline.before().clone();
        for (at, record) in &run.timeline.records {
            self.last = *at;
            self.see(*at, record, run);
            if let Some(life) = self.lives.see(*at, record) {
                self.known.push(life);
            }
        }
        self.known.extend(self.lives.open().copied());
        self.known.sort_by_key(|life| (life.submitted, life.group));
        for life in std::mem::take(&mut self.known) {
            self.group(&life);
        }
        self.data.length = self.ns(self.last).max(1);
        self.data
    }

    fn see(&mut self, at: Time, record: &Record, run: &Run) {
        let now = self.ns(at);
        match *record {
            Record::Vsync(_) => self.data.vsync.push(now),
            Record::Out(Action::Hold { app, reason }) => {
                let reason = self.reason(&why(reason, run));
                if let Some(lane) = self.lanes.get(&app) {
                    self.data.holds.push((now, *lane, reason));
                }
            }
            Record::Out(Action::Missed { app, frame, deadline, .. }) => {
                let deadline = self.ns(deadline);
                if let Some(lane) = self.lanes.get(&app) {
                    self.data.misses.push((deadline, *lane, frame));
                }
            }
            Record::Gpu(GpuRecord::Stalled { until }) => {
                let until = self.ns(until);
                self.data.stalls.push((now, until));
            }
            Record::Gpu(GpuRecord::Preempted { app, group, started: Some(started), .. }) => {
                self.executed(app, group.0, started, at);
            }
            Record::Gpu(GpuRecord::Finished { app, group, started }) if self.lives.get(group).is_none() => {
                // Submitted before the recording began: only its execution is known.
                self.executed(app, group.0, started, at);
            }
            _ => {}
        }
    }

    fn group(&mut self, life: &Life) {
        let Some(lane) = self.lanes.get(&life.app).copied() else {
            return;
        };
        if !self.room() {
            return;
        }
        let time = |at: Option<Time>| at.map_or(UNKNOWN, |at| self.ns(at));
        let (dispatched, started) = (time(life.dispatched), time(life.last_begun()));
        let (submitted, finished) = (time(Some(life.submitted)), time(life.finished));
        let kind = self.kind(kind_name(life.kind));
        let groups = &mut self.data.groups;
        groups.app.push(lane);
        groups.group.push(life.group.0);
        groups.kind.push(kind);
        groups.frame.push(i64::try_from(life.frame).unwrap_or(UNKNOWN));
        groups.submitted.push(submitted);
        groups.predicted.push(length(Some(life.predicted.span())));
        groups.dispatched.push(dispatched);
        groups.reserved.push(length(life.reserved));
        groups.started.push(started);
        groups.finished.push(finished);
    }

    fn executed(&mut self, app: AppId, group: u64, started: Time, finished: Time) {
        let Some(lane) = self.lanes.get(&app).copied() else {
            return;
        };
        let (started, finished) = (self.ns(started), self.ns(finished));
        let kind = self.kind("group");
        let groups = &mut self.data.groups;
        groups.app.push(lane);
        groups.group.push(group);
        groups.kind.push(kind);
        groups.started.push(started);
        groups.finished.push(finished);
        groups.frame.push(UNKNOWN);
        groups.submitted.push(UNKNOWN);
        groups.predicted.push(UNKNOWN);
        groups.dispatched.push(UNKNOWN);
        groups.reserved.push(UNKNOWN);
    }

    fn room(&mut self) -> bool {
        let room = self.data.groups.app.len() < GROUPS_MAX;
        self.data.left_out += usize::from(!room);
        room
    }

    fn kind(&self, name: &str) -> usize {
        let at = self.data.kinds.iter().position(|kind| *kind == name);
        at.unwrap_or_default()
    }

    /// Index of a reason; there are few different ones.
    fn reason(&mut self, text: &str) -> usize {
        if let Some(at) = self.reasons.get(text) {
            return *at;
        }
        let at = self.data.reasons.len();
        self.data.reasons.push(text.to_owned());
        self.reasons.insert(text.to_owned(), at);
        at
    }

    /// Nanoseconds since the beginning of the recording.
    fn ns(&self, at: Time) -> i64 {
        at.since(self.origin).as_signed_ns()
    }
}

fn length(span: Option<Span>) -> i64 {
    match span {
        Some(span) if span < Span::FOREVER => span.as_signed_ns(),
        _ => UNKNOWN,
    }
}

fn why(reason: Hold, run: &Run) -> String {
    match reason {
        Hold::Protects { app } => format!("lest {} miss a deadline", run.meta.name(app)),
        Hold::Clears { app } => format!("{} is expected", run.meta.name(app)),
        Hold::Behind { app } => format!("{} goes first", run.meta.name(app)),
        Hold::Exhausted { app } => format!("no time left after {}", run.meta.name(app)),
        Hold::LookAhead => "promises reach further than the scheduler looks ahead".to_owned(),
        Hold::NoSlot => "as many groups as allowed are in flight".to_owned(),
        Hold::Unbounded => "nothing is known about its length".to_owned(),
        Hold::NoBudget { .. } => "its reserve is used up".to_owned(),
        Hold::Turn { app } => format!("it is the turn of {}", run.meta.name(app)),
        Hold::Tick { .. } => "decisions are taken at ticks".to_owned(),
        Hold::Batch => "the rest of its batch has not come".to_owned(),
    }
}
