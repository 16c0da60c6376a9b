//! Finds the cause of every missed deadline.
//!
//! When a deadline passes, the time from the frame's release to the deadline is divided up: the
//! app had submitted nothing; its own groups ran; others' groups ran while it was ready; the GPU
//! idled while it was ready. The cause is the first of these that applies:
//!
//! 1. a completion was lost or the GPU stalled meanwhile;
//! 2. the app was released in time and had not submitted the end of the frame by the deadline, or its
//!    own groups, for which it may have waited, took most of the time;
//! 3. its next group was held back by its length, or all the time for what others were promised;
//! 4. a less important group overran the time set aside for it;
//! 5. otherwise, whatever took the largest share.
//!
//! Overruns come before shares because less important work is only ever let in when, by its
//! prediction, it does no harm: without the overrun the deadline would have been met.

mod sentence;

use std::collections::{BTreeMap, VecDeque};

use takt_core::service::Reservation;
use takt_core::{
    Action, AppId, Clock, DisplayId, Estimate, Event, GroupId, Hold, Refresh, Span, Stride, Time,
};

use crate::lives::Lives;
use crate::metrics::{Run, micros, seconds};
use crate::promise::Promised;
use crate::record::{GpuRecord, Meta, Record};
use crate::roster::Roster;
use crate::summary::{Cause, CauseKind, HeldBy, Miss};

/// Ended groups that are remembered: more than fit between a release and its deadline, unless
/// groups are tiny and strides long.
const RUNS_MAX: usize = 4096;
/// Spans of presence remembered per app.
const SPANS_MAX: usize = 64;
/// Missed deadlines listed per app; the rest is counted.
const LISTED_PER_APP_MAX: usize = 500;
/// An overrun below this is noise, not a cause.
const OVERRUN_MIN: Span = Span::from_us(50);
/// A completion that is later than this counts as lost, whether or not it still comes.
const COMPLETION_LATE: Span = Span::from_ms(1);

/// Attributes missed deadlines.
#[derive(Debug)]
pub(crate) struct Blame {
    refresh: Refresh,
    from: Time,
    runs: VecDeque<Run>,
    running: Option<(AppId, GroupId, Time)>,
    stalls: VecDeque<(Time, Time)>,
    lost_at: Option<Time>,
    apps: Vec<Account>,
    misses: Vec<Finding>,
    omitted: u64,
    /// The app whose misses are all listed; without one, the first misses of all apps.
    only: Option<AppId>,
}

/// What is known of one app.
#[derive(Debug, Default)]
struct Account {
    /// Spans in which it had unfinished groups, oldest first.
    present: VecDeque<(Time, Time)>,
    present_since: Option<Time>,
    /// Its last release.
    released: Time,
    /// Frames submitted to their end since joining.
    submitted: u64,
    hold: Option<Hold>,
    /// A deadline of it, the latest that was told.
    deadline: Option<Time>,
    /// From the release of its last finished frame to the deadline of that.
    allowed: Option<Span>,
    /// Since when its next group is held back for promises to others.
    protecting_since: Option<Time>,
    causes: BTreeMap<CauseKind, u64>,
    listed: usize,
}

#[derive(Debug)]
struct Finding {
    app: AppId,
    frame: u64,
    deadline: Time,
    late: Option<Span>,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug)]
struct Verdict {
    kind: CauseKind,
    took: Span,
    culprit: Option<(AppId, Span)>,
    held: Option<Hold>,
    predicted: Option<Span>,
    measured: Option<Span>,
    /// What its next group was held back for.
    promise: Option<Promised>,
    /// Whether the culprit is more important.
    above: bool,
}

impl Verdict {
    fn new(kind: CauseKind, took: Span) -> Self {
        Self {
            kind,
            took,
            culprit: None,
            held: None,
            predicted: None,
            measured: None,
            promise: None,
            above: false,
        }
    }
}

/// What the other observers of the same records know.
struct Seen<'a> {
    lives: &'a Lives,
    roster: &'a Roster,
}

/// How the time from release to deadline was spent.
#[derive(Default)]
struct Shares {
    absent: Span,
    own: Span,
    own_overrun: Span,
    idle: Span,
    stalled: Span,
    by_others: BTreeMap<AppId, Span>,
    worst_overrun: Option<Run>,
}

impl Blame {
    pub(crate) fn new(refresh: Refresh, from: Time) -> Self {
        Self {
            refresh,
            from,
            runs: VecDeque::with_capacity(RUNS_MAX),
            running: None,
            stalls: VecDeque::new(),
            lost_at: None,
            apps: Vec::new(),
            misses: Vec::new(),
            omitted: 0,
            only: None,
        }
    }

    pub(crate) fn list_all_of(&mut self, app: AppId) {
        self.only = Some(app);
    }

    fn account(&mut self, app: AppId) -> &mut Account {
        if self.apps.len() <= app.index() {
            self.apps.resize_with(app.index() + 1, Account::default);
        }
        &mut self.apps[app.index()]
    }

    pub(crate) fn see(
        &mut self,
        at: Time,
        record: &Record,
        run: Option<Run>,
        lives: &Lives,
        roster: &Roster,
    ) {
        if let Some(run) = run {
            self.remember(run);
        }
        match *record {
            Record::In(Event::Join { app, .. }) => {
                let account = self.account(app);
                (account.submitted, account.deadline, account.allowed) = (0, None, None);
            }
            Record::In(Event::Submit { app, kind, .. }) => {
                let account = self.account(app);
                account.present_since.get_or_insert(at);
                account.submitted += u64::from(kind.ends_frame());
            }
            Record::In(Event::EndFrame { app }) => self.account(app).submitted += 1,
            Record::Gpu(GpuRecord::Started { app, group }) => self.running = Some((app, group, at)),
            Record::Gpu(GpuRecord::Finished { app, group, .. }) => {
                self.running.take_if(|(_, running, _)| *running == group);
                let still_here = roster.member(app).is_some_and(|member| member.is_present());
                let account = self.account(app);
                if !still_here && let Some(since) = account.present_since.take() {
                    push_bounded(&mut account.present, (since, at));
                }
            }
            Record::Gpu(GpuRecord::Preempted { started: Some(_), .. }) => self.running = None,
            Record::Gpu(GpuRecord::Stalled { until }) => push_bounded(&mut self.stalls, (at, until)),
            Record::Out(Action::Release { app, at }) => self.account(app).released = at,
            Record::Out(Action::Hold { app, reason }) => self.account(app).held(at, Some(reason)),
            Record::Out(Action::Dispatch { app, .. }) => self.account(app).held(at, None),
            Record::Out(Action::Lost { .. }) => self.lost_at = Some(at),
            Record::In(Event::Refresh { display: DisplayId(0), refresh }) => self.refresh = refresh,
            Record::Out(Action::Missed { app, frame, deadline, count, .. }) if at >= self.from => {
                self.missed(app, frame, deadline, count, &Seen { lives, roster });
            }
            Record::Out(Action::FrameDone(done)) => {
                // Also one that ended inside of a group was submitted to its end.
                let account = self.account(done.app);
                account.submitted = account.submitted.max(done.frame + 1);
                account.deadline = Some(done.deadline);
                account.allowed = Some(done.deadline.since(done.release));
                if done.met {
                    return;
                }
                let unfinished = self.misses.iter_mut().rev().take(RUNS_MAX);
                for miss in unfinished.filter(|miss| miss.app == done.app && miss.frame == done.frame) {
                    miss.late = Some(done.finished.since(miss.deadline));
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self, run: Run) {
        if self.runs.len() == RUNS_MAX {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    fn missed(&mut self, app: AppId, frame: u64, deadline: Time, count: u64, seen: &Seen<'_>) {
        let verdict = self.judge(app, frame, deadline, seen);
        let only = self.only;
        let account = self.account(app);
        account.deadline = Some(deadline);
        *account.causes.entry(verdict.kind).or_default() += count;
        if only.map_or(account.listed < LISTED_PER_APP_MAX, |only| only == app) {
            account.listed += 1;
            self.misses.push(Finding { app, frame, deadline, late: None, verdict });
            self.omitted += count - 1;
        } else {
            self.omitted += count;
        }
    }

    fn judge(&mut self, app: AppId, frame: u64, deadline: Time, seen: &Seen<'_>) -> Verdict {
        let release = deadline - self.allowed(app, seen);
        let shares = self.divide(app, release, deadline, seen);
        let lost = self.lost_at.is_some_and(|at| at >= release) || seen.misses_completion(deadline);
        let account = self.account(app);
        let hold = account.hold;
        let verdict = if lost {
            Verdict::new(CauseKind::LostCompletion, shares.idle)
        } else if shares.stalled > OVERRUN_MIN {
            Verdict::new(CauseKind::GpuStall, shares.stalled)
        } else if account.submitted <= frame && account.released <= release {
            let time = deadline.since(release);
            // An app that waits for the GPU with most of its frame submits the rest late.
            if shares.own.times(2) > time {
                Verdict::new(CauseKind::OwnCost, shares.own)
            } else {
                Verdict::new(CauseKind::SubmittedLate, time.saturating_sub(shares.own))
            }
        } else if let Some(verdict) = account.held_all_the_time(release, deadline) {
            Verdict { predicted: seen.next_group(app), ..verdict }
        } else if let Some(worst) = shares.worst_overrun {
            Verdict {
                culprit: Some((worst.app, worst.overrun())),
                predicted: Some(worst.predicted.span()),
                measured: Some(worst.cost()),
                ..Verdict::new(CauseKind::UnderPrediction, worst.overrun())
            }
        } else {
            self.largest_share(app, &shares, release, seen)
        };
        let protects = match hold {
            Some(Hold::Protects { app }) => Some(app),
            _ => None,
        };
        let promise = protects.and_then(|other| self.promise(other, deadline, seen));
        let above = verdict.culprit.is_some_and(|(other, _)| seen.roster.rank(other) > seen.roster.rank(app));
        Verdict { held: hold, promise, above, ..verdict }
    }

    /// How long a frame of `app` may take from its release on, by its own grid. Records do not tell the grids of
    /// other displays than the first one, nor on whose server an app runs, but frames that are done tell what their
    /// apps may take.
    fn allowed(&self, app: AppId, seen: &Seen<'_>) -> Span {
        let params = seen.roster.member(app).and_then(|member| member.params);
        if let Some(server) = params.and_then(|params| params.server()) {
            return server.period;
        }
        let clock = params.map_or_else(Clock::default, |params| params.clock);
        let stride = params.map_or(Stride::ONE, |params| params.stride);
        let shares = params.is_some_and(|params| {
            params.service.feeds.is_some() || matches!(params.service.reservation, Reservation::Shared(_))
        });
        let of_first = self.refresh.period_span().times(1 + stride.lead());
        match clock {
            Clock::Own { deadline, .. } => deadline,
            Clock::Display(DisplayId(0)) if !shares => of_first,
            Clock::Display(_) => {
                self.apps.get(app.index()).and_then(|account| account.allowed).unwrap_or(of_first)
            }
        }
    }

    /// What `app` was promised for the first deadline from `at` on.
    fn promise(&self, app: AppId, at: Time, seen: &Seen<'_>) -> Option<Promised> {
        let params = seen.roster.member(app)?.params?;
        let deadline = self.apps.get(app.index()).and_then(|account| account.deadline);
        Promised::of(app, &params, deadline, &self.refresh, at)
    }

    fn largest_share(&self, app: AppId, shares: &Shares, release: Time, seen: &Seen<'_>) -> Verdict {
        let rank = |app: AppId| seen.roster.rank(app);
        let mut verdict = Verdict::new(CauseKind::SubmittedLate, shares.absent);
        let mut consider = |kind, took, culprit| {
            if took > verdict.took {
                verdict = Verdict { culprit, ..Verdict::new(kind, took) };
            }
        };
        consider(CauseKind::OwnCost, shares.own.max(shares.own_overrun), None);
        let (above, below): (Vec<_>, Vec<_>) =
            shares.by_others.iter().partition(|(other, _)| rank(**other) > rank(app));
        for (kind, group) in [(CauseKind::HigherPriority, above), (CauseKind::Blocking, below)] {
            let total = group.iter().map(|(_, span)| **span).sum();
            let most = group.iter().max_by_key(|(_, span)| **span).map(|(app, span)| (**app, **span));
            consider(kind, total, most);
        }
        let (kind, culprit) = match self.apps.get(app.index()).and_then(|account| account.hold) {
            Some(Hold::Protects { app } | Hold::Exhausted { app } | Hold::Clears { app }) => {
                (CauseKind::HeldForHigherPriority, Some(app))
            }
            Some(Hold::Behind { app } | Hold::Turn { app }) => (CauseKind::HeldBehindOthers, Some(app)),
            Some(Hold::NoBudget { .. }) => (CauseKind::NoBudget, None),
            Some(Hold::Tick { .. }) => (CauseKind::WaitedForTick, None),
            Some(Hold::Unbounded) => (CauseKind::Unbounded, None),
            Some(Hold::Batch) => (CauseKind::SubmittedLate, None),
            Some(Hold::LookAhead) => (CauseKind::BeyondLookAhead, None),
            Some(Hold::NoSlot) | None => (CauseKind::GpuStall, None),
        };
        consider(kind, shares.idle, culprit.map(|culprit| (culprit, shares.idle)));
        if verdict.kind == CauseKind::Blocking
            && let Some((culprit, _)) = verdict.culprit
        {
            let in_the_way = self.runs.iter().rev().take_while(|run| run.ended > release);
            let longest = in_the_way.filter(|run| run.app == culprit).max_by_key(|run| run.cost());
            verdict.predicted = longest.map(|run| run.predicted.span());
            verdict.measured = longest.map(Run::cost);
        }
        verdict
    }

    /// Divides up the time between `release` and `deadline` as `app` saw it.
    fn divide(&mut self, app: AppId, release: Time, deadline: Time, seen: &Seen<'_>) -> Shares {
        let rank = |app: AppId| seen.roster.rank(app);
        let mut shares = Shares::default();
        let account = self.account(app);
        let released = account.released;
        let mut present: Vec<(Time, Time)> = account.present.iter().copied().collect();
        present.extend(account.present_since.map(|since| (since, Time::NEVER)));
        let here: Span = present.iter().map(|span| overlap(*span, (release, deadline))).sum();
        let released_for = overlap((released, Time::NEVER), (release, deadline));
        shares.absent = released_for.saturating_sub(here);
        let running = self.running.map(|(app, group, started)| {
            let life = seen.lives.get(group);
            let reserved = life.and_then(|life| life.reserved).unwrap_or(Span::FOREVER);
            let predicted = life.map_or(Estimate::UNBOUNDED, |life| life.predicted);
            let ran = life.map_or(Span::ZERO, |life| life.ran);
            Run { app, started, ended: deadline, ran, predicted, reserved }
        });
        let mut busy = Span::ZERO;
        for run in self.runs.iter().rev().take_while(|run| run.ended > release).chain(&running) {
            let when = (run.started.max(release), run.ended.min(deadline));
            let seen: Span = present.iter().map(|span| overlap(*span, when)).sum();
            busy += seen;
            if run.app == app {
                shares.own += overlap(when, (release, deadline));
                shares.own_overrun += run.overrun();
                continue;
            }
            *shares.by_others.entry(run.app).or_default() += seen;
            let worst = shares.worst_overrun.map_or(OVERRUN_MIN, |worst| worst.overrun());
            if rank(run.app) < rank(app) && seen > Span::ZERO && run.overrun() > worst {
                shares.worst_overrun = Some(*run);
            }
        }
        shares.idle = here.saturating_sub(busy);
        shares.stalled = self.stalls.iter().map(|stall| overlap(*stall, (release, deadline))).sum();
        shares
    }

    pub(crate) fn causes(&self, app: AppId) -> BTreeMap<CauseKind, u64> {
        self.apps.get(app.index()).map(|account| account.causes.clone()).unwrap_or_default()
    }

    /// The list of misses, and how many are not on it.
    pub(crate) fn finish(self, meta: &Meta) -> (Vec<Miss>, u64) {
        let misses = self.misses.iter().map(|finding| finding.describe(meta)).collect();
        (misses, self.omitted)
    }
}

impl Account {
    fn held(&mut self, at: Time, hold: Option<Hold>) {
        let protecting = matches!(hold, Some(Hold::Protects { .. } | Hold::Exhausted { .. }));
        self.protecting_since = protecting.then(|| self.protecting_since.unwrap_or(at));
        self.hold = hold;
    }

    /// The verdict if one rule alone kept the next group from running in all that time.
    fn held_all_the_time(&self, release: Time, deadline: Time) -> Option<Verdict> {
        let took = deadline.since(release);
        match self.hold? {
            Hold::Unbounded => Some(Verdict::new(CauseKind::Unbounded, took)),
            Hold::Protects { app } | Hold::Exhausted { app }
                if self.protecting_since.is_some_and(|since| since <= release) =>
            {
                let culprit = Some((app, took));
                Some(Verdict { culprit, ..Verdict::new(CauseKind::HeldForHigherPriority, took) })
            }
            _ => None,
        }
    }
}

impl Seen<'_> {
    /// Whether the GPU has finished a group whose completion the scheduler should know by now.
    fn misses_completion(&self, now: Time) -> bool {
        let finished = self.lives.open().filter_map(|life| life.finished);
        finished.into_iter().any(|finished| finished + COMPLETION_LATE < now)
    }

    /// Predicted length of the app's first waiting group.
    fn next_group(&self, app: AppId) -> Option<Span> {
        let mut waiting = self.lives.open().filter(|life| life.app == app && life.waits());
        waiting.next().map(|life| life.predicted.span())
    }
}

impl Finding {
    fn describe(&self, meta: &Meta) -> Miss {
        let verdict = &self.verdict;
        let app = meta.name(self.app);
        let culprit = verdict.culprit.map(|(app, took)| (meta.name(app), took));
        let reason = sentence::reason(verdict, culprit.as_ref(), meta);
        let late = match self.late {
            Some(late) => format!("was {} late", sentence::ms(late)),
            None => "was not finished".to_owned(),
        };
        let finite = |span: Option<Span>| span.filter(|span| *span < Span::FOREVER).map(micros);
        Miss {
            sentence: format!(
                "{app} frame {} due at {:.4} s {late}: {reason}",
                self.frame,
                at_s(self.deadline)
            ),
            app,
            frame: self.frame,
            deadline_s: at_s(self.deadline),
            late_us: self.late.map(micros),
            cause: Cause {
                kind: verdict.kind,
                culprit_us: culprit.as_ref().map(|(_, took)| micros(*took)),
                culprit: culprit.map(|(name, _)| name),
                took_us: micros(verdict.took),
                held: verdict.held.map(HeldBy::from),
                predicted_us: finite(verdict.predicted),
                measured_us: finite(verdict.measured),
                promise: verdict.promise.map(|promise| promise.summary(meta)),
            },
        }
    }
}

fn at_s(time: Time) -> f64 {
    seconds(time.since(Time::ZERO))
}

fn overlap(a: (Time, Time), b: (Time, Time)) -> Span {
    a.1.min(b.1).since(a.0.max(b.0))
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == SPANS_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}
