//! Terms of single apps in the configuration.

use std::path::PathBuf;

use serde::Deserialize;
use takt_core::Span;
use takt_core::belief::Uncut;
use takt_ipc::name;

use super::Settings;
use super::displays::{self, Display};
use super::file::ConfigFile;
use super::values;
use crate::control::contract::{Timing, ms};
use crate::control::identity::Identity;
use crate::control::mistake::{Mistake, mistake};
use crate::control::pacing::Pace;
use crate::control::rights::{Asked, Domain, Domains, OWN, Rule, Used, decide};
use crate::control::supervision::{Reaction, Supervision};
use crate::control::terms::{Terms, UncheckedTerms};

/// Shortest silence that means anything.
const SILENCE_MIN: Span = Span::from_ms(100);
/// Period of a server of which only the share is given.
const SHARE_PERIOD: Span = Span::from_ms(100);

/// An `[[app]]` section.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileApp {
    name: String,
    /// The domain whose clients have these terms. Default: own, the daemon's user and root.
    domain: Option<String>,
    /// The executable of the client that has these terms. Default: any of that domain.
    executable: Option<PathBuf>,
    /// The hash of that executable, in hexadecimal digits.
    sha256: Option<String>,
    /// Importance; the higher number wins.
    priority: Option<u32>,
    /// Frames per second.
    fps: Option<f64>,
    /// GPU time per frame, in milliseconds.
    etpf_ms: Option<f64>,
    /// Longest group it may form, in milliseconds; 0 never slices.
    max_slice_ms: Option<f64>,
    /// Name of the display that it draws for. Default: the first one.
    display: Option<String>,
    /// What says when its frames begin. Default: its own clock if it has a period and no runtime, the display if
    /// it names one, else auto.
    clock: Option<Pace>,
    /// Time between two frames of its own clock, or between two replenishments of its server, in
    /// milliseconds.
    period_ms: Option<f64>,
    /// From the release of a frame by its own clock to its deadline, in milliseconds. Default: the period.
    deadline_ms: Option<f64>,
    /// GPU time of its server in each period, in milliseconds.
    runtime_ms: Option<f64>,
    /// Whether its server waits when it has no budget left. Default: no.
    hard: Option<bool>,
    /// What becomes of its work that cannot be cut and fits nowhere. Default: it waits.
    uncut: Option<FileUncut>,
    /// How often it waits for its own groups within a frame or job at most.
    gaps: Option<u32>,
    /// How long each of these gaps lasts at most, in milliseconds; what it reserves includes them.
    gap_ms: Option<f64>,
    /// Name of the app that consumes what it produces: while that one waits, it has its deadline.
    feeds: Option<String>,
    /// Name of the app whose contract it shares, instead of having one.
    shares: Option<String>,
    /// Share of the GPU's time (0..1): a server that is not hard. Default of its period: 100 ms.
    share: Option<f64>,
    /// The longest time without a finished frame, in milliseconds. Default: it is not supervised.
    silence_ms_max: Option<f64>,
    /// What to do when it finishes no frame for longer. Default: tell.
    on_silence: Option<Reaction>,
    /// The systemd unit to restart then. Default: that of its domain.
    restart_unit: Option<String>,
}

/// A client that wants the terms of an app.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// What it calls itself.
    pub name: &'a str,
    /// Its domain.
    pub domain: &'a Domain,
    /// Who it is.
    pub who: &'a Identity,
}

/// What becomes of work that cannot be cut and fits nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileUncut {
    Wait,
    Run,
}

impl From<FileUncut> for Uncut {
    fn from(uncut: FileUncut) -> Self {
        match uncut {
            FileUncut::Wait => Self::Wait,
            FileUncut::Run => Self::Run,
        }
    }
}

/// The terms of one app; the missing ones are those that the app asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppSettings {
    /// Its name.
    pub name: String,
    /// The name of the domain that its terms are for.
    pub domain: String,
    /// The executable that they are for, if they are not for all of that domain.
    pub executable: Option<PathBuf>,
    /// The hash of that executable, if it must have that.
    pub sha256: Option<String>,
    /// Its terms.
    pub terms: Terms,
    /// How it is supervised, if it is.
    pub supervision: Option<Supervision>,
}

impl ConfigFile {
    /// Terms of single apps.
    pub(super) fn apps(&self, displays: &[Display], domains: &Domains) -> Result<Vec<AppSettings>, Mistake> {
        let mut apps: Vec<AppSettings> = Vec::new();
        for (index, app) in self.app.iter().enumerate() {
            let checked = match apps.iter().any(|other| other.name == app.name) {
                true => Err(mistake("name", &app.name, "name each app once")),
                false => app.check(displays),
            };
            let checked = checked.and_then(|terms| app.section(terms, domains));
            apps.push(checked.map_err(|mistake| mistake.within("app", index, &app.name))?);
        }
        Ok(apps)
    }
}

impl FileApp {
    fn check(&self, displays: &[Display]) -> Result<Terms, Mistake> {
        if !name::is_name(&self.name) {
            return Err(mistake("name", format!("{:?}", self.name), format!("use {}", name::ALLOWED)));
        }
        let terms = Terms { uncut: self.uncut.map(Uncut::from), ..self.unchecked()?.check()? };
        self.check_rate(&terms, displays)?;
        Ok(terms)
    }

    fn section(&self, terms: Terms, domains: &Domains) -> Result<AppSettings, Mistake> {
        let executable = self.executable.clone();
        if let Some(path) = executable.as_ref().filter(|path| !path.is_absolute()) {
            return Err(mistake("executable", path.display(), "use an absolute path"));
        }
        if let Some(hash) = &self.sha256 {
            if executable.is_none() {
                return Err(mistake("sha256", hash, "add executable, the path of the file that has it"));
            }
            if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(mistake("sha256", hash, "use the 64 hexadecimal digits that sha256sum prints"));
            }
        }
        let sha256 = self.sha256.as_ref().map(|hash| hash.to_ascii_lowercase());
        let supervision = self.supervision(domains)?;
        let domain = self.domain(domains)?;
        Ok(AppSettings { name: self.name.clone(), domain, executable, sha256, terms, supervision })
    }

    /// The name of its domain.
    fn domain(&self, domains: &Domains) -> Result<String, Mistake> {
        let name = self.domain.as_deref().unwrap_or(OWN);
        if domains.named(name).is_some() {
            return Ok(name.to_owned());
        }
        let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
        Err(mistake("domain", name, format!("there is no such domain; there are {}", names.join(", "))))
    }

    /// How it is supervised.
    fn supervision(&self, domains: &Domains) -> Result<Option<Supervision>, Mistake> {
        let Some(ms) = self.silence_ms_max else {
            return match (self.on_silence, &self.restart_unit) {
                (None, None) => Ok(None),
                (Some(_), _) => Err(mistake("on_silence", "given", "say after how long: add silence_ms_max")),
                (None, Some(unit)) => Err(mistake("restart_unit", unit, "say when: add silence_ms_max")),
            };
        };
        let silence_max = values::ms("silence_ms_max", ms)?;
        if silence_max < SILENCE_MIN {
            return Err(mistake("silence_ms_max", ms, "use 100 or more: apps may miss some frames"));
        }
        let reaction = self.on_silence.unwrap_or_default();
        let domain = domains.named(self.domain.as_deref().unwrap_or(OWN));
        let of_domain = || domain.and_then(|domain| domain.belonging.unit.clone());
        let unit = self.restart_unit.clone().or_else(of_domain);
        if reaction.restarts() && unit.is_none() {
            let remedy =
                "its domain has no unit to restart: add restart_unit, or use \"tell\" or \"degrade\"";
            return Err(mistake("on_silence", "\"restart\"", remedy));
        }
        if let Some(unit) = self.restart_unit.as_ref().filter(|_| !reaction.restarts()) {
            let remedy = "nothing restarts it: add on_silence = \"restart\" or \"restart-and-degrade\"";
            return Err(mistake("restart_unit", unit, remedy));
        }
        Ok(Some(Supervision { silence_max, reaction, unit }))
    }

    /// With units, and a share as the server that it stands for.
    fn unchecked(&self) -> Result<UncheckedTerms, Mistake> {
        let mut terms = UncheckedTerms {
            priority: self.priority,
            max_slice: values::slice(self.max_slice_ms)?,
            display: self.display.clone(),
            pace: self.clock,
            period: values::ms_if("period_ms", self.period_ms)?,
            deadline: values::ms_if("deadline_ms", self.deadline_ms)?,
            runtime: values::ms_if("runtime_ms", self.runtime_ms)?,
            share: false,
            hard: self.hard,
            fps_mhz: values::rate("fps", self.fps)?,
            etpf: values::ms_if("etpf_ms", self.etpf_ms)?,
            gaps: self.gaps,
            gap: values::ms_if("gap_ms", self.gap_ms)?,
            feeds: self.feeds.clone(),
            shares: self.shares.clone(),
        };
        if let Some(share) = self.share {
            let conflict = [("runtime_ms", self.runtime_ms.is_some()), ("hard", self.hard.is_some())];
            if let Some((key, _)) = conflict.iter().find(|(_, given)| *given) {
                let remedy = format!("a share sets the runtime, and is not hard: remove share or {key}");
                return Err(mistake("share", share, remedy));
            }
            let period = terms.period.unwrap_or(SHARE_PERIOD);
            (terms.runtime, terms.period, terms.share) =
                (Some(values::share(share, period)?), Some(period), true);
        }
        Ok(terms)
    }

    /// Whether its display exists and can show so many frames.
    fn check_rate(&self, terms: &Terms, displays: &[Display]) -> Result<(), Mistake> {
        let display = match &terms.timing {
            Some(Timing::Display(name)) if !name.is_empty() => {
                let display = displays.iter().find(|display| display.name == *name);
                display.ok_or_else(|| mistake("display", name, displays::unknown(name, displays)))?
            }
            _ if terms.pace == Some(Pace::Auto) => return Ok(()),
            _ => &displays[0],
        };
        match terms.fps_mhz.map(|mhz| display.refresh.stride_for(mhz)) {
            Some(Err(error)) => Err(mistake("fps", self.fps.unwrap_or_default(), error.to_string())),
            _ => Ok(()),
        }
    }
}

/// Whether the listed apps of each domain are within its rights, all together.
pub(super) fn check_rights(settings: &Settings) -> Result<(), Mistake> {
    for (index, app) in settings.apps.iter().enumerate() {
        let Some(domain) = settings.domains.named(&app.domain) else { continue };
        let within = |listed: &&AppSettings| listed.domain == app.domain;
        let mut used = Used::default();
        for other in settings.apps[..index].iter().filter(within) {
            used.apps += 1;
            used.reserved = used.reserved + settings.reserved(&other.terms, domain).unwrap_or_default();
        }
        let reserved = settings.reserved(&app.terms, domain).unwrap_or_default();
        let (terms, slice_max) = (&app.terms, settings.max_slice);
        let asked = Asked { terms, reserved, slice_max, by: Rule::ListedApp, refuses: true };
        if let Some(limit) = decide(domain, &asked, &used).limits.first() {
            let key = app.key_of(limit.rule);
            let wrong = mistake(key, app.value_of(key), limit.text.clone());
            return Err(wrong.within("app", index, &app.name));
        }
    }
    Ok(())
}

impl AppSettings {
    /// Whether that unit is restarted when it stops drawing.
    pub(crate) fn restarts(&self, unit: &str) -> bool {
        self.supervision.as_ref().is_some_and(|supervision| {
            supervision.reaction == Reaction::Restart && supervision.unit.as_deref() == Some(unit)
        })
    }

    /// Whether it is for that client.
    pub fn is_for(&self, client: &Client<'_>) -> bool {
        let Client { name, domain, who } = client;
        let runs = |path: &PathBuf| who.executable.as_ref().is_some_and(|it| it.trusted && it.path == *path);
        self.name == *name && self.domain == domain.name && self.executable.as_ref().is_none_or(runs)
    }

    /// The key that a rule is about.
    fn key_of(&self, rule: Rule) -> &'static str {
        match (rule, &self.terms.timing) {
            (Rule::PriorityMax, _) => "priority",
            (Rule::Uncut, _) => "max_slice_ms",
            (Rule::EtpfMax, _) => "etpf_ms",
            (Rule::ShareMax, Some(Timing::Server { .. })) => "runtime_ms",
            (Rule::ShareMax, _) => "etpf_ms",
            _ => "domain",
        }
    }

    fn value_of(&self, key: &str) -> String {
        let terms = &self.terms;
        let of_ms = |span: Option<Span>| span.map(|span| ms(span).to_string());
        let value = match (key, &terms.timing) {
            ("priority", _) => terms.priority.map(|priority| priority.to_string()),
            ("max_slice_ms", _) => of_ms(terms.max_slice.filter(|slice| *slice < Span::FOREVER)),
            ("etpf_ms", _) => of_ms(terms.etpf),
            ("runtime_ms", Some(Timing::Server { runtime, .. })) => of_ms(Some(*runtime)),
            _ => Some(self.domain.clone()),
        };
        value.unwrap_or_else(|| "0".to_owned())
    }
}
