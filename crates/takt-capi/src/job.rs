//! Jobs: work with a deadline, a budget and a period of its own. An app may have several at once.
//!
//! For the daemon each is a client by itself, with its own contract. An app keeps the connections of jobs that are
//! over, so that the next job of the same terms begins without asking for admission again.

use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_client::{Patience, Session};
use takt_core::{GroupKind, Span, Time};
use takt_ipc::message::{Hello, NAME_MAX};
use takt_ipc::name::is_name;
use takt_os::clock;

use crate::app::{App, known, text};
use crate::batch::{self, Batch};
use crate::{Status, ms, shielded, sized, span};

/// Most jobs of an app that are open at once.
const OPEN_MAX: usize = 32;
/// Longest period.
const PERIOD_MAX_MS: f64 = 60_000.0;

/// What a job asks for. Initialise it with takt_job_params_init, then set what is wanted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct JobParams {
    /// Size of this structure, set by takt_job_params_init.
    pub size: usize,
    /// How people call jobs of this kind: letters, digits, '-', '_' and '.'; NULL: the app's name and "-job".
    pub name: *const c_char,
    /// How long after takt_job_begin all of its work is due, in milliseconds; 0: the period.
    pub deadline_ms: f64,
    /// GPU time of all of its batches together, in milliseconds. Must be set.
    pub budget_ms: f64,
    /// Time between two jobs of this kind at least, in milliseconds; 0: the deadline.
    pub period_ms: f64,
    /// A job whose budget is used up waits for the next period, even if the GPU is idle. Only where the
    /// deadline is the period.
    pub hard: bool,
    /// The app or job that consumes what this one produces; while it waits for that, this job has its deadline.
    /// NULL: none.
    pub feeds: *const c_char,
    /// Importance, higher wins; negative: the app's. Give the jobs of the shortest deadlines the most: what is promised
    /// to more important ones comes first.
    pub priority: i64,
}

/// What came of a job. Set `size` to sizeof(takt_job_result) before asking.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct JobResult {
    /// Size of this structure.
    pub size: usize,
    /// From takt_job_begin to takt_job_end, in milliseconds.
    pub response_ms: f64,
    /// Whether it ended before it was due.
    pub met: bool,
    /// Whether a daemon scheduled it, up to its end.
    pub scheduled: bool,
    /// Whether its deadline is guaranteed now.
    pub guaranteed: bool,
}

// SAFETY: its size comes first, the rest are numbers and pointers that are looked at with care.
unsafe impl sized::Versioned for JobParams {
    const SIZES: &'static [usize] = &[64];
}

// SAFETY: its size comes first; C programs read it and write nothing else.
unsafe impl sized::Versioned for JobResult {
    const SIZES: &'static [usize] = &[24];
}

// Members are only ever added, at the end, with another size that is known.
const _: () = assert!(size_of::<JobParams>() == 64 && size_of::<JobResult>() == 24);

/// Asks for nothing.
const NOTHING: JobParams = JobParams {
    size: size_of::<JobParams>(),
    name: std::ptr::null(),
    deadline_ms: 0.0,
    budget_ms: 0.0,
    period_ms: 0.0,
    hard: false,
    feeds: std::ptr::null(),
    priority: -1,
};

/// A job that has begun.
pub struct Job {
    line: Line,
    deadline: Span,
    began: Time,
    lines: Arc<Lines>,
}

/// A connection for jobs of one kind, one after the other.
struct Line {
    session: Session,
    asked: Hello,
}

/// The connections for jobs of an app.
#[derive(Default)]
pub(crate) struct Lines(Mutex<OpenLines>);

#[derive(Default)]
struct OpenLines {
    open: usize,
    /// Those without a job; the one that was used last comes last.
    idle: Vec<Line>,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, OpenLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for a job with such terms; one that was used for such jobs before, if there is one.
    fn take(&self, app: &App, hello: Hello) -> Result<Line, Status> {
        let mut state = self.lock();
        if state.open == OPEN_MAX {
            return Err(Status::TAKT_BUSY);
        }
        state.open += 1;
        let same = state.idle.iter().rposition(|line| line.asked == hello);
        let kind = || state.idle.iter().rposition(|line| line.asked.name == hello.name);
        let found = same.or_else(kind).map(|at| state.idle.remove(at));
        drop(state);
        let Some(mut line) = found else {
            let socket = app.socket.clone();
            let session = Session::new(socket, hello.clone(), |_| {}, Patience::of_environment());
            session.join();
            return Ok(Line { session, asked: hello });
        };
        // If the daemon refuses, the terms stay as they were, and the next job asks again.
        if line.asked != hello && line.session.renew(hello.clone()) {
            line.asked = hello;
        }
        Ok(line)
    }

    fn give_back(&self, line: Line) {
        let mut state = self.lock();
        state.open -= 1;
        state.idle.push(line);
        let oldest = if state.idle.len() > OPEN_MAX { Some(state.idle.remove(0)) } else { None };
        drop(state);
        drop(oldest);
    }
}

/// Makes `params`, of `size` bytes, ask for nothing. NULL is ignored. Use takt_job_params_init, which knows
/// the size that the program was compiled with.
///
/// # Safety
///
/// `params` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_params_init_sized(params: *mut JobParams, size: usize) {
    let Some(params) = NonNull::new(params).filter(|_| size >= size_of::<usize>()) else {
        return;
    };
    // SAFETY: there is room for it, by this function's contract.
    unsafe { params.cast::<usize>().write(size) };
    // A size that is not known is refused when a job begins.
    // SAFETY: there is as much room as it now says, by this function's contract.
    let _known = unsafe { sized::write(params.as_ptr(), NOTHING) };
}

/// Begins a job and stores it in `*job`; up to 32 of an app may be open at once, with any terms. It is due
/// `deadline_ms` from now. Where the deadline is shorter than the period, this waits if the job comes less than a
/// period after the one before it. TAKT_UNSCHEDULED also stores a job.
///
/// The first job of a kind asks the daemon for admission. The app reserves its budget from then on, also between jobs,
/// until it leaves.
///
/// # Safety
///
/// `app` is NULL or registered; other pointers are NULL or valid; texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_begin(
    app: *mut App,
    params: *const JobParams,
    job: *mut *mut Job,
) -> Status {
    shielded(|| {
        let out = NonNull::new(job).ok_or(Status::TAKT_NULL)?;
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(std::ptr::null_mut()) };
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        let params = NonNull::new(params.cast_mut()).ok_or(Status::TAKT_NULL)?;
        // SAFETY: valid, by this function's contract.
        let params = unsafe { sized::read(params.as_ptr(), NOTHING) }?;
        // SAFETY: texts end with a zero byte, by this function's contract.
        let name = unsafe { name(params.name) }?;
        // SAFETY: as above.
        let feeds = unsafe { self::name(params.feeds) }?;
        let (hello, deadline) = asked(&params, name, feeds, &app.hello())?;
        let line = app.lines.take(app, hello)?;
        line.session.begin_frame();
        let status = crate::app::standing(&line.session);
        let job = Job { line, deadline, began: clock::now(), lines: Arc::clone(&app.lines) };
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(Box::into_raw(Box::new(job))) };
        Ok(status)
    })
}

/// As takt_begin_batch, for work of a job.
///
/// # Safety
///
/// `job` is NULL or has begun; `batch` is NULL or points to a takt_batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_begin_batch(job: *mut Job, predicted_ms: f64, batch: *mut Batch) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let job = unsafe { job.as_ref() }.ok_or(Status::TAKT_NULL)?;
        // SAFETY: this function's contract.
        unsafe { batch::begin(&job.line.session, predicted_ms, batch) }
    })
}

/// As takt_end_batch, for work of a job. All batches of a job end before the job does.
///
/// # Safety
///
/// `job` is NULL or has begun; `batch` is NULL or was filled by takt_job_begin_batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_end_batch(job: *mut Job, batch: *const Batch, measured_ms: f64) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let job = unsafe { job.as_ref() }.ok_or(Status::TAKT_NULL)?;
        // SAFETY: this function's contract.
        unsafe { batch::end(&job.line.session, batch, measured_ms) }
    })
}

/// The work of the job is over, and `job` must not be used any more. Says in `*result` what came of it, unless
/// that is NULL. Does not wait. With any mistake but a `job` that is NULL the job ends all the same.
///
/// # Safety
///
/// `job` is NULL or has begun, and no other call with it is under way; `result` is NULL or points to a
/// takt_job_result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_end(job: *mut Job, result: *mut JobResult) -> Status {
    shielded(|| {
        let job = NonNull::new(job).ok_or(Status::TAKT_NULL)?;
        // SAFETY: it came from a box in `takt_job_begin`, and no other call uses it any more.
        let job = *unsafe { Box::from_raw(job.as_ptr()) };
        let response = clock::now().since(job.began);
        let grant = job.line.session.ask(GroupKind::Swap, Span::ZERO);
        if let Some(grant) = grant {
            job.line.session.complete(grant, clock::now(), Span::ZERO);
        }
        let welcome = job.line.session.welcome();
        let guaranteed = welcome.is_some_and(|welcome| welcome.standing.guaranteed);
        let Job { line, lines, deadline, .. } = job;
        lines.give_back(line);
        if let Some(result) = NonNull::new(result) {
            let told = JobResult {
                size: size_of::<JobResult>(),
                response_ms: ms(response),
                met: response <= deadline,
                scheduled: grant.is_some(),
                guaranteed,
            };
            // SAFETY: a takt_job_result whose size was set, by this function's contract.
            unsafe { sized::write(result.as_ptr(), told) }?;
        }
        Ok(if grant.is_some() { Status::TAKT_OK } else { Status::TAKT_UNSCHEDULED })
    })
}

/// As takt_message, for the connection of a job.
///
/// # Safety
///
/// `job` is NULL or has begun; `buffer` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_job_message(job: *const Job, buffer: *mut c_char, size: usize) -> usize {
    let mut length = 0;
    shielded(|| {
        // SAFETY: this function's contract.
        let said = unsafe { job.as_ref() }.ok_or(Status::TAKT_NULL)?.line.session.said();
        length = said.len();
        // SAFETY: this function's contract.
        unsafe { crate::app::put(&said, buffer, size) };
        Ok(Status::TAKT_OK)
    });
    length
}

/// A name, if there is one.
///
/// # Safety
///
/// As for [`text`].
unsafe fn name(from: *const c_char) -> Result<Option<String>, Status> {
    // SAFETY: the caller's contract.
    let Some(text) = (unsafe { text(from) }) else { return Ok(None) };
    let name = text.to_str().ok().filter(|name| is_name(name));
    Ok(Some(name.ok_or(Status::TAKT_INVALID)?.to_owned()))
}

/// What a job of that app asks the daemon for, and its deadline.
fn asked(
    params: &JobParams,
    name: Option<String>,
    feeds: Option<String>,
    app: &Hello,
) -> Result<(Hello, Span), Status> {
    let given = |ms: f64| span(ms, PERIOD_MAX_MS);
    let (deadline, budget, period) =
        (given(params.deadline_ms)?, given(params.budget_ms)?, given(params.period_ms)?);
    let period = if period > Span::ZERO { period } else { deadline };
    let deadline = if deadline > Span::ZERO { deadline } else { period };
    let early = deadline < period;
    if budget == Span::ZERO || budget > deadline || deadline > period || (params.hard && early) {
        return Err(Status::TAKT_INVALID);
    }
    let priority = u32::try_from(params.priority).ok();
    if priority.is_none() && params.priority >= 0 {
        return Err(Status::TAKT_INVALID);
    }
    let name = name.unwrap_or_else(|| {
        let app = takt_ipc::name::nearest(&app.name);
        format!("{}-job", &app[..app.len().min(NAME_MAX - "-job".len())])
    });
    let hello = Hello {
        name,
        priority: priority.or(app.priority),
        period_ns: Some(period.as_ns()),
        runtime_ns: Some(budget.as_ns()),
        deadline_ns: early.then(|| deadline.as_ns()),
        hard: params.hard,
        feeds,
        ..Hello::default()
    };
    Ok((hello, deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> Hello {
        Hello { name: "an app".to_owned(), priority: Some(7), ..Hello::default() }
    }

    fn of(deadline_ms: f64, budget_ms: f64, period_ms: f64, hard: bool) -> Result<(Hello, Span), Status> {
        asked(&JobParams { deadline_ms, budget_ms, period_ms, hard, ..NOTHING }, None, None, &app())
    }

    #[test]
    fn a_deadline_before_the_period_makes_another_contract() {
        let (server, deadline) = of(40.0, 3.0, 40.0, true).expect("fine");
        assert_eq!((server.name.as_str(), server.priority), ("an_app-job", Some(7)));
        assert_eq!((server.deadline_ns, server.hard, deadline), (None, true, Span::from_ms(40)));
        let (early, deadline) = of(4.0, 3.0, 40.0, false).expect("fine");
        assert_eq!((early.deadline_ns, deadline), (Some(4_000_000), Span::from_ms(4)));
        for (deadline, period) in [(0.0, 40.0), (40.0, 0.0)] {
            let (hello, due) = of(deadline, 3.0, period, false).expect("fine");
            assert_eq!((hello.period_ns, due), (Some(40_000_000), Span::from_ms(40)));
        }
    }

    #[test]
    fn jobs_are_as_important_as_they_say_or_as_their_app() {
        let of = |priority| {
            let params = JobParams { priority, budget_ms: 1.0, period_ms: 10.0, ..NOTHING };
            asked(&params, None, None, &app()).map(|(hello, _)| hello.priority)
        };
        assert_eq!([of(-1), of(90)], [Ok(Some(7)), Ok(Some(90))]);
        assert_eq!(of(i64::MAX), Err(Status::TAKT_INVALID));
    }

    #[test]
    fn terms_that_could_never_be_are_refused() {
        let wrong = [
            of(0.0, 3.0, 0.0, false),
            of(4.0, 0.0, 40.0, false),
            of(4.0, 5.0, 40.0, false),
            of(50.0, 5.0, 40.0, false),
            of(4.0, 3.0, 40.0, true),
            of(-1.0, 3.0, 40.0, false),
            of(4.0, f64::NAN, 40.0, false),
            of(4.0, 3.0, f64::INFINITY, false),
        ];
        assert!(wrong.iter().all(|wrong| *wrong == Err(Status::TAKT_INVALID)), "{wrong:?}");
    }
}
