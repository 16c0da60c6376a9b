//! What becomes of apps whose ends contradict those of others.

use takt_audit::Event;
use takt_core::{AppId, Span};
use takt_os::clock;

use super::Server;
use crate::control::early_ends::{Accused, Contradiction, Party};
use crate::control::rights::Level;
use crate::observe::journal::{Entry, Who};

impl Server {
    /// Groups behind those of an app end later than others: it says so. A best-effort app that does this to a more
    /// important one also stands still for a while, longer each time. No app is accused on the word of a client that
    /// the file does not know, and no app stands still on the word of one that matters no more.
    pub(super) fn contradicted(&mut self, found: Contradiction) {
        let Contradiction { accused, witness, later } = found;
        let Some(witness) = self.members.get(witness).filter(|witness| !witness.domain.unlisted) else {
            return;
        };
        let (level, witness) = (witness.domain.level, witness.name.clone());
        match accused {
            Accused::App(app) => self.app_contradicted(app, &witness, level, later),
            Accused::Party(party) => self.user_contradicted(&party, &witness, level, later),
        }
    }

    fn app_contradicted(&mut self, app: AppId, witness: &str, level: Level, later: Span) {
        let Some(accused) = self.members.get(app) else { return };
        let now = clock::now();
        let matters_less = accused.domain.level == Level::BestEffort && level > Level::BestEffort;
        let pause = matters_less.then(|| self.distrusted.blame(accused.origin(), now));
        let (later_ms, pause_s) = (later.as_ns() as f64 / 1e6, pause.map(seconds));
        let who = Who::of(accused);
        self.journal.tell(&Entry::EarlyEnds { who, witness, later_ms, pause_s });
        self.audit.about(Event::EarlyEnds, accused, &reason(witness, later_ms, pause_s));
        self.early_ends_found += 1;
        if let Some(pause) = pause {
            self.members.distrust(app, now + pause);
        }
    }

    /// The same of several apps of a user, or of one that leaves and comes back: all of that user stand still.
    fn user_contradicted(&mut self, party: &Party, witness: &str, level: Level, later: Span) {
        let Party { uid, domain } = party;
        let Some(domain) = self.settings.domains.named(domain).cloned() else { return };
        let now = clock::now();
        let matters_less = domain.level == Level::BestEffort && level > Level::BestEffort;
        let pause = matters_less.then(|| self.distrusted.blame_all(*uid, &domain.name, now));
        let (later_ms, pause_s) = (later.as_ns() as f64 / 1e6, pause.map(seconds));
        let (uid, listed) = (*uid, !domain.unlisted);
        let name = &domain.name;
        self.journal.tell(&Entry::EarlyEndsOfUser { uid, domain: name, listed, witness, later_ms, pause_s });
        self.audit.about_user(Event::EarlyEnds, uid, &domain, &reason(witness, later_ms, pause_s));
        self.early_ends_found += 1;
        if let Some(pause) = pause {
            let theirs = self.members.of_domain(&domain).filter(|member| member.identity.uid == uid);
            let theirs: Vec<AppId> = theirs.map(|member| member.app).collect();
            theirs.into_iter().for_each(|app| self.members.distrust(app, now + pause));
        }
    }

    /// An app has joined: if its ends were not believed lately, they are not yet.
    pub(super) fn distrust_again(&mut self, app: AppId) {
        let now = clock::now();
        let pause = self.members.get(app).and_then(|member| self.distrusted.pause(&member.origin(), now));
        if let Some(pause) = pause {
            self.members.distrust(app, now + pause);
        }
    }
}

fn seconds(pause: Span) -> u64 {
    pause.as_ns() / 1_000_000_000
}

fn reason(witness: &str, later_ms: f64, pause_s: Option<u64>) -> String {
    let stands = pause_s.map_or_else(String::new, |pause_s| format!("; it stands still for {pause_s} s"));
    format!("groups of {witness} behind its groups take {later_ms:.1} ms longer{stands}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Identity;
    use crate::rt::endpoint::GROUP_BITS;
    use takt_core::{Action, Cost, GroupId, Period, Span, Time};
    use takt_ipc::message::Hello;
    use takt_trace::Record;

    const DOMAINS: &str = "[[domain]]\nname = 'cluster'\nuser = 64002\n[[domain]]\nname = 'ivi'\nuser = 64003\n\
                           level = 'best-effort'";

    fn join(server: &mut Server, name: &str, uid: u32) -> AppId {
        let (hello, who) =
            (Hello { name: name.to_owned(), ..Hello::default() }, Identity { uid, ..Identity::default() });
        let settings = server.current();
        let app = server.members.admit(clock::now(), &hello, &who, &settings).expect("admitted").app;
        server.distrust_again(app);
        app
    }

    /// A group, from its grant to the end that its client says.
    fn run(server: &mut Server, app: AppId, number: u64, granted: Time, finished: Time) {
        let group = GroupId((u64::from(app.0) << GROUP_BITS) | number);
        let (target, reserved) = (Period(0), Span::from_ms(1));
        let dispatch = Action::Dispatch { app, group, target, start: granted, reserved };
        server.happened(granted, Record::Out(dispatch));
        let cost = Cost::new(Span::from_ms(1));
        let complete = takt_core::Event::Complete { group, finished, cost, frames: 0 };
        server.happened(finished, Record::In(complete));
    }

    /// The liar says 1 ms and takes 21; the witness has a group behind it and one behind itself.
    fn lie(server: &mut Server, liar: AppId, witness: AppId, round: u64) {
        // Times never decrease.
        let began = clock::now() + Span::from_ms(10_000 * round);
        let ms = |ms: u64| began + Span::from_ms(ms);
        for number in 0..60 {
            let at = number * 40;
            run(server, liar, number, ms(at), ms(at + 1));
            run(server, witness, 2 * number, ms(at + 1), ms(at + 22));
            run(server, witness, 2 * number + 1, ms(at + 22), ms(at + 23));
        }
    }

    #[test]
    fn a_best_effort_liar_stands_still_on_the_word_of_a_more_important_app() {
        let path = std::env::temp_dir().join(format!("takt-distrust-{}", std::process::id()));
        let mut server = Server::start(path, Settings::parse(DOMAINS).expect("settings")).expect("a daemon");
        let stands = |server: &mut Server, app: AppId| {
            server.turn().expect("served");
            server.members.get(app).is_some_and(|member| member.set_aside)
        };
        let (liar, ivi) = (join(&mut server, "liar", 64_001), join(&mut server, "ivi", 64_003));
        let (dial, map) = (join(&mut server, "dial", 64_002), join(&mut server, "map", 64_002));
        let friend = join(&mut server, "friend", 64_004);
        // Any client could frame others by saying late when groups ended.
        lie(&mut server, ivi, friend, 1);
        assert_eq!(
            (stands(&mut server, ivi), server.early_ends_found),
            (false, 0),
            "no word of the unlisted counts"
        );
        lie(&mut server, liar, ivi, 2);
        assert_eq!((stands(&mut server, liar), server.early_ends_found), (false, 1), "it matters no more");
        lie(&mut server, map, dial, 3);
        assert_eq!(
            (stands(&mut server, map), server.early_ends_found),
            (false, 2),
            "that is for people to decide"
        );
        lie(&mut server, liar, dial, 4);
        assert_eq!((stands(&mut server, liar), server.early_ends_found), (true, 3));
        let said = server.members.get(liar).map(|member| member.admission()).unwrap_or_default();
        assert!(said.contains("its groups end later than it says"), "{said}");
        // Another process of it does not evade that, one of another user is not meant.
        let (again, other) = (join(&mut server, "x", 64_001), join(&mut server, "liar", 64_009));
        let until = server.members.get(again).and_then(|member| member.distrusted).expect("distrusted");
        assert!(until.since(clock::now()) <= Span::from_ms(1_000));
        assert_eq!(server.members.get(other).and_then(|member| member.distrusted), None);
        // Those who run the machine can end it before its time, which comes.
        server.members.excuse(liar);
        assert!(!stands(&mut server, liar));
        server.members.believe(until);
        assert!(!stands(&mut server, again));
    }
}
