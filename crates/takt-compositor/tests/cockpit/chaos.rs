//! Clients, the daemon and the cockpit are killed in random order, and the frames of an instrument are counted.
//!
//! `TAKT_SLOW_TESTS=1` plays more rounds, and `TAKT_CHAOS_SEED` other ones.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_rng::Rng;

use crate::admin::Tool;
use crate::program::Program;
use crate::wayland::{Client, Feedback, Window, patiently};
use crate::world::path;

const CONFIG: &str = "
[[output]]
name = 'cluster'
size = '200x100'

[[domain]]
name = 'instruments'

[[domain]]
name = 'apps'

[[window]]
name = 'dial'
domain = 'instruments'
app_id = 'dial'
output = 'cluster'
area = '100x100+0+0'
must_be_visible = true

[[window]]
name = 'game'
domain = 'apps'
app_id = 'game'
output = 'cluster'
area = '100x100+100+0'
";

/// What a copy of this program is to be, and with which socket.
const ROLE: &str = "TAKT_TEST_ROLE";
const SOCKET: &str = "TAKT_TEST_SOCKET";
/// Frames of the instrument between two deaths.
const FRAMES: usize = 12;

/// A copy of this program, which is killed in the end.
pub(crate) struct Twin(Child);

impl Twin {
    pub(crate) fn start(role: &str, socket: &Path) -> Self {
        let this = std::env::current_exe().expect("this test");
        let name = "chaos::an_instrument_outlives_clients_daemons_and_cockpits";
        let mut command = Command::new(this);
        command.args(["--exact", name]).env(ROLE, role).env(SOCKET, socket);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.0.kill().expect("it runs, or has ended");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A daemon, until it is killed.
fn serve(socket: PathBuf) -> ! {
    let settings = Settings::parse("completion_timeout_ms = 60000").expect("settings");
    let mut server = Server::start(socket, settings).expect("a daemon");
    loop {
        server.turn().expect("served");
    }
}

/// A game that draws whenever it may, until it is killed or cut.
fn play(socket: &Path) {
    let mut client = Client::new(UnixStream::connect(socket).expect("it listens"));
    let window = client.window("game");
    for colour in 0u32.. {
        let (callback, _) = client.paint(&window.surface, (100, 100), 0xFF00_0000 | colour);
        while !client.heard.done.iter().any(|(number, _)| *number == callback) {
            if client.turn().is_err() {
                return;
            }
        }
        client.heard.done.clear();
    }
}

/// A client that commits without waiting for anything.
fn flood(socket: &Path) {
    let mut client = Client::new(UnixStream::connect(socket).expect("it listens"));
    let window = client.window("flood");
    for colour in 0u32.. {
        client.paint(&window.surface, (400, 480), 0xFF00_0000 | colour);
        if client.turn_at_once().is_err() {
            return;
        }
        (client.heard.done, client.heard.feedback) = Default::default();
    }
}

/// The instrument, and what became of its frames.
pub(crate) struct Dial {
    client: Client,
    window: Window,
    size: (i32, i32),
    colour: u32,
    /// Refreshes at which its frames were seen.
    pub(crate) seen: Vec<u64>,
    /// Refreshes between them at which none was.
    pub(crate) lost: u64,
}

impl Dial {
    fn new(folder: &Path) -> Self {
        Self::sized(folder, (100, 100))
    }

    pub(crate) fn sized(folder: &Path, size: (i32, i32)) -> Self {
        let mut client = Client::new(UnixStream::connect(folder.join("instruments")).expect("it listens"));
        let window = client.window("dial");
        Self { client, window, size, colour: 0, seen: Vec::new(), lost: 0 }
    }

    /// What was counted does not count.
    pub(crate) fn forget(&mut self) {
        self.seen.truncate(0);
        self.lost = 0;
    }

    /// Draws a frame for each refresh; every one is seen, or the connection ends.
    pub(crate) fn draw(&mut self, frames: usize) {
        let mut waiting = Vec::new();
        for _ in 0..frames {
            self.colour = self.colour % 255 + 1;
            let (callback, feedback) =
                self.client.paint(&self.window.surface, self.size, 0xFF00_0000 | self.colour);
            waiting.push(feedback);
            self.client
                .until("it may draw", |heard| heard.done.iter().any(|(number, _)| *number == callback));
        }
        for feedback in waiting {
            self.client.until("told", |heard| heard.feedback.contains_key(&feedback));
            let Feedback::Presented { sequence, .. } = self.client.heard.feedback[&feedback] else {
                panic!("a frame of the instrument was not seen: {:?}", self.client.heard);
            };
            if let Some(last) = self.seen.last() {
                assert!(sequence > *last, "frames are seen in order, and once");
                self.lost += sequence - last - 1;
            }
            self.seen.push(sequence);
        }
        (self.client.heard.done, self.client.heard.feedback) = Default::default();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says how many frames were lost")]
fn an_instrument_outlives_clients_daemons_and_cockpits() {
    if let (Some(role), Some(socket)) = (std::env::var_os(ROLE), std::env::var_os(SOCKET)) {
        match role.to_str() {
            Some("daemon") => serve(socket.into()),
            Some("flood") => return flood(Path::new(&socket)),
            _ => return play(Path::new(&socket)),
        }
    }
    let seed = std::env::var("TAKT_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let rounds = if std::env::var_os("TAKT_SLOW_TESTS").is_some() { 60 } else { 6 };
    let mut random = Rng::seeded(seed);
    let socket = path("daemon");
    let mut daemon = Twin::start("daemon", &socket);
    let mut cockpit = Program::with(CONFIG, &["--socket", socket.to_str().expect("text")]);
    let mut game = Twin::start("game", &cockpit.folder.join("apps"));
    let mut dial = Dial::new(&cockpit.folder);
    dial.draw(FRAMES);
    let (mut frames, mut lost, mut deaths) = (0, 0, [0; 3]);
    for _ in 0..rounds {
        let who = random.below(3);
        deaths[usize::try_from(who).expect("small")] += 1;
        match who {
            0 => {
                game.kill();
                dial.draw(FRAMES);
                game = Twin::start("game", &cockpit.folder.join("apps"));
            }
            1 => {
                daemon.kill();
                dial.draw(FRAMES);
                daemon = Twin::start("daemon", &socket);
            }
            _ => {
                cockpit.restart();
                dial.client.until_cut();
                (frames, lost) = (frames + dial.seen.len(), lost + dial.lost);
                dial = Dial::new(&cockpit.folder);
                game.kill();
                game = Twin::start("game", &cockpit.folder.join("apps"));
            }
        }
        dial.draw(FRAMES);
    }
    let mut tool = Tool::new(&cockpit.folder);
    patiently("all is as it was", || {
        let status = tool.status();
        (status.outputs[0].windows == ["game", "dial"] && status.clients == 2).then_some(())
    });
    (frames, lost) = (frames + dial.seen.len(), lost + dial.lost);
    eprintln!("seed {seed}: {deaths:?} deaths of games, daemons and cockpits");
    eprintln!("{frames} frames of the instrument, {lost} refreshes without a new one");
    assert!(frames > rounds * FRAMES);
    drop((game, daemon));
    std::fs::remove_file(socket).unwrap_or_default();
}
