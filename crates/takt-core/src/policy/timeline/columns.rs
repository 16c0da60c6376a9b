//! What frames of one display owe, summed up by the period that they are due at the end of.

use alloc::vec;
use alloc::vec::Vec;

use super::board::{COLUMNS, Free, ns, time_of};
use super::walk::Walk;
use crate::refresh::{Period, Refresh};
use crate::scheduler::Lane;
use crate::time::Time;

/// The frames that are due at the end of one period.
#[derive(Copy, Clone, Debug)]
struct Column {
    /// Work that is released in the period itself.
    own: i64,
    /// Work that is released a period before.
    early: i64,
    /// Of both, what is released and not there, or was due before.
    absent_own: i64,
    absent_early: i64,
    /// The most important lane with work here.
    owner: usize,
    /// Work that is released in this period and in each one after it, as long as it is not settled.
    steady: i64,
    steady_owner: usize,
}

impl Column {
    const EMPTY: Self = Self {
        own: 0,
        early: 0,
        absent_own: 0,
        absent_early: 0,
        owner: usize::MAX,
        steady: 0,
        steady_owner: usize::MAX,
    };

    /// The work that is released in the period, and before it: all of it, or what is not absent.
    #[inline]
    fn work(&self, all: bool) -> (i64, i64) {
        if all {
            (self.own, self.early)
        } else {
            (self.own - self.absent_own, self.early - self.absent_early)
        }
    }
}

/// What the frames of an app are owed.
#[derive(Copy, Clone, Debug)]
pub(super) struct Owes {
    /// The frame that is dispatched next.
    pub(super) rest: i64,
    /// Each one after it.
    pub(super) etpf: i64,
    /// That frame is in a gap, and counts as if it were there.
    pub(super) pauses: bool,
}

/// The frames of one display.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    refresh: Option<Refresh>,
    now: Time,
    current: Period,
    /// Starts of the periods from the current one on.
    starts: Vec<i64>,
    known: usize,
    /// One for each of these periods.
    columns: Vec<Column>,
    /// Columns whose periods end inside the window.
    window: usize,
    /// Columns that are filled in, inside the window.
    used: usize,
    unsettled: bool,
}

impl Columns {
    pub(super) fn prepare(&mut self) {
        self.starts = vec![0; COLUMNS + 1];
        self.columns = vec![Column::EMPTY; COLUMNS];
    }

    /// Forgets all work; looks at `window` periods. Says when the last of them ends.
    pub(super) fn open(&mut self, refresh: &Refresh, now: Time, window: usize) -> i64 {
        self.move_to(refresh, now);
        self.know(window + 3);
        self.close();
        self.window = window;
        self.starts[window]
    }

    /// The same with all periods that end by `end`.
    pub(super) fn open_until(&mut self, refresh: &Refresh, now: Time, end: i64) {
        self.close();
        self.move_to(refresh, now);
        let mut window = 0;
        while window + 3 < COLUMNS && {
            self.know(window + 3);
            self.starts[window + 1] <= end
        } {
            window += 1;
        }
        self.window = window;
    }

    /// Start of the last period in the window.
    pub(super) fn last_start(&self) -> i64 {
        self.starts[self.window.saturating_sub(1)]
    }

    pub(super) fn is_open(&self) -> bool {
        self.window > 0
    }

    /// Forgets all work.
    pub(super) fn close(&mut self) {
        self.columns[..self.used].fill(Column::EMPTY);
        (self.window, self.used, self.unsettled) = (0, 0, false);
    }

    fn move_to(&mut self, refresh: &Refresh, now: Time) {
        self.now = now;
        let same = self.refresh == Some(*refresh) && self.known > 1;
        if same && (self.starts[0]..self.starts[1]).contains(&ns(now)) {
            return;
        }
        self.refresh = Some(*refresh);
        self.current = refresh.period_at(now);
        self.known = 0;
    }

    /// Works out the starts of the first `count` periods.
    fn know(&mut self, count: usize) {
        let Some(refresh) = self.refresh else {
            return;
        };
        for index in self.known..count.min(COLUMNS + 1) {
            self.starts[index] = ns(refresh.start(self.current + index as u64));
        }
        self.known = self.known.max(count.min(COLUMNS + 1));
    }

    /// The number of the column of a period; those that are over count as the current one.
    #[inline]
    fn column(&self, period: Period) -> usize {
        usize::try_from(period.0.saturating_sub(self.current.0)).unwrap_or(usize::MAX)
    }

    /// The period that a time falls in.
    pub(super) fn period_at(&self, time: i64) -> Period {
        // Nearly always the current period or the next one.
        if self.known > 2 && time < self.starts[2] {
            return self.current + u64::from(time >= self.starts[1]);
        }
        let ahead = self.starts[..self.known].partition_point(|start| *start <= time);
        match self.refresh {
            Some(refresh) if ahead == self.known => refresh.period_at(time_of(time)),
            _ => self.current + ahead.saturating_sub(1) as u64,
        }
    }

    /// When a period ends.
    #[inline]
    pub(super) fn end_of(&self, period: Period) -> i64 {
        let next = self.column(period).saturating_add(1);
        match self.refresh {
            Some(refresh) if next >= self.known || period < self.current => ns(refresh.end(period)),
            _ => self.starts[next],
        }
    }

    /// Adds what `lane` is owed at its target, and in each frame after it; says when the first promise
    /// beyond the window that ends at `end` is released, and its span.
    pub(super) fn reserve(&mut self, lane: &Lane, owner: usize, owes: Owes, end: i64) -> (i64, i64) {
        let Owes { rest, etpf, pauses } = owes;
        let is_absent = || lane.head.is_none() && !pauses && self.is_released(lane);
        let (stride, early) = (lane.stride.get() as usize, lane.stride.lead() > 0);
        let mut column = self.column(lane.target);
        if column < self.window && (lane.is_late() || is_absent()) {
            let Column { absent_own, absent_early, .. } = &mut self.columns[column];
            *if early { absent_early } else { absent_own } += rest;
        }
        if stride == 1 && column < self.window {
            self.add(column, rest, owner, false);
            self.add_steady(column + 1, etpf, owner);
            return (self.starts[self.window], etpf);
        }
        let mut span = rest;
        while column < self.window || span == 0 && etpf > 0 {
            if column < self.window {
                self.add(column, span, owner, early);
            }
            (column, span) = (column.saturating_add(stride), etpf);
        }
        let release = column.saturating_sub(usize::from(early));
        if release < self.known { (self.starts[release], span) } else { (end, span) }
    }

    #[inline]
    fn add(&mut self, column: usize, span: i64, owner: usize, early: bool) {
        if span > 0 {
            let filled = &mut self.columns[column];
            *if early { &mut filled.early } else { &mut filled.own } += span;
            filled.owner = filled.owner.min(owner);
            self.used = self.used.max(column + 1);
        }
    }

    /// Adds work to a column and to each one after it.
    #[inline]
    fn add_steady(&mut self, column: usize, span: i64, owner: usize) {
        if span > 0 && column < self.window {
            let filled = &mut self.columns[column];
            filled.steady += span;
            filled.steady_owner = filled.steady_owner.min(owner);
            (self.used, self.unsettled) = (self.window, true);
        }
    }

    /// Puts work of each period into its columns.
    fn settle(&mut self) {
        if !core::mem::take(&mut self.unsettled) {
            return;
        }
        let (mut span, mut owner) = (0, usize::MAX);
        for column in &mut self.columns[..self.used] {
            span += core::mem::take(&mut column.steady);
            owner = owner.min(core::mem::replace(&mut column.steady_owner, usize::MAX));
            column.own += span;
            column.owner = column.owner.min(owner);
        }
    }

    /// Whether the frame for the target of `lane` should have begun before now; one that begins at this moment may
    /// still come. Before its origin a display is in its first period, which has not begun.
    fn is_released(&self, lane: &Lane) -> bool {
        let begins = Period(lane.target.0.saturating_sub(lane.stride.lead()));
        begins < self.current || begins == self.current && self.starts[0] < ns(self.now)
    }

    /// Columns to look at, all settled.
    pub(super) fn settled(&mut self) -> usize {
        self.settle();
        self.used
    }

    /// When the promises of a column are due.
    pub(super) fn due(&self, column: usize) -> i64 {
        self.starts[column + 1]
    }

    /// Whether a column has promises that are due before `before`.
    pub(super) fn counts(&self, column: usize, before: i64) -> bool {
        let Column { own, early, .. } = self.columns[column];
        own + early > 0 && self.due(column) < before
    }

    /// Hands the work of a column to a walk that has come to its end: all of it, or what is not absent.
    pub(super) fn hand_over(&self, column: usize, all: bool, walk: &mut Walk<'_>) {
        let before = if column == 0 { i64::MIN } else { self.starts[column - 1] };
        let (own, early) = self.columns[column].work(all);
        let owner = Some(self.columns[column].owner);
        if early > 0 {
            walk.add(before, early, owner);
        }
        if own > 0 {
            walk.add(self.starts[column], own, owner);
        }
    }

    /// Walks back from the end of the window to `ready`, as [`Walk`] does where there is nothing but these columns:
    /// work is released at the start of its period or one period before, so two sums hold what is not done.
    ///
    /// `free` is what is known without them. So much work comes in that sticks out of the window, released in its
    /// last period.
    pub(super) fn walk(&mut self, ready: i64, before: i64, all: bool, comes_in: i64, free: Free) -> Free {
        let mut free = free;
        let used = self.settled();
        let (mut at, mut spilled) = (self.starts[self.window], comes_in);
        for column in (0..if comes_in > 0 { self.window } else { used }).rev() {
            let filled = &self.columns[column];
            let (own, early) = if self.due(column) < before { filled.work(all) } else { (0, 0) };
            if own + early + spilled == 0 {
                continue;
            }
            if own + early > 0 {
                free.owner = Some(filled.owner);
            }
            at = at.min(self.due(column)).max(ready);
            let start = self.starts[column];
            let room = (at - start.max(ready)).max(0);
            let released = own + spilled;
            let done = released.min(room);
            // What does not fit behind its release was late in any case.
            let left = if start >= ready { 0 } else { released - done };
            let done_early = early.min(room - done);
            at -= done + done_early;
            spilled = left + early - done_early;
            if spilled == 0 {
                free.until = at;
            }
        }
        if spilled > 0 { Free { until: ready - spilled, ..free } } else { free }
    }
}
