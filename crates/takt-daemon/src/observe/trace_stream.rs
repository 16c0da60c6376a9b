//! What happens, line by line, for a file and for tools that watch.
//!
//! The lines are those of [`takt_trace::export::json`]. Each watcher has a bounded buffer of its
//! own: one that does not keep up loses records, and is told how many where they are missing. Nobody
//! waits for it. A file is written by a thread of its own, so that a slow disk delays nobody either.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use takt_core::{AppId, Time};
use takt_ipc::message::{Message, TEXT_MAX};
use takt_trace::export::json;
use takt_trace::{AppMeta, Meta, Observer, Record};

use crate::control::closer::ClientSocket;

/// Most bytes that wait for one watcher: some 70 000 records.
pub const PENDING_MAX: usize = 8 << 20;
/// Most tools that watch at once.
pub const TOOLS_MAX: usize = 16;
/// Pieces on their way to the thread that writes a file.
const PIECES_MAX: usize = 4;

/// All who watch.
#[derive(Debug, Default)]
pub struct Feeds {
    tools: Vec<Feed<Arc<ClientSocket>>>,
    file: Option<Feed<FileWriter>>,
    line: Vec<u8>,
    last: Time,
}

impl Feeds {
    /// Writes everything to `out` from now on.
    pub fn record_to(
        &mut self,
        out: impl Write + Send + 'static,
        meta: &Meta,
        start: json::Start<'_>,
    ) -> io::Result<()> {
        let mut feed = Feed::new(FileWriter::start(out)?);
        json::put_head(&mut feed.pending, meta, Some(start));
        self.file = Some(feed);
        Ok(())
    }

    /// Tells a tool everything from now on: what it must know first, then what happens. Says
    /// whether there is room for it.
    pub fn watch(&mut self, tool: Arc<ClientSocket>, first: impl FnOnce(&mut Vec<u8>)) -> bool {
        let room = self.tools.len() < TOOLS_MAX;
        if room {
            let mut feed = Feed::new(tool);
            first(&mut feed.pending);
            self.tools.push(feed);
        }
        room
    }

    /// When the last thing happened: nothing may be told as older.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Hands over what waits, as far as it is taken at once.
    pub fn pump(&mut self) {
        self.tools.retain_mut(|feed| feed.pump().is_ok());
        // What went wrong is told at the end.
        self.file.iter_mut().for_each(|feed| feed.pump().unwrap_or_default());
    }

    /// Writes the rest to the file; whatever went wrong with it comes out here.
    pub fn finish(&mut self) -> io::Result<()> {
        self.pump();
        self.file.take().map_or(Ok(()), |mut feed| {
            let rest = std::mem::take(&mut feed.pending);
            feed.out.finish(rest)
        })
    }

    fn put(&mut self, at: Time) {
        for feed in &mut self.tools {
            feed.put(at, &self.line);
        }
        if let Some(feed) = &mut self.file {
            feed.put(at, &self.line);
        }
        self.line.clear();
    }

    fn is_idle(&self) -> bool {
        self.tools.is_empty() && self.file.is_none()
    }
}

impl Observer for Feeds {
    fn record(&mut self, at: Time, record: &Record) {
        self.last = at;
        if !self.is_idle() {
            json::put_record(&mut self.line, at, record);
            self.put(at);
        }
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        if !self.is_idle() {
            json::put_app(&mut self.line, at, app, meta);
            self.put(at);
        }
    }
}

/// Lines on their way to one watcher.
#[derive(Debug)]
struct Feed<O> {
    out: O,
    pending: Vec<u8>,
    /// Records that did not fit since the last one that did.
    lost: u64,
}

impl<O: Out> Feed<O> {
    fn new(out: O) -> Self {
        Self { out, pending: Vec::new(), lost: 0 }
    }

    fn put(&mut self, at: Time, line: &[u8]) {
        if self.pending.len() + line.len() > PENDING_MAX {
            self.lost += 1;
            return;
        }
        let records = std::mem::take(&mut self.lost);
        if records > 0 {
            json::put_record(&mut self.pending, at, &Record::Gap { records });
        }
        self.pending.extend_from_slice(line);
    }

    fn pump(&mut self) -> io::Result<()> {
        self.out.take(&mut self.pending)
    }
}

/// Takes what it can without waiting.
trait Out {
    /// Takes bytes off the front of `pending`; an error if it never will again.
    fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()>;
}

impl Out for Arc<ClientSocket> {
    fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        if pending.is_empty() && self.is_hung_up() {
            return Err(ErrorKind::NotConnected.into());
        }
        let mut sent = 0;
        let result = loop {
            let rest = &pending[sent..];
            let piece = text(&rest[..rest.len().min(TEXT_MAX)]);
            if piece.is_empty() {
                break Ok(());
            }
            match self.send(&Message::Answer { text: piece.to_owned(), more: true }, &[]) {
                Ok(()) => sent += piece.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        pending.drain(..sent);
        result
    }
}

/// The longest beginning that is text.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// A thread that writes a file.
#[derive(Debug)]
struct FileWriter {
    pieces: SyncSender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl FileWriter {
    fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, received) = sync_channel::<Vec<u8>>(PIECES_MAX);
        let thread = std::thread::Builder::new().name("takt-recorder".to_owned()).spawn(move || {
            for piece in received {
                out.write_all(&piece)?;
                // What was recorded is there, whatever becomes of this process.
                out.flush()?;
            }
            Ok(())
        })?;
        Ok(Self { pieces, thread })
    }

    fn finish(self, rest: Vec<u8>) -> io::Result<()> {
        // If it does not take it, it has failed and says so.
        self.pieces.send(rest).unwrap_or_default();
        drop(self.pieces);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes it panicked")))
    }
}

impl Out for FileWriter {
    fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        match self.pieces.try_send(std::mem::take(pending)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(piece)) => {
                *pending = piece;
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(io::Error::other("it cannot be written")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use takt_core::{Config, Refresh};
    use takt_trace::export::json::{Entry, Reader};

    /// Takes nothing until it is told to.
    #[derive(Default)]
    struct Slow(bool, Vec<u8>);

    impl Out for Slow {
        fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
            if self.0 {
                self.1.append(pending);
            }
            Ok(())
        }
    }

    fn meta() -> Meta {
        Meta { scenario: "live".into(), policy: "fifo".into(), refresh: Refresh::HZ_60, apps: Vec::new() }
    }

    /// Feeds that write everything to `out`.
    fn recording(out: impl Write + Send + 'static) -> Feeds {
        let mut feeds = Feeds::default();
        let start = json::Start { config: &Config::default(), build: "this" };
        feeds.record_to(out, &meta(), start).expect("a thread");
        feeds
    }

    #[test]
    fn what_a_slow_watcher_loses_is_said_where_it_is_missing() {
        let mut feed = Feed::new(Slow::default());
        json::put_head(&mut feed.pending, &meta(), None);
        let mut line = Vec::new();
        json::put_record(&mut line, Time::ZERO, &Record::Turn);
        let count = 300_000;
        for _ in 0..count {
            feed.put(Time::ZERO, &line);
        }
        assert!(feed.pending.len() <= PENDING_MAX && feed.lost > 0);
        feed.out.0 = true;
        feed.pump().expect("taken");
        feed.put(Time::ZERO, &line);
        feed.pump().expect("taken");
        let mut reader = Reader::new(&feed.out.1[..]).expect("a log");
        let (mut turns, mut missing) = (0, 0);
        while let Some((_, entry)) = reader.next_entry().expect("whole lines") {
            match entry {
                Entry::Record(Record::Turn) => turns += 1,
                Entry::Record(Record::Gap { records }) => missing += records,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(turns + missing, count + 1, "every record is there or counted");
    }

    /// A file that can be looked at while somebody else writes it.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_has_everything_in_the_end() {
        let file = Shared::default();
        let mut feeds = recording(file.clone());
        let app =
            AppMeta { name: "häuser".into(), priority: takt_core::Priority(1), fps_mhz: 0, jobs: None };
        feeds.meet(Time::ZERO, AppId(0), &app);
        for _ in 0..1000 {
            feeds.record(Time::ZERO, &Record::Turn);
            feeds.pump();
        }
        feeds.finish().expect("written");
        let bytes = file.0.lock().expect("no panic").clone();
        let mut reader = Reader::new(&bytes[..]).expect("a log");
        assert!(reader.config().is_some());
        let mut log = takt_trace::Log::new();
        reader.show(&mut log).expect("whole");
        assert_eq!(log.records.len(), 1000);
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut feeds = recording(Full);
        feeds.record(Time::ZERO, &Record::Turn);
        assert_eq!(feeds.finish().expect_err("full").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn pieces_never_cut_a_character() {
        assert_eq!(text("aä".as_bytes()), "aä");
        assert_eq!(text(&"aä".as_bytes()[..2]), "a");
        assert_eq!(text(b""), "");
    }
}
