//! Registering, frame targets, leaving, and the state of an app.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_client::{Patience, Session};
use takt_core::{Span, Time};
use takt_ipc::message::{Hello, NAME_MAX};

use crate::job::Lines;
use crate::{Status, ms, shielded, sized, span};

/// A registered app.
pub struct App {
    pub(crate) session: Session,
    frames: Mutex<Frames>,
    /// Where the daemon is.
    pub(crate) socket: PathBuf,
    /// For its jobs.
    pub(crate) lines: Arc<Lines>,
}

/// What is known about frames.
pub(crate) struct Frames {
    /// What the app asks for.
    hello: Hello,
    /// When the frame under way was released.
    released: Option<Time>,
    /// Frames that ended.
    ended: u64,
    /// Of those whose deadline is known, whether the last one met it.
    last_met: Option<bool>,
}

/// What an app asks for. Initialise it with takt_params_init, then set what is wanted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Size of this structure, set by takt_params_init.
    pub size: usize,
    /// How people call the app; at most 64 bytes of UTF-8. Must be set.
    pub name: *const c_char,
    /// The daemon's socket; NULL: $TAKT_SOCKET, else takt/control in $XDG_RUNTIME_DIR if
    /// one answers there, else in /run.
    pub socket: *const c_char,
    /// Importance, higher wins; negative: the daemon's default.
    pub priority: i64,
    /// Frames per second, which must divide the refresh rate of the display; 0: as many as it gets.
    pub fps: f64,
    /// GPU time to reserve for each frame, in milliseconds; 0: none, and then nothing is guaranteed.
    pub etpf_ms: f64,
    /// The display that it draws for, as the daemon calls it; NULL: its first one.
    pub display: *const c_char,
}

/// How an app fares. Set `size` to sizeof(takt_state) before asking.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Size of this structure.
    pub size: usize,
    /// Whether a daemon schedules the app now.
    pub scheduled: bool,
    /// Whether its deadlines are guaranteed now.
    pub guaranteed: bool,
    /// Whether takt_end_frame waits for the release of the next frame.
    pub paced: bool,
    /// Whether the last frame met its deadline: 1 yes, 0 no, -1 not known.
    pub last_frame_met: i32,
    /// Frames that ended so far.
    pub frames: u64,
    /// Longest batch that others can live with, in milliseconds; infinite if there is no limit.
    pub max_slice_ms: f64,
}

// SAFETY: its size comes first, the rest are numbers and pointers that are looked at with care.
unsafe impl sized::Versioned for Params {
    const SIZES: &'static [usize] = &[48, 56];
}

// SAFETY: its size comes first; C programs read it and write nothing else.
unsafe impl sized::Versioned for State {
    const SIZES: &'static [usize] = &[32];
}

// Members are only ever added, at the end, with another size that is known.
const _: () = assert!(size_of::<Params>() == 56 && size_of::<State>() == 32);

/// Asks for nothing.
const NOTHING: Params = Params {
    size: size_of::<Params>(),
    name: std::ptr::null(),
    socket: std::ptr::null(),
    priority: -1,
    fps: 0.0,
    etpf_ms: 0.0,
    display: std::ptr::null(),
};

/// Most of what may be asked for.
const FPS_MAX: f64 = 1_000.0;
const ETPF_MAX_MS: f64 = 60_000.0;

impl App {
    pub(crate) fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it asks for.
    pub(crate) fn hello(&self) -> Hello {
        self.frames().hello.clone()
    }
}

impl Frames {
    /// A frame ended at `now`, and the next one is released at `next`, if a daemon paces the app.
    pub(crate) fn end(&mut self, now: Time, next: Option<Time>) {
        self.ended += 1;
        let period = self.hello.fps_mhz.map(|mhz| Span::from_ns(1_000_000_000_000 / u64::from(mhz)));
        self.last_met = self.released.zip(period).map(|(released, period)| now <= released + period);
        self.released = next;
    }
}

/// The app behind a pointer from C.
///
/// # Safety
///
/// A pointer that is not null came from [`takt_register`] and was not left.
pub(crate) unsafe fn known<'a>(app: *const App) -> Result<&'a App, Status> {
    // SAFETY: the caller's contract.
    unsafe { app.as_ref() }.ok_or(Status::TAKT_NULL)
}

/// Makes `params`, of `size` bytes, ask for nothing. NULL is ignored. Use takt_params_init, which knows
/// the size that the program was compiled with.
///
/// # Safety
///
/// `params` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_params_init_sized(params: *mut Params, size: usize) {
    let Some(params) = NonNull::new(params).filter(|_| size >= size_of::<usize>()) else {
        return;
    };
    // SAFETY: there is room for it, by this function's contract.
    unsafe { params.cast::<usize>().write(size) };
    // A size that is not known is refused when the app is registered.
    // SAFETY: there is as much room as it now says, by this function's contract.
    let _known = unsafe { sized::write(params.as_ptr(), NOTHING) };
}

/// Registers an app and stores it in `*app`. TAKT_UNSCHEDULED also stores one: it becomes scheduled
/// as soon as a daemon admits it.
///
/// # Safety
///
/// Pointers are NULL or valid; texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_register(params: *const Params, app: *mut *mut App) -> Status {
    shielded(|| {
        let out = NonNull::new(app).ok_or(Status::TAKT_NULL)?;
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(std::ptr::null_mut()) };
        let params = NonNull::new(params.cast_mut()).ok_or(Status::TAKT_NULL)?;
        // SAFETY: valid, by this function's contract.
        let params = unsafe { sized::read(params.as_ptr(), NOTHING) }?;
        // SAFETY: texts end with a zero byte, by this function's contract.
        let name = unsafe { text(params.name) };
        // SAFETY: as above.
        let socket = unsafe { text(params.socket) };
        let name = name.ok_or(Status::TAKT_NULL)?.to_str().unwrap_or_default();
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(Status::TAKT_INVALID);
        }
        let socket = socket_of(socket);
        // SAFETY: as above.
        let display = unsafe { text(params.display) };
        let display = display.map(|name| name.to_str().map(str::to_owned)).transpose();
        let display = display.map_err(|_not_utf8| Status::TAKT_INVALID)?;
        if display.as_ref().is_some_and(|name| name.len() > NAME_MAX) {
            return Err(Status::TAKT_INVALID);
        }
        let priority = u32::try_from(params.priority).ok();
        if priority.is_none() && params.priority >= 0 {
            return Err(Status::TAKT_INVALID);
        }
        let hello = with_target(
            Hello { name: name.to_owned(), priority, display, ..Hello::default() },
            params.fps,
            params.etpf_ms,
        )?;
        let session = Session::new(socket.clone(), hello.clone(), |_| {}, Patience::of_environment());
        session.join();
        let status = standing(&session);
        let frames = Frames { hello, released: None, ended: 0, last_met: None };
        let app = App { session, frames: Mutex::new(frames), socket, lines: Arc::default() };
        let app = Box::new(app);
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(Box::into_raw(app)) };
        Ok(status)
    })
}

/// Changes what the app asks for: frames per second, above 0, and GPU time to reserve for each, in
/// milliseconds (0: none). If the daemon refuses, the terms stay as they were, and takt_message says
/// why.
///
/// # Safety
///
/// `app` is NULL or registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_set_frame_target(app: *mut App, fps: f64, etpf_ms: f64) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        if fps == 0.0 {
            return Err(Status::TAKT_INVALID);
        }
        let hello = with_target(app.frames().hello.clone(), fps, etpf_ms)?;
        if app.session.renew(hello.clone()) {
            app.frames().hello = hello;
        }
        Ok(standing(&app.session))
    })
}

/// Says in `*state` how the app fares.
///
/// # Safety
///
/// `app` is NULL or registered; `state` is NULL or points to a takt_state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_query(app: *const App, state: *mut State) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let app = unsafe { known(app) }?;
        let state = NonNull::new(state).ok_or(Status::TAKT_NULL)?;
        let welcome = app.session.welcome();
        let stands = welcome.as_ref().map(|welcome| welcome.standing).unwrap_or_default();
        let slice = app.session.slice();
        let frames = app.frames();
        let now = State {
            size: size_of::<State>(),
            scheduled: welcome.is_some(),
            guaranteed: stands.guaranteed,
            paced: stands.paced,
            last_frame_met: frames.last_met.map_or(-1, i32::from),
            frames: frames.ended,
            max_slice_ms: if slice < Span::FOREVER { ms(slice) } else { f64::INFINITY },
        };
        // SAFETY: a takt_state whose size was set, by this function's contract.
        unsafe { sized::write(state.as_ptr(), now) }?;
        Ok(standing(&app.session))
    })
}

/// Writes what was last said of the connection, in English, to `buffer` of `size` bytes, cut off if
/// it is longer and always ended with a zero byte. Returns the length of the whole text.
///
/// # Safety
///
/// `app` is NULL or registered; `buffer` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_message(app: *const App, buffer: *mut c_char, size: usize) -> usize {
    let mut length = 0;
    shielded(|| {
        // SAFETY: this function's contract.
        let said = unsafe { known(app) }?.session.said();
        length = said.len();
        // SAFETY: this function's contract.
        unsafe { put(&said, buffer, size) };
        Ok(Status::TAKT_OK)
    });
    length
}

/// Writes as much of a text as there is room for, and a zero byte.
///
/// # Safety
///
/// `buffer` is null or has room for `size` bytes.
pub(crate) unsafe fn put(text: &str, buffer: *mut c_char, size: usize) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let part = &text.as_bytes()[..text.floor_char_boundary(size - 1)];
    let ended: Vec<u8> = part.iter().copied().chain([0]).collect();
    // SAFETY: there is room for `size` bytes, and these are not more.
    unsafe { std::ptr::copy_nonoverlapping(ended.as_ptr().cast(), buffer, ended.len()) };
}

/// Leaves: the daemon releases what the app reserved at once, and `app` must not be used any more. NULL is ignored.
/// Jobs that are open stay so; each leaves when it ends.
///
/// # Safety
///
/// `app` is NULL or registered, and no other call with it is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_leave(app: *mut App) {
    shielded(|| {
        let app = NonNull::new(app).ok_or(Status::TAKT_NULL)?;
        // SAFETY: it came from a box in `takt_register`, and no other call uses it any more.
        drop(unsafe { Box::from_raw(app.as_ptr()) });
        Ok(Status::TAKT_OK)
    });
}

/// Whether the app is scheduled.
pub(crate) fn standing(session: &Session) -> Status {
    if session.welcome().is_some() { Status::TAKT_OK } else { Status::TAKT_UNSCHEDULED }
}

/// Where the daemon is, as the program says, or where it usually is.
pub(crate) fn socket_of(named: Option<&CStr>) -> PathBuf {
    named.map_or_else(usual_socket, |named| PathBuf::from(OsStr::from_bytes(named.to_bytes())))
}

fn usual_socket() -> PathBuf {
    let named = std::env::var_os("TAKT_SOCKET").filter(|path| !path.is_empty());
    named.map_or_else(takt_ipc::find::default_path, PathBuf::from)
}

fn with_target(hello: Hello, fps: f64, etpf_ms: f64) -> Result<Hello, Status> {
    if !(0.0..=FPS_MAX).contains(&fps) || (fps > 0.0 && fps < 0.001) {
        return Err(Status::TAKT_INVALID);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let fps_mhz = (fps > 0.0).then(|| (fps * 1000.0).round() as u32);
    Ok(Hello { fps_mhz, etpf_ns: Some(span(etpf_ms, ETPF_MAX_MS)?.as_ns()), ..hello })
}

/// A text from C, if there is one.
///
/// # Safety
///
/// `text` is null or ends with a zero byte, and stays as it is meanwhile.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
