//! How long ready groups waited while less important ones ran.

use hdrhistogram::Histogram;
use takt_core::{AppId, Span, Time};

use crate::record::{GpuRecord, Record};
use crate::roster::Roster;
use crate::summary::Quantiles;

/// Blocking of all apps.
#[derive(Clone, Debug)]
pub(crate) struct Blocking {
    from: Time,
    apps: Vec<Blocked>,
}

#[derive(Clone, Debug)]
struct Blocked {
    /// How long its first waiting group has been blocked so far.
    now: Span,
    longest: Span,
    groups: Histogram<u64>,
}

impl Blocking {
    /// Counts from `from` on.
    pub(crate) fn new(from: Time) -> Self {
        Self { from, apps: Vec::new() }
    }

    /// Takes in a record that `roster` has seen; the blocking of the group that begins with it, if
    /// one does.
    pub(crate) fn see(&mut self, at: Time, record: &Record, roster: &Roster) -> Option<(AppId, Span)> {
        match *record {
            Record::Gpu(GpuRecord::Finished { app, started, .. }) => {
                self.ran(app, started, at, roster);
                None
            }
            Record::Gpu(GpuRecord::Preempted { app, started: Some(started), .. }) => {
                self.ran(app, started, at, roster);
                None
            }
            Record::Gpu(GpuRecord::Started { app, .. }) => {
                let from = self.from;
                let blocked = self.at(app);
                let span = std::mem::take(&mut blocked.now);
                if at < from {
                    return None;
                }
                // The histogram grows as needed; only a value beyond u64 could fail.
                blocked.groups.record(span.as_ns()).unwrap_or_default();
                Some((app, span))
            }
            _ => None,
        }
    }

    /// The blocking of an app's groups.
    pub(crate) fn of(&self, app: AppId) -> Quantiles {
        self.apps.get(app.index()).map_or_else(Quantiles::default, |blocked| {
            let us = |ns: u64| ns as f64 / 1000.0;
            let longest = blocked.longest.as_ns();
            let quantile = |q: f64| us(blocked.groups.value_at_quantile(q).min(longest));
            Quantiles { p50: quantile(0.5), p99: quantile(0.99), max: us(longest) }
        })
    }

    /// This group blocked every more important app that was ready while it ran.
    fn ran(&mut self, app: AppId, started: Time, ended: Time, roster: &Roster) {
        let rank = roster.rank(app);
        let began = started.max(self.from);
        for (index, member) in (0..).zip(roster.members()) {
            if member.rank() > rank
                && let Some(ready) = member.ready_since()
            {
                let blocked = self.at(AppId(index));
                blocked.now += ended.since(began.max(ready));
                blocked.longest = blocked.longest.max(blocked.now);
            }
        }
    }

    fn at(&mut self, app: AppId) -> &mut Blocked {
        while self.apps.len() <= app.index() {
            let groups = Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
            self.apps.push(Blocked { now: Span::ZERO, longest: Span::ZERO, groups });
        }
        &mut self.apps[app.index()]
    }
}
