//! The audit: what was decided about which client, by which rule, in files that show what is missing.
//!
//! The control thread makes records, runs the rules over them and queues them; a thread of its own writes
//! them to files (`store`) and to the DLT daemon (`dlt`). Nothing here waits. As in the log, each user
//! has so many records of a kind per second, and what is more becomes one record with its number.
//!
//! Two chains of records have files, bounds and places in the queue of their own: one for the daemon, its
//! own user and clients of listed domains, one for all others. No unlisted user pushes out records of the
//! first.

mod dlt;
mod ledger;
mod store;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use takt_audit::rules::Severity;
use takt_audit::{Alarm, Engine, Event, Head, Record, Rule, Subject};

use super::folds::Folds;
use crate::control::user::Rank;
pub use ledger::{Ledger, Told};
use watch::Watch;
use writer::AuditWriter;

/// How often the heads of the chains are told besides at the end.
const HEADS: Duration = Duration::from_secs(3_600);
/// Most news that wait to be taken.
const NEWS_MAX: usize = 256;

/// Where records go, and which rules run over them.
#[derive(Clone, PartialEq, Debug)]
pub struct AuditSettings {
    /// The folder of the files; none writes no files.
    pub folder: Option<PathBuf>,
    /// How large files get, and how many there are.
    pub limits: Limits,
    /// Pipe or socket of a DLT daemon.
    pub dlt: Option<PathBuf>,
    /// Rules that raise alarms.
    pub rules: Vec<Rule>,
}

/// Bounds of each chain on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most bytes of a file.
    pub file_bytes: u64,
    /// Most files.
    pub files: usize,
}

/// A chain of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChainId {
    /// The daemon, its own user, and clients of listed domains.
    Main,
    /// All others.
    Unlisted,
}

/// All chains.
const CHAINS: [ChainId; 2] = [ChainId::Main, ChainId::Unlisted];

impl ChainId {
    /// Its name, with which its files begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Unlisted => "unlisted",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Unlisted => 1,
        }
    }

    fn of(rank: Rank) -> Self {
        if rank == Rank::Other { Self::Unlisted } else { Self::Main }
    }
}

/// What people should hear of at once.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum News {
    /// A rule fired.
    Alarm(Alarm),
    /// The audit cannot be written; what is lost is counted.
    Failed(String),
    /// It can be written again.
    Works,
    /// Where a chain ends.
    Head(ChainId, Head),
}

/// Counters.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct AuditCounts {
    /// Records made.
    pub(crate) records: u64,
    /// Records lost: the queue was full, or the disk did not take them.
    pub(crate) lost: u64,
    /// Messages that the DLT daemon did not take.
    pub(crate) dlt_lost: u64,
    /// Whether records can be written.
    pub(crate) works: bool,
    /// Alarms by rule.
    pub(crate) alarms: BTreeMap<String, (Severity, u64)>,
}

/// Makes records.
#[derive(Debug)]
pub(crate) struct Audit {
    engine: Engine,
    folds: Folds,
    /// The second, since 1970, to which the counts belong.
    second: u64,
    /// Time of the last record.
    last_us: u64,
    writer: Option<AuditWriter>,
    /// Records that found no room since the last one that did, by chain.
    dropped: [u64; CHAINS.len()],
    news: Vec<News>,
    counts: AuditCounts,
    failure: Option<String>,
    /// When the heads were last told, in seconds since 1970.
    told_s: u64,
    /// Watches protected apps.
    pub(crate) watch: Watch,
}

impl Audit {
    /// Begins; without a folder and a DLT daemon there are rules and nothing else.
    pub(crate) fn start(settings: &AuditSettings) -> std::io::Result<Self> {
        let needs_thread = settings.folder.is_some() || settings.dlt.is_some();
        let writer = needs_thread.then(|| AuditWriter::start(settings)).transpose()?;
        Ok(Self { engine: Engine::new(settings.rules.clone()), writer, ..Self::default() })
    }

    /// Other rules from now on.
    pub(crate) fn renew(&mut self, rules: &[Rule]) {
        self.engine.renew(rules.to_vec());
    }

    /// Makes a record now; its time is set here.
    pub(crate) fn tell(&mut self, record: Record, rank: Rank) {
        self.tell_at(since_1970(), record, rank);
    }

    fn tell_at(&mut self, now: Duration, record: Record, rank: Rank) {
        self.begin(now);
        let is_asked = matches!(
            record.event,
            Event::Joined
                | Event::Refused
                | Event::OverCapacity
                | Event::Changed
                | Event::Left
                | Event::Quarantined
                | Event::Denied
                | Event::Set
                | Event::Policy
                | Event::Adjusted
        );
        let user = record.subject.user.filter(|_| is_asked);
        if user.is_none_or(|user| self.folds.admit(user, rank, record.event.name())) {
            self.put(now, record, rank);
        }
    }

    /// Does what is due from time to time.
    pub(crate) fn tick(&mut self) {
        let now = since_1970();
        self.begin(now);
        let failure = self.writer.as_ref().and_then(|writer| writer.status.failure());
        if failure != self.failure {
            self.add(match &failure {
                Some(failure) => News::Failed(failure.clone()),
                None => News::Works,
            });
            self.failure = failure;
        }
        if now.as_secs().abs_diff(self.told_s) >= HEADS.as_secs() {
            self.told_s = now.as_secs();
            self.tell_heads();
        }
    }

    /// What people should hear of, since the last call.
    pub(crate) fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Ends the thread when all is written; the heads are news then.
    pub(crate) fn close(&mut self) {
        self.begin(since_1970() + Duration::from_secs(1));
        if let Some(writer) = &mut self.writer {
            writer.close();
        }
        self.tell_heads();
    }

    /// The counters.
    pub(crate) fn counts(&self) -> AuditCounts {
        let mut counts = self.counts.clone();
        if let Some(writer) = &self.writer {
            counts.lost += writer.status.unwritten.load(Ordering::Relaxed);
            counts.dlt_lost = writer.status.dlt_lost.load(Ordering::Relaxed);
        }
        counts.works = self.failure.is_none();
        counts
    }

    /// Records what the second before had more than its records, if this is a new one.
    fn begin(&mut self, now: Duration) {
        if now.as_secs() == self.second {
            return;
        }
        self.second = now.as_secs();
        for fold in self.folds.take() {
            let Some(event) = Event::named(&fold.kind) else {
                continue;
            };
            let subject = Subject { user: fold.uid, listed: fold.rank != Rank::Other, ..Subject::default() };
            let reason = "more of the same in one second".to_owned();
            let record = Record { subject, reason, times: fold.times(), ..Record::new(0, event) };
            self.put(now, record, fold.rank);
        }
    }

    /// Enters a record, after one that says how many had no room before it.
    fn put(&mut self, now: Duration, record: Record, rank: Rank) {
        let dropped = std::mem::take(&mut self.dropped[ChainId::of(rank).index()]);
        if dropped > 0 {
            let reason = "the queue was full".to_owned();
            self.enter(now, Record { times: dropped, reason, ..Record::new(0, Event::Lost) }, rank);
        }
        self.enter(now, record, rank);
    }

    /// Writes a record and the alarms that it raises.
    fn enter(&mut self, now: Duration, record: Record, rank: Rank) {
        // Bounded here already: many of them may wait for a slow disk.
        let record = Record { at_us: self.stamp(now), ..record.bounded() };
        // That records are lost is told once they are not.
        if !self.write(record.clone(), rank) && record.event == Event::Lost {
            return;
        }
        for alarm in self.engine.observe(&record) {
            // What is about an unlisted client stays with its records.
            self.write(alarm.record(), if alarm.is_about_all() { Rank::Own } else { rank });
            self.counts.alarms.entry(alarm.rule.clone()).or_insert((alarm.severity, 0)).1 += 1;
            self.add(News::Alarm(alarm));
        }
    }

    /// Says whether there was room.
    fn write(&mut self, record: Record, rank: Rank) -> bool {
        let (chain, event, times) = (ChainId::of(rank), record.event, record.times);
        self.counts.records += 1;
        if self.writer.as_ref().is_none_or(|writer| writer.put(chain, record, rank)) {
            return true;
        }
        if event == Event::Lost {
            self.dropped[chain.index()] += times;
        } else {
            self.dropped[chain.index()] += 1;
            self.counts.lost += 1;
        }
        false
    }

    /// Times of records differ, so that those of two chains can be put in order; a clock that was set back
    /// is believed.
    fn stamp(&mut self, now: Duration) -> u64 {
        let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let near = self.last_us.saturating_sub(now_us) < 1_000_000;
        self.last_us = if now_us <= self.last_us && near { self.last_us + 1 } else { now_us };
        self.last_us
    }

    fn tell_heads(&mut self) {
        let heads = self.writer.as_ref().map(|writer| writer.status.heads()).unwrap_or_default();
        for (chain, head) in CHAINS.into_iter().zip(heads) {
            if let Some(head) = head {
                self.add(News::Head(chain, head));
            }
        }
    }

    fn add(&mut self, news: News) {
        if self.news.len() < NEWS_MAX {
            self.news.push(news);
        }
    }
}

impl Default for Audit {
    /// Writes nothing, and has no rules.
    fn default() -> Self {
        Self {
            engine: Engine::new(Vec::new()),
            folds: Folds::default(),
            second: 0,
            last_us: 0,
            writer: None,
            dropped: [0; CHAINS.len()],
            news: Vec::new(),
            counts: AuditCounts { works: true, ..AuditCounts::default() },
            failure: None,
            told_s: since_1970().as_secs(),
            watch: Watch::default(),
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
