//! `frrs`: no arbitration; each app sleeps to its own frame rate.
//!
//! * **Rules.** Groups go in submission order. After a frame an app waits until a period of its
//!   frame rate has passed since it started that frame; if that is over, it goes on at once, and
//!   counts from there. Starts are not tied to the refresh of the display.
//! * **Promises.** No app exceeds its rate. While all demands fit into the GPU, that is enough for
//!   all; beyond that the longest frames set the pace of all.
//! * **Assumptions.** Apps keep to their release; an app that draws before its release has no rate.
//!   Predictions and priorities play no role.
//! * **Source.** Tanveer 2013 (FG-SDS), section 6.4: *frame rate restricted scheduling*. The other
//!   baseline there, no scheduling at all, is `fifo` with apps that do not wait (`unpaced`).
//! * **Cost.** One pass over the apps; no allocation.

use alloc::vec;
use alloc::vec::Vec;

use takt_core::policy::{Context, Policy};

use crate::Fifo;
use takt_core::app::Stride;
use takt_core::config::Config;
use takt_core::refresh::{Period, Refresh};
use takt_core::scheduler::Lane;
use takt_core::time::Time;

/// Submission order with frame rates.
#[derive(Clone, Default, Debug)]
pub struct Frrs {
    /// When the app of a slot was allowed to start its frame, and at which rate.
    started: Vec<Option<(Time, Stride)>>,
}

impl Policy for Frrs {
    fn name(&self) -> &'static str {
        "frrs"
    }

    fn prepare(&mut self, config: &Config) {
        self.started = vec![None; config.apps_max as usize];
    }

    fn apps_changed(&mut self, _now: Time, lanes: &[Lane]) {
        for (slot, started) in self.started.iter_mut().enumerate() {
            // With another rate, or another app, the count begins anew.
            let same = |stride| lanes.iter().any(|lane| lane.app.index() == slot && lane.stride == stride);
            *started = started.filter(|(_, stride)| same(*stride));
        }
    }

    fn release(&mut self, now: Time, lane: &Lane, planned: Time, refresh: &Refresh) -> Time {
        let started = &mut self.started[lane.app.index()];
        let period = refresh.start(Period(lane.stride.periods())).since(refresh.start(Period(0)));
        let at = started.map_or(planned, |(at, _)| (at + period).max(now));
        *started = Some((at, lane.stride));
        at
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        Fifo.choose(context, lanes)
    }
}
