//! What the GPU did in the last seconds, and what happens as it happens.
//!
//! While a page shows a timeline, a thread reads every record of the daemon, and sends what pages draw to all of them
//! at once. The records of the last seconds stay, for pages that come later and for captures.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde_json::{Value, json};
use takt_core::{Action, AppId, GroupId, Span, Time};
use takt_daemon::tool::Stream;
use takt_os::clock;
use takt_trace::export::Perfetto;
use takt_trace::export::json::{Entry, Reader};
use takt_trace::{AppMeta, Deduced, GpuRecord, Meta, Observer, Record, why_held};
use tokio::sync::broadcast;

use crate::api::TimelineEvent;
use crate::board::unix_ms;

/// For how long items and records are kept.
const KEPT: Span = Span::from_ms(10_000);
/// Most items that are kept.
const ITEMS_MAX: usize = 60_000;
/// Most records that are kept.
const RECORDS_MAX: usize = 120_000;
/// Batches on their way to pages; one that is further behind begins anew.
const BATCHES_MAX: usize = 256;
/// Size of pieces that are read at once.
const PIECE: usize = 64 << 10;
/// How often to look for a daemon.
const RETRY: Duration = Duration::from_secs(1);
/// For how long records are still read when no page shows them.
const LINGER: Duration = Duration::from_secs(30);

/// The timeline.
#[derive(Debug)]
pub(crate) struct Timeline {
    shared: Arc<WatchState>,
    socket: Option<PathBuf>,
}

#[derive(Debug)]
struct WatchState {
    recent: Mutex<Deduced<Recent>>,
    batches: broadcast::Sender<Bytes>,
    /// A thread reads.
    running: AtomicBool,
    /// The console ends.
    stop: Arc<AtomicBool>,
}

impl Timeline {
    pub(crate) fn new(socket: Option<PathBuf>) -> Self {
        let shared = WatchState {
            recent: Mutex::new(Deduced::new(Recent::default())),
            batches: broadcast::Sender::new(BATCHES_MAX),
            running: AtomicBool::new(false),
            stop: Arc::default(),
        };
        Self { shared: Arc::new(shared), socket }
    }

    /// What happened lately, and what happens from now on.
    pub(crate) fn watch(&self) -> (Bytes, broadcast::Receiver<Bytes>) {
        let mut recent = self.shared.lock();
        // What is not sent yet would come twice.
        self.shared.flush(recent.observer_mut());
        let receiver = self.shared.batches.subscribe();
        let first = recent.observer().all();
        drop(recent);
        self.start();
        (first, receiver)
    }

    /// Has a thread read, unless one does.
    fn start(&self) {
        if self.shared.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (shared, socket) = (Arc::clone(&self.shared), self.socket.clone());
        let started =
            std::thread::Builder::new().name("takt-web-watch".to_owned()).spawn(move || shared.read(socket));
        if started.is_err() {
            self.shared.running.store(false, Ordering::Release);
        }
    }

    /// The last seconds as a trace for the Perfetto UI.
    pub(crate) fn perfetto(&self, span: Span) -> std::io::Result<Vec<u8>> {
        let recent = self.shared.lock();
        let recent = recent.observer();
        let Some(meta) = recent.meta.clone() else {
            return Err(std::io::Error::other("no timeline was shown yet, so there is nothing to export"));
        };
        let from = recent.now - span.min(KEPT);
        let mut out = Vec::new();
        let mut trace = Deduced::new(Perfetto::new(&mut out, &meta)?);
        // What came before says who is who.
        for (app, meta) in &recent.before {
            trace.meet(from, *app, meta);
        }
        for (at, entry) in &recent.records {
            match entry {
                Entry::App(app, meta) => trace.meet((*at).max(from), *app, meta),
                Entry::Record(record) if *at >= from => trace.record(*at, record),
                Entry::Record(_) => {}
            }
        }
        trace.finish().finish()?;
        Ok(out)
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl WatchState {
    fn lock(&self) -> MutexGuard<'_, Deduced<Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_wanted(&self) -> bool {
        self.batches.receiver_count() > 0 && !self.stop.load(Ordering::Relaxed)
    }

    /// Sends what is new.
    fn flush(&self, recent: &mut Recent) {
        if let Some(batch) = recent.take_new() {
            // Without a page there is no receiver, which is no error.
            self.batches.send(batch).unwrap_or_default();
        }
    }

    /// Reads records as long as pages show them.
    fn read(&self, socket: Option<PathBuf>) {
        let mut wanted = Instant::now();
        loop {
            if self.is_wanted() {
                wanted = Instant::now();
            } else if wanted.elapsed() > LINGER || self.stop.load(Ordering::Relaxed) {
                self.running.store(false, Ordering::Release);
                // A page may have come before that, and started no thread.
                if !self.is_wanted() || self.running.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
            if let Err(problem) = self.read_one(socket.clone(), &mut wanted) {
                let mut recent = self.lock();
                let recent = recent.observer_mut();
                recent.error = Some(problem);
                let error = recent.all();
                self.batches.send(error).unwrap_or_default();
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Reads the records of one daemon until it is gone or no page has shown them for long.
    fn read_one(&self, socket: Option<PathBuf>, wanted: &mut Instant) -> Result<(), String> {
        let path = socket.unwrap_or_else(takt_ipc::find::default_path);
        let stream = Stream::open(&path, Arc::clone(&self.stop), None).map_err(|error| error.to_string())?;
        let mut reader = Reader::new(BufReader::with_capacity(PIECE, Told { stream, shared: self }))
            .map_err(|e| e.problem)?;
        self.begin(reader.meta().clone());
        while let Some((at, entry)) = reader.next_entry().map_err(|error| error.problem)? {
            let mut recent = self.lock();
            recent.observer_mut().keep(at, &entry);
            entry.show(at, &mut *recent);
            drop(recent);
            if self.batches.receiver_count() > 0 {
                *wanted = Instant::now();
            } else if wanted.elapsed() > LINGER {
                return Ok(());
            }
        }
        Err("the daemon hung up; looking for it again".to_owned())
    }

    /// Another daemon answers, or the same one again.
    fn begin(&self, meta: Meta) {
        let mut recent = self.lock();
        *recent = Deduced::new(Recent::begin(meta));
        let first = recent.observer().all();
        self.batches.send(first).unwrap_or_default();
    }
}

/// What the daemon tells; before it waits for more, what it told is sent on.
struct Told<'a> {
    stream: Stream,
    shared: &'a WatchState,
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.shared.flush(self.shared.lock().observer_mut());
        self.stream.read(buffer)
    }
}

/// Something to draw.
#[derive(Clone, Debug)]
enum Item {
    App { app: AppId, name: String },
    Run { app: AppId, group: GroupId, began: Time },
    Grant { app: AppId, group: GroupId, reserved: Span },
    Frame { app: AppId, frame: u64, release: Time, deadline: Time, finished: Time, met: bool },
    Missed { app: AppId, frame: u64, deadline: Time },
    Hold { app: AppId, why: String, by: Option<AppId> },
    Vsync,
    Left { app: AppId },
    Gap { records: u64 },
}

/// The last seconds.
#[derive(Debug, Default)]
struct Recent {
    base: Time,
    base_ms: u64,
    now: Time,
    names: BTreeMap<AppId, String>,
    /// The newest `new` of them are not sent yet.
    items: VecDeque<(Time, Item)>,
    new: usize,
    error: Option<String>,
    meta: Option<Meta>,
    records: VecDeque<(Time, Entry)>,
    /// The apps before the first of the records.
    before: BTreeMap<AppId, AppMeta>,
}

impl Recent {
    fn begin(meta: Meta) -> Self {
        let now = clock::now();
        Self { base: now, base_ms: unix_ms(), now, meta: Some(meta), ..Self::default() }
    }

    fn us(&self, at: Time) -> u64 {
        at.max(self.base).since(self.base).as_ns() / 1000
    }

    /// Keeps what came, for captures.
    fn keep(&mut self, at: Time, entry: &Entry) {
        let old = at - KEPT;
        while self.records.len() >= RECORDS_MAX || self.records.front().is_some_and(|(then, _)| *then < old) {
            if let Some((_, Entry::App(app, meta))) = self.records.pop_front() {
                self.before.insert(app, meta);
            }
        }
        self.records.push_back((at, entry.clone()));
    }

    fn put(&mut self, at: Time, item: Item) {
        let old = at - KEPT;
        while self.items.len() >= ITEMS_MAX
            || (self.items.len() > self.new && self.items.front().is_some_and(|(then, _)| *then < old))
        {
            self.items.pop_front();
        }
        self.items.push_back((at, item));
        self.new = (self.new + 1).min(self.items.len());
    }

    /// All that is kept, as an event; what is not sent yet is left to the next one.
    fn all(&self) -> Bytes {
        let names = self.names.iter().map(|(app, name)| json!(["app", app.0, name]));
        let sent = self.items.len() - self.new;
        let items = self.items.iter().take(sent).map(|(at, item)| self.value(*at, item));
        self.event(true, names.chain(items).collect())
    }

    /// What is not sent yet, as an event.
    fn take_new(&mut self) -> Option<Bytes> {
        let sent = self.items.len() - std::mem::take(&mut self.new);
        let items: Vec<Value> =
            self.items.iter().skip(sent).map(|(at, item)| self.value(*at, item)).collect();
        (!items.is_empty()).then(|| self.event(false, items))
    }

    fn event(&self, reset: bool, items: Vec<Value>) -> Bytes {
        let (base_ms, now_us, error) = (self.base_ms, self.us(self.now.max(self.base)), self.error.clone());
        let event = TimelineEvent { reset, base_ms, now_us, error, items };
        crate::routes::event("timeline", &serde_json::to_string(&event).unwrap_or_default())
    }

    fn value(&self, at: Time, item: &Item) -> Value {
        let us = |at: Time| self.us(at);
        match item {
            Item::App { app, name } => json!(["app", app.0, name]),
            Item::Run { app, group, began } => json!(["run", app.0, group.0, us(*began), us(at)]),
            Item::Grant { app, group, reserved } => {
                json!(["grant", app.0, group.0, us(at), reserved.as_ns() / 1000])
            }
            Item::Frame { app, frame, release, deadline, finished, met } => {
                json!(["frame", app.0, frame, us(*release), us(*deadline), us(*finished), met])
            }
            Item::Missed { app, frame, deadline } => json!(["miss", app.0, frame, us(*deadline)]),
            Item::Hold { app, why, by } => json!(["hold", app.0, us(at), why, by.map(|by| by.0)]),
            Item::Vsync => json!(["vsync", us(at)]),
            Item::Left { app } => json!(["left", app.0, us(at)]),
            Item::Gap { records } => json!(["gap", us(at), records]),
        }
    }
}

impl Observer for Recent {
    fn record(&mut self, at: Time, record: &Record) {
        self.now = self.now.max(at);
        let item = match *record {
            Record::Gpu(GpuRecord::Finished { app, group, started }) => {
                Item::Run { app, group, began: started }
            }
            Record::Out(Action::Dispatch { app, group, reserved, .. }) => {
                Item::Grant { app, group, reserved }
            }
            Record::Out(Action::FrameDone(done)) => Item::Frame {
                app: done.app,
                frame: done.frame,
                release: done.release,
                deadline: done.deadline,
                finished: done.finished,
                met: done.met,
            },
            Record::Out(Action::Missed { app, frame, deadline, .. }) => Item::Missed { app, frame, deadline },
            Record::Out(Action::Hold { app, reason }) => {
                let name = |app| self.names.get(&app).cloned().unwrap_or_default();
                Item::Hold { app, why: why_held(reason, name), by: reason.names() }
            }
            Record::Vsync(_) => Item::Vsync,
            Record::Out(Action::Left { app, .. }) => {
                self.names.remove(&app);
                Item::Left { app }
            }
            Record::Gap { records } => Item::Gap { records },
            _ => return,
        };
        self.put(at, item);
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        self.names.insert(app, meta.name.clone());
        self.put(at, Item::App { app, name: meta.name.clone() });
    }
}
