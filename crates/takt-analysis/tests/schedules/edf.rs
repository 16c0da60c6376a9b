//! Earliest deadline first on one GPU; ties go to the lower index.

use takt_analysis::edf_response::Preemption;
use takt_analysis::task::{Task, Ticks};

use super::Rng;

struct Job {
    deadline: Ticks,
    task: usize,
    release: Ticks,
    left: Ticks,
}

pub(crate) struct Machine<'a> {
    pub(crate) tasks: &'a [Task],
    pub(crate) preemption: Preemption,
    /// Cost of running another job than the last one. It cannot be preempted.
    pub(crate) switch: Ticks,
    /// Whether jobs may need less than their longest time.
    pub(crate) shorter: bool,
}

impl Machine<'_> {
    /// Plays all releases to their ends; returns the worst response of each task.
    pub(crate) fn worst_responses(&self, releases: &[Vec<Ticks>], rng: &mut Rng) -> Vec<Ticks> {
        let mut pending: Vec<(Ticks, usize)> = Vec::new();
        for (task, times) in releases.iter().enumerate() {
            pending.extend(times.iter().map(|time| (*time, task)));
        }
        pending.sort_unstable();
        let mut pending = pending.into_iter().peekable();
        let mut worst = vec![0; self.tasks.len()];
        let mut ready: Vec<Job> = Vec::new();
        let (mut now, mut last) = (0, None);
        loop {
            while let Some((release, task)) = pending.next_if(|(release, _)| *release <= now) {
                let wcet = self.tasks[task].wcet();
                let left = if self.shorter { rng.between(1, wcet) } else { wcet };
                ready.push(Job { deadline: release + self.tasks[task].deadline(), task, release, left });
            }
            let Some(job) = ready.iter_mut().min_by_key(|job| (job.deadline, job.task, job.release)) else {
                match pending.peek() {
                    Some((release, _)) => now = *release,
                    None => return worst,
                }
                continue;
            };
            let this = Some((job.task, job.release));
            if last != this {
                last = this;
                now += self.switch;
                if self.switch > 0 && self.preemption == Preemption::Anywhere {
                    // A more urgent job may have come meanwhile.
                    continue;
                }
            }
            let next = pending.peek().map_or(Ticks::MAX, |(release, _)| *release);
            let length = match self.preemption {
                Preemption::Anywhere => job.left.min(next.saturating_sub(now).max(1)),
                Preemption::Segments(length) => job.left.min(length),
                Preemption::Pieces(length) => rng.between(1, job.left.min(length)),
                Preemption::Nowhere => job.left,
            };
            now += length;
            job.left -= length;
            if job.left == 0 {
                worst[job.task] = worst[job.task].max(now - job.release);
                ready.retain(|job| job.left > 0);
            }
        }
    }
}
