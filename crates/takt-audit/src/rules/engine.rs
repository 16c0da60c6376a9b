//! Counts records for each rule, and raises alarms.

use std::collections::VecDeque;
use std::fmt;

use super::{Alarm, Condition, Per, Rule};
use crate::record::{Event, Record, Subject};

/// Most users, domains, executables or apps that a rule tells apart; those that the configuration lists
/// have as much room again, which others cannot fill. All that find no room count as one.
const KEYS_MAX: usize = 64;
/// Times of records may be out of order by so much; a record that is earlier shows that the clock was set back.
const OUT_OF_ORDER_US: u64 = 1_000_000;

/// Runs rules over records, in the order in which they were made.
#[derive(Clone, Debug)]
pub struct Engine {
    rules: Vec<Counted>,
    /// The time of the records, which does not go back unless the clock was set back.
    now_us: u64,
}

#[derive(Clone, Debug)]
struct Counted {
    rule: Rule,
    tracks: Vec<Track>,
}

/// What one rule counted for one key.
#[derive(Clone, Debug)]
struct Track {
    key: Key,
    listed: bool,
    /// For each condition: when, and how many. No more than the condition needs is kept.
    hits: Vec<VecDeque<(u64, u64)>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Key {
    All,
    /// The daemon itself: the record is about no client.
    Daemon,
    User(u32),
    Domain(String),
    Exe(Option<u32>, String),
    App(String),
    /// All for which there was no room.
    Others,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all clients"),
            Self::Daemon => f.write_str("the daemon"),
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Domain(domain) => write!(f, "domain {domain}"),
            Self::Exe(Some(uid), exe) => write!(f, "{exe} of user {uid}"),
            Self::Exe(None, exe) => f.write_str(exe),
            Self::App(app) => write!(f, "app {app}"),
            Self::Others => f.write_str("other clients"),
        }
    }
}

impl Key {
    fn of(per: Per, subject: &Subject) -> Self {
        let user = subject.user.map(Self::User);
        let key = match per {
            Per::All => Some(Self::All),
            Per::User => user,
            Per::Domain => subject.domain.clone().map(Self::Domain).or(user),
            Per::Exe => subject.exe.clone().map(|exe| Self::Exe(subject.user, exe)),
            Per::App => subject.app.clone().map(Self::App),
        };
        let stray = if subject.user.is_some() { Self::Others } else { Self::Daemon };
        key.unwrap_or(stray)
    }
}

impl Engine {
    /// With these rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        let counted = |rule| Counted { rule, tracks: Vec::new() };
        Self { rules: rules.into_iter().map(counted).collect(), now_us: 0 }
    }

    /// Other rules; those that stay go on counting.
    pub fn renew(&mut self, rules: Vec<Rule>) {
        let mut before = std::mem::take(&mut self.rules);
        for rule in rules {
            let same = before.iter().position(|counted| counted.rule == rule);
            self.rules.push(match same {
                Some(at) => before.swap_remove(at),
                None => Counted { rule, tracks: Vec::new() },
            });
        }
    }

    /// Counts a record; returns the alarms that it raises.
    pub fn observe(&mut self, record: &Record) -> Vec<Alarm> {
        let back_us = self.now_us.saturating_sub(record.at_us);
        if back_us > OUT_OF_ORDER_US {
            // What was counted is as long ago as before.
            self.rules.iter_mut().for_each(|counted| counted.set_back(back_us));
            self.now_us = record.at_us;
        }
        self.now_us = self.now_us.max(record.at_us);
        let now_us = self.now_us;
        self.rules.iter_mut().filter_map(|counted| counted.observe(now_us, record)).collect()
    }
}

impl Counted {
    fn set_back(&mut self, back_us: u64) {
        let hits = self.tracks.iter_mut().flat_map(|track| track.hits.iter_mut().flatten());
        hits.for_each(|(at_us, _)| *at_us = at_us.saturating_sub(back_us));
    }

    fn observe(&mut self, now_us: u64, record: &Record) -> Option<Alarm> {
        // A new daemon knows nothing of what was before; only rules about restarts do.
        if record.event == Event::Started && !self.rule.when.iter().any(|condition| condition.counts(record))
        {
            self.tracks.clear();
        }
        if !self.rule.when.iter().any(|condition| condition.counts(record)) {
            return None;
        }
        let since = now_us.saturating_sub(self.rule.window_us);
        let at = self.track(since, record);
        let track = &mut self.tracks[at];
        for (condition, hits) in self.rule.when.iter().zip(&mut track.hits) {
            if condition.counts(record) {
                hits.push_back((now_us, record.times));
            }
            forget(hits, since, condition.count);
        }
        let holds = |(condition, hits): (&Condition, &VecDeque<(u64, u64)>)| sum(hits) >= condition.count;
        if !self.rule.when.iter().zip(&track.hits).all(holds) {
            return None;
        }
        let track = self.tracks.swap_remove(at);
        Some(self.alarm(record, &track))
    }

    /// The place of the record's key; there is always one.
    fn track(&mut self, since: u64, record: &Record) -> usize {
        let listed = record.subject.listed;
        let key = Key::of(self.rule.per, &record.subject);
        if let Some(at) = self.find(&key, listed) {
            return at;
        }
        // What is over by now needs no room.
        self.tracks.retain(|track| track.hits.iter().flatten().any(|(at, _)| *at >= since));
        let crowded = self.tracks.iter().filter(|track| track.listed == listed).count() >= KEYS_MAX;
        let key = if crowded { Key::Others } else { key };
        self.find(&key, listed).unwrap_or_else(|| {
            let hits = vec![VecDeque::new(); self.rule.when.len()];
            self.tracks.push(Track { key, listed, hits });
            self.tracks.len() - 1
        })
    }

    fn find(&self, key: &Key, listed: bool) -> Option<usize> {
        self.tracks.iter().position(|track| track.key == *key && track.listed == listed)
    }

    fn alarm(&self, record: &Record, track: &Track) -> Alarm {
        let counted = self.rule.when.iter().zip(&track.hits).map(|(condition, hits)| {
            let names: Vec<&str> = condition.events.iter().map(|event| event.name()).collect();
            format!("{} {}", sum(hits), names.join(" or "))
        });
        let counted: Vec<String> = counted.collect();
        let window_s = self.rule.window_us as f64 / 1e6;
        Alarm {
            at_us: record.at_us,
            rule: self.rule.name.clone(),
            severity: self.rule.severity,
            about: track.key.to_string(),
            counted: format!("{} within {window_s} s", counted.join(" and ")),
            subject: if track.key == Key::All { Subject::default() } else { record.subject.clone() },
        }
    }
}

fn sum(hits: &VecDeque<(u64, u64)>) -> u64 {
    hits.iter().fold(0, |sum: u64, (_, times)| sum.saturating_add(*times))
}

/// Drops what is too old, and what the condition would hold without.
fn forget(hits: &mut VecDeque<(u64, u64)>, since: u64, count: u64) {
    while let Some((at, times)) = hits.front()
        && (*at < since || sum(hits).saturating_sub(*times) >= count)
    {
        hits.pop_front();
    }
}
