//! Welcomes apps, or refuses them.

use std::os::fd::AsFd;
use std::sync::Arc;

use takt_audit::Event;
use takt_core::AppId;
use takt_ipc::credentials;
use takt_ipc::message::{Hello, Message, Welcome};
use takt_os::clock;

use super::broken::UNSCHEDULED_PAUSE;
use super::hashes::Contents;
use super::verdict::{Outcome, Verdict};
use super::{EVICTED, Server};
use crate::control::config::Client;
use crate::control::identity::Identity;
use crate::control::members::Refusal;
use crate::control::quarantine::Origin;
use crate::control::rights::Rule;
use crate::control::terms::Terms;
use crate::observe::journal::{Entry, Who};
use crate::rt::endpoint::Endpoint;
use crate::rt::queues::Order;

impl Server {
    /// An app wants to be scheduled, or to have other terms.
    pub(super) fn welcome(&mut self, index: usize, hello: &Hello) {
        if let Some(app) = self.sessions[index].app {
            return self.renew(index, app, hello);
        }
        if let Some(reason) = self.why_unscheduled() {
            return self.hang_up(index, reason, Some(UNSCHEDULED_PAUSE));
        }
        let who = self.identity(index);
        let who = match self.vouched(&who, &hello.name) {
            Ok(who) => who,
            Err(refusal) => return self.refuse_join(index, hello, refusal),
        };
        let origin = Origin::of(&who, self.settings.domains.of(&who));
        if let Some(pause) = self.quarantine.pause(&origin, clock::now()) {
            let reason = "it was evicted for a fault; it may come back later".to_owned();
            let (asked, outcome, rule) = (asked(hello), Outcome::Refused, Rule::Quarantine);
            let (app, event) = (None, Event::Joined);
            // Its log line is that of the fault.
            self.audit_verdict(&Verdict {
                who: &who,
                app,
                event,
                asked: &asked,
                outcome,
                rule,
                reason: &reason,
            });
            return self.hang_up(index, reason, Some(pause));
        }
        if let Some(pause) = self.evicted.pause(&hello.name, &origin, clock::now()) {
            // The order that evicted it is recorded.
            return self.hang_up(index, EVICTED.to_owned(), Some(pause));
        }
        self.divide_for(hello, &who);
        let settings = self.current();
        let app = match self.members.admit(clock::now(), hello, &who, &settings) {
            Ok(member) => member.app,
            Err(refusal) => return self.refuse_join(index, hello, refusal),
        };
        let Ok((endpoint, fds)) = Endpoint::new(app) else {
            self.members.remove(app);
            let reason = "the daemon has no memory or descriptors left".to_owned();
            return self.refuse_join(index, hello, Refusal::for_now(Rule::Slots, reason));
        };
        self.state_now();
        let welcome = self.welcome_message(app);
        let fds = [fds.region.as_fd(), fds.doorbell.as_fd(), self.scheduling.heart.as_fd()];
        let session = &mut self.sessions[index];
        if session.connection.send(&welcome, &fds).is_err() {
            session.closing = true;
            self.members.remove(app);
            return self.divide(false);
        }
        session.app = Some(app);
        // Kernels before Linux 6.5 do not tell; there, a connection is over when all processes have closed it.
        session.process = credentials::process(&*session.connection).ok();
        self.join(app, endpoint);
        self.distrust_again(app);
        self.link();
        self.renew_limits();
        self.joined(app, &who, &asked(hello));
    }

    /// The client, after a look at the contents of its executable where the configuration lists those.
    fn vouched(&mut self, who: &Arc<Identity>, name: &str) -> Result<Arc<Identity>, Refusal> {
        let client = Client { name, domain: self.settings.domains.of(who), who };
        let section = self.settings.section(&client);
        let listed = section.and_then(|app| Some((app.executable.clone()?, app.sha256.clone()?)));
        let Some((path, sha256)) = listed else { return Ok(Arc::clone(who)) };
        match self.hashes.check(&path, &sha256) {
            Contents::Listed => Ok(Arc::clone(who)),
            Contents::Others(_) => Ok(Arc::new(Identity { tampered: true, ..Identity::clone(who) })),
            Contents::Unknown => {
                let reason = format!("the contents of {} are being checked; ask again", path.display());
                Err(Refusal::for_now(Rule::ExecutableHash, reason))
            }
        }
    }

    /// Records the decision about an app that is scheduled.
    fn joined(&mut self, app: AppId, who: &Identity, asked: &str) {
        let Some(member) = self.members.get(app) else { return };
        let (rule, reason) = (member.rule, member.limits.clone());
        let outcome = if reason.is_empty() { Outcome::Granted } else { Outcome::Reduced };
        let (app, event) = (Some(app), Event::Joined);
        self.decided(&Verdict { who, app, event, asked, outcome, rule, reason: &reason });
    }

    /// Who is on the other side of a connection; the kernel is asked once.
    pub(super) fn identity(&mut self, index: usize) -> Arc<Identity> {
        let (session, settings) = (&mut self.sessions[index], &self.settings);
        let (connection, peer) = (&session.connection, session.peer);
        let find = || Arc::new(Identity::of(connection, peer, |path| settings.names(path)));
        session.identity.get_or_insert_with(find).clone()
    }

    pub(super) fn welcome_message(&self, app: AppId) -> Message {
        let member = self.members.get(app);
        Message::Welcome(Welcome {
            app: app.0,
            admission: member.map(|member| member.admission()).unwrap_or_default(),
            standing: member.map(|member| member.standing()).unwrap_or_default(),
            spin_us: self.settings.spin_us,
        })
    }

    /// Hands a client that was welcomed to the scheduling loop.
    fn join(&mut self, app: AppId, mut endpoint: Endpoint) {
        self.observe_join(app);
        if let Some(member) = self.members.get(app) {
            let (params, max_slice) = (member.params, member.max_slice);
            endpoint.welcomed(member.standing());
            endpoint.set_uncut(member.uncut);
            self.scheduling.orders.give(Order::Join { endpoint: Box::new(endpoint), params, max_slice });
            self.journal.tell(&Entry::Joined {
                who: Who::of(member),
                priority: member.priority(),
                fps: f64::from(member.fps_mhz) / 1000.0,
                admission: &member.admission(),
            });
        }
        self.limit_cpu_latency();
    }

    /// Refuses a connection that makes no sense, and says why.
    pub(super) fn refuse(&mut self, index: usize, reason: String) {
        self.refuse_for(index, "", Refusal::from(reason));
    }

    /// Refuses an app, and says why.
    fn refuse_join(&mut self, index: usize, hello: &Hello, refusal: Refusal) {
        let asked = asked(hello);
        self.refuse_for(index, &asked, refusal);
    }

    fn refuse_for(&mut self, index: usize, asked: &str, refusal: Refusal) {
        self.divide(false);
        let (who, outcome) = (self.identity(index), Outcome::Refused);
        let Refusal { rule, reason, again } = refusal;
        let (app, event) = (None, Event::Joined);
        self.decided(&Verdict { who: &who, app, event, asked, outcome, rule, reason: &reason });
        self.hang_up(index, reason, again);
    }
}

/// What an app asks for, in words.
pub(super) fn asked(hello: &Hello) -> String {
    let terms = Terms::try_from(hello).map(|terms| terms.to_string()).unwrap_or_default();
    format!("join {} {terms}", hello.name.escape_default())
}
