//! Batches and frames.

use std::ptr::NonNull;

use takt_client::{Grant, Session};
use takt_core::{GroupKind, Span, Time};
use takt_os::clock;

use crate::app::{App, known};
use crate::{Status, ms, shielded, span};

/// Work with a grant. Filled by takt_begin_batch; what is inside is libtakt's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// How much GPU time was granted, in milliseconds; infinite if the app is unscheduled.
    pub granted_ms: f64,
    /// When it was granted, in nanoseconds of CLOCK_MONOTONIC.
    pub granted_at_ns: u64,
    number: u64,
    life: u64,
}

/// Longest batch.
const BATCH_MAX_MS: f64 = 60_000.0;

/// Asks for a grant to use the GPU for `predicted_ms`, and waits for it; then hand the work to the
/// GPU. A prediction that is too low delays others, one that is too high makes the app wait longer.
/// Work longer than takt_state.max_slice_ms should be cut into several batches.
///
/// # Safety
///
/// `app` is NULL or registered; `batch` is NULL or points to a takt_batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_begin_batch(app: *mut App, predicted_ms: f64, batch: *mut Batch) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        // SAFETY: this function's contract.
        unsafe { begin(&app.session, predicted_ms, batch) }
    })
}

/// Asks for a grant for a batch, and fills it.
///
/// # Safety
///
/// `batch` is null or points to a takt_batch.
pub(crate) unsafe fn begin(
    session: &Session,
    predicted_ms: f64,
    batch: *mut Batch,
) -> Result<Status, Status> {
    let out = NonNull::new(batch).ok_or(Status::TAKT_NULL)?;
    let estimate = span(predicted_ms, BATCH_MAX_MS)?;
    let grant = session.ask(GroupKind::Draw, estimate);
    let granted_at_ns = clock::now().as_ns();
    let batch = match grant {
        Some(Grant { number, life, credit, .. }) => {
            let granted_ms = if credit < Span::FOREVER { ms(credit) } else { f64::INFINITY };
            Batch { granted_ms, granted_at_ns, number, life }
        }
        None => Batch { granted_ms: f64::INFINITY, granted_at_ns, number: 0, life: NO_LIFE },
    };
    // SAFETY: there is room for one, by this function's contract.
    unsafe { out.write(batch) };
    Ok(if grant.is_some() { Status::TAKT_OK } else { Status::TAKT_UNSCHEDULED })
}

/// The GPU has finished the batch; it took `measured_ms`, or, if that is negative, as long as it is
/// since the batch was granted. Each batch ends once, in any order and from any thread.
///
/// # Safety
///
/// `app` is NULL or registered; `batch` is NULL or was filled by takt_begin_batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_end_batch(app: *mut App, batch: *const Batch, measured_ms: f64) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        // SAFETY: this function's contract.
        unsafe { end(&app.session, batch, measured_ms) }
    })
}

/// Reports the end of a batch.
///
/// # Safety
///
/// `batch` is null or was filled by [`begin`].
pub(crate) unsafe fn end(session: &Session, batch: *const Batch, measured_ms: f64) -> Result<Status, Status> {
    // SAFETY: this function's contract.
    let batch = unsafe { batch.as_ref() }.ok_or(Status::TAKT_NULL)?;
    let now = clock::now();
    let cost = if measured_ms < 0.0 {
        now.since(Time::from_ns(batch.granted_at_ns))
    } else {
        span(measured_ms, BATCH_MAX_MS)?
    };
    if batch.life == NO_LIFE {
        return Ok(Status::TAKT_UNSCHEDULED);
    }
    let Batch { number, life, .. } = *batch;
    let grant = Grant { number, life, fills: false, credit: Span::ZERO, frames: 0, alone: false };
    session.complete(grant, now, cost);
    Ok(crate::app::standing(session))
}

/// The frame is complete. If the app has a frame target, waits until the next frame may begin.
/// End all batches of the frame first.
///
/// # Safety
///
/// `app` is NULL or registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_end_frame(app: *mut App) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        let ended = clock::now();
        let grant = app.session.ask(GroupKind::Swap, Span::ZERO);
        let next = grant.and_then(|grant| {
            app.session.complete(grant, clock::now(), Span::ZERO);
            app.session.pace(grant)
        });
        app.frames().end(ended, next);
        Ok(if grant.is_some() { Status::TAKT_OK } else { Status::TAKT_UNSCHEDULED })
    })
}

/// Marks batches without a grant; connections are counted from 0 and never get there.
const NO_LIFE: u64 = u64::MAX;
