//! Domains and their rights: who may ask for what.
//!
//! A [`Domain`] is a set of clients that the kernel can tell from others. The first domain of the
//! configuration that fits a client is its domain. A client that fits none belongs to [`OWN`] if it is of
//! the daemon's own user or root, else to [`UNLISTED`].
//!
//! Everything here is a pure function of an [`Identity`], a request and the configuration. [`decide`] is
//! the one place where terms are limited, and each of its answers names the [`Rule`] that decided.

mod decide;
mod domains;
mod rule;
mod share;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use takt_core::Span;

use super::identity::Identity;
pub use decide::{Asked, Decision, Limit, Reserved, Used, decide};
pub use domains::{Domains, OWN, UNLISTED};
pub use rule::Rule;
pub use share::{MinShare, SHARES_MAX, ShareServer};

/// Numbers of priorities that each [band](Domain::band) has. A power of ten, so that people can read the
/// priorities of the core in recordings.
pub const BAND: u32 = 1_000_000;

/// How important a domain is. It stands for [`Rights`], and every app of a more important level goes
/// before all apps of a less important one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Apps whose failure does no harm: no reserved time.
    BestEffort,
    /// Apps that may reserve time.
    #[default]
    Standard,
    /// Apps that people depend on.
    SafetyCritical,
}

impl Level {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::BestEffort => "best-effort",
            Self::Standard => "standard",
            Self::SafetyCritical => "safety-critical",
        }
    }

    /// What a domain of this level may do if the configuration does not say otherwise.
    pub fn rights(self) -> Rights {
        let none = Rights { etpf_max: Some(Span::ZERO), share_max_ppm: Some(0), ..Rights::default() };
        match self {
            Self::BestEffort => none,
            Self::Standard => Rights { see: true, ..Rights::default() },
            Self::SafetyCritical => Rights { see: true, uncut: true, ..Rights::default() },
        }
    }
}

/// What a domain may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Highest priority within its level.
    pub priority_max: u32,
    /// Most GPU time per frame that its apps may reserve, all together, if there is a limit.
    pub etpf_max: Option<Span>,
    /// Largest share of the GPU that its apps may reserve, all together, in millionths, if there is a limit.
    pub share_max_ppm: Option<u64>,
    /// Least GPU time of its apps without a contract, if there is one.
    pub share_min: Option<MinShare>,
    /// Most apps at once, if there is a limit.
    pub apps_max: Option<usize>,
    /// Whether groups may be longer than `max_slice_ms`.
    pub uncut: bool,
    /// Whether tools see apps of other domains and users.
    pub see: bool,
    /// Whether tools change apps of other domains and users, and the daemon itself.
    pub change: bool,
    /// Whether tools tell the state of the vehicle.
    pub set_state: bool,
    /// Whether tools say when displays refresh.
    pub set_vsync: bool,
}

impl Default for Rights {
    /// No limits of its apps, and no rights over others.
    fn default() -> Self {
        Self {
            priority_max: BAND - 1,
            etpf_max: None,
            share_max_ppm: None,
            share_min: None,
            apps_max: None,
            uncut: false,
            see: false,
            change: false,
            set_state: false,
            set_vsync: false,
        }
    }
}

/// Which clients belong to a domain: those for which all of these hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Belonging {
    /// Its user.
    pub user: Option<u32>,
    /// One of its groups.
    pub group: Option<u32>,
    /// Its systemd unit.
    pub unit: Option<String>,
    /// Its control group, or one above it.
    pub cgroup: Option<String>,
    /// Its container.
    pub container: Option<String>,
    /// Its executable, which only root can replace.
    pub executable: Option<PathBuf>,
}

/// Shortest beginning of a container's number that stands for it, and digits of the number. The beginning of a name
/// stands for no other name.
const CONTAINER_MIN: usize = 12;
const CONTAINER_DIGITS: usize = 64;

impl Belonging {
    /// Whether a client belongs.
    pub fn fits(&self, who: &Identity) -> bool {
        let all = |given: Option<bool>| given.unwrap_or(true);
        let is_container = |name: &String| {
            who.container().is_some_and(|found| {
                found == name
                    || is_number(found) && name.len() >= CONTAINER_MIN && found.starts_with(name.as_str())
            })
        };
        let executes = |path: &PathBuf| {
            who.executable.as_ref().is_some_and(|found| found.trusted && found.path == *path)
        };
        all(self.user.map(|user| who.uid == user))
            && all(self.group.map(|group| who.groups.contains(&group)))
            && all(self.unit.as_ref().map(|unit| who.is_in_unit(unit)))
            && all(self.cgroup.as_ref().map(|path| who.is_in_cgroup(path)))
            && all(self.container.as_ref().map(is_container))
            && all(self.executable.as_ref().map(executes))
    }

    /// Whether it says anything but the executable, which a user can make do what it likes.
    pub fn is_bound(&self) -> bool {
        let Self { user, group, unit, cgroup, container, executable: _ } = self;
        let named = unit.is_some() || cgroup.is_some() || container.is_some();
        user.is_some() || group.is_some() || named
    }
}

/// Whether a runtime numbered a container so, and no user named it.
fn is_number(container: &str) -> bool {
    container.len() == CONTAINER_DIGITS && container.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl std::fmt::Display for Belonging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, group, unit, cgroup, container, executable } = self;
        let number = |key: &str, number: &Option<u32>| number.map(|number| format!("{key} {number}"));
        let text = |key: &str, text: &Option<String>| text.as_ref().map(|text| format!("{key} {text}"));
        let path = executable.as_ref().map(|path| format!("executable {}", path.display()));
        let all = [number("user", user), number("group", group), text("unit", unit)];
        let rest = [text("cgroup", cgroup), text("container", container), path];
        let given: Vec<String> = all.into_iter().chain(rest).flatten().collect();
        f.write_str(&given.join(", "))
    }
}

/// Clients that have the same rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// How important it is.
    pub level: Level,
    /// Who belongs to it.
    pub belonging: Belonging,
    /// What it may do.
    pub rights: Rights,
    /// Whether it is the one of all clients that the configuration does not know.
    pub unlisted: bool,
}

impl Domain {
    /// The band of its priorities, above those of all less important levels: 0 for clients that the
    /// configuration does not know.
    pub fn band(&self) -> u32 {
        match self.level {
            _ if self.unlisted => 0,
            Level::BestEffort => 1,
            Level::Standard => 2,
            Level::SafetyCritical => 3,
        }
    }

    /// A priority within this domain as the core knows it.
    pub fn core_priority(&self, priority: u32) -> u32 {
        self.band() * BAND + priority.min(BAND - 1)
    }
}
