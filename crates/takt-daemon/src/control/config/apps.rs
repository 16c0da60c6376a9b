//! What single apps get, whatever they ask for.

use serde::Deserialize;
use takt_core::Span;

use super::displays::{self, Display};
use super::{Mistake, mistake, ms, rate, slice};
use crate::control::contract::{Contradiction, SHARE_PERIOD, Timing, Written};

/// What one app gets.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileApp {
    /// Its name.
    pub name: String,
    /// Importance; the higher number wins.
    pub priority: Option<u32>,
    /// Frames per second.
    pub fps: Option<f64>,
    /// GPU time per frame, in milliseconds.
    pub etpf_ms: Option<f64>,
    /// Longest group it may form, in milliseconds; 0 never slices.
    pub max_slice_ms: Option<f64>,
    /// Name of the display that it draws for. Default: the first one.
    pub display: Option<String>,
    /// What releases its frames. Default: its own clock if it has a period and no runtime, else a display.
    pub clock: Option<FileClock>,
    /// Time between two frames of its own clock, or between two replenishments of its server, in
    /// milliseconds.
    pub period_ms: Option<f64>,
    /// From the release of a frame by its own clock to its deadline, in milliseconds. Default: the period.
    pub deadline_ms: Option<f64>,
    /// GPU time of its server in each period, in milliseconds.
    pub runtime_ms: Option<f64>,
    /// Whether its server waits when it has no budget left. Default: no.
    pub hard: Option<bool>,
    /// Share of the GPU's time (0..1): a server that is not hard, with a period of 100 ms unless it names
    /// one.
    pub share: Option<f64>,
}

/// What releases frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileClock {
    /// A display.
    Display,
    /// The app itself.
    Own,
}

/// What one app gets; what is missing is as it asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppSettings {
    /// Its name.
    pub name: String,
    /// Importance.
    pub priority: Option<u32>,
    /// Frames per second, in millihertz.
    pub fps_mhz: Option<u32>,
    /// GPU time per frame.
    pub etpf: Option<Span>,
    /// Longest group.
    pub max_slice: Option<Span>,
    /// What releases its work.
    pub timing: Option<Timing>,
}

impl FileApp {
    pub(super) fn check(&self, displays: &[Display]) -> Result<AppSettings, Mistake> {
        let fps_mhz = self.fps.map(|fps| rate(&self.key("fps"), fps)).transpose()?;
        let etpf = self.ms("etpf_ms", self.etpf_ms)?;
        let timing = self.written(fps_mhz, etpf)?.timing().map_err(|wrong| self.mistake(wrong))?;
        self.check_rate(fps_mhz, timing.as_ref(), displays)?;
        let max_slice = self.max_slice_ms.map(|value| slice(&self.key("max_slice_ms"), value)).transpose()?;
        Ok(AppSettings { name: self.name.clone(), priority: self.priority, fps_mhz, etpf, max_slice, timing })
    }

    /// What is written about its timing; a share as the server that it stands for.
    fn written(&self, fps_mhz: Option<u32>, etpf: Option<Span>) -> Result<Written, Mistake> {
        let period = self.ms("period_ms", self.period_ms)?;
        let written = Written {
            display: self.display.clone(),
            own: self.clock == Some(FileClock::Own),
            period,
            deadline: self.ms("deadline_ms", self.deadline_ms)?,
            runtime: self.ms("runtime_ms", self.runtime_ms)?,
            hard: self.hard,
            fps_mhz,
            etpf,
        };
        if self.clock == Some(FileClock::Display)
            && let Some(value) = self.period_ms
        {
            let remedy = "the display says how often: leave it out, or clock = \"display\"".to_owned();
            return Err(mistake(&self.key("period_ms"), value, remedy));
        }
        let Some(share) = self.share else {
            return Ok(written);
        };
        let conflict = [("runtime_ms", self.runtime_ms.is_some()), ("hard", self.hard.is_some())];
        if let Some((key, _)) = conflict.iter().find(|(_, given)| *given) {
            let remedy = format!("a share says how much, and is not hard: leave out one of share and {key}");
            return Err(mistake(&self.key("share"), share, remedy));
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(mistake(&self.key("share"), share, "use more than 0, and 1 at most".to_owned()));
        }
        let period = period.unwrap_or(SHARE_PERIOD);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let runtime = Span::from_ns((period.as_ns() as f64 * share).round() as u64);
        Ok(Written { runtime: Some(runtime), period: Some(period), ..written })
    }

    /// Whether its display is there and can show so many frames.
    fn check_rate(
        &self,
        fps_mhz: Option<u32>,
        timing: Option<&Timing>,
        displays: &[Display],
    ) -> Result<(), Mistake> {
        let display = match timing {
            Some(Timing::Display(name)) => {
                let display = displays.iter().find(|display| display.name == *name);
                let remedy = || mistake(&self.key("display"), name, displays::unknown(name, displays));
                display.ok_or_else(remedy)?
            }
            _ => &displays[0],
        };
        match fps_mhz.map(|mhz| display.refresh.stride_for(mhz)) {
            Some(Err(error)) => {
                Err(mistake(&self.key("fps"), self.fps.unwrap_or_default(), error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("app \"{}\": {key}", self.name)
    }

    fn ms(&self, key: &str, value: Option<f64>) -> Result<Option<Span>, Mistake> {
        value.map(|value| ms(&self.key(key), value)).transpose()
    }

    fn mistake(&self, wrong: Contradiction) -> Mistake {
        mistake(&self.key(wrong.key), wrong.value, wrong.remedy)
    }
}
