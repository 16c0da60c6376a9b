//! A walk back in time through promises of all kinds.

use alloc::vec::Vec;

use super::board::{FOREVER, Free};
use super::columns::Columns;
use crate::limits::DISPLAYS_MAX;

/// A share of the GPU in parts of 2³².
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Share(pub(super) i64);

impl Share {
    const WHOLE: i64 = 1 << 32;

    /// So much in each period, rounded up.
    pub(super) fn of(budget: i64, period: i64) -> Self {
        let parts = (i128::from(budget) * i128::from(Self::WHOLE)).div_euclid(period.max(1).into()) + 1;
        Self(i64::try_from(parts).unwrap_or(Self::WHOLE).min(Self::WHOLE))
    }
}

/// The last column with promises due before `before`, of those that no cursor has passed.
pub(super) fn latest(
    displays: &[Columns; DISPLAYS_MAX],
    cursors: &mut [usize; DISPLAYS_MAX],
    before: i64,
) -> Option<(usize, i64)> {
    let mut latest: Option<(usize, i64)> = None;
    for (index, (columns, cursor)) in displays.iter().zip(cursors).enumerate() {
        while *cursor > 0 && !columns.counts(*cursor - 1, before) {
            *cursor -= 1;
        }
        if *cursor > 0 && latest.is_none_or(|(_, due)| columns.due(*cursor - 1) > due) {
            latest = Some((index, columns.due(*cursor - 1)));
        }
    }
    latest
}

/// A walk back in time.
pub(super) struct Walk<'a> {
    pub(super) at: i64,
    pub(super) free: Free,
    /// The share of the GPU that is promised here, in parts of [`Share::WHOLE`].
    pub(super) shared: i64,
    /// Rising releases.
    pub(super) undone: &'a mut Vec<(i64, i64)>,
}

impl Walk<'_> {
    /// Work that is due here.
    pub(super) fn add(&mut self, release: i64, span: i64, owner: Option<usize>) {
        if self.undone.is_empty() && owner.is_some() {
            self.free = Free { until: self.at, owner };
        }
        if span > 0 {
            self.free.owner = owner;
            let position =
                self.undone.iter().rposition(|(other, _)| *other <= release).map_or(0, |last| last + 1);
            self.undone.insert(position, (release, span));
        }
    }

    /// Does as much work as there is time for, the latest release first.
    pub(super) fn back_to(&mut self, to: i64) {
        while self.at > to
            && let Some((release, span)) = self.undone.last_mut()
        {
            let from = to.max(*release);
            let time = self.at.saturating_sub(from).max(0);
            let work = work_in(time, self.shared);
            if *span > work && *release < from {
                *span -= work;
                self.at = from;
                return;
            }
            // It is done, or what is left of it was late in any case.
            self.at -= if work <= *span { time } else { time_for(*span, self.shared).min(time) };
            self.undone.pop();
            if self.undone.is_empty() {
                self.free.until = self.at;
            }
        }
        self.at = self.at.min(to);
    }

    pub(super) fn end(self, ready: i64) -> Free {
        let rest: i64 = self.undone.iter().map(|(_, span)| *span).sum();
        if rest > 0 { Free { until: ready - rest, ..self.free } } else { self.free }
    }
}

/// The work that fits into a time, beside shares that were promised.
fn work_in(time: i64, shared: i64) -> i64 {
    match shared {
        0 => time,
        _ => {
            let left = i128::from(Share::WHOLE - shared).max(0);
            i64::try_from((i128::from(time) * left) >> 32).unwrap_or(time)
        }
    }
}

/// The time that work takes beside shares that were promised, rounded up.
fn time_for(work: i64, shared: i64) -> i64 {
    match shared {
        0 => work,
        _ => {
            let left = i128::from(Share::WHOLE - shared).max(1);
            i64::try_from((i128::from(work) << 32).div_euclid(left) + 1).unwrap_or(FOREVER)
        }
    }
}
