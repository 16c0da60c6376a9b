//! When groups were over.
//!
//! When a group is closed, an event of ours is recorded in each of the program's streams that it touched; it is over
//! when all of them happened. The thread `takt-cuda` looks for that, and so does every thread of the program that has
//! waited for the GPU. No stream is ours, and nothing here waits for the GPU.

mod events;
mod thread;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use takt_client::Grant;
use takt_client::ends::{Account, Seen, Submission};
use takt_core::{Span, Time};
use takt_os::clock;

use crate::client::Client;
use crate::predict::times::Company;
use crate::predict::{Entry, in_proportion};
use crate::streams::{Stream, Touched};

pub(crate) use events::contexts_of;
pub use events::{Happened, Mark, Marks};
pub use thread::{start, wake};

/// Groups that are not over; beyond this, the oldest one counts as over.
const FLIGHTS_MAX: usize = 256;
/// Streams wait for something that the GPU does not do, so that a group may take longer than its work.
static DISTRUSTED: AtomicBool = AtomicBool::new(false);

/// From now on what groups take says nothing of their work; only launches that are measured by themselves do.
pub fn distrust() {
    DISTRUSTED.store(true, Ordering::Relaxed);
}

/// Whether that is so.
#[inline]
pub fn is_distrusted() -> bool {
    DISTRUSTED.load(Ordering::Relaxed)
}

/// Launches that are measured by themselves and are not over; beyond this, no more are.
const SAMPLES_MAX: usize = 64;
/// How long a group may be under way before it counts as over: a kernel that never ends must not keep others waiting
/// for ever. The daemon gives up on it earlier.
const PATIENCE_NS: u64 = 60_000_000_000;
/// How long a group waits for a thread that is inside of the driver, beyond what it was predicted to take.
const LATE_MAX_NS: u64 = 1_000_000_000;

/// A group that is with the GPU.
#[derive(Debug)]
pub struct Flight {
    /// Whose it is.
    pub client: &'static Client,
    /// Its grant; none if it was taken back.
    pub grant: Option<Grant>,
    /// When its first command went to the driver.
    pub began_ns: u64,
    /// What it was predicted to take.
    pub predicted_ns: u64,
    /// What it is, if it is a single command that was launched before.
    pub single: Option<&'static Entry>,
    /// Which group of the client it is.
    epoch: u64,
    /// How many threads were inside of the driver when it was closed, and still are.
    late: u32,
    /// Whether others could have turns meanwhile.
    pub company: Company,
    marks: Marks,
}

/// A launch that is measured by itself.
#[derive(Debug)]
pub struct Sample {
    entry: &'static Entry,
    marks: [Mark; 2],
    company: Company,
    scale: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Under {
    flights: VecDeque<Flight>,
    samples: VecDeque<Sample>,
}

static UNDER_WAY: Mutex<Under> = Mutex::new(Under { flights: VecDeque::new(), samples: VecDeque::new() });

fn under_way() -> MutexGuard<'static, Under> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What of a group is known when it is handed over.
#[derive(Debug)]
pub struct Handed {
    /// Whose it is.
    pub client: &'static Client,
    /// Its grant.
    pub grant: Option<Grant>,
    /// Which group of the client it is.
    pub epoch: u64,
    /// How many threads are still inside of the driver with its work: each says so by [`late`] when it leaves.
    pub late: u32,
    /// When it began.
    pub began_ns: u64,
    /// What it was predicted to take.
    pub predicted_ns: u64,
    /// What it is, if it is one command.
    pub single: Option<&'static Entry>,
}

/// Follows a group to its end: records events behind it, in the streams that it touched.
pub fn follow(handed: Handed, touched: &[Touched]) {
    let Handed { client, grant, epoch, late, began_ns, predicted_ns, single } = handed;
    let marks = Marks::behind(touched, began_ns + predicted_ns);
    let company = client.company();
    let flight = Flight { client, grant, began_ns, predicted_ns, single, epoch, late, company, marks };
    let mut under = under_way();
    under.flights.push_back(flight);
    let oldest = if under.flights.len() > FLIGHTS_MAX { under.flights.pop_front() } else { None };
    drop(under);
    if let Some(flight) = oldest {
        flight.complete(Seen::at(now_ns()));
    }
    wake();
}

/// Whether the GPU has groups of that client.
pub fn is_under_way(client: &'static Client) -> bool {
    under_way().flights.iter().any(|flight| std::ptr::eq(flight.client, client))
}

/// A thread has left the driver whose group was closed meanwhile: the group is over behind its work.
pub fn late(client: &'static Client, epoch: u64, stream: &Stream) {
    let touched = Touched { stream: *stream, context: stream.find_context() };
    let marks = Marks::behind(&[touched], now_ns());
    let mut under = under_way();
    let is_it = |flight: &&mut Flight| flight.epoch == epoch && std::ptr::eq(flight.client, client);
    match under.flights.iter_mut().find(is_it) {
        Some(flight) => {
            flight.late = flight.late.saturating_sub(1);
            flight.marks.add(marks);
        }
        None => marks.give_back(),
    }
    drop(under);
    wake();
}

/// Looks which groups are over, and tells the daemon. Whether any is still under way.
pub fn look() -> bool {
    let mut over = Vec::new();
    let mut under = under_way();
    let at_ns = now_ns();
    let mut index = 0;
    while index < under.flights.len() {
        // Groups of one client end in their order.
        let client = under.flights[index].client;
        let is_first = !under.flights.iter().take(index).any(|before| std::ptr::eq(before.client, client));
        if is_first && under.flights[index].is_over(at_ns) {
            over.extend(under.flights.remove(index));
        } else {
            index += 1;
        }
    }
    let learned = under.take_samples();
    let more = !under.flights.is_empty() || !under.samples.is_empty();
    drop(under);
    over.into_iter().for_each(|flight| flight.complete(Seen::at(at_ns)));
    learned.into_iter().for_each(Sample::learn);
    more
}

/// How long until a look is likely to find something, if anything is under way.
pub fn until_next_ns() -> Option<u64> {
    let (under, now_ns) = (under_way(), now_ns());
    let until = |flight: &Flight| (flight.began_ns + flight.predicted_ns).saturating_sub(now_ns);
    let first = under.flights.iter().map(until).min();
    first.or_else(|| (!under.samples.is_empty()).then_some(0))
}

/// A context is about to go, with its events; or any context of that device.
pub fn forget(context: impl Fn(usize) -> bool) -> Vec<Flight> {
    let mut under = under_way();
    under.samples.retain(|sample| !sample.marks.iter().any(|mark| context(mark.context())));
    let (gone, stay): (Vec<Flight>, Vec<Flight>) =
        under.flights.drain(..).partition(|flight| flight.marks.is_in(&context));
    under.flights.extend(stay);
    drop(under);
    events::forget(context);
    gone
}

/// These groups were over when their context was.
pub fn gone(flights: Vec<Flight>) {
    let seen = Seen::at(now_ns());
    flights.into_iter().for_each(|flight| flight.complete(seen));
}

/// Begins to measure a launch that goes into that stream; none if there is no room for another one.
pub fn begin_sample(stream: &Stream) -> Option<Mark> {
    if under_way().samples.len() >= SAMPLES_MAX {
        return None;
    }
    Mark::timed(stream)
}

/// The launch is with the driver. A time is that of `scale.0`, and counts for `scale.1`.
pub fn end_sample(
    client: &Client,
    entry: &'static Entry,
    begun: Mark,
    stream: &Stream,
    scale: Option<(u64, u64)>,
) {
    let Some(ended) = Mark::timed(stream) else {
        return begun.give_back();
    };
    let sample = Sample { entry, marks: [begun, ended], company: client.company(), scale };
    under_way().samples.push_back(sample);
    wake();
}

impl Under {
    fn take_samples(&mut self) -> Vec<Sample> {
        let mut over = Vec::new();
        let mut index = 0;
        while index < self.samples.len() {
            match self.samples[index].marks[1].look() {
                Happened::NotYet => index += 1,
                Happened::Yes | Happened::Never => over.extend(self.samples.remove(index)),
            }
        }
        over
    }
}

impl Sample {
    fn learn(self) {
        let Self { entry, marks: [begun, ended], company, scale } = self;
        if let Some(ns) = begun.until_ns(&ended) {
            let ns = scale.map_or(ns, |(of, to)| in_proportion(ns, of, to));
            entry.learn(ns, company);
        }
        begun.give_back();
        ended.give_back();
    }
}

impl Flight {
    fn is_over(&mut self, now_ns: u64) -> bool {
        let age_ns = now_ns.saturating_sub(self.began_ns);
        let is_late = self.late > 0 && age_ns < self.predicted_ns.saturating_add(LATE_MAX_NS);
        (!is_late && self.marks.are_over(now_ns)) || age_ns > PATIENCE_NS
    }

    /// It is over: tells the daemon, and keeps in mind how long it took.
    fn complete(self, seen: Seen) {
        let submission = Submission { at_ns: self.began_ns, in_calls_ns: 0, gathered: None };
        let timing = self.client.account().completed(&submission, seen);
        self.client.was_over(now_ns());
        if let Some(grant) = self.grant {
            let (finished, cost) = (Time::from_ns(timing.completed_ns), Span::from_ns(timing.cost_ns));
            self.client.session().complete(grant, finished, cost);
        }
        let alone = self.company == Company::None && self.client.company() == Company::None;
        let trusted = !timing.together && self.marks.are_seen() && !is_distrusted();
        if let Some(entry) = self.single.filter(|_| trusted) {
            entry.learn(timing.cost_ns, if alone { Company::None } else { Company::Others });
        }
        self.marks.give_back();
    }
}

/// The account of a client: when the GPU was free for its next group.
pub type Ends = Account;

fn now_ns() -> u64 {
    clock::now().as_ns()
}
