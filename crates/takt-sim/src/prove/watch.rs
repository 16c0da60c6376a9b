//! Plays a case, and reports which app missed a deadline.

use std::collections::{BTreeMap, VecDeque};

use takt_core::limits::QUEUE_MAX;
use takt_core::service::{Reservation, Reserve};
use takt_core::{Action, AppId, AppParams, Clock, Event, FrameDone, GroupId, Service, Span, Time};
use takt_trace::{Observer, Record};

use super::{Case, mixed};
use crate::model::End;

/// Watches a case.
pub(super) struct Watch<'a> {
    case: &'a Case,
    miss: Option<(AppId, Time)>,
    apps: Vec<Watched>,
    booked: Booked,
    /// Whose groups wait.
    waiting: BTreeMap<GroupId, AppId>,
}

/// What an app did that was promised something.
#[derive(Clone, Default)]
struct Watched {
    finished: u64,
    /// With a clock of its own: when the last frame counts as released.
    released: Option<Time>,
    /// A frame has begun and is not all there.
    open: bool,
    /// When frames that are not done are due.
    due: VecDeque<Time>,
    /// Frames that have come to their end.
    ended: u64,
    /// Groups that wait.
    waiting: usize,
    /// Its queue was full, or that of an app that shares its contract: then the rest of a frame or job came later than
    /// its begin, and nothing is promised to those any more.
    full: bool,
}

/// Groups of sources, which are part of frames of other apps.
#[derive(Default)]
struct Booked {
    /// Whose frame each is part of.
    frames: BTreeMap<GroupId, (AppId, u64)>,
    /// When the last one of a frame ended, and when the frame was due: what is known first.
    finished: BTreeMap<(AppId, u64), Time>,
    due: BTreeMap<(AppId, u64), Time>,
}

impl Booked {
    /// A group ended; says which deadline it missed.
    fn ended(&mut self, group: GroupId, at: Time) -> Option<(AppId, Time)> {
        let frame = self.frames.remove(&group)?;
        let last = self.finished.entry(frame).or_default();
        *last = at.max(*last);
        self.due.get(&frame).filter(|due| at >= **due).map(|due| (frame.0, *due))
    }

    /// A frame was due then; says whether a group of it missed that.
    fn was_due(&mut self, frame: (AppId, u64), due: Time) -> Option<(AppId, Time)> {
        self.due.insert(frame, due);
        self.finished.remove(&frame).filter(|last| *last >= due).map(|_| (frame.0, due))
    }
}

impl<'a> Watch<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        let apps = vec![Watched::default(); case.scenario.apps.len()];
        Self { case, miss: None, apps, booked: Booked::default(), waiting: BTreeMap::new() }
    }

    /// The first deadline that was missed in a run until `end`.
    pub(super) fn miss(&self, end: Time) -> Option<(AppId, Time)> {
        let unheard = self.case.scenario.config.margins.completion_upper;
        let mut overdue = (0..).map(AppId).zip(&self.apps).filter_map(|(app, watched)| {
            let due =
                watched.due.front().filter(|due| **due + unheard < end && self.counts_at(app, **due))?;
            Some((app, *due))
        });
        self.miss.or_else(|| overdue.next()).or_else(|| self.starved().map(|app| (app, end)))
    }

    /// Whether the app was promised something, by its own contract or by one that it shares.
    fn counts(&self, app: AppId) -> bool {
        let own = app.index() < self.case.protected && self.case.silent != Some(app.index());
        (own || self.served_by(app).is_some()) && !self.apps[self.contract_of(app).index()].full
    }

    /// Whether a deadline of the app counts: none does once it went, or the app went whose contract it runs on.
    fn counts_at(&self, app: AppId, due: Time) -> bool {
        self.counts(app) && due < self.until(app)
    }

    /// When the app goes, or the one whose contract it runs on.
    fn until(&self, app: AppId) -> Time {
        let end = |app: AppId| match self.case.scenario.apps[app.index()].end {
            Some(End::Leave(at) | End::Crash { at, .. } | End::Hang(at)) => at,
            None => Time::NEVER,
        };
        end(app).min(end(self.contract_of(app)))
    }

    /// Whose contract covers what the app submits: its own one, or that of the app that it shares or feeds.
    fn contract_of(&self, app: AppId) -> AppId {
        let Service { reservation, feeds, .. } = self.params(app).service;
        let owner = match reservation {
            Reservation::Shared(owner) => Some(owner),
            _ => feeds,
        };
        owner.filter(|owner| owner.index() < self.case.protected).unwrap_or(app)
    }

    /// A group waits.
    fn waits(&mut self, app: AppId, group: GroupId) {
        self.waiting.insert(group, app);
        let watched = &mut self.apps[app.index()];
        watched.waiting += 1;
        if watched.waiting == QUEUE_MAX {
            let contract = self.contract_of(app);
            self.apps[contract.index()].full = true;
        }
    }

    /// A group waits no more.
    fn goes(&mut self, group: GroupId) {
        if let Some(app) = self.waiting.remove(&group) {
            self.apps[app.index()].waiting -= 1;
        }
    }

    fn params(&self, app: AppId) -> &AppParams {
        &self.case.scenario.apps[app.index()].params
    }

    /// The server of another app that it shares, or that it feeds.
    fn served_by(&self, app: AppId) -> Option<Reserve> {
        Some(self.contract_of(app))
            .filter(|owner| *owner != app)
            .and_then(|owner| mixed::server(self.params(owner)))
    }

    /// The app whose frames it shares.
    fn source_of(&self, app: AppId) -> Option<AppId> {
        let Reservation::Shared(owner) = self.params(app).service.reservation else {
            return None;
        };
        let framed = owner.index() < self.case.protected && self.params(owner).etpf > Span::ZERO;
        framed.then_some(owner)
    }

    /// An app that finished fewer frames than its display has deadlines: no miss was reported, but it was
    /// not served either.
    fn starved(&self) -> Option<AppId> {
        let scenario = &self.case.scenario;
        let mut apps = (0..).map(AppId).zip(scenario.apps.iter().zip(&self.apps)).take(self.case.protected);
        let starved = apps.find(|(app, (spec, watched))| {
            let period = mixed::period(&spec.params, &scenario.config).as_ns().max(1);
            let lasts = scenario.duration.min(self.until(*app).since(Time::ZERO));
            let expected = (lasts.as_ns() / period).saturating_sub(3);
            let shown = !spec.params.clock.is_own() && mixed::server(&spec.params).is_none();
            self.counts(*app) && shown && watched.finished < expected
        });
        starved.map(|(app, _)| app)
    }

    /// Shortest time between two frames of an app with a clock of its own, or two jobs of one with a server, and
    /// from the release of one to its deadline. A job is released when the budget of the one before is due.
    fn own_clock(&self, app: AppId) -> Option<(Span, Span)> {
        let params = self.params(app);
        match (mixed::server(params).or_else(|| self.served_by(app)), params.clock) {
            (Some(reserve), _) => Some((reserve.period, reserve.period)),
            (None, Clock::Own { period, deadline }) => Some((period, deadline)),
            (None, Clock::Display(_)) => None,
        }
    }

    /// A group of a frame is there, or its end.
    fn submitted(&mut self, at: Time, app: AppId, ends: bool) {
        self.apps[app.index()].ended += u64::from(ends);
        let Some((period, deadline)) = self.own_clock(app) else {
            return;
        };
        let watched = &mut self.apps[app.index()];
        if !watched.open {
            let released = watched.released.map_or(at, |last| at.max(last + period));
            watched.released = Some(released);
            watched.due.push_back(released + deadline.max(Span::from_ns(1)));
        }
        watched.open = !ends;
    }

    fn done(&mut self, done: &FrameDone) {
        let watched = &mut self.apps[done.app.index()];
        watched.finished += 1;
        let due = watched.due.pop_front();
        if let Some(due) = due.filter(|due| done.finished >= *due && self.counts_at(done.app, *due)) {
            self.miss.get_or_insert((done.app, due));
        }
        let missed = self.booked.was_due((done.app, done.frame), done.deadline);
        let missed = missed.filter(|(app, due)| self.counts_at(*app, *due));
        self.miss = self.miss.or(missed);
    }

    /// An app that is promised nothing by itself submits a group.
    fn book(&mut self, app: AppId, group: GroupId, predicted: Span) {
        let Some(owner) = self.source_of(app) else {
            return;
        };
        if predicted <= self.params(owner).etpf {
            self.booked.frames.insert(group, (owner, self.apps[owner.index()].ended));
        }
    }
}

impl Observer for Watch<'_> {
    fn record(&mut self, at: Time, record: &Record) {
        match record {
            // Nothing is known of apps that do not exist.
            Record::In(Event::Submit { app, .. } | Event::EndFrame { app })
                if app.index() >= self.apps.len() => {}
            Record::Out(Action::Missed { app, deadline, .. }) if self.counts_at(*app, *deadline) => {
                self.miss.get_or_insert((*app, *deadline));
            }
            Record::Out(Action::Dispatch { group, .. }) => self.goes(*group),
            Record::Out(Action::FrameDone(done)) if self.counts(done.app) => self.done(done),
            Record::In(Event::Submit { app, group, kind, estimate }) => {
                self.waits(*app, *group);
                if self.counts(*app) {
                    self.submitted(at, *app, kind.ends_frame());
                } else {
                    self.book(*app, *group, self.case.scenario.config.margins.conservative(*estimate));
                }
            }
            Record::In(Event::EndFrame { app }) if self.counts(*app) => self.submitted(at, *app, true),
            Record::In(Event::Complete { group, finished, .. }) => {
                let missed = self.booked.ended(*group, *finished);
                let missed = missed.filter(|(owner, due)| self.counts_at(*owner, *due));
                self.miss = self.miss.or(missed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, draw};
    use super::*;

    /// Compares what the core says of jobs of servers with what is known here.
    struct Compared<'a> {
        watch: Watch<'a>,
        jobs: u64,
    }

    impl Compared<'_> {
        /// The server that an app has, shares or feeds; jobs with gaps are frames.
        fn server(&self, app: AppId) -> Option<Reserve> {
            let params = self.watch.params(app);
            let own = params.server().filter(|_| params.service.gaps.count == 0);
            own.or_else(|| self.watch.served_by(app))
        }
    }

    impl Observer for Compared<'_> {
        fn record(&mut self, at: Time, record: &Record) {
            if let Record::Out(Action::FrameDone(done)) = record
                && self.watch.counts(done.app)
                && let Some(server) = self.server(done.app)
            {
                let due = self.watch.apps[done.app.index()].due.front();
                assert_eq!(Some(&done.deadline), due, "frame {} of app {}", done.frame, done.app.0);
                assert_eq!(done.deadline.since(done.release), server.period);
                assert_eq!(done.met, done.finished < done.deadline);
                self.jobs += 1;
            }
            self.watch.record(at, record);
        }
    }

    #[test]
    fn the_core_judges_jobs_of_servers_by_the_same_rule() {
        let options = Options { mixed: true, ..Options::default() };
        let mut jobs = 0;
        for case in (0..24).map(|index| draw(&options, index)) {
            let mut compared = Compared { watch: Watch::new(&case), jobs: 0 };
            crate::run(&case.scenario, &mut compared);
            jobs += compared.jobs;
        }
        assert!(jobs > 100, "{jobs} jobs");
    }
}
