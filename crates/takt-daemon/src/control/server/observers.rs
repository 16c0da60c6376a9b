//! Passes what happens to the observers: streams, counters, recent records.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use takt_core::{Action, Event, Span, Time};
use takt_os::clock;
use takt_trace::export::json;
use takt_trace::totals::Totals;
use takt_trace::{AppMeta, Deduced, Observer, Record};

use super::Server;
use super::session::Session;
use crate::control::ask::{Answer, DaemonAnswer, DomainsAnswer, EvictedAnswer, Known, Limits};
use crate::control::closer::ClientSocket;
use crate::control::config::AppSettings;
use crate::control::early_ends::Party;
use crate::control::members::Member;
use crate::control::statement::Outsiders;
use crate::control::view::{HIDDEN, View};
use crate::observe::counted_as::CountedAs;
use crate::observe::exporter::{Address, Exporter};
use crate::observe::exposition::Counted;
use crate::observe::recent::{join, meta_of};
use crate::observe::trace_stream::{Crowded, Watcher};

/// How often the page of counters is renewed.
const PAGE: Duration = Duration::from_secs(1);

/// An app by what it is counted as.
fn counted_as(member: &Member) -> AppMeta {
    let (name, domain, listed) = (&member.name, &member.domain.name, member.listed);
    AppMeta { name: CountedAs { name, domain, listed }.text(), ..meta_of(member) }
}

/// Counters of apps, once they are wanted, and the server of their page, if there is one.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    counters: Option<Deduced<Totals>>,
    exporter: Option<Exporter>,
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
        self.monitor.exporter = Some(exporter);
        self.count();
        Ok(())
    }

    /// Counts what apps do from now on, unless it does already.
    pub(super) fn count(&mut self) {
        if self.monitor.counters.is_some() {
            return;
        }
        let (now, mut counters) = (self.streams.last(), Deduced::new(Totals::default()));
        for member in self.members.iter() {
            counters.meet(now, member.app, &counted_as(member));
            counters.record(now, &join(member));
        }
        self.monitor.counters = Some(counters);
        self.keep_counters();
    }

    /// Where counters are served, if they are.
    pub fn metrics_address(&self) -> Option<&Address> {
        self.monitor.exporter.as_ref().map(Exporter::address)
    }

    /// Counters of listed apps stay, whatever other names come and go.
    pub(super) fn keep_counters(&mut self) {
        if let Some(counters) = &mut self.monitor.counters {
            let own =
                |app: &AppSettings| CountedAs { name: &app.name, domain: &app.domain, listed: true }.text();
            counters.observer_mut().keep(self.settings.apps.iter().map(own));
        }
    }

    /// Has apps counted as what they are from now on: others may be listed, and domains may have others.
    pub(super) fn count_again(&mut self) {
        let (now, Some(counters)) = (self.streams.last(), &mut self.monitor.counters) else { return };
        for member in self.members.iter() {
            counters.meet(now, member.app, &counted_as(member));
        }
    }

    /// Sends news to the observers.
    pub(super) fn publish(&mut self) {
        self.streams.pump();
        let is_due = self.monitor.published.is_none_or(|then| then.elapsed() >= PAGE);
        if is_due
            && self.monitor.exporter.is_some()
            && let (Some(counted), Some(exporter)) = (self.counted(), &self.monitor.exporter)
        {
            // Writing the page takes long, so that is done where it is served.
            exporter.publish(move || counted.text());
            self.monitor.published = Some(Instant::now());
        }
    }

    /// All counters, if apps are counted.
    pub(super) fn counted(&self) -> Option<Counted> {
        let totals = self.monitor.counters.as_ref()?.observer();
        Some(Counted {
            apps: totals.apps().map(|(name, totals)| (name.to_owned(), totals.clone())).collect(),
            uncounted: totals.gaps(),
            members: self.members.clone(),
            stats: self.scheduling.stats,
            loop_stats: self.scheduling.loop_stats,
            control_stall: self.stalls.length(),
            silent: self.supervisor.silent().map(|app| (app.name.clone(), app.domain.clone())).collect(),
            early_ends: self.early_ends_found,
            degraded: self.degraded.is_some(),
            broken: self.broken.is_some(),
            outsiders: self.surroundings.outsiders.clone(),
            uncut: self.waits.all_stuck().collect(),
            audit: self.audit.counts(),
            shares: self.share_counts(),
        })
    }

    /// Ends scheduling, and writes the rest of the recording.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.scheduling.end();
        while self.read_notes(clock::now()) {}
        self.end_audit();
        self.streams.finish()
    }

    /// Sends a tool every record from now on; returns the refusal, if it is refused.
    pub(super) fn watch(&mut self, index: usize) -> Option<Answer> {
        let (tool, user) = (Arc::clone(&self.sessions[index].connection), self.user(index));
        match self.streams.make_room(user) {
            Err(Crowded) => return Some(Answer::refused("too many tools watch already")),
            Ok(None) => {}
            Ok(Some(other)) => self.end_watch(&other),
        }
        let now = self.streams.last();
        let meta = takt_trace::Meta { apps: Vec::new(), ..self.scene().meta() };
        let mut lines = Vec::new();
        json::put_head(&mut lines, &meta, None);
        for member in self.members.iter() {
            json::put_app(&mut lines, now, member.app, &meta_of(member));
            json::put_record(&mut lines, now, &join(member));
        }
        // Records that wait to be read are not for this tool.
        let earlier = self.scheduling.notes.slots();
        self.streams.watch(Watcher::new(tool, user, lines), earlier);
        None
    }

    /// Closes the connection of a tool that made room for another.
    fn end_watch(&mut self, tool: &Arc<ClientSocket>) {
        let is_it = |session: &Session| Arc::ptr_eq(&session.connection, tool);
        if let Some(index) = self.sessions.iter().position(is_it) {
            let reason = "other users watch, too, and your user has most of the tools that do".to_owned();
            self.hang_up(index, reason, None);
        }
    }

    /// The longest time for which the control thread did not look at its connections, if it ever waited.
    pub fn longest_stall(&self) -> Option<(Time, Time)> {
        self.stalls.longest()
    }

    /// Counters and state of the daemon itself.
    /// Without the right to see others, a tool hears of those of its own domain or user alone.
    pub(super) fn daemon_answer(&self, view: &View, uid: u32) -> Answer {
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
            control_stall_ms_max: us(self.stalls.length()) / 1000.0,
            silent: self.silent_for_view(view),
            degraded: self.degraded_for_view(view),
            broken: self.broken.map(|broken| broken.to_string()),
            limits: Limits::from(&self.adjustable),
            evicted: self.evicted_answer(view, uid),
            outsiders: self.outsiders_answer(view, uid),
        })
    }

    /// The supervised apps that do not draw, as far as a tool sees their domains.
    fn silent_for_view(&self, view: &View) -> Vec<String> {
        let seen = self.supervisor.silent().filter(|app| view.sees_domain(&app.domain));
        seen.map(|app| app.name.clone()).collect()
    }

    /// The app for which others stand still; its name for those who see its domain alone.
    fn degraded_for_view(&self, view: &View) -> Option<String> {
        let (name, domain) = self.degraded.as_ref()?;
        Some(if view.sees_domain(domain) { name.clone() } else { HIDDEN.to_owned() })
    }

    fn outsiders_answer(&self, view: &View, uid: u32) -> Outsiders {
        let mut outsiders = self.outsiders().clone();
        outsiders.found.retain(|one| *view == View::All || one.uid == uid);
        outsiders
    }

    fn evicted_answer(&self, view: &View, uid: u32) -> Vec<EvictedAnswer> {
        let seconds = |span: Span| span.as_ns() as f64 / 1e9;
        let all = self.evicted.all(clock::now()).filter(|(_, of, _)| *view == View::All || *of == uid);
        all.map(|(name, uid, left)| EvictedAnswer { name: name.to_owned(), uid, for_s: seconds(left) })
            .collect()
    }

    /// The domains, as a tool may see them.
    pub(super) fn domains(&mut self, index: usize) -> Answer {
        let who = self.identity(index);
        let known = Known { members: &self.members, settings: &self.settings, shares: &self.shares };
        Answer::Domains(DomainsAnswer::new(&who, &known, self.vehicle.answer()))
    }

    /// A client takes a slot.
    pub(super) fn observe_join(&mut self, app: takt_core::AppId) {
        if let Some(member) = self.members.get(app) {
            let (now, meta) = (self.streams.last(), meta_of(member));
            self.streams.meet(now, app, &meta);
            self.supervisor.joined(clock::now(), &member.client());
            let (uid, domain) = (member.identity.uid, member.domain.name.clone());
            self.early_ends.came(app, Party { uid, domain });
            let process = Some(member.identity.pid);
            self.scheduling.frames.set_app(app, process, &member.name);
            let counted = counted_as(member);
            self.monitor.counters.iter_mut().for_each(|counters| counters.meet(now, app, &counted));
        }
    }

    /// Something happened.
    pub(super) fn happened(&mut self, at: Time, record: Record) {
        self.streams.record(at, &record);
        self.waits.record(at, &record);
        self.surroundings.evidence.record(at, &record);
        self.audit.watch.record(at, &record);
        self.shares.record(at, &record);
        if let Some(found) = self.early_ends.record(at, &record) {
            self.contradicted(found);
        }
        match &record {
            Record::In(Event::Submit { app, .. }) => self.works(*app),
            Record::Out(Action::FrameDone(done)) => self.drew(at, done),
            Record::Out(Action::Broken(broken)) => self.broke(*broken),
            _ => {}
        }
        self.monitor.counters.iter_mut().for_each(|counters| counters.record(at, &record));
        self.recent.add(at, record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::{Client, Settings};
    use crate::control::identity::Identity;
    use crate::control::quarantine::Origin;
    use crate::control::statement::Outsider;

    #[test]
    fn without_the_right_to_see_others_the_daemons_state_names_none() {
        let path = std::env::temp_dir().join(format!("takt-state-{}", std::process::id()));
        let text = "[[app]]\nname = 'dial'\nsilence_ms_max = 100";
        let mut server = Server::start(path, Settings::parse(text).expect("settings")).expect("a daemon");
        let (own, now) = (Arc::clone(&server.settings.domains.own), clock::now());
        let dial = Client { name: "dial", domain: &own, who: &Identity::default() };
        server.supervisor.joined(Time::from_ns(1), &dial);
        assert_eq!(server.supervisor.check(now).len(), 1, "it is silent");
        let origin = Origin { uid: 7, domain: "unlisted".to_owned(), executable: None };
        server.evicted.add(now, ("game", origin), now + Span::from_ms(60_000), true);
        let (name, device) = ("miner".to_owned(), "/dev/dri/card0".to_owned());
        server.surroundings.outsiders.found.push(Outsider { pid: 1, uid: 8, name, device });
        let told = |view: &View, uid| {
            let Answer::Daemon(answer) = server.daemon_answer(view, uid) else { panic!("another answer") };
            (answer.silent.len(), answer.evicted.len(), answer.outsiders.found.len())
        };
        let unlisted = |uid| View::Own { domain: "unlisted".to_owned(), uid: Some(uid) };
        assert_eq!(told(&View::All, 0), (1, 1, 1));
        assert_eq!(told(&unlisted(7), 7), (0, 1, 0), "its own app");
        assert_eq!(told(&unlisted(8), 8), (0, 0, 1), "its own program");
        assert_eq!(told(&unlisted(9), 9), (0, 0, 0));
        let colleague = View::Own { domain: own.name.clone(), uid: None };
        assert_eq!(told(&colleague, 9), (1, 0, 0), "the apps of its domain");
    }
}
