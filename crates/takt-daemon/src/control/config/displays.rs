//! Displays in the configuration: one by `refresh_hz`, or several by `[[display]]`.

use serde::Deserialize;
use takt_core::limits::DISPLAYS_MAX;
use takt_core::{DisplayId, Refresh, Span, Time};

use super::{File, Mistake, Settings, mistake, ms, rate};
use crate::control::vsync::anchored;

/// A display.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDisplay {
    /// Its name, by which apps choose it.
    pub name: String,
    /// Its refresh rate. Default: 60.
    pub refresh_hz: Option<f64>,
    /// How long after a refresh of the first display it refreshes, in milliseconds. Default: 0.
    pub phase_ms: Option<f64>,
}

/// A display that makes sense.
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
        let index = index.or_else(|| name.is_empty().then_some(0)).ok_or_else(|| self.unknown(name))?;
        let number = u8::try_from(index).unwrap_or_default();
        Ok((DisplayId(number), &self.displays[index].refresh))
    }

    fn unknown(&self, name: &str) -> String {
        unknown(name, &self.displays)
    }
}

/// What to say of a display that is not there.
pub(super) fn unknown(name: &str, displays: &[Display]) -> String {
    let names: Vec<&str> = displays.iter().map(|display| display.name.as_str()).collect();
    match names.concat().is_empty() {
        true => format!("there is no display {name}; displays have names in [[display]] sections"),
        false => format!("there is no display {name}; there are {}", names.join(", ")),
    }
}

impl File {
    /// The displays, the one of apps that name none first.
    pub(super) fn displays(&self) -> Result<Vec<Display>, Mistake> {
        let Some(first) = self.display.first() else {
            let refresh = refresh("refresh_hz", self.refresh_hz)?;
            return Ok(vec![Display { name: String::new(), refresh, phase: Span::ZERO }]);
        };
        if let Some(hz) = self.refresh_hz {
            let remedy = format!("there are [[display]] sections; move it to that of \"{}\"", first.name);
            return Err(mistake("refresh_hz", hz, remedy));
        }
        if self.display.len() > DISPLAYS_MAX {
            return Err(mistake(
                "display",
                self.display.len(),
                format!("use {DISPLAYS_MAX} sections at most"),
            ));
        }
        let mut displays: Vec<Display> = Vec::new();
        for file in &self.display {
            let display = file.check(displays.is_empty())?;
            if displays.iter().any(|other| other.name == display.name) {
                return Err(mistake("display.name", &file.name, "name each display once".to_owned()));
            }
            displays.push(display);
        }
        Ok(displays)
    }
}

impl FileDisplay {
    fn check(&self, is_first: bool) -> Result<Display, Mistake> {
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            let shown = format!("{:?}", self.name);
            return Err(mistake("display.name", shown, "give it a name that can be shown".to_owned()));
        }
        let key = |key: &str| format!("display \"{}\": {key}", self.name);
        let refresh = refresh(&key("refresh_hz"), self.refresh_hz)?;
        let phase = self.phase_ms.unwrap_or(0.0);
        let span = ms(&key("phase_ms"), phase)?;
        if is_first && span > Span::ZERO {
            let remedy = "phases count from the first display, which this is: use 0".to_owned();
            return Err(mistake(&key("phase_ms"), phase, remedy));
        }
        let period = refresh.period_span();
        if span >= period {
            let remedy = format!("use less than its period, {:.3} ms", period.as_ns() as f64 / 1e6);
            return Err(mistake(&key("phase_ms"), phase, remedy));
        }
        Ok(Display { name: self.name.clone(), refresh, phase: span })
    }
}

fn refresh(key: &str, hz: Option<f64>) -> Result<Refresh, Mistake> {
    let mhz = rate(key, hz.unwrap_or(60.0))?;
    Refresh::from_mhz(mhz).ok_or_else(|| mistake(key, mhz / 1000, "use 1 to 1000".to_owned()))
}
