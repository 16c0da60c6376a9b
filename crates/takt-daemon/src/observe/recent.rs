//! What happened lately, and what it means.
//!
//! The records of the last seconds are kept; figures, causes and traces are made from them on
//! demand, by the same code that judges simulations.

use std::collections::VecDeque;

use takt_core::{Action, AppId, AppParams, Event, Refresh, Span, Stats, Time};
use takt_trace::summary::Miss;
use takt_trace::{AppMeta, Deduced, Meta, Metrics, Observer, Record, RunFacts, Summary};

use crate::control::members::{Member, Members};

/// For how long records are kept.
pub const KEPT: Span = Span::from_ms(30_000);
/// Most records that are kept.
pub const RECORDS_MAX: usize = 500_000;

/// The records of the last seconds.
#[derive(Debug, Default)]
pub struct Log {
    records: VecDeque<(Time, Record)>,
}

impl Log {
    /// Adds what just happened and forgets what is too old.
    pub fn add(&mut self, at: Time, record: Record) {
        let too_old = at - KEPT;
        while self.records.front().is_some_and(|(then, _)| *then < too_old)
            || self.records.len() >= RECORDS_MAX
        {
            self.records.pop_front();
        }
        self.records.push_back((at, record));
    }

    /// Figures and causes of the last `window` before `now`, for those who are attached.
    pub fn summary(&self, now: Time, window: Span, scene: &Scene<'_>) -> Summary {
        self.judge(now, window, scene, |metrics| metrics)
    }

    /// The deadlines that one of them missed in the last `window` before `now`, and why.
    pub fn misses(&self, now: Time, window: Span, scene: &Scene<'_>, app: AppId) -> Vec<Miss> {
        self.judge(now, window, scene, |metrics| metrics.listing_all_of(app)).misses
    }

    fn judge(
        &self,
        now: Time,
        window: Span,
        scene: &Scene<'_>,
        listing: impl FnOnce(Metrics) -> Metrics,
    ) -> Summary {
        let from = now - window.min(KEPT);
        let began = self.records.partition_point(|(at, _)| *at < from);
        let metrics = Metrics::new(scene.meta(), from.since(Time::ZERO));
        let mut metrics = Deduced::new(listing(metrics));
        // Whose joining is not among the records any more.
        let first = self.records.get(began).map_or(now, |(at, _)| *at);
        for member in scene.members.iter().filter(|member| member.since < first) {
            metrics.record(from.max(member.since), &join(member));
        }
        for (at, record) in self.records.range(began..).take_while(|(at, _)| *at <= now) {
            // What became of frames of those who had the slot before is not held against anybody.
            let own = |app| scene.members.get(app).is_none_or(|member| member.since <= *at);
            if judged(record).is_none_or(own) {
                metrics.record(*at, record);
            }
        }
        let facts = RunFacts { seed: 0, event_hash: 0, stats: scene.stats, end: now };
        let mut summary = metrics.finish().finish(facts);
        // Slots between those that are taken.
        summary.apps.retain(|app| !app.name.is_empty());
        summary
    }
}

/// What the records alone do not tell.
#[derive(Debug)]
pub struct Scene<'a> {
    /// Who is attached.
    pub members: &'a Members,
    /// Name of the policy.
    pub policy: &'a str,
    /// The refresh grid.
    pub refresh: Refresh,
    /// The core's counters.
    pub stats: Stats,
}

impl Scene<'_> {
    /// What the numbers in the records stand for.
    pub fn meta(&self) -> Meta {
        let places = self.members.iter().map(|member| member.app.index() + 1).max().unwrap_or(0);
        let vacant =
            AppMeta { name: String::new(), priority: takt_core::Priority(0), fps_mhz: 0, jobs: None };
        let mut apps = vec![vacant; places];
        for member in self.members.iter() {
            apps[member.app.index()] = meta_of(member);
        }
        Meta { scenario: "live".to_owned(), policy: self.policy.to_owned(), refresh: self.refresh, apps }
    }
}

/// What is known of a member beforehand.
pub fn meta_of(member: &Member) -> AppMeta {
    AppMeta {
        name: member.name.clone(),
        priority: member.params.priority,
        fps_mhz: member.fps_mhz,
        jobs: None,
    }
}

/// Whose frame or deadline a record is about.
fn judged(record: &Record) -> Option<AppId> {
    match record {
        Record::Out(Action::FrameDone(done)) => Some(done.app),
        Record::Out(Action::Missed { app, .. }) => Some(*app),
        _ => None,
    }
}

/// The record of a join, for whoever looks at the middle of a story.
pub fn join(member: &Member) -> Record {
    let params: AppParams = member.params;
    Record::In(Event::Join { app: member.app, params, phase: 0 })
}
