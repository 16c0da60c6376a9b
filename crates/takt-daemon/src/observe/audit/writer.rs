//! The thread that writes the audit, so that no disk delays the control thread.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use takt_audit::{Event, Head, Record};

use super::dlt::DltOutput;
use super::store::Store;
use super::{AuditSettings, CHAINS, ChainId};
use crate::control::user::Rank;

/// Most records that wait to be written.
const RECORDS_MAX: usize = 1024;
/// Of these, places that only the daemon's own records get, and that only those and listed clients get.
const OWN: usize = RECORDS_MAX / 8;
const LISTED: usize = RECORDS_MAX / 2;
/// How long the end waits for what is still to be written.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the disk is waited for, and a store that failed is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the thread tells.
#[derive(Debug, Default)]
pub(super) struct Status {
    waiting: AtomicUsize,
    pub(super) written: AtomicU64,
    /// Records that the disk did not take.
    pub(super) unwritten: AtomicU64,
    /// Messages that the DLT daemon did not take.
    pub(super) dlt_lost: AtomicU64,
    state: Mutex<State>,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct State {
    failure: Option<String>,
    heads: [Option<Head>; CHAINS.len()],
}

impl Status {
    /// Why the audit cannot be written now, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }

    /// The last line of each chain.
    pub(super) fn heads(&self) -> [Option<Head>; CHAINS.len()] {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).heads
    }
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct AuditWriter {
    /// None when it is over.
    queue: Option<SyncSender<(ChainId, Box<Record>)>>,
    pub(super) status: Arc<Status>,
    /// Hears nothing, and that the thread is gone.
    end: Receiver<()>,
}

impl AuditWriter {
    pub(super) fn start(settings: &AuditSettings) -> std::io::Result<Self> {
        let (queue, records) = sync_channel(RECORDS_MAX);
        let (alive, end) = sync_channel(1);
        let status = Arc::new(Status::default());
        let mut thread = WriterThread::new(settings.clone(), Arc::clone(&status));
        std::thread::Builder::new().name("takt-audit".to_owned()).spawn(move || {
            thread.run(&records);
            drop::<SyncSender<()>>(alive);
        })?;
        Ok(Self { queue: Some(queue), status, end })
    }

    /// Has a record written; says whether there was room.
    pub(super) fn put(&self, chain: ChainId, record: Record, rank: Rank) -> bool {
        let most = match rank {
            Rank::Own => RECORDS_MAX,
            Rank::Listed => RECORDS_MAX - OWN,
            Rank::Other => RECORDS_MAX - OWN - LISTED,
        };
        let item = (chain, Box::new(record));
        if self.status.waiting.fetch_add(1, Ordering::Relaxed) < most
            && self.queue.as_ref().is_some_and(|queue| queue.try_send(item).is_ok())
        {
            return true;
        }
        self.status.waiting.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Ends the thread when all is written, or after a while.
    pub(super) fn close(&mut self) {
        if self.queue.take().is_some() {
            // It fails when the thread is gone, or takes too long: either way this is over.
            self.end.recv_timeout(PATIENCE).unwrap_or_default();
        }
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.close();
    }
}

struct WriterThread {
    settings: AuditSettings,
    status: Arc<Status>,
    stores: [Option<Store>; CHAINS.len()],
    /// Records that could not be written since the last one that could.
    unwritten: [u64; CHAINS.len()],
    tried: Option<Instant>,
    synced: Instant,
    dlt: Option<DltOutput>,
}

impl WriterThread {
    fn new(settings: AuditSettings, status: Arc<Status>) -> Self {
        let dlt = settings.dlt.clone().map(DltOutput::new);
        let stores = [const { None }; CHAINS.len()];
        let unwritten = [0; CHAINS.len()];
        Self { settings, status, stores, unwritten, tried: None, synced: Instant::now(), dlt }
    }

    fn run(&mut self, records: &Receiver<(ChainId, Box<Record>)>) {
        loop {
            match records.recv_timeout(PAUSE) {
                Ok((chain, record)) => {
                    self.take(chain, &record);
                    self.status.waiting.fetch_sub(1, Ordering::Relaxed);
                    // What came meanwhile, before the heads are written once for all.
                    for (chain, record) in records.try_iter().take(RECORDS_MAX) {
                        self.take(chain, &record);
                        self.status.waiting.fetch_sub(1, Ordering::Relaxed);
                    }
                    self.settle();
                }
                Err(RecvTimeoutError::Timeout) => self.settle(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.synced = Instant::now().checked_sub(PAUSE).unwrap_or_else(Instant::now);
        self.settle();
    }

    fn take(&mut self, chain: ChainId, record: &Record) {
        let line = self.written(chain, record);
        if let Some(dlt) = &mut self.dlt {
            dlt.send(record, &line);
            self.status.dlt_lost.store(dlt.lost, Ordering::Relaxed);
        }
    }

    /// Writes a record; returns its line, or one without a place in a chain if it has none.
    fn written(&mut self, chain: ChainId, record: &Record) -> String {
        let loose = || takt_audit::Chain::new("loose").record(record);
        if self.settings.folder.is_none() {
            return loose();
        }
        let line = self.store(chain, record.at_us).and_then(|store| store.append(record));
        match line {
            Ok(line) => {
                self.status.written.fetch_add(1, Ordering::Relaxed);
                line
            }
            Err(error) => {
                self.unwritten[chain.index()] += 1;
                self.status.unwritten.fetch_add(1, Ordering::Relaxed);
                // One that is tried again is tried again later; that it failed is known.
                if error.kind() != std::io::ErrorKind::NotConnected {
                    self.fail(chain, &error);
                }
                loose()
            }
        }
    }

    /// The open store of a chain; says how much is missing if it was not open.
    fn store(&mut self, chain: ChainId, at_us: u64) -> std::io::Result<&mut Store> {
        let index = chain.index();
        if self.stores[index].is_none() {
            let failed = self.status.failure().is_some();
            if failed && self.tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
                return Err(std::io::ErrorKind::NotConnected.into());
            }
            self.tried = Some(Instant::now());
            let folder = self.settings.folder.clone().unwrap_or_default();
            let mut store = Store::open(&folder, chain.name(), self.settings.limits, at_us)?;
            let missing = std::mem::take(&mut self.unwritten[index]);
            if missing > 0 {
                let reason = "they could not be written".to_owned();
                let lost = Record { times: missing, reason, ..Record::new(at_us, Event::Lost) };
                if let Err(error) = store.append(&lost) {
                    self.unwritten[index] = missing;
                    return Err(error);
                }
            }
            self.stores[index] = Some(store);
            self.state(|state| state.failure = None);
        }
        self.stores[index].as_mut().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }

    fn fail(&mut self, chain: ChainId, error: &std::io::Error) {
        self.stores[chain.index()] = None;
        self.tried = Some(Instant::now());
        let what = format!("{}: {error}", chain.name());
        self.state(|state| state.failure = Some(what));
    }

    /// Writes heads, and once in a while waits for the disk.
    fn settle(&mut self) {
        let sync = self.synced.elapsed() >= PAUSE;
        if sync {
            self.synced = Instant::now();
        }
        for chain in CHAINS {
            let Some(store) = &mut self.stores[chain.index()] else {
                continue;
            };
            let kept = store.keep_head().and_then(|()| if sync { store.sync() } else { Ok(()) });
            let head = store.head();
            self.state(|state| state.heads[chain.index()] = head);
            if let Err(error) = kept {
                self.fail(chain, &error);
            }
        }
    }

    fn state(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.status.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
