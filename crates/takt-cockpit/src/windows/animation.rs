//! How long a window's picture goes on changing.
//!
//! While the vehicle moves, no picture in the driver's view may go on changing for longer than its rule
//! allows (2 s by default: the longest glance). One that does is stopped: it keeps the picture that it has
//! until it has been still for [`PAUSE`].

use takt_core::{Span, Time};

use super::{Kind, Motion, Note, WindowId, Windows};

/// Changes that are further apart are not one movement.
const PAUSE: Span = Span::from_ms(500);

/// How a window moves.
#[derive(Debug, Default)]
pub(super) struct Animation {
    /// When its picture first and last changed, of changes that follow each other.
    run: Option<(Time, Time)>,
    stopped: bool,
}

impl Animation {
    /// Whether it keeps its picture.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// What came before does not count.
    pub(super) fn start_over(&mut self, now: Time) {
        self.stopped = false;
        self.run = self.run.map(|(_, last)| (now.max(last), now.max(last)));
    }

    /// Its picture changed; for how long it has been moving.
    fn change(&mut self, now: Time) -> Span {
        let (began, _) = self.run.filter(|(_, last)| now.since(*last) < PAUSE).unwrap_or((now, now));
        self.run = Some((began, now));
        now.since(began)
    }

    /// When it has been still for long enough, if it is stopped.
    fn still_at(&self) -> Option<Time> {
        self.run.filter(|_| self.stopped).map(|(_, last)| last + PAUSE)
    }
}

impl Windows {
    /// The picture of a window changed.
    pub fn change(&mut self, now: Time, id: WindowId) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let moved = window.animation.change(now);
        let rule = window.rule.map(|rule| &self.config.rules[rule]);
        let max = rule.and_then(|rule| rule.animation_max).filter(|_| self.motion == Motion::Moving);
        if window.animation.stopped || max.is_none_or(|max| moved <= max) {
            return;
        }
        window.animation.stopped = true;
        let (domain, client) = (Some(window.domain), Some(window.client));
        let asked = format!("moved for {} ms", moved.as_ns() / 1_000_000);
        let window = rule.map_or_else(String::new, |rule| rule.name.clone());
        let (allowed, rule) = (Some(false), "animation_s_max".to_owned());
        let reason = "the vehicle moves, and the driver sees it".to_owned();
        self.record(Note {
            domain,
            client,
            window,
            allowed,
            asked,
            reason,
            rule,
            ..Note::about(Kind::Animation)
        });
        self.arrange(now);
    }

    /// Lets windows move again that have been still.
    pub(super) fn end_pauses(&mut self, now: Time) {
        let mut ended = false;
        for window in self.windows.values_mut() {
            if window.animation.still_at().is_some_and(|at| at <= now) {
                window.animation.stopped = false;
                ended = true;
            }
        }
        if ended {
            self.arrange(now);
        }
    }

    pub(super) fn next_pause(&self) -> Option<Time> {
        self.windows.values().filter_map(|window| window.animation.still_at()).min()
    }
}
