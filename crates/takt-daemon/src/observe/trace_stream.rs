//! Every record, line by line, for a file and for tools.
//!
//! The lines are those of [`takt_trace::export::json`]. Each reader has a bounded buffer of its own:
//! one that does not keep up loses records, and a gap record says how many. The daemon never waits for
//! a reader. A thread of its own writes the file, so a slow disk delays nothing either.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use takt_core::{AppId, Time};
use takt_ipc::message::{Message, TEXT_MAX};
use takt_trace::export::json;
use takt_trace::{AppMeta, Meta, Observer, Record};

use crate::control::closer::ClientSocket;
use crate::control::user::{Rank, User};

/// Most bytes that wait for one reader: some 70 000 records.
const PENDING_MAX: usize = 8 << 20;
/// Most tools that watch at once.
const TOOLS_MAX: usize = 16;
/// Of these, those that only the daemon's user and root may have.
const TOOLS_OWN: usize = 4;
/// Pieces on their way to the thread that writes a file.
const PIECES_MAX: usize = 4;

/// All streams.
#[derive(Debug, Default)]
pub(crate) struct TraceStreams {
    tools: Vec<Watcher>,
    file: Option<TraceStream<FileWriter>>,
    line: Vec<u8>,
    last: Time,
    /// Notes that were read.
    noted: u64,
}

impl TraceStreams {
    /// Writes every record to `out` from now on.
    pub(crate) fn record_to(
        &mut self,
        out: impl Write + Send + 'static,
        meta: &Meta,
        start: json::Start<'_>,
    ) -> io::Result<()> {
        let mut stream = TraceStream::new(FileWriter::start(out)?);
        json::put_head(&mut stream.pending, meta, Some(start));
        self.file = Some(stream);
        Ok(())
    }

    /// Sends a tool every record after that many more notes.
    pub(crate) fn watch(&mut self, mut watcher: Watcher, earlier: usize) {
        watcher.from = self.noted + earlier as u64;
        self.tools.push(watcher);
    }

    /// A note is read, be it a record or not.
    pub(crate) fn note(&mut self) {
        self.noted += 1;
    }

    /// Makes room for one more tool of that user. The user with most tools makes room for one with fewer,
    /// so that no user keeps the others from watching; returns the tool that is not sent anything more. An
    /// error if this user has its share.
    pub(crate) fn make_room(&mut self, user: User) -> Result<Option<Arc<ClientSocket>>, Crowded> {
        let is_own = user.rank == Rank::Own;
        let users: Vec<User> = self.tools.iter().map(|tool| tool.user).collect();
        let others = users.iter().filter(|user| user.rank != Rank::Own).count();
        if users.len() < TOOLS_MAX && (is_own || others < TOOLS_MAX - TOOLS_OWN) {
            return Ok(None);
        }
        let count = |uid| users.iter().filter(|user| user.uid == uid).count();
        // Of users with equally many, the one whose tool came last.
        let others = users.iter().enumerate().filter(|(_, user)| user.rank != Rank::Own);
        let most = others.map(|(at, user)| (count(user.uid), at)).max();
        match most {
            Some((most, at)) if is_own || most > count(user.uid) + 1 => {
                Ok(Some(self.tools.remove(at).stream.out.tool))
            }
            _ => Err(Crowded),
        }
    }

    /// Time of the last record: no later line may be older.
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    /// Hands over waiting lines, as far as the readers take them at once.
    pub(crate) fn pump(&mut self) {
        self.tools.retain_mut(|tool| tool.stream.pump().is_ok());
        // An error of the file comes back at the end.
        self.file.iter_mut().for_each(|stream| stream.pump().unwrap_or_default());
    }

    /// Writes the rest to the file; returns its error, if it had one.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.pump();
        self.file.take().map_or(Ok(()), |mut stream| {
            let rest = std::mem::take(&mut stream.pending);
            stream.out.finish(rest)
        })
    }

    /// Puts the line into all streams but those that begin after this note.
    fn put(&mut self, at: Time, noted: u64) {
        for tool in self.tools.iter_mut().filter(|tool| noted > tool.from) {
            tool.stream.put(at, &self.line);
        }
        if let Some(stream) = &mut self.file {
            stream.put(at, &self.line);
        }
        self.line.clear();
    }

    fn is_idle(&self) -> bool {
        self.tools.is_empty() && self.file.is_none()
    }
}

impl Observer for TraceStreams {
    fn record(&mut self, at: Time, record: &Record) {
        self.last = at;
        if !self.is_idle() {
            json::put_record(&mut self.line, at, record);
            self.put(at, self.noted);
        }
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        if !self.is_idle() {
            json::put_app(&mut self.line, at, app, meta);
            // What its name is matters to all of them.
            self.put(at, u64::MAX);
        }
    }
}

/// So many tools of a user watch that it may have no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crowded;

/// A tool that watches.
#[derive(Debug)]
pub(crate) struct Watcher {
    stream: TraceStream<ToolWriter>,
    user: User,
    /// Notes up to this one were there before it.
    from: u64,
}

impl Watcher {
    /// A tool of that user, which is sent these lines first.
    pub(crate) fn new(tool: Arc<ClientSocket>, user: User, first: Vec<u8>) -> Self {
        let stream = TraceStream::new(ToolWriter { tool, taken: first, sent: 0 });
        Self { stream, user, from: 0 }
    }
}

/// Lines on their way to one reader.
#[derive(Debug)]
struct TraceStream<O> {
    out: O,
    pending: Vec<u8>,
    /// Records that did not fit since the last one that did.
    lost: u64,
}

impl<O: Out> TraceStream<O> {
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

/// A reader that takes what it can without waiting.
trait Out {
    /// Takes bytes off the front of `pending`; an error if it is closed.
    fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()>;
}

/// A tool, and the lines that it is being sent. They are not moved to the front after each piece: a tool
/// that reads slowly would cost the daemon megabytes of copies in every turn.
#[derive(Debug)]
struct ToolWriter {
    tool: Arc<ClientSocket>,
    taken: Vec<u8>,
    sent: usize,
}

impl Out for ToolWriter {
    fn take(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        if pending.is_empty() && self.sent == self.taken.len() && self.tool.is_hung_up() {
            return Err(ErrorKind::NotConnected.into());
        }
        loop {
            if self.sent == self.taken.len() {
                (self.taken, self.sent) = (std::mem::take(pending), 0);
            }
            let rest = &self.taken[self.sent..];
            let piece = text(&rest[..rest.len().min(TEXT_MAX)]);
            if piece.is_empty() {
                return Ok(());
            }
            match self.tool.send(&Message::Answer { text: piece.to_owned(), more: true }, &[]) {
                Ok(()) => self.sent += piece.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The longest prefix that is valid text.
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
                // The file is complete so far, even if this process is killed.
                out.flush()?;
            }
            Ok(())
        })?;
        Ok(Self { pieces, thread })
    }

    fn finish(self, rest: Vec<u8>) -> io::Result<()> {
        // If the thread has ended, `join` returns its error.
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
            Err(TrySendError::Disconnected(_)) => Err(io::Error::other("the file cannot be written")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use takt_core::{Config, Refresh};
    use takt_trace::export::json::{Entry, Reader};

    /// Takes nothing until its flag is set.
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

    /// Streams that write every record to `out`.
    fn recording(out: impl Write + Send + 'static) -> TraceStreams {
        let mut streams = TraceStreams::default();
        let start = json::Start { config: &Config::default(), build: "this" };
        streams.record_to(out, &meta(), start).expect("a thread");
        streams
    }

    #[test]
    fn a_slow_reader_finds_its_losses_where_they_are() {
        let mut stream = TraceStream::new(Slow::default());
        json::put_head(&mut stream.pending, &meta(), None);
        let mut line = Vec::new();
        json::put_record(&mut line, Time::ZERO, &Record::Turn);
        let count = 300_000;
        for _ in 0..count {
            stream.put(Time::ZERO, &line);
        }
        assert!(stream.pending.len() <= PENDING_MAX && stream.lost > 0);
        stream.out.0 = true;
        stream.pump().expect("taken");
        stream.put(Time::ZERO, &line);
        stream.pump().expect("taken");
        let mut reader = Reader::new(&stream.out.1[..]).expect("a log");
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

    /// A file that the test reads while another thread writes it.
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
    fn a_file_has_every_record_at_the_end() {
        let file = Shared::default();
        let mut streams = recording(file.clone());
        let app =
            AppMeta { name: "häuser".into(), priority: takt_core::Priority(1), fps_mhz: 0, jobs: None };
        streams.meet(Time::ZERO, AppId(0), &app);
        for _ in 0..1000 {
            streams.record(Time::ZERO, &Record::Turn);
            streams.pump();
        }
        streams.finish().expect("written");
        let bytes = file.0.lock().expect("no panic").clone();
        let mut reader = Reader::new(&bytes[..]).expect("a log");
        assert!(reader.config().is_some());
        let mut log = takt_trace::Log::new();
        reader.show(&mut log).expect("whole");
        assert_eq!(log.records.len(), 1000);
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut streams = recording(Full);
        streams.record(Time::ZERO, &Record::Turn);
        assert_eq!(streams.finish().expect_err("full").kind(), ErrorKind::StorageFull);
    }

    fn user(uid: u32) -> User {
        User { uid, rank: if uid == 0 { Rank::Own } else { Rank::Other } }
    }

    /// Connections that watch for these users, in this order, as far as there is room.
    fn watching(uids: impl Iterator<Item = u32>) -> Vec<u32> {
        let path = std::env::temp_dir().join(format!("takt-watch-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        let listener = takt_ipc::socket::Listener::bind(&path).expect("bound");
        let closer = crate::control::closer::Closer::start().expect("threads");
        let mut streams = TraceStreams::default();
        for uid in uids {
            let _tool = takt_ipc::socket::Connection::connect_at_once(&path).expect("connected");
            let (accepted, _) = listener.accept().expect("no error").expect("there");
            if streams.make_room(user(uid)).is_ok() {
                let tool = Arc::new(ClientSocket::new(accepted, closer.clone()));
                streams.watch(Watcher::new(tool, user(uid), Vec::new()), 0);
            }
        }
        std::fs::remove_file(path).expect("removed");
        streams.tools.iter().map(|tool| tool.user.uid).collect()
    }

    #[test]
    fn no_user_keeps_others_from_watching() {
        let count = |uids: &[u32], uid| uids.iter().filter(|other| **other == uid).count();
        let crowd = || std::iter::repeat_n(1000, 40);
        let watch = watching(crowd().chain([2000, 0]).chain(crowd()));
        assert_eq!((count(&watch, 2000), count(&watch, 0)), (1, 1));
        assert_eq!(count(&watch, 1000), TOOLS_MAX - TOOLS_OWN - 1);
        // One person can have many users.
        let watch = watching((1000..1040).chain([0; 20]));
        assert_eq!(count(&watch, 0), TOOLS_MAX, "the daemon's user may have all of it");
        let watch = watching([0; 20].into_iter().chain(1000..1040));
        assert_eq!((count(&watch, 0), watch.len()), (TOOLS_MAX, TOOLS_MAX), "{watch:?}");
    }

    #[test]
    fn pieces_never_cut_a_character() {
        assert_eq!(text("aä".as_bytes()), "aä");
        assert_eq!(text(&"aä".as_bytes()[..2]), "a");
        assert_eq!(text(b""), "");
    }
}
