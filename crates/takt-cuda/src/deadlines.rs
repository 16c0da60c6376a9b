//! Streams whose work has a deadline, as the program says by `cudaStreamDeadlineBegin` and `cudaStreamDeadlineEnd`.
//!
//! What is put into such a stream in between is one job. For the daemon the stream is a client with a contract of its
//! own, beside that of the process. Clients stay when their jobs are over: the next job with the same terms begins
//! without asking for admission again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use takt_core::Span;
use takt_ipc::message::{Hello, NAME_MAX};
use takt_ipc::name::nearest;

use crate::client::{Client, Ending, client};
use crate::settings::settings;
use crate::streams::Stream;
use crate::{ends, guard};

/// Most streams with deadlines at once.
pub const OPEN_MAX: usize = 32;

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Answer {
    /// The stream has a deadline, or has none any more.
    Done = 0,
    /// A number is out of range.
    Invalid = 1,
    /// The program is not scheduled.
    Unscheduled = 2,
    /// More streams have deadlines than can.
    TooMany = 3,
}

/// A stream that has a deadline.
#[derive(Debug)]
struct Open {
    stream: Stream,
    context: usize,
    client: &'static Client,
}

#[derive(Debug)]
struct State {
    open: Vec<Open>,
    /// Clients whose jobs are over, the last one last.
    idle: Vec<&'static Client>,
    all: Vec<&'static Client>,
}

static STATE: RwLock<State> = RwLock::new(State { open: Vec::new(), idle: Vec::new(), all: Vec::new() });

/// How many streams have deadlines: most programs have none, and then this is all that is looked at.
static OPEN: AtomicU32 = AtomicU32::new(0);
/// The same for clients.
static CLIENTS: AtomicU32 = AtomicU32::new(0);

fn read() -> RwLockReadGuard<'static, State> {
    STATE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, State> {
    STATE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The client of a stream that has a deadline.
#[inline]
pub fn client_of(stream: &Stream) -> Option<&'static Client> {
    if OPEN.load(Ordering::Acquire) == 0 { None } else { find(stream) }
}

#[cold]
fn find(stream: &Stream) -> Option<&'static Client> {
    read().open.iter().find(|open| open.stream == *stream).map(|open| open.client)
}

/// The clients of all streams that have or had deadlines.
pub fn clients() -> impl Iterator<Item = &'static Client> {
    let all = if CLIENTS.load(Ordering::Acquire) == 0 { Vec::new() } else { read().all.clone() };
    all.into_iter()
}

/// Terms in microseconds, as the program gives them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// How long after its arrival the job is due.
    pub deadline_us: u32,
    /// GPU time that it needs.
    pub budget_us: u32,
    /// Time between two jobs; 0 or less if they have none, and then it is the deadline.
    pub period_us: i32,
}

impl Terms {
    /// As a daemon is asked; none if no job could ever be so.
    fn asked(self, process: &Hello) -> Option<Hello> {
        let deadline = Span::from_us(self.deadline_us.into());
        let period = u32::try_from(self.period_us).ok().filter(|us| *us > 0);
        let period = period.map_or(deadline, |us| Span::from_us(us.into()));
        let budget = Span::from_us(self.budget_us.into());
        if budget == Span::ZERO || budget > deadline.min(period) {
            return None;
        }
        // What is due later than the next job comes is in time with that, too.
        let early = deadline < period;
        Some(Hello {
            priority: process.priority,
            period_ns: Some(period.as_ns()),
            runtime_ns: Some(budget.as_ns()),
            deadline_ns: early.then(|| deadline.as_ns()),
            max_slice_ns: process.max_slice_ns,
            divisible: true,
            ..Hello::default()
        })
    }
}

/// What is put into a stream from now on has these terms. A job that the stream has ends first.
pub fn begin(stream: Stream, terms: Terms) -> Answer {
    if !settings().is_scheduled() || guard::is_switched_off() {
        return Answer::Unscheduled;
    }
    let process = client();
    let Some(hello) = terms.asked(&process.hello()) else {
        return Answer::Invalid;
    };
    end(stream);
    // Work that is in it already belongs to the process.
    if process.has_touched(stream.handle) {
        process.hand_over_surely();
    }
    let context = stream.find_context();
    let Some(client) = take(hello) else {
        return Answer::TooMany;
    };
    let mut state = write();
    state.open.push(Open { stream, context, client });
    OPEN.fetch_add(1, Ordering::Release);
    Answer::Done
}

/// A client for a job with such terms.
fn take(hello: Hello) -> Option<&'static Client> {
    let mut state = write();
    let same = state.idle.iter().rposition(|client| client.has_terms(&hello));
    if let Some(at) = same {
        return Some(state.idle.remove(at));
    }
    if state.all.len() < OPEN_MAX {
        let client: &'static Client =
            Box::leak(Box::new(Client::new(named(hello, state.all.len() + 1), Ending::Said)));
        state.all.push(client);
        CLIENTS.fetch_add(1, Ordering::Release);
        drop(state);
        client.session().join();
        return Some(client);
    }
    let client = if state.idle.is_empty() { return None } else { state.idle.remove(0) };
    drop(state);
    client.ask_for(hello);
    Some(client)
}

/// With the name of the process and a number.
fn named(hello: Hello, number: usize) -> Hello {
    let (app, end) = (nearest(&settings().environment.app), format!(".stream-{number}"));
    // Names are of single bytes.
    let app = &app[..app.len().min(NAME_MAX - end.len())];
    Hello { name: format!("{app}{end}"), ..hello }
}

/// The job of a stream is with the GPU: it is over when all of its work is. Nothing waits for that.
pub fn end(stream: Stream) -> Answer {
    end_where(|other, _| *other == stream);
    if settings().is_scheduled() { Answer::Done } else { Answer::Unscheduled }
}

/// Ends the jobs of streams that are so, by the stream and its context.
pub fn end_where(is_so: impl Fn(&Stream, usize) -> bool) {
    if OPEN.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut state = write();
    let (over, open) = std::mem::take(&mut state.open)
        .into_iter()
        .partition::<Vec<Open>, _>(|open| is_so(&open.stream, open.context));
    state.open = open;
    OPEN.store(u32::try_from(state.open.len()).unwrap_or(u32::MAX), Ordering::Release);
    drop(state);
    for Open { client, .. } in over {
        client.end_job();
        write().idle.push(client);
    }
    ends::wake();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(deadline_us: u32, budget_us: u32, period_us: i32) -> Option<Hello> {
        let process = Hello { priority: Some(5), ..Hello::default() };
        Terms { deadline_us, budget_us, period_us }.asked(&process)
    }

    #[test]
    fn deadlines_become_contracts() {
        let early = asked(4_000, 3_000, 40_000).expect("the set of the paper");
        assert_eq!((early.period_ns, early.deadline_ns), (Some(40_000_000), Some(4_000_000)));
        assert_eq!((early.runtime_ns, early.priority, early.divisible), (Some(3_000_000), Some(5), true));
        for (deadline, period) in [(40_000, 40_000), (40_000, 0), (40_000, -1), (90_000, 40_000)] {
            let server = asked(deadline, 3_000, period).expect("a server");
            assert_eq!(
                (server.period_ns, server.deadline_ns),
                (Some(40_000_000), None),
                "{deadline} {period}"
            );
        }
    }

    #[test]
    fn jobs_that_could_never_be_are_refused() {
        for (deadline, budget, period) in [(0, 1, 10), (4_000, 0, 40_000), (4_000, 5_000, 40_000), (9, 8, 7)]
        {
            assert_eq!(asked(deadline, budget, period), None, "{deadline} {budget} {period}");
        }
    }
}
