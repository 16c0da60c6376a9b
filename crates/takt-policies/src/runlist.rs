//! `runlist`: what the host of an NVIDIA GPU does with its channels.
//!
//! * **Rule.** Each app has a channel. The entries of a [runlist](crate::channels) are served in
//!   turn, each until its channel drains or its timeslice ends; work that comes when a channel has
//!   just drained waits for its next turn. Without rivals the next timeslice begins at once.
//! * **Promises.** A bound on the response time of channels of the highest level, see
//!   `takt_analysis::runlist`.
//! * **Assumptions.** Only the app whose turn it is has groups in flight. At the end of a
//!   timeslice they are taken back where the GPU can do that. Otherwise, and of apps that cannot
//!   be interrupted, the groups that were to begin within the timeslice run to their ends.
//!   A GPU with an order of its own is taken to have a runlist: its channels are kept filled, and
//!   none gets more than its share of the groups in flight, so that each finds room.
//! * **Source.** HERCULES D5.2, section 2.1.1 and appendix.
//! * **Cost.** Two passes over the apps per decision; positions in the list take no memory;
//!   no allocation.

use alloc::vec::Vec;
use core::cmp::Reverse;

use takt_core::app::AppId;
use takt_core::config::{Config, Tuning};
use takt_core::event::Hold;
use takt_core::policy::{Context, Ended, Policy};
use takt_core::scheduler::Lane;
use takt_core::time::Time;

/// Turns by a runlist, with timeslices.
#[derive(Clone, Default, Debug)]
pub struct Runlist {
    list: crate::channels::Channels,
    /// Where the lane of each app is, by slot number.
    lane_of: Vec<usize>,
    turn: Option<Turn>,
    tuning: Tuning,
}

/// An entry of the list that is being served.
#[derive(Copy, Clone, Debug)]
struct Turn {
    app: AppId,
    /// When its timeslice ends.
    ends: Time,
    /// Whether its groups can be taken back then.
    interruptible: bool,
}

impl Runlist {
    /// No app has the turn yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether another app waits for the end of this turn.
    fn has_rivals(turn: &Turn, lanes: &[Lane]) -> bool {
        lanes.iter().any(|lane| lane.head.is_some() && lane.app != turn.app)
    }

    /// Lets the next timeslice of the turn begin if this one is over and no other app waits; says
    /// whether the turn goes on.
    fn goes_on(&mut self, now: Time, begins: Time, lanes: &[Lane]) -> bool {
        let Some(turn) = &mut self.turn else {
            return false;
        };
        if begins >= turn.ends && !Self::has_rivals(turn, lanes) {
            let service = &lanes[self.lane_of[turn.app.index()]].service;
            turn.ends = now.max(turn.ends) + service.timeslice_or(self.tuning.timeslice);
        }
        begins < turn.ends
    }

    /// The lane whose turn it is, and which may dispatch.
    fn next(&mut self, context: &Context, lanes: &[Lane]) -> Option<usize> {
        let goes_on = self.goes_on(context.now, context.free_o, lanes);
        if let Some(turn) = self.turn {
            let lane = self.lane_of[turn.app.index()];
            if goes_on && lanes[lane].head.is_some() {
                return Some(lane);
            }
            if lanes[lane].in_flight > 0 {
                return None;
            }
        }
        let lane_of = &self.lane_of;
        let app = self.list.advance(|app| lanes[lane_of[app.index()]].head.is_some())?;
        let lane = lane_of[app.index()];
        let service = &lanes[lane].service;
        let ends = context.ready_o + service.timeslice_or(self.tuning.timeslice);
        let interruptible = context.config.gpu.gives_back() && !service.uninterruptible;
        self.turn = Some(Turn { app, ends, interruptible });
        Some(lane)
    }
}

impl Policy for Runlist {
    fn name(&self) -> &'static str {
        "runlist"
    }

    fn prepare(&mut self, config: &Config) {
        let apps = config.apps_max as usize;
        self.list = crate::channels::Channels::with_capacity(apps);
        self.lane_of = Vec::with_capacity(apps);
        self.lane_of.resize(apps, 0);
        self.turn = None;
        self.tuning = config.tuning;
    }

    fn apps_changed(&mut self, _now: Time, lanes: &[Lane]) {
        for (index, lane) in lanes.iter().enumerate() {
            self.lane_of[lane.app.index()] = index;
        }
        self.list.replace(lanes.iter().map(|lane| (lane.app, lane.service.level)));
        self.turn = self.turn.and_then(|turn| {
            let lane = lanes.iter().find(|lane| lane.app == turn.app)?;
            Some(Turn { interruptible: turn.interruptible && !lane.service.uninterruptible, ..turn })
        });
    }

    fn ended(&mut self, _now: Time, _ended: &Ended, lane: &Lane) {
        if lane.in_flight == 0 && lane.head.is_none() && self.turn.is_some_and(|turn| turn.app == lane.app) {
            self.turn = None;
        }
    }

    fn preempts(&mut self, context: &Context, lanes: &[Lane], running: usize) -> bool {
        // Groups of others, dispatched under another policy, are left alone.
        self.turn.is_some_and(|turn| turn.app == lanes[running].app)
            && !self.goes_on(context.now, context.now, lanes)
    }

    fn timeout(&self) -> Option<Time> {
        self.turn.filter(|turn| turn.interruptible).map(|turn| turn.ends)
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        // A GPU that takes turns has the list itself; it only needs to be kept filled.
        let takes_turns = context.config.gpu.serves_all_in_turn();
        let chosen = if takes_turns { fill(context, lanes) } else { self.next(context, lanes) };
        for lane in lanes.iter_mut().filter(|lane| lane.head.is_some()) {
            lane.hold = match self.turn {
                Some(Turn { app, .. }) if app != lane.app => Some(Hold::Turn { app }),
                _ => Some(Hold::NoSlot),
            };
        }
        chosen
    }
}

/// The channel with the least work on the GPU, if it has room left.
fn fill(context: &Context, lanes: &[Lane]) -> Option<usize> {
    let share = context.config.mpcg / u32::try_from(lanes.len().max(1)).unwrap_or(u32::MAX);
    let waiting = lanes.iter().enumerate().filter(|(_, lane)| lane.head.is_some());
    let with_room = waiting.filter(|(_, lane)| lane.in_flight < share.max(1));
    with_room.min_by_key(|(_, lane)| (lane.in_flight, Reverse(lane.service.level))).map(|(index, _)| index)
}
