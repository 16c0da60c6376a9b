//! How long groups take.
//!
//! A fence goes into the command stream behind each group; a thread of ours waits for fences in the
//! order of submission and notes when they were passed. [`takt_client::ends`] has the arithmetic,
//! `machine` the life of a group, `thread` what takes it through, and `settle` what it cost.
//!
//! Where the GPU's own clock is right (`time_source`), stamps around the group say what it cost instead
//! (`stamps`); that it is complete is known by its fence in any case.
//!
//! A software renderer works inside of the program's own calls as well; there the time that the
//! driver spent in the calls of a group counts, too, and the processor time of its threads.
//!
//! Where the program waits for a group itself, its own thread sees the end (`witness`).

mod disturbance;
mod fence;
mod machine;
mod processor;
mod rows;
mod settle;
mod stamps;
mod thread;
mod time_source;
mod waiter;
mod witness;

use std::sync::{Arc, LazyLock, Mutex, OnceLock, Weak};

use takt_client::ends::{Seen, Submission};
use takt_client::{Grant, Session};
use takt_os::sandbox;
use takt_predict::adapt::Disturbance;

pub(crate) use disturbance::{beside_others, submits, switches_context};
pub(crate) use processor::{own_ns, process_ns};
pub use rows::header;
pub(crate) use rows::table;
pub use stamps::Stamped;
pub(crate) use stamps::Stamper;
pub(crate) use time_source::Judge;
pub use time_source::{TimeSource, TimerProblem};
pub(crate) use waiter::Waiter;
pub(crate) use witness::{Witnessed, is_seen_when_shown, shown};

use crate::client::group::Group;
use crate::entry::real;
use crate::predict::{Models, Predicted};
use crate::session::session;
use crate::settings::settings;
use crate::slice::{self, Follow};
use crate::{clock, guard, system};
use machine::{Machine, Stage, Tracked, give_back};
use processor::RendererThreads;

/// A group that was handed to the GPU.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// What it is.
    pub group: Group,
    /// What its time depends on.
    pub submission: Submission,
    /// Whether the renderer works inside of calls.
    pub software: bool,
    /// What was predicted, and which models learn from it as long as the context is there.
    pub predicted: Option<(Weak<Mutex<Models>>, Predicted)>,
    /// Its grant, if a daemon schedules.
    pub grant: Option<Grant>,
    /// What it tells about long draws.
    pub follow: Follow,
    /// Where the GPU's own times of it will be.
    pub stamped: Option<Stamped>,
    /// Whether its time will not be its own, as far as is known already.
    pub disturbance: Disturbance,
}

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::new);
/// Whether the measuring thread could be started.
static STARTED: OnceLock<bool> = OnceLock::new();

/// The threads of a renderer on the CPU.
static RENDERER: RendererThreads = RendererThreads::new();

/// The machine, if its thread was started.
fn started() -> Option<&'static Machine> {
    STARTED.get().is_some_and(|started| *started).then(|| &*MACHINE)
}

/// Starts the measuring thread unless that was done; none if it is impossible.
fn machine() -> Option<&'static Machine> {
    STARTED.get_or_init(|| {
        let started = thread::start(&MACHINE);
        if started {
            // SAFETY: the function takes no arguments and stays loaded, as this library does.
            unsafe { libc::atexit(at_exit) };
        }
        started
    });
    started()
}

/// Before a process ends, drivers take their displays apart; no thread may wait for a fence then.
extern "C" fn at_exit() {
    // A forked process has no thread to wait for.
    if guard::is_switched_off() {
        return;
    }
    guard::shielded(|| {
        drain(None);
        if let Some(line) = slice::line().filter(|_| settings().verbose) {
            guard::say(&line);
        }
    });
}

/// Measures a group that is being submitted: call this where its last command is behind and
/// the call that makes the driver start is still ahead.
///
/// The context must be current in this thread, on this display.
pub(crate) fn submit(display: usize, waiter: Option<&Arc<Waiter>>, submitted: Submitted) {
    if let Some((machine, group)) = fenced(display, waiter, submitted) {
        machine.track(group);
    }
}

/// Puts a fence behind a group; none if its end cannot be seen.
fn fenced(
    display: usize,
    waiter: Option<&Arc<Waiter>>,
    submitted: Submitted,
) -> Option<(&'static Machine, Tracked)> {
    if is_forked() || !is_wanted() {
        return None;
    }
    if is_early() {
        give_back(&submitted);
        return None;
    }
    let machine = machine();
    let Some((machine, fence)) = machine.zip(fence::insert(display, waiter)) else {
        match machine.filter(|_| system::is_glx()) {
            Some(machine) => finished(machine, submitted),
            None => give_back(&submitted),
        }
        return None;
    };
    let stage = Stage::Fenced { inserted_ns: clock::now_ns() };
    Some((machine, Tracked::new(submitted, Some(fence), stage)))
}

/// Waits here for a group whose end no other thread can see.
fn finished(machine: &Machine, submitted: Submitted) {
    // SAFETY: a context is current; finishing never fails and is allowed here.
    unsafe { real::glFinish() };
    let timing = machine.completed(&submitted, Seen::at(clock::now_ns()));
    machine.settle(Tracked::new(submitted, None, Stage::Complete(timing)));
}

/// Measures a group that gives the GPU nothing to do: it is over when everything before it is.
pub(crate) fn submit_idle(submitted: Submitted) {
    if is_forked() || !is_wanted() {
        return;
    }
    if is_early() {
        return give_back(&submitted);
    }
    match machine() {
        Some(machine) => machine.track(Tracked::new(submitted, None, Stage::Idle)),
        None => give_back(&submitted),
    }
}

/// Whether this is a copy of the process that is measured; then it is not watched from now on.
fn is_forked() -> bool {
    let forked = std::process::id() != settings().process;
    if forked {
        guard::switch_off("the process was forked, and only the original is measured");
    }
    forked
}

/// The context in which fences of a context must be waited for, if any thread may not; `newer` if it knows GL ES 3.
pub(crate) fn waiter(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    fence::waiter(display, context, newer)
}

/// The same where waiting for fences of EGL would keep an unscheduled program out of its display.
pub(crate) fn waiter_beside(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    if session().is_wanted() { None } else { fence::waiter_beside(display, context, newer) }
}

/// Whether groups are to be measured.
pub(crate) fn is_wanted() -> bool {
    settings().measure.is_some() || settings().socket.is_some()
}

/// Whether the program is about to shut itself into a sandbox, which it gives up where there is a second thread by
/// then: its first work passes, because no thread of ours can watch a grant.
pub(crate) fn is_early() -> bool {
    STARTED.get().is_none() && sandbox::is_awaited()
}

/// The session, for a thread that is about to ask for a grant: grants are watched from then on. No thread of ours
/// starts earlier.
pub(crate) fn watched() -> &'static Session {
    machine();
    session()
}

/// Waits until everything that was submitted is measured; not for long. A display may be about to be
/// terminated.
pub fn drain(ending: Option<usize>) {
    if let Some(machine) = started() {
        machine.drain(ending);
    }
}

/// Whether a display makes fences of EGL only when the GPU has done everything before, so that a
/// program which makes one waits.
pub(crate) fn is_waited_for_when_made(display: usize) -> bool {
    is_wanted() && fence::is_waited_for_when_made(display)
}

/// Whether measuring is possible on a display.
pub fn is_possible(display: usize) -> bool {
    fence::is_possible(display)
}
