//! What releases the frames of an app, and when they are due.
//!
//! Every app has a grid of periods of its own ([`Clock::grid`]): that of its display, or that of its own
//! clock, whose grid moves whenever the app begins a frame late. Frames are released at the start of a
//! period and due at its end, or a *tail* before it where the app's deadline is shorter than its period.

use core::num::NonZeroU32;

use crate::config::Config;
use crate::refresh::Refresh;
use crate::time::Span;

/// Number of a display.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DisplayId(pub u8);

/// What releases the frames of an app.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// The refresh of a display: frames are due at the ends of its periods.
    Display(DisplayId),
    /// The app itself: a frame is released when the app begins it, but counts as released no earlier than
    /// a period after the one before it.
    Own {
        /// Shortest time between two frames.
        period: Span,
        /// From the release of a frame to its deadline, at most the period.
        deadline: Span,
    },
}

impl Default for Clock {
    fn default() -> Self {
        Self::Display(DisplayId::default())
    }
}

impl Clock {
    /// Whether the app has a clock of its own.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// The display that releases the frames, if one does.
    pub const fn display(self) -> Option<DisplayId> {
        match self {
            Self::Display(display) => Some(display),
            Self::Own { .. } => None,
        }
    }

    /// The grid that the frames of an app start with; the first display's for a display that is not there.
    pub fn grid(self, config: &Config) -> Refresh {
        match self {
            Self::Display(display) => *config.display(display),
            Self::Own { period, .. } => {
                let ns = u32::try_from(period.as_ns()).ok().and_then(NonZeroU32::new);
                Refresh::from_period_ns(ns.unwrap_or(NonZeroU32::MAX))
            }
        }
    }

    /// How long before the end of a period its frame is due.
    pub const fn tail(self) -> Span {
        match self {
            Self::Display(_) => Span::ZERO,
            Self::Own { period, deadline } => period.saturating_sub(deadline),
        }
    }
}
