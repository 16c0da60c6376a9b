//! Counterexamples that people can follow.

use std::cmp::Ordering;
use std::sync::Arc;

use takt_core::service::Reservation;
use takt_core::{AppId, GroupKind, Span, Time};

use super::{Case, first_miss};
use crate::model::{AppSpec, Pace, SpanRange, Work};

/// Makes a violating case simpler as long as it violates. Every step keeps the assumptions.
pub(super) fn shrink(mut case: Case) -> Case {
    while let Some(simpler) = simpler_cases(&case).into_iter().find(|simpler| first_miss(simpler).is_some()) {
        case = simpler;
    }
    case
}

/// All cases that are one step simpler, boldest first.
fn simpler_cases(case: &Case) -> Vec<Case> {
    let mut simpler = without_events(case);
    for index in 0..case.scenario.apps.len() {
        let mut fewer = case.clone();
        fewer.scenario.apps.remove(index);
        fewer.scenario.apps.iter_mut().for_each(|app| forget(app, index));
        for change in &mut fewer.scenario.focus {
            change.app = change.app.and_then(|app| moved(app, index));
        }
        fewer.protected -= usize::from(index < case.protected);
        fewer.silent = case.silent.filter(|silent| *silent != index);
        fewer.silent = fewer.silent.map(|silent| silent - usize::from(index < silent));
        simpler.push(fewer);
    }
    if let Some((_, deadline)) = first_miss(case) {
        let mut shorter = case.clone();
        shorter.scenario.duration =
            deadline.since(Time::ZERO) + case.scenario.config.refresh.period_span() + Span::from_us(1);
        simpler.push(shorter);
    }
    for index in 0..case.scenario.apps.len() {
        let mut edit = |change: &dyn Fn(&mut AppSpec)| {
            let mut edited = case.clone();
            change(&mut edited.scenario.apps[index]);
            simpler.push(edited);
        };
        edit(&|app| app.changes.clear());
        edit(&|app| app.end = None);
        edit(&|app| app.join = Time::ZERO);
        edit(&|app| app.submit_delay = SpanRange::fixed(Span::ZERO));
        if is_kin(&case.scenario.apps, index) {
            // What belongs together stays together.
            edit(&|app| app.work = without_first_draw(&app.work));
            continue;
        }
        edit(&|app| app.pace = if app.params.clock.is_own() { app.pace } else { Pace::Released });
        edit(&|app| app.work = fewer_groups(&app.work, GroupKind::ends_frame));
        edit(&|app| app.work = fewer_groups(&app.work, |_| true));
    }
    let mut all_kin = case.clone();
    for index in 0..case.scenario.apps.len() {
        if is_kin(&case.scenario.apps, index) {
            let app = &mut all_kin.scenario.apps[index];
            app.work = fewer_groups(&app.work, GroupKind::ends_frame);
        }
    }
    simpler.push(all_kin);
    simpler.retain(|simpler| simpler.protected > 0 && weight(simpler) < weight(case));
    simpler
}

/// The same with nothing told besides, with one event less, or with the focus where it was.
fn without_events(case: &Case) -> Vec<Case> {
    let mut simpler = Vec::new();
    if !case.scenario.focus.is_empty() {
        let mut still = case.clone();
        still.scenario.focus.clear();
        simpler.push(still);
    }
    if case.events.len() > 1 {
        simpler.push(Case { events: Vec::new(), ..case.clone() });
    }
    for event in 0..case.events.len() {
        let mut fewer = case.clone();
        fewer.events.remove(event);
        simpler.push(fewer);
    }
    simpler
}

/// The apps that one names.
fn named(app: &AppSpec) -> impl Iterator<Item = AppId> {
    let shared = match app.params.service.reservation {
        Reservation::Shared(owner) => Some(owner),
        _ => None,
    };
    let leader = match app.pace {
        Pace::With(leader) => Some(leader),
        _ => None,
    };
    [shared, app.params.service.feeds, leader].into_iter().flatten()
}

/// Whether an app shares what it has.
fn is_kin(apps: &[AppSpec], index: usize) -> bool {
    named(&apps[index]).next().is_some() || apps.iter().flat_map(named).any(|app| app.index() == index)
}

/// The app at that index is not there any more.
fn forget(app: &mut AppSpec, index: usize) {
    let moved = |named: AppId| moved(named, index);
    if let Pace::With(leader) = app.pace {
        app.pace = moved(leader).map_or(Pace::Released, Pace::With);
    }
    let later = app.changes.iter_mut().map(|change| &mut change.params);
    for params in std::iter::once(&mut app.params).chain(later) {
        if let Reservation::Shared(owner) = params.service.reservation {
            params.service.reservation = moved(owner).map_or(Reservation::None, Reservation::Shared);
        }
        params.service.feeds = params.service.feeds.and_then(moved);
    }
}

/// The slot of an app when the one at that index is not there any more.
fn moved(named: AppId, index: usize) -> Option<AppId> {
    match named.index().cmp(&index) {
        Ordering::Less => Some(named),
        Ordering::Equal => None,
        Ordering::Greater => Some(AppId(named.0 - 1)),
    }
}

/// Drops what comes before the first group of the recording that `ends`, if anything is left.
fn fewer_groups(work: &Work, ends: fn(GroupKind) -> bool) -> Work {
    let Work::Recorded(groups) = work else {
        return work.clone();
    };
    let cut = groups.iter().position(|group| ends(group.kind)).map_or(0, |position| position + 1);
    match &groups[cut..] {
        [] => work.clone(),
        rest => Work::Recorded(Arc::from(rest)),
    }
}

/// Drops the first group, if no frame ends with it.
fn without_first_draw(work: &Work) -> Work {
    match work {
        Work::Recorded(groups) if groups.first().is_some_and(|first| !first.kind.ends_frame()) => {
            Work::Recorded(Arc::from(&groups[1..]))
        }
        _ => work.clone(),
    }
}

/// How much there is to understand in a case; shrinking always lowers it.
pub(super) fn weight(case: &Case) -> u64 {
    let app = |app: &AppSpec| {
        let groups = match &app.work {
            Work::Recorded(groups) => groups.len() as u64,
            Work::Drawn { parts, .. } => parts.len() as u64,
        };
        let oddities = [
            app.end.is_some(),
            app.pace != Pace::Released,
            app.join > Time::ZERO,
            app.submit_delay.hi > Span::ZERO,
        ];
        1_000 + groups + 10 * (app.changes.len() as u64 + oddities.iter().filter(|odd| **odd).count() as u64)
    };
    let apps: u64 = case.scenario.apps.iter().map(app).sum();
    let told = case.events.len() as u64 + case.scenario.focus.len() as u64;
    (apps + 10 * told) * 1_000_000 + case.scenario.duration.as_us()
}
