//! Answers about domains.

use serde::Serialize;

use crate::control::config::Settings;
use crate::control::contract::ms;
use crate::control::identity::Identity;
use crate::control::members::Members;
use crate::control::rights::{Domain, Level, Reserved};
use crate::control::shares::ShareAccounts;

/// The domains, and which one is the asker's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DomainsAnswer {
    /// The name of the asker's domain.
    pub yours: String,
    /// The asker's user.
    pub uid: u32,
    /// The domains that the asker may see, in the order in which they are tried.
    pub domains: Vec<DomainAnswer>,
    /// The configuration that they are from.
    pub policy: PolicyAnswer,
}

/// A configuration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyAnswer {
    /// Its file, if it has one.
    pub file: Option<String>,
    /// The hash of its text.
    pub sha256: Option<String>,
    /// Whether its signature was checked.
    pub sealed: bool,
    /// The state of the vehicle, if a tool told it.
    pub state: Option<String>,
    /// The hash of a configuration that waits for another state of the vehicle.
    pub waiting_sha256: Option<String>,
}

/// A domain, its limits and what it uses of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DomainAnswer {
    /// Its name.
    pub name: String,
    /// How important it is.
    pub level: Level,
    /// Who belongs to it, in words.
    pub who: String,
    /// Highest priority within its level.
    pub priority_max: u32,
    /// Most GPU time per frame that its apps may reserve, in milliseconds, if there is a limit.
    pub etpf_ms_max: Option<f64>,
    /// Largest share of the GPU that its apps may reserve (0..1), if there is a limit.
    pub share_max: Option<f64>,
    /// Least share of the GPU that its apps without a contract have while they have work, if it has one (0..1).
    pub share_min: Option<f64>,
    /// The time over which that is looked at, in milliseconds.
    pub share_window_ms: Option<f64>,
    /// What these apps had in the last whole window (0..1).
    pub share_had: Option<f64>,
    /// Windows in which they waited and had less than the minimum.
    pub share_missed: Option<u64>,
    /// Whether the last one was such a window.
    pub share_short: bool,
    /// Most apps at once, if there is a limit.
    pub apps_max: Option<usize>,
    /// Whether its groups may be longer than `max_slice_ms`.
    pub uncut: bool,
    /// Whether its tools see apps of others.
    pub see: bool,
    /// Whether its tools change apps of others, and the daemon.
    pub change: bool,
    /// Whether its tools tell the state of the vehicle.
    pub set_state: bool,
    /// Whether its tools say when displays refresh.
    pub set_vsync: bool,
    /// Its apps that are scheduled.
    pub apps: usize,
    /// GPU time per frame that these reserve, in milliseconds.
    pub etpf_ms: f64,
    /// Share of the GPU that these reserve (0..1).
    pub share: f64,
    /// Apps that the configuration lists for it.
    pub listed: Vec<String>,
}

impl DomainsAnswer {
    /// The domains, as `who` may see them.
    pub(crate) fn new(who: &Identity, known: &Known<'_>, policy: PolicyAnswer) -> Self {
        let settings = known.settings;
        let yours = settings.domains.of(who);
        let is_seen = |domain: &Domain| yours.rights.see || domain.name == yours.name;
        let domains = settings.domains.iter().filter(|domain| is_seen(domain));
        Self {
            yours: yours.name.clone(),
            uid: who.uid,
            domains: domains.map(|domain| answer(domain, known)).collect(),
            policy,
        }
    }
}

/// What is known about domains.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) members: &'a Members,
    pub(crate) settings: &'a Settings,
    pub(crate) shares: &'a ShareAccounts,
}

fn answer(domain: &Domain, known: &Known<'_>) -> DomainAnswer {
    let Known { members, settings, shares } = *known;
    let had = shares.of_domain(&domain.name);
    let least = domain.rights.share_min;
    let (rights, mut reserved) = (&domain.rights, Reserved::default());
    for member in members.of_domain(domain) {
        reserved = reserved + member.reserved(&settings.core);
    }
    let share = |ppm: u64| ppm as f64 / 1e6;
    let listed = settings.apps.iter().filter(|app| app.domain == domain.name);
    DomainAnswer {
        name: domain.name.clone(),
        level: domain.level,
        who: settings.domains.who(domain),
        priority_max: rights.priority_max,
        etpf_ms_max: rights.etpf_max.map(ms),
        share_max: rights.share_max_ppm.map(share),
        share_min: least.map(|least| share(least.ppm)),
        share_window_ms: least.map(|least| ms(least.window)),
        share_had: had.zip(least).map(|(had, least)| had.part_of(least.window)),
        share_missed: had.map(|had| had.violations),
        share_short: had.is_some_and(|had| had.short),
        apps_max: rights.apps_max,
        uncut: rights.uncut,
        see: rights.see,
        change: rights.change,
        set_state: rights.set_state,
        set_vsync: rights.set_vsync,
        apps: members.of_domain(domain).count(),
        etpf_ms: ms(reserved.etpf),
        share: share(reserved.share_ppm),
        listed: listed.map(|app| app.name.clone()).collect(),
    }
}
