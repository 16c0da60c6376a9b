//! What the server shows to those who watch.

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

/// How often counters are handed out anew.
const PAGE: Duration = Duration::from_secs(1);

/// Counters, and where they are handed out.
#[derive(Debug)]
pub(super) struct Monitor {
    totals: Deduced<Totals>,
    exporter: Exporter,
    published: Option<Instant>,
}

impl Server {
    /// Writes all that happens to `out`, from the very start: to be called before anything is
    /// served. Such a log can be [replayed](takt_trace::replay); `build` says by whom best.
    pub fn record_to(&mut self, out: impl Write + Send + 'static, build: &str) -> std::io::Result<()> {
        let meta = self.scene().meta();
        let config = &self.settings.core.clamped();
        self.feeds.record_to(out, &meta, json::Start { config, build })
    }

    /// Hands out counters at `address`, about the time from now on.
    pub fn serve_metrics(&mut self, address: Address) -> std::io::Result<()> {
        let exporter = Exporter::start(address)?;
        self.monitor = Some(Monitor { totals: Deduced::new(Totals::default()), exporter, published: None });
        Ok(())
    }

    /// Tells those who watch what is new.
    pub(super) fn show(&mut self) {
        self.feeds.pump();
        let Some(monitor) = &mut self.monitor else {
            return;
        };
        if monitor.published.is_none_or(|then| then.elapsed() >= PAGE) {
            monitor.published = Some(Instant::now());
            let (stats, turns) = (self.stats, self.turns);
            let (totals, broken) = (monitor.totals.observer(), self.broken.is_some());
            let counted = Counted { totals, members: &self.members, stats, turns, broken };
            monitor.exporter.publish(counted.text());
        }
    }

    /// Ends scheduling, and writes the rest of what is recorded.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.end_loop();
        self.read_notes();
        self.feeds.finish()
    }

    /// A tool is told everything from now on; what is wrong with that, if anything.
    pub(super) fn watch(&mut self, index: usize) -> Option<Answer> {
        let tool = Arc::clone(&self.sessions[index].connection);
        // What happened before is not told any more.
        self.read_notes();
        let now = self.feeds.last();
        let (scene, members) = (self.scene(), &self.members);
        let meta = takt_trace::Meta { apps: Vec::new(), ..scene.meta() };
        let room = self.feeds.watch(tool, |lines| {
            json::put_head(lines, &meta, None);
            for member in members.iter() {
                json::put_app(lines, now, member.app, &meta_of(member));
                json::put_record(lines, now, &join(member));
            }
        });
        (!room).then(|| Answer::refused("too many tools watch already".to_owned()))
    }

    /// What the daemon itself does.
    pub(super) fn daemon_answer(&self) -> Answer {
        let us = |span: Span| span.as_ns() as f64 / 1000.0;
        Answer::Daemon(DaemonAnswer {
            policy: self.policy.clone(),
            refresh_hz: f64::from(self.grid.mhz()) / 1000.0,
            decisions: self.stats.runs,
            granted: self.stats.dispatched,
            turns: self.turns.count,
            turn_us_mean: us(self.turns.busy) / self.turns.count.max(1) as f64,
            turn_us_max: us(self.turns.longest),
            untold: self.turns.untold,
            broken: self.broken.map(|broken| broken.to_string()),
        })
    }

    /// Somebody takes a slot.
    pub(super) fn meet(&mut self, app: takt_core::AppId) {
        if let Some(member) = self.members.get(app) {
            let (now, meta) = (self.feeds.last(), meta_of(member));
            self.feeds.meet(now, app, &meta);
            self.monitor.iter_mut().for_each(|monitor| monitor.totals.meet(now, app, &meta));
        }
    }

    /// Something happened.
    pub(super) fn happened(&mut self, at: Time, record: Record) {
        self.feeds.record(at, &record);
        self.waits.record(at, &record);
        match &record {
            Record::Out(Action::FrameDone(done)) => self.members.finished(at, done),
            Record::Out(Action::Broken(broken)) => self.broke(*broken),
            _ => {}
        }
        self.monitor.iter_mut().for_each(|monitor| monitor.totals.record(at, &record));
        self.log.add(at, record);
    }
}
