//! Why was this frame late? One cause for every missed deadline.
//!
//! When a deadline passes, the time from the frame's release to the deadline is divided up: the
//! app had submitted nothing; its own groups ran; others' groups ran while it was ready; the GPU
//! idled while it was ready. The cause is the first of these that applies:
//!
//! 1. a completion was lost or the GPU stalled meanwhile;
//! 2. the app was let go in time and had not submitted the end of the frame by the deadline;
//! 3. a less important group overran the time set aside for it;
//! 4. otherwise, whatever took the largest share.
//!
//! Overruns come before shares because less important work is only ever let in when, by its
//! prediction, it does no harm: without the overrun the deadline would have been met.

use std::collections::{BTreeMap, VecDeque};

use takt_core::{Action, AppId, Estimate, Event, GroupId, Hold, Refresh, Span, Stride, Time};

use crate::lives::Lives;
use crate::metrics::{Run, micros, seconds};
use crate::record::{GpuRecord, Meta, Record};
use crate::roster::Roster;
use crate::summary::{Cause, CauseKind, Miss};

/// Ended groups that are remembered: more than fit between a release and its deadline, unless
/// groups are tiny and strides long.
const RUNS_MAX: usize = 4096;
/// Spans of presence remembered per app.
const SPANS_MAX: usize = 64;
/// Missed deadlines listed per app; the rest is counted.
const LISTED_PER_APP_MAX: usize = 500;
/// An overrun below this is noise, not a cause.
const OVERRUN_MIN: Span = Span::from_us(50);

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
}

/// What is known of one app.
#[derive(Debug, Default)]
struct Account {
    /// Spans in which it had unfinished groups, oldest first.
    present: VecDeque<(Time, Time)>,
    present_since: Option<Time>,
    /// Last time it was let go.
    released: Time,
    /// Frames submitted to their end since joining.
    submitted: u64,
    hold: Option<Hold>,
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
    culprit: Option<AppId>,
    took: Span,
    group: Option<(Span, Span)>,
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
    longest_below: Option<Run>,
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
        }
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
            Record::In(Event::Join { app, .. }) => self.account(app).submitted = 0,
            Record::In(Event::Submit { app, kind, .. }) => {
                let account = self.account(app);
                account.present_since.get_or_insert(at);
                account.submitted += u64::from(kind.ends_frame());
            }
            Record::Gpu(GpuRecord::Started { app, group }) => self.running = Some((app, group, at)),
            Record::Gpu(GpuRecord::Finished { app, .. }) => {
                self.running = None;
                let still_here = roster.member(app).is_some_and(|member| member.is_present());
                let account = self.account(app);
                if !still_here && let Some(since) = account.present_since.take() {
                    push_bounded(&mut account.present, (since, at));
                }
            }
            Record::Gpu(GpuRecord::Stalled { until }) => push_bounded(&mut self.stalls, (at, until)),
            Record::Out(Action::Release { app, at }) => self.account(app).released = at,
            Record::Out(Action::Hold { app, reason }) => self.account(app).hold = Some(reason),
            Record::Out(Action::Dispatch { app, .. }) => self.account(app).hold = None,
            Record::Out(Action::Lost { .. }) => self.lost_at = Some(at),
            Record::In(Event::Refresh(refresh)) => self.refresh = refresh,
            Record::Out(Action::Missed { app, frame, deadline, count, .. }) if at >= self.from => {
                self.missed(app, frame, deadline, count, &Seen { lives, roster });
            }
            Record::Out(Action::FrameDone(done)) if !done.met => {
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
        let account = self.account(app);
        *account.causes.entry(verdict.kind).or_default() += count;
        if account.listed < LISTED_PER_APP_MAX {
            account.listed += 1;
            self.misses.push(Finding { app, frame, deadline, late: None, verdict });
            self.omitted += count - 1;
        } else {
            self.omitted += count;
        }
    }

    fn judge(&mut self, app: AppId, frame: u64, deadline: Time, seen: &Seen<'_>) -> Verdict {
        let params = seen.roster.member(app).and_then(|member| member.params);
        let stride = params.map_or(Stride::ONE, |params| params.stride);
        let release = deadline - self.refresh.period_span().times(1 + stride.lead());
        let shares = self.divide(app, release, deadline, seen);
        if self.lost_at.is_some_and(|at| at >= release) {
            return Verdict {
                kind: CauseKind::LostCompletion,
                culprit: None,
                took: shares.idle,
                group: None,
            };
        }
        if shares.stalled > OVERRUN_MIN {
            return Verdict { kind: CauseKind::GpuStall, culprit: None, took: shares.stalled, group: None };
        }
        let account = self.account(app);
        if account.submitted <= frame && account.released <= release {
            let took = deadline.since(release).saturating_sub(shares.own);
            return Verdict { kind: CauseKind::SubmittedLate, culprit: None, took, group: None };
        }
        if let Some(worst) = shares.worst_overrun {
            return Verdict {
                kind: CauseKind::UnderPrediction,
                culprit: Some(worst.app),
                took: worst.overrun(),
                group: Some((worst.predicted.span(), worst.cost())),
            };
        }
        self.largest_share(app, &shares, seen)
    }

    fn largest_share(&self, app: AppId, shares: &Shares, seen: &Seen<'_>) -> Verdict {
        let rank = |app: AppId| seen.roster.rank(app);
        let mut verdict =
            Verdict { kind: CauseKind::SubmittedLate, culprit: None, took: shares.absent, group: None };
        let mut consider = |kind, culprit, took| {
            if took > verdict.took {
                verdict = Verdict { kind, culprit, took, group: None };
            }
        };
        consider(CauseKind::OwnCost, None, shares.own.max(shares.own_overrun));
        let (above, below): (Vec<_>, Vec<_>) =
            shares.by_others.iter().partition(|(other, _)| rank(**other) > rank(app));
        for (kind, group) in [(CauseKind::HigherPriority, above), (CauseKind::Blocking, below)] {
            let total = group.iter().map(|(_, span)| **span).sum();
            let most = group.iter().max_by_key(|(_, span)| **span).map(|(app, _)| **app);
            consider(kind, most, total);
        }
        let (kind, culprit) = match self.apps.get(app.index()).and_then(|account| account.hold) {
            Some(Hold::Protects { app } | Hold::Exhausted { app }) => {
                (CauseKind::HeldForHigherPriority, Some(app))
            }
            Some(Hold::Behind { app }) => (CauseKind::HeldBehindOthers, Some(app)),
            Some(Hold::Unbounded) => (CauseKind::HeldForHigherPriority, None),
            None => (CauseKind::GpuStall, None),
        };
        consider(kind, culprit, shares.idle);
        if verdict.kind == CauseKind::Blocking {
            verdict.group = shares.longest_below.map(|run| (run.predicted.span(), run.cost()));
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
        let let_go = overlap((released, Time::NEVER), (release, deadline));
        shares.absent = let_go.saturating_sub(here);
        let running = self.running.map(|(app, group, started)| {
            let life = seen.lives.get(group);
            let reserved = life.and_then(|life| life.reserved).unwrap_or(Span::FOREVER);
            let predicted = life.map_or(Estimate::UNBOUNDED, |life| life.predicted);
            Run { app, started, ended: deadline, predicted, reserved }
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
            if rank(run.app) < rank(app) && seen > Span::ZERO {
                if run.overrun() > shares.worst_overrun.map_or(OVERRUN_MIN, |worst| worst.overrun()) {
                    shares.worst_overrun = Some(*run);
                }
                if run.cost() > shares.longest_below.map_or(Span::ZERO, |longest| longest.cost()) {
                    shares.longest_below = Some(*run);
                }
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

impl Finding {
    fn describe(&self, meta: &Meta) -> Miss {
        let Verdict { kind, culprit, took, group } = self.verdict;
        let app = meta.name(self.app);
        let culprit = culprit.map(|app| meta.name(app));
        let reason = reason(kind, culprit.as_deref(), took, group);
        let late = match self.late {
            Some(late) => format!("was {} late", ms(late)),
            None => "was not finished".to_owned(),
        };
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
                kind,
                culprit,
                took_us: micros(took),
                predicted_us: group.filter(|group| group.0 < Span::FOREVER).map(|group| micros(group.0)),
                measured_us: group.map(|group| micros(group.1)),
            },
        }
    }
}

fn reason(kind: CauseKind, culprit: Option<&str>, took: Span, group: Option<(Span, Span)>) -> String {
    let who = culprit.unwrap_or("others");
    let took = ms(took);
    let group = group.map(|(predicted, measured)| (ms(predicted), ms(measured)));
    match (kind, group) {
        (CauseKind::SubmittedLate, _) => {
            format!("it had not submitted all of it by then (its own groups aside, {took} went by)")
        }
        (CauseKind::OwnCost, _) => format!("its own groups needed {took} of GPU time"),
        (CauseKind::UnderPrediction, Some((predicted, measured))) => format!(
            "a group of {who} (less important) ran {measured} instead of the predicted {predicted}, \
             {took} beyond what was set aside for it"
        ),
        (CauseKind::Blocking, Some((predicted, measured))) => format!(
            "less important apps used the GPU for {took}, mostly {who} \
             (longest group {measured}, predicted {predicted})"
        ),
        (CauseKind::UnderPrediction | CauseKind::Blocking, None) => {
            format!("less important apps used the GPU for {took}, mostly {who}")
        }
        (CauseKind::HigherPriority, _) => {
            format!("more important apps used the GPU for {took}, mostly {who}")
        }
        (CauseKind::HeldForHigherPriority, _) => {
            format!("held back for {took} so that {who} (more important) cannot miss its deadline")
        }
        (CauseKind::HeldBehindOthers, _) => format!("held back for {took} behind {who}"),
        (CauseKind::GpuStall, _) => format!("the GPU stalled or idled for {took}"),
        (CauseKind::LostCompletion, _) => "a completion was lost".to_owned(),
    }
}

fn ms(span: Span) -> String {
    if span >= Span::FOREVER { "∞".to_owned() } else { format!("{:.2} ms", micros(span) / 1000.0) }
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
