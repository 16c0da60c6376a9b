//! How long groups take.
//!
//! A fence goes into the command stream behind each group; a thread of ours waits for fences in
//! the order of submission and notes when they were passed. If the GPU was idle when a group was
//! submitted, its time runs from submission to completion, otherwise from the completion before
//! it. Groups whose fences are found passed at one look share its time; so groups can take no time
//! at all.
//!
//! Where the GPU's own clock is right (`judge`), stamps around the group say what it cost instead
//! (`stamps`); that it is complete is known by its fence in any case.
//!
//! A software renderer works inside of the program's own calls as well; there the time that the
//! driver spent in the calls of a group counts, too, and the processor time of its threads.
//!
//! Where the program waits for a group itself, its own thread sees the end (`witness`).

mod desk;
mod disturbance;
mod fence;
mod judge;
mod late;
mod processor;
mod reaper;
mod reaping;
mod rows;
mod source;
mod stamps;
mod waiter;
mod witness;

use std::sync::{Arc, Mutex, OnceLock, Weak};

use takt_client::Grant;
use takt_client::ends::Submission;
use takt_core::Span;
use takt_predict::adapt::Disturbance;

pub(crate) use disturbance::{beside_others, submits, switches_context};
pub(crate) use judge::Judge;
pub(crate) use processor::own_ns;
pub use rows::header;
pub use source::{Doubt, Source};
pub use stamps::Stamped;
pub(crate) use stamps::Stamper;
pub(crate) use waiter::Waiter;
pub(crate) use witness::{Witnessed, is_seen_when_shown, shown};

use crate::client::group::Group;
use crate::predict::{Models, Predicted};
use crate::session::session;
use crate::settings::settings;
use crate::slice::Follow;
use crate::{clock, guard};
use desk::Fenced;
use processor::RendererThreads;
use reaper::Reaper;

/// A group that was handed to the GPU.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// What it is.
    pub group: Group,
    /// What its time depends on.
    pub submission: Submission,
    /// Whether the renderer works inside of calls.
    pub software: bool,
    /// What was predicted, and who wants to learn, as long as the context is there.
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

static REAPER: OnceLock<Option<Reaper>> = OnceLock::new();

/// The threads of a renderer on the CPU.
static RENDERER: RendererThreads = RendererThreads::new();

/// Measures a group that is being submitted: call this where its last command is behind and
/// whatever makes the driver start is still ahead.
///
/// The context must be current in this thread, on this display.
pub(crate) fn submit(display: usize, waiter: Option<&Arc<Waiter>>, submitted: Submitted) {
    if let Some((reaper, group)) = fenced(display, waiter, submitted) {
        reaper.hand_over(group);
    }
}

/// Puts a fence behind a group; none if nobody will see it end.
fn fenced(
    display: usize,
    waiter: Option<&Arc<Waiter>>,
    submitted: Submitted,
) -> Option<(&'static Reaper, Fenced)> {
    if is_forked() || !is_wanted() {
        return None;
    }
    let reaper = REAPER.get_or_init(Reaper::start).as_ref();
    let Some((reaper, fence)) = reaper.zip(fence::insert(display, waiter)) else {
        give_back(&submitted);
        return None;
    };
    Some((reaper, Fenced { fence, submitted: Box::new(submitted), inserted_ns: clock::now_ns() }))
}

/// Measures a group that gives the GPU nothing to do: it is over when everything before it is.
pub(crate) fn submit_idle(submitted: Submitted) {
    if is_forked() || !is_wanted() {
        return;
    }
    match REAPER.get_or_init(Reaper::start) {
        Some(reaper) => reaper.hand_over_idle(Box::new(submitted)),
        None => give_back(&submitted),
    }
}

/// Whether this is a copy of the process that is measured; then it is let alone from now on.
fn is_forked() -> bool {
    let forked = std::process::id() != settings().process;
    if forked {
        guard::switch_off("the process was forked, and only the original is measured");
    }
    forked
}

/// Where fences of a context are to be waited for, if not anywhere; `newer` if it knows GL ES 3.
pub(crate) fn waiter(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    fence::waiter(display, context, newer)
}

/// The same where waiting for fences of EGL would keep the program out of its display, and nobody
/// schedules.
pub(crate) fn waiter_beside(display: usize, context: usize, newer: bool) -> Option<Arc<Waiter>> {
    if session().is_wanted() { None } else { fence::waiter_beside(display, context, newer) }
}

/// Whether groups are to be measured.
pub(crate) fn is_wanted() -> bool {
    settings().measure.is_some() || settings().socket.is_some()
}

/// Starts measuring, before there is anything to measure: whoever has leave is watched from then on.
pub fn prepare() {
    REAPER.get_or_init(Reaper::start);
}

/// A group whose end nobody sees counts as over.
fn give_back(submitted: &Submitted) {
    if let Some(grant) = submitted.grant {
        session().complete(grant, takt_os::clock::now(), Span::ZERO);
    }
    submitted.follow.lost();
}

/// Waits until everything that was submitted is measured; not for long. A display may be about to be
/// terminated.
pub fn drain(ending: Option<usize>) {
    if let Some(Some(reaper)) = REAPER.get() {
        reaper.drain(ending);
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
