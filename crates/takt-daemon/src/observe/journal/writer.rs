//! The thread that writes lines, so that a slow disk or a full pipe delays no other thread.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::control::user::Rank;

/// Most lines that wait to be written.
const LINES_MAX: usize = 1024;
/// Of these, places that only the daemon's own lines get: no client can push them out.
const OWN: usize = LINES_MAX / 4;
/// Places that lines about clients of listed domains and of the daemon's user get besides: no other user can
/// push them out.
const LISTED: usize = LINES_MAX / 4;
/// How long the end waits for what is still to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// The way to the thread.
#[derive(Debug)]
pub(super) struct LogWriter {
    /// None when it is over.
    queue: Option<SyncSender<String>>,
    waiting: Arc<AtomicUsize>,
    /// Hears nothing, and that the thread is gone.
    end: Receiver<()>,
}

impl LogWriter {
    pub(super) fn start(mut out: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let (queue, lines) = sync_channel::<String>(LINES_MAX);
        let (alive, end) = sync_channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&waiting);
        std::thread::Builder::new().name("takt-journal".to_owned()).spawn(move || {
            for line in lines {
                // A full disk or a closed pipe is no reason to stop scheduling.
                out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
                written.fetch_sub(1, Ordering::Relaxed);
            }
            drop::<SyncSender<()>>(alive);
        })?;
        Ok(Self { queue: Some(queue), waiting, end })
    }

    /// Has a line written; says whether there was room.
    pub(super) fn put(&self, line: String, place: Rank) -> bool {
        let most = match place {
            Rank::Own => LINES_MAX,
            Rank::Listed => LINES_MAX - OWN,
            Rank::Other => LINES_MAX - OWN - LISTED,
        };
        if self.waiting.fetch_add(1, Ordering::Relaxed) < most
            && self.queue.as_ref().is_some_and(|queue| queue.try_send(line).is_ok())
        {
            return true;
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        false
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
        // It fails when the thread is gone, or takes too long: either way this is over.
        self.end.recv_timeout(PATIENCE).unwrap_or_default();
    }
}
