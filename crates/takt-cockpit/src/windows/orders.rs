//! Orders of controllers: programs that may arrange the windows of others.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use takt_core::Time;

use super::{Action, Kind, Note, WindowId, Windows};
use crate::geometry::Rect;

/// What a controller wants of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    /// Show it.
    Show,
    /// Do not show it.
    Hide,
    /// Show it there; none is where its rule says.
    Place(Option<Rect>),
    /// Make it that opaque.
    Fade(u8),
    /// Bring it in front of windows whose rules matter as much.
    Raise,
    /// Ask it to close.
    Close,
}

/// Which window a controller means.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Subject {
    /// By its number.
    Id(WindowId),
    /// By the name of its rule; the one in front if there are several.
    Name(String),
}

impl FromStr for Subject {
    type Err = String;

    /// A name, or a number after `#`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('#') {
            Some(number) => match number.parse() {
                Ok(number) => Ok(Self::Id(WindowId(number))),
                Err(_) => Err(format!("{text:?} is no window: use its name, or # and its number")),
            },
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "#{}", id.0),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Windows {
    /// Carries out an order, or says why not.
    pub fn order(&mut self, now: Time, subject: &Subject, order: Order) -> Result<WindowId, String> {
        let id = self.resolve(subject)?;
        let refused = self.check(id, order).err();
        self.record_order(id, order, refused.as_deref());
        if let Some(reason) = refused {
            return Err(reason);
        }
        self.arrivals += u64::from(order == Order::Raise);
        let arrivals = self.arrivals;
        let Some(window) = self.windows.get_mut(&id) else {
            return Err("it is gone".to_owned());
        };
        match order {
            Order::Raise => window.arrival = arrivals,
            Order::Show => (window.wanted.shown, window.left) = (Some(true), false),
            Order::Hide => window.wanted.shown = Some(false),
            Order::Place(at) => window.wanted.at = at,
            Order::Fade(opacity) => window.wanted.opacity = opacity,
            Order::Close => self.act(Action::Close(id)),
        }
        if let (Order::Place(Some(at)), Some(rule)) = (order, self.rule(id))
            && !rule.own_size
        {
            self.act(Action::Configure(id, Some(at.size)));
        }
        self.arrange(now);
        Ok(id)
    }

    /// The window that a controller means.
    pub fn resolve(&self, subject: &Subject) -> Result<WindowId, String> {
        match subject {
            Subject::Id(id) if self.windows.contains_key(id) => Ok(*id),
            Subject::Id(id) => Err(format!("there is no window {}", id.0)),
            Subject::Name(name) => {
                let fits = |id: &&WindowId| self.rule(**id).is_some_and(|rule| rule.name == *name);
                let latest = self.windows.keys().filter(fits).max_by_key(|id| self.windows[id].arrival);
                latest.copied().ok_or_else(|| format!("no window is there by the rule {name:?}"))
            }
        }
    }

    fn check(&self, id: WindowId, order: Order) -> Result<(), String> {
        let Some(rule) = self.rule(id) else {
            return Err("no rule fits it, so it is never shown".to_owned());
        };
        let hides = match order {
            Order::Hide | Order::Close => true,
            Order::Fade(opacity) => opacity < u8::MAX,
            Order::Place(at) => at.is_some_and(|at| at != rule.area),
            Order::Show | Order::Raise => false,
        };
        if rule.must_be_visible && hides {
            return Err(format!("{} must be visible where its rule says", rule.name));
        }
        let within = Rect::of(self.config.outputs[rule.output].size);
        match order {
            Order::Place(Some(at)) if at.is_empty() || !within.covers(at) => {
                Err(format!("{at} is not inside of its output, which has {}", within.size))
            }
            _ => Ok(()),
        }
    }

    fn record_order(&mut self, id: WindowId, order: Order, refused: Option<&str>) {
        let Some(window) = self.windows.get(&id) else {
            return;
        };
        let asked = match order {
            Order::Show => "show".to_owned(),
            Order::Hide => "hide".to_owned(),
            Order::Place(None) => "place where its rule says".to_owned(),
            Order::Place(Some(at)) => format!("place at {at}"),
            Order::Fade(opacity) => format!("fade to {opacity}"),
            Order::Raise => "raise".to_owned(),
            Order::Close => "close".to_owned(),
        };
        let note = Note {
            domain: Some(window.domain),
            client: Some(window.client),
            window: self.name(window),
            allowed: Some(refused.is_none()),
            asked,
            reason: refused.unwrap_or_default().to_owned(),
            ..Note::about(Kind::Order)
        };
        self.record(note);
    }
}
