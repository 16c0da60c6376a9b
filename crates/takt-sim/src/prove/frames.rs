//! Frames and jobs of a given length, cut into groups.

use takt_core::{AppParams, Charge, Config, Estimate, GroupKind, Span};

use super::draw::{grain, is_round, rounded};
use crate::model::RecordedGroup;
use crate::rng::Rng;

/// What frames and their groups pay besides their length.
#[derive(Clone, Copy)]
pub(super) struct Pays {
    pub(super) frame: Span,
    pub(super) group: Span,
    /// What of that counts as the length of a group, which is limited.
    pub(super) lengthens: Span,
    /// Groups that there are at least, and at most.
    pub(super) groups: u64,
    pub(super) groups_max: u64,
}

/// Groups of a frame at most.
const GROUPS_MAX: u64 = 40;

impl Pays {
    pub(super) fn per_frame(params: &AppParams, config: &Config) -> Self {
        let enters = config.gpu.switches(Span::ZERO, Charge::Enters);
        let gaps = params.service.gaps;
        let gaps = config.per_gap(gaps).times(gaps.count.into());
        let (frame, group) = (config.per_frame() + enters + gaps, config.per_group());
        Self { frame, group, lengthens: enters, groups: 1, groups_max: GROUPS_MAX }
    }

    /// Each group of a server pays as if it came alone.
    pub(super) fn per_group(config: &Config) -> Self {
        let enters = config.gpu.switches(Span::ZERO, Charge::Enters);
        let group = config.per_arrival() + enters;
        Self { frame: Span::ZERO, group, lengthens: enters, groups: 1, groups_max: GROUPS_MAX }
    }

    /// Where contexts take turns, so does each group of a frame of several sources.
    pub(super) fn per_source(config: &Config) -> Self {
        let (lengthens, frame) = (config.per_source(), config.per_frame());
        let group = config.per_group() + lengthens;
        Self { frame, group, lengthens, groups: 1, groups_max: GROUPS_MAX }
    }
}

/// The least that a group takes, with what it pays.
pub(super) fn least_group(pays: Pays, config: &Config) -> Span {
    let least = config.conservative(Estimate::default(), Charge::Stays) + pays.group + Span::from_ns(2);
    least.max(grain(config))
}

/// A frame that uses at most `etpf`, all that it pays included, and mostly all of it.
pub(super) fn draw_frame(etpf: Span, pays: Pays, config: &Config, rng: &mut Rng) -> Vec<RecordedGroup> {
    let per_group = pays.group;
    let budget = etpf.saturating_sub(pays.frame);
    let least = least_group(pays, config).min(budget);
    let most = (budget.as_ns() / least.as_ns().max(1)).clamp(1, pays.groups_max);
    let count = match rng.between(0, 3) {
        0 => 1,
        1 => most,
        _ => rng.between(1, most.min(6)),
    };
    let longest = config.longest_group().saturating_sub(pays.lengthens) + per_group;
    let count = count.max(pays.groups).max((budget.as_ns() / longest.as_ns().max(1) + 1).min(most));
    let mut left = budget.saturating_sub(least.times(count));
    let mut groups = Vec::new();
    for number in 1..=count {
        let last = number == count;
        let part = rounded(Span::from_ns(rng.between(0, left.as_ns() / 2)), config);
        let extra = if last { left } else { part };
        left -= extra;
        let room = (least + extra).min(longest);
        let kind = if last { GroupKind::Swap } else { GroupKind::Draw };
        groups.push(group_within(room.saturating_sub(per_group), kind, config, rng));
    }
    groups
}

/// A group whose conservative prediction, with the turns of divisible work, is at most `room`, and that takes all of
/// it or less.
pub(super) fn group_within(room: Span, kind: GroupKind, config: &Config, rng: &mut Rng) -> RecordedGroup {
    let margins = &config.margins;
    let room = without_delay(room, config);
    let mut predicted = room.scaled(1000, margins.upper_permille).saturating_sub(margins.fixed);
    while margins.conservative(Estimate::new(predicted)) > room && predicted > Span::ZERO {
        predicted = predicted.saturating_sub(Span::from_ns(1));
    }
    let longest = margins.conservative(Estimate::new(predicted)).min(room);
    let cost = match rng.between(0, 2) {
        0 if !is_round(config) => {
            Span::from_ns(rng.between(margins.group_min.as_ns().min(longest.as_ns()), longest.as_ns()))
        }
        _ => longest,
    };
    RecordedGroup { delay: Span::ZERO, kind, cost, predicted: Some(predicted), make: Span::ZERO }
}

/// The longest group that takes `room` at most with the turns of divisible work.
fn without_delay(room: Span, config: &Config) -> Span {
    let (mut fits, mut too_long) = (0, room.as_ns() + 1);
    while config.divisible.is_some() && too_long - fits > 1 {
        let length = Span::from_ns(fits + (too_long - fits) / 2);
        let part = if length + config.delay(length) <= room { &mut fits } else { &mut too_long };
        *part = length.as_ns();
    }
    if config.divisible.is_some() { Span::from_ns(fits) } else { room }
}
