//! A runlist whose highest level has one channel per task, with one busy channel below.

use std::collections::VecDeque;

use takt_analysis::runlist::Runlist;
use takt_analysis::task::{Task, Ticks};

use super::Rng;

/// Plays all releases to their ends; returns the worst response of each task.
pub(crate) fn worst_responses(
    tasks: &[Task],
    runlist: &Runlist,
    releases: &[Vec<Ticks>],
    rng: &mut Rng,
) -> Vec<Ticks> {
    let mut pending: Vec<VecDeque<Ticks>> =
        releases.iter().map(|times| times.iter().copied().collect()).collect();
    let mut rest = vec![0; tasks.len()];
    let mut worst = vec![0; tasks.len()];
    let (mut now, mut last) = (0, usize::MAX);
    let mut entry = 0;
    while let Some(next) = pending.iter().filter_map(|times| times.front()).min() {
        if *next > now && runlist.lower_slice == 0 {
            // The host polls idle channels for ever and may be anywhere.
            now = *next;
            entry = usize::try_from(rng.between(0, tasks.len() as u64)).expect("small");
        }
        let channel = entry % (tasks.len() + 1);
        entry = channel + 1;
        if channel == tasks.len() {
            now += if runlist.lower_slice > 0 { runlist.switch + runlist.lower_slice } else { 0 };
            last = channel;
            continue;
        }
        if pending[channel].front().is_none_or(|release| *release > now) {
            continue;
        }
        if last != channel {
            now += runlist.switch;
            last = channel;
        }
        let mut slice = runlist.slice;
        // What arrives at the very moment when the channel drains waits for its next entry.
        let mut released = now + 1;
        while slice > 0
            && let Some(release) = pending[channel].front().copied().filter(|release| *release < released)
        {
            if rest[channel] == 0 {
                rest[channel] = tasks[channel].wcet();
            }
            let ran = slice.min(rest[channel]);
            now += ran;
            slice -= ran;
            rest[channel] -= ran;
            released = now;
            if rest[channel] == 0 {
                worst[channel] = worst[channel].max(now - release);
                pending[channel].pop_front();
            }
        }
    }
    worst
}
