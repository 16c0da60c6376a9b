//! How a program joins a daemon: at once where it has drawn nothing yet, otherwise without waiting for it.

use std::sync::Arc;
use std::time::Duration;

use takt_core::{Span, Time};

use super::commands::Commands;
use super::grants::Grants;
use super::pacing::Telling;
use super::{Link, On, RETRY};
use takt_ipc::client::{Joined, Joining, NotScheduled, Progress, join};
use takt_ipc::message::Message;
use takt_ipc::spin::SpinBudget;
use takt_os::{clock, sandbox};

/// How long the daemon may take to admit us while we run on.
const JOINING_MAX: Span = Span::from_ms(5_000);
/// Longest time to spin for a reply, whatever the daemon says.
const SPIN_MAX_US: u32 = 1_000;

impl Link {
    /// Joins, unless we have joined or tried a moment ago.
    pub(crate) fn connect(&mut self) {
        let (None, Some(socket)) = (&self.on, self.socket.clone()) else {
            return;
        };
        let now = clock::now();
        self.ask_why();
        if let Some((joining, until)) = self.joining.take() {
            match joining.finish(Duration::ZERO) {
                Ok(Progress::NotYet(joining)) if now < until => self.joining = Some((joining, until)),
                Ok(Progress::NotYet(joining)) => self.not_joined(joining.too_late(), now),
                Ok(Progress::Joined(joined)) => self.joined(*joined),
                Err(error) => self.not_joined(error, now),
            }
            return;
        }
        if now < self.retry_at {
            return;
        }
        if sandbox::has_closed() {
            return self.shut_in();
        }
        let is_first = self.retry_at == Time::ZERO;
        self.retry_at = now + RETRY;
        if is_first {
            match join(&socket, &self.hello, self.patience.answer) {
                Ok(joined) => self.joined(joined),
                Err(error) => self.not_joined(error, now),
            }
        } else {
            match Joining::begin(&socket, &self.hello) {
                Ok(joining) => self.joining = Some((joining, now + JOINING_MAX)),
                Err(error) => self.not_joined(error, now),
            }
        }
    }

    /// The program's sandbox allows no new connection, and may end a program that tries.
    fn shut_in(&mut self) {
        self.retry_at = Time::NEVER;
        self.say(
            "not scheduled: the program is in its sandbox by now, which allows no connection".to_owned(),
        );
    }

    fn not_joined(&mut self, error: NotScheduled, now: Time) {
        match &error {
            // Asking again would not change its mind.
            NotScheduled::Refused(_) => self.retry_at = Time::NEVER,
            NotScheduled::NotNow { again, .. } => {
                let again = Span::from_ns(u64::try_from(again.as_nanos()).unwrap_or(u64::MAX));
                self.retry_at = now + again.max(RETRY);
            }
            // That it is gone was said when it went.
            NotScheduled::Absent { .. } if self.is_unscheduled_said() => return,
            NotScheduled::Absent { .. } | NotScheduled::Nonsense => {}
        }
        self.say(format!("not scheduled: {error}"));
    }

    fn joined(&mut self, joined: Joined) {
        let Joined { connection, welcome, sender, receiver } = joined;
        self.life += 1;
        self.epoch += 1;
        self.parting = None;
        self.on = Some(On {
            daemon: connection.peer().map_or(0, |peer| peer.pid),
            connection: Arc::new(connection),
            sender,
            region: receiver.region(),
            receiver: Some(receiver),
            first: None,
            spin: SpinBudget::new(Span::from_us(welcome.spin_us.min(SPIN_MAX_US).into())),
            welcome,
            grants: Grants::default(),
            commands: Commands::default(),
            release: None,
            between_frames: false,
            slice: None,
            telling: Telling::new(&self.hello),
        });
        self.say_welcome();
    }

    pub(super) fn say_welcome(&mut self) {
        let admission = self.welcome().map(|welcome| welcome.admission.clone()).unwrap_or_default();
        self.say(format!("scheduled as {}: {admission}", self.hello.name));
    }

    /// Says why the daemon evicted us, once it has told.
    fn ask_why(&mut self) {
        let Some(connection) = self.parting.take_if(|parting| parting.wait(Duration::ZERO).unwrap_or(true))
        else {
            return;
        };
        if let Ok(Some(received)) = connection.receive()
            && let Message::Refused { reason, .. } = received.message
        {
            self.say(format!("evicted: {reason}"));
        }
    }
}
