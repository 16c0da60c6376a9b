//! The page on which the daemon shows when displays refresh, and which frames of apps are finished.
//!
//! One page for all readers, which they can read and only the daemon can write. A compositor sleeps
//! until a refresh by its own clock and then reads here which frames were finished before it, so that the
//! daemon's scheduling loop wakes no reader and waits for none.
//!
//! Two threads of the daemon write, each its own words: the control thread displays and names, the scheduling
//! loop frames. A reader that meets a change under way reads again, a few times at most.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::{SealFlags, fcntl_add_seals};
use rustix::mm::ProtFlags;
use takt_core::limits::DISPLAYS_MAX;
use takt_core::{AppId, Refresh, Time};

use crate::message::NAME_MAX;
use crate::region::{Mapping, Shareable, sealed};

/// Apps that the page has room for; frames of those beyond are not shown.
pub const APPS_SHOWN: usize = 256;
/// Finished frames that are kept of each app.
const KEPT: usize = 4;
/// Words of a name.
const NAME_WORDS: usize = NAME_MAX / 8;
/// How often a reader that meets a change reads again.
const TRIES: usize = 64;

#[repr(C)]
#[derive(Debug)]
struct Page {
    displays: [DisplayWords; DISPLAYS_MAX],
    apps: [AppWords; APPS_SHOWN],
}

/// A display. Its rate is zero if there is none.
#[repr(C)]
#[derive(Debug)]
struct DisplayWords {
    /// Odd while the rest is written.
    version: AtomicU64,
    mhz: AtomicU64,
    origin_ns: AtomicU64,
    name: [AtomicU64; NAME_WORDS],
}

/// An app. Its process is zero if there is none.
#[repr(C)]
#[derive(Debug)]
struct AppWords {
    /// Odd while process and name are written.
    version: AtomicU64,
    process: AtomicU64,
    name: [AtomicU64; NAME_WORDS],
    /// Frames that were finished since the daemon began, by whichever app had the slot.
    finished: AtomicU64,
    /// When the last of them were, by their number modulo [`KEPT`].
    finished_ns: [AtomicU64; KEPT],
}

const _: () = {
    assert!(size_of::<DisplayWords>() == 88);
    assert!(size_of::<AppWords>() == 120);
    assert!(size_of::<Page>() == 88 * DISPLAYS_MAX + 120 * APPS_SHOWN);
};

// SAFETY: atomics alone.
unsafe impl Shareable for Page {}

/// The daemon's view; clones are of the same page.
#[derive(Clone, Debug)]
pub struct FramePage {
    page: Arc<Mapping<Page>>,
    fd: Arc<OwnedFd>,
}

impl FramePage {
    /// An empty page.
    pub fn new() -> std::io::Result<Self> {
        let fd = sealed("takt-frames", size_of::<Page>())?;
        let page = Mapping::new(fd.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?;
        // From here on it cannot be mapped for writing.
        fcntl_add_seals(&fd, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(Self { page: Arc::new(page), fd: Arc::new(fd) })
    }

    /// The display of that number refreshes on this grid. For the control thread.
    pub fn set_display(&self, index: usize, name: &str, grid: &Refresh) {
        if let Some(words) = self.page.get().displays.get(index) {
            change(&words.version, || {
                words.mhz.store(grid.mhz().into(), Ordering::Relaxed);
                words.origin_ns.store(grid.origin().as_ns(), Ordering::Relaxed);
                write_name(&words.name, name);
            });
        }
    }

    /// The display of that number is gone. For the control thread.
    pub fn clear_display(&self, index: usize) {
        if let Some(words) = self.page.get().displays.get(index) {
            change(&words.version, || words.mhz.store(0, Ordering::Relaxed));
        }
    }

    /// A process has that slot now, or none does. For the control thread.
    pub fn set_app(&self, app: AppId, process: Option<u32>, name: &str) {
        if let Some(words) = self.page.get().apps.get(app.index()) {
            change(&words.version, || {
                words.process.store(process.unwrap_or_default().into(), Ordering::Relaxed);
                write_name(&words.name, name);
            });
        }
    }

    /// An app finished a frame. For the scheduling loop.
    pub fn finished(&self, app: AppId, at: Time) {
        if let Some(words) = self.page.get().apps.get(app.index()) {
            let count = words.finished.load(Ordering::Relaxed);
            words.finished_ns[kept(count)].store(at.as_ns(), Ordering::Relaxed);
            words.finished.store(count + 1, Ordering::Release);
        }
    }
}

impl AsFd for FramePage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A reader's view.
#[derive(Debug)]
pub struct FrameReader(Mapping<Page>);

/// Frames of an app.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppFrames {
    /// Its slot.
    pub app: u32,
    /// Its process; 0 if the daemon cannot see that.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// Frames in that slot that were finished at or before the time that was asked for.
    pub finished: u64,
    /// When the last of these was.
    pub last: Time,
}

impl FrameReader {
    /// The page behind a descriptor that was received.
    pub fn open(fd: BorrowedFd<'_>) -> std::io::Result<Self> {
        Ok(Self(Mapping::new(fd, ProtFlags::READ)?))
    }

    /// The grid of the display of that name; that of the first display if the name is empty.
    pub fn display(&self, name: &str) -> Option<Refresh> {
        self.0.get().displays.iter().enumerate().find_map(|(index, words)| {
            let (mhz, origin_ns, found) = consistent(&words.version, || {
                let (mhz, origin) = (&words.mhz, &words.origin_ns);
                (mhz.load(Ordering::Relaxed), origin.load(Ordering::Relaxed), read_name(&words.name))
            })?;
            let is_meant = if name.is_empty() { index == 0 } else { found == name };
            let grid = Refresh::from_mhz(u32::try_from(mhz).ok()?)?;
            is_meant.then(|| grid.with_origin(Time::from_ns(origin_ns)))
        })
    }

    /// The apps with their frames that were finished by `until`. Of an app that finished more than three
    /// frames since then, the page knows none that early, and it is left out.
    pub fn apps(&self, until: Time) -> Vec<AppFrames> {
        let all = self.0.get().apps.iter().enumerate();
        all.filter_map(|(slot, words)| words.read(u32::try_from(slot).ok()?, until)).collect()
    }
}

impl AppWords {
    fn read(&self, slot: u32, until: Time) -> Option<AppFrames> {
        // Most slots are empty, and then no name is read.
        if self.finished.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (process, name) =
            consistent(&self.version, || (self.process.load(Ordering::Relaxed), read_name(&self.name)))?;
        if name.is_empty() {
            return None;
        }
        let (finished, last) = self.finished_by(until)?;
        Some(AppFrames { app: slot, process: u32::try_from(process).ok()?, name, finished, last })
    }

    /// How many frames were finished by `until`, and when the last of these was.
    fn finished_by(&self, until: Time) -> Option<(u64, Time)> {
        for _ in 0..TRIES {
            let count = self.finished.load(Ordering::Acquire);
            let times: [u64; KEPT] =
                std::array::from_fn(|index| self.finished_ns[index].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            // The oldest one may be overwritten while it is read.
            let oldest = count.saturating_sub(KEPT as u64 - 1);
            let found = (oldest..count).rev().find(|number| times[kept(*number)] <= until.as_ns());
            if self.finished.load(Ordering::Relaxed) == count {
                return found.map(|number| (number + 1, Time::from_ns(times[kept(number)])));
            }
        }
        None
    }
}

/// Where the time of a frame is kept.
fn kept(number: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder")]
    let index = (number % KEPT as u64) as usize;
    index
}

/// Writes what readers shall see as a whole.
fn change(version: &AtomicU64, write: impl FnOnce()) {
    let before = version.load(Ordering::Relaxed);
    version.store(before | 1, Ordering::Relaxed);
    // What follows is not seen before the odd number is.
    fence(Ordering::Release);
    write();
    version.store((before | 1) + 1, Ordering::Release);
}

/// Reads what was written as a whole; none if it changes all the time.
fn consistent<T>(version: &AtomicU64, read: impl Fn() -> T) -> Option<T> {
    (0..TRIES).find_map(|_| {
        let before = version.load(Ordering::Acquire);
        let found = read();
        fence(Ordering::Acquire);
        (before.is_multiple_of(2) && version.load(Ordering::Relaxed) == before).then_some(found)
    })
}

fn write_name(words: &[AtomicU64; NAME_WORDS], name: &str) {
    let mut bytes = [0; NAME_MAX];
    let name = &name[..name.floor_char_boundary(NAME_MAX)];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    for (word, part) in words.iter().zip(bytes.as_chunks().0) {
        word.store(u64::from_le_bytes(*part), Ordering::Relaxed);
    }
}

fn read_name(words: &[AtomicU64; NAME_WORDS]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn page() -> (FramePage, FrameReader) {
        let page = FramePage::new().expect("memfd");
        let reader = FrameReader::open(page.as_fd()).expect("readable");
        (page, reader)
    }

    #[test]
    fn displays_are_found_by_name() {
        let (page, reader) = page();
        assert_eq!(reader.display(""), None);
        let first = Refresh::HZ_60.with_origin(Time::from_us(77));
        let second = Refresh::from_mhz(29_970).expect("a rate");
        page.set_display(0, "cluster", &first);
        page.set_display(1, "head-unit", &second);
        page.set_display(99, "nowhere", &second);
        let found = ["", "cluster", "head-unit", "nowhere"].map(|name| reader.display(name));
        assert_eq!(found, [Some(first), Some(first), Some(second), None]);
        page.clear_display(1);
        assert_eq!(reader.display("head-unit"), None);
    }

    #[test]
    fn frames_are_those_that_were_finished_by_then() {
        let (page, reader) = page();
        let (app, us) = (AppId(3), Time::from_us);
        page.set_app(app, Some(4711), "dial");
        assert_eq!(reader.apps(us(1_000)), [], "it has finished none");
        page.set_app(AppId(99_999), Some(1), "beyond");
        page.finished(AppId(99_999), us(5));
        for at in [10, 20, 30] {
            page.finished(app, us(at));
        }
        let by = |until| reader.apps(us(until)).into_iter().map(|app| (app.finished, app.last)).next();
        assert_eq!(by(9), None);
        assert_eq!([by(10), by(19)], [Some((1, us(10))); 2]);
        assert_eq!([by(20), by(35)], [Some((2, us(20))), Some((3, us(30)))]);
        page.finished(app, us(40));
        page.finished(app, us(50));
        assert_eq!(by(29), None, "too long ago");
        assert_eq!(by(30), Some((3, us(30))));
        let dial = &reader.apps(us(60))[0];
        assert_eq!((dial.app, dial.process, dial.name.as_str(), dial.finished), (3, 4711, "dial", 5));
        page.set_app(app, None, "");
        assert_eq!(reader.apps(us(60)), [], "it left");
    }

    #[test]
    fn readers_see_whole_entries_while_they_change() {
        let (page, reader) = page();
        let over = AtomicBool::new(false);
        let grids = [30_000, 60_000].map(|mhz| Refresh::from_mhz(mhz).expect("a rate"));
        let origin = |mhz: u32| Time::from_us(u64::from(mhz));
        page.set_display(0, "d30000", &grids[0].with_origin(origin(30_000)));
        page.set_app(AppId(0), Some(1), "first");
        page.finished(AppId(0), Time::from_ns(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..20_000_u32 {
                    let grid = grids[turn as usize % 2];
                    let name = format!("d{}", grid.mhz());
                    page.set_display(0, &name, &grid.with_origin(origin(grid.mhz())));
                    let (process, name) = [(1, "first"), (2, "second")][turn as usize % 2];
                    page.set_app(AppId(0), Some(process), name);
                    page.finished(AppId(0), Time::from_ns(u64::from(turn) + 2));
                }
                over.store(true, Ordering::Release);
            });
            while !over.load(Ordering::Acquire) {
                if let Some(grid) = reader.display("") {
                    assert_eq!(grid.origin(), origin(grid.mhz()));
                }
                for app in reader.apps(Time::from_ns(u64::MAX)) {
                    assert_eq!(app.name, ["first", "second"][app.process as usize - 1]);
                    assert_eq!(app.last, Time::from_ns(app.finished), "the time of that frame");
                }
            }
        });
    }

    #[test]
    fn readers_cannot_write() {
        let (page, _) = page();
        assert!(Mapping::<Page>::new(page.as_fd(), ProtFlags::READ | ProtFlags::WRITE).is_err(), "sealed");
    }
}
