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

use alloc::vec::Vec;

use super::columns::{Columns, Owes};
use super::walk::{Share, Walk, latest};
use crate::clock::{Clock, DisplayId};
use crate::limits::{APPS_MAX, DISPLAYS_MAX, LOOKAHEAD_MAX};
use crate::policy::Context;
use crate::refresh::Period;
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
pub(super) const COLUMNS: usize = LOOKAHEAD_MAX as usize;

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

/// The promises of the coming time.
#[derive(Clone, Debug)]
pub(super) struct Board {
    displays: [Columns; DISPLAYS_MAX],
    /// Falling due dates once they are `sorted`.
    singles: Vec<Promise>,
    sorted: bool,
    /// Shares are promised, too.
    shares: bool,
    /// Due dates of promises without a span.
    instants: Vec<(i64, usize)>,
    /// More than the first display is used.
    several: bool,
    /// Not all promises could be kept.
    overflowed: bool,
    now: Time,
    /// End of the window.
    end: i64,
    /// A wider window shows no more.
    widest: bool,
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
            instants: Vec::new(),
            several: false,
            overflowed: false,
            now: Time::ZERO,
            end: 0,
            widest: false,
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
        // What is promised, and what is not.
        self.instants = Vec::with_capacity(2 * apps);
        self.undone = Vec::with_capacity(singles + 2 * COLUMNS * DISPLAYS_MAX);
    }

    /// Forgets all promises; looks at `window` periods of the first display.
    pub(super) fn open(&mut self, context: &Context, window: usize) {
        self.widest = window >= COLUMNS - 3;
        let window = window.min(COLUMNS - 3);
        self.end = self.displays[0].open(&context.config.refresh, context.now, window);
        // Other displays are opened when something is promised on them.
        self.displays[1..].iter_mut().for_each(Columns::close);
        self.several = false;
        self.instants.clear();
        self.now = context.now;
        self.singles.clear();
        (self.sorted, self.shares, self.overflowed) = (true, false, false);
        (self.goes_on, self.answer) = (false, None);
        (self.sticks_out, self.sticks_out_from) = (0, FOREVER);
    }

    /// Whether a wider window shows no more.
    pub(super) fn is_widest(&self) -> bool {
        self.widest
    }

    /// The period that `time` falls in on the grid of `lane`.
    pub(super) fn period_at(&self, lane: &Lane, time: i64) -> Period {
        match lane.clock {
            Clock::Display(DisplayId(0)) => self.displays[0].period_at(time),
            _ => lane.period_at(time_of(time)),
        }
    }

    /// When a frame of `lane` for `target` is due.
    #[inline]
    pub(super) fn due_of(&self, lane: &Lane, target: Period) -> i64 {
        match lane.clock {
            Clock::Display(DisplayId(0)) => self.displays[0].end_of(target),
            _ => ns(lane.due_of(target)),
        }
    }

    /// Adds what the frame of a display owes at its target, and its later frames.
    pub(super) fn promise_frames(&mut self, lane: &Lane, owner: usize, owes: Owes) {
        let Clock::Display(display) = lane.clock else {
            return;
        };
        self.answer = None;
        let owes = Owes { rest: owes.rest.min(LONGEST), etpf: owes.etpf.min(LONGEST), ..owes };
        let columns = &mut self.displays[index_of(display)];
        if !columns.is_open() {
            columns.open_until(&lane.grid, self.now, self.end);
            self.several = true;
        }
        let (release, span) = columns.reserve(lane, owner, owes, self.end);
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

    /// Adds that the GPU is free by a time.
    pub(super) fn promise_end(&mut self, due: i64, owner: usize) {
        self.answer = None;
        if due <= self.end && self.instants.len() < self.instants.capacity() {
            self.instants.push((due, owner));
        }
    }

    /// There are promises beyond the window that are not on the board.
    pub(super) fn goes_on(&mut self) {
        (self.goes_on, self.answer) = (true, None);
    }

    /// Adds what a server is promised: a first due date, and a share from there on. That share is due as it accrues,
    /// so that none of it sticks out of the window.
    pub(super) fn promise_share(&mut self, first: Promise) {
        self.shares |= first.due <= self.end;
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
    pub(super) fn free_for_all(&mut self, ready: i64) -> Result<Free, TooNarrow> {
        if let Some(answer) = self.answer {
            return Ok(answer);
        }
        if self.overflowed {
            // A wider window holds no fewer promises.
            return Ok(Free { until: ready, owner: None });
        }
        if ready >= self.end {
            return if self.widest { Ok(Free { until: ready, owner: None }) } else { Err(TooNarrow) };
        }
        let answer = self.settled(ready, None)?;
        self.answer = Some(answer);
        Ok(answer)
    }

    /// Whether all promises can be kept if the GPU is busy until `ready`, or `early` before that. What is in flight is
    /// over by `over`; where it is due later, it is in time as long as nothing comes beside it.
    pub(super) fn is_feasible(&mut self, ready: i64, early: i64, over: i64) -> Result<bool, TooNarrow> {
        if self.free_for_all(ready)?.until >= ready - early {
            return Ok(true);
        }
        if self.instants.is_empty() || self.instants.iter().any(|(due, _)| *due < over) {
            return Ok(false);
        }
        let instants = core::mem::take(&mut self.instants);
        self.answer = None;
        let free = self.free_for_all(ready);
        (self.instants, self.answer) = (instants, None);
        Ok(free?.until >= ready - early)
    }

    /// By when the GPU must be free for promises that are due before `due`, of other lanes than `own`. An app that lets
    /// its release pass binds no protected group that is due later.
    pub(super) fn free_before(&mut self, ready: i64, due: i64, own: usize) -> Result<Free, TooNarrow> {
        if ready >= self.end {
            return if self.widest { Ok(Free { until: FOREVER, owner: None }) } else { Err(TooNarrow) };
        }
        if due <= self.end { Ok(self.walk(ready, due, Some(own), 0)) } else { self.settled(ready, Some(own)) }
    }

    /// The answer for promises of other lanes than `own`, if it does not depend on what lies beyond the window.
    fn settled(&mut self, ready: i64, own: Option<usize>) -> Result<Free, TooNarrow> {
        let most = self.walk(ready, FOREVER, own, self.sticks_out);
        let settled = self.widest || self.sticks_out == 0 || self.walk(ready, FOREVER, own, 0) == most;
        if settled { Ok(most) } else { Err(TooNarrow) }
    }

    /// Walks back from the end of the window, where so much work comes in, through the promises of other lanes than
    /// `own`.
    fn walk(&mut self, ready: i64, before: i64, own: Option<usize>, comes_in: i64) -> Free {
        // What lies beyond is looked at only if a group is longer than the window.
        let until = if self.goes_on && before > self.end { self.end } else { FOREVER };
        let free = Free { until, owner: None };
        let simple = self.singles.is_empty() && !self.several;
        let mut free = if simple && (comes_in == 0 || self.sticks_out_from >= self.displays[0].last_start()) {
            self.displays[0].walk(ready, before, own.is_none(), comes_in, free)
        } else {
            self.walk_all(ready, before, own, comes_in, free)
        };
        // Own work in flight binds as well: which other group could delay it is not known here.
        for (due, owner) in self.instants.iter().filter(|(due, _)| *due < before) {
            if *due < free.until {
                free = Free { until: *due, owner: Some(*owner) };
            }
        }
        free
    }

    /// The same with promises of all kinds; `free` is what is known without them.
    fn walk_all(&mut self, ready: i64, before: i64, own: Option<usize>, comes_in: i64, free: Free) -> Free {
        self.sort();
        let mut walk = Walk { at: self.end, free, shared: 0, undone: &mut self.undone };
        walk.undone.clear();
        walk.add(self.sticks_out_from, comes_in, None);
        let all = own.is_none();
        let mut cursors: [usize; DISPLAYS_MAX] = core::array::from_fn(|index| self.displays[index].settled());
        let binds = |promise: &&Promise| {
            promise.due < before && Some(promise.owner) != own && (all || !promise.absent)
        };
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

fn index_of(display: DisplayId) -> usize {
    usize::from(display.0).min(DISPLAYS_MAX - 1)
}

pub(super) fn ns(time: Time) -> i64 {
    time.as_ns().cast_signed()
}

pub(super) fn time_of(ns: i64) -> Time {
    Time::from_ns(ns.max(0).unsigned_abs())
}
