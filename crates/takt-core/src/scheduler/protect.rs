//! Which apps are protected: the longest prefix, by importance, whose contracts pass the offline test.

use super::Scheduler;
use super::lane::Lane;

use crate::app::AppParams;
use crate::contract;

impl Scheduler {
    /// Finds the protected apps anew, after any change of apps, parameters or displays.
    pub(super) fn protect(&mut self) {
        self.claims.clear();
        for lane in self.lanes.iter().map(params).filter(contract::has_contract) {
            self.claims.push(contract::claim(&lane, &self.config));
        }
        let covered = contract::covered_in(&self.claims, &self.config, &mut self.workspace);
        let mut left = covered;
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let counts = contract::has_contract(&params(lane));
            let before = core::mem::replace(&mut lane.protected, counts && left > 0);
            left -= usize::from(lane.protected);
            if lane.protected != before {
                self.charge_again(index);
            }
        }
    }
}

fn params(lane: &Lane) -> AppParams {
    let Lane { priority, stride, etpf, clock, service, .. } = *lane;
    AppParams { priority, stride, etpf, clock, service }
}
