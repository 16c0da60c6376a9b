//! An invariant of the core broke: every app runs unscheduled.

use takt_audit::{Decision, Event};
use takt_core::{Broken, Span};

use super::Server;
use crate::observe::journal::Entry;

/// How long apps wait before they ask again: another daemon may run by then.
pub(super) const UNSCHEDULED_PAUSE: Span = Span::from_ms(5_000);

impl Server {
    /// An invariant broke, and the loop removes every client.
    pub(super) fn broke(&mut self, broken: Broken) {
        self.broken = Some(broken);
        let app = broken.app.and_then(|app| self.members.get(app)).map(|member| member.name.as_str());
        self.journal.tell(&Entry::Broken { what: broken.to_string(), app });
        self.audit_own(Event::Broken, Decision::Noted, &broken.to_string());
        // A replay has to reach this record, so it must not be lost.
        self.streams.pump();
    }

    /// Why nothing is scheduled, if that is so.
    pub(super) fn why_unscheduled(&self) -> Option<String> {
        let broken = self.broken?;
        Some(format!(
            "the scheduler broke an invariant and lets all apps run unscheduled ({broken}); restart takt serve"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use takt_core::policy::{Context, Policy};
    use takt_core::{Estimate, GroupId, GroupKind, Lane};
    use takt_ipc::client::{Joined, Joining, NotScheduled, Progress};
    use takt_ipc::message::Hello;
    use takt_ipc::{Reply, Request};

    use super::*;
    use crate::control::ask::Answer;
    use crate::control::config::Settings;
    use crate::control::view::View;
    use crate::observe::journal::{Format, Journal};
    use crate::rt::queues::Order;

    /// Long enough for any machine.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Chooses a lane that does not exist.
    #[derive(Debug)]
    struct Blind;

    impl Policy for Blind {
        fn name(&self) -> &'static str {
            "fifo"
        }

        fn choose(&mut self, _context: &Context, lanes: &mut [Lane]) -> Option<usize> {
            Some(lanes.len())
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
        }
    }

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Serves until `done` returns a value.
    fn serve<T>(server: &mut Server, mut done: impl FnMut(&mut Server) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            server.turn().expect("it serves");
            if let Some(found) = done(server) {
                return found;
            }
            assert!(Instant::now() < until, "it did not happen in time");
        }
    }

    fn join(server: &mut Server, path: &Path, name: &str) -> Result<Box<Joined>, NotScheduled> {
        // It is protected while the core schedules.
        let hello = Hello {
            name: name.to_owned(),
            fps_mhz: Some(60_000),
            etpf_ns: Some(1_000_000),
            ..Hello::default()
        };
        let mut joining = Some(Joining::begin(path, &hello)?);
        serve(server, |_| match joining.take()?.finish(Duration::ZERO) {
            Ok(Progress::NotYet(again)) => {
                joining = Some(again);
                None
            }
            Ok(Progress::Joined(joined)) => Some(Ok(joined)),
            Err(error) => Some(Err(error)),
        })
    }

    #[test]
    fn every_app_runs_unscheduled_and_is_told() {
        let path = std::env::temp_dir().join(format!("takt-broken-{}", std::process::id()));
        let (told, recorded) = (Shared::default(), Shared::default());
        let server = Server::start(path.clone(), Settings::default()).expect("a daemon");
        let mut server =
            server.with_journal(Journal::new(Box::new(told.clone()), Format::Text).expect("a thread"));
        server.record_to(recorded.clone(), "this").expect("a thread");
        let mut app = join(&mut server, &path, "dial").expect("a slot");
        assert!(app.welcome.admission.starts_with("protected"), "{}", app.welcome.admission);

        server.order(Order::Policy(Box::new(Blind)));
        let estimate = Estimate::new(Span::from_us(100));
        let submit = Request::Submit { group: GroupId(0), kind: GroupKind::Draw, estimate };
        app.sender.send(&submit).expect("room");
        let gone = |server: &mut Server| server.members.iter().next().is_none();
        serve(&mut server, |server| (server.broken.is_some() && gone(server)).then_some(()));

        let reply = |app: &mut Joined| app.receiver.next_reply().expect("an honest daemon");
        let replies: Vec<Reply> = std::iter::from_fn(|| reply(&mut app)).collect();
        assert_eq!(replies.last(), Some(&Reply::Farewell), "it does not wait for grants any more");
        let reason = |error| match error {
            NotScheduled::NotNow { reason, .. } => reason,
            other => panic!("it may come back: {other}"),
        };
        let why = reason(join(&mut server, &path, "late").expect_err("no client is admitted"));
        assert!(why.contains("run unscheduled") && why.contains("'choice'"), "{why}");
        assert!(!why.contains("guaranteed"));
        let Answer::Daemon(answer) = server.daemon_answer(&View::All, 0) else { panic!("another answer") };
        assert!(answer.broken.is_some_and(|broken| broken.contains("'choice'")));
        let lines = |event: &str| {
            let text = told.text();
            text.lines().filter(|line| line.split(' ').nth(1) == Some(event)).count()
        };
        serve(&mut server, |_| (lines("alarm") > 0).then_some(()));
        assert_eq!((lines("broken"), lines("alarm")), (1, 1), "{}", told.text());
        // While the daemon still runs: its end may never come.
        serve(&mut server, |_| recorded.text().contains("\"record\":\"broken\"").then_some(()));
    }
}
