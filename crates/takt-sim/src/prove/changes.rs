//! Sets that change while they run.
//!
//! Apps of the set leave or die, at any moment, and so do sources in the middle of a frame; those that stay must not
//! notice. Of the less important apps, estimates are up to ten times too long, or no bound is known; the focus moves
//! among them. In half of the cases only the more important apps of the set are judged, and the others break their
//! contracts: they fall silent, come late, wait within frames, and take twice of what they reserved. Displays that
//! show none of the set get other rates; the limits on less important work change; and the scheduler is told what is
//! not so: of apps and groups that do not exist.

use takt_core::clock::DisplayId;
use takt_core::limits::DISPLAYS_MAX;
use takt_core::{
    Adjustable, AppId, AppParams, Clock, Cost, Estimate, Event, GroupId, GroupKind, Refresh, Service, Span,
    Time, Tuning,
};

use super::Case;
use crate::model::{AppSpec, End, FocusChange, ParamChange, RecordedGroup, Scenario, Work};
use crate::rng::Rng;

/// Tells the random numbers of changes from those of all else.
pub(super) const CHANGES: u64 = 1 << 62;

/// Rates that displays without an app of the set change to, in millihertz.
const RATES: [u32; 7] = [1_000, 24_000, 30_000, 59_940, 60_000, 144_000, 240_000];

/// An app that does not exist, and groups that do not.
const NO_APP: AppId = AppId(4_000);
const NO_GROUP: GroupId = GroupId(u64::MAX);

/// Lets a case change while it runs.
pub(super) fn unsettle(case: &mut Case, rng: &mut Rng) {
    let Case { scenario, protected, .. } = case;
    let duration = scenario.duration.as_ns();
    if *protected > 1 && rng.chance(500_000) {
        let judged = rng.between(1, *protected as u64 - 1);
        let judged = usize::try_from(judged).unwrap_or(1);
        scenario.apps[judged..*protected].iter_mut().for_each(|app| break_contract(app, duration, rng));
        *protected = judged;
    }
    let stays = rng.below(u32::try_from(*protected).unwrap_or(1)) as usize;
    for (index, app) in scenario.apps.iter_mut().enumerate() {
        let is_load = app.name.starts_with("load");
        let breaks = !is_load && !app.name.starts_with("source") && index >= *protected;
        if !is_load && !breaks && index != stays && rng.chance(300_000) {
            app.end = Some(draw_end(index < *protected, duration, rng));
        }
        if is_load {
            app.work = predicted_too_long(&app.work, rng);
            follow_focus(app, rng);
        }
    }
    scenario.focus = draw_focus(scenario, rng);
    case.events = draw_events(case, rng);
}

/// An app does not keep its contract any more, in one way or another; it still says honestly what its groups take.
fn break_contract(app: &mut AppSpec, duration: u64, rng: &mut Rng) {
    let Work::Recorded(groups) = &app.work else {
        return;
    };
    match rng.between(0, 4) {
        0 => app.end = Some(End::Hang(Time::from_ns(rng.between(0, duration)))),
        1 => app.submit_delay.hi += Span::from_us(rng.between(0, 40_000)),
        2 => {
            let pausing = |group: &RecordedGroup| {
                let kind = if group.kind == GroupKind::Draw { GroupKind::Sync } else { group.kind };
                RecordedGroup { kind, delay: group.delay + Span::from_us(200), ..*group }
            };
            app.work = Work::Recorded(groups.iter().map(pausing).collect());
        }
        3 => {
            // An end of a frame that costs nothing is no group.
            let draw = |group: &RecordedGroup| RecordedGroup { kind: GroupKind::Draw, ..*group };
            let twice = |group: &RecordedGroup| {
                let again = Some(draw(group)).filter(|draw| draw.cost > Span::ZERO);
                again.into_iter().chain([*group]).collect::<Vec<_>>()
            };
            app.work = Work::Recorded(groups.iter().flat_map(twice).collect());
        }
        // Another app that is unlike what it reserved, from some time on.
        _ => {
            let at = Time::from_ns(rng.between(0, duration));
            let etpf = app.params.etpf.scaled(rng.below(3_000), 1_000);
            app.changes.push(ParamChange { at, params: AppParams { etpf, ..app.params } });
        }
    }
}

/// What falls silent is outside of the assumptions if others count on it: an app of the set dies with notice at once.
fn draw_end(of_the_set: bool, duration: u64, rng: &mut Rng) -> End {
    let at = Time::from_ns(rng.between(0, duration));
    match rng.between(0, 2) {
        0 => End::Leave(at),
        1 if !of_the_set => End::Hang(at),
        _ => {
            let notice = if of_the_set { 0 } else { rng.between(0, 1) * rng.between(0, 30_000) };
            End::Crash { at, notice: Span::from_us(notice) }
        }
    }
}

fn predicted_too_long(work: &Work, rng: &mut Rng) -> Work {
    let Work::Recorded(groups) = work else {
        return work.clone();
    };
    let longer = groups.iter().map(|group| {
        let predicted = group.predicted.map(|predicted| match rng.between(0, 20) {
            0 => Span::FOREVER,
            // An end of a frame that costs nothing is no group.
            _ if group.cost == Span::ZERO => predicted,
            _ => predicted.scaled(1_000 + rng.below(9_000), 1_000),
        });
        RecordedGroup { predicted, ..*group }
    });
    Work::Recorded(longer.collect())
}

fn follow_focus(app: &mut AppSpec, rng: &mut Rng) {
    let follows_focus = rng.chance(500_000);
    let later = app.changes.iter_mut().map(|change| &mut change.params);
    for params in std::iter::once(&mut app.params).chain(later) {
        params.service = Service { follows_focus, ..params.service };
    }
}

fn draw_focus(scenario: &Scenario, rng: &mut Rng) -> Vec<FocusChange> {
    let apps = u32::try_from(scenario.apps.len()).unwrap_or(1);
    let mut focus: Vec<FocusChange> = (0..rng.between(0, 6))
        .map(|_| {
            let at = Time::from_ns(rng.between(0, scenario.duration.as_ns()));
            FocusChange { at, app: Some(AppId(rng.below(apps))).filter(|_| rng.chance(900_000)) }
        })
        .collect();
    focus.sort_by_key(|change| change.at);
    focus
}

fn draw_events(case: &Case, rng: &mut Rng) -> Vec<(Time, Event)> {
    let duration = case.scenario.duration.as_ns();
    let mut events: Vec<(Time, Event)> = (0..rng.between(0, 12))
        .filter_map(|_| {
            let at = Time::from_ns(rng.between(0, duration));
            Some((at, draw_event(case, at, rng)?))
        })
        .collect();
    events.sort_by_key(|(at, _)| *at);
    events
}

fn draw_event(case: &Case, at: Time, rng: &mut Rng) -> Option<Event> {
    let config = &case.scenario.config;
    Some(match rng.between(0, 5) {
        0..=2 => {
            let display = DisplayId(u8::try_from(rng.below(u32::try_from(DISPLAYS_MAX).ok()?)).ok()?);
            let shows = |app: &AppSpec| app.params.clock == Clock::Display(display);
            // Times of the first display are those of the relief from starvation, and of no app that has a server or
            // a clock of its own.
            let set = &case.scenario.apps[..case.protected];
            let has_frames = |app: &&AppSpec| app.params.framed().etpf > Span::ZERO;
            let before = *config.display(display);
            let refresh = if set.iter().filter(has_frames).any(shows) {
                before
            } else {
                let origin = Time::from_ns(at.as_ns() - rng.between(0, at.as_ns().min(50_000_000)));
                Refresh::from_mhz(*rng.pick(&RATES)?)?.with_origin(origin)
            };
            Event::Refresh { display, refresh }
        }
        3 => {
            let spans = [Span::ZERO, Span::from_us(300), Span::from_ms(1), Span::FOREVER];
            let Adjustable { mpcg, margins, divisible, .. } = config.adjustable();
            let (blocking, stretch) = (*rng.pick(&spans)?, *rng.pick(&spans)?);
            let stretch = if stretch >= Span::FOREVER { Tuning::default().stretch } else { stretch };
            Event::Adjust(Adjustable { mpcg, margins, blocking, stretch, divisible })
        }
        4 => Event::Complete { group: NO_GROUP, finished: at, cost: Cost::new(Span::ZERO), frames: 3 },
        _ => match rng.between(0, 2) {
            0 => Event::Leave { app: NO_APP },
            1 => Event::EndFrame { app: NO_APP },
            _ => {
                let (group, estimate) = (NO_GROUP, Estimate::default());
                Event::Submit { app: NO_APP, group, kind: GroupKind::Swap, estimate }
            }
        },
    })
}
