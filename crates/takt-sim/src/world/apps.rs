//! What apps do: they wake, submit groups, and end frames.

use takt_core::{Event, GroupId, GroupKind, Time};
use takt_trace::Observer;

use super::{APPS, World, slot};
use crate::client::State;

impl<O: Observer> World<'_, O> {
    /// An app does its next step.
    pub(super) fn wake(&mut self, index: usize) {
        let now = self.now;
        let client = &mut self.clients[index];
        if client.state == State::Waking {
            self.next[APPS + index] = client.start_frame(now);
            return;
        }
        self.submit(index);
    }

    /// An app is about to submit the first group of a frame: those that begin theirs with it do so, too.
    fn call_followers(&mut self, leader: usize) {
        if self.followers.is_empty() || !self.clients[leader].calls() {
            return;
        }
        for (_, follower) in self.followers.iter().filter(|(of, _)| *of == leader) {
            if let Some(at) = self.clients[*follower].call(self.now) {
                self.next[APPS + *follower] = at;
            }
        }
    }

    /// An app that begins frames with those of `leader`, and has more to submit at this instant.
    fn busy_follower(&self, leader: usize) -> Option<usize> {
        let mut followers = self.followers.iter().filter(|(of, _)| *of == leader);
        let (_, follower) = followers.find(|(_, follower)| self.next[APPS + follower] <= self.now)?;
        Some(*follower)
    }

    fn submit(&mut self, index: usize) {
        let Some(planned) = self.clients[index].next_planned() else {
            return self.stop(index);
        };
        self.call_followers(index);
        if planned.kind.ends_frame()
            && let Some(follower) = self.busy_follower(index)
        {
            return self.wake(follower);
        }
        // Where contexts have turns, as live GPUs do, a swap that shows nothing is no group (ADR 0041).
        if planned.is_idle_swap() && self.scenario.gpu.is_time_shared() {
            return self.end_frame(index);
        }
        let group = GroupId(self.groups);
        if self.scheduler.queue_room(slot(index)) == 0 {
            self.clients[index].block(self.now);
            self.next[APPS + index] = Time::NEVER;
            return;
        }
        self.groups += 1;
        // The plan advances first: the scheduler may dispatch the group at once.
        let client = &mut self.clients[index];
        let estimate = client.accepted(self.now, group, &planned);
        self.next[APPS + index] = match (planned.kind, client.next_submission()) {
            (GroupKind::Exit, _) => {
                client.state = State::Done;
                Time::NEVER
            }
            (GroupKind::Sync, _) => {
                client.state = State::Waiting(group, self.now);
                Time::NEVER
            }
            _ if client.spec().synchronous => {
                client.block(self.now);
                Time::NEVER
            }
            (_, Some(at)) => at.max(self.now),
            (_, None) => client.rest(self.now),
        };
        self.tell(Event::Submit { app: slot(index), group, kind: planned.kind, estimate });
    }

    /// The frame of an app ends without a group.
    fn end_frame(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if !self.scheduler.may_end_frame(slot(index)) {
            client.state = State::Ahead;
            self.next[APPS + index] = Time::NEVER;
            return;
        }
        self.next[APPS + index] = client.end_frame(self.now);
        self.tell(Event::EndFrame { app: slot(index) });
    }

    pub(super) fn stop(&mut self, index: usize) {
        self.clients[index].state = State::Done;
        self.next[APPS + index] = Time::NEVER;
    }
}
