//! A GPU that executes dispatched groups, and what a scheduler may believe about it.

use crate::Rng;

/// How the GPU picks among the groups that it has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Picks {
    InOrder,
    /// What is due last first.
    LatestDue,
    /// The same, but all that can end at once ends at once, as late as possible.
    Together,
    Random,
}

/// Delays in ticks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Delays {
    pub(crate) dispatch: u64,
    pub(crate) completion: u64,
    pub(crate) slice: u64,
    pub(crate) switch: u64,
    pub(crate) group_min: u64,
    pub(crate) in_flight: u64,
}

impl Delays {
    pub(crate) fn turnaround(&self) -> u64 {
        self.dispatch + self.completion
    }

    /// A group with its switches.
    pub(crate) fn inflated(&self, length: u64) -> u64 {
        length + length.div_ceil(self.slice) * self.switch
    }

    pub(crate) fn per_group(&self) -> u64 {
        self.turnaround().saturating_sub((self.in_flight - 1) * self.group_min)
    }
}

/// A group that was dispatched and whose end was not reported yet.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Claim and frame; `None` for best effort.
    pub(crate) owner: Option<(usize, u64)>,
    pub(crate) due: u64,
    arrives: u64,
    /// Believed length, and what is left of the true one.
    inflated: u64,
    left: u64,
    ended: Option<u64>,
}

pub(crate) struct Gpu {
    pub(crate) delays: Delays,
    picks: Picks,
    pub(crate) groups: Vec<Running>,
    /// Everything in flight is over by then.
    over: u64,
}

impl Gpu {
    pub(crate) fn new(delays: Delays, picks: Picks) -> Self {
        Self { delays, picks, groups: Vec::new(), over: 0 }
    }

    /// When everything would be over if a group of this length were dispatched now.
    pub(crate) fn over_with(&self, now: u64, length: u64) -> u64 {
        self.over.max(now + self.delays.dispatch) + self.delays.inflated(length)
    }

    /// When everything in flight is over.
    pub(crate) fn over(&self, now: u64) -> u64 {
        self.over.max(now)
    }

    /// Best effort takes no places from those with a promise.
    pub(crate) fn has_slot(&self, promised: bool) -> bool {
        let counts = |group: &&Running| !promised || group.owner.is_some();
        (self.groups.iter().filter(counts).count() as u64) < self.delays.in_flight
    }

    pub(crate) fn dispatch(
        &mut self,
        now: u64,
        length: u64,
        owner: Option<(usize, u64)>,
        due: u64,
        rng: &mut Rng,
    ) {
        self.over = self.over_with(now, length);
        let inflated = self.delays.inflated(length);
        let left = if rng.percent(85) { inflated } else { rng.between(1, inflated) };
        let arrives = now + if rng.percent(80) { self.delays.dispatch } else { 0 };
        self.groups.push(Running { owner, due, arrives, inflated, left, ended: None });
    }

    /// Executes one tick. Returns what ended, truly, at `now + 1`.
    pub(crate) fn tick(&mut self, now: u64, rng: &mut Rng) -> Option<Running> {
        let groups = &self.groups;
        let here = |index: &usize| groups[*index].arrives <= now && groups[*index].ended.is_none();
        // Groups of one app run in order.
        let app = |index: usize| groups[index].owner.map(|(app, _)| app);
        let follows = |index: usize| (0..index).any(|before| here(&before) && app(before) == app(index));
        let all: Vec<usize> = (0..groups.len()).filter(here).filter(|index| !follows(*index)).collect();
        let index = match self.picks {
            Picks::InOrder => all.first().copied(),
            Picks::LatestDue => all.iter().copied().max_by_key(|index| groups[*index].due),
            Picks::Together => {
                all.iter().copied().max_by_key(|index| (groups[*index].left > 1, groups[*index].due))
            }
            Picks::Random if all.is_empty() => None,
            Picks::Random => Some(all[usize::try_from(rng.between(0, all.len() as u64 - 1)).expect("small")]),
        }?;
        let group = &mut self.groups[index];
        group.left -= 1;
        if group.left > 0 {
            return None;
        }
        group.ended = Some(now + 1);
        Some(group.clone())
    }

    /// Forgets what the scheduler has heard of by now.
    pub(crate) fn hear(&mut self, now: u64) {
        let delay = self.delays.completion;
        let before = self.groups.len();
        self.groups.retain(|group| group.ended.is_none_or(|ended| ended + delay > now));
        if self.groups.len() < before {
            let mut over = now;
            for group in &self.groups {
                over = over.max(group.arrives) + group.inflated;
            }
            self.over = self.over.min(over);
        }
    }
}
