//! By when windows must be seen.
//!
//! A window whose rule has `visible_within_ms` must be seen so soon after it has a picture, or after a
//! controller shows it. A window that must be visible must also be there so soon after the start, and after
//! it went away.

use takt_core::Time;

use super::{Kind, Note, WindowId, Windows};

/// A window that must be visible and is not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    since: Time,
    told: bool,
}

impl Absence {
    pub(super) fn since(since: Time) -> Self {
        Self { since, told: false }
    }
}

impl Windows {
    /// A window was seen on its output.
    pub fn seen(&mut self, id: WindowId) {
        self.expect_nothing(id);
    }

    /// When [`Self::pass`] has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        let due = self.windows.values().filter_map(|window| window.due);
        let untold = self.absences.iter().filter(|(_, absence)| !absence.told);
        let absent = untold.map(|(rule, absence)| self.absent_until(*rule, *absence));
        due.chain(absent).chain(self.next_pause()).min()
    }

    /// Time passes.
    pub fn pass(&mut self, now: Time) {
        self.end_pauses(now);
        let is_late = |due: Time| due <= now;
        let late: Vec<WindowId> = self
            .windows
            .iter()
            .filter(|(_, window)| window.due.is_some_and(is_late))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.expect_nothing(id);
            let Some(window) = self.windows.get(&id) else {
                continue;
            };
            let (domain, client) = (Some(window.domain), Some(window.client));
            let reason = "it has a picture, and was not seen in time".to_owned();
            let (window, rule) = (self.name(window), "visible_within_ms".to_owned());
            self.record(Note { domain, client, window, reason, rule, ..Note::about(Kind::Overdue) });
        }
        self.tell_absences(now);
    }

    /// Rules of windows that must be visible, and are not for longer than they may.
    pub fn overdue(&self, now: Time) -> impl Iterator<Item = usize> {
        let absent = self.absences.iter();
        absent
            .filter(move |(rule, absence)| self.absent_until(**rule, **absence) <= now)
            .map(|(rule, _)| *rule)
    }

    pub(super) fn expect_to_be_seen(&mut self, now: Time, id: WindowId) {
        let within = self.rule(id).and_then(|rule| rule.visible_within);
        if let Some(window) = self.windows.get_mut(&id) {
            window.due = within.map(|within| now + within);
        }
    }

    pub(super) fn expect_nothing(&mut self, id: WindowId) {
        if let Some(window) = self.windows.get_mut(&id) {
            window.due = None;
        }
    }

    /// Finds out which windows that must be visible are not.
    pub(super) fn look_for_absences(&mut self, now: Time) {
        for index in 0..self.config.rules.len() {
            let rule = &self.config.rules[index];
            if !rule.must_be_visible {
                continue;
            }
            let shown = self.scenes[rule.output]
                .windows
                .iter()
                .any(|placed| self.windows.get(&placed.id).is_some_and(|window| window.rule == Some(index)));
            if !shown {
                self.absences.entry(index).or_insert_with(|| Absence::since(now));
            } else if let Some(absence) = self.absences.remove(&index)
                && absence.told
            {
                let (domain, window) = (Some(rule.domain), rule.name.clone());
                let asked = "is there again".to_owned();
                self.record(Note { domain, window, asked, ..Note::about(Kind::Window) });
            }
        }
    }

    fn absent_until(&self, rule: usize, absence: Absence) -> Time {
        absence.since + self.config.rules[rule].visible_within.unwrap_or_default()
    }

    fn tell_absences(&mut self, now: Time) {
        let late: Vec<usize> = self.overdue(now).collect();
        for index in late {
            let told =
                self.absences.get_mut(&index).map(|absence| std::mem::replace(&mut absence.told, true));
            if told == Some(false) {
                let rule = &self.config.rules[index];
                let (domain, window) = (Some(rule.domain), rule.name.clone());
                let reason = "it must be visible, and is not there".to_owned();
                let rule = "must_be_visible".to_owned();
                self.record(Note { domain, window, reason, rule, ..Note::about(Kind::Overdue) });
            }
        }
    }
}
