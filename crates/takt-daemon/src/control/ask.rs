//! Questions and orders of tools, and the answers of the daemon, in JSON.

use serde::{Deserialize, Serialize};
use takt_core::{Span, Time};
use takt_ipc::message::TimeSlices;
use takt_trace::Summary;
use takt_trace::summary::Miss;

use super::config;
use super::contract::Timing;
use super::members::Members;
use super::mistake::Mistake;
use super::pacing::Pace;
use super::rights::Rule;
use super::statement::{Outsiders, Reason};
use super::terms::{Terms, UncheckedTerms};
use super::view::HIDDEN;
use crate::observe::waits::Waits;

mod domains;
mod limits;
mod preview;

pub(crate) use domains::Known;
pub use domains::{DomainAnswer, DomainsAnswer, PolicyAnswer};
pub use limits::{Bound, Limits, Without};
pub use preview::{AppPreview, ContractPreview, PreviewAnswer};

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
        /// Which one, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: String,
        /// Only this frame.
        frame: Option<u64>,
    },
    /// Counters and state of the daemon itself.
    Daemon,
    /// Which domains are there, what may they do, and which one is the asker's?
    Domains,
    /// Which frames are finished, and when do displays refresh? With the answer comes the descriptor of the
    /// [page](takt_ipc::frame_page) that shows it from now on.
    Frames,
    /// Every record from now on, as lines of JSON in answers without an end.
    Watch,
    /// Counters in the text format of Prometheus. Without `takt serve --metrics`, apps are counted from the first time
    /// that this is asked.
    Metrics,
    /// Change the terms of an app.
    Set {
        /// Which one, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: String,
        /// The terms to change.
        #[serde(flatten)]
        terms: WrittenTerms,
    },
    /// What would an order do to the contracts of all apps?
    Preview {
        /// The order.
        order: Box<Self>,
    },
    /// Grant an app nothing until it is resumed: it stands still in its next GPU command.
    Pause {
        /// Which one, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: String,
    },
    /// Let a paused app go on.
    Resume {
        /// Which one, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: String,
    },
    /// End the scheduling of an app: it runs on, and may not come back for a while.
    Evict {
        /// Which one, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: String,
        /// For how many seconds it may not come back; 60 if that is not said.
        #[serde(default)]
        for_s: Option<u32>,
    },
    /// Let an app come back that a tool evicted.
    Readmit {
        /// Its name.
        app: String,
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
        /// The app that has it, as [`name::wanted`](takt_ipc::name::wanted) reads it.
        app: Option<String>,
    },
    /// The vehicle is in another state.
    State {
        /// Its name.
        name: String,
    },
    /// A display refreshes at that rate, and did at that time.
    Display {
        /// Its name.
        name: String,
        /// Refreshes per second, in thousandths.
        refresh_mhz: u32,
        /// The time of any of its refreshes, in nanoseconds of the monotonic clock.
        vsync_ns: u64,
    },
    /// The daemon ends; apps run on unscheduled.
    Stop,
}

impl Ask {
    /// Whether the answer takes all records of the last seconds.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Summary { .. } | Self::Why { .. } | Self::Metrics)
    }

    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        let figures = matches!(self, Self::Summary { .. } | Self::Why { .. } | Self::Watch | Self::Metrics);
        let shown = matches!(self, Self::Apps | Self::Daemon | Self::Domains | Self::Frames);
        !figures && !shown && !matches!(self, Self::Preview { .. })
    }

    /// The app that it changes, if it changes one.
    pub fn changed_app(&self) -> Option<&str> {
        match self {
            Self::Set { app, .. }
            | Self::Pause { app }
            | Self::Resume { app }
            | Self::Evict { app, .. }
            | Self::Readmit { app } => Some(app),
            _ => None,
        }
    }
}

/// Terms of an app as a tool writes them; the missing ones stay.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WrittenTerms {
    /// Importance.
    pub priority: Option<u32>,
    /// Frames per second; 0 takes its rate away.
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
    /// What says when it begins frames of a given rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// GPU time of its server in each period, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ms: Option<f64>,
    /// Whether its server waits when it has no budget left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<bool>,
    /// How often it waits for its own groups within a frame or job at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<u32>,
    /// How long each of these gaps lasts at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ms: Option<f64>,
    /// Name of the app that consumes what it produces; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feeds: Option<String>,
    /// Name of the app whose contract it shares; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<String>,
}

impl WrittenTerms {
    /// The same in the units of the core, if they make sense.
    pub fn checked(&self) -> Result<Terms, String> {
        if self.fps == Some(0.0) {
            let mut terms = Self { fps: None, ..self.clone() }.checked()?;
            terms.paced.get_or_insert(false);
            terms.timing.get_or_insert_default();
            return Ok(terms);
        }
        self.unchecked().and_then(UncheckedTerms::check).map_err(|mistake| mistake.to_string())
    }

    fn unchecked(&self) -> Result<UncheckedTerms, Mistake> {
        Ok(UncheckedTerms {
            priority: self.priority,
            max_slice: config::slice(self.max_slice_ms)?,
            display: self.display.clone(),
            pace: self.pace,
            period: config::ms_if("period_ms", self.period_ms)?,
            deadline: config::ms_if("deadline_ms", self.deadline_ms)?,
            runtime: config::ms_if("runtime_ms", self.runtime_ms)?,
            share: false,
            hard: self.hard,
            fps_mhz: config::rate("fps", self.fps)?,
            etpf: config::ms_if("etpf_ms", self.etpf_ms)?,
            gaps: self.gaps,
            gap: config::ms_if("gap_ms", self.gap_ms)?,
            feeds: self.feeds.clone(),
            shares: self.shares.clone(),
        })
    }
}

impl From<&Terms> for WrittenTerms {
    /// Terms as a tool would write them.
    fn from(terms: &Terms) -> Self {
        let ms = |span: Span| span.as_ns() as f64 / 1e6;
        let rate = |mhz: u32| if terms.paced == Some(true) { f64::from(mhz) / 1000.0 } else { 0.0 };
        let fps = terms.fps_mhz.map(rate);
        let written = Self {
            priority: terms.priority,
            etpf_ms: terms.etpf.map(ms),
            max_slice_ms: terms.max_slice.map(|slice| if slice == Span::FOREVER { 0.0 } else { ms(slice) }),
            gaps: terms.gaps.map(|gaps| gaps.count),
            gap_ms: terms.gaps.map(|gaps| ms(gaps.length)),
            feeds: terms.feeds.clone().filter(|feeds| !feeds.is_empty()),
            shares: terms.shares.clone().filter(|shares| !shares.is_empty()),
            pace: terms.pace.filter(|pace| *pace == Pace::Display),
            ..Self::default()
        };
        match &terms.timing {
            None => Self { fps, ..written },
            Some(Timing::Display(name)) => {
                Self { fps, display: Some(name.clone()).filter(|name| !name.is_empty()), ..written }
            }
            Some(Timing::Own { period, deadline }) => {
                Self { period_ms: Some(ms(*period)), deadline_ms: Some(ms(*deadline)), ..written }
            }
            Some(Timing::Server { runtime, period, hard, .. }) => {
                let (runtime_ms, period_ms) = (Some(ms(*runtime)), Some(ms(*period)));
                Self { runtime_ms, period_ms, hard: Some(*hard), etpf_ms: None, ..written }
            }
        }
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
    /// The domains.
    Domains(DomainsAnswer),
    /// What an order would do.
    Preview(PreviewAnswer),
    /// Counters as text.
    Metrics(String),
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
    /// The longest time that the control thread was busy without looking at its connections, in
    /// milliseconds.
    pub control_stall_ms_max: f64,
    /// The names of supervised apps that stopped drawing.
    pub silent: Vec<String>,
    /// The supervised app that does not draw while apps that matter less stand still for it, if there is one.
    pub degraded: Option<String>,
    /// The invariant of the core that broke, if one did; then nothing is scheduled any more.
    pub broken: Option<String>,
    /// The limits of all apps.
    pub limits: Limits,
    /// Apps that a tool evicted and that may not come back yet.
    pub evicted: Vec<EvictedAnswer>,
    /// Who uses the GPU without being scheduled, and why there may be others.
    #[serde(flatten)]
    pub outsiders: Outsiders,
}

/// An app that a tool evicted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EvictedAnswer {
    /// Its name.
    pub name: String,
    /// Its user.
    pub uid: u32,
    /// For how many seconds it may not come back.
    pub for_s: f64,
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
    /// Its user.
    pub uid: u32,
    /// The name of its domain.
    pub domain: String,
    /// Whether the configuration lists it.
    pub listed: bool,
    /// The rule that decided about its terms.
    pub rule: Rule,
    /// Importance within the level of its domain.
    pub priority: u32,
    /// Importance among all apps, as records and figures have it.
    pub core_priority: u32,
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
    /// All its terms, as they could be set.
    pub terms: WrittenTerms,
    /// Whether a tool paused it.
    pub paused: bool,
    /// Whether it stands still: until a supervised app draws again, or since its ends contradict those of others.
    pub set_aside: bool,
    /// Whether its contract is covered beside those of more important apps.
    pub protected: bool,
    /// Whether its deadlines are guaranteed.
    pub guaranteed: bool,
    /// The name of the reason why not.
    pub reason: Option<&'static str>,
    /// All of it in words.
    pub admission: String,
    /// The time slices of its contexts on the GPU, if its client has told them.
    pub slices: Option<SlicesAnswer>,
    /// Why its next group waits, if it does.
    pub held: Option<HeldAnswer>,
}

/// Time slices of the contexts of an app, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SlicesAnswer {
    /// The shortest.
    pub shortest_us: u32,
    /// The longest.
    pub longest_us: u32,
}

impl From<TimeSlices> for SlicesAnswer {
    fn from(slices: TimeSlices) -> Self {
        Self { shortest_us: slices.shortest_us, longest_us: slices.longest_us }
    }
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
    /// The predicted time of work that cannot be cut and has fitted nowhere for two seconds, in milliseconds.
    pub uncut_ms: Option<f64>,
    /// The command that this is, if its program has said so.
    pub uncut_command: Option<String>,
}

impl Answer {
    /// It was not done.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// An order that would not be carried out.
    pub(crate) fn preview_refused(reason: String) -> Self {
        Self::Preview(PreviewAnswer { refused: Some(reason), ..PreviewAnswer::default() })
    }

    /// The scheduled apps that are not hidden.
    pub(crate) fn apps(members: &Members, waits: &Waits, now: Time) -> Self {
        let ms = |span: Span| span.as_ns() as f64 / 1e6;
        let mut apps: Vec<AppAnswer> = members
            .iter()
            .filter(|member| member.name != HIDDEN)
            .map(|member| AppAnswer {
                app: member.app.0,
                name: member.name.clone(),
                pid: member.identity.pid,
                uid: member.identity.uid,
                listed: member.listed,
                domain: member.domain.name.clone(),
                rule: member.rule,
                priority: member.priority(),
                core_priority: member.params.priority.0,
                contract: member.contract(),
                fps: f64::from(member.fps_mhz) / 1000.0,
                paced: member.paced,
                judged: member.is_judged(),
                etpf_ms: ms(member.params.etpf),
                max_slice_ms: (member.max_slice < Span::FOREVER).then(|| ms(member.max_slice)),
                terms: WrittenTerms::from(&member.terms()),
                paused: member.paused,
                set_aside: member.set_aside,
                protected: member.protected,
                guaranteed: member.statement.is_guaranteed(),
                reason: member.statement.reason().map(Reason::name),
                admission: member.admission(),
                slices: member.slices.filter(|known| *known != TimeSlices::UNKNOWN).map(SlicesAnswer::from),
                held: waits.held(member.app, now, members),
            })
            .collect();
        apps.sort_by_key(|app| std::cmp::Reverse(app.core_priority));
        Self::Apps(apps)
    }
}
