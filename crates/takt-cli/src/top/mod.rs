//! `takt top`: a running daemon, live.
//!
//! [`picture`] holds the figures, [`timeline`] what the GPU did a moment ago, [`view`] turns both into
//! lines; ratatui draws them on a terminal and reads the keys.

mod picture;
mod timeline;
mod view;

use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_core::{AppId, Span, Time};
use takt_daemon::control::ask::Ask;
use takt_trace::export::json::Reader;
use takt_trace::{AppMeta, Deduced, Observer, Record};

pub(crate) use self::picture::Picture;

use self::timeline::Recent;
use self::view::{ALARM, HEAD, Sort};
use crate::args::{SocketArgs, TopArgs};
use crate::{Answer, live, output, signals};
use takt_daemon::tool::Stream;

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
/// Columns by which an arrow key scrolls.
const SCROLL: u16 = 8;
/// Spans of the timeline, in milliseconds.
const SPAN_MS: std::ops::RangeInclusive<u64> = 5..=2_000;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Answer> {
    if args.once || args.json.is_some() || !std::io::stdout().is_terminal() {
        return once(args, &args.socket.path());
    }
    let stop = signals::flag(&[SIGINT, SIGTERM])?;
    let mut top = Top::new(args.socket.clone(), Span::from_ms(args.span_ms));
    let outcome = ratatui::try_init()
        .context("cannot draw on this terminal; try takt top --once")
        .and_then(|mut terminal| top.watch(&mut terminal, &stop));
    ratatui::restore();
    outcome.map(|()| Answer::Yes)
}

/// One picture.
fn once(args: &TopArgs, path: &Path) -> anyhow::Result<Answer> {
    let span = Span::from_ms(args.span_ms);
    let watcher = Watcher::start(path)?;
    std::thread::sleep(Duration::from_millis(args.span_ms) + LAG);
    let picture = watcher.picture(path, span)?;
    output::json(args.json.as_deref(), &picture)?;
    if args.json.is_none() {
        output::print(&plain(&view::lines(&picture, WIDTH, Sort::default()), WIDTH))?;
    }
    Ok(Answer::Yes)
}

/// The lines without styles, cut off at `width`.
fn plain(lines: &[Line<'_>], width: usize) -> String {
    let cut = |line: &Line<'_>| {
        line.to_string().chars().take(width).collect::<String>().trim_end().to_owned() + "\n"
    };
    lines.iter().map(cut).collect()
}

/// What is on the screen, and how it came there.
struct Top {
    socket: SocketArgs,
    /// Where the daemon was looked for the last time.
    path: PathBuf,
    watcher: Option<Watcher>,
    /// When a daemon was looked for the last time.
    tried: Option<Instant>,
    shown: Vec<Line<'static>>,
    /// Rows and columns that are scrolled out of sight.
    scroll: (u16, u16),
    span: Span,
    sort: Sort,
    paused: bool,
}

impl Top {
    fn new(socket: SocketArgs, span: Span) -> Self {
        Self {
            socket,
            path: PathBuf::new(),
            watcher: None,
            tried: None,
            shown: Vec::new(),
            scroll: (0, 0),
            span,
            sort: Sort::default(),
            paused: false,
        }
    }

    /// Draws until the user quits or `stop` is set.
    fn watch(&mut self, terminal: &mut DefaultTerminal, stop: &AtomicBool) -> anyhow::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.look(terminal.size()?.width.into());
            terminal.draw(|frame| self.draw(frame))?;
            if event::poll(FRAME)?
                && let Event::Key(key) = event::read()?
                && self.press(key) == Then::Quit
            {
                break;
            }
        }
        Ok(())
    }

    /// Takes a new picture, unless paused.
    fn look(&mut self, width: usize) {
        if self.paused {
            return;
        }
        // A watcher that was refused has no timeline, but figures.
        if self.watcher.as_ref().is_none_or(Watcher::is_over)
            && self.tried.is_none_or(|tried| tried.elapsed() >= RETRY)
        {
            self.tried = Some(Instant::now());
            self.path = self.socket.path();
            self.watcher = Watcher::start(&self.path).ok();
        }
        let picture = self.watcher.as_ref().map(|watcher| watcher.picture(&self.path, self.span));
        self.shown = if let Some(Ok(picture)) = picture {
            view::lines(&picture, width, self.sort)
        } else {
            let text = format!("No daemon answers at {}; waiting for one.", self.path.display());
            vec![Line::styled(text, ALARM)]
        };
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [picture, keys] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
        let end = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        let widest = self.shown.iter().map(Line::width).max().unwrap_or_default();
        self.scroll.0 = self.scroll.0.min(end(self.shown.len()).saturating_sub(picture.height));
        self.scroll.1 = self.scroll.1.min(end(widest).saturating_sub(picture.width));
        frame.render_widget(Paragraph::new(self.shown.clone()).scroll(self.scroll), picture);
        let paused = if self.paused { "PAUSED  " } else { "" };
        let text = format!("{paused}q quit  p pause  s sort  +/- timeline  arrows scroll");
        frame.render_widget(Line::styled(text, HEAD), keys);
    }

    fn press(&mut self, key: KeyEvent) -> Then {
        let ms = self.span.as_ns() / 1_000_000;
        let (down, right) = self.scroll;
        match key.code {
            KeyCode::Char('q' | 'Q') => return Then::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Then::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('+') => self.span = Span::from_ms((ms * 2).min(*SPAN_MS.end())),
            KeyCode::Char('-') => self.span = Span::from_ms((ms / 2).max(*SPAN_MS.start())),
            KeyCode::Down => self.scroll.0 = down.saturating_add(1),
            KeyCode::Up => self.scroll.0 = down.saturating_sub(1),
            KeyCode::Right => self.scroll.1 = right.saturating_add(SCROLL),
            KeyCode::Left => self.scroll.1 = right.saturating_sub(SCROLL),
            _ => {}
        }
        Then::GoOn
    }
}

/// What to do after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    GoOn,
    Quit,
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
            // A broken stream ends this thread, which `is_over` then says.
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
        Picture::of(&daemon, &apps, &summary, recent.observer().timeline(span))
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

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;

    fn top(lines: &[&'static str]) -> Top {
        let shown = lines.iter().map(|line| Line::raw(*line)).collect();
        Top { shown, ..Top::new(SocketArgs { socket: None }, Span::from_ms(100)) }
    }

    fn drawn(top: &mut Top, (width, height): (u16, u16)) -> TestBackend {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| top.draw(frame)).expect("it draws");
        terminal.backend().clone()
    }

    #[test]
    fn keys_do_what_the_last_line_says() {
        let mut top = top(&[]);
        let press = |top: &mut Top, code| top.press(KeyEvent::new(code, KeyModifiers::NONE));
        for (code, ms) in [('+', 200), ('-', 100), ('-', 50)] {
            assert_eq!(press(&mut top, KeyCode::Char(code)), Then::GoOn);
            assert_eq!(top.span, Span::from_ms(ms));
        }
        press(&mut top, KeyCode::Char('s'));
        press(&mut top, KeyCode::Char('p'));
        assert!(top.sort == Sort::Met && top.paused);
        assert_eq!(press(&mut top, KeyCode::Char('c')), Then::GoOn, "only with Ctrl");
        assert_eq!(press(&mut top, KeyCode::Char('q')), Then::Quit);
        assert_eq!(top.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Then::Quit);
    }

    #[test]
    fn the_last_line_names_the_keys_on_any_terminal() {
        let mut top = top(&["one", "two", "three"]);
        drawn(&mut top, (11, 3)).assert_buffer_lines([
            Line::raw("one        "),
            Line::raw("two        "),
            Line::styled("q quit  p p", HEAD),
        ]);
        for size in [(80, 24), (1, 1), (0, 0), (3, 1)] {
            drawn(&mut top, size);
        }
    }

    #[test]
    fn arrows_scroll_to_the_end_and_no_further() {
        let mut top = top(&["0123456789", "two", "three"]);
        for code in [KeyCode::Down, KeyCode::Down, KeyCode::Right, KeyCode::Right] {
            top.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        drawn(&mut top, (8, 3));
        assert_eq!(top.scroll, (1, 2));
        for code in [KeyCode::Up, KeyCode::Left] {
            top.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        assert_eq!(top.scroll, (0, 0));
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let screen = drawn(&mut top(&["a\x1b[2Jb\u{7}"]), (12, 2));
        let symbols = screen.buffer().content().iter().map(|cell| cell.symbol());
        assert!(symbols.clone().all(|symbol| !symbol.contains(char::is_control)), "{screen}");
        assert!(symbols.collect::<String>().contains("[2Jb"), "{screen}");
    }

    #[test]
    fn a_missing_daemon_is_said_in_red() {
        let mut top = top(&[]);
        top.socket = SocketArgs { socket: Some("/nowhere".into()) };
        top.look(80);
        let screen = drawn(&mut top, (60, 2));
        assert!(screen.to_string().contains("No daemon answers at /nowhere; waiting for one."), "{screen}");
        assert_eq!(screen.buffer()[(0, 0)].fg, Color::Red);
    }
}
