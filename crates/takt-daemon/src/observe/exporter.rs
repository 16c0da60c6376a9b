//! Where monitoring tools fetch a page of metrics: a small HTTP server on a thread of its own.
//!
//! It answers one after the other, hands out what it was last given, and has no patience: whoever
//! asks or reads slowly is cut off, and nobody else waits longer than that. It listens on this
//! machine only.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::time::Timespec;

/// How long one visitor may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often to look whether it is time to end.
const NAP: Duration = Duration::from_millis(200);
/// Longest question.
const QUESTION_MAX: usize = 8 << 10;

/// Where to listen.
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

/// The server; ends when dropped.
#[derive(Debug)]
pub struct Exporter {
    page: Arc<Mutex<Arc<str>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: Address,
}

impl Exporter {
    /// Listens.
    pub fn start(address: Address) -> std::io::Result<Self> {
        let (listener, address) = Listener::bind(address)?;
        let page: Arc<Mutex<Arc<str>>> = Arc::new(Mutex::new(Arc::from("")));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (Arc::clone(&page), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("takt-metrics".to_owned()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                if listener.wait() {
                    let page = Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner));
                    listener.serve(&page);
                }
            }
        })?;
        Ok(Self { page, stop, thread: Some(thread), address })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Hands out this page from now on.
    pub fn publish(&self, page: String) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Arc::from(page);
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so itself.
            drop(thread.join());
        }
        if let Address::Unix(path) = &self.address {
            // Gone already, perhaps.
            std::fs::remove_file(path).unwrap_or_default();
        }
    }
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens; says where, if the system chose the port.
    fn bind(address: Address) -> std::io::Result<(Self, Address)> {
        match address {
            Address::Unix(path) => {
                // A socket that a daemon left behind is replaced; one that is in use is not.
                if std::os::unix::net::UnixStream::connect(&path)
                    .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
                {
                    std::fs::remove_file(&path)?;
                }
                let listener = UnixListener::bind(&path)?;
                listener.set_nonblocking(true)?;
                Ok((Self::Unix(listener), Address::Unix(path)))
            }
            Address::Loopback(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok((Self::Tcp(listener), Address::Loopback(address)))
            }
        }
    }

    /// Whether somebody comes, within a nap.
    fn wait(&self) -> bool {
        let fd = match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        };
        let nap = Timespec { tv_sec: 0, tv_nsec: NAP.subsec_nanos().into() };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&nap)).is_ok_and(|ready| ready > 0)
    }

    /// Serves whoever comes; a visitor who goes away is no concern of ours.
    fn serve(&self, page: &str) {
        let visitor = match self {
            Self::Unix(listener) => listener.accept().map(|(visitor, _)| OwnedFd::from(visitor)),
            Self::Tcp(listener) => listener.accept().map(|(visitor, _)| OwnedFd::from(visitor)),
        };
        let served = visitor.and_then(|visitor| {
            for side in [Timeout::Recv, Timeout::Send] {
                set_socket_timeout(&visitor, side, Some(PATIENCE))?;
            }
            // Both kinds are read and written as files are.
            answer(&mut File::from(visitor), page)
        });
        served.unwrap_or_default();
    }
}

/// Reads a question and answers it.
fn answer(visitor: &mut (impl Read + Write), page: &str) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut question = Vec::new();
    let mut piece = [0; 1024];
    while !question.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = visitor.read(&mut piece)?;
        question.extend_from_slice(&piece[..count]);
        if count == 0 || question.len() > QUESTION_MAX || Instant::now() > until {
            return Ok(());
        }
    }
    let line = question.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (status, text) = match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", page),
        (Some(b"GET"), _) => ("404 Not Found", "Metrics are at /metrics.\n"),
        _ => ("405 Method Not Allowed", "Only GET is understood.\n"),
    };
    let (kind, length) = ("text/plain; version=0.0.4; charset=utf-8", text.len());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    visitor.write_all(head.as_bytes())?;
    visitor.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    fn fetch(mut server: impl Read + Write, question: &str) -> String {
        server.write_all(question.as_bytes()).expect("sent");
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
    fn pages_are_handed_out_whatever_others_do() {
        let exporter = Exporter::start("127.0.0.1:0".parse().expect("an address")).expect("it listens");
        let Address::Loopback(address) = *exporter.address() else { panic!("a port") };
        exporter.publish("takt_x 1\n".to_owned());
        let connect = || TcpStream::connect(address).expect("it answers");
        // Some say nothing, some talk without an end, some never read.
        let silent = connect();
        let mut endless = connect();
        endless.write_all(&[b'x'; QUESTION_MAX + 2048]).ok();
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
        drop(UnixListener::bind(&path).expect("a socket that is left behind"));
        let exporter = Exporter::start(Address::Unix(path.clone())).expect("it listens");
        exporter.publish("takt_y 2\n".to_owned());
        let server = UnixStream::connect(&path).expect("it answers");
        assert!(fetch(server, "GET /metrics HTTP/1.1\r\n\r\n").ends_with("takt_y 2\n"));
        assert!(Exporter::start(Address::Unix(path.clone())).is_err(), "somebody is there");
        drop(exporter);
        assert!(!path.exists());
    }
}
