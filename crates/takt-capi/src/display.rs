//! What compositors need: waiting for a refresh, and the windows whose frames were finished before it.

use std::collections::VecDeque;
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use takt_client::display;
use takt_core::{Refresh, Time};
use takt_ipc::frame_page::AppFrames;
use takt_ipc::message::NAME_MAX;

use crate::app::{socket_of, text};
use crate::{Status, shielded, sized};

/// A display.
pub struct Display(Mutex<Opened>);

struct Opened {
    display: display::Display,
    /// Windows that there was no room for, each app once.
    waiting: VecDeque<AppFrames>,
    name: String,
    socket: std::path::PathBuf,
}

/// A refresh of a display. Set `size` to sizeof(takt_vsync) before waiting for one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Vsync {
    /// Size of this structure.
    pub size: usize,
    /// Its number.
    pub period: u64,
    /// When it was, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// When the next one is.
    pub next_ns: u64,
    /// Refreshes that were over before this call came.
    pub skipped: u64,
    /// How many windows were written.
    pub windows: usize,
}

/// A window: an app with a new frame that was finished before a refresh.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Number of the app at the daemon.
    pub app: u32,
    /// Its process; 0 if that is not known.
    pub process: u32,
    /// How many frames of it were finished before the refresh.
    pub frames: u64,
    /// When the last of these was finished, in nanoseconds of CLOCK_MONOTONIC.
    pub finished_ns: u64,
    /// Its name, ended with a zero byte.
    pub name: [c_char; 65],
}

const _: () = assert!(NAME_MAX == 64);

// SAFETY: its size comes first; C programs read it and write nothing else.
unsafe impl sized::Versioned for Vsync {
    const SIZES: &'static [usize] = &[48];
}

// Members of a vsync are only ever added, at the end; a window stays as it is.
const _: () = assert!(size_of::<Vsync>() == 48 && size_of::<Window>() == 96);

/// Opens the display that the daemon knows by `name` and stores it in `*display`; NULL is its first one.
/// `socket` is that of the daemon, or NULL as in takt_params. Without a daemon, the display refreshes 60
/// times per second.
///
/// # Safety
///
/// Pointers are NULL or valid; texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_open_display(
    name: *const c_char,
    socket: *const c_char,
    display: *mut *mut Display,
) -> Status {
    shielded(|| {
        let out = NonNull::new(display).ok_or(Status::TAKT_NULL)?;
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(std::ptr::null_mut()) };
        // SAFETY: texts end with a zero byte, by this function's contract.
        let name = unsafe { text(name) };
        // SAFETY: as above.
        let socket = unsafe { text(socket) };
        let name = name.map_or(Some(""), |name| name.to_str().ok());
        let name = name.filter(|name| name.len() <= NAME_MAX).ok_or(Status::TAKT_INVALID)?.to_owned();
        let socket = socket_of(socket);
        let followed = display::Display::followed(socket.clone(), &name, Refresh::HZ_60);
        let state = Opened { display: followed, waiting: VecDeque::new(), name, socket };
        let display = Box::new(Display(Mutex::new(state)));
        // SAFETY: there is room for a pointer, by this function's contract.
        unsafe { out.write(Box::into_raw(display)) };
        Ok(Status::TAKT_OK)
    })
}

/// Says that the caller owns the display: it refreshes at `refresh_hz`, and does or did at `vsync_ns` of
/// CLOCK_MONOTONIC. The daemon releases apps that draw for this display accordingly, if the caller may
/// say so; it is told now and whenever it is started again. Call it again when that changes.
///
/// # Safety
///
/// `display` is NULL or was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_own_display(display: *mut Display, refresh_hz: f64, vsync_ns: u64) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let mut state = unsafe { known(display) }?;
        if !(1.0..=1000.0).contains(&refresh_hz) || state.name.is_empty() {
            return Err(Status::TAKT_INVALID);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let rate = Refresh::from_mhz((refresh_hz * 1000.0).round() as u32);
        let grid = rate.ok_or(Status::TAKT_INVALID)?.with_origin(Time::from_ns(vsync_ns));
        if state.display.is_owned() {
            state.display.set_grid(grid);
        } else {
            state.display = display::Display::owned(state.socket.clone(), &state.name, grid);
        }
        Ok(Status::TAKT_OK)
    })
}

/// Waits for the next refresh, and writes it to `vsync`, and up to `room` windows whose frames were
/// finished before it and which no call has returned yet to `windows`; the next call returns the others.
/// TAKT_UNSCHEDULED: the refresh came, but no daemon says which frames were finished.
///
/// # Safety
///
/// `display` is NULL or was opened; `vsync` is NULL or points to a takt_vsync whose size is set; `windows`
/// has room for `room` of them, and may be NULL if that is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_wait_vsync(
    display: *mut Display,
    vsync: *mut Vsync,
    windows: *mut Window,
    room: usize,
) -> Status {
    shielded(|| {
        // SAFETY: this function's contract.
        let mut state = unsafe { known(display) }?;
        let vsync = NonNull::new(vsync).ok_or(Status::TAKT_NULL)?;
        if windows.is_null() && room > 0 {
            return Err(Status::TAKT_NULL);
        }
        let waited = state.display.wait();
        for app in waited.windows {
            state.waiting.retain(|other| other.app != app.app);
            state.waiting.push_back(app);
        }
        let count = room.min(state.waiting.len());
        for (index, app) in state.waiting.drain(..count).enumerate() {
            // SAFETY: there is room for so many, by this function's contract.
            let to = unsafe { windows.add(index) };
            // SAFETY: as above.
            unsafe { to.write(Window::of(&app)) };
        }
        let told = Vsync {
            size: size_of::<Vsync>(),
            period: waited.period.0,
            at_ns: waited.at.as_ns(),
            next_ns: waited.next.as_ns(),
            skipped: waited.skipped,
            windows: count,
        };
        // SAFETY: a takt_vsync whose size was set, by this function's contract.
        unsafe { sized::write(vsync.as_ptr(), told) }?;
        Ok(if waited.known { Status::TAKT_OK } else { Status::TAKT_UNSCHEDULED })
    })
}

/// Closes a display, which must not be used any more. NULL is ignored.
///
/// # Safety
///
/// `display` is NULL or was opened, and no other call with it is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn takt_close_display(display: *mut Display) {
    shielded(|| {
        let display = NonNull::new(display).ok_or(Status::TAKT_NULL)?;
        // SAFETY: it came from a box in `takt_open_display`, and no other call uses it any more.
        drop(unsafe { Box::from_raw(display.as_ptr()) });
        Ok(Status::TAKT_OK)
    });
}

impl Window {
    fn of(app: &AppFrames) -> Self {
        let mut name = [0; 65];
        for (to, from) in name[..NAME_MAX].iter_mut().zip(app.name.as_bytes()) {
            *to = c_char::from_ne_bytes([*from]);
        }
        Self { app: app.app, process: app.process, frames: app.finished, finished_ns: app.last.as_ns(), name }
    }
}

/// The display behind a pointer from C.
///
/// # Safety
///
/// A pointer that is not null came from [`takt_open_display`] and was not closed.
unsafe fn known<'a>(display: *const Display) -> Result<std::sync::MutexGuard<'a, Opened>, Status> {
    // SAFETY: the caller's contract.
    let display = unsafe { display.as_ref() }.ok_or(Status::TAKT_NULL)?;
    Ok(display.0.lock().unwrap_or_else(PoisonError::into_inner))
}
