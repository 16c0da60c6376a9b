//! What tools ask the daemon, and what it answers, in JSON.

use serde::{Deserialize, Serialize};
use takt_core::{Adjustable, Span, Time};
use takt_trace::Summary;
use takt_trace::summary::Miss;

use crate::control::config::{self, Mistake};
use crate::control::contract::Written;
use crate::control::members::{self, Members};
use crate::observe::waits::Waits;

/// A question or an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// Who is scheduled?
    Apps,
    /// Figures and causes of the last seconds.
    Summary {
        /// How many, 1 to 30.
        window_s: u32,
    },
    /// Which deadlines did it miss lately, and why?
    Why {
        /// Its name or slot.
        app: String,
        /// Only this frame.
        frame: Option<u64>,
    },
    /// What the daemon itself does.
    Daemon,
    /// Everything that happens from now on, as lines of JSON in answers without an end.
    Watch,
    /// Change what an app gets.
    Set {
        /// Its name or slot.
        app: String,
        /// What to change.
        #[serde(flatten)]
        terms: Terms,
    },
    /// Another policy.
    Policy {
        /// Its name.
        name: String,
    },
    /// Change what holds for all apps.
    Adjust(Limits),
    /// The focus is elsewhere.
    Focus {
        /// Name or slot of the app that has it.
        app: Option<String>,
    },
    /// The daemon ends; apps run on unscheduled.
    Stop,
}

impl Ask {
    /// Whether all that happened lately is looked at for the answer.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Summary { .. } | Self::Why { .. })
    }

    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Apps | Self::Summary { .. } | Self::Why { .. } | Self::Daemon | Self::Watch)
    }
}

/// What to change about an app; what is missing stays.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Terms {
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

impl Terms {
    /// The same in the units of the core, if they make sense.
    pub fn checked(&self) -> Result<members::Terms, String> {
        let written = self.written().map_err(|mistake| mistake.to_string())?;
        let timing = written.timing().map_err(|wrong| wrong.to_string())?;
        let max_slice = self.max_slice_ms.map(|ms| config::slice("max_slice_ms", ms)).transpose();
        Ok(members::Terms {
            priority: self.priority,
            fps_mhz: written.fps_mhz,
            etpf: written.etpf,
            max_slice: max_slice.map_err(|mistake| mistake.to_string())?,
            paced: members::paced(written.fps_mhz, timing.as_ref()),
            timing,
        })
    }

    fn written(&self) -> Result<Written, Mistake> {
        let ms = |key: &str, value: Option<f64>| value.map(|value| config::ms(key, value)).transpose();
        Ok(Written {
            display: self.display.clone(),
            own: false,
            period: ms("period_ms", self.period_ms)?,
            deadline: ms("deadline_ms", self.deadline_ms)?,
            runtime: ms("runtime_ms", self.runtime_ms)?,
            hard: self.hard,
            fps_mhz: self.fps.map(|fps| config::rate("fps", fps)).transpose()?,
            etpf: ms("etpf_ms", self.etpf_ms)?,
        })
    }
}

/// What to change for all apps; what is missing stays.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most groups granted and not finished at once.
    pub mpcg: Option<u32>,
    /// How long apps that reserve nothing may delay one that does.
    pub max_blocking_ms: Option<Bound>,
    /// How long groups of apps that reserve nothing may be where nobody waits for that.
    pub max_stretch_ms: Option<Bound>,
}

/// A time that may be without end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// In milliseconds.
    Ms(f64),
    /// Without end; JSON has no number for that.
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
    /// What the core runs with if these are other than `before`, if they make sense.
    pub fn checked(&self, before: Adjustable) -> Result<Adjustable, String> {
        let checked = || -> Result<Adjustable, Mistake> {
            let blocking = self.max_blocking_ms.map(|bound| config::blocking(bound.ms())).transpose()?;
            let stretch =
                self.max_stretch_ms.map(|bound| config::ms("max_stretch_ms", bound.ms())).transpose()?;
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

/// What the daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "answer", content = "is", rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Done,
    /// It was not; why.
    Refused(String),
    /// Who is scheduled, by falling priority.
    Apps(Vec<AppAnswer>),
    /// Figures and causes.
    Summary(Box<Summary>),
    /// Missed deadlines of an app.
    Misses(MissesAnswer),
    /// What the daemon itself does.
    Daemon(DaemonAnswer),
}

/// Deadlines that an app missed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MissesAnswer {
    /// How many seconds ago it left, if it has: then they are those from before.
    pub left_s: Option<f64>,
    /// Its first frame that met its deadline, if one did: before that, it started.
    pub first_met: Option<u64>,
    /// With their causes, oldest first.
    pub misses: Vec<Miss>,
}

/// What the daemon itself does, counted since its start.
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
    /// Things that happened and that nobody was told, because nobody could take them in time.
    pub untold: u64,
    /// What the core contradicted itself in, if it did: then nothing is scheduled any more.
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
    /// What it was promised, in a few words.
    pub contract: String,
    /// Frames per second it is to have.
    pub fps: f64,
    /// Whether that rate was asked for.
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

/// Why an app waits for leave.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HeldAnswer {
    /// In a few words.
    pub why: String,
    /// For so many seconds nothing of it was let go.
    pub for_s: f64,
    /// What the app was promised, in a few words, that it waits for, if it waits for a promise.
    pub promise: Option<String>,
}

impl Answer {
    /// It was not done.
    pub fn refused(reason: String) -> Self {
        Self::Refused(reason)
    }

    /// Who is scheduled.
    pub fn apps(members: &Members, waits: &Waits, now: Time) -> Self {
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
