//! Threads that answer questions which take long.
//!
//! The control thread hands over what the answer needs and goes on; a doorbell rings when the answer is
//! there. A few questions are answered at once, the others wait with their sessions. An answer is for all
//! sessions that asked the same, and a summary is also for those that ask it a moment later.
//!
//! The threads have an ordinary priority. With less they might get no processor while they hold a lock of the
//! process's memory, for which the control thread waits then.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use takt_core::{Span, Time};
use takt_ipc::wake::Doorbell;
use takt_os::clock;

use crate::control::ask::{Answer, Ask};
use crate::control::view::View;

/// Questions that are answered at once.
const THREADS: usize = 2;
/// How long a summary is also for those that ask later; the daemon reads records less often than that.
const FRESH: Span = Span::from_ms(50);
/// Most summaries that are kept: one for each length.
const KEPT_MAX: usize = 30;

/// A question, and which apps the answer may be about.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Query {
    pub(super) ask: Ask,
    pub(super) view: View,
}

/// A question, for whom, and how to answer it.
pub(super) struct Job {
    pub(super) query: Query,
    /// The user that pays for it.
    pub(super) uid: u32,
    /// Sessions that asked.
    pub(super) sessions: Vec<u64>,
    /// The time that it is answered for.
    pub(super) at: Time,
    pub(super) work: Work,
}

/// Makes an answer.
pub(super) type Work = Box<dyn FnOnce() -> Answer + Send>;

/// An answer.
#[derive(Debug)]
pub(super) struct Done {
    query: Query,
    pub(super) uid: u32,
    pub(super) sessions: Vec<u64>,
    at: Time,
    pub(super) took: Span,
    pub(super) text: Arc<str>,
}

/// The threads; they end when this is dropped and their answers are made, and no thread waits for them.
#[derive(Debug)]
pub(super) struct Analysts {
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    bell: Arc<Doorbell>,
    busy: usize,
    fresh: VecDeque<(Time, Query, Arc<str>)>,
}

impl Analysts {
    pub(super) fn start() -> std::io::Result<Self> {
        let (jobs, given) = sync_channel::<Job>(THREADS);
        let (tell, done) = sync_channel(THREADS);
        let given = Arc::new(Mutex::new(given));
        let bell = Arc::new(Doorbell::new()?);
        for _ in 0..THREADS {
            let (given, tell, bell) = (Arc::clone(&given), tell.clone(), Arc::clone(&bell));
            std::thread::Builder::new().name("takt-analyst".to_owned()).spawn(move || {
                while let Some(job) = next(&given) {
                    if tell.send(job.answer()).is_err() {
                        return;
                    }
                    bell.ring();
                }
            })?;
        }
        Ok(Self { jobs, done, bell, busy: 0, fresh: VecDeque::new() })
    }

    /// Whether another question can be handed over.
    pub(super) fn have_room(&self) -> bool {
        self.busy < THREADS
    }

    /// Hands a question over; there is room.
    pub(super) fn give(&mut self, job: Job) {
        debug_assert!(self.have_room(), "the caller asks first");
        self.busy += 1;
        if self.jobs.try_send(job).is_err() {
            debug_assert!(false, "the threads are there as long as this is");
            self.busy -= 1;
        }
    }

    /// The next answer that is there.
    pub(super) fn take(&mut self) -> Option<Done> {
        self.bell.silence();
        let done = self.done.try_recv().ok()?;
        self.busy -= 1;
        if matches!(done.query.ask, Ask::Summary { .. }) {
            self.fresh.retain(|(_, query, _)| *query != done.query);
            self.fresh.truncate(KEPT_MAX - 1);
            self.fresh.push_front((done.at, done.query.clone(), Arc::clone(&done.text)));
        }
        Some(done)
    }

    /// The answer to the same question a moment ago.
    pub(super) fn fresh(&self, query: &Query, now: Time) -> Option<Arc<str>> {
        let known = self.fresh.iter().find(|(at, other, _)| other == query && now.since(*at) < FRESH);
        known.map(|(_, _, text)| Arc::clone(text))
    }
}

impl Job {
    fn answer(self) -> Done {
        let began = clock::now();
        // A mistake of ours in judging records costs this answer, not the thread.
        let work = std::panic::AssertUnwindSafe(self.work);
        let answer = std::panic::catch_unwind(work)
            .unwrap_or_else(|_| Answer::refused("the daemon failed to answer; its standard error says why"));
        let text = Arc::from(serde_json::to_string(&answer).unwrap_or_default());
        let took = clock::now().since(began);
        Done { query: self.query, uid: self.uid, sessions: self.sessions, at: self.at, took, text }
    }
}

impl AsFd for Analysts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.bell).as_fd()
    }
}

/// The next one, waiting for it; none when the control thread is gone.
fn next(given: &Mutex<Receiver<Job>>) -> Option<Job> {
    given.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ask: Ask) -> Query {
        Query { ask, view: View::All }
    }

    fn job(ask: Ask, at: Time, work: impl FnOnce() -> Answer + Send + 'static) -> Job {
        Job { query: all(ask), uid: 7, sessions: vec![3, 4], at, work: Box::new(work) }
    }

    fn await_one(analysts: &mut Analysts) -> Done {
        loop {
            if let Some(done) = analysts.take() {
                return done;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn questions_are_answered_at_once_and_summaries_stay_fresh() {
        let mut analysts = Analysts::start().expect("threads");
        let (open, opened) = sync_channel::<()>(1);
        let (first, second) = (Ask::Summary { window_s: 1 }, Ask::Summary { window_s: 2 });
        let at = Time::from_ms(1_000);
        analysts.give(job(first.clone(), at, move || {
            opened.recv().unwrap_or_default();
            Answer::Done
        }));
        analysts.give(job(second.clone(), at, || Answer::refused("second")));
        assert!(!analysts.have_room());
        let done = await_one(&mut analysts);
        assert_eq!((&done.query, done.uid, &*done.sessions), (&all(second.clone()), 7, &[3, 4][..]));
        assert!(analysts.have_room(), "the slow one takes one thread");
        let fresh = |analysts: &Analysts, ask: &Ask, ms| {
            analysts.fresh(&all(ask.clone()), Time::from_ms(ms)).map(|text| text.to_string())
        };
        assert_eq!(fresh(&analysts, &second, 1_020).as_deref(), Some(&*done.text));
        assert_eq!(fresh(&analysts, &second, 1_051), None, "too old");
        assert_eq!(fresh(&analysts, &first, 1_000), None);
        let view = View::Own { domain: "ivi".to_owned(), uid: None };
        let less = Query { ask: second.clone(), view };
        assert_eq!(analysts.fresh(&less, at), None, "not for those who see less");
        drop(open);
        assert_eq!(await_one(&mut analysts).query.ask, first);
        let why = Ask::Why { app: "dial".to_owned(), frame: None };
        analysts.give(job(why.clone(), at, || Answer::Done));
        await_one(&mut analysts);
        assert_eq!(fresh(&analysts, &why, 1_000), None, "only summaries are kept");
        for _ in 0..THREADS + 1 {
            analysts.give(job(why.clone(), at, || panic!("a mistake in judging")));
            assert!(await_one(&mut analysts).text.contains("failed to answer"));
        }
    }
}
