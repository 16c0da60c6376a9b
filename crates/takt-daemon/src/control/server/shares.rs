//! Keeps minimum shares of domains: gives the core a server for each, and says when a domain has less.

use std::collections::BTreeMap;

use takt_audit::{Decision, Event};
use takt_core::service::Reservation;
use takt_core::{AppId, Priority};
use takt_os::clock;
use takt_trace::{AppMeta, Observer};

use super::Server;
use crate::control::members::Member;
use crate::control::rights::ShareServer;
use crate::control::shares::{Had, ShareFinding};
use crate::observe::exposition::ShareCounts;
use crate::observe::journal::Entry;
use crate::rt::queues::Order;

impl Server {
    /// The configuration is another one: gives the core the servers that it has now.
    pub(super) fn renew_shares(&mut self) {
        let after = self.settings.share_servers();
        let before = std::mem::replace(&mut self.share_servers, after);
        let after = self.share_servers.clone();
        let is_new = |server: &&ShareServer| !before.contains(server);
        for old in before.iter().filter(|old| !after.iter().any(|server| server.app == old.app)) {
            self.order(Order::Share { app: old.app, params: None });
        }
        for server in after.iter().filter(is_new) {
            self.meet_share(server);
            self.order(Order::Share { app: server.app, params: Some(server.params) });
        }
        if before != after {
            self.shares.keep(clock::now(), &after);
            self.find_shares();
        }
    }

    /// Recordings name it after its domain.
    fn meet_share(&mut self, server: &ShareServer) {
        let name = format!("{}.share", server.domain);
        let Priority(priority) = server.params.priority;
        let meta = AppMeta { name, priority: Priority(priority), fps_mhz: 0, jobs: None };
        let now = self.streams.last();
        self.streams.meet(now, server.app, &meta);
    }

    /// Apps came, went or changed: finds which of them run on a share.
    pub(super) fn find_shares(&mut self) {
        let server = |member: &Member| match member.params.service.reservation {
            Reservation::Shared(server) => Some((member.app, server)),
            _ => None,
        };
        let servers: BTreeMap<AppId, AppId> = self.members.staying().filter_map(server).collect();
        self.shares.belong(&servers);
    }

    /// What is to be counted of all shares.
    pub(super) fn share_counts(&self) -> Vec<ShareCounts> {
        let count = |(server, had): (&ShareServer, &Had)| ShareCounts {
            domain: server.domain.clone(),
            had: had.part_of(server.share.window),
            least: server.share.ppm as f64 / 1e6,
            violations: had.violations,
        };
        self.shares.all().map(count).collect()
    }

    /// Says which domains have less than their share, and which have it again.
    pub(super) fn look_at_shares(&mut self) {
        for ShareFinding { domain, share, had } in self.shares.look(clock::now()) {
            let (parts, window_s) = (|ppm: u64| ppm as f64 / 1e6, share.window.as_ns() as f64 / 1e9);
            let (part, share_min) = (had.part_of(share.window), parts(share.ppm));
            let (entry, event) = match had.short {
                true => (
                    Entry::ShareMissed { domain: &domain, had: part, share_min, window_s },
                    Event::ShareMissed,
                ),
                false => {
                    (Entry::ShareKept { domain: &domain, had: part, share_min, window_s }, Event::ShareKept)
                }
            };
            self.journal.tell(&entry);
            let reason = format!("had {part} of {share_min} in {window_s} s");
            self.audit_domain(event, Decision::Noted, &domain, &reason);
        }
    }
}
