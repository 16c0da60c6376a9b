//! Limits of all apps, as tools ask for them.

use serde::{Deserialize, Serialize};
use takt_core::{Adjustable, Span};

use crate::control::config;
use crate::control::limits::Given;
use crate::control::mistake::Mistake;

/// Limits of all apps; the missing ones stay.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most groups granted and not finished at once.
    pub mpcg: Option<u32>,
    /// How long apps that reserve nothing may delay one that does.
    pub max_blocking_ms: Option<Bound>,
    /// Length to which groups of apps that reserve nothing may be stretched while no other app waits.
    pub max_stretch_ms: Option<Bound>,
}

/// A time that may be infinite.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// In milliseconds.
    Ms(f64),
    /// Infinite, for which JSON has no number.
    Without(Without),
}

/// The word for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// Infinite.
    Inf,
}

impl From<f64> for Bound {
    fn from(ms: f64) -> Self {
        if ms == f64::INFINITY { Self::Without(Without::Inf) } else { Self::Ms(ms) }
    }
}

impl Bound {
    /// In milliseconds.
    pub fn ms(self) -> f64 {
        match self {
            Self::Ms(ms) => ms,
            Self::Without(Without::Inf) => f64::INFINITY,
        }
    }
}

impl From<&Adjustable> for Limits {
    fn from(adjustable: &Adjustable) -> Self {
        let ms = |span: Span| if span == Span::FOREVER { f64::INFINITY } else { span.as_ns() as f64 / 1e6 };
        Self {
            mpcg: Some(adjustable.mpcg),
            max_blocking_ms: Some(Bound::from(ms(adjustable.blocking))),
            max_stretch_ms: Some(Bound::from(ms(adjustable.stretch))),
        }
    }
}

impl Limits {
    /// Which limits they set for good.
    pub(crate) fn given(&self) -> Given {
        Given { blocking: self.max_blocking_ms.is_some(), stretch: self.max_stretch_ms.is_some() }
    }

    /// The parameters of the core: `before` with these changes, if they make sense.
    pub fn checked(&self, before: Adjustable) -> Result<Adjustable, String> {
        let checked = || -> Result<Adjustable, Mistake> {
            let blocking = self.max_blocking_ms.map(|bound| config::blocking(bound.ms())).transpose()?;
            let stretch = config::ms_if("max_stretch_ms", self.max_stretch_ms.map(Bound::ms))?;
            Ok(Adjustable {
                mpcg: self.mpcg.map_or(Ok(before.mpcg), config::mpcg)?,
                blocking: blocking.unwrap_or(before.blocking),
                stretch: stretch.unwrap_or(before.stretch),
                ..before
            })
        };
        checked().map_err(|mistake| mistake.to_string())
    }
}
