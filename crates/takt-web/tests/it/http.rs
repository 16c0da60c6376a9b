//! A console, and what a browser or another program would send to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use takt_web::access::Tokens;
use takt_web::{Console, Serving, Settings};

use crate::daemon::PATIENCE;

/// A console that ends with the test.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) view: String,
    pub(crate) steer: String,
    _serving: Serving,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Web {
    pub(crate) fn start(daemon: &Path) -> Self {
        Self::with(daemon, Tokens::random().expect("random"))
    }

    pub(crate) fn with(daemon: &Path, tokens: Tokens) -> Self {
        Self::at("127.0.0.1:0", daemon, tokens)
    }

    pub(crate) fn at(listen: &str, daemon: &Path, tokens: Tokens) -> Self {
        let (view, steer) = (tokens.view().to_owned(), tokens.steer().unwrap_or("none-at-all").to_owned());
        let listen = listen.parse().expect("an address");
        let origins = vec!["https://car.example".parse().expect("an origin")];
        let settings = Settings { listen, tokens, origins, socket: Some(daemon.to_owned()) };
        let console = Console::start(settings).expect("it listens");
        let serving = console.in_background().expect("a thread");
        Self { address: serving.port().expect("a port"), view, steer, _serving: serving }
    }

    /// Sends a request as it stands.
    pub(crate) fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        // Captures are no text.
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Sends more than is read: the status, if the answer comes before the connection breaks.
    pub(crate) fn too_much(&self, request: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.write_all(request.as_bytes()).unwrap_or_default();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.split(' ').nth(1).and_then(|status| status.parse().ok())
    }

    /// The first line of the answer to a request for a stream of events.
    pub(crate) fn head(&self, path: &str) -> String {
        let mut line = String::new();
        self.events(path).lines.read_line(&mut line).expect("an answer");
        line
    }

    /// Sends a request with these headers.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address;
        let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {host}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += &format!("content-length: {}\r\n", body.len());
        }
        self.raw(&format!("{request}\r\n{body}"))
    }

    /// Asks with the token for looking.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[("x-takt-token", &self.view)], "")
    }

    /// Orders with the token for steering.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("x-takt-token", self.steer.as_str()), ("content-type", "application/json")];
        self.send(&format!("POST {path}"), &headers, &body.to_string())
    }

    /// Asks until the answer is as wanted: the daemon hears of things a moment later.
    pub(crate) fn await_json(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path);
            if answer.status == 200 && wanted(&answer.json()) {
                return answer.json();
            }
            assert!(Instant::now() < until, "{path}: {answer:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Opens a stream of events.
    pub(crate) fn events(&self, path: &str) -> Events {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let (host, token) = (self.address, &self.view);
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nx-takt-token: {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        Events { lines: BufReader::new(stream), name: String::new() }
    }
}

/// A stream of events.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
    name: String,
}

impl Events {
    /// Waits for an event of that name that is as wanted.
    pub(crate) fn await_event(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("it goes on") > 0, "the stream ended");
            if let Some(name) = line.trim().strip_prefix("event: ") {
                self.name = name.to_owned();
            } else if let Some(data) = line.trim().strip_prefix("data: ")
                && self.name == name
            {
                let data = serde_json::from_str(data).expect("JSON");
                if wanted(&data) {
                    return data;
                }
            }
        }
        panic!("no such event {name}");
    }
}
