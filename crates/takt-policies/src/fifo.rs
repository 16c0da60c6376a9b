//! `fifo`: submission order, what a driver does on its own.
//!
//! * **Rule.** The group that was submitted first goes first, of all apps.
//! * **Promises.** Nothing: a single long group delays all apps behind it.
//! * **Assumptions.** None; predictions, priorities and rates play no role.
//! * **Source.** What drivers do with the queues of several apps on their own; "no scheduling" in
//!   FG-SDS and TimeGraph.
//! * **Cost.** One pass over the apps; no allocation.

use takt_core::event::Hold;
use takt_core::policy::{Context, Policy};
use takt_core::scheduler::Lane;

/// Submission order.
#[derive(Copy, Clone, Default, Debug)]
pub struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn choose(&mut self, _context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let waiting = lanes.iter().enumerate();
        let (first, _) = waiting
            .filter_map(|(index, lane)| lane.head.map(|head| (index, head.order)))
            .min_by_key(|(_, order)| *order)?;
        let app = lanes[first].app;
        for lane in lanes.iter_mut().filter(|lane| lane.head.is_some()) {
            lane.hold = Some(Hold::Behind { app });
        }
        Some(first)
    }
}
