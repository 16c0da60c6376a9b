//! The HTTP server: accepts connections and has a bound on them.
//!
//! A connection that sends nothing costs little, but a thousand of them must not keep others out. When there are
//! [`CONNECTIONS_MAX`], the oldest that serves no request makes room.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::AbortHandle;

use crate::content::Busy;
use crate::routes::{self, Site};

/// Most connections at once.
const CONNECTIONS_MAX: usize = 256;
/// How long the head of a request may take, the time before its first byte included.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take to be made and read; then its connection may make room for others.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Where connections come from.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: Listener, site: Arc<Site>) {
    let mut open = OpenConnections { all: VecDeque::new(), began: Instant::now() };
    loop {
        let accepted = match &listener {
            Listener::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Events are small and should not wait for others.
                let _no_matter = stream.set_nodelay(true);
                open.add(stream, &site);
            }),
            Listener::Unix(unix) => unix.accept().await.map(|(stream, _)| open.add(stream, &site)),
        };
        if accepted.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

struct OpenConnections {
    all: VecDeque<OpenConnection>,
    began: Instant,
}

struct OpenConnection {
    task: AbortHandle,
    /// Until when it serves a request, in milliseconds since the beginning; 0 if it serves none.
    busy: Arc<AtomicU64>,
}

impl OpenConnections {
    /// Serves a connection, if there is room.
    fn add(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, site: &Arc<Site>) {
        if !self.make_room() {
            return;
        }
        let (busy, began) = (Arc::new(AtomicU64::new(0)), self.began);
        let (state, site) = (Arc::clone(&busy), Arc::clone(site));
        let service = service_fn(move |request| {
            let until_ms = millis(began.elapsed() + ANSWER_PATIENCE);
            let (busy, site) = (Busy::until(&state, until_ms), Arc::clone(&site));
            async move {
                let answer = routes::answer(&site, request).await;
                if answer.body().is_endless() {
                    busy.for_good();
                }
                Ok::<_, Infallible>(answer.map(|content| content.holding(busy)))
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let task = tokio::spawn(async move {
            // A connection that breaks is the other side's matter.
            serving.await.unwrap_or_default();
        });
        self.all.push_back(OpenConnection { task: task.abort_handle(), busy });
    }

    /// Whether there is room for one more; the oldest that serves no request may be closed for it.
    fn make_room(&mut self) -> bool {
        if self.all.len() < CONNECTIONS_MAX {
            return true;
        }
        self.all.retain(|one| !one.task.is_finished());
        if self.all.len() < CONNECTIONS_MAX {
            return true;
        }
        let now = millis(self.began.elapsed());
        let idle = self.all.iter().position(|one| one.busy.load(Ordering::Relaxed) < now);
        let closed = idle.and_then(|at| self.all.remove(at));
        closed.iter().for_each(|one| one.task.abort());
        closed.is_some()
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX - 1)
}
