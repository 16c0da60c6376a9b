//! Which apps are protected: the longest prefix, by importance, whose contracts pass the offline test; and which
//! apps have divisible work.

use super::Scheduler;
use super::lane::Lane;

use crate::contract;
use crate::service::Reservation;

impl Scheduler {
    /// Finds the protected apps anew, after any change of apps, parameters or displays.
    pub(super) fn protect(&mut self) {
        self.divide();
        self.claims.clear();
        // An app whose contract is new is not protected while divisible work of it is on the GPU.
        let has_contract = |lane: &Lane| contract::has_contract(&lane.params()) && !lane.divisible;
        for lane in self.lanes.iter().filter(|lane| has_contract(lane)).map(Lane::params) {
            self.claims.push(contract::claim(&lane, &self.config));
        }
        let covered = contract::covered_in(&self.claims, &self.config, &mut self.workspace);
        let mut left = covered;
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let counts = has_contract(lane);
            let before = core::mem::replace(&mut lane.protected, counts && left > 0);
            left -= usize::from(lane.protected);
            if lane.protected != before {
                self.charge_again(index);
            }
        }
        for index in 0..self.lanes.len() {
            let hosted = self.is_hosted(index);
            if core::mem::replace(&mut self.lanes[index].hosted, hosted) != hosted {
                self.charge_again(index);
            }
        }
    }

    /// Whether the lane at `index` shares the protected server of another app, or feeds one, be it through others.
    fn is_hosted(&self, index: usize) -> bool {
        let serves = |lane: &Lane| lane.protected && !lane.has_budget();
        let owner = |lane: &Lane| match lane.service.reservation {
            Reservation::Shared(owner) => self.lane_of(owner).map(|index| &self.lanes[index]),
            _ => None,
        };
        let lane = &self.lanes[index];
        if lane.protected || lane.has_budget() {
            return false;
        }
        let next = |lane: &&Lane| Some(&self.lanes[self.lane_of(lane.service.feeds?)?]);
        let consumers = core::iter::successors(next(&lane), next).take(self.lanes.len());
        owner(lane).is_some_and(serves)
            || consumers.into_iter().any(|consumer| serves(consumer) || owner(consumer).is_some_and(serves))
    }

    /// Finds out which apps have divisible work. Groups of one app run in order, so none of the one kind may be
    /// behind one of the other.
    pub(super) fn divide(&mut self) {
        for index in 0..self.lanes.len() {
            if self.lanes[index].in_flight == 0 {
                self.lanes[index].divisible = self.divides(index);
            }
        }
    }

    /// Whether the next groups of the lane at `index` are to be divisible work.
    pub(super) fn divides(&self, index: usize) -> bool {
        self.policy.divides() && contract::is_divisible(&self.lanes[index].params(), &self.config)
    }
}
