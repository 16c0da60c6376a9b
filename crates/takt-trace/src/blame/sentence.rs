//! Causes in words.

use takt_core::Span;

use super::Verdict;
use crate::metrics::micros;
use crate::record::Meta;
use crate::summary::CauseKind;

/// Why a deadline was missed, and for whose promise its next group was held back, if it was.
pub(super) fn reason(verdict: &Verdict, culprit: Option<&(String, Span)>, meta: &Meta) -> String {
    cause(verdict, culprit) + &waits_for(verdict, meta)
}

fn cause(verdict: &Verdict, culprit: Option<&(String, Span)>) -> String {
    let took = ms(verdict.took);
    let who = culprit.map_or("others", |(name, _)| name.as_str());
    let part = culprit.map_or_else(String::new, |(name, part)| format!(", {} of it {name}", ms(*part)));
    let predicted = verdict.predicted.map_or_else(|| "?".to_owned(), ms);
    let measured = verdict.measured.map_or_else(|| "?".to_owned(), ms);
    match verdict.kind {
        CauseKind::SubmittedLate => {
            format!("it had not submitted all of it by then (its own groups aside, {took} went by)")
        }
        CauseKind::OwnCost => format!("its own groups needed {took} of GPU time"),
        CauseKind::UnderPrediction => format!(
            "a group of {who} (less important) ran {measured} instead of the predicted {predicted}, \
             {took} beyond what was set aside for it"
        ),
        CauseKind::Blocking => format!(
            "less important apps used the GPU for {took}{part} \
             (its longest group {measured}, predicted {predicted})"
        ),
        CauseKind::HigherPriority => format!("more important apps used the GPU for {took}{part}"),
        CauseKind::HeldForHigherPriority => {
            let rank = if verdict.above { "more" } else { "less" };
            let why = match verdict.promise {
                Some(promise) => format!("gets what it was promised: {}", promise.words()),
                None => "cannot miss its deadline".to_owned(),
            };
            format!("held back for {took} so that {who} ({rank} important) {why}")
        }
        CauseKind::Unbounded => "its next group is predicted without a bound, which fits nowhere".to_owned(),
        CauseKind::HeldBehindOthers => format!("held back for {took} behind {who}"),
        CauseKind::NoBudget => format!("its reserve was used up, so it waited for {took}"),
        CauseKind::WaitedForTick => format!("the GPU idled for {took} until the next tick"),
        CauseKind::BeyondLookAhead => {
            format!("promises reached further than the scheduler looks ahead, so it waited for {took}")
        }
        CauseKind::GpuStall => format!("the GPU stalled or idled for {took}"),
        CauseKind::LostCompletion => "a completion did not come in time".to_owned(),
    }
}

/// For whose promise its next group was held back, where that is not the cause itself.
fn waits_for(verdict: &Verdict, meta: &Meta) -> String {
    match verdict.promise {
        Some(promise) if verdict.kind != CauseKind::HeldForHigherPriority => {
            let name = meta.name(promise.app);
            format!("; its next group was held back for what {name} was promised: {}", promise.words())
        }
        _ => String::new(),
    }
}

pub(super) fn ms(span: Span) -> String {
    if span >= Span::FOREVER { "∞".to_owned() } else { format!("{:.2} ms", micros(span) / 1000.0) }
}

#[cfg(test)]
mod tests {
    use takt_core::service::{Enforcement, Reservation, Reserve};
    use takt_core::{
        Action, AppId, AppParams, Clock, DisplayId, Estimate, Event, FrameDone, GroupId, GroupKind, Hold,
        Period, Priority, Refresh, Service, Span, Stats, Stride, Time,
    };

    use super::super::{Blame, Seen};
    use super::Verdict;
    use crate::lives::Lives;
    use crate::promise::Promised;
    use crate::record::{Observer, Record};
    use crate::roster::Roster;
    use crate::sample::meta;
    use crate::summary::{CauseKind, Miss, Promise};
    use crate::{Metrics, RunFacts};

    const CLUSTER: AppId = AppId(1);
    const GAME: AppId = AppId(2);
    const PERIOD_NS: u64 = 1_000_000_000 / 60;

    fn end_of(period: u64) -> Time {
        Time::from_ns((period + 1) * PERIOD_NS)
    }

    fn params(priority: u32) -> AppParams {
        AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: Clock::default(),
            service: Service::default(),
        }
    }

    fn join(app: AppId, priority: u32, etpf_ms: u64) -> Record {
        let params = AppParams { etpf: Span::from_ms(etpf_ms), ..params(priority) };
        Record::In(Event::Join { app, params, phase: 0 })
    }

    /// What is said of a deadline that the game missed, while `reason` held its only group back from the
    /// first millisecond on. The cluster has met its first deadline.
    fn missed(cluster: Record, game: Record, reason: Hold) -> Miss {
        let mut metrics = Metrics::new(meta("timeline"), Span::ZERO);
        let (kind, estimate) = (GroupKind::Swap, Estimate::new(Span::from_ms(15)));
        let done = FrameDone {
            app: CLUSTER,
            frame: 0,
            desired: Period(0),
            release: Time::ZERO,
            deadline: end_of(0),
            finished: Time::from_ms(9),
            met: true,
        };
        let (app, deadline) = (GAME, end_of(2));
        let missed = Action::Missed { app, frame: 0, period: Period(2), deadline, count: 1 };
        let told = [
            (Time::ZERO, cluster),
            (Time::ZERO, game),
            (Time::from_ms(1), Record::In(Event::Submit { app, group: GroupId(7), kind, estimate })),
            (Time::from_ms(1), Record::Out(Action::Hold { app, reason })),
            (Time::from_ms(9), Record::Out(Action::FrameDone(done))),
            (deadline, Record::Out(missed)),
        ];
        for (at, record) in &told {
            metrics.record(*at, record);
        }
        let facts = RunFacts { seed: 0, event_hash: 0, stats: Stats::default(), end: end_of(3) };
        metrics.finish(facts).misses.pop().expect("a miss")
    }

    #[test]
    fn an_app_that_is_held_back_learns_for_which_promise() {
        let protects = Hold::Protects { app: CLUSTER };
        let miss = missed(join(CLUSTER, 30, 3), join(GAME, 10, 0), protects);
        assert_eq!(
            miss.sentence,
            "game frame 0 due at 0.0500 s was not finished: held back for 16.67 ms so that cluster (more important) \
             gets what it was promised: 3.00 ms per frame, next due at 0.0500 s"
        );
        let Promise { app, per_frame_us, due_s } = miss.cause.promise.expect("it was held for one");
        assert_eq!(
            (app.as_str(), per_frame_us, miss.cause.kind),
            ("cluster", 3000.0, CauseKind::HeldForHigherPriority)
        );
        assert!(due_s.is_some_and(|due| (due - 0.05).abs() < 1e-6), "{due_s:?}");
        // A contract comes before work without one, however important that is.
        let below = missed(join(CLUSTER, 5, 3), join(GAME, 10, 0), protects).sentence;
        assert!(below.contains("so that cluster (less important) gets what it was promised"), "{below}");
        let nothing = missed(join(CLUSTER, 30, 0), join(GAME, 10, 0), protects);
        assert!(nothing.sentence.ends_with("so that cluster (more important) cannot miss its deadline"));
        assert_eq!(nothing.cause.promise, None, "nothing was promised to it");
    }

    /// For how long the game was held back, of the time that its frame had.
    #[test]
    fn time_counts_from_the_release_by_the_apps_own_grid() {
        let held = |params: AppParams| {
            let game = Record::In(Event::Join { app: GAME, params, phase: 0 });
            let sentence = missed(join(CLUSTER, 30, 3), game, Hold::Protects { app: CLUSTER }).sentence;
            let (_, rest) = sentence.split_once("held back for ").expect("it was");
            rest.split_once(" so that").expect("an app is named").0.to_owned()
        };
        assert_eq!(held(params(10)), "16.67 ms");
        let stride = Stride::new(3).expect("in range");
        assert_eq!(held(AppParams { stride, ..params(10) }), "33.33 ms");
        let (period, deadline) = (Span::from_ms(33), Span::from_ms(20));
        assert_eq!(held(AppParams { clock: Clock::Own { period, deadline }, ..params(10) }), "20.00 ms");
        let (budget, period, enforcement) = (Span::from_ms(2), Span::from_ms(41), Enforcement::Posterior);
        let reservation = Reservation::Own(Reserve { budget, period, deadline: period, enforcement });
        let service = Service { reservation, ..Service::default() };
        assert_eq!(held(AppParams { service, ..params(10) }), "41.00 ms");
    }

    /// Records do not tell the grid of another display, but what its frames had.
    #[test]
    fn on_another_display_frames_that_are_done_tell_their_time() {
        let mut blame = Blame::new(Refresh::HZ_60, Time::ZERO);
        let (mut roster, lives) = (Roster::default(), Lives::new());
        let params = AppParams { clock: Clock::Display(DisplayId(1)), ..params(10) };
        let join = Record::In(Event::Join { app: GAME, params, phase: 0 });
        roster.see(Time::ZERO, &join);
        let allowed = |blame: &Blame| blame.allowed(GAME, &Seen { lives: &lives, roster: &roster });
        assert_eq!(allowed(&blame), Refresh::HZ_60.period_span(), "as good as any guess");
        let done = FrameDone {
            app: GAME,
            frame: 0,
            desired: Period(0),
            release: Time::from_ms(3),
            deadline: Time::from_ms(14),
            finished: Time::from_ms(9),
            met: true,
        };
        blame.see(Time::from_ms(9), &Record::Out(Action::FrameDone(done)), None, &lives, &roster);
        assert_eq!(allowed(&blame), Span::from_ms(11));
    }

    #[test]
    fn another_cause_names_the_promise_as_well() {
        let params = AppParams { etpf: Span::from_ms(3), ..params(30) };
        let promise = Promised::of(CLUSTER, &params, None, &Refresh::HZ_60, Time::ZERO);
        let own = Verdict::new(CauseKind::OwnCost, Span::from_ms(9));
        let said = |promise| super::reason(&Verdict { promise, ..own }, None, &meta("timeline"));
        assert_eq!(said(None), "its own groups needed 9.00 ms of GPU time");
        assert_eq!(
            said(promise),
            "its own groups needed 9.00 ms of GPU time; its next group was held back for what cluster was promised: \
             3.00 ms per frame"
        );
    }
}
