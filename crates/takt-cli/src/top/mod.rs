//! `takt top`: a running daemon, live.
//!
//! [`picture`] is what there is to show, [`timeline`] what the GPU did a moment ago, [`view`] turns
//! both into lines, [`screen`] shows them on a terminal and listens to keys.

mod picture;
mod screen;
mod timeline;
mod view;

use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_core::{AppId, Span, Time};
use takt_daemon::control::ask::Ask;
use takt_trace::export::json::Reader;
use takt_trace::{AppMeta, Deduced, Observer, Record};

pub(crate) use self::picture::Picture;

use self::screen::{Key, Screen};
use self::timeline::Recent;
use self::view::{Line, Sort, Tone};
use crate::args::{SocketArgs, TopArgs};
use crate::stream::Stream;
use crate::{Answer, live, output};

/// Figures are of this many seconds.
const WINDOW_S: u32 = 2;
/// How often the picture changes.
const FRAME: Duration = Duration::from_millis(250);
/// How often to look whether a daemon is there again.
const RETRY: Duration = Duration::from_secs(1);
/// Beyond the timeline's span: the daemon tells things in pieces.
const LAG: Duration = Duration::from_millis(100);
/// Width of a picture that is not for a terminal.
const WIDTH: usize = 160;
/// Spans of the timeline, in milliseconds.
const SPAN_MS: std::ops::RangeInclusive<u64> = 5..=2_000;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Answer> {
    if args.once || args.json.is_some() || !std::io::stdout().is_terminal() {
        return once(args, &args.socket.path());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let mut top = Top {
        watcher: None,
        tried: None,
        shown: Vec::new(),
        span: Span::from_ms(args.span_ms),
        sort: Sort::default(),
        paused: false,
        socket: args.socket.clone(),
        path: PathBuf::new(),
    };
    let mut screen = Screen::open().context("this terminal cannot be used; try takt top --once")?;
    while !stop.load(Ordering::Relaxed) {
        top.look(screen.width());
        screen.show(&top.lines())?;
        match screen.key(FRAME)? {
            Some(Key::Quit) => break,
            Some(key) => top.press(key),
            None => {}
        }
    }
    Ok(Answer::Yes)
}

/// One picture.
fn once(args: &TopArgs, path: &Path) -> anyhow::Result<Answer> {
    let span = Span::from_ms(args.span_ms);
    let watcher = Watcher::start(path)?;
    std::thread::sleep(Duration::from_millis(args.span_ms) + LAG);
    let picture = watcher.picture(path, span)?;
    output::json(args.json.as_deref(), &picture)?;
    if args.json.is_none() {
        let lines = view::lines(&picture, WIDTH, Sort::default());
        output::print(&lines.into_iter().map(|line| line.text + "\n").collect::<String>())?;
    }
    Ok(Answer::Yes)
}

/// What is on the screen, and how it came there.
struct Top {
    socket: SocketArgs,
    /// Where the daemon was looked for the last time.
    path: PathBuf,
    watcher: Option<Watcher>,
    /// When a daemon was looked for the last time.
    tried: Option<Instant>,
    shown: Vec<Line>,
    span: Span,
    sort: Sort,
    paused: bool,
}

impl Top {
    /// Takes a new picture, unless paused.
    fn look(&mut self, width: usize) {
        if self.paused {
            return;
        }
        if self.watcher.as_ref().is_some_and(Watcher::is_over) {
            self.watcher = None;
        }
        if self.watcher.is_none() && self.tried.is_none_or(|tried| tried.elapsed() >= RETRY) {
            self.tried = Some(Instant::now());
            self.path = self.socket.path();
            self.watcher = Watcher::start(&self.path).ok();
        }
        let picture = self.watcher.as_ref().map(|watcher| watcher.picture(&self.path, self.span));
        match picture {
            Some(Ok(picture)) => self.shown = view::lines(&picture, width, self.sort),
            _ => {
                let text = format!("No daemon answers at {}; waiting for one.", self.path.display());
                self.shown = vec![Line { text, tone: Tone::Alarm }];
            }
        }
    }

    fn lines(&self) -> Vec<Line> {
        let paused = if self.paused { "PAUSED  " } else { "" };
        let keys = format!("{paused}q quit  p pause  s sort  +/- timeline");
        let mut lines = self.shown.clone();
        lines.push(Line { text: String::new(), tone: Tone::Plain });
        lines.push(Line { text: keys, tone: Tone::Head });
        lines
    }

    fn press(&mut self, key: Key) {
        let ms = self.span.as_ns() / 1_000_000;
        match key {
            Key::Pause => self.paused = !self.paused,
            Key::Sort => self.sort = self.sort.next(),
            Key::Wider => self.span = Span::from_ms((ms * 2).min(*SPAN_MS.end())),
            Key::Narrower => self.span = Span::from_ms((ms / 2).max(*SPAN_MS.start())),
            Key::Quit => {}
        }
    }
}

/// Listens to what the daemon tells, on a thread of its own.
struct Watcher {
    recent: Arc<Mutex<Deduced<Recent>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(path: &Path) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stream = Stream::open(path, Arc::clone(&stop), None)?;
        let recent = Arc::new(Mutex::new(Deduced::new(Recent::default())));
        let mut shared = Shared(Arc::clone(&recent));
        let thread = std::thread::Builder::new().name("takt-top".to_owned()).spawn(move || {
            // If it tells nonsense or hangs up, this ends; whoever waits for news notices.
            if let Ok(mut reader) = Reader::new(BufReader::new(stream)) {
                reader.show(&mut shared).map_or_else(drop, |_| ());
            }
        })?;
        Ok(Self { recent, stop, thread: Some(thread) })
    }

    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn picture(&self, path: &Path, span: Span) -> anyhow::Result<Picture> {
        let daemon = live::ask(path, &Ask::Daemon)?;
        let apps = live::ask(path, &Ask::Apps)?;
        let summary = live::ask(path, &Ask::Summary { window_s: WINDOW_S })?;
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Picture::of(&daemon, &apps, &summary, recent.observer().timeline(span)))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so itself.
            drop(thread.join());
        }
    }
}

/// An observer that others look at.
struct Shared(Arc<Mutex<Deduced<Recent>>>);

impl Observer for Shared {
    fn record(&mut self, at: Time, record: &Record) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(at, record);
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).meet(at, app, meta);
    }
}
