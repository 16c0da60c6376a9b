//! A display as a compositor sees it: when it refreshes, and whose frames were finished before that.
//!
//! [`Display::wait`] is the compositor interface of the thesis (4.4.5): it sleeps until the next refresh
//! and returns the windows with frames that were finished before it. The caller sleeps by its own clock
//! and reads a page of the daemon, so neither waits for the other.
//!
//! A caller that owns the display reports its grid to the daemon, whenever one answers. Any other caller
//! follows the grid that the daemon shows. Without a daemon, refreshes go on by the last grid, no frame is
//! known, and the daemon is looked for once a second without waiting for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use takt_core::{Period, Refresh, Span, Time};
use takt_ipc::frame_page::{AppFrames, FrameReader};
use takt_ipc::message::Message;
use takt_ipc::socket::{Connection, Received};
use takt_os::clock;

/// How often a daemon is looked for.
const RETRY: Span = Span::from_ms(1_000);

/// A display and the daemon that knows its apps.
#[derive(Debug)]
pub struct Display {
    name: String,
    socket: PathBuf,
    grid: Refresh,
    /// Whether the caller owns the display, so that its grid is right whatever the daemon says.
    owned: bool,
    link: Reach,
    /// Frames of each app that earlier calls returned, by its slot.
    returned: BTreeMap<u32, u64>,
    /// The refresh that was returned last.
    last: Option<Time>,
    /// Reports that the daemon has not answered yet.
    unanswered: u32,
    said: String,
}

/// How far the connection has come.
#[derive(Debug)]
enum Reach {
    /// There is none, and none is looked for before that time.
    Absent(Time),
    /// The daemon was asked for its page.
    Asked(Connection),
    /// It handed it over; while the connection is there, the page is true.
    Open(Connection, FrameReader),
}

/// A refresh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vsync {
    /// Its number, counted from the origin of the grid.
    pub period: Period,
    /// When it was.
    pub at: Time,
    /// When the next one is.
    pub next: Time,
    /// Refreshes between this one and the last that was returned.
    pub skipped: u64,
    /// Whether a daemon says which frames were finished.
    pub known: bool,
    /// Apps with frames that were finished before it, and that no earlier call returned.
    pub windows: Vec<AppFrames>,
}

impl Display {
    /// The display of that name as the daemon at `socket` knows it; the first one if the name is empty.
    /// `grid` is followed until the daemon shows another one.
    pub fn followed(socket: PathBuf, name: &str, grid: Refresh) -> Self {
        Self::new(socket, name, grid, false)
    }

    /// A display of the caller's own, which refreshes on `grid`; the daemon at `socket` is told so.
    pub fn owned(socket: PathBuf, name: &str, grid: Refresh) -> Self {
        Self::new(socket, name, grid, true)
    }

    fn new(socket: PathBuf, name: &str, grid: Refresh, owned: bool) -> Self {
        let (name, returned) = (name.to_owned(), BTreeMap::new());
        let (link, said) = (Reach::Absent(Time::ZERO), String::new());
        Self { name, socket, grid, owned, link, returned, last: None, unanswered: 0, said }
    }

    /// Its grid.
    pub fn grid(&self) -> &Refresh {
        &self.grid
    }

    /// Whether the caller owns the display.
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// An owned display refreshes on another grid from now on.
    pub fn set_grid(&mut self, grid: Refresh) {
        if self.grid != grid {
            self.grid = grid;
            self.report();
        }
    }

    /// What the daemon last said, if it refused something.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Sleeps until the next refresh, and says which frames were finished before it. A caller that comes
    /// late hears of the next refresh, and of how many it missed.
    pub fn wait(&mut self) -> Vsync {
        self.look();
        let mut at = self.next_refresh(clock::now());
        loop {
            clock::sleep_until(at);
            self.look();
            // The grid may have moved meanwhile.
            let moved = self.grid.start(self.period_beginning_near(at));
            if moved <= clock::now() {
                at = moved;
                break;
            }
            at = moved;
        }
        self.vsync(at)
    }

    /// The refresh at `at`, with frames that were finished before it.
    fn vsync(&mut self, at: Time) -> Vsync {
        let period = self.grid.period_at(at);
        let before = self.last.map(|last| self.period_beginning_near(last));
        let skipped = before.map_or(0, |before| period.0.saturating_sub(before.0 + 1));
        self.last = Some(at);
        let windows = self.finished_before(at);
        let known = matches!(self.link, Reach::Open(..));
        Vsync { period, at, next: self.grid.end(period), skipped, known, windows }
    }

    /// The first refresh after `now`, and after the one that was returned last.
    fn next_refresh(&self, now: Time) -> Time {
        let after = self.last.map_or(now, |last| now.max(last + self.grid.period_span().scaled(1, 2)));
        self.grid.start(self.grid.period_from(after))
    }

    /// The period that begins nearest to `at`.
    fn period_beginning_near(&self, at: Time) -> Period {
        self.grid.period_at(at + self.grid.period_span().scaled(1, 2))
    }

    /// Apps with frames that were finished before `at` and are new.
    fn finished_before(&mut self, at: Time) -> Vec<AppFrames> {
        let Reach::Open(_, page) = &self.link else {
            return Vec::new();
        };
        let apps = page.apps(at);
        let is_new = |app: &AppFrames| self.returned.get(&app.app).is_none_or(|seen| *seen < app.finished);
        let new: Vec<AppFrames> = apps.into_iter().filter(is_new).collect();
        for app in &new {
            self.returned.insert(app.app, app.finished);
        }
        new
    }

    /// Looks after the connection, without waiting for anything.
    fn look(&mut self) {
        self.link = match std::mem::replace(&mut self.link, Reach::Absent(Time::ZERO)) {
            Reach::Absent(until) if clock::now() < until => Reach::Absent(until),
            Reach::Absent(_) => self.connect(),
            Reach::Asked(connection) => self.receive(connection),
            Reach::Open(connection, page) if connection.is_hung_up() => {
                drop((connection, page));
                // Another daemon counts anew.
                self.returned.clear();
                self.unanswered = 0;
                later()
            }
            Reach::Open(connection, page) => {
                self.follow(&page);
                self.hear(&connection);
                Reach::Open(connection, page)
            }
        };
    }

    fn connect(&mut self) -> Reach {
        let Ok(connection) = Connection::connect_at_once(&self.socket) else {
            return later();
        };
        let asked = Message::Ask { text: "{\"ask\":\"frames\"}".to_owned() };
        match connection.send(&asked, &[]) {
            Ok(()) => Reach::Asked(connection),
            Err(_) => later(),
        }
    }

    fn receive(&mut self, connection: Connection) -> Reach {
        match connection.receive() {
            Ok(Some(Received { message, fds })) => {
                let page = fds.first().and_then(|fd| FrameReader::open(std::os::fd::AsFd::as_fd(fd)).ok());
                let Some(page) = page else {
                    self.said = text_of(message);
                    return later();
                };
                let link = Reach::Open(connection, page);
                self.link = link;
                self.report();
                std::mem::replace(&mut self.link, later())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Reach::Asked(connection),
            Ok(None) | Err(_) => later(),
        }
    }

    /// Tells the daemon when an owned display refreshes.
    fn report(&mut self) {
        let Reach::Open(connection, page) = &self.link else {
            return;
        };
        if !self.owned {
            return;
        }
        if page.display(&self.name) == Some(self.grid) {
            return;
        }
        let (name, mhz) = (&self.name, self.grid.mhz());
        let vsync_ns = self.grid.origin().as_ns();
        let text = format!(
            "{{\"ask\":\"display\",\"name\":\"{name}\",\"refresh_mhz\":{mhz},\"vsync_ns\":{vsync_ns}}}"
        );
        match connection.send(&Message::Ask { text }, &[]) {
            Ok(()) => self.unanswered += 1,
            Err(_) => self.link = later(),
        }
    }

    /// Takes answers to reports.
    fn hear(&mut self, connection: &Connection) {
        while self.unanswered > 0
            && let Ok(Some(received)) = connection.receive()
        {
            self.unanswered -= 1;
            let text = text_of(received.message);
            if text.contains("refused") {
                self.said = text;
            }
        }
    }

    fn follow(&mut self, page: &FrameReader) {
        if !self.owned
            && let Some(grid) = page.display(&self.name)
        {
            self.grid = grid;
        }
    }
}

fn later() -> Reach {
    Reach::Absent(clock::now() + RETRY)
}

fn text_of(message: Message) -> String {
    match message {
        Message::Answer { text, .. } | Message::Refused { reason: text, .. } => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(grid: Refresh) -> Display {
        Display::followed(PathBuf::from("/nonexistent/takt"), "", grid)
    }

    #[test]
    fn refreshes_follow_each_other_without_drift() {
        let grid = Refresh::from_mhz(1_000_000).expect("1 kHz").with_origin(clock::now());
        let mut display = alone(grid);
        let mut last = None;
        for _ in 0..20 {
            let vsync = display.wait();
            assert_eq!(vsync.at, grid.start(vsync.period));
            assert_eq!(vsync.next, grid.end(vsync.period));
            assert!(vsync.at <= clock::now() && !vsync.known && vsync.windows.is_empty());
            if let Some(last) = last {
                assert_eq!(vsync.period, Period(last) + 1 + vsync.skipped, "none is returned twice");
            }
            last = Some(vsync.period.0);
        }
    }

    #[test]
    fn a_late_caller_hears_what_it_missed() {
        let grid = Refresh::from_mhz(1_000_000).expect("1 kHz").with_origin(clock::now());
        let mut display = alone(grid);
        let first = display.wait();
        clock::sleep_until(first.at + Span::from_ms(5));
        let vsync = display.wait();
        assert!(vsync.skipped >= 4, "{vsync:?}");
        assert_eq!(vsync.period, first.period + 1 + vsync.skipped);
    }
}
