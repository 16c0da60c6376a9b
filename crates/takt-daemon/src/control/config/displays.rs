//! Displays in the configuration: one by `refresh_hz`, or several by `[[display]]`.

use serde::Deserialize;
use takt_core::limits::DISPLAYS_MAX;
use takt_core::{DisplayId, Refresh, Span, Time};
use takt_ipc::name;

use super::file::ConfigFile;
use super::{Settings, values};
use crate::control::mistake::{Mistake, mistake};
use crate::control::vsync::anchored;

/// A `[[display]]` section.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDisplay {
    /// Its name, by which apps choose it.
    name: String,
    /// Its refresh rate. Default: 60.
    refresh_hz: Option<f64>,
    /// How long after a refresh of the first display it refreshes, in milliseconds. Default: 0.
    phase_ms: Option<f64>,
}

/// A display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Display {
    /// Its name; empty if it is the only one and has none.
    pub name: String,
    /// Its rate.
    pub refresh: Refresh,
    /// How long after a refresh of the first display it refreshes.
    pub phase: Span,
}

impl Display {
    /// Its grid, where the first display has a refresh at `first`.
    pub fn grid(&self, first: Time) -> Refresh {
        anchored(&self.refresh, first + self.phase)
    }
}

impl Settings {
    /// The display of that name, as the core knows it, and its rate; the first one if the name is empty.
    pub fn display(&self, name: &str) -> Result<(DisplayId, &Refresh), String> {
        let index = self.displays.iter().position(|display| display.name == name);
        let first = || name.is_empty().then_some(0);
        let index = index.or_else(first).ok_or_else(|| unknown(name, &self.displays))?;
        let number = u8::try_from(index).unwrap_or_default();
        Ok((DisplayId(number), &self.displays[index].refresh))
    }
}

/// The remedy for the name of a display that does not exist.
pub(super) fn unknown(name: &str, displays: &[Display]) -> String {
    let names: Vec<&str> = displays.iter().map(|display| display.name.as_str()).collect();
    match names.concat().is_empty() {
        true => format!("there is no display {name}; displays have names in [[display]] sections"),
        false => format!("there is no display {name}; there are {}", names.join(", ")),
    }
}

impl ConfigFile {
    /// The displays; apps that name none draw for the first.
    pub(super) fn displays(&self) -> Result<Vec<Display>, Mistake> {
        let Some(first) = self.display.first() else {
            let refresh = values::refresh(self.refresh_hz)?;
            return Ok(vec![Display { name: String::new(), refresh, phase: Span::ZERO }]);
        };
        if let Some(hz) = self.refresh_hz {
            let remedy = format!("there are [[display]] sections; move it to that of \"{}\"", first.name);
            return Err(mistake("refresh_hz", hz, remedy));
        }
        if self.display.len() > DISPLAYS_MAX {
            let remedy = format!("use {DISPLAYS_MAX} sections at most");
            return Err(mistake("display", self.display.len(), remedy));
        }
        let mut displays: Vec<Display> = Vec::new();
        for (index, file) in self.display.iter().enumerate() {
            let checked = match displays.iter().any(|other| other.name == file.name) {
                true => Err(mistake("name", &file.name, "name each display once")),
                false => file.check(displays.is_empty()),
            };
            displays.push(checked.map_err(|mistake| mistake.within("display", index, &file.name))?);
        }
        Ok(displays)
    }
}

impl FileDisplay {
    fn check(&self, is_first: bool) -> Result<Display, Mistake> {
        if !name::is_name(&self.name) {
            let remedy = format!("give it a name of {}", name::ALLOWED);
            return Err(mistake("name", format!("{:?}", self.name), remedy));
        }
        let refresh = values::refresh(self.refresh_hz)?;
        let phase_ms = self.phase_ms.unwrap_or(0.0);
        let phase = values::ms("phase_ms", phase_ms)?;
        if is_first && phase > Span::ZERO {
            let remedy = "phases count from the first display, which this is: use 0";
            return Err(mistake("phase_ms", phase_ms, remedy));
        }
        let period = refresh.period_span();
        if phase >= period {
            let remedy = format!("use less than its period, {:.3} ms", period.as_ns() as f64 / 1e6);
            return Err(mistake("phase_ms", phase_ms, remedy));
        }
        Ok(Display { name: self.name.clone(), refresh, phase })
    }
}
