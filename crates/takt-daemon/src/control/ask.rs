//! Questions and orders of tools, and the answers of the daemon, in JSON.

use serde::{Deserialize, Serialize};
use takt_core::{Adjustable, Span, Time};
use takt_trace::Summary;
use takt_trace::summary::Miss;

use super::config;
use super::members::Members;
use super::mistake::Mistake;
use super::terms::{Terms, UncheckedTerms};
use crate::observe::waits::Waits;

/// A question or an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// Which apps are scheduled?
    Apps,
    /// Figures and causes of the last seconds.
    Summary {
        /// How many, 1 to 30.
        window_s: u32,
    },
    /// Which deadlines did an app miss lately, and why?
    Why {
        /// Its name or slot.
        app: String,
        /// Only this frame.
        frame: Option<u64>,
    },
    /// Counters and state of the daemon itself.
    Daemon,
    /// Every record from now on, as lines of JSON in answers without an end.
    Watch,
    /// Change the terms of an app.
    Set {
        /// Its name or slot.
        app: String,
        /// The terms to change.
        #[serde(flatten)]
        terms: WrittenTerms,
    },
    /// Another policy.
    Policy {
        /// Its name.
        name: String,
    },
    /// Change limits of all apps.
    Adjust(Limits),
    /// Move the focus.
    Focus {
        /// Name or slot of the app that has it.
        app: Option<String>,
    },
    /// The daemon ends; apps run on unscheduled.
    Stop,
}

impl Ask {
    /// Whether the answer takes all records of the last seconds.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Summary { .. } | Self::Why { .. })
    }

    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Apps | Self::Summary { .. } | Self::Why { .. } | Self::Daemon | Self::Watch)
    }
}

/// Terms of an app as a tool writes them; the missing ones stay.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WrittenTerms {
    /// Importance.
    pub priority: Option<u32>,
    /// Frames per second.
    pub fps: Option<f64>,
    /// GPU time per frame, in milliseconds.
    pub etpf_ms: Option<f64>,
    /// Longest group, in milliseconds; 0 never slices.
    pub max_slice_ms: Option<f64>,
    /// Name of the display that it draws for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// Time between two frames of its own clock, or between two replenishments of its server, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ms: Option<f64>,
    /// From the release of a frame by its own clock to its deadline, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// GPU time of its server in each period, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ms: Option<f64>,
    /// Whether its server waits when it has no budget left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<bool>,
}

impl WrittenTerms {
    /// The same in the units of the core, if they make sense.
    pub fn checked(&self) -> Result<Terms, String> {
        self.unchecked().and_then(UncheckedTerms::check).map_err(|mistake| mistake.to_string())
    }

    fn unchecked(&self) -> Result<UncheckedTerms, Mistake> {
        Ok(UncheckedTerms {
            priority: self.priority,
            max_slice: config::slice(self.max_slice_ms)?,
            display: self.display.clone(),
            own: false,
            period: config::ms_if("period_ms", self.period_ms)?,
            deadline: config::ms_if("deadline_ms", self.deadline_ms)?,
            runtime: config::ms_if("runtime_ms", self.runtime_ms)?,
            hard: self.hard,
            fps_mhz: config::rate("fps", self.fps)?,
            etpf: config::ms_if("etpf_ms", self.etpf_ms)?,
        })
    }
}

/// Limits of all apps; the missing ones stay.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most groups granted and not finished at once.
    pub mpcg: Option<u32>,
    /// How long apps that reserve nothing may delay one that does.
    pub max_blocking_ms: Option<Bound>,
    /// Length to which groups of apps that reserve nothing may be stretched while no other app waits.
    pub max_stretch_ms: Option<Bound>,
}

/// A time that may be infinite.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// In milliseconds.
    Ms(f64),
    /// Infinite, for which JSON has no number.
    Without(Without),
}

/// The word for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// Infinite.
    Inf,
}

impl From<f64> for Bound {
    fn from(ms: f64) -> Self {
        if ms == f64::INFINITY { Self::Without(Without::Inf) } else { Self::Ms(ms) }
    }
}

impl Bound {
    /// In milliseconds.
    pub fn ms(self) -> f64 {
        match self {
            Self::Ms(ms) => ms,
            Self::Without(Without::Inf) => f64::INFINITY,
        }
    }
}

impl Limits {
    /// The parameters of the core: `before` with these changes, if they make sense.
    pub fn checked(&self, before: Adjustable) -> Result<Adjustable, String> {
        let checked = || -> Result<Adjustable, Mistake> {
            let blocking = self.max_blocking_ms.map(|bound| config::blocking(bound.ms())).transpose()?;
            let stretch = config::ms_if("max_stretch_ms", self.max_stretch_ms.map(Bound::ms))?;
            Ok(Adjustable {
                mpcg: self.mpcg.map_or(Ok(before.mpcg), config::mpcg)?,
                blocking: blocking.unwrap_or(before.blocking),
                stretch: stretch.unwrap_or(before.stretch),
                ..before
            })
        };
        checked().map_err(|mistake| mistake.to_string())
    }
}

/// An answer of the daemon.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "answer", content = "is", rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Done,
    /// It was not done; why.
    Refused(String),
    /// The scheduled apps, by falling priority.
    Apps(Vec<AppAnswer>),
    /// Figures and causes.
    Summary(Box<Summary>),
    /// Missed deadlines of an app.
    Misses(MissesAnswer),
    /// Counters and state of the daemon itself.
    Daemon(DaemonAnswer),
}

/// Deadlines that an app missed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MissesAnswer {
    /// How many seconds ago it left, if it has; the misses are those from before.
    pub left_s: Option<f64>,
    /// Its first frame that met its deadline, if one did; earlier misses are those of its start.
    pub first_met: Option<u64>,
    /// With their causes, oldest first.
    pub misses: Vec<Miss>,
}

/// Counters and state of the daemon, since its start.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DaemonAnswer {
    /// Name of the policy.
    pub policy: String,
    /// Refresh rate of the display.
    pub refresh_hz: f64,
    /// Decisions taken.
    pub decisions: u64,
    /// Groups granted.
    pub granted: u64,
    /// Turns of the scheduling loop.
    pub turns: u64,
    /// Mean time of a turn, in microseconds.
    pub turn_us_mean: f64,
    /// The longest one.
    pub turn_us_max: f64,
    /// Records that were dropped because the queue was full.
    pub untold: u64,
    /// The invariant of the core that broke, if one did; then nothing is scheduled any more.
    pub broken: Option<String>,
}

/// An app that is scheduled.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AppAnswer {
    /// Its slot.
    pub app: u32,
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Importance.
    pub priority: u32,
    /// Its contract, in a few words.
    pub contract: String,
    /// Its frame rate, per second.
    pub fps: f64,
    /// Whether it has that rate of its own.
    pub paced: bool,
    /// Whether its deadlines mean anything: those of that rate, or of its server's jobs.
    pub judged: bool,
    /// GPU time per frame, in milliseconds.
    pub etpf_ms: f64,
    /// Longest group, in milliseconds; none if it is never sliced.
    pub max_slice_ms: Option<f64>,
    /// Whether its deadlines are guaranteed.
    pub protected: bool,
    /// The same in words.
    pub admission: String,
    /// Why its next group waits, if it does.
    pub held: Option<HeldAnswer>,
}

/// Why an app waits for a grant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HeldAnswer {
    /// In a few words.
    pub why: String,
    /// Seconds since its last grant.
    pub for_s: f64,
    /// The contract of the app that it waits for, if it waits for a promise.
    pub promise: Option<String>,
}

impl Answer {
    /// It was not done.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// The scheduled apps.
    pub(crate) fn apps(members: &Members, waits: &Waits, now: Time) -> Self {
        let ms = |span: Span| span.as_ns() as f64 / 1e6;
        let mut apps: Vec<AppAnswer> = members
            .iter()
            .map(|member| AppAnswer {
                app: member.app.0,
                name: member.name.clone(),
                pid: member.pid,
                priority: member.params.priority.0,
                contract: member.contract(),
                fps: f64::from(member.fps_mhz) / 1000.0,
                paced: member.paced,
                judged: member.is_judged(),
                etpf_ms: ms(member.params.etpf),
                max_slice_ms: (member.max_slice < Span::FOREVER).then(|| ms(member.max_slice)),
                protected: member.protected,
                admission: member.admission.clone(),
                held: waits.held(member.app, now, members),
            })
            .collect();
        apps.sort_by_key(|app| std::cmp::Reverse(app.priority));
        Self::Apps(apps)
    }
}
