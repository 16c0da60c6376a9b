//! What was seen of each app lately, as far as the daemon's promises depend on it: frames, what they
//! took, and missed deadlines.

use std::collections::{BTreeMap, VecDeque};

use takt_core::{Action, AppId, Clock, Estimate, Event, Span, Time};
use takt_trace::{Observer, Record};

use crate::control::statement::{JOINED_WITHIN, MISSED_WITHIN, Missed, SEEN_WITHIN, Seen};
use crate::rt::endpoint::owner;

/// Most frames of an app that are kept; more than any display shows in [`SEEN_WITHIN`].
const FRAMES_MAX: usize = 1024;
/// Most seconds of which the longest group is kept; the statement looks at two, or at two periods of an app.
const SECONDS_MAX: usize = 64;
/// Misses are counted by the second.
const SECOND: Span = Span::from_ms(1_000);

/// What was seen of all apps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    apps: BTreeMap<AppId, Lately>,
    /// The last two apps that joined, and when.
    joined: [Option<(AppId, Time)>; 2],
}

#[derive(Clone, Debug, Default)]
struct Lately {
    /// When frames ended, and what they took.
    frames: VecDeque<(Time, Span)>,
    /// The longest predictions of groups that came, by the second that began then.
    longest: VecDeque<(Time, Estimate)>,
    /// GPU time since the last frame.
    used: Span,
    /// Frames to come that share a group, and the share of each.
    shared: Option<(u32, Span)>,
    /// Whether a frame was in time: misses before that are those of its start.
    met: bool,
    /// The clock that its deadlines follow.
    clock: Clock,
    /// Missed deadlines, by the second that began with the first of them.
    missed: VecDeque<MissedSecond>,
}

/// Deadlines that were missed within a second.
#[derive(Clone, Copy, Debug)]
struct MissedSecond {
    began: Time,
    last: Time,
    count: u64,
    /// Those of them that were missed soon after another app had joined.
    joining: u64,
}

impl Evidence {
    /// What was seen of an app, with `patience` for a frame if that is longer than usual.
    pub(crate) fn of(&self, app: AppId, now: Time, patience: Span) -> Seen {
        let Some(lately) = self.apps.get(&app) else {
            return Seen::default();
        };
        let since = now - SEEN_WITHIN.max(patience);
        let mut taken: Vec<Span> =
            lately.frames.iter().filter(|(at, _)| *at >= since).map(|(_, span)| *span).collect();
        taken.sort_unstable();
        Seen {
            frames: taken.len(),
            usual: taken.get(taken.len() / 2).copied().unwrap_or_default(),
            longest: lately.longest(since),
            missed: lately.missed(now),
        }
    }

    /// Whether another app joined so lately that its start may still disturb this one.
    fn is_beside_a_start(&self, app: AppId, at: Time) -> bool {
        let others = self.joined.iter().flatten().filter(|(joined, _)| *joined != app);
        others.map(|(_, since)| *since).max().is_some_and(|since| at <= since + JOINED_WITHIN)
    }

    fn lately(&mut self, app: AppId) -> &mut Lately {
        self.apps.entry(app).or_default()
    }
}

impl Lately {
    fn submit(&mut self, at: Time, estimate: Estimate) {
        match self.longest.back_mut() {
            Some((began, longest)) if at < *began + SECOND => *longest = estimate.max(*longest),
            _ => self.longest.push_back((at, estimate)),
        }
        if self.longest.len() > SECONDS_MAX {
            self.longest.pop_front();
        }
    }

    fn longest(&self, since: Time) -> Estimate {
        let lately = self.longest.iter().filter(|(began, _)| *began + SECOND >= since);
        lately.map(|(_, longest)| *longest).max().unwrap_or_default()
    }

    fn complete(&mut self, cost: Span, frames: u32) {
        self.used += cost;
        if frames > 1 {
            let used = std::mem::take(&mut self.used);
            self.shared = Some((frames, used.scaled(1, frames)));
        }
    }

    fn frame(&mut self, at: Time, met: bool) {
        let taken = match self.shared {
            Some((frames, share)) => {
                self.shared = (frames > 1).then(|| (frames - 1, share));
                share
            }
            None => std::mem::take(&mut self.used),
        };
        self.met |= met;
        if self.frames.len() == FRAMES_MAX {
            self.frames.pop_front();
        }
        self.frames.push_back((at, taken));
    }

    /// Deadlines before were not those of this clock, of which the daemon has only just learned.
    fn goes_by(&mut self, clock: Clock) {
        if clock != self.clock {
            (self.clock, self.met) = (clock, false);
            self.missed.clear();
        }
    }

    fn miss(&mut self, at: Time, count: u64, beside_a_start: bool) {
        if !self.met {
            return;
        }
        let joining = if beside_a_start { count } else { 0 };
        match self.missed.back_mut() {
            Some(second) if at < second.began + SECOND => {
                (second.last, second.count) = (at, second.count + count);
                second.joining += joining;
            }
            _ => self.missed.push_back(MissedSecond { began: at, last: at, count, joining }),
        }
        while self.missed.front().is_some_and(|second| second.began + SECOND < at - MISSED_WITHIN) {
            self.missed.pop_front();
        }
    }

    fn missed(&self, now: Time) -> Missed {
        let lately = self.missed.iter().filter(|second| second.began + SECOND >= now - MISSED_WITHIN);
        lately.fold(Missed::default(), |sum, second| Missed {
            count: sum.count + second.count,
            joining: sum.joining + second.joining,
            ago: now.since(second.last),
        })
    }
}

impl Observer for Evidence {
    fn record(&mut self, at: Time, record: &Record) {
        match *record {
            Record::In(Event::Join { app, params, .. }) => {
                // The last one and the last one of another app are all that counts.
                match self.joined[1] {
                    Some((last, _)) if last == app => {}
                    last => self.joined[0] = last,
                }
                self.joined[1] = Some((app, at));
                drop(self.apps.insert(app, Lately { clock: params.clock, ..Lately::default() }));
            }
            Record::In(Event::Change { app, params }) => self.lately(app).goes_by(params.clock),
            Record::In(Event::Leave { app }) => drop(self.apps.remove(&app)),
            Record::In(Event::Submit { app, estimate, .. }) => self.lately(app).submit(at, estimate),
            Record::In(Event::Complete { group, cost, frames, .. }) => {
                self.lately(owner(group)).complete(cost.span(), frames);
            }
            Record::Out(Action::FrameDone(done)) => self.lately(done.app).frame(at, done.met),
            Record::Out(Action::Missed { app, count, .. }) => {
                let beside_a_start = self.is_beside_a_start(app, at);
                self.lately(app).miss(at, count, beside_a_start);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::service::Service;
    use takt_core::{AppParams, Cost, FrameDone, GroupId, GroupKind, Period, Priority, Stride};

    const APP: AppId = AppId(0);

    fn done(at: u64, met: bool) -> (Time, Record) {
        let (at, frame) = (Time::from_ms(at), 0);
        let (release, deadline, desired) = (at, at, Period(0));
        let done = FrameDone { app: APP, frame, desired, release, deadline, finished: at, met };
        (at, Record::Out(Action::FrameDone(done)))
    }

    fn complete(at: u64, cost_us: u64, frames: u32) -> (Time, Record) {
        let (finished, cost) = (Time::from_ms(at), Cost::new(Span::from_us(cost_us)));
        (finished, Record::In(Event::Complete { group: GroupId(1), finished, cost, frames }))
    }

    fn missed(at: u64, count: u64) -> (Time, Record) {
        let deadline = Time::from_ms(at);
        let missed = Action::Missed { app: APP, frame: 0, period: Period(0), deadline, count };
        (deadline, Record::Out(missed))
    }

    fn evidence(records: impl IntoIterator<Item = (Time, Record)>) -> Evidence {
        let mut evidence = Evidence::default();
        records.into_iter().for_each(|(at, record)| evidence.record(at, &record));
        evidence
    }

    fn seen(evidence: &Evidence, now: u64) -> (usize, u64, u64) {
        let Seen { frames, usual, missed, .. } = evidence.of(APP, Time::from_ms(now), Span::ZERO);
        (frames, usual.as_ns() / 1000, missed.count)
    }

    #[test]
    fn a_frame_takes_what_ended_since_the_one_before() {
        let frame = |at: u64, costs: &[u64]| -> Vec<(Time, Record)> {
            costs.iter().map(|cost| complete(at, *cost, 0)).chain([done(at, true)]).collect()
        };
        let found = evidence([frame(10, &[100, 200]), frame(20, &[400]), frame(30, &[500])].concat());
        assert_eq!(seen(&found, 40), (3, 400, 0));
        assert_eq!(seen(&found, 2_015), (2, 500, 0), "the first one is too long ago");
        assert_eq!(seen(&found, 2_100), (0, 0, 0));
        let patient = found.of(APP, Time::from_ms(2_100), Span::from_ms(4_000));
        assert_eq!(patient.frames, 3, "frames of a slow clock are waited for");
    }

    #[test]
    fn the_longest_group_counts_for_two_seconds() {
        let submit = |at: u64, us: u64| {
            let (group, estimate) = (GroupId(1), Estimate::new(Span::from_us(us)));
            (
                Time::from_ms(at),
                Record::In(Event::Submit { app: APP, group, kind: GroupKind::Draw, estimate }),
            )
        };
        let found = evidence([submit(0, 700), submit(100, 900), submit(1_500, 300), submit(4_000, 100)]);
        let longest = |now: u64| found.of(APP, Time::from_ms(now), Span::ZERO).longest.span().as_us();
        assert_eq!([longest(1_600), longest(3_000), longest(3_100), longest(4_600)], [900, 900, 300, 100]);
        let patient = found.of(APP, Time::from_ms(4_600), Span::from_ms(4_000));
        assert_eq!(patient.longest.span(), Span::from_us(900), "jobs of a slow server are looked for longer");
    }

    #[test]
    fn frames_that_share_a_group_share_its_time() {
        let found = evidence([complete(5, 900, 3), done(5, true), done(5, true), done(5, true)]);
        assert_eq!(seen(&found, 10), (3, 300, 0));
    }

    #[test]
    fn a_miss_counts_for_a_minute_and_those_of_the_start_do_not() {
        let found =
            evidence([missed(10, 5), done(20, true), missed(30, 1), missed(900, 1), missed(5_000, 1)]);
        assert_eq!(seen(&found, 6_000).2, 3);
        assert_eq!(seen(&found, 61_000).2, 3);
        assert_eq!(seen(&found, 62_000).2, 1, "the first second is over");
        assert_eq!(seen(&found, 67_000).2, 0);
    }

    #[test]
    fn misses_beside_the_start_of_another_app_are_told_from_others() {
        let joins = |at: u64, app: u32| {
            let (priority, stride, etpf) = (Priority(app), Stride::ONE, Span::ZERO);
            let params =
                AppParams { priority, stride, etpf, clock: Clock::default(), service: Service::default() };
            (Time::from_ms(at), Record::In(Event::Join { app: AppId(app), params, phase: 0 }))
        };
        let told = |found: &Evidence, now: u64| {
            let Missed { count, joining, ago } = found.of(APP, Time::from_ms(now), Span::ZERO).missed;
            (count, joining, ago.as_ns() / 1_000_000)
        };
        let mut found = evidence([joins(0, 0), done(20, true), missed(30, 1)]);
        assert_eq!(told(&found, 40), (1, 0, 10), "its own start is not that of another app");
        let more = [joins(5_000, 1), joins(5_100, 2), missed(5_200, 2), missed(7_100, 1)];
        more.iter().for_each(|(at, record)| found.record(*at, record));
        assert_eq!(told(&found, 8_100), (4, 3, 1_000));
        found.record(Time::from_ms(7_101), &missed(7_101, 1).1);
        assert_eq!(told(&found, 8_100), (5, 3, 999), "that is too long after");
        assert_eq!(told(&found, 64_000), (4, 3, 56_899), "the first one was more than a minute ago");
        let mut own = evidence([joins(0, 1), joins(100, 0), joins(200, 0), done(220, true), missed(230, 1)]);
        assert_eq!(told(&own, 240), (1, 1, 10), "the last join of another app counts");
        own.record(Time::from_ms(2_101), &missed(2_101, 1).1);
        assert_eq!(told(&own, 2_101), (2, 1, 0));
    }

    #[test]
    fn the_next_client_at_a_slot_begins_anew() {
        let mut found = evidence([done(20, true), missed(30, 1)]);
        found.record(Time::from_ms(40), &Record::In(Event::Leave { app: APP }));
        assert_eq!(seen(&found, 50), (0, 0, 0));
    }
}
