//! Closes connections on threads of its own.
//!
//! Closing a socket closes the descriptors in messages that were not read, and that can take as long
//! as their sender likes: a TCP socket lingers, a file system in user space does not answer. So the
//! thread that serves clients never receives such a message and never closes such a connection. A
//! [`ClientSocket`] looks at what it still has when it is dropped, and hands itself over if descriptors
//! are among it. Connections of clients that pass none are closed at once, so clients that do keep
//! threads of this module busy and delay each other alone. Waits of these threads are interrupted soon,
//! so no user keeps others out by connections that wait to be closed.

use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use takt_ipc::socket::Connection;
use takt_os::interrupt::Interrupter;

/// Most connections that wait to be closed.
const WAITING_MAX: usize = 512;
/// No connection is accepted while so many wait: those that are open must still fit.
const CROWDED: usize = WAITING_MAX / 2;
/// Threads that close.
const THREADS: usize = 4;
/// How long closing one descriptor may wait. The kernel goes on closing without us then.
const WAIT_MAX: Duration = Duration::from_millis(2);

/// Takes connections that may take long to close.
#[derive(Clone, Debug)]
pub struct Closer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: SyncSender<OwnedFd>,
    /// Handed over and not closed yet.
    waiting: Arc<AtomicUsize>,
}

impl Closer {
    /// Starts the threads. They end when the last closer is dropped and all is closed; the process does
    /// not wait for them.
    pub fn start() -> std::io::Result<Self> {
        let (queue, received) = sync_channel(WAITING_MAX);
        let received = Arc::new(Mutex::new(received));
        let waiting = Arc::new(AtomicUsize::new(0));
        for _ in 0..THREADS {
            let (received, waiting) = (Arc::clone(&received), Arc::clone(&waiting));
            let close = move || {
                // Where that is denied, they wait as long as they like.
                let interrupter = Interrupter::of_this_thread().ok();
                while let Some(socket) = next(&received) {
                    match &interrupter {
                        Some(interrupter) => interrupter.interrupting(WAIT_MAX, || drop::<OwnedFd>(socket)),
                        None => drop(socket),
                    }
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
            };
            std::thread::Builder::new().name("takt-closer".to_owned()).spawn(close)?;
        }
        Ok(Self(Arc::new(Shared { queue, waiting })))
    }

    /// Closes a socket sooner or later.
    pub fn close(&self, socket: OwnedFd) {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(full) = self.0.queue.try_send(socket) {
            // More than all connections that may be open at once: they were accepted while it was crowded.
            debug_assert!(false, "the server accepts although it is crowded");
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
            drop(full);
        }
    }

    /// Whether so many wait that no further connection should be accepted.
    pub fn is_crowded(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) >= CROWDED
    }
}

/// The next one, waiting for it; none when all closers are gone.
fn next(received: &Mutex<Receiver<OwnedFd>>) -> Option<OwnedFd> {
    received.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// The connection of a client; dropping it never waits.
#[derive(Debug)]
pub struct ClientSocket {
    connection: Option<Connection>,
    closer: Closer,
}

impl ClientSocket {
    /// That connection, to be closed with that closer.
    pub fn new(connection: Connection, closer: Closer) -> Self {
        Self { connection: Some(connection), closer }
    }
}

impl Deref for ClientSocket {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until this is dropped")
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if let Some(slow) = self.connection.take().and_then(Connection::hang_up) {
            self.closer.close(slow.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use takt_ipc::message::{Hello, Message};
    use takt_ipc::socket::Listener;

    /// A socket whose close blocks until the test drops the other end, which reads nothing.
    fn lingers() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut full = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (deaf, _) = listener.accept().expect("accepted");
        full.set_nonblocking(true).expect("set");
        while full.write(&[0; 1 << 16]).is_ok() {}
        let hour = Some(Duration::from_secs(3600));
        rustix::net::sockopt::set_socket_linger(&full, hour).expect("set");
        (full.into(), deaf)
    }

    #[test]
    fn connections_with_descriptors_are_closed_elsewhere() {
        let path = std::env::temp_dir().join(format!("takt-closer-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        let listener = Listener::bind(&path).expect("bound");
        let closer = Closer::start().expect("threads");
        let mut deaf = Vec::new();
        // More than there are threads: the others wait, and this thread does not.
        for _ in 0..THREADS * 2 {
            let client = Connection::connect(&path, Duration::from_secs(30)).expect("connected");
            let (socket, other_end) = lingers();
            client.send(&Message::Hello(Hello::default()), &[socket.as_fd()]).expect("sent");
            drop(socket);
            deaf.push(other_end);
            let (accepted, _) = listener.accept().expect("no error").expect("there");
            drop(ClientSocket::new(accepted, closer.clone()));
            assert!(client.is_hung_up(), "the client knows at once");
        }
        // They are closed although the other end reads nothing of what they still have to send.
        while closer.0.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        drop(deaf);
        std::fs::remove_file(path).expect("removed");
    }
}
