//! Answers to questions and orders of tools.

use takt_core::{AppId, Span};
use takt_os::clock;

use super::Server;
use super::reload::differences;
use super::session::Session;
use crate::control::ask::{Answer, Ask, MissesAnswer};
use crate::control::contract::knows_budgets;
use crate::control::terms::Terms;
use crate::observe::journal::Entry;
use crate::observe::recent::{KEPT, Scene};
use crate::rt::queues::Order;

/// Most bytes of answers that wait to be read, of all sessions together; several of the longest fit.
const UNREAD_MAX: usize = 64 << 20;

impl Server {
    /// Answers a question, now or in a later turn.
    pub(super) fn asked(&mut self, index: usize, text: &str) {
        let answer = match serde_json::from_str::<Ask>(text) {
            Ok(Ask::Watch) => match self.watch(index) {
                Some(refused) => refused,
                None => return,
            },
            Ok(ask) if ask.takes_long() => {
                self.sessions[index].question = Some((clock::now(), ask));
                return;
            }
            Ok(ask) => self.answer(index, ask),
            Err(error) => Answer::refused(format!("not understood: {error}")),
        };
        self.reply(index, &answer);
    }

    /// Answers the oldest of the questions that take long: one per turn, so that other sessions wait for
    /// one at most.
    pub(super) fn answer_one(&mut self) {
        let since = |session: &Session| session.question.as_ref().map(|(since, _)| *since);
        let waiting =
            self.sessions.iter().enumerate().filter_map(|(at, session)| Some((since(session)?, at)));
        if let Some((_, index)) = waiting.min()
            && let Some((_, ask)) = self.sessions[index].question.take()
        {
            let answer = self.answer(index, ask);
            self.reply(index, &answer);
        }
    }

    fn reply(&mut self, index: usize, answer: &Answer) {
        let text = serde_json::to_string(answer).unwrap_or_default();
        let mut room = UNREAD_MAX.saturating_sub(text.len());
        // The session that has not read for longest makes room.
        let mut slow: Vec<&mut Session> = self.sessions.iter_mut().collect();
        slow.sort_by_key(|session| std::cmp::Reverse(session.asked()));
        for session in slow {
            match room.checked_sub(session.unread()) {
                Some(rest) => room = rest,
                None => session.give_up(),
            }
        }
        self.sessions[index].answer(text, clock::now());
    }

    fn answer(&mut self, index: usize, ask: Ask) -> Answer {
        let uid = self.sessions[index].peer.uid;
        if ask.changes() && uid != 0 && uid != self.own_uid {
            return Answer::refused("only the daemon's user and root may change anything");
        }
        match ask {
            Ask::Apps => Answer::apps(&self.members, &self.waits, clock::now()),
            Ask::Summary { window_s } => {
                let window = Span::from_ms(u64::from(window_s.clamp(1, 30)) * 1000);
                Answer::Summary(Box::new(self.recent.summary(clock::now(), window, &self.scene())))
            }
            Ask::Why { app, frame } => self.why(&app, frame),
            Ask::Daemon => self.daemon_answer(),
            Ask::Set { app, terms } => self.set(&app, &terms),
            Ask::Policy { name } => self.set_policy(&name),
            Ask::Adjust(limits) => match limits.checked(self.adjustable) {
                Err(problem) => Answer::refused(problem),
                Ok(adjustable) => {
                    let changes = differences(&self.adjustable, &adjustable);
                    self.journal.tell(&Entry::Adjusted { changes: &changes });
                    self.adjust(adjustable);
                    Answer::Done
                }
            },
            Ask::Focus { app } => {
                let focus = app.as_deref().map(|app| self.members.find(app).map(|member| member.app));
                match focus {
                    Some(None) => Answer::refused("no such app; takt list shows them"),
                    focus => {
                        self.order(Order::Focus(focus.flatten()));
                        Answer::Done
                    }
                }
            }
            Ask::Stop => {
                self.stopping = true;
                Answer::Done
            }
            Ask::Watch => Answer::refused("it needs a connection of its own"),
        }
    }

    fn why(&self, who: &str, frame: Option<u64>) -> Answer {
        let now = clock::now();
        let present = self.members.find(who).map(|member| (now, member));
        let Some((until, member)) = present.or_else(|| self.history.find(who)) else {
            return Answer::refused(format!("no app {who}; takt list shows them"));
        };
        let left_s = present.is_none().then(|| now.since(until).as_ns() as f64 / 1e9);
        let members = &self.history.as_of(until, &self.members);
        // Without a frame rate or a server there are no deadlines.
        let mut misses = match member.is_judged() {
            true => self.recent.misses(until, KEPT, &Scene { members, ..self.scene() }, member.app),
            false => Vec::new(),
        };
        misses.retain(|miss| frame.is_none_or(|frame| miss.frame == frame));
        Answer::Misses(MissesAnswer { left_s, first_met: member.first_met, misses })
    }

    fn set(&mut self, who: &str, terms: &crate::control::ask::WrittenTerms) -> Answer {
        let Some(app) = self.members.find(who).map(|member| member.app) else {
            return Answer::refused(format!("no app {who}; takt list shows them"));
        };
        let terms = match terms.checked() {
            Ok(terms) => terms,
            Err(problem) => return Answer::refused(problem),
        };
        match self.change(app, terms) {
            Err(reason) => Answer::refused(reason),
            Ok(()) => Answer::apps(&self.members, &self.waits, clock::now()),
        }
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
