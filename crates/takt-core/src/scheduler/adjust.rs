//! Parameters and estimates change while groups wait.

use super::Scheduler;

use crate::app::{AppId, GroupId};
use crate::config::Adjustable;
use crate::event::Refusal;
use crate::time::Estimate;

impl Scheduler {
    /// Other parameters from now on.
    pub(super) fn adjust(&mut self, adjustable: Adjustable) {
        self.surplus = self.slots();
        let recharges = self.config.divisible != adjustable.divisible;
        self.config = self.config.adjusted(adjustable);
        // Sums over waiting groups contain what each of them is delayed by.
        (0..self.lanes.len()).for_each(|index| self.account_again(index));
        self.protect();
        if recharges {
            (0..self.lanes.len()).for_each(|index| self.charge_anew(index));
        }
        // Deadlines are judged when all must have been heard, which is another time now.
        self.judge();
    }

    /// A waiting group takes another time, as far as is known.
    pub(super) fn revise(&mut self, app: AppId, group: GroupId, estimate: Estimate) {
        let Some(index) = self.lane_of(app) else {
            return self.refuse(app, Some(group), Refusal::UnknownApp);
        };
        let queue = &mut self.slots[app.index()].queue;
        let Some(waiting) = queue.find_mut(group) else {
            return self.refuse(app, Some(group), Refusal::UnknownGroup);
        };
        let (first, length) = (waiting.head.first, self.config.margins.conservative(estimate));
        waiting.head.length = length;
        waiting.head.optimistic = self.config.margins.optimistic(estimate);
        let booked = waiting.booked;
        let owner = self.slots[app.index()].kin.owner.filter(|_| booked);
        let framed = owner.and_then(|owner| self.slots[owner].lane).unwrap_or(index);
        let conservative = self.charged(framed, length, first);
        let queue = &mut self.slots[app.index()].queue;
        if let Some(waiting) = queue.find_mut(group) {
            waiting.head.conservative = conservative;
        }
        let head = queue.front().map(|front| front.head);
        self.set_head(index, head);
        self.settle_heads(index);
        let lane = &mut self.lanes[framed];
        // Its target may have moved on because it was said to be longer.
        lane.target = lane.due.max(lane.period_at(self.now));
        self.account_again(index);
        if framed != index {
            self.account_again(framed);
        }
    }

    /// Sums up the front frame of the lane at `index` anew.
    pub(super) fn account_again(&mut self, index: usize) {
        let ledger = self.front_ledger(index);
        let lane = &mut self.lanes[index];
        lane.front = ledger.after(lane.front.dispatched);
    }
}
