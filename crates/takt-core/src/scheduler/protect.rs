//! Which apps are protected: the longest prefix, by importance, whose contracts pass the offline test.

use super::Scheduler;
use super::lane::Lane;

use crate::app::AppParams;
use crate::contract;

impl Scheduler {
    /// Finds the protected apps anew, after any change of apps, parameters or displays.
    pub(super) fn protect(&mut self) {
        self.claims.clear();
        let has_contract = |lane: &&mut Lane| contract::has_contract(&params(lane));
        for lane in self.lanes.iter().map(params).filter(contract::has_contract) {
            self.claims.push(contract::claim(&lane, &self.config));
        }
        let covered = contract::covered_in(&self.claims, &self.config, &mut self.workspace);
        self.lanes.iter_mut().for_each(|lane| lane.protected = false);
        for lane in self.lanes.iter_mut().filter(has_contract).take(covered) {
            lane.protected = true;
        }
    }
}

fn params(lane: &Lane) -> AppParams {
    let Lane { priority, stride, etpf, clock, service, .. } = *lane;
    AppParams { priority, stride, etpf, clock, service }
}
