//! Bodies of answers: a text, or events without an end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// A body.
#[derive(Debug)]
pub(crate) struct Content {
    kind: Kind,
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum Kind {
    /// All of it, until it is taken.
    Whole(Option<Bytes>),
    /// Pieces that a task sends.
    Pieces(
        mpsc::Receiver<Bytes>,
        #[expect(dead_code, reason = "dropping it makes room")] OwnedSemaphorePermit,
    ),
}

impl Content {
    /// That text.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Whole(Some(bytes.into())), _busy: None }
    }

    /// Pieces until the sender is dropped; `permit` is given back when the reader is gone.
    pub(crate) fn pieces(pieces: mpsc::Receiver<Bytes>, permit: OwnedSemaphorePermit) -> Self {
        Self { kind: Kind::Pieces(pieces, permit), _busy: None }
    }

    /// Whether it has no end.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self.kind, Kind::Pieces(..))
    }

    /// Its connection is busy until it is sent.
    pub(crate) fn holding(self, busy: Busy) -> Self {
        Self { _busy: Some(busy), ..self }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Pieces(pieces, _) => pieces.poll_recv(context),
        };
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Pieces(..) => SizeHint::default(),
        }
    }
}

/// Until when a connection must not make room for another one, in milliseconds since the console started; dropping
/// this ends that.
#[derive(Debug)]
pub(crate) struct Busy(Arc<AtomicU64>);

impl Busy {
    /// It serves a request that takes until then at most.
    pub(crate) fn until(state: &Arc<AtomicU64>, until_ms: u64) -> Self {
        state.store(until_ms, Ordering::Relaxed);
        Self(Arc::clone(state))
    }

    /// It serves one without an end.
    pub(crate) fn for_good(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
