//! What apps mean to each other: they find those whose contract they take part in, and all are charged for work that
//! the GPU interrupts while an app with such work is there.

use takt_core::{Adjustable, AppId};

use super::Server;
use crate::rt::queues::Order;

impl Server {
    /// An app comes whose work the GPU interrupts, or may have gone: charges all others for it, or no more.
    pub(super) fn divide(&mut self, comes: bool) {
        let divisible = (comes || self.members.divide()).then_some(self.settings.divisible);
        if divisible != self.adjustable.divisible {
            self.adjust(Adjustable { divisible, ..self.adjustable });
        }
    }

    /// Apps came, went, or changed: those that take part in contracts of others have the ones that are there now.
    pub(super) fn link(&mut self) {
        let linked: Vec<AppId> = self.members.link(&self.current());
        for app in linked {
            if let Some(params) = self.members.get(app).map(|member| member.params) {
                self.order(Order::Change { app, params });
            }
        }
        self.find_shares();
    }
}
