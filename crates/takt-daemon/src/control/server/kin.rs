//! What apps mean to each other: they find those whose contract they take part in, and all are charged for work that
//! the GPU interrupts while an app with such work is there.

use takt_core::{Adjustable, AppId};
use takt_ipc::message::{Hello, TimeSlices};

use super::Server;
use crate::control::identity::Identity;
use crate::control::members::Member;
use crate::control::terms::Terms;
use crate::rt::queues::Order;

impl Server {
    /// An app comes whose work the GPU interrupts, or may have gone: charges all others for it, or no more.
    pub(super) fn divide(&mut self, comes: bool) {
        for app in self.members.redivide(&self.settings) {
            let Some(member) = self.members.get(app) else { continue };
            let params = member.params;
            self.order(Order::Change { app, params });
        }
        let (drivers, given) = (self.settings.divisible, self.settings.given_slices);
        let turns = || self.members.turns(drivers, given, comes);
        let divisible = (comes || self.members.divide()).then(turns);
        if divisible != self.adjustable.divisible {
            self.adjust(Adjustable { divisible, ..self.adjustable });
            // Servers reserve what the GPU adds to their work.
            self.link();
        }
    }

    /// That client is about to come.
    pub(super) fn divide_for(&mut self, hello: &Hello, who: &Identity) {
        let may = self.members.may_divide(self.settings.domains.of(who), &self.settings);
        self.divide(hello.divisible && may);
    }

    /// A client says which time slices its contexts have: all are charged by that.
    pub(super) fn has_slices(&mut self, app: AppId, slices: TimeSlices) {
        self.members.has_slices(app, slices);
        self.renew_limits();
    }

    /// A client has work: if it is of an app whose contract a process without any has, it gets that.
    pub(super) fn works(&mut self, app: AppId) {
        let Some(holder) = self.members.works(app) else { return };
        let priority = |app| self.members.get(app).map(Member::priority);
        let (Some(its), Some(others)) = (priority(holder), priority(app)) else { return };
        let client = self.members.get(app).map(Member::client);
        let settings = self.current();
        let spare = client.and_then(|client| self.members.unused_priority(&client, others, &settings));
        self.members.set_holds(holder, false);
        self.members.set_holds(app, true);
        self.renew_kin(holder, spare);
        self.renew_kin(app, Some(its));
        self.renew_kin(holder, Some(others));
        self.link();
    }

    /// Gives a member the terms that its part in its family allows, with that priority.
    fn renew_kin(&mut self, app: AppId, priority: Option<u32>) {
        let settings = self.current();
        let member = self.members.get(app);
        let granted = member.and_then(|member| self.members.granted_again(member, &settings).ok());
        let Some((decision, terms)) = granted else { return };
        self.members.decided_again(app, &decision);
        // What is not possible leaves the member as it is.
        let _stays = self.change(app, Terms { priority: priority.or(terms.priority), ..terms });
    }

    /// Apps whose process with the contract went give it to another one.
    fn inherit(&mut self) {
        for app in self.members.heirs() {
            self.members.set_holds(app, true);
            self.renew_kin(app, None);
        }
    }

    /// Apps came, went, or changed: those that take part in contracts of others have the ones that are there now.
    pub(super) fn link(&mut self) {
        self.inherit();
        let linked: Vec<AppId> = self.members.link(&self.current());
        for app in linked {
            let Some(member) = self.members.get(app) else { continue };
            let (params, standing, uncut) = (member.params, member.standing(), member.uncut);
            let max_slice = member.slice_now.unwrap_or(member.max_slice);
            self.order(Order::Change { app, params });
            self.order(Order::Limit { app, max_slice, standing, uncut });
        }
        self.find_shares();
    }
}
