//! When the display refreshes.
//!
//! By default no display reports: the grid starts with the daemon and runs on the monotonic clock at
//! the configured rate, each start computed from the first, so that it never drifts. If a display
//! reports its refreshes, a thread reads them, and the grid follows in rate and phase.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use takt_core::{Period, Refresh, Span, Time};
use takt_os::vblank::Display;

use crate::rt::realtime;

/// The source of refreshes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Vsync {
    /// The clock.
    #[default]
    Timer,
    /// A display device of the kernel.
    Drm(PathBuf),
}

impl FromStr for Vsync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "timer" => Ok(Self::Timer),
            Some(("drm", path)) if path.starts_with('/') => Ok(Self::Drm(PathBuf::from(path))),
            _ => Err("use \"timer\", or \"drm:\" and a device such as /dev/dri/card0".to_owned()),
        }
    }
}

/// Reports refreshes.
pub trait Source: Send {
    /// Waits for the next refresh; returns when it was.
    fn wait(&mut self) -> std::io::Result<Time>;
}

impl Source for Display {
    fn wait(&mut self) -> std::io::Result<Time> {
        Self::wait(self)
    }
}

/// Follows the grid of a display.
#[derive(Debug)]
pub struct Follower {
    grids: Receiver<std::io::Result<Refresh>>,
    /// The thread ends when this is dropped.
    _wanted: Arc<()>,
}

impl Follower {
    /// Follows the display that `vsync` names; `nominal` is the configured grid. None for the timer.
    pub fn start(vsync: &Vsync, nominal: Refresh) -> std::io::Result<Option<Self>> {
        let Vsync::Drm(path) = vsync else {
            return Ok(None);
        };
        let display = Display::open(path).map_err(|error| {
            let what = format!("vsync = \"drm:{}\": {error}; \"timer\" needs no display", path.display());
            std::io::Error::new(error.kind(), what)
        })?;
        Self::follow(display, nominal).map(Some)
    }

    /// Follows `source` on a thread of its own, until that fails or the follower is dropped.
    pub fn follow(mut source: impl Source + 'static, nominal: Refresh) -> std::io::Result<Self> {
        let (tell, grids) = sync_channel(8);
        let wanted = Arc::new(());
        let asked = Arc::downgrade(&wanted);
        std::thread::Builder::new().name("takt-vsync".to_owned()).spawn(move || {
            realtime::ordinary();
            let mut tracker = Tracker::new(nominal);
            while asked.strong_count() > 0 {
                let found = match source.wait() {
                    Ok(at) => tracker.observe(at).map(Ok),
                    Err(error) => Some(Err(error)),
                };
                let over = matches!(found, Some(Err(_)));
                if found.is_some_and(|found| tell.send(found).is_err()) || over {
                    return;
                }
            }
        })?;
        Ok(Self { grids, _wanted: wanted })
    }

    /// The newest grid, if there is a new one; an error once, if the display reports no more.
    pub fn news(&self) -> Option<std::io::Result<Refresh>> {
        let mut newest = None;
        loop {
            match self.grids.try_recv() {
                Ok(news) => newest = Some(news),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return newest,
            }
        }
    }
}

/// Refreshes from which rate and phase are taken.
const WINDOW: usize = 64;
/// A grid that is off by less is good enough: scheduling has larger margins.
const GOOD: Span = Span::from_us(50);
/// Periods that lie behind the start of a grid at most.
pub(crate) const PAST: u64 = 1 << 16;
/// A display whose rate differs from the configured one by more than one part in this many is not
/// the configured one.
pub(crate) const TOLERANCE: u64 = 50;

/// Finds the grid behind refreshes with jitter, some of which are missed.
#[derive(Clone, Debug)]
pub struct Tracker {
    nominal: Refresh,
    grid: Option<Refresh>,
    seen: Vec<Time>,
}

impl Tracker {
    /// Knows the configured grid alone.
    pub fn new(nominal: Refresh) -> Self {
        Self { nominal, grid: None, seen: Vec::with_capacity(WINDOW) }
    }

    /// A refresh began at `at`; returns the grid if it has to change.
    pub fn observe(&mut self, at: Time) -> Option<Refresh> {
        if self.seen.last().is_some_and(|last| at <= *last) {
            return None;
        }
        self.seen.push(at);
        if self.seen.len() < WINDOW {
            return None;
        }
        let seen = std::mem::replace(&mut self.seen, Vec::with_capacity(WINDOW));
        let found = grid_of(&seen, &self.nominal)?;
        if self
            .grid
            .is_some_and(|grid| seen.iter().filter(|at| off(&grid, **at) <= GOOD).count() > WINDOW / 2)
        {
            return None;
        }
        self.grid = Some(found);
        Some(found)
    }
}

/// The grid through these refreshes: their mean rate, and the median of their phases.
fn grid_of(seen: &[Time], nominal: &Refresh) -> Option<Refresh> {
    let (first, last) = (*seen.first()?, *seen.last()?);
    let period = nominal.period_span().as_ns();
    let counted: u64 =
        seen.windows(2).map(|pair| rounded(pair[1].since(pair[0]).as_ns(), period).max(1)).sum();
    let mhz = rounded(counted.checked_mul(1_000_000_000_000)?, last.since(first).as_ns());
    if mhz.abs_diff(nominal.mhz().into()) > u64::from(nominal.mhz()) / TOLERANCE {
        return None;
    }
    let rate = Refresh::from_mhz(u32::try_from(mhz).ok()?)?.with_origin(first);
    let mut phases: Vec<i64> = seen.iter().map(|at| signed_off(&rate, *at)).collect();
    phases.sort_unstable();
    let start = first.as_ns().checked_add_signed(phases[phases.len() / 2])?;
    Some(anchored(&rate, Time::from_ns(start)))
}

/// The grid of that rate in which a period begins at `at`. Its first period lies far back, if the clock
/// has run for so long, so that frames under way have a period.
pub(crate) fn anchored(rate: &Refresh, at: Time) -> Refresh {
    let from_zero = rate.with_origin(Time::ZERO);
    let before = from_zero.period_at(at).0.min(PAST);
    rate.with_origin(at - from_zero.start(Period(before)).since(Time::ZERO))
}

fn rounded(value: u64, unit: u64) -> u64 {
    (value + unit / 2).checked_div(unit).unwrap_or(0)
}

/// How far a refresh is from the nearest start of a period.
fn off(grid: &Refresh, at: Time) -> Span {
    Span::from_ns(signed_off(grid, at).unsigned_abs())
}

fn signed_off(grid: &Refresh, at: Time) -> i64 {
    let period = grid.period_at(at);
    let (late, early) = (at.since(grid.start(period)), grid.end(period).since(at));
    if late <= early { late.as_signed_ns() } else { -early.as_signed_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refreshes at a rate, with jitter, some of them missed.
    struct Fake {
        grid: Refresh,
        next: u64,
        last: u64,
    }

    impl Fake {
        fn new(mhz: u32, origin_us: u64) -> Self {
            let grid = Refresh::from_mhz(mhz).expect("a rate").with_origin(Time::from_us(origin_us));
            Self { grid, next: 0, last: u64::MAX }
        }
    }

    impl Source for Fake {
        fn wait(&mut self) -> std::io::Result<Time> {
            self.next += if self.next % 17 == 16 { 3 } else { 1 };
            if self.next > self.last {
                return Err(std::io::Error::other("unplugged"));
            }
            let jitter = Span::from_ns(self.next * 7_919 % 20_000);
            Ok(self.grid.start(Period(self.next)) + jitter)
        }
    }

    #[test]
    fn a_display_is_followed_in_rate_and_phase() {
        let mut fake = Fake::new(59_940, 1_234_567_890_000);
        let mut tracker = Tracker::new(Refresh::HZ_60.with_origin(Time::from_us(1_234_560_000_000)));
        let mut grid = None;
        for _ in 0..200 {
            let at = fake.wait().expect("plugged in");
            grid = tracker.observe(at).or(grid);
        }
        let grid = grid.expect("found");
        assert_eq!(grid.mhz(), 59_940);
        let at = fake.grid.start(Period(300));
        assert!(off(&grid, at) < GOOD, "{:?}", off(&grid, at));
        // A grid within the tolerance stays.
        for _ in 0..1_000 {
            assert_eq!(tracker.observe(fake.wait().expect("plugged in")), None);
        }
        // After a change of mode the grid changes.
        let mut moved = Fake { next: 0, ..Fake::new(59_940, 1_234_667_893_000) };
        let found = (0..3 * WINDOW).filter_map(|_| tracker.observe(moved.wait().expect("plugged in"))).last();
        assert!(off(&found.expect("found"), moved.grid.start(Period(100))) < GOOD);
    }

    #[test]
    fn a_display_is_followed_from_the_start_of_the_clock() {
        let mut tracker = Tracker::new(Refresh::HZ_60);
        let mut fake = Fake::new(60_000, 20);
        let grid = (0..1_000).find_map(|_| tracker.observe(fake.wait().expect("plugged in"))).expect("found");
        assert!(off(&grid, fake.wait().expect("plugged in")) <= GOOD);
    }

    #[test]
    fn a_display_of_another_rate_is_not_followed() {
        let mut tracker = Tracker::new(Refresh::HZ_60);
        let mut fake = Fake::new(50_000, 1_000_000_000);
        assert!((0..1_000).all(|_| tracker.observe(fake.wait().expect("plugged in")).is_none()));
        let mut still = Tracker::new(Refresh::HZ_60);
        assert!((0..1_000).all(|_| still.observe(Time::from_us(5)).is_none()));
    }

    #[test]
    fn news_come_and_end() {
        let fake = Fake { last: 130, ..Fake::new(60_000, 9_000_000_000) };
        let follower = Follower::follow(fake, Refresh::HZ_60).expect("a thread");
        let mut news = Vec::new();
        while !matches!(news.last(), Some(Err(_))) {
            news.extend(follower.grids.recv());
        }
        assert_eq!(news.len(), 2, "a grid, and the end");
        assert!(follower.news().is_none());
    }

    #[test]
    fn settings_are_read_or_refused() {
        assert_eq!("timer".parse(), Ok(Vsync::Timer));
        assert_eq!("drm:/dev/dri/card1".parse(), Ok(Vsync::Drm(PathBuf::from("/dev/dri/card1"))));
        for bad in ["", "Timer", "drm", "drm:", "drm:card0", "x:/dev"] {
            assert!(bad.parse::<Vsync>().is_err(), "{bad}");
        }
        let missing = Follower::start(&Vsync::Drm(PathBuf::from("/dev/dri/card99")), Refresh::HZ_60);
        let missing = missing.expect_err("missing").to_string();
        assert!(missing.starts_with("vsync = \"drm:/dev/dri/card99\": No such file"), "{missing}");
    }
}
