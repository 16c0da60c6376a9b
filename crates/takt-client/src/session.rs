//! A client that is scheduled while a daemon answers, and runs unscheduled otherwise.
//!
//! A program asks for a grant before it hands a group to the GPU, and reports the group's end. Without
//! a daemon, or with one that is dead, hung or refuses, every call passes at once, one line says so, and
//! the session looks for the daemon once a second. Any thread may use a session at any time.
//!
//! A thread with a grant may stop to wait for another thread of the program that has none. The daemon
//! waits for the first thread's group and would never grant the second one. So the session takes back a
//! grant for a group that is filled bit by bit when its thread stops using it: soon if another thread
//! waits, later in any case.
//!
//! A grant can be asked for ahead of need. The next thread that asks gets it; if none asks, the session
//! gives it back after `UNUSED_BETWEEN`.

mod slices;
mod view;

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use takt_core::{GroupKind, Span, Time};
use takt_ipc::message::{Hello, Pacing, Welcome};
use takt_os::clock;
use takt_slices::Keeper;

use crate::Patience;
use crate::link::{Link, Waiting};
use crate::turns::Wish;
use view::View;
pub(crate) use view::Watch;

/// Receives each sentence about the connection.
pub type Say = fn(&str);

/// Permission to hand a group to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Number of the group.
    pub number: u64,
    /// The connection that granted it; another one knows nothing of it.
    pub life: u64,
    /// Whether the group is filled bit by bit, until it is [handed over](Session::hand_over).
    pub fills: bool,
    /// How much predicted time the group may contain.
    pub credit: Span,
    /// Frames that ended inside of it, once it was handed over.
    pub frames: u32,
    /// Whether this client was the only one when the grant came.
    pub alone: bool,
}

/// Longest sleep at once: the daemon may die meanwhile.
const NAP: Duration = Duration::from_millis(5);
/// Longest sleep between two frames: the longest stride of the core at 60 Hz.
const PACE_MAX: Span = Span::from_ms(4_000);

/// How often a paced program looks whether its rate has changed.
const LOOK: Span = Span::from_ms(50);

/// How long a grant may go unused while another thread of the program waits for one.
const UNUSED_WHILE_WAITING: Span = Span::from_ms(10);
/// How long it may go unused at all. The daemon gives up on groups after half a second.
const UNUSED: Span = Span::from_ms(100);

/// How long it may go unused between two frames, and how long one may that was asked for ahead.
pub(crate) const UNUSED_BETWEEN: Span = Span::from_ms(2);

/// Groups of the only client may be so many times as long as groups among others.
const ALONE: u64 = 16;

/// The connection to the daemon, as it comes and goes.
pub struct Session {
    /// Whether there is a daemon to look for.
    wanted: bool,
    link: Mutex<Link>,
    view: View,
    /// Threads that ask for other terms go one after the other, so that each gets its own answer.
    renewing: Mutex<()>,
    patience: Patience,
    /// Replies came.
    news: Condvar,
    /// Time slices of the program's own contexts, from the first group on: the program has loaded its libraries then.
    slices: OnceLock<Keeper>,
    /// The slices that it wants for them.
    wish: Wish,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("welcome", &self.welcome()).finish()
    }
}

impl Session {
    /// A session with the daemon at `socket`. It joins when it is asked for something.
    pub const fn new(socket: PathBuf, hello: Hello, say: Say, patience: Patience) -> Self {
        Self::with(Some(socket), hello, say, patience)
    }

    /// A session without a daemon: everything passes.
    pub fn absent(say: Say) -> Self {
        Self::with(None, Hello::default(), say, Patience::default())
    }

    const fn with(socket: Option<PathBuf>, hello: Hello, say: Say, patience: Patience) -> Self {
        Self {
            wanted: socket.is_some(),
            link: Mutex::new(Link::new(socket, hello, say, patience)),
            view: View::new(),
            renewing: Mutex::new(()),
            patience,
            news: Condvar::new(),
            slices: OnceLock::new(),
            wish: Wish::none(),
        }
    }

    /// Whether there is a daemon to look for.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Joins, unless it did or it is too early to try again, and finds out how long groups may be.
    pub fn join(&self) {
        self.locked(Link::connect);
        let until = clock::now() + self.patience.greeting;
        let heard = |link: &mut Link| match link.is_limited() || clock::now() > until {
            true => Waiting::Over(Some(())),
            false => Waiting::NotYet,
        };
        // A daemon that sets no limit has none.
        let _silent = self.wait(Span::ZERO, heard);
    }

    /// The program draws on that GPU, as the store of profiles names it; `on_cpu` if it is a processor.
    /// A connection that is there already does not hear of it.
    pub fn draws_on(&self, gpu: String, on_cpu: bool) {
        self.locked(|link| link.draws_on(gpu, on_cpu));
    }

    /// Asks for other terms, now and at every later connection; says whether the daemon gives them.
    /// If it refuses, the terms stay. Other threads go on meanwhile.
    pub fn renew(&self, hello: Hello) -> bool {
        let _alone = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(renewal) = self.locked(|link| link.begin_renewal(&hello)) else {
            return true;
        };
        let answer = renewal.ask();
        self.locked(|link| link.end_renewal(hello, renewal.life, answer))
    }

    /// The daemon's welcome, with the terms as they are now; none if this client is unscheduled.
    pub fn welcome(&self) -> Option<Welcome> {
        self.locked(|link| {
            link.listen_now();
            link.welcome().cloned()
        })
    }

    /// The last sentence about the connection.
    pub fn said(&self) -> String {
        self.locked(|link| link.said().to_owned())
    }

    /// Asks for a grant for a group predicted to take `estimate`, and waits for it. None if this client
    /// is unscheduled.
    pub fn ask(&self, kind: GroupKind, estimate: Span) -> Option<Grant> {
        self.ask_for(kind, "", estimate, false)
    }

    /// The same for a group that is filled bit by bit from then on: it begins with commands that take
    /// `need`, and all of it takes `estimate`. The session takes an unused grant back, so check that it
    /// [is held](Self::is_held) before each use.
    ///
    /// A grant that was asked for ahead is taken if it is enough to begin with.
    pub fn ask_to_fill(&self, need: Span, estimate: Span) -> Option<Grant> {
        self.ask_to_fill_for("", need, estimate)
    }

    /// The same for a command of that name.
    pub fn ask_to_fill_for(&self, command: &'static str, need: Span, estimate: Span) -> Option<Grant> {
        let claimed = self.locked(|link| {
            let claimed = link.claim(need);
            claimed.iter().for_each(|(number, ..)| link.names(*number, command));
            claimed
        });
        self.keep_slices();
        if let Some((number, life, estimate)) = claimed {
            return self.await_grant(number, life, estimate, true);
        }
        self.ask_for(GroupKind::Draw, command, estimate.max(need), true)
    }

    /// Asks for a grant that will be needed soon, and does not wait for it. Does nothing if one is
    /// outstanding already, or if this client is unscheduled.
    pub fn ask_ahead(&self, estimate: Span) {
        self.locked(|link| link.ask_ahead(estimate));
    }

    fn ask_for(&self, kind: GroupKind, command: &'static str, estimate: Span, fills: bool) -> Option<Grant> {
        if !self.wanted {
            return None;
        }
        let submitted = self.locked(|link| {
            let submitted = link.submit(kind, estimate);
            submitted.iter().for_each(|(number, _)| link.names(*number, command));
            submitted
        });
        self.keep_slices();
        let (number, life) = submitted?;
        self.await_grant(number, life, estimate, fills)
    }

    fn await_grant(&self, number: u64, life: u64, estimate: Span, fills: bool) -> Option<Grant> {
        let began = clock::now();
        let spin = self.locked(|link| link.spin_limit());
        let (granted, alone) = self.wait(spin, |link| {
            let granted = link.granted(number, life, fills);
            let waited = clock::now().since(began);
            if matches!(granted, Waiting::Over(_)) {
                link.waited(waited);
            }
            if waited > UNUSED_WHILE_WAITING {
                link.give_back(began + waited, UNUSED_WHILE_WAITING);
            }
            granted
        })?;
        Some(Grant { number, life, fills, credit: estimate.max(granted), frames: 0, alone })
    }

    /// Gives back grants that have gone unused for too long. Call it now and then, and every few
    /// milliseconds while the session [`is_hasty`](Self::is_hasty).
    pub fn give_back_unused(&self) {
        self.locked(|link| link.give_back(clock::now(), UNUSED));
    }

    /// Whether there is a grant that must not go unused for long.
    pub fn is_hasty(&self) -> bool {
        self.locked(|link| link.is_hasty())
    }

    /// Whether a grant was asked for and has not come yet.
    pub fn is_awaited(&self) -> bool {
        self.locked(Link::is_awaited)
    }

    /// Whether the program is scheduled and begins its frames when it likes.
    pub fn is_free_running(&self) -> bool {
        self.locked(|link| link.welcome().is_some_and(|welcome| !welcome.standing.paced))
    }

    /// Whether a grant still counts, or was taken back. It is about to be used.
    pub fn is_held(&self, grant: &Grant) -> bool {
        self.look(Some(grant), &mut Watch::default())
    }

    /// A frame ended inside of the group of a grant, and the group goes on.
    pub fn end_frame(&self, grant: &Grant) {
        self.locked(|link| link.end_frame(grant.number, grant.life));
    }

    /// The group of a grant is with the driver: the grant with the frames that ended inside of it; none
    /// if it was taken back.
    pub fn hand_over(&self, grant: Grant) -> Option<Grant> {
        if !grant.fills {
            return Some(grant);
        }
        let closed = self.locked(|link| link.close(grant.number, grant.life));
        closed.map(|frames| Grant { frames, fills: false, ..grant })
    }

    /// The group of a grant is over.
    pub fn complete(&self, grant: Grant, finished: Time, cost: Span) {
        self.locked(|link| link.complete(grant, finished, cost));
    }

    /// After a swap: waits until the daemon says when the next frame may begin; none if the daemon does
    /// not pace this client.
    pub fn released(&self, swap: Grant) -> Option<Time> {
        self.wait(Span::ZERO, |link| link.released(swap.life))
    }

    /// After a swap: sleeps until the next frame may begin, and says when that was; none if the daemon
    /// does not pace this client, or stopped to. A program with a clock of its own sleeps by that, and not
    /// here a second time.
    pub fn pace(&self, swap: Grant) -> Option<Time> {
        self.hold(swap, Span::ZERO).map(|(at, _)| at)
    }

    /// The same, but only until `lead` before that time; also says whether it slept at all.
    pub fn hold(&self, swap: Grant, lead: Span) -> Option<(Time, bool)> {
        if self.view.has_own_clock() {
            return None;
        }
        self.sleep_until_released(swap.life, lead)
    }

    /// That decides when the program begins its frames: the daemon hears of it soon, and at every later
    /// connection.
    pub fn is_paced_by(&self, pacing: Pacing) {
        self.locked(|link| link.is_paced_by(pacing));
    }

    /// Tells the daemon what it is to hear, and takes its answer; waits for neither. Takes no lock if there
    /// is nothing to tell.
    pub fn keep_told(&self) {
        if self.view.is_untold() {
            self.locked(Link::keep_told);
        }
    }

    /// Before the first command of a frame, of a program with a clock of its own: sleeps if the frame comes
    /// before its time. Takes no lock for other programs.
    pub fn begin_frame(&self) {
        if self.view.has_own_clock()
            && let Some(life) = self.locked(Link::begin_frame)
        {
            self.sleep_until_released(life, Span::ZERO);
        }
    }

    fn sleep_until_released(&self, life: u64, lead: Span) -> Option<(Time, bool)> {
        let mut at = self.wait(Span::ZERO, |link| link.released(life))?;
        let mut slept = false;
        // No display waits longer for a frame, whatever the daemon says.
        let latest = clock::now() + PACE_MAX;
        loop {
            let sleep = (at - lead).min(latest).since(clock::now()).min(LOOK);
            if sleep == Span::ZERO {
                return Some((at, slept));
            }
            slept = true;
            std::thread::sleep(Duration::from_nanos(sleep.as_ns()));
            let released = self.locked(|link| {
                link.listen_now();
                link.released(life)
            });
            match released {
                Waiting::Over(None) => return None,
                Waiting::Over(Some(other)) => at = other,
                // Another thread's swap took it.
                Waiting::NotYet => {}
            }
        }
    }

    /// Whether this client is the only one, so that no other waits for its long groups.
    pub fn is_alone(&self) -> bool {
        self.locked(|link| link.is_alone())
    }

    /// Whether other clients are scheduled as well, whose groups may be on the GPU.
    pub fn has_company(&self) -> bool {
        self.wanted && self.locked(|link| link.region().is_some_and(|region| !region.solitude().is_alone()))
    }

    /// The longest group that is to be formed.
    pub fn slice(&self) -> Span {
        self.locked(|link| if link.is_alone() { link.slice().times(ALONE) } else { link.slice() })
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Link) -> T) -> T {
        let mut link = self.lock();
        let result = work(&mut link);
        self.view.publish(&link);
        result
    }

    /// Waits until `done` finds what it looks for, spinning at first; none if it will never come.
    fn wait<T>(&self, spin: Span, mut done: impl FnMut(&mut Link) -> Waiting<T>) -> Option<T> {
        let mut link = self.lock();
        let mut spin = Duration::from_nanos(spin.as_ns());
        loop {
            let found = done(&mut link);
            self.view.publish(&link);
            match found {
                Waiting::Over(found) => return found,
                Waiting::NotYet => {}
            }
            // One thread listens, the others wait for it.
            match link.begin_listening() {
                Some(mut listener) => {
                    drop(link);
                    let heard = listener.listen(NAP, std::mem::take(&mut spin));
                    link = self.lock();
                    link.end_listening(listener, heard);
                    self.news.notify_all();
                }
                None => {
                    let waited = self.news.wait_timeout(link, NAP);
                    link = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}
