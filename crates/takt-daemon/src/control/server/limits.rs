//! Limits that follow the apps: whenever one comes, goes or changes, they are found anew.

use takt_core::{AppId, Span};

use super::Server;
use crate::control::limits;
use crate::rt::queues::Order;

impl Server {
    /// Apps came, went or have other terms: gives the core the limits that follow, and apps the length of groups that
    /// they may form.
    pub(super) fn renew_limits(&mut self) {
        self.divide(false);
        let given = self.settings.given.or(self.given);
        let core = self.settings.core.adjusted(self.adjustable);
        let (slice, now) = (self.settings.max_slice, self.adjustable);
        self.adjust(limits::beside(self.members.staying(), &core, slice, now, given));
        for (app, slice) in self.slices() {
            let Some(member) = self.members.set_slice(app, slice) else { continue };
            let (standing, uncut) = (member.standing(), member.uncut);
            self.order(Order::Limit { app, max_slice: slice, standing, uncut });
        }
    }

    /// How long groups of each app may be.
    fn slices(&self) -> Vec<(AppId, Span)> {
        let core = self.settings.core.adjusted(self.adjustable);
        let all: Vec<_> = self.members.staying().collect();
        let slice = |member| limits::slice(member, &all, &core, self.settings.max_slice);
        all.iter().map(|member| (member.app, slice(member))).collect()
    }
}
