//! Command groups and jobs of the process, as the daemon sees them.
//!
//! A group is all work between two grants. It begins when a launch finds no credit: the thread closes the group before,
//! asks the daemon, and fills the gate. It ends when the credit is used up, when the program waits for the GPU, when it
//! has given no work for a while, or before something that must not happen inside of one. A *job* is the work between
//! two sleeps of the program ([`takt_client::frame_finder`]), or what the program says ([`deadlines`]).

mod group;
mod jobs;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use takt_client::{Grant, Session, environment};
use takt_core::Span;
use takt_ipc::message::Hello;
use takt_os::clock;

use crate::deadlines;
use crate::ends::{self, Ends, Handed};
use crate::gate::{CREDIT_MAX_NS, Credit, Gate};
use crate::guard;
use crate::predict::Entry;
use crate::predict::times::Company;
use crate::settings::{is_contract, settings};
use crate::streams::{Stream, Touched};
use group::Group;
use jobs::Jobs;

pub use jobs::{Boundary, Ending};

/// How long a thread that closes a group waits for others that are inside of the driver.
const INSIDE_MAX: Duration = Duration::from_millis(10);

/// Longest group: the session takes back what is held for longer than a tenth of a second.
const GROUP_MAX: Span = Span::from_ms(50);

/// A group that got nothing for so long is closed, and so is any that is this old.
const IDLE_NS: u64 = 1_000_000;
const OLD_NS: u64 = 50_000_000;

/// How often to look for a daemon that is away.
const AWAY_NS: u64 = 1_000_000_000;

/// The same for a group that was kept while the program waited: what it kept it for comes at once, or not.
const KEPT_NS: u64 = 300_000;
/// A group is kept for a program that went on so soon after so many waits.
const RESTLESS: u32 = 4;

/// Where no call says it, a job has ended when the GPU was done, and nothing came, for so long.
const QUIET_NS: u64 = 1_000_000;

/// What copies may take between two groups without a grant.
const UNGRANTED_MAX_NS: u64 = 200_000;

/// A client of the daemon: the process, or a stream with a contract of its own.
#[derive(Debug)]
pub struct Client {
    session: Session,
    hello: RwLock<Hello>,
    gate: Gate,
    /// Changes with each group.
    epoch: AtomicU64,
    /// One thread at a time closes groups and asks.
    asking: Mutex<()>,
    group: Mutex<Group>,
    /// When the open group last got something, roughly.
    touched_ns: AtomicU64,
    /// Threads that wait for the GPU while the open group is kept for them.
    waiting: AtomicU32,
    /// It was kept while the program waited.
    kept: AtomicBool,
    /// How often in a row the program went on at once when it had waited.
    restless: AtomicU32,
    jobs: Jobs,
    account: Ends,
    /// When the last of its groups was over.
    over_ns: AtomicU64,
    /// What copies took without a grant since the last group.
    ungranted_ns: AtomicU64,
    /// When to look for the daemon again.
    away_until_ns: AtomicU64,
    open: AtomicBool,
    /// It takes part in no contract of another app.
    alone: bool,
}

/// What a thread that is inside took with it: the group that its work belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    epoch: u64,
}

/// The client of the process.
static CLIENT: OnceLock<Client> = OnceLock::new();

/// The client of the process; from the first call on, its thread runs.
pub fn client() -> &'static Client {
    CLIENT.get_or_init(|| {
        guard::stay_in_this_process();
        ends::start();
        Client::new(settings().hello(), Ending::Found)
    })
}

/// The client, if there was a reason for one.
pub fn known() -> Option<&'static Client> {
    CLIENT.get()
}

/// All clients there are: the one of the process, and those of streams with deadlines.
fn all() -> impl Iterator<Item = &'static Client> {
    known().into_iter().chain(deadlines::clients())
}

/// Looks after all clients: whether any has an open group. With `careful`, no driver may be called.
pub fn tend_all(careful: bool) -> bool {
    // None is left out because another one has an open group.
    all().filter(|client| client.tend(careful)).count() > 0
}

/// Whether any client has an open group.
pub fn is_any_open() -> bool {
    all().any(|client| client.open.load(Ordering::Acquire))
}

/// Whether the open group of the process is kept for work that may come after a wait.
pub fn is_kept() -> bool {
    known().is_some_and(|client| {
        client.kept.load(Ordering::Relaxed) && client.waiting.load(Ordering::Relaxed) == 0
    })
}

/// Ends the open groups of all clients: the program waits for something that may be in any of them.
pub fn hand_over_all() {
    all().for_each(Client::hand_over);
}

/// The program is about to wait for the GPU: ends the open groups of all clients that do not keep theirs.
pub fn rest_all() {
    all().for_each(Client::rest);
}

/// The same, and waits for threads that do so already.
pub fn hand_over_all_surely() {
    all().for_each(Client::hand_over_surely);
}

/// A number for the next group. No two groups of the process have the same, so that a thread that remembers which
/// streams it has touched cannot take one client's group for another's.
fn next_epoch() -> u64 {
    static EPOCH: AtomicU64 = AtomicU64::new(0);
    EPOCH.fetch_add(1, Ordering::Relaxed) + 1
}

impl Client {
    pub(crate) fn new(hello: Hello, ending: Ending) -> Self {
        let session = environment::session(settings().environment.socket.clone(), hello.clone());
        let reserved = hello.runtime_ns.or(hello.etpf_ns).unwrap_or(0);
        Self {
            session,
            gate: Gate::default(),
            epoch: AtomicU64::new(next_epoch()),
            asking: Mutex::new(()),
            group: Mutex::default(),
            touched_ns: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            kept: AtomicBool::new(false),
            restless: AtomicU32::new(0),
            jobs: Jobs::new(reserved, is_contract(&hello).then_some(ending)),
            account: Ends::default(),
            over_ns: AtomicU64::new(0),
            ungranted_ns: AtomicU64::new(0),
            away_until_ns: AtomicU64::new(0),
            open: AtomicBool::new(false),
            alone: hello.feeds.is_none() && hello.shares.is_none(),
            hello: RwLock::new(hello),
        }
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// When the GPU was free for its next group.
    pub fn account(&self) -> &Ends {
        &self.account
    }

    /// What it asks the daemon for.
    pub fn hello(&self) -> Hello {
        self.hello.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it asks for that already, whatever its name is.
    pub fn has_terms(&self, hello: &Hello) -> bool {
        let own = self.hello();
        own == Hello { name: own.name.clone(), ..hello.clone() }
    }

    /// Asks for other terms from now on, under its own name. If the daemon refuses, those before stay.
    pub fn ask_for(&self, hello: Hello) {
        let hello = Hello { name: self.hello().name, ..hello };
        if self.session.renew(hello.clone()) {
            *self.hello.write().unwrap_or_else(PoisonError::into_inner) = hello;
        }
    }

    /// Whether others may have turns on the GPU.
    pub fn company(&self) -> Company {
        if self.session.has_company() { Company::Others } else { Company::None }
    }

    fn group(&self) -> std::sync::MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes credit for work that goes into a stream, and waits for it if there is none. The thread is inside
    /// afterwards, until [`Self::leave`].
    #[inline]
    pub fn admit(&'static self, need_ns: u64, stream: &Stream) -> Pass {
        let need_ns = need_ns.min(CREDIT_MAX_NS);
        if !self.gate.enter(need_ns) {
            self.admit_slowly(need_ns);
        }
        self.touch(stream)
    }

    /// The work is with the driver.
    #[inline]
    pub fn leave(&'static self, pass: Pass, stream: &Stream) {
        if self.epoch.load(Ordering::Acquire) != pass.epoch {
            self.leave_late(pass, stream);
        }
        self.gate.leave();
    }

    /// The group was closed while this thread was inside of the driver: it ends after this work, too.
    #[cold]
    fn leave_late(&'static self, pass: Pass, stream: &Stream) {
        ends::late(self, pass.epoch, stream);
    }

    #[inline]
    fn touch(&self, stream: &Stream) -> Pass {
        let pass = Pass { epoch: self.epoch.load(Ordering::Acquire) };
        if !stream.is_touched(pass.epoch) {
            self.touch_slowly(stream);
        }
        pass
    }

    #[cold]
    fn touch_slowly(&self, stream: &Stream) {
        if self.gate.credit() == Credit::Open {
            return;
        }
        let mut group = self.group();
        if !group.touched.iter().any(|touched| touched.stream == *stream) {
            group.touched.push(Touched { stream: *stream, context: stream.find_context() });
        }
        self.touched_ns.store(clock::now().as_ns(), Ordering::Relaxed);
    }

    #[cold]
    fn admit_slowly(&'static self, need_ns: u64) {
        loop {
            let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            if self.gate.enter(need_ns) {
                return;
            }
            self.close();
            self.ask(need_ns, None);
            drop(asking);
            // Another thread may have taken it meanwhile.
            if self.gate.enter(need_ns) {
                return;
            }
        }
    }

    /// Takes credit for work of unknown length, which is a group of its own unless this is the only client. Says
    /// whether it is; then [`Self::leave_alone`] ends it.
    #[cold]
    pub fn admit_alone(&'static self, entry: Option<&'static Entry>, stream: &Stream) -> (Pass, bool) {
        if self.gate.credit() == Credit::Open || self.session.is_alone() {
            return (self.admit(group::NOMINAL_NS, stream), false);
        }
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.close();
        let slice = self.session.slice().min(GROUP_MAX);
        self.ask(slice.as_ns(), Some(entry));
        // All of the credit is for this one.
        let entered = self.gate.enter(self.left_ns());
        drop(asking);
        if !entered {
            return (self.admit(group::NOMINAL_NS, stream), false);
        }
        (self.touch(stream), true)
    }

    fn left_ns(&self) -> u64 {
        match self.gate.credit() {
            Credit::Open => 0,
            Credit::Left(ns) => ns,
        }
    }

    /// Work of unknown length is with the driver: its group ends.
    pub fn leave_alone(&'static self, pass: Pass, stream: &Stream) {
        self.leave(pass, stream);
        self.hand_over();
    }

    /// Asks for the next group, whose first command needs so much. The lock of those who ask is held.
    fn ask(&'static self, need_ns: u64, single: Option<Option<&'static Entry>>) {
        self.session.begin_frame();
        let need = Span::from_ns(need_ns);
        let most = longest(need, self.session.slice().min(GROUP_MAX));
        let estimate = match single {
            Some(_) => need,
            None => Span::from_ns(self.jobs.wanted_ns(need_ns, most.as_ns())),
        };
        let grant = self.session.ask_to_fill(need, need.max(estimate));
        self.begin(grant, need_ns, single);
        ends::wake();
    }

    fn begin(&self, grant: Option<Grant>, need_ns: u64, single: Option<Option<&'static Entry>>) {
        let now_ns = clock::now().as_ns();
        let mut group = self.group();
        *group = Group::new(grant, now_ns, single.is_some(), single.flatten());
        self.touched_ns.store(now_ns, Ordering::Relaxed);
        self.kept.store(false, Ordering::Relaxed);
        self.ungranted_ns.store(0, Ordering::Relaxed);
        self.epoch.store(next_epoch(), Ordering::Release);
        match grant {
            Some(grant) => {
                self.open.store(true, Ordering::Release);
                // Its first command goes in whatever it needs: it would be asked for again and again.
                group.given_ns = grant.credit.min(GROUP_MAX).as_ns().max(need_ns).max(1);
                self.gate.fill(group.given_ns);
            }
            None => {
                self.away_until_ns.store(now_ns + AWAY_NS, Ordering::Relaxed);
                self.gate.open();
            }
        }
    }

    /// Ends the open group, if there is one and no other thread does so already.
    pub fn hand_over(&'static self) {
        if !self.open.load(Ordering::Acquire) {
            return;
        }
        // A thread that asks has closed it.
        if let Ok(_asking) = self.asking.try_lock() {
            self.close();
        }
    }

    /// The same if its jobs are judged: what follows in the stream is no part of it.
    pub fn hand_over_judged(&'static self) {
        if self.jobs.are_judged() {
            self.hand_over();
        }
    }

    /// Whether its jobs have deadlines.
    pub fn is_judged(&self) -> bool {
        self.jobs.are_judged()
    }

    /// One of its groups was over then.
    pub fn was_over(&self, at_ns: u64) {
        self.over_ns.fetch_max(at_ns, Ordering::Relaxed);
    }

    /// The program is about to wait: the open group ends, unless the program can go on with it afterwards. A program
    /// that waits often would ask for each piece of its work otherwise, and the GPU go to another process in between.
    fn rest(&'static self) {
        if self.keeps_groups() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.kept.store(true, Ordering::Relaxed);
        } else {
            self.hand_over();
        }
    }

    /// It has waited.
    pub fn rested(&self) {
        let less = |count: u32| count.checked_sub(1);
        if self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            self.touched_ns.store(clock::now().as_ns(), Ordering::Relaxed);
        }
    }

    /// A thread begins anew, so long after it had waited.
    fn goes_on(&self, after_ns: u64) {
        let restless = self.restless.load(Ordering::Relaxed);
        let now = if after_ns <= KEPT_NS { restless.saturating_add(1) } else { 0 };
        self.restless.store(now, Ordering::Relaxed);
    }

    /// Whether the program is likely to go on at once, and nothing depends on where its groups end: no contract pays
    /// for them, its own or that of another app.
    fn keeps_groups(&self) -> bool {
        self.open.load(Ordering::Acquire)
            && self.restless.load(Ordering::Relaxed) >= RESTLESS
            && !self.jobs.are_judged()
            && self.alone
            && !self.session.reserves()
    }

    /// The same, and waits for a thread that does so already.
    pub fn hand_over_surely(&'static self) {
        if self.open.load(Ordering::Acquire) {
            let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            self.close();
        }
    }

    /// Whether the open group has work in that stream.
    pub fn has_touched(&self, handle: usize) -> bool {
        self.open.load(Ordering::Acquire)
            && self.group().touched.iter().any(|touched| touched.stream.handle == handle)
    }

    /// Ends the open group. The lock of those who ask is held.
    fn close(&'static self) {
        if !self.open.swap(false, Ordering::AcqRel) {
            return;
        }
        let left_ns = self.left_ns();
        let have_left = self.gate.shut(INSIDE_MAX);
        let epoch = self.epoch.swap(next_epoch(), Ordering::AcqRel);
        let late = if have_left { 0 } else { self.gate.inside() };
        let group = std::mem::take(&mut *self.group());
        let used_ns = group.given_ns.saturating_sub(left_ns);
        self.jobs.contains(used_ns, group.grant);
        let grant = group.grant.and_then(|grant| self.session.hand_over(grant));
        if group.touched.is_empty() && late == 0 {
            // It was never used.
            if let Some(grant) = grant {
                self.session.complete(grant, clock::now(), Span::ZERO);
            }
            return;
        }
        let predicted_ns = if group.alone { group.given_ns } else { used_ns };
        let single = group.single.filter(|entry| entry.is_launched());
        let began_ns = group.began_ns;
        let handed = Handed { client: self, grant, epoch, late, began_ns, predicted_ns, single };
        ends::follow(handed, &group.touched);
    }

    /// Whether a copy that takes so long may go without a grant.
    pub fn is_small(&self, need_ns: u64) -> bool {
        if self.gate.credit() == Credit::Open {
            return true;
        }
        let before = self.ungranted_ns.fetch_add(need_ns, Ordering::Relaxed);
        before.saturating_add(need_ns) <= UNGRANTED_MAX_NS
    }

    /// Ends a job of a program that waits for its work without any call, because it looks at memory that the GPU
    /// writes, or of which is not known yet where its jobs end. Whether that may be soon. No driver is called.
    fn rest_quietly(&'static self, now_ns: u64) -> bool {
        if !self.jobs.are_open() || self.open.load(Ordering::Acquire) || ends::is_under_way(self) {
            return false;
        }
        let since_ns = self.touched_ns.load(Ordering::Relaxed).max(self.over_ns.load(Ordering::Relaxed));
        if now_ns.saturating_sub(since_ns) < QUIET_NS {
            return true;
        }
        // A thread that asks goes on with its job.
        if let Ok(_asking) = self.asking.try_lock()
            && !self.open.load(Ordering::Acquire)
            && self.jobs.end_quietly()
        {
            self.tell_end();
        }
        false
    }

    /// Closes a group that is not used any more, ends jobs that no call ends, and looks for a daemon that is away;
    /// whether any of this may be due soon.
    fn tend(&'static self, careful: bool) -> bool {
        let now_ns = clock::now().as_ns();
        if self.gate.credit() == Credit::Open {
            if now_ns >= self.away_until_ns.load(Ordering::Relaxed) {
                self.away_until_ns.store(now_ns + AWAY_NS, Ordering::Relaxed);
                self.session.join();
                if self.session.welcome().is_some() {
                    self.gate.fill(0);
                }
            }
            return false;
        }
        if !self.open.load(Ordering::Acquire) {
            return self.rest_quietly(now_ns);
        }
        if careful {
            return true;
        }
        let (began_ns, given_ns, alone, left_ns) = {
            let mut group = self.group();
            let left_ns = self.left_ns();
            if std::mem::replace(&mut group.looked_ns, left_ns) != left_ns {
                self.touched_ns.store(now_ns, Ordering::Relaxed);
            }
            (group.began_ns, group.given_ns, group.grant.is_some_and(|grant| grant.alone), left_ns)
        };
        let idle = self.is_idle(now_ns, began_ns + given_ns.saturating_sub(left_ns));
        let old = now_ns.saturating_sub(began_ns) > OLD_NS;
        let crowded = alone && self.session.has_company();
        // A thread that is inside ends it when it leaves; to wait for it here would keep ends from being seen.
        if old || (self.gate.is_empty() && (idle || crowded || left_ns == 0)) {
            self.hand_over();
        }
        self.open.load(Ordering::Acquire)
    }

    /// Whether the open group got nothing for a while; a program that waits for it has a reason until it should be
    /// over.
    fn is_idle(&self, now_ns: u64, over_ns: u64) -> bool {
        let touched_ns = self.touched_ns.load(Ordering::Relaxed);
        let waits = self.waiting.load(Ordering::Relaxed) > 0;
        let since_ns = if waits { touched_ns.max(over_ns) } else { touched_ns };
        let most_ns = if self.kept.load(Ordering::Relaxed) && !waits { KEPT_NS } else { IDLE_NS };
        now_ns.saturating_sub(since_ns) > most_ns
    }
}

/// How long a group may be that begins with so much: a slice, or what is longer alone.
fn longest(need: Span, slice: Span) -> Span {
    if need > slice { need } else { slice }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn client() -> &'static Client {
        Box::leak(Box::new(Client::new(Hello::default(), Ending::Found)))
    }

    fn grant(credit: Span) -> Grant {
        Grant { number: 0, life: 0, fills: true, credit, frames: 0, alone: false }
    }

    #[test]
    fn work_that_is_longer_than_any_group_goes_in_with_its_grant() {
        let client = client();
        let need_ns = 268_000_000;
        client.begin(Some(grant(Span::from_ns(need_ns))), need_ns, None);
        assert!(client.gate.enter(need_ns), "it would be asked for for ever");
        assert_eq!(client.gate.credit(), Credit::Left(0));
    }

    #[test]
    fn no_group_is_longer_than_the_session_holds_it() {
        let client = client();
        client.begin(Some(grant(Span::from_ms(500))), 1_000, None);
        assert_eq!(client.gate.credit(), Credit::Left(GROUP_MAX.as_ns()));
    }

    #[test]
    fn a_stream_that_was_touched_for_one_client_is_touched_anew_for_another() {
        let (process, deadline, stream) = (client(), client(), Stream::of(0x7000, false));
        for client in [process, deadline] {
            client.begin(Some(grant(Span::from_ms(1))), 1_000, None);
        }
        let pass = process.admit(1_000, &stream);
        process.leave(pass, &stream);
        let pass = deadline.admit(1_000, &stream);
        deadline.leave(pass, &stream);
        assert!(process.has_touched(0x7000) && deadline.has_touched(0x7000), "or no event follows its work");
    }

    #[test]
    fn a_group_is_not_over_before_a_thread_that_was_inside_has_left() {
        let (client, stream) = (client(), Stream::of(0x5000, false));
        client.begin(Some(grant(Span::from_ms(1))), 1_000, None);
        let pass = client.admit(1_000, &stream);
        client.close();
        assert!(ends::look(), "its work has no event behind it yet");
        client.leave(pass, &stream);
        let until = Instant::now() + Duration::from_secs(30);
        while ends::look() {
            assert!(Instant::now() < until, "the predicted time is over, and no driver is here to ask");
            std::thread::yield_now();
        }
    }
}
