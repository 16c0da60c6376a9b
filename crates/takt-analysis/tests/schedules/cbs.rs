//! Constant bandwidth servers, tick by tick.

use std::collections::VecDeque;

use takt_analysis::cbs::Server;
use takt_analysis::task::Ticks;

/// What happens when a budget is exhausted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The deadline moves at once.
    Soft,
    /// The server waits for its deadline.
    Hard,
}

struct State {
    server: Server,
    budget: Ticks,
    deadline: Ticks,
    exhausted: bool,
    arrivals: VecDeque<(Ticks, Ticks)>,
    queue: VecDeque<(Ticks, Ticks)>,
}

impl State {
    fn arrive(&mut self, now: Ticks) {
        while let Some(job) = self.arrivals.pop_front_if(|(at, _)| *at <= now) {
            let left = self.deadline.saturating_sub(now);
            if self.queue.is_empty() && self.budget * self.server.period() >= left * self.server.budget() {
                self.deadline = now + self.server.period();
                self.budget = self.server.budget();
                self.exhausted = false;
            }
            self.queue.push_back(job);
        }
        if self.exhausted && now >= self.deadline {
            self.recharge();
        }
    }

    fn recharge(&mut self) {
        self.deadline += self.server.period();
        self.budget = self.server.budget();
        self.exhausted = false;
    }
}

/// Plays the jobs (arrival, cost) of each server; returns the worst response of each.
pub(crate) fn worst_responses(servers: &[Server], jobs: &[Vec<(Ticks, Ticks)>], kind: Kind) -> Vec<Ticks> {
    let state = |(server, jobs): (&Server, &Vec<(Ticks, Ticks)>)| State {
        server: *server,
        budget: 0,
        deadline: 0,
        exhausted: false,
        arrivals: jobs.iter().copied().collect(),
        queue: VecDeque::new(),
    };
    let mut states: Vec<State> = servers.iter().zip(jobs).map(state).collect();
    let mut worst = vec![0; servers.len()];
    let mut now = 0;
    // Ties go to the server whose job was interrupted by nothing.
    let mut running = usize::MAX;
    while states.iter().any(|state| !state.arrivals.is_empty() || !state.queue.is_empty()) {
        states.iter_mut().for_each(|state| state.arrive(now));
        now += 1;
        let ready =
            states.iter_mut().enumerate().filter(|(_, state)| !state.queue.is_empty() && !state.exhausted);
        let Some((index, state)) =
            ready.min_by_key(|(index, state)| (state.deadline, *index != running, *index))
        else {
            continue;
        };
        running = index;
        state.budget -= 1;
        if let Some((arrival, left)) = state.queue.front_mut() {
            *left -= 1;
            if *left == 0 {
                worst[index] = worst[index].max(now - *arrival);
                state.queue.pop_front();
                running = usize::MAX;
            }
        }
        match kind {
            _ if state.budget > 0 => {}
            Kind::Soft => state.recharge(),
            Kind::Hard => {
                state.exhausted = true;
                if now < state.deadline {
                    running = usize::MAX;
                }
            }
        }
    }
    worst
}
