//! The daemon's log of events, one line each, for people or for machines.
//!
//! A thread of its own writes. The lines per second that clients cause are bounded: each user has some
//! of each kind, and those beyond become one line with their number. Lines of the daemon itself have no
//! such bound.

mod line;
#[cfg(test)]
mod tests;
mod writer;

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use takt_core::{Action, AppId};
use takt_trace::Record;

use super::folds::Folds;
use crate::control::identity::Identity;
use crate::control::members::{Member, Members};
use crate::control::rights::Rule;
use crate::control::user::Rank;
pub use line::Format;
use line::line;
use writer::LogWriter;

/// An event.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry<'a> {
    /// The daemon serves.
    Serving {
        /// Path of the control socket.
        socket: &'a str,
        /// Name of the policy.
        policy: &'a str,
        /// Refresh rate.
        refresh_hz: f64,
        /// Privileges that the system denied: grants may be late on a busy machine.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// An app is scheduled.
    Joined {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Importance.
        priority: u32,
        /// Frames per second.
        fps: f64,
        /// Whether its deadlines are guaranteed, or why not.
        admission: &'a str,
    },
    /// An app has other terms.
    Changed {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Importance.
        priority: u32,
        /// Frames per second.
        fps: f64,
        /// Whether its deadlines are guaranteed, or why not.
        admission: &'a str,
    },
    /// The deadlines of an app are guaranteed now, or not any more.
    Guarantee {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Whether they are.
        guaranteed: bool,
        /// The same in words, with the reason.
        admission: &'a str,
    },
    /// A process that is not scheduled has the GPU open, or closed it.
    Outsider {
        /// Its name.
        process: &'a str,
        /// Its process.
        pid: u32,
        /// Its user.
        uid: u32,
        /// The device file.
        device: &'a str,
        /// Whether it is gone.
        gone: bool,
    },
    /// Work of an app cannot be cut and has fitted nowhere for two seconds.
    Uncut {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// How long it is predicted to take, in milliseconds; none if that has no bound.
        ms: Option<f64>,
        /// Whether it runs now all the same (`uncut = "run"`).
        runs: bool,
    },
    /// An app left.
    Left {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
    },
    /// An app broke a rule and was evicted.
    Fault {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// Which rule.
        fault: &'a str,
        /// How long it may not come back.
        pause_s: u64,
    },
    /// Groups behind those of an app take longer than others: it seems to say too early when they ended.
    EarlyEnds {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// The app whose groups they are.
        witness: &'a str,
        /// By how much they take longer at least.
        later_ms: f64,
        /// For how long it stands still, if it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause_s: Option<u64>,
    },
    /// The same of several apps of a user, or of one that leaves and comes back.
    EarlyEndsOfUser {
        /// The user.
        uid: u32,
        /// The domain of these apps.
        domain: &'a str,
        /// Whether the configuration lists that.
        #[serde(skip)]
        listed: bool,
        /// The app whose groups they are.
        witness: &'a str,
        /// By how much they take longer at least.
        later_ms: f64,
        /// For how long the apps stand still, if they do.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause_s: Option<u64>,
    },
    /// A tool paused, resumed or evicted an app.
    Steered {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// What it did.
        what: &'static str,
    },
    /// A supervised app stopped drawing.
    Silent {
        /// Its name.
        app: &'a str,
        /// The name of its domain.
        domain: &'a str,
        /// For how long.
        for_s: f64,
        /// The unit that is restarted, if one is.
        #[serde(skip_serializing_if = "Option::is_none")]
        restart: Option<&'a str>,
        /// It was restarted too often lately to be restarted again.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        gave_up: bool,
    },
    /// It draws again.
    Back {
        /// Its name.
        app: &'a str,
        /// The name of its domain.
        domain: &'a str,
        /// For how long it did not.
        after_s: f64,
    },
    /// A supervised app does not draw, and apps that matter less stand still until it does.
    Degraded {
        /// Its name.
        app: &'a str,
        /// The name of its domain.
        domain: &'a str,
        /// How many stand still; those that come later do, too.
        set_aside: usize,
    },
    /// They go on.
    Restored {
        /// How many.
        go_on: usize,
    },
    /// A domain waited and had less than its minimum share.
    ShareMissed {
        /// Its name.
        domain: &'a str,
        /// What it had, of the GPU's time (0..1).
        had: f64,
        /// What it is to have.
        share_min: f64,
        /// The time over which that is looked at.
        window_s: f64,
    },
    /// It has its share again, or less work.
    ShareKept {
        /// Its name.
        domain: &'a str,
        /// What it had, of the GPU's time (0..1).
        had: f64,
        /// What it is to have.
        share_min: f64,
        /// The time over which that is looked at.
        window_s: f64,
    },
    /// A unit was restarted, or not.
    Restarted {
        /// Which unit.
        unit: &'a str,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// A connection was refused.
    Refused {
        /// Its process.
        pid: u32,
        /// Its user.
        uid: u32,
        /// The name of its domain.
        domain: &'a str,
        /// The rule that refused it.
        rule: Rule,
        /// Why.
        reason: &'a str,
        /// Whether the configuration lists its domain.
        #[serde(skip)]
        listed: bool,
    },
    /// A configuration was read.
    Configured {
        /// Its file.
        file: &'a str,
        /// The hash of its text.
        sha256: &'a str,
        /// Whether its signature was checked.
        sealed: bool,
        /// The state of the vehicle that it waits for, if it is not in force.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_for: Option<&'a str>,
    },
    /// The vehicle is in another state.
    State {
        /// The state before, if it was known.
        before: Option<&'a str>,
        /// The state from now on.
        after: &'a str,
    },
    /// A client got less than it asked for.
    Reduced {
        /// Its process.
        pid: u32,
        /// Its user.
        uid: u32,
        /// The name of its domain.
        domain: &'a str,
        /// What it asked for.
        asked: &'a str,
        /// The first rule that took something away.
        rule: Rule,
        /// What it did not get, and what to do about it.
        reason: &'a str,
        /// Whether the configuration lists its domain.
        #[serde(skip)]
        listed: bool,
    },
    /// Deadlines missed in the last second.
    Missed {
        /// Which app.
        #[serde(flatten)]
        who: Who<'a>,
        /// How many.
        deadlines: u64,
    },
    /// Another policy decides.
    Policy {
        /// The policy before.
        before: &'a str,
        /// The policy from now on.
        after: &'a str,
    },
    /// A tool changed limits of all apps.
    Adjusted {
        /// The changes, in words.
        changes: &'a [String],
    },
    /// A display, or its owner, reported its refreshes, and scheduling follows them.
    Display {
        /// Its name; empty if it has none.
        display: &'a str,
        /// Its rate.
        refresh_hz: f64,
    },
    /// The display reports no more; scheduling goes on by the clock.
    DisplayLost {
        /// Why.
        reason: &'a str,
    },
    /// The configuration was read again.
    Reloaded {
        /// The changes, in words; none if nothing differs.
        changes: &'a [String],
    },
    /// The configuration was read again and is wrong; the old one holds.
    Unreadable {
        /// The mistake.
        reason: &'a str,
    },
    /// More lines of the same kind about the same user in one second.
    Repeated {
        /// Their kind.
        kind: &'a str,
        /// The user; none if there were too many users.
        #[serde(skip_serializing_if = "Option::is_none")]
        uid: Option<u32>,
        /// How many.
        times: u64,
    },
    /// Lines that were left out, because the log takes them too slowly.
    Omitted {
        /// How many.
        lines: u64,
    },
    /// An invariant of the core broke: every app runs unscheduled.
    Broken {
        /// Which invariant.
        what: String,
        /// The app whose state broke it, if it is one app's.
        #[serde(skip_serializing_if = "Option::is_none")]
        app: Option<&'a str>,
    },
    /// A rule over the audit fired.
    Alarm {
        /// The rule.
        rule: &'a str,
        /// How bad it is.
        severity: &'a str,
        /// About whom.
        about: &'a str,
        /// What was counted.
        counted: &'a str,
        /// The user, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        uid: Option<u32>,
        /// Whether the configuration lists its domain.
        #[serde(skip)]
        listed: bool,
    },
    /// The audit cannot be written; the daemon goes on, and counts what is lost.
    AuditFailed {
        /// Why.
        reason: &'a str,
    },
    /// The audit can be written again.
    AuditWorks,
    /// Where a chain of the audit ends: what is cut off after this is missed.
    AuditHead {
        /// Its name.
        chain: &'a str,
        /// Number of its last record.
        seq: u64,
        /// Hash of that.
        hash: String,
    },
    /// The daemon ends.
    Stopping {
        /// Why.
        reason: &'a str,
    },
}

/// An app in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Who<'a> {
    app: &'a str,
    slot: u32,
    pid: u32,
    uid: u32,
    domain: &'a str,
    /// Whether the configuration lists it.
    #[serde(skip)]
    listed: bool,
}

impl<'a> Who<'a> {
    /// That member.
    pub(crate) fn of(member: &'a Member) -> Self {
        let Member { app, name, identity, domain, listed, .. } = member;
        let Identity { pid, uid, .. } = *identity;
        Self { app: name, slot: app.0, pid, uid, domain: &domain.name, listed: *listed }
    }
}

impl Entry<'_> {
    /// Kind, user, and whether the app is listed, if this is about a client.
    fn about(&self) -> Option<(&'static str, u32, bool)> {
        match self {
            Self::Joined { who, .. } => Some(("joined", who.uid, who.listed)),
            Self::Changed { who, .. } => Some(("changed", who.uid, who.listed)),
            Self::Guarantee { who, .. } => Some(("guarantee", who.uid, who.listed)),
            Self::Outsider { uid, .. } => Some(("outsider", *uid, false)),
            Self::Uncut { who, .. } => Some(("uncut", who.uid, who.listed)),
            Self::EarlyEnds { who, .. } => Some(("early-ends", who.uid, who.listed)),
            Self::EarlyEndsOfUser { uid, listed, .. } => Some(("early-ends-of-user", *uid, *listed)),
            Self::Steered { who, .. } => Some(("steered", who.uid, who.listed)),
            Self::Left { who } => Some(("left", who.uid, who.listed)),
            Self::Fault { who, .. } => Some(("fault", who.uid, who.listed)),
            Self::Alarm { uid: Some(uid), listed, .. } => Some(("alarm", *uid, *listed)),
            Self::Missed { who, .. } => Some(("missed", who.uid, who.listed)),
            Self::Refused { uid, listed, .. } => Some(("refused", *uid, *listed)),
            Self::Reduced { uid, listed, .. } => Some(("reduced", *uid, *listed)),
            _ => None,
        }
    }
}

/// Writes events.
pub struct Journal {
    writer: Option<LogWriter>,
    format: Format,
    own_uid: u32,
    /// The second, since 1970, to which the counts belong.
    second: u64,
    folds: Folds,
    /// Lines that found no room since the last one that did.
    omitted: u64,
    /// The second of the last sum.
    summed: u64,
    /// Deadlines missed in this second, by slot.
    missed: Vec<u64>,
}

impl Journal {
    /// Writes to `out`, on a thread of its own.
    pub fn new(out: Box<dyn Write + Send>, format: Format) -> std::io::Result<Self> {
        Ok(Self { writer: Some(LogWriter::start(out)?), format, ..Self::default() })
    }

    /// Tells something, unless the user whom it is about has had its lines of this second.
    pub fn tell(&mut self, entry: &Entry<'_>) {
        self.tell_at(since_1970(), entry);
    }

    fn tell_at(&mut self, now: Duration, entry: &Entry<'_>) {
        self.begin(now);
        let about = entry.about();
        let rank = about.map_or(Rank::Own, |(_, uid, listed)| match uid {
            uid if uid == 0 || uid == self.own_uid => Rank::Own,
            _ if listed => Rank::Listed,
            _ => Rank::Other,
        });
        if about.is_none_or(|(kind, uid, _)| self.folds.admit(uid, rank, kind)) {
            // A client of the daemon's own user has not the places of the daemon itself.
            let place = if about.is_some() { rank.max(Rank::Listed) } else { rank };
            self.write(now, entry, place);
        }
    }

    /// Tells what the second before had more than its lines, if this is a new one.
    fn begin(&mut self, now: Duration) {
        if now.as_secs() == self.second {
            return;
        }
        self.second = now.as_secs();
        for fold in self.folds.take() {
            let entry = Entry::Repeated { kind: &fold.kind, uid: fold.uid, times: fold.times() };
            self.write(now, &entry, fold.rank.max(Rank::Listed));
        }
    }

    fn write(&mut self, now: Duration, entry: &Entry<'_>, place: Rank) {
        let Some(writer) = &self.writer else {
            return;
        };
        if self.omitted > 0 {
            let omitted = Entry::Omitted { lines: self.omitted };
            if writer.put(line(now, &omitted, self.format), place) {
                self.omitted = 0;
            }
        }
        if self.omitted > 0 || !writer.put(line(now, entry, self.format), place) {
            self.omitted += 1;
        }
    }

    /// Counts missed deadlines.
    pub(crate) fn watch(&mut self, record: &Record) {
        if let Record::Out(Action::Missed { app, count, .. }) = record {
            if self.missed.len() <= app.index() {
                self.missed.resize(app.index() + 1, 0);
            }
            self.missed[app.index()] += count;
        }
    }

    /// Writes the counts, once a second.
    pub(crate) fn sum_up(&mut self, members: &Members) {
        let now = since_1970();
        self.begin(now);
        if now.as_secs() == self.summed {
            return;
        }
        self.summed = now.as_secs();
        for (slot, deadlines) in std::mem::take(&mut self.missed).into_iter().enumerate() {
            let member = u32::try_from(slot).ok().and_then(|slot| members.get(AppId(slot)));
            // Deadlines of a rate that the app did not ask for mean nothing.
            if let Some(member) = member.filter(|member| deadlines > 0 && member.is_judged()) {
                self.tell_at(now, &Entry::Missed { who: Who::of(member), deadlines });
            }
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Default for Journal {
    /// Writes nothing.
    fn default() -> Self {
        Self {
            writer: None,
            format: Format::Text,
            own_uid: rustix::process::geteuid().as_raw(),
            second: 0,
            folds: Folds::default(),
            omitted: 0,
            summed: 0,
            missed: Vec::new(),
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
