//! Answers to questions and orders of tools.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use takt_audit::Event;
use takt_core::{AppId, Span, Time};
use takt_ipc::message::Message;
use takt_os::clock;

use super::Server;
use super::analysts::{Job, Query, Work};
use super::reload::differences;
use super::session::Question;
use super::steering::Allowed;
use super::verdict::{Outcome, Verdict};
use crate::control::ask::{Answer, Ask, MissesAnswer, WrittenTerms};
use crate::control::contract::knows_budgets;
use crate::control::members::{Refusal, Unfound};
use crate::control::rights::Rule;
use crate::control::terms::Terms;
use crate::control::user::{Rank, User};
use crate::control::view::{HIDDEN, View};
use crate::observe::journal::Entry;
use crate::observe::recent::{KEPT, Scene};
use crate::rt::queues::Order;

/// Most bytes of answers that wait to be read, of all sessions together; several of the longest fit.
const UNREAD_MAX: usize = 64 << 20;

impl Server {
    /// Answers a question, now or in a later turn.
    pub(super) fn asked(&mut self, index: usize, text: &str) {
        let ask = match serde_json::from_str::<Ask>(text) {
            Ok(ask) => ask,
            Err(error) => return self.reply(index, &Answer::refused(format!("not understood: {error}"))),
        };
        if let Some((rule, reason)) = self.forbidden(index, &ask) {
            let (who, asked) = (self.identity(index), serde_json::to_string(&ask).unwrap_or_default());
            let outcome = Outcome::Refused;
            let (app, event) = (None, Event::Denied);
            self.decided(&Verdict { who: &who, app, event, asked: &asked, outcome, rule, reason: &reason });
            return self.reply(index, &Answer::refused(reason));
        }
        let answer = match ask {
            Ask::Watch => match self.watch(index) {
                Some(refused) => refused,
                None => return,
            },
            Ask::Frames => return self.hand_over_frames(index),
            ask if ask.takes_long() => {
                if ask == Ask::Metrics {
                    self.count();
                }
                let (since, query) = (clock::now(), Query { ask, view: self.view(index) });
                match self.analysts.fresh(&query, since) {
                    Some(text) => self.send(index, text),
                    None => self.sessions[index].question = Some(Question { query, since, is_given: false }),
                }
                return;
            }
            ask => {
                // Changes of apps are decided, and recorded, where their terms are.
                let is_recorded = ask.changes() && ask.changed_app().is_none();
                let order = is_recorded.then(|| ask.clone());
                let answer = self.answer(index, ask);
                order.iter().for_each(|order| self.audit_order(index, order, &answer));
                answer
            }
        };
        self.reply(index, &answer);
    }

    /// Why a tool may not ask that, if so: by which rule, and in words.
    pub(super) fn forbidden(&mut self, index: usize, ask: &Ask) -> Option<(Rule, String)> {
        let who = self.identity(index);
        let domain = self.settings.domains.of(&who);
        let own = View::own(&who, domain);
        let is_own = |app: &str| !matches!(self.members.find(app, &own), Err(Unfound::Unknown(_)));
        let (rule, what) = match ask {
            Ask::State { .. } if domain.rights.set_state => return None,
            Ask::State { .. } => (Rule::SetState, "tell the state of the vehicle"),
            Ask::Display { .. } if domain.rights.set_vsync => return None,
            Ask::Display { .. } => (Rule::SetVsync, "say when displays refresh"),
            Ask::Frames if !domain.rights.see => (Rule::See, "see frames of others"),
            Ask::Watch if !domain.rights.see => (Rule::See, "watch apps of others"),
            Ask::Metrics if !domain.rights.see => (Rule::See, "see counters of others"),
            // It may be for apps of its own user alone.
            Ask::Readmit { .. } => return None,
            ask if ask.changed_app().is_some_and(is_own) => return None,
            ask if ask.changed_app().is_some() && !domain.rights.change => {
                (Rule::Change, "change apps of others")
            }
            ask if ask.changes() && !domain.rights.change => (Rule::Change, "change the daemon"),
            _ => return None,
        };
        let key = match rule {
            Rule::See => "see",
            Rule::SetState => "set_state",
            Rule::SetVsync => "set_vsync",
            _ => "change",
        };
        let remedy = match domain.unlisted {
            true => format!("list its user, unit or container in a [[domain]] section with {key} = true"),
            false => format!("give the domain {key} = true in the daemon's configuration"),
        };
        Some((rule, format!("domain {} may not {what} (rule {rule}): {remedy}", domain.name)))
    }

    /// Which apps a tool sees.
    pub(super) fn view(&mut self, index: usize) -> View {
        let who = self.identity(index);
        View::of(&who, self.settings.domains.of(&who))
    }

    /// Sends answers that took long, and has the next questions answered.
    pub(super) fn study(&mut self) {
        while let Some(done) = self.analysts.take() {
            self.fair.charge(clock::now(), done.uid, done.took);
            for id in done.sessions {
                if let Some(index) = self.sessions.iter().position(|session| session.id == id) {
                    self.sessions[index].question = None;
                    self.send(index, Arc::clone(&done.text));
                }
            }
        }
        while self.analysts.have_room()
            && let Some(index) = self.next_question()
        {
            self.give(index);
        }
    }

    /// The session whose question is answered next: of the user on whom least time was spent lately, and of
    /// that user's the oldest.
    fn next_question(&self) -> Option<usize> {
        let waiting = self.sessions.iter().enumerate().filter_map(|(index, session)| {
            let question = session.question.as_ref().filter(|question| !question.is_given)?;
            Some((self.fair.spent(session.peer.uid), question.since, index))
        });
        waiting.min().map(|(_, _, index)| index)
    }

    /// Has the question of a session answered, for all sessions that ask the same.
    fn give(&mut self, index: usize) {
        let session = &self.sessions[index];
        let (uid, Some(question)) = (session.peer.uid, &session.question) else { return };
        let query = question.query.clone();
        let mut sessions = Vec::new();
        for session in &mut self.sessions {
            if let Some(question) = session.question.as_mut().filter(|question| question.query == query) {
                question.is_given = true;
                sessions.push(session.id);
            }
        }
        let (at, work) = (clock::now(), self.work(&query));
        self.analysts.give(Job { query, uid, sessions, at, work });
    }

    /// What answers a question that takes long, on another thread.
    fn work(&self, query: &Query) -> Work {
        let view = &query.view;
        match &query.ask {
            Ask::Summary { window_s } => {
                let window = Span::from_ms(u64::from((*window_s).clamp(1, 30)) * 1000);
                let (now, snapshot, scene) = (clock::now(), self.recent.snapshot(), self.scene());
                let scene = Scene { members: view.masked(scene.members), ..scene };
                Box::new(move || {
                    let mut summary = snapshot.summary(now, window, &scene);
                    summary.apps.retain(|app| app.name != HIDDEN);
                    summary.misses.retain(|miss| miss.app != HIDDEN);
                    Answer::Summary(Box::new(summary))
                })
            }
            Ask::Why { app, frame } => self.why(app, *frame, view),
            Ask::Metrics => match self.counted() {
                Some(counted) => Box::new(move || Answer::Metrics(counted.text())),
                None => Box::new(|| Answer::refused("nothing is counted yet")),
            },
            _ => Box::new(|| Answer::refused("it needs no other thread")),
        }
    }

    /// Hands a reader the page of finished frames.
    fn hand_over_frames(&mut self, index: usize) {
        let text = serde_json::to_string(&Answer::Done).unwrap_or_default();
        let session = &mut self.sessions[index];
        let sent = session
            .connection
            .send(&Message::Answer { text, more: false }, &[self.scheduling.frames.as_fd()]);
        // A reader that has read no answer before has room for this one.
        session.closing |= sent.is_err();
    }

    fn reply(&mut self, index: usize, answer: &Answer) {
        self.send(index, Arc::from(serde_json::to_string(answer).unwrap_or_default()));
    }

    fn send(&mut self, index: usize, text: Arc<str>) {
        self.make_room_for(text.len());
        self.sessions[index].answer(text, clock::now());
    }

    /// Of the user with most unread answers, the session that has not read for longest makes room.
    fn make_room_for(&mut self, length: usize) {
        let mut unread: BTreeMap<(u32, Rank), usize> = BTreeMap::new();
        let behind = (0..self.sessions.len()).filter(|index| self.sessions[*index].unread() > 0);
        let mut behind: Vec<(usize, (u32, Rank))> = behind
            .map(|index| (index, self.user(index)))
            .map(|(index, User { uid, rank })| (index, (uid, rank)))
            .collect();
        for (index, user) in &behind {
            *unread.entry(*user).or_default() += self.sessions[*index].unread();
        }
        while unread.values().sum::<usize>() + length > UNREAD_MAX
            && let Some(most) = unread.iter().max_by_key(|(_, unread)| **unread).map(|(user, _)| *user)
        {
            let theirs = behind.iter().enumerate().filter(|(_, (_, user))| *user == most);
            let slowest = theirs.min_by_key(|(_, (index, _))| self.sessions[*index].asked());
            let Some((at, index)) = slowest.map(|(at, (index, _))| (at, *index)) else { return };
            behind.remove(at);
            let session = &mut self.sessions[index];
            *unread.entry(most).or_default() -= session.unread();
            session.give_up();
        }
    }

    fn answer(&mut self, index: usize, ask: Ask) -> Answer {
        match ask {
            Ask::Apps => self.apps(index),
            Ask::Domains => self.domains(index),
            Ask::Daemon => {
                let (view, uid) = (self.view(index), self.sessions[index].peer.uid);
                self.daemon_answer(&view, uid)
            }
            Ask::Set { app, terms } => self.set(index, &app, &terms),
            Ask::Preview { order } => self.preview(index, &order),
            ask @ (Ask::Pause { .. } | Ask::Resume { .. } | Ask::Evict { .. } | Ask::Readmit { .. }) => {
                self.steer(index, &ask)
            }
            Ask::Policy { name } => self.set_policy(&name),
            Ask::Adjust(limits) => match limits.checked(self.adjustable) {
                Err(problem) => Answer::refused(problem),
                Ok(adjustable) => {
                    let changes = differences(&self.adjustable, &adjustable);
                    self.journal.tell(&Entry::Adjusted { changes: &changes });
                    self.given = self.given.or(limits.given());
                    self.adjust(adjustable);
                    Answer::Done
                }
            },
            Ask::Focus { app } => match app.as_deref().map(|app| self.meant(index, app)).transpose() {
                Err(reason) => Answer::refused(reason),
                Ok(focus) => {
                    self.order(Order::Focus(focus));
                    Answer::Done
                }
            },
            Ask::State { name } => self.set_state(&name),
            Ask::Display { name, refresh_mhz, vsync_ns } => {
                self.set_display(&name, refresh_mhz, Time::from_ns(vsync_ns))
            }
            Ask::Stop => {
                self.stopping = true;
                Answer::Done
            }
            Ask::Summary { .. } | Ask::Why { .. } | Ask::Watch | Ask::Frames | Ask::Metrics => {
                Answer::refused("it is answered elsewhere")
            }
        }
    }

    /// The apps that a tool sees.
    pub(super) fn apps(&mut self, index: usize) -> Answer {
        let view = self.view(index);
        Answer::apps(&view.masked(self.members.clone()), &self.waits, clock::now())
    }

    fn why(&self, who: &str, frame: Option<u64>, view: &View) -> Work {
        let now = clock::now();
        let (until, member, has_left) = match self.members.find(who, view) {
            Ok(present) => match self.history.find_above(who, view, present, now) {
                Some((left, member)) => (left, member, true),
                None => (now, present, false),
            },
            Err(unfound) => match self.history.find(who, view) {
                Some((left, member)) if matches!(unfound, Unfound::Unknown(_)) => (left, member, true),
                _ => return Box::new(|| Answer::refused(unfound)),
            },
        };
        let left_s = has_left.then(|| now.since(until).as_ns() as f64 / 1e9);
        let members = view.masked(self.history.as_of(until, &self.members));
        let scene = Scene { members, ..self.scene() };
        let (app, first_met, snapshot) = (member.app, member.first_met, self.recent.snapshot());
        // Without a frame rate or a server there are no deadlines.
        let is_judged = member.is_judged();
        Box::new(move || {
            let mut misses = match is_judged {
                true => snapshot.misses(until, KEPT, &scene, app),
                false => Vec::new(),
            };
            misses.retain(|miss| frame.is_none_or(|frame| miss.frame == frame));
            Answer::Misses(MissesAnswer { left_s, first_met, misses })
        })
    }

    /// Changes the terms of an app for a tool. Without the right to change others' apps, a tool gets for
    /// its own what the app itself would get.
    fn set(&mut self, index: usize, who: &str, terms: &WrittenTerms) -> Answer {
        let tool = self.identity(index);
        let asked = terms.checked().map(|terms| terms.to_string()).unwrap_or_default();
        let asked = format!("set {} {asked}", who.escape_default());
        let (outcome, rule, reason) = match self.set_terms(index, who, terms) {
            Ok(rule) => (Outcome::Granted, rule, String::new()),
            Err(refusal) => (Outcome::Refused, refusal.rule, refusal.reason),
        };
        let (app, event) = (None, Event::Set);
        self.decided(&Verdict { who: &tool, app, event, asked: &asked, outcome, rule, reason: &reason });
        if reason.is_empty() { self.apps(index) } else { Answer::refused(reason) }
    }

    fn set_terms(&mut self, index: usize, who: &str, terms: &WrittenTerms) -> Result<Rule, Refusal> {
        let Allowed { app, terms, rule } = self.allowed_terms(index, who, terms)?;
        self.change(app, terms)?;
        Ok(rule)
    }

    /// Sends the core the terms of all apps again: another policy reads them differently.
    fn lower_again(&mut self) {
        let settings = self.current();
        let apps: Vec<AppId> = self.members.iter().map(|member| member.app).collect();
        for app in apps {
            if let Ok(member) = self.members.change(app, Terms::default(), &settings) {
                let params = member.params;
                self.order(Order::Change { app, params });
            }
        }
    }

    /// Switches to another policy.
    pub(super) fn set_policy(&mut self, name: &str) -> Answer {
        let Some(mut policy) = takt_policies::by_name(name) else {
            let names = takt_policies::NAMES.join(", ");
            return Answer::refused(format!("no policy {name}; there are {names}"));
        };
        policy.prepare(&self.settings.core);
        self.journal.tell(&Entry::Policy { before: &self.policy, after: name });
        let other_budgets = knows_budgets(name) != knows_budgets(&self.policy);
        name.clone_into(&mut self.policy);
        self.order(Order::Policy(policy));
        if other_budgets {
            self.lower_again();
        }
        Answer::Done
    }
}
