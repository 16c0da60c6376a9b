//! A client that is scheduled as long as there is a daemon, and runs on if there is none.
//!
//! Work is asked for before it is handed to the GPU, and its end is reported. Without a daemon, or
//! if it dies, hangs or does not want us, everything passes at once, one line says so, and now and
//! then we look whether it is back. A session may be used by many threads at once.
//!
//! A thread that has leave may stop to wait for another thread of the program that has none, and
//! then the daemon, which waits for the first one's group, would never let the other go on. So leave
//! for groups that are filled bit by bit is given back where nobody uses it: soon where another
//! thread waits, later in any case.
//!
//! Leave can be asked for ahead of need, so that nobody waits for it when it is needed. Whichever
//! thread asks next gets it, and if none does, it is given back almost at once.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use takt_core::{GroupKind, Span, Time};

use crate::Patience;
use crate::link::{Link, Waiting};
use takt_ipc::message::{Hello, Welcome};
use takt_os::clock;

/// Who is told what happens to the connection, one sentence at a time.
pub type Say = fn(&str);

/// Leave to hand a group to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Number of the group.
    pub number: u64,
    /// Which connection it is of; another one knows nothing of it.
    pub life: u64,
    /// Whether the group is filled bit by bit, until it is [handed over](Session::hand_over).
    pub fills: bool,
    /// How much predicted time the group may contain.
    pub credit: Span,
    /// Frames that ended inside of it, once it was handed over.
    pub frames: u32,
    /// Whether nobody else was scheduled when it came.
    pub alone: bool,
}

/// How long to sleep at once, at most: the daemon may die meanwhile.
const NAP: Duration = Duration::from_millis(5);
/// Longest sleep between two frames: the longest stride of the core at 60 Hz.
const PACE_MAX: Span = Span::from_ms(4_000);

/// How often to look meanwhile whether the rate is another one.
const LOOK: Span = Span::from_ms(50);

/// How long leave may go unused while another thread of the program waits for its own.
const UNUSED_WHILE_WAITING: Span = Span::from_ms(10);
/// How long it may at all. The daemon gives up on groups after half a second.
const UNUSED: Span = Span::from_ms(100);

/// How long it may between two frames, and how long leave that was asked for ahead may.
pub(crate) const UNUSED_BETWEEN: Span = Span::from_ms(2);

/// How many times as long as among others groups may be while nobody else is scheduled.
pub(crate) const ALONE: u64 = 16;

/// The connection to the daemon, as it comes and goes.
pub struct Session {
    link: Mutex<Link>,
    /// Whoever asks for other terms, one after the other: each is to get its own answer.
    renewing: Mutex<()>,
    patience: Patience,
    /// Something came for somebody.
    news: Condvar,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("welcome", &self.welcome()).finish()
    }
}

impl Session {
    /// A session with the daemon at `socket`, which is joined when something is asked for.
    pub const fn new(socket: PathBuf, hello: Hello, say: Say, patience: Patience) -> Self {
        Self {
            link: Mutex::new(Link::new(socket, hello, say, patience)),
            renewing: Mutex::new(()),
            patience,
            news: Condvar::new(),
        }
    }

    /// Joins, if that is due, and finds out how long groups may be.
    pub fn join(&self) {
        self.lock().connect();
        let until = clock::now() + self.patience.greeting;
        let heard = |link: &mut Link| match link.is_limited() || clock::now() > until {
            true => Waiting::Over(Some(())),
            false => Waiting::NotYet,
        };
        // Without a limit it is one without.
        let _silent = self.wait(Span::ZERO, heard);
    }

    /// Asks for other terms, now and at every later connection; says whether the daemon gives them.
    /// If it does not, those before stay. Other threads go on meanwhile.
    pub fn renew(&self, hello: Hello) -> bool {
        let _alone = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(renewal) = self.lock().begin_renewal(&hello) else {
            return true;
        };
        let answer = renewal.ask();
        self.lock().end_renewal(hello, renewal.life, answer)
    }

    /// What the daemon said when it welcomed us, and how we stand now; none if nobody schedules.
    pub fn welcome(&self) -> Option<Welcome> {
        let mut link = self.lock();
        link.listen_now();
        link.welcome().cloned()
    }

    /// The last thing that was said of the connection.
    pub fn said(&self) -> String {
        self.lock().said().to_owned()
    }

    /// Asks for leave for a group predicted to take `estimate`, and waits for it. None where nobody
    /// schedules.
    pub fn ask(&self, kind: GroupKind, estimate: Span) -> Option<Pass> {
        self.ask_for(kind, estimate, false)
    }

    /// The same for a group that is filled bit by bit from then on: it begins with commands that take
    /// `need`, and `estimate` is all of it. What nobody fills is given back, so look whether the pass
    /// [is held](Self::is_held) still before going on.
    ///
    /// Leave that was asked for ahead is taken if it is enough to begin with.
    pub fn ask_to_fill(&self, need: Span, estimate: Span) -> Option<Pass> {
        let claimed = self.lock().claim(need);
        if let Some((number, life, estimate)) = claimed {
            return self.await_leave(number, life, estimate, true);
        }
        self.ask_for(GroupKind::Draw, estimate.max(need), true)
    }

    /// Asks for leave that somebody will want soon, and does not wait for it. Nothing is asked for
    /// where that was done already, or where nobody schedules.
    pub fn ask_ahead(&self, estimate: Span) {
        self.lock().ask_ahead(estimate);
    }

    fn ask_for(&self, kind: GroupKind, estimate: Span, fills: bool) -> Option<Pass> {
        let (number, life) = self.lock().submit(kind, estimate)?;
        self.await_leave(number, life, estimate, fills)
    }

    fn await_leave(&self, number: u64, life: u64, estimate: Span, fills: bool) -> Option<Pass> {
        let began = clock::now();
        let spin = self.lock().spin_limit();
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
        Some(Pass { number, life, fills, credit: estimate.max(granted), frames: 0, alone })
    }

    /// Gives leave back that has gone unused for too long; to be called now and then, and every few
    /// milliseconds while this [`is_hasty`](Self::is_hasty).
    pub fn give_back_unused(&self) {
        self.lock().give_back(clock::now(), UNUSED);
    }

    /// Whether there is leave that must not go unused for long.
    pub fn is_hasty(&self) -> bool {
        self.lock().is_hasty()
    }

    /// Whether leave that was asked for has not come yet.
    pub fn is_awaited(&self) -> bool {
        self.lock().is_awaited()
    }

    /// Whether frames begin when the program likes, while it is scheduled.
    pub fn is_free_running(&self) -> bool {
        self.lock().welcome().is_some_and(|welcome| !welcome.standing.paced)
    }

    /// Whether a pass counts still, or was given back. It is about to be used.
    pub fn is_held(&self, pass: &Pass) -> bool {
        self.look(Some(pass)).0
    }

    /// The same if there is a pass, and whether nobody else is scheduled.
    pub fn look(&self, pass: Option<&Pass>) -> (bool, bool) {
        let mut link = self.lock();
        let held = pass.is_none_or(|pass| !pass.fills || link.is_open(pass.number, pass.life));
        (held, link.is_alone())
    }

    /// A frame ended inside of the group of a pass, which goes on.
    pub fn end_frame(&self, pass: &Pass) {
        self.lock().end_frame(pass.number, pass.life);
    }

    /// The group of a pass is with the driver: the pass with the frames that ended inside of it; none
    /// if it was given back.
    pub fn hand_over(&self, pass: Pass) -> Option<Pass> {
        if !pass.fills {
            return Some(pass);
        }
        self.lock().close(pass.number, pass.life).map(|frames| Pass { frames, fills: false, ..pass })
    }

    /// The group of a pass is over.
    pub fn complete(&self, pass: Pass, finished: Time, cost: Span) {
        self.lock().complete(pass, finished, cost);
    }

    /// After a swap: waits until the daemon says when the next frame may begin; none if that is
    /// not up to it.
    pub fn released(&self, swap: Pass) -> Option<Time> {
        self.wait(Span::ZERO, |link| link.released(swap.life))
    }

    /// After a swap: sleeps until the next frame may begin, and says when that was; none if that is
    /// not up to the daemon, or not any more.
    pub fn pace(&self, swap: Pass) -> Option<Time> {
        let mut at = self.released(swap)?;
        // No display waits longer for a frame; and if the daemon has gone mad, we have not.
        let latest = clock::now() + PACE_MAX;
        loop {
            let sleep = at.min(latest).since(clock::now()).min(LOOK);
            if sleep == Span::ZERO {
                return Some(at);
            }
            std::thread::sleep(Duration::from_nanos(sleep.as_ns()));
            let mut link = self.lock();
            link.listen_now();
            match link.released(swap.life) {
                Waiting::Over(None) => return None,
                Waiting::Over(Some(other)) => at = other,
                // It was taken by another thread's swap.
                Waiting::NotYet => {}
            }
        }
    }

    /// Whether nobody else is scheduled, so that nobody waits for long groups.
    pub fn is_alone(&self) -> bool {
        self.lock().is_alone()
    }

    /// Whether others are scheduled as well, whose groups may be on the GPU.
    pub fn has_company(&self) -> bool {
        self.lock().has_company()
    }

    /// The longest group that is to be formed.
    pub fn slice(&self) -> Span {
        self.lock().slice()
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` finds what it looks for, `awake` at first; none if nobody will ever send it.
    fn wait<T>(&self, awake: Span, mut done: impl FnMut(&mut Link) -> Waiting<T>) -> Option<T> {
        let mut link = self.lock();
        let mut spin = Duration::from_nanos(awake.as_ns());
        loop {
            match done(&mut link) {
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
