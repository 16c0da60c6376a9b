//! The timeline of promises: by when must the GPU be free for them?
//!
//! A promise is a span of work between a release and a due date. The board holds the promises of the
//! coming time and walks them backwards, from the last due date to the present, doing all work as late as it
//! can be done. What is left free before the first of that work is the *slack*: the GPU may be busy with
//! something else until there, and preemptive EDF still meets every due date. Of two promises that could be
//! worked on, the walk takes the one that is released later: what does not fit behind its own release was
//! late anyway, and binds no other group.
//!
//! Frames of a display share their due dates, so their promises are summed up in columns, one for each
//! period; all others are kept one by one.
//!
//! ## How far to look
//!
//! The walk begins at the end of a window. Promises that stick out of it bring in some work, at least none
//! and at most all of what they owe. If both lead to the same slack, nothing beyond the window matters;
//! otherwise the caller widens it. Work that is released beyond the window and covered by the offline test
//! needs nothing before.

use alloc::vec;
use alloc::vec::Vec;

use crate::clock::{Clock, DisplayId};
use crate::limits::{APPS_MAX, DISPLAYS_MAX, LOOKAHEAD_MAX};
use crate::policy::Context;
use crate::refresh::{Period, Refresh};
use crate::scheduler::Lane;
use crate::time::Time;

/// Later than every due date. Times are signed nanoseconds since the clock's origin here.
pub(super) const FOREVER: i64 = 1 << 60;

/// No promise counts for more: thirteen days, so that sums of many fit.
const LONGEST: i64 = 1 << 50;

/// Promises outside of columns; beyond that the look-ahead is exhausted.
const SINGLES_MAX: usize = 4 * APPS_MAX;

/// Promises outside of columns for each app, in the mean.
const SINGLES_PER_APP: usize = 256;

#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const COLUMNS: usize = LOOKAHEAD_MAX as usize;

/// The window does not reach far enough to tell.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct TooNarrow;

/// Until when the GPU may be busy, and whose promise says so.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Free {
    /// The GPU must be free from here on.
    pub(super) until: i64,
    /// Where the lane is whose promise binds, if one does.
    pub(super) owner: Option<usize>,
}

/// A promise of its own.
#[derive(Copy, Clone, Debug)]
pub(super) struct Promise {
    pub(super) release: i64,
    pub(super) due: i64,
    pub(super) span: i64,
    /// Where its lane is.
    pub(super) owner: usize,
    /// It is released and not there, or was due before: no more important app counted on it.
    pub(super) absent: bool,
    /// The share of the GPU that its owner is promised from the due date on; zero for a frame.
    pub(super) share: Share,
}

impl Promise {
    /// That the GPU is free by a time.
    pub(super) fn without_span(owner: usize) -> Self {
        Self { release: i64::MIN, due: 0, span: 0, owner, absent: false, share: Share::default() }
    }
}

/// A share of the GPU in parts of 2³².
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Share(i64);

impl Share {
    const WHOLE: i64 = 1 << 32;

    /// So much in each period, rounded up.
    pub(super) fn of(budget: i64, period: i64) -> Self {
        let parts = (i128::from(budget) * i128::from(Self::WHOLE)).div_euclid(period.max(1).into()) + 1;
        Self(i64::try_from(parts).unwrap_or(Self::WHOLE).min(Self::WHOLE))
    }
}

/// The promises of the coming time.
#[derive(Clone, Debug)]
pub(super) struct Board {
    displays: [Columns; DISPLAYS_MAX],
    /// Falling due dates once they are `sorted`.
    singles: Vec<Promise>,
    sorted: bool,
    /// Shares are promised, too.
    shares: bool,
    /// Not all promises could be kept.
    overflowed: bool,
    now: Time,
    /// End of the window.
    end: i64,
    /// There are promises beyond the window.
    goes_on: bool,
    /// What promises that stick out of the window owe, and the first of their releases.
    sticks_out: i64,
    sticks_out_from: i64,
    /// Work that the walk has not done yet, by release; room for every promise.
    undone: Vec<(i64, i64)>,
    /// The answer for all promises, while nothing was added.
    answer: Option<Free>,
}

impl Board {
    pub(super) fn new() -> Self {
        Self {
            displays: core::array::from_fn(|_| Columns::default()),
            singles: Vec::new(),
            sorted: true,
            shares: false,
            overflowed: false,
            now: Time::ZERO,
            end: 0,
            goes_on: false,
            sticks_out: 0,
            sticks_out_from: FOREVER,
            undone: Vec::new(),
            answer: None,
        }
    }

    /// Takes the memory it will ever need for `apps` apps.
    pub(super) fn prepare(&mut self, apps: usize) {
        self.displays.iter_mut().for_each(Columns::prepare);
        let singles = (SINGLES_PER_APP * apps).min(SINGLES_MAX);
        self.singles = Vec::with_capacity(singles);
        self.undone = Vec::with_capacity(singles + 2 * COLUMNS * DISPLAYS_MAX);
    }

    /// Forgets all promises; looks at `window` periods of the first display.
    pub(super) fn open(&mut self, context: &Context, window: usize) {
        let window = window.min(COLUMNS - 3);
        let first = &mut self.displays[0];
        first.open(&context.config.refresh, context.now, window);
        self.end = first.starts[window];
        // Other displays are opened when something is promised on them.
        for columns in &mut self.displays[1..] {
            columns.forget();
            columns.window = 0;
        }
        self.now = context.now;
        self.singles.clear();
        (self.sorted, self.shares, self.overflowed) = (true, false, false);
        (self.goes_on, self.answer) = (false, None);
        (self.sticks_out, self.sticks_out_from) = (0, FOREVER);
    }

    /// Whether a wider window shows no more.
    pub(super) fn is_widest(&self, window: usize) -> bool {
        window >= COLUMNS - 3
    }

    /// The period that `time` falls in on the grid of `lane`.
    pub(super) fn period_at(&self, lane: &Lane, time: i64) -> Period {
        match lane.clock {
            Clock::Display(DisplayId(0)) => self.displays[0].period_at(time),
            _ => lane.period_at(time_of(time)),
        }
    }

    /// When a frame of `lane` for `target` is due.
    pub(super) fn due_of(&self, lane: &Lane, target: Period) -> i64 {
        match lane.clock {
            Clock::Display(DisplayId(0)) => self.displays[0].end_of(target),
            _ => ns(lane.due_of(target)),
        }
    }

    /// Adds what the frame of a display owes at its target, and its later frames.
    pub(super) fn promise_frames(&mut self, lane: &Lane, owner: usize, rest: i64, etpf: i64) {
        let Clock::Display(display) = lane.clock else {
            return;
        };
        self.answer = None;
        let (rest, etpf) = (rest.min(LONGEST), etpf.min(LONGEST));
        let columns = &mut self.displays[index_of(display)];
        if columns.window == 0 {
            columns.open_until(&lane.grid, self.now, self.end);
        }
        let (release, span) = columns.reserve(lane, owner, rest, etpf, self.end);
        self.stick_out(release, span);
    }

    /// A promise that is due after the window.
    fn stick_out(&mut self, release: i64, span: i64) {
        self.goes_on |= span > 0;
        if release < self.end && span > 0 {
            self.sticks_out += span.min(LONGEST);
            self.sticks_out_from = self.sticks_out_from.min(release);
        }
    }

    /// Adds a promise of its own.
    pub(super) fn promise(&mut self, promise: Promise) {
        self.answer = None;
        let promise = Promise { span: promise.span.min(LONGEST), ..promise };
        if promise.due > self.end {
            self.stick_out(promise.release, promise.span);
        } else if self.singles.len() < self.singles.capacity() {
            self.sorted &= self.singles.last().is_none_or(|last| last.due >= promise.due);
            self.singles.push(promise);
        } else {
            self.overflowed = true;
        }
    }

    /// There are promises beyond the window that are not on the board.
    pub(super) fn goes_on(&mut self) {
        self.goes_on = true;
    }

    /// Adds what a server is promised: a first due date, and a share from there on, which reaches out of the
    /// window by up to a `budget`.
    pub(super) fn promise_share(&mut self, first: Promise, budget: i64) {
        self.shares |= first.due <= self.end;
        if first.due <= self.end {
            self.stick_out(i64::MIN, budget);
        }
        self.goes_on = true;
        self.promise(first);
    }

    /// Whether there is no room for another promise of its own.
    pub(super) fn is_full(&self) -> bool {
        self.overflowed
    }

    /// End of the window.
    pub(super) fn end(&self) -> i64 {
        self.end
    }

    /// By when the GPU must be free if it is busy until `ready`, for all promises.
    pub(super) fn free_for_all(&mut self, ready: i64, widest: bool) -> Result<Free, TooNarrow> {
        if let Some(answer) = self.answer {
            return Ok(answer);
        }
        if self.overflowed {
            // A wider window holds no fewer promises.
            return Ok(Free { until: ready, owner: None });
        }
        if ready >= self.end {
            return if widest { Ok(Free { until: ready, owner: None }) } else { Err(TooNarrow) };
        }
        let most = self.walk(ready, FOREVER, usize::MAX, self.sticks_out);
        if self.sticks_out > 0 && !widest && self.walk(ready, FOREVER, usize::MAX, 0) != most {
            return Err(TooNarrow);
        }
        self.answer = Some(most);
        Ok(most)
    }

    /// The same for promises that are due before `due`, as far as the window shows them, and of other lanes than
    /// `own`. An app that lets its release pass binds no protected group that is due later.
    pub(super) fn free_before(&mut self, ready: i64, due: i64, own: usize) -> Result<Free, TooNarrow> {
        if ready >= self.end { Err(TooNarrow) } else { Ok(self.walk(ready, due.min(self.end + 1), own, 0)) }
    }

    /// Walks back from the end of the window, where so much work comes `in`.
    fn walk(&mut self, ready: i64, before: i64, own: usize, comes_in: i64) -> Free {
        self.sort();
        // What lies beyond is looked at only if a group is longer than the window.
        let until = if self.goes_on && before > self.end { self.end } else { FOREVER };
        let free = Free { until, owner: None };
        let mut walk = Walk { at: self.end, free, shared: 0, undone: &mut self.undone };
        walk.undone.clear();
        walk.add(self.sticks_out_from, comes_in, None);
        let mut cursors: [usize; DISPLAYS_MAX] = core::array::from_fn(|index| self.displays[index].used);
        let all = own == usize::MAX;
        let binds =
            |promise: &&Promise| promise.due < before && promise.owner != own && (all || !promise.absent);
        if self.shares {
            walk.shared = self.singles.iter().filter(binds).map(|promise| promise.share.0).sum();
        }
        let mut singles = self.singles.iter().filter(binds).peekable();
        loop {
            let single = singles.peek().map_or(i64::MIN, |promise| promise.due);
            let column = latest(&self.displays, &mut cursors, before);
            match column {
                Some((display, due)) if due >= single => {
                    cursors[display] -= 1;
                    walk.back_to(due.max(ready));
                    self.displays[display].hand_over(cursors[display], all, &mut walk);
                }
                _ => {
                    let Some(promise) = singles.next() else {
                        break;
                    };
                    walk.back_to(promise.due.max(ready));
                    walk.shared -= promise.share.0;
                    walk.add(promise.release, promise.span, Some(promise.owner));
                }
            }
        }
        walk.back_to(ready);
        walk.end(ready)
    }

    /// Nearly sorted as they are, singles are sorted by insertion.
    fn sort(&mut self) {
        if core::mem::replace(&mut self.sorted, true) {
            return;
        }
        self.singles.sort_unstable_by_key(|promise| core::cmp::Reverse(promise.due));
    }
}

/// The last column with promises due before `before`, of those that no cursor has passed.
fn latest(
    displays: &[Columns; DISPLAYS_MAX],
    cursors: &mut [usize; DISPLAYS_MAX],
    before: i64,
) -> Option<(usize, i64)> {
    let mut latest: Option<(usize, i64)> = None;
    for (index, (columns, cursor)) in displays.iter().zip(cursors).enumerate() {
        while *cursor > 0 && !columns.counts(*cursor - 1, before) {
            *cursor -= 1;
        }
        if *cursor > 0 && latest.is_none_or(|(_, due)| columns.starts[*cursor] > due) {
            latest = Some((index, columns.starts[*cursor]));
        }
    }
    latest
}

/// A walk back in time.
struct Walk<'a> {
    at: i64,
    free: Free,
    /// The share of the GPU that is promised here, in parts of [`Share::WHOLE`].
    shared: i64,
    /// Rising releases.
    undone: &'a mut Vec<(i64, i64)>,
}

impl Walk<'_> {
    /// Work that is due here.
    fn add(&mut self, release: i64, span: i64, owner: Option<usize>) {
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
    fn back_to(&mut self, to: i64) {
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

    fn end(self, ready: i64) -> Free {
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

/// What frames of one display owe, by the period that they are due at the end of.
#[derive(Clone, Debug, Default)]
struct Columns {
    refresh: Option<Refresh>,
    now: Time,
    current: Period,
    /// Starts of the periods from the current one on.
    starts: Vec<i64>,
    known: usize,
    /// Columns whose periods end inside the window.
    window: usize,
    /// Columns that are filled in, inside the window.
    used: usize,
    /// Work that is released in the period itself.
    own: Vec<i64>,
    /// Work that is released a period before.
    early: Vec<i64>,
    /// Of both, what is released and not there, or was due before.
    absent_own: Vec<i64>,
    absent_early: Vec<i64>,
    /// The most important lane with work there.
    owner: Vec<usize>,
}

impl Columns {
    fn prepare(&mut self) {
        self.starts = vec![0; COLUMNS + 1];
        (self.own, self.early) = (vec![0; COLUMNS], vec![0; COLUMNS]);
        (self.absent_own, self.absent_early) = (vec![0; COLUMNS], vec![0; COLUMNS]);
        self.owner = vec![usize::MAX; COLUMNS];
    }

    fn open(&mut self, refresh: &Refresh, now: Time, window: usize) {
        self.move_to(refresh, now);
        self.know(window + 3);
        self.forget();
        self.window = window;
    }

    fn open_until(&mut self, refresh: &Refresh, now: Time, end: i64) {
        self.forget();
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

    fn forget(&mut self) {
        self.own[..self.used].fill(0);
        self.early[..self.used].fill(0);
        self.absent_own[..self.used].fill(0);
        self.absent_early[..self.used].fill(0);
        self.owner[..self.used].fill(usize::MAX);
        self.used = 0;
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

    fn column(&self, period: Period) -> usize {
        usize::try_from(period.0.saturating_sub(self.current.0)).unwrap_or(usize::MAX)
    }

    fn period_at(&self, time: i64) -> Period {
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

    fn end_of(&self, period: Period) -> i64 {
        let next = self.column(period).saturating_add(1);
        match self.refresh {
            Some(refresh) if next >= self.known => ns(refresh.end(period)),
            _ => self.starts[next],
        }
    }

    /// Adds what `lane` owes; says when the first promise beyond the window that ends at `end` is released, and
    /// its span.
    fn reserve(&mut self, lane: &Lane, owner: usize, rest: i64, etpf: i64, end: i64) -> (i64, i64) {
        let (stride, lead) = (lane.stride.get() as usize, lane.stride.lead());
        let (mut column, mut span) = (self.column(lane.target), rest);
        if (lane.is_late() || lane.head.is_none() && self.is_released(lane)) && column < self.window {
            self.absent_own[column] += if lead == 0 { rest } else { 0 };
            self.absent_early[column] += if lead == 0 { 0 } else { rest };
        }
        while column < self.window {
            if span > 0 {
                self.own[column] += if lead == 0 { span } else { 0 };
                self.early[column] += if lead == 0 { 0 } else { span };
                self.owner[column] = self.owner[column].min(owner);
                self.used = self.used.max(column + 1);
            }
            (column, span) = (column.saturating_add(stride), etpf);
        }
        let release = column.saturating_sub(usize::from(lead > 0));
        if release < self.known { (self.starts[release], span) } else { (end, span) }
    }

    /// Whether the frame for the target of `lane` may have begun. Before its origin a display is in its first
    /// period, which has not begun.
    fn is_released(&self, lane: &Lane) -> bool {
        let begins = Period(lane.target.0.saturating_sub(lane.stride.lead()));
        begins < self.current || begins == self.current && self.starts[0] <= ns(self.now)
    }

    /// Whether a column has promises that are due before `before`.
    fn counts(&self, column: usize, before: i64) -> bool {
        self.own[column] + self.early[column] > 0 && self.starts[column + 1] < before
    }

    /// Hands the work of a column to a walk that has come to its end: all of it, or what is not absent.
    fn hand_over(&self, column: usize, all: bool, walk: &mut Walk<'_>) {
        let owner = Some(self.owner[column]);
        let before = if column == 0 { i64::MIN } else { self.starts[column - 1] };
        let absent = |spans: &[i64]| if all { 0 } else { spans[column] };
        let early = self.early[column] - absent(&self.absent_early);
        if early > 0 {
            walk.add(before, early, owner);
        }
        let own = self.own[column] - absent(&self.absent_own);
        if own > 0 {
            walk.add(self.starts[column], own, owner);
        }
    }
}

fn index_of(display: DisplayId) -> usize {
    usize::from(display.0).min(DISPLAYS_MAX - 1)
}

pub(super) fn ns(time: Time) -> i64 {
    time.as_ns().cast_signed()
}

fn time_of(ns: i64) -> Time {
    Time::from_ns(ns.max(0).unsigned_abs())
}
