//! From what a file says to what the simulator plays: displays.

use std::num::NonZeroU32;

use takt_core::limits::DISPLAYS_MAX;
use takt_core::{Config, DisplayId, Refresh, Span, Time};

use super::decimal::{self, fixed_point};
use super::lower::{Lower, all};
use super::raw::RawDisplay;
use super::reader::{OneOrMany, Text};

/// The displays, the one of apps that name none first.
pub(super) struct Displays {
    all: Vec<Display>,
}

struct Display {
    /// Empty if it has none.
    name: String,
    grid: Grid,
}

/// What apps must know of a display.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) refresh: Refresh,
    /// Given as a period: frame rates are not exact.
    pub(super) by_period: bool,
}

impl Default for Grid {
    fn default() -> Self {
        Self { refresh: Refresh::HZ_60, by_period: false }
    }
}

impl Displays {
    fn only(name: String, grid: Grid) -> Self {
        Self { all: vec![Display { name, grid }] }
    }

    /// The grid of a display; 60 Hz for one that is not there, as in the core.
    pub(super) fn grid(&self, display: DisplayId) -> Grid {
        self.all.get(usize::from(display.0)).map_or_else(Grid::default, |display| display.grid)
    }

    /// The configuration with these displays.
    pub(super) fn shown(&self, mut config: Config) -> Config {
        config.refresh = self.grid(DisplayId(0)).refresh;
        for (refresh, display) in config.more_displays.iter_mut().zip(self.all.iter().skip(1)) {
            *refresh = display.grid.refresh;
        }
        config
    }

    fn find(&self, name: &str) -> Option<DisplayId> {
        let index = self.all.iter().position(|display| display.name == name)?;
        u8::try_from(index).ok().map(DisplayId)
    }
}

impl Lower<'_, '_> {
    pub(super) fn displays(&mut self, raw: Option<&OneOrMany<RawDisplay>>) -> Option<Displays> {
        match raw {
            None => Some(Displays::only(String::new(), Grid::default())),
            Some(OneOrMany::One(one)) => {
                let name = one.name.as_ref().map_or_else(|| Some(String::new()), |name| self.name(name));
                let grid = self.display(one, DisplayAt::First);
                Some(Displays::only(name?, grid?))
            }
            Some(OneOrMany::Many(many)) if many.is_empty() => self.displays(None),
            Some(OneOrMany::Many(many)) => self.several(many),
        }
    }

    fn several(&mut self, raw: &[RawDisplay]) -> Option<Displays> {
        if let Some(extra) = raw.get(DISPLAYS_MAX) {
            let problem = format_args!("there are {} displays", raw.len());
            let remedy = format!("have at most {DISPLAYS_MAX} (DISPLAYS_MAX)");
            self.report.table(&extra.at, problem, remedy);
            return None;
        }
        let lowered = raw.iter().enumerate().map(|(index, one)| {
            let name = self.display_name(one, &raw[..index]);
            let grid = self.display(one, if index == 0 { DisplayAt::First } else { DisplayAt::Later });
            Some(Display { name: name?, grid: grid? })
        });
        all(lowered).map(|all| Displays { all })
    }

    /// The name of one of several displays, unlike those before it.
    fn display_name(&mut self, raw: &RawDisplay, before: &[RawDisplay]) -> Option<String> {
        let Some(text) = &raw.name else {
            self.report.table(&raw.at, "the key name is missing", "add name = …, by which apps choose it");
            return None;
        };
        let name = self.name(text)?;
        let same = |other: &&Text| other.value.as_ref() == Some(&name);
        if let Some(first) = before.iter().filter_map(|other| other.name.as_ref()).find(same) {
            let line = self.report.sources.line(first.at.span.start);
            let problem = format_args!("another display is called {name} ({line})");
            self.report.value(&text.at, problem, "give each display its own name");
            return None;
        }
        Some(name)
    }

    fn display(&mut self, raw: &RawDisplay, place: DisplayAt) -> Option<Grid> {
        let grid = self.grid(raw);
        let phase = self.span_or(raw.phase_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        let (grid, phase) = (grid?, phase?);
        let period = grid.refresh.period_span();
        if let Some(number) = raw.phase_us.as_ref().filter(|_| phase > Span::ZERO) {
            let (problem, remedy) = match place {
                DisplayAt::First => {
                    ("phases count from the first display, which this is", "use 0".to_owned())
                }
                DisplayAt::Later if phase >= period => {
                    let period = fixed_point(period.as_ns().into(), 3);
                    ("is not below the display's period", format!("use less than {period} us"))
                }
                DisplayAt::Later => {
                    let refresh = grid.refresh.with_origin(Time::ZERO + phase);
                    return Some(Grid { refresh, ..grid });
                }
            };
            self.report.value(&number.at, problem, remedy);
            return None;
        }
        Some(grid)
    }

    /// The rate of a display, without its phase.
    fn grid(&mut self, raw: &RawDisplay) -> Option<Grid> {
        match (&raw.refresh_hz, &raw.period_us) {
            (Some(_), Some(period)) => {
                self.report.value(
                    &period.at,
                    "the refresh rate is given already",
                    "give refresh_hz or period_us, not both",
                );
                None
            }
            (Some(rate), None) => Some(Grid {
                refresh: Refresh::from_mhz(self.number(rate, &decimal::REFRESH_HZ)?)?,
                by_period: false,
            }),
            (None, Some(period)) => {
                let ns: u32 = self.number(period, &decimal::PERIOD_US)?;
                Some(Grid { refresh: Refresh::from_period_ns(NonZeroU32::new(ns)?), by_period: true })
            }
            (None, None) => Some(Grid::default()),
        }
    }

    /// The display of that name.
    pub(super) fn display_called(&mut self, text: &Text, displays: &Displays) -> Option<DisplayId> {
        let name = text.value.as_deref()?;
        if let Some(display) = displays.find(name).filter(|_| !name.is_empty()) {
            return Some(display);
        }
        let names: Vec<&str> = displays.all.iter().map(|display| display.name.as_str()).collect();
        if names.concat().is_empty() {
            let remedy = "give displays names, in [[display]] tables";
            self.report.value(&text.at, "there is no such display", remedy);
            return None;
        }
        self.one_of(text, &names, "display").and(None)
    }
}

/// Where a display stands in the list.
#[derive(Clone, Copy)]
enum DisplayAt {
    First,
    Later,
}
