//! Clients and tools say to a whole daemon what messages and rings can say, in any order. It serves on, its core
//! holds its invariants, and what it says of apps steers no terminal.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::SendFlags;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_ipc::client::{Receiver, Sender, ends};
use takt_ipc::message::{Hello, Message, Pacing, TimeSlices};
use takt_ipc::socket::Connection;
use takt_ipc::{Command, Request};

/// Configurations under which clients are treated differently; a step may replace one by another.
const CONFIGS: [&str; 4] = [
    "",
    // All clients of the fuzzer are of this domain.
    "admission = 'refuse'\n[[domain]]\nname = 'own'\nlevel = 'best-effort'\napps_max = 3\n",
    "[[domain]]\nname = 'own'\npriority_max = 100\netpf_ms_max = 6\nshare_max = 0.6\nuncut = false\n\
     see = false\nset_vsync = true\nset_state = true\n[[app]]\nname = 'dial'\npriority = 80\nfps = 60\netpf_ms = 3\n\
     silence_ms_max = 100\n[[app]]\nname = 'game'\npriority = 3\n",
    "admission = 'refuse'\nmpcg = 3\npolicy = 'edf-cbs'\n[[domain]]\nname = 'own'\nshare_min = 0.3\nchange = true\n\
     [[display]]\nname = 'left'\n[[display]]\nname = 'hud'\nrefresh_hz = 30\n",
];
/// Connections at once.
const CLIENTS: usize = 4;
/// More steps show nothing new.
const STEPS_MAX: usize = 64;

const NAMES: [&str; 8] = ["dial", "game", "a", "0", "left", "hud", "", "\u{202e}x"];
const WORDS: [u32; 8] = [0, 1, 30_000, 60_000, 1_000_000, u32::MAX / 2, u32::MAX - 1, u32::MAX];
const LONGS: [u64; 8] = [0, 1, 1_000_000, 16_666_667, 60_000_000_000, u64::MAX / 2, u64::MAX - 1, u64::MAX];
/// Numbers as JSON has them.
const NUMBERS: [&str; 8] = ["0", "1", "-1", "0.5", "60", "1e308", "4294967295", "18446744073709551615"];
/// Questions and orders, with a name and a number.
const ASKS: [&str; 26] = [
    r#"{"ask":"apps"}"#,
    r#"{"ask":"summary","window_s":N}"#,
    r#"{"ask":"why","app":"A"}"#,
    r#"{"ask":"why","app":"A","frame":N}"#,
    r#"{"ask":"daemon"}"#,
    r#"{"ask":"domains"}"#,
    r#"{"ask":"frames"}"#,
    r#"{"ask":"watch"}"#,
    r#"{"ask":"set","app":"A","priority":N}"#,
    r#"{"ask":"set","app":"A","fps":N,"etpf_ms":N}"#,
    r#"{"ask":"set","app":"A","runtime_ms":N,"period_ms":60}"#,
    r#"{"ask":"set","app":"A","period_ms":60,"deadline_ms":N,"pace":"own"}"#,
    r#"{"ask":"set","app":"A","gaps":N,"gap_ms":N}"#,
    r#"{"ask":"set","app":"game","feeds":"A"}"#,
    r#"{"ask":"set","app":"game","shares":"A"}"#,
    r#"{"ask":"set","app":"game","display":"A"}"#,
    r#"{"ask":"pause","app":"A"}"#,
    r#"{"ask":"resume","app":"A"}"#,
    r#"{"ask":"evict","app":"A","for_s":N}"#,
    r#"{"ask":"readmit","app":"A"}"#,
    r#"{"ask":"policy","name":"timeline"}"#,
    r#"{"ask":"adjust","mpcg":N}"#,
    r#"{"ask":"focus","app":"A"}"#,
    r#"{"ask":"state","name":"A"}"#,
    r#"{"ask":"display","name":"A","refresh_mhz":60000,"vsync_ns":N}"#,
    r#"{"ask":"preview","order":{"ask":"set","app":"A","etpf_ms":N}}"#,
];

/// Plays steps, and looks whether the daemon serves in the end.
pub fn control(bytes: &[u8]) {
    forgo_urgency();
    let mut bytes = Bytes(bytes);
    let path = std::env::temp_dir().join(format!("takt-fuzz-{}", std::process::id()));
    let server = Server::start(path.clone(), bytes.settings()).expect("a daemon");
    let mut world = World { server, path, clients: Default::default() };
    for _ in 0..STEPS_MAX {
        let Some(step) = bytes.next() else { break };
        world.play(step, &mut bytes);
    }
    world.look();
}

/// A daemon that is fuzzed goes before no other program and locks no memory.
fn forgo_urgency() {
    let own = capabilities(None).expect("our own");
    let less = own.effective - (CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK);
    set_capabilities(None, rustix::thread::CapabilitySets { effective: less, ..own })
        .expect("less is allowed");
}

/// What is left of the input; zeros follow where a step needs more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[usize::from(self.byte()) % among.len()]
    }

    fn settings(&mut self) -> Settings {
        Settings::parse(self.pick(&CONFIGS)).expect("they are fine")
    }

    /// So many bytes as the next one says.
    fn some(&mut self) -> Vec<u8> {
        let count = usize::from(self.byte()).min(self.0.len());
        let (some, rest) = self.0.split_at(count);
        self.0 = rest;
        some.to_vec()
    }

    /// A number, or none.
    fn word(&mut self) -> Option<u32> {
        let byte = self.byte();
        (byte & 1 == 1).then(|| WORDS[usize::from(byte >> 1) % WORDS.len()])
    }

    fn long(&mut self) -> Option<u64> {
        let byte = self.byte();
        (byte & 1 == 1).then(|| match byte >> 4 {
            15 => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            _ => LONGS[usize::from(byte >> 1) % LONGS.len()],
        })
    }

    fn name(&mut self) -> Option<String> {
        let byte = self.byte();
        (byte & 1 == 1).then(|| NAMES[usize::from(byte >> 1) % NAMES.len()].to_owned())
    }

    fn hello(&mut self) -> Hello {
        let (name, bits) = (self.pick(&NAMES).to_owned(), self.byte());
        let is_set = |bit: u8| bits & 1 << bit != 0;
        let pacing = match self.byte() % 5 {
            0 => None,
            1 => Some(Pacing::Unknown),
            2 => Some(Pacing::Display),
            3 => Some(Pacing::Free),
            _ => Some(Pacing::Own {
                period: Span::from_ns(self.long().unwrap_or_default()),
                steady: is_set(7),
            }),
        };
        Hello {
            name,
            priority: self.word(),
            fps_mhz: self.word(),
            etpf_ns: self.long(),
            max_slice_ns: self.long(),
            display: self.name(),
            period_ns: self.long(),
            deadline_ns: self.long(),
            runtime_ns: self.long(),
            hard: is_set(0),
            gaps: self.word(),
            gap_ns: self.long(),
            gpu: self.name(),
            on_cpu: is_set(1),
            divisible: is_set(2),
            feeds: self.name(),
            shares: self.name(),
            by_display: is_set(3),
            pacing,
            slices: self
                .word()
                .map(|longest_us| TimeSlices { shortest_us: self.word().unwrap_or_default(), longest_us }),
            family: self.long(),
        }
    }

    fn ask(&mut self) -> String {
        let (ask, name, number) = (self.pick(&ASKS), self.pick(&NAMES), self.pick(&NUMBERS));
        ask.replace("\"A\"", &serde_json::to_string(name).expect("a text"))
            .replace(":N", &format!(":{number}"))
    }
}

struct Client {
    connection: Connection,
    /// Its ends of the rings, once it has joined.
    rings: Option<(Sender, Receiver)>,
}

struct World {
    server: Server,
    path: PathBuf,
    clients: [Option<Client>; CLIENTS],
}

impl World {
    fn play(&mut self, step: u8, bytes: &mut Bytes<'_>) {
        let at = usize::from(step >> 4) % CLIENTS;
        match step & 15 {
            0 => self.clients[at] = None,
            1..=3 => {
                let hello = Message::Hello(bytes.hello());
                self.say(at, &hello.encode());
            }
            4..=8 => {
                let text = bytes.ask();
                self.say(at, &Message::Ask { text }.encode());
            }
            9 => {
                let text = String::from_utf8_lossy(&bytes.some()).into_owned();
                self.say(at, &Message::Ask { text }.encode());
            }
            10 => {
                let raw = bytes.some();
                self.say(at, &raw);
            }
            11 => drop(self.server.apply(bytes.settings())),
            12 => self.turn(),
            _ => self.request(at, bytes),
        }
    }

    /// Says something on a connection, a new one if the old one is over; its answers are read.
    fn say(&mut self, at: usize, bytes: &[u8]) {
        if self.clients[at].as_ref().is_none_or(|client| client.connection.is_hung_up()) {
            let connection = Connection::connect_at_once(&self.path).ok();
            self.clients[at] = connection.map(|connection| Client { connection, rings: None });
            self.turn();
        }
        let Some(client) = &mut self.clients[at] else { return };
        // One that does not fit is lost.
        rustix::net::send(&client.connection, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            .unwrap_or_default();
        self.turn();
        self.hear(at);
    }

    fn hear(&mut self, at: usize) {
        let Some(client) = &mut self.clients[at] else { return };
        while let Ok(Some(received)) = client.connection.receive() {
            if let Ok([region, doorbell, beat]) = <[OwnedFd; 3]>::try_from(received.fds) {
                client.rings = ends(&region, doorbell, &beat.as_fd()).ok();
            }
        }
    }

    fn turn(&mut self) {
        self.server.turn().expect("it serves");
    }

    /// Asks for something through the ring.
    fn request(&mut self, at: usize, bytes: &mut Bytes<'_>) {
        let Some((sender, receiver)) = self.clients[at].as_mut().and_then(|client| client.rings.as_mut())
        else {
            return;
        };
        let (what, group) = (bytes.byte(), GroupId(bytes.byte().into()));
        let kinds = [GroupKind::Draw, GroupKind::Swap, GroupKind::Sync, GroupKind::Exit];
        let span = Span::from_ns(bytes.long().unwrap_or(1_000));
        let request = match what % 8 {
            0 => Request::Names { group, command: Command::new("glDrawElements") },
            1..=3 => {
                let (finished, frames) =
                    (Time::from_ns(bytes.long().unwrap_or_default()), u32::from(what >> 3));
                Request::Complete { group, finished, cost: span, frames }
            }
            _ => {
                let kind = kinds[usize::from(what >> 3) % kinds.len()];
                Request::Submit { group, kind, estimate: Estimate::new(span) }
            }
        };
        // A full ring, or one that is not read any more.
        let _lost = sender.send(&request);
        while let Ok(Some(_)) = receiver.next_reply() {}
    }

    /// The daemon answers a tool, and says nothing that steers a terminal.
    fn look(&mut self) {
        for question in ["apps", "daemon"] {
            let tool = Connection::connect_at_once(&self.path).expect("it listens");
            let text = format!(r#"{{"ask":"{question}"}}"#);
            tool.send(&Message::Ask { text }, &[]).expect("sent");
            let mut answer = String::new();
            loop {
                self.turn();
                match tool.receive().map(|received| received.expect("it answers").message) {
                    Ok(Message::Answer { text, more }) => {
                        answer.push_str(&text);
                        if !more {
                            break;
                        }
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => {}
                }
            }
            let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
            check(&answer);
            assert!(answer["is"]["broken"].is_null(), "{answer}");
        }
    }
}

/// No text has characters that steer terminals or reorder text.
fn check(answer: &serde_json::Value) {
    match answer {
        serde_json::Value::String(text) => {
            let steers = |c: char| c.is_control() || ('\u{200e}'..='\u{202e}').contains(&c);
            assert!(!text.contains(steers), "{text:?}");
        }
        serde_json::Value::Array(list) => list.iter().for_each(check),
        serde_json::Value::Object(fields) => fields.values().for_each(check),
        _ => {}
    }
}
