//! Terms of single apps in the configuration.

use serde::Deserialize;
use takt_core::Span;
use takt_ipc::name;

use super::displays::{self, Display};
use super::file::ConfigFile;
use super::values;
use crate::control::contract::Timing;
use crate::control::mistake::{Mistake, mistake};
use crate::control::terms::{Terms, UncheckedTerms};

/// Period of a server of which only the share is given.
const SHARE_PERIOD: Span = Span::from_ms(100);

/// An `[[app]]` section.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileApp {
    name: String,
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
    /// What releases its frames. Default: its own clock if it has a period and no runtime, else a display.
    clock: Option<FileClock>,
    /// Time between two frames of its own clock, or between two replenishments of its server, in
    /// milliseconds.
    period_ms: Option<f64>,
    /// From the release of a frame by its own clock to its deadline, in milliseconds. Default: the period.
    deadline_ms: Option<f64>,
    /// GPU time of its server in each period, in milliseconds.
    runtime_ms: Option<f64>,
    /// Whether its server waits when it has no budget left. Default: no.
    hard: Option<bool>,
    /// Share of the GPU's time (0..1): a server that is not hard. Default of its period: 100 ms.
    share: Option<f64>,
}

/// What releases frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileClock {
    Display,
    Own,
}

/// The terms of one app; the missing ones are those that the app asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppSettings {
    /// Its name.
    pub name: String,
    /// Its terms.
    pub terms: Terms,
}

impl ConfigFile {
    /// Terms of single apps.
    pub(super) fn apps(&self, displays: &[Display]) -> Result<Vec<AppSettings>, Mistake> {
        let mut apps: Vec<AppSettings> = Vec::new();
        for (index, app) in self.app.iter().enumerate() {
            let checked = match apps.iter().any(|other| other.name == app.name) {
                true => Err(mistake("name", &app.name, "name each app once")),
                false => app.check(displays),
            };
            let terms = checked.map_err(|mistake| mistake.within("app", index, &app.name))?;
            apps.push(AppSettings { name: app.name.clone(), terms });
        }
        Ok(apps)
    }
}

impl FileApp {
    fn check(&self, displays: &[Display]) -> Result<Terms, Mistake> {
        if !name::is_name(&self.name) {
            return Err(mistake("name", format!("{:?}", self.name), format!("use {}", name::ALLOWED)));
        }
        let terms = self.unchecked()?.check()?;
        self.check_rate(&terms, displays)?;
        Ok(terms)
    }

    /// With units, and a share as the server that it stands for.
    fn unchecked(&self) -> Result<UncheckedTerms, Mistake> {
        let mut terms = UncheckedTerms {
            priority: self.priority,
            max_slice: values::slice(self.max_slice_ms)?,
            display: self.display.clone(),
            own: self.clock == Some(FileClock::Own),
            period: values::ms_if("period_ms", self.period_ms)?,
            deadline: values::ms_if("deadline_ms", self.deadline_ms)?,
            runtime: values::ms_if("runtime_ms", self.runtime_ms)?,
            hard: self.hard,
            fps_mhz: values::rate("fps", self.fps)?,
            etpf: values::ms_if("etpf_ms", self.etpf_ms)?,
        };
        if self.clock == Some(FileClock::Display)
            && let Some(value) = self.period_ms
        {
            let remedy = "the display sets the period: remove this, or clock = \"display\"";
            return Err(mistake("period_ms", value, remedy));
        }
        if let Some(share) = self.share {
            let conflict = [("runtime_ms", self.runtime_ms.is_some()), ("hard", self.hard.is_some())];
            if let Some((key, _)) = conflict.iter().find(|(_, given)| *given) {
                let remedy = format!("a share sets the runtime, and is not hard: remove share or {key}");
                return Err(mistake("share", share, remedy));
            }
            let period = terms.period.unwrap_or(SHARE_PERIOD);
            (terms.runtime, terms.period) = (Some(values::share(share, period)?), Some(period));
        }
        Ok(terms)
    }

    /// Whether its display exists and can show so many frames.
    fn check_rate(&self, terms: &Terms, displays: &[Display]) -> Result<(), Mistake> {
        let display = match &terms.timing {
            Some(Timing::Display(name)) => {
                let display = displays.iter().find(|display| display.name == *name);
                display.ok_or_else(|| mistake("display", name, displays::unknown(name, displays)))?
            }
            _ => &displays[0],
        };
        match terms.fps_mhz.map(|mhz| display.refresh.stride_for(mhz)) {
            Some(Err(error)) => Err(mistake("fps", self.fps.unwrap_or_default(), error.to_string())),
            _ => Ok(()),
        }
    }
}
