//! Parameters change while groups wait and run.

use super::Scheduler;

use crate::config::Adjustable;

impl Scheduler {
    /// Other parameters from now on.
    pub(super) fn adjust(&mut self, adjustable: Adjustable) {
        self.surplus = self.places();
        self.config = self.config.adjusted(adjustable);
        // Sums over waiting groups contain what each of them is delayed by.
        let per_group = self.config.margins.per_group(self.config.mpcg);
        for lane in &mut self.lanes {
            let queue = &self.slots[lane.app.index()].queue;
            lane.front = queue.front_ledger(per_group).after(lane.front.dispatched);
        }
        // Deadlines are judged when all must have been heard, which is another time now.
        self.judge();
    }
}
