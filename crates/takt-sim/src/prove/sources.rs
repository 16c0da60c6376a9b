//! Apps that share a contract: sources of frames, apps on the server of another one, and producers.
//!
//! The promises, and so what the sets draw:
//!
//! * **Frames.** All groups of a frame, whichever source has them, are there when the frame is released, and all of
//!   them together take no more than the owner's `etpf`. Then the owner's frames, with all that is booked on them, are
//!   in time. A group that does not fit is promised nothing, and delays nothing.
//! * **Servers.** Each app on a server has jobs that come a period of the server apart at least, and one job of each
//!   takes the budget together at most. Then each job is over a period after it came.
//! * **Producers.** They submit their part when the consumer submits its job. All parts of a job take the
//!   consumer's budget together at most. Then all of them are over when the consumer's job is due.

use takt_core::limits::QUEUE_MAX;
use takt_core::service::Reservation;
use takt_core::{AppId, AppParams, Config, Estimate, GroupKind, Service, Span};

use super::draw::{app, rounded, unimportant};
use super::frames::{Pays, draw_frame, group_within, least_group};
use super::mixed;
use crate::model::{AppSpec, Jobs, Pace, RecordedGroup, SpanRange, Work, rate_mhz};
use crate::rng::Rng;

/// One app in so many has sources, and one server in half as many is shared or fed.
const ONE_IN: u32 = 4;

/// Lets apps of the protected set share what they were promised with new ones; returns those. What the apps of the set
/// do changes with it.
pub(super) fn draw_sources(set: &mut [AppSpec], config: &Config, rng: &mut Rng) -> Vec<AppSpec> {
    let mut sources = Vec::new();
    for (owner, slot) in set.iter_mut().zip((0..).map(AppId)) {
        // Nothing is promised yet to frames and jobs with both gaps and several sources.
        let chosen = if owner.params.service.gaps.count > 0 { ONE_IN } else { rng.below(ONE_IN) };
        let shared = match mixed::server(&owner.params) {
            Some(_) if chosen == 0 => share_server(owner, slot, config, rng),
            Some(_) if chosen == 1 => produce_for(owner, slot, config, rng),
            None if chosen == 0 => share_frames(owner, slot, config, rng),
            _ => Vec::new(),
        };
        sources.extend(shared);
    }
    let first = set.len() + 1;
    for (number, source) in (first..).zip(&mut sources) {
        source.name = format!("source-{number}");
    }
    sources
}

/// Frames of several sources.
fn share_frames(owner: &mut AppSpec, slot: AppId, config: &Config, rng: &mut Rng) -> Vec<AppSpec> {
    let pays = Pays::per_source(config);
    let etpf = owner.params.etpf;
    let least = least_group(pays, config);
    let most = etpf.saturating_sub(pays.frame).as_ns() / least.as_ns().max(1);
    let count = rng.between(1, 3).min(most.saturating_sub(1));
    // No group is promised anything that is longer than groups may be with what it pays.
    let exceeds = least.saturating_sub(pays.group) + pays.lengthens > config.longest_group();
    if count == 0 || exceeds {
        return Vec::new();
    }
    let mut parts = vec![Vec::new(); usize::try_from(count).unwrap_or(0) + 1];
    for _ in 0..rng.between(1, 3) {
        let pays = Pays { groups: count + 1, ..pays };
        let mut groups = draw_frame(etpf, pays, config, rng);
        let swap = groups.pop();
        let mut frame = vec![Vec::new(); parts.len()];
        for (number, group) in groups.into_iter().enumerate() {
            // Each source has one at least.
            let part = if number < frame.len() - 1 { number + 1 } else { below(frame.len(), rng) };
            frame[part].push(group);
        }
        frame[0].extend(swap);
        for (part, groups) in parts.iter_mut().zip(frame) {
            part.extend(ended(groups));
        }
    }
    let mut parts = parts.into_iter();
    owner.work = Work::Recorded(parts.next().unwrap_or_default().into());
    let shares = |groups| follower(slot, Reservation::Shared(slot), None, groups, config);
    let mut sources: Vec<AppSpec> = parts.map(shares).collect();
    if rng.chance(200_000) {
        sources.push(too_long(etpf, slot, config, rng));
    }
    sources
}

/// A source none of whose groups fits into a frame.
fn too_long(etpf: Span, owner: AppId, config: &Config, rng: &mut Rng) -> AppSpec {
    let groups = (0..rng.between(1, 3)).map(|_| {
        let room = etpf + etpf.scaled(rng.below(500), 1000);
        let mut group = group_within(room, GroupKind::Swap, config, rng);
        while config.margins.conservative(Estimate::new(group.predicted.unwrap_or_default())) <= etpf {
            group.predicted = group.predicted.map(|predicted| predicted + Span::from_us(50));
        }
        group
    });
    let groups = groups.collect();
    let params = sharing(Reservation::Shared(owner), None);
    let mut source = app(String::new(), params, groups, config);
    source.pace = Pace::Unpaced;
    source
}

/// A server for jobs of several apps, each by its own clock.
fn share_server(owner: &mut AppSpec, slot: AppId, config: &Config, rng: &mut Rng) -> Vec<AppSpec> {
    let Some((period, parts)) = split(owner, config, rng) else {
        return Vec::new();
    };
    let mut sharers = Vec::new();
    for (number, groups) in parts.into_iter().enumerate() {
        let late = if rng.chance(500_000) { rounded(period.scaled(1, 4), config) } else { Span::ZERO };
        let offset = rounded(Span::from_ns(rng.between(0, period.as_ns())), config);
        let (pace, submit_delay) = (
            Pace::Periodic(Jobs { offset, period: period + late, deadline: period }),
            SpanRange { lo: Span::ZERO, hi: late },
        );
        let mut sharer;
        let app = if number == 0 {
            &mut *owner
        } else {
            sharer = app(String::new(), sharing(Reservation::Shared(slot), None), Vec::new(), config);
            &mut sharer
        };
        app.work = Work::Recorded(groups.into());
        (app.pace, app.submit_delay) = (pace, submit_delay);
        app.fps_mhz = rate_mhz(&app.params, pace, config);
        if number > 0 {
            sharers.push(app.clone());
        }
    }
    sharers
}

/// A consumer with one or more producers: all produce for it.
fn produce_for(consumer: &mut AppSpec, slot: AppId, config: &Config, rng: &mut Rng) -> Vec<AppSpec> {
    let Some((_, parts)) = split(consumer, config, rng) else {
        return Vec::new();
    };
    let mut parts = parts.into_iter();
    consumer.work = Work::Recorded(parts.next().unwrap_or_default().into());
    parts.map(|groups| follower(slot, Reservation::None, Some(slot), groups, config)).collect()
}

/// Cuts the budget of an app with a server into parts, with jobs that take as much; `None` if it is too small.
fn split(owner: &AppSpec, config: &Config, rng: &mut Rng) -> Option<(Span, Vec<Vec<RecordedGroup>>)> {
    let reserve = mixed::server(&owner.params)?;
    let pays = Pays::per_group(config);
    let least = least_group(pays, config);
    let count = rng.between(2, 4).min(reserve.budget.as_ns() / least.as_ns().max(1));
    if count < 2 {
        return None;
    }
    let jobs = rng.between(1, 3);
    // Where jobs come late, several wait at a time; all of their groups must fit into the queue of an app.
    let pays = Pays { groups_max: QUEUE_MAX as u64 / 6, ..pays };
    let mut left = reserve.budget.saturating_sub(least.times(count));
    let mut parts = Vec::new();
    for number in 1..=count {
        let part = rounded(Span::from_ns(rng.between(0, left.as_ns())), config);
        let extra = if number == count { left } else { part };
        left -= extra;
        let groups = (0..jobs).flat_map(|_| draw_frame(least + extra, pays, config, rng));
        parts.push(groups.collect());
    }
    Some((reserve.period, parts))
}

/// An app that begins its frames with those of another one.
fn follower(
    leader: AppId,
    reservation: Reservation,
    feeds: Option<AppId>,
    groups: Vec<RecordedGroup>,
    config: &Config,
) -> AppSpec {
    let mut source = app(String::new(), sharing(reservation, feeds), groups, config);
    source.pace = Pace::With(leader);
    source
}

fn sharing(reservation: Reservation, feeds: Option<AppId>) -> AppParams {
    AppParams { service: Service { reservation, feeds, ..Service::default() }, ..unimportant() }
}

/// A frame that ends with the last of these groups.
fn ended(mut groups: Vec<RecordedGroup>) -> Vec<RecordedGroup> {
    if let Some(last) = groups.last_mut() {
        last.kind = GroupKind::Swap;
    }
    groups
}

fn below(count: usize, rng: &mut Rng) -> usize {
    rng.below(u32::try_from(count).unwrap_or(u32::MAX)) as usize
}
