//! Who misses a deadline of a case?

use std::collections::VecDeque;

use takt_core::{Action, AppId, Clock, Event, FrameDone, GroupKind, Span, Time};
use takt_trace::{Observer, Record};

use super::{Case, mixed};

/// Watches a case.
pub(super) struct Watch<'a> {
    case: &'a Case,
    miss: Option<(AppId, Time)>,
    apps: Vec<Watched>,
}

/// What an app of the set did.
#[derive(Clone, Default)]
struct Watched {
    finished: u64,
    /// With a clock of its own: when the last frame counts as released.
    released: Option<Time>,
    /// A frame has begun and is not all there.
    open: bool,
    /// When frames that are not done are due.
    due: VecDeque<Time>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self { case, miss: None, apps: vec![Watched::default(); case.protected] }
    }

    /// The first deadline that was missed in a run until `end`.
    pub(super) fn miss(&self, end: Time) -> Option<(AppId, Time)> {
        let unheard = self.case.scenario.config.margins.completion_upper;
        let mut overdue = (0..).map(AppId).zip(&self.apps).filter_map(|(app, watched)| {
            let due = watched.due.front().filter(|due| **due + unheard < end && self.counts(app))?;
            Some((app, *due))
        });
        self.miss.or_else(|| overdue.next()).or_else(|| self.starved().map(|app| (app, end)))
    }

    fn counts(&self, app: AppId) -> bool {
        app.index() < self.case.protected && self.case.silent != Some(app.index())
    }

    /// An app that finished fewer frames than its display has deadlines: no miss was reported, but it was
    /// not served either.
    fn starved(&self) -> Option<AppId> {
        let scenario = &self.case.scenario;
        let mut apps = (0..).map(AppId).zip(scenario.apps.iter().zip(&self.apps));
        let starved = apps.find(|(app, (spec, watched))| {
            let period = mixed::period(&spec.params, &scenario.config).as_ns().max(1);
            let expected = (scenario.duration.as_ns() / period).saturating_sub(3);
            let shown = !spec.params.clock.is_own() && mixed::server(&spec.params).is_none();
            self.counts(*app) && shown && watched.finished < expected
        });
        starved.map(|(app, _)| app)
    }

    /// Shortest time between two frames of an app with a clock of its own, or two jobs of one with a server, and
    /// from the release of one to its deadline. A job is released when the budget of the one before is due.
    fn own_clock(&self, app: AppId) -> Option<(Span, Span)> {
        let params = &self.case.scenario.apps[app.index()].params;
        match (mixed::server(params), params.clock) {
            (Some(reserve), _) => Some((reserve.period, reserve.period)),
            (None, Clock::Own { period, deadline }) => Some((period, deadline)),
            (None, Clock::Display(_)) => None,
        }
    }

    /// A group of a frame is there.
    fn submitted(&mut self, at: Time, app: AppId, kind: GroupKind) {
        let Some((period, deadline)) = self.own_clock(app) else {
            return;
        };
        let watched = &mut self.apps[app.index()];
        if !watched.open {
            let released = watched.released.map_or(at, |last| at.max(last + period));
            watched.released = Some(released);
            watched.due.push_back(released + deadline.max(Span::from_ns(1)));
        }
        watched.open = !kind.ends_frame();
    }

    fn done(&mut self, done: &FrameDone) {
        let watched = &mut self.apps[done.app.index()];
        watched.finished += 1;
        if let Some(due) = watched.due.pop_front().filter(|due| done.finished >= *due) {
            self.miss.get_or_insert((done.app, due));
        }
    }
}

impl Observer for Watch<'_> {
    fn record(&mut self, at: Time, record: &Record) {
        match record {
            Record::Out(Action::Missed { app, deadline, .. }) if self.counts(*app) => {
                self.miss.get_or_insert((*app, *deadline));
            }
            Record::Out(Action::FrameDone(done)) if self.counts(done.app) => self.done(done),
            Record::In(Event::Submit { app, kind, .. }) if self.counts(*app) => {
                self.submitted(at, *app, *kind);
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

    impl Observer for Compared<'_> {
        fn record(&mut self, at: Time, record: &Record) {
            if let Record::Out(Action::FrameDone(done)) = record
                && self.watch.counts(done.app)
                && let Some(server) = self.watch.case.scenario.apps[done.app.index()].params.server()
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
