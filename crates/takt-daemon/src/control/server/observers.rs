//! Passes what happens to the observers: streams, counters, recent records.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use takt_core::{Action, Span, Time};
use takt_trace::export::json;
use takt_trace::totals::Totals;
use takt_trace::{Deduced, Observer, Record};

use super::Server;
use crate::control::ask::{Answer, DaemonAnswer};
use crate::observe::exporter::{Address, Exporter};
use crate::observe::exposition::Counted;
use crate::observe::recent::{join, meta_of};

/// How often the page of counters is renewed.
const PAGE: Duration = Duration::from_secs(1);

/// Counters, and the server of their page.
#[derive(Debug)]
pub(super) struct Monitor {
    totals: Deduced<Totals>,
    exporter: Exporter,
    published: Option<Instant>,
}

impl Server {
    /// Writes every record to `out`; to be called before the first turn. Such a log can be
    /// [replayed](takt_trace::replay), best by the same `build`.
    pub fn record_to(&mut self, out: impl Write + Send + 'static, build: &str) -> std::io::Result<()> {
        let meta = self.scene().meta();
        let config = &self.settings.core.clamped();
        self.streams.record_to(out, &meta, json::Start { config, build })
    }

    /// Serves counters at `address`, which count from now on.
    pub fn serve_metrics(&mut self, address: Address) -> std::io::Result<()> {
        let exporter = Exporter::start(address)?;
        self.monitor = Some(Monitor { totals: Deduced::new(Totals::default()), exporter, published: None });
        Ok(())
    }

    /// Sends news to the observers.
    pub(super) fn publish(&mut self) {
        self.streams.pump();
        let Some(monitor) = &mut self.monitor else {
            return;
        };
        if monitor.published.is_none_or(|then| then.elapsed() >= PAGE) {
            monitor.published = Some(Instant::now());
            let (stats, loop_stats) = (self.scheduling.stats, self.scheduling.loop_stats);
            let (totals, broken) = (monitor.totals.observer(), self.broken.is_some());
            let counted = Counted { totals, members: &self.members, stats, loop_stats, broken };
            monitor.exporter.publish(counted.text());
        }
    }

    /// Ends scheduling, and writes the rest of the recording.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.scheduling.end();
        self.read_notes();
        self.streams.finish()
    }

    /// Sends a tool every record from now on; returns the refusal, if it is refused.
    pub(super) fn watch(&mut self, index: usize) -> Option<Answer> {
        let tool = Arc::clone(&self.sessions[index].connection);
        // Earlier records are not for this tool.
        self.read_notes();
        let now = self.streams.last();
        let (scene, members) = (self.scene(), &self.members);
        let meta = takt_trace::Meta { apps: Vec::new(), ..scene.meta() };
        let room = self.streams.watch(tool, |lines| {
            json::put_head(lines, &meta, None);
            for member in members.iter() {
                json::put_app(lines, now, member.app, &meta_of(member));
                json::put_record(lines, now, &join(member));
            }
        });
        (!room).then(|| Answer::refused("too many tools watch already"))
    }

    /// Counters and state of the daemon itself.
    pub(super) fn daemon_answer(&self) -> Answer {
        let us = |span: Span| span.as_ns() as f64 / 1000.0;
        let (stats, turns) = (&self.scheduling.stats, &self.scheduling.loop_stats);
        Answer::Daemon(DaemonAnswer {
            policy: self.policy.clone(),
            refresh_hz: f64::from(self.grid.mhz()) / 1000.0,
            decisions: stats.runs,
            granted: stats.dispatched,
            turns: turns.turns,
            turn_us_mean: us(turns.busy) / turns.turns.max(1) as f64,
            turn_us_max: us(turns.longest),
            untold: turns.dropped,
            broken: self.broken.map(|broken| broken.to_string()),
        })
    }

    /// A client takes a slot.
    pub(super) fn observe_join(&mut self, app: takt_core::AppId) {
        if let Some(member) = self.members.get(app) {
            let (now, meta) = (self.streams.last(), meta_of(member));
            self.streams.meet(now, app, &meta);
            self.monitor.iter_mut().for_each(|monitor| monitor.totals.meet(now, app, &meta));
        }
    }

    /// Something happened.
    pub(super) fn happened(&mut self, at: Time, record: Record) {
        self.streams.record(at, &record);
        self.waits.record(at, &record);
        match &record {
            Record::Out(Action::FrameDone(done)) => self.members.finished(at, done),
            Record::Out(Action::Broken(broken)) => self.broke(*broken),
            _ => {}
        }
        self.monitor.iter_mut().for_each(|monitor| monitor.totals.record(at, &record));
        self.recent.add(at, record);
    }
}
