//! Another configuration, or other terms for an app, while the daemon runs.

use takt_core::{AppId, Span};
use takt_ipc::message::{Hello, Message, Welcome};

use super::Server;
use crate::clock;
use crate::config::Settings;
use crate::engine::Order;
use crate::journal::{Entry, Who};
use crate::members::{Member, Terms};
use crate::vsync::Follower;

/// How long an app waits before it asks for other terms again: orders to the loop are bounded, and
/// nobody may use them up.
const RENEWAL_PAUSE: Span = Span::from_ms(20);
const TOO_SOON: &str = "it asks for other terms too often; 20 ms must pass in between";

impl Server {
    /// Takes over what differs in `settings`, for apps that are scheduled already as well; returns
    /// what changed, in words. What somebody changed while the daemon ran stays, unless the file now
    /// says something else about it than before.
    pub fn apply(&mut self, settings: Settings) -> Vec<String> {
        let mut changes = Vec::new();
        let before = std::mem::replace(&mut self.settings, settings);
        self.keep_core(&before, &mut changes);
        if self.settings.policy != before.policy {
            let name = self.settings.policy.clone();
            changes.push(format!("policy = {name}"));
            self.set_policy(&name);
        }
        if self.settings.admission != before.admission {
            changes.push("admission, for apps that join from now on".to_owned());
        }
        if self.settings.timegraph != before.timegraph {
            changes.push("timegraph, for apps that join from now on".to_owned());
        }
        if self.settings.wake_us != before.wake_us {
            changes.push("wake_us".to_owned());
            self.keep_awake();
        }
        self.renew_apps(&before, &mut changes);
        self.journal.tell(&Entry::Reloaded { changes: &changes });
        changes
    }

    /// What the scheduling loop was built with stays until the daemon is started again.
    fn keep_core(&mut self, before: &Settings, changes: &mut Vec<String>) {
        let (new, old) = (self.settings.core, before.core);
        for (differs, what) in [
            (new.refresh.mhz() != old.refresh.mhz(), "refresh_hz"),
            (new.mpcg != old.mpcg, "mpcg"),
            (new.tuning.blocking != old.tuning.blocking, "max_blocking_ms"),
            (new.tuning.stretch != old.tuning.stretch, "max_stretch_ms"),
            (new.margins != old.margins, "margins"),
        ] {
            if differs {
                changes.push(format!("{what} holds after a restart"));
            }
        }
        if self.settings.loop_spin_us != before.loop_spin_us {
            changes.push("loop_spin_us holds after a restart".to_owned());
        }
        if self.settings.processor != before.processor {
            changes.push("processor holds after a restart".to_owned());
        }
        if self.settings.vsync != before.vsync {
            changes.push("vsync holds after a restart".to_owned());
        }
        self.settings.core = old;
    }

    /// Gives apps what the file now has for them.
    fn renew_apps(&mut self, before: &Settings, changes: &mut Vec<String>) {
        if self.settings.max_slice != before.max_slice {
            changes.push(format!("max_slice_ms = {}", ms(self.settings.max_slice)));
        }
        let renewed = self.members.iter().map(|member| (member.app, renewed(member, &self.settings, before)));
        let mut open: Vec<(AppId, Terms)> = renewed.filter(|(_, terms)| *terms != Terms::default()).collect();
        // Apps that change places stand in each other's way: what does not work at first may work
        // when another has moved.
        let mut parked = 0;
        while !open.is_empty() {
            let waiting = open.len();
            open.retain(|(app, terms)| match self.change(*app, *terms) {
                Ok(()) => {
                    let name = self.members.get(*app).map_or("", |member| member.name.as_str());
                    changes.push(format!("app {name}"));
                    false
                }
                Err(_) => true,
            });
            if open.len() < waiting {
                continue;
            }
            let (app, terms) = open[parked % waiting];
            let spare = self.members.free_priority(terms.priority.unwrap_or(0));
            let aside = Terms { priority: spare, ..Terms::default() };
            parked += 1;
            if parked > waiting || self.change(app, aside).is_err() {
                let problem = |(app, terms): &(AppId, Terms)| {
                    let name = self.members.get(*app).map_or("", |member| member.name.as_str()).to_owned();
                    let reason = self.members.clone().change(*app, *terms, &self.settings).err();
                    format!("app {name} stays: {}", reason.unwrap_or_default())
                };
                changes.extend(open.iter().map(problem));
                return;
            }
        }
    }

    /// An app that is scheduled asks for other terms; what it may not have changes nothing.
    pub(super) fn renew(&mut self, index: usize, app: AppId, hello: &Hello) {
        let asked = Terms::from(hello);
        let section = self.members.get(app).and_then(|member| self.settings.app(&member.name));
        let terms = asked.under(section);
        let now = clock::now();
        let last = self.sessions[index].renewed;
        let too_soon = last.is_some_and(|last| now.since(last) < RENEWAL_PAUSE);
        let changed = if too_soon { Err(TOO_SOON.to_owned()) } else { self.change(app, terms) };
        let message = match changed {
            Err(reason) => Message::Refused { reason, again_ms: None },
            Ok(()) => {
                // What was refused has cost the loop nothing.
                self.sessions[index].renewed = Some(now);
                self.members.ask_again(app, asked);
                let member = self.members.get(app);
                Message::Welcome(Welcome {
                    app: app.0,
                    admission: member.map(|member| member.admission.clone()).unwrap_or_default(),
                    paced: member.is_some_and(|member| member.paced),
                    spin_us: self.settings.spin_us,
                })
            }
        };
        let session = &mut self.sessions[index];
        session.closing |= session.connection.send(&message, &[]).is_err();
    }

    /// Changes an app's terms everywhere, or says why not.
    pub(super) fn change(&mut self, app: AppId, terms: Terms) -> Result<(), String> {
        let member = self.members.change(app, terms, &self.settings)?;
        let (params, max_slice) = (member.params, member.max_slice);
        self.order(Order::Change { app, params });
        if terms.max_slice.is_some() {
            self.order(Order::Limit { app, max_slice });
        }
        self.judge_again();
        if let Some(member) = self.members.get(app) {
            self.journal.tell(&changed(member));
        }
        Ok(())
    }

    /// Takes over what the display tells.
    pub(super) fn follow_display(&mut self) {
        match self.follower.as_ref().and_then(Follower::news) {
            None => {}
            Some(Ok(grid)) => {
                self.journal.tell(&Entry::Display { refresh_hz: f64::from(grid.mhz()) / 1000.0 });
                self.order(Order::Refresh(grid));
            }
            Some(Err(error)) => {
                // The grid stays as it is and runs on the clock.
                self.follower = None;
                self.journal.tell(&Entry::DisplayLost { reason: &error.to_string() });
            }
        }
    }

    /// Whose deadlines are guaranteed may be different now.
    pub(super) fn judge_again(&mut self) {
        for app in self.members.judge_again(&self.settings) {
            if let Some(member) = self.members.get(app) {
                self.journal.tell(&changed(member));
            }
        }
        self.keep_awake();
    }

    /// Processors sleep lightly while an app with a frame rate is there.
    fn keep_awake(&mut self) {
        let within = self.settings.wake_us.filter(|_| self.members.iter().any(|member| member.paced));
        // Where that is not allowed, it was said at the start.
        self.awake.keep_within(within).unwrap_or_default();
    }
}

/// What changes for an app, if anything.
fn renewed(member: &Member, settings: &Settings, before: &Settings) -> Terms {
    let section = settings.app(&member.name);
    let terms = member.asked.under(section);
    if section != before.app(&member.name) {
        terms.complete(settings)
    } else if terms.max_slice.is_none() && settings.max_slice != before.max_slice {
        Terms { max_slice: Some(settings.max_slice), ..Terms::default() }
    } else {
        Terms::default()
    }
}

fn changed(member: &Member) -> Entry<'_> {
    Entry::Changed {
        who: Who::of(member),
        priority: member.params.priority.0,
        fps: f64::from(member.fps_mhz) / 1000.0,
        admission: &member.admission,
    }
}

fn ms(span: Span) -> String {
    if span == Span::FOREVER { "0".to_owned() } else { (span.as_ns() as f64 / 1e6).to_string() }
}
