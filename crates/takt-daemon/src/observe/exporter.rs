//! A small HTTP server on a thread of its own, from which monitoring tools fetch a page of metrics.
//!
//! It serves several connections at once with the page that it was last given, and makes its text when
//! it is first asked for. A slow connection is cut off, and no other waits for it. It listens on this
//! machine only.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use takt_ipc::socket::{Descriptors, set_descriptors};

use crate::control::socket_file::SocketFile;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the thread looks whether it is to end.
const POLL: Duration = Duration::from_millis(200);
/// Most connections at once.
const CLIENTS_MAX: usize = 64;
/// Longest request.
const REQUEST_MAX: usize = 8 << 10;

/// The address to listen at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine.
    Loopback(SocketAddr),
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Self::Loopback(address)),
            Ok(address) => Err(format!("{} is not of this machine; use 127.0.0.1 or [::1]", address.ip())),
            Err(_) => Err("write unix:PATH or 127.0.0.1:PORT".to_owned()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(address) => write!(f, "{address}"),
        }
    }
}

/// A page, or how to make it.
enum Page {
    Text(Arc<str>),
    Later(Box<dyn FnOnce() -> String + Send>),
}

impl Page {
    /// Its text, made if need be.
    fn text(page: &Mutex<Self>) -> Arc<str> {
        let lock = || page.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is not held while the text is made: the thread that publishes would wait.
        let made: Arc<str> = match std::mem::replace(&mut *lock(), Self::Text(Arc::from(""))) {
            Self::Text(text) => text,
            Self::Later(make) => Arc::from(make()),
        };
        let mut page = lock();
        if matches!(*page, Self::Text(_)) {
            *page = Self::Text(Arc::clone(&made));
        }
        made
    }
}

/// The server; dropping it ends it.
pub struct Exporter {
    page: Arc<Mutex<Page>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: Address,
}

impl Exporter {
    /// Listens at `address`.
    pub fn start(address: Address) -> std::io::Result<Self> {
        let (mut listener, address) = Listener::bind(address)?;
        let page = Arc::new(Mutex::new(Page::Text(Arc::from(""))));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (Arc::clone(&page), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("takt-metrics".to_owned()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                listener.turn(|| Page::text(&shared));
            }
        })?;
        Ok(Self { page, stop, thread: Some(thread), address })
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves the page that `make` makes from now on.
    pub fn publish(&self, make: impl FnOnce() -> String + Send + 'static) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Page::Later(Box::new(make));
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has printed its message.
            drop(thread.join());
        }
    }
}

struct Listener {
    socket: BoundSocket,
    clients: Vec<HttpClient>,
    /// Removed with the listener.
    _file: Option<SocketFile>,
}

enum BoundSocket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens; returns the address with the port that the system chose.
    fn bind(address: Address) -> std::io::Result<(Self, Address)> {
        let (socket, file, address) = match address {
            Address::Unix(path) => {
                let (listener, file) = SocketFile::bind(path, |path| UnixListener::bind(path))?;
                // Where the kernel cannot, visitors that pass some can delay other visitors.
                set_descriptors(&listener, Descriptors::Refused);
                listener.set_nonblocking(true)?;
                let address = Address::Unix(file.path().to_owned());
                (BoundSocket::Unix(listener), Some(file), address)
            }
            Address::Loopback(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                (BoundSocket::Tcp(listener), None, Address::Loopback(address))
            }
        };
        Ok((Self { socket, clients: Vec::new(), _file: file }, address))
    }

    /// Waits for a moment, and serves every connection that is ready.
    fn turn(&mut self, page: impl FnOnce() -> Arc<str>) {
        let mut fds: Vec<PollFd<'_>> = self.clients.iter().map(HttpClient::interest).collect();
        fds.push(PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: POLL.subsec_nanos().into() };
        let ready = poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0);
        drop(fds);
        if ready {
            self.accept();
            let page = page();
            self.clients.iter_mut().for_each(|client| client.advance(&page));
        }
        self.clients.retain(|client| !client.done && client.came.elapsed() < PATIENCE);
    }

    /// Accepts waiting connections. If there are too many, the oldest is closed.
    fn accept(&mut self) {
        for _ in 0..CLIENTS_MAX {
            let accepted = match &self.socket {
                BoundSocket::Unix(listener) => listener.accept().map(|(client, _)| OwnedFd::from(client)),
                BoundSocket::Tcp(listener) => listener.accept().map(|(client, _)| OwnedFd::from(client)),
            };
            let Some(client) = accepted.ok().and_then(HttpClient::new) else {
                return;
            };
            if self.clients.len() == CLIENTS_MAX {
                self.clients.remove(0);
            }
            self.clients.push(client);
        }
    }
}

impl AsFd for BoundSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A connection of a monitoring tool.
struct HttpClient {
    /// Both kinds of sockets are read and written as files are; neither call blocks.
    stream: File,
    came: Instant,
    request: Vec<u8>,
    answer: Option<Vec<u8>>,
    done: bool,
}

impl HttpClient {
    fn new(socket: OwnedFd) -> Option<Self> {
        rustix::io::ioctl_fionbio(&socket, true).ok()?;
        let (stream, came) = (File::from(socket), Instant::now());
        Some(Self { stream, came, request: Vec::new(), answer: None, done: false })
    }

    fn interest(&self) -> PollFd<'_> {
        let wanted = if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, wanted)
    }

    /// Reads and writes as far as possible without blocking.
    fn advance(&mut self, page: &str) {
        let result = if self.answer.is_none() { self.read(page) } else { Ok(()) };
        match result.and_then(|()| self.write()) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // It is closed, or its request is too long.
            Err(_) => self.done = true,
            Ok(()) => {}
        }
    }

    fn read(&mut self, page: &str) -> std::io::Result<()> {
        let mut piece = [0; REQUEST_MAX];
        let count = self.stream.read(&mut piece)?;
        self.request.extend_from_slice(&piece[..count]);
        if self.request.windows(4).any(|end| end == b"\r\n\r\n") {
            self.answer = Some(answer(&self.request, page));
        } else if count == 0 || self.request.len() > REQUEST_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    fn write(&mut self) -> std::io::Result<()> {
        let Some(answer) = &mut self.answer else {
            return Ok(());
        };
        while !answer.is_empty() {
            let count = self.stream.write(answer)?;
            answer.drain(..count);
        }
        self.done = true;
        Ok(())
    }
}

/// The answer to a request.
fn answer(request: &[u8], page: &str) -> Vec<u8> {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (status, text) = match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", page),
        (Some(b"GET"), _) => ("404 Not Found", "Metrics are at /metrics.\n"),
        _ => ("405 Method Not Allowed", "Only GET is supported.\n"),
    };
    let (kind, length) = ("text/plain; version=0.0.4; charset=utf-8", text.len());
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    fn fetch(mut server: impl Read + Write, request: &str) -> String {
        server.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        server.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn addresses_of_other_machines_are_refused() {
        assert_eq!("unix:/run/x".parse(), Ok(Address::Unix(PathBuf::from("/run/x"))));
        assert!("127.0.0.1:9100".parse::<Address>().is_ok());
        assert!("[::1]:9100".parse::<Address>().is_ok());
        for bad in ["0.0.0.0:9100", "192.168.0.1:80"] {
            assert!(bad.parse::<Address>().expect_err("refused").contains("not of this machine"));
        }
        for bad in ["", "unix:", "9100", "/run/x", "localhost:1"] {
            assert!(bad.parse::<Address>().expect_err("refused").contains("unix:PATH"), "{bad}");
        }
    }

    #[test]
    fn slow_readers_do_not_stop_others() {
        let exporter = Exporter::start("127.0.0.1:0".parse().expect("an address")).expect("it listens");
        let Address::Loopback(address) = *exporter.address() else { panic!("a port") };
        exporter.publish(|| "takt_x 1\n".to_owned());
        let connect = || {
            let client = TcpStream::connect(address).expect("it answers");
            // Less than it would take to bear with the silent ones below, one after the other.
            client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
            client
        };
        // Some send nothing, some send without an end, some never read.
        let silent: Vec<_> = (0..100).map(|_| connect()).collect();
        let mut endless = connect();
        endless.write_all(&[b'x'; REQUEST_MAX + 2048]).ok();
        let mut deaf = connect();
        deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let page = fetch(connect(), "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\ntakt_x 1\n"), "{page}");
        assert!(fetch(connect(), "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(fetch(connect(), "POST /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 405"));
        drop((silent, endless, deaf));
    }

    #[test]
    fn a_socket_comes_and_goes() {
        let path = std::env::temp_dir().join(format!("takt-metrics-{}", std::process::id()));
        drop(UnixListener::bind(&path).expect("a stale socket"));
        let exporter = Exporter::start(Address::Unix(path.clone())).expect("it listens");
        exporter.publish(|| "takt_y 2\n".to_owned());
        let server = UnixStream::connect(&path).expect("it answers");
        assert!(fetch(server, "GET /metrics HTTP/1.1\r\n\r\n").ends_with("takt_y 2\n"));
        assert!(Exporter::start(Address::Unix(path.clone())).is_err(), "it is in use");
        drop(exporter);
        assert!(!path.exists());
        std::fs::write(&path, "precious").expect("written");
        let error = Exporter::start(Address::Unix(path.clone())).expect_err("it is no socket");
        assert!(error.to_string().contains("is no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "precious");
        std::fs::remove_file(path).expect("removed");
    }
}
