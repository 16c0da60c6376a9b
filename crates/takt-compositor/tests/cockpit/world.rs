//! A cockpit for a test, and a daemon that schedules it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use takt_cockpit::config::Cockpit as Config;
use takt_cockpit::windows::ClientId;
use takt_compositor::manager::Entry;
use takt_compositor::output::Capture;
use takt_compositor::sys::DeviceChoice;
use takt_compositor::{Cockpit, Options};
use takt_daemon::control::config::Settings;
use takt_daemon::control::rights::Domains;
use takt_daemon::control::server::Server;

use crate::wayland::{Client, patiently};

/// One output, and one window that does not fill it.
pub(crate) const ONE: &str = "
[[output]]
name = 'center'
size = '200x100'

[[domain]]
name = 'apps'

[[window]]
name = 'app'
domain = 'apps'
app_id = 'app'
output = 'center'
area = '80x60+20+30'
";

/// A path for a socket that no other test has.
pub(crate) fn path(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("takt-cockpit-{name}-{}-{number}", std::process::id()))
}

/// A daemon that ends with the test.
pub(crate) struct Daemon {
    pub(crate) path: PathBuf,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    pub(crate) fn start(name: &str) -> Self {
        let path = path(name);
        // A busy machine keeps clients from reporting in time.
        let settings = Settings::parse("completion_timeout_ms = 60000").expect("settings");
        let mut server = Server::start(path.clone(), settings).expect("a daemon");
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let serve = move || {
            while !until.load(Ordering::Relaxed) {
                server.turn().expect("served");
            }
        };
        let thread = std::thread::Builder::new().name("served".to_owned()).spawn(serve).expect("a thread");
        Self { path, ended, thread: Some(thread) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

/// A cockpit, and what it recorded.
pub(crate) struct World {
    pub(crate) cockpit: Cockpit,
    pub(crate) records: Arc<Mutex<Vec<Entry>>>,
}

impl World {
    /// Without a daemon.
    pub(crate) fn new(config: &str) -> Self {
        Self::scheduled(config, PathBuf::from("/nonexistent/takt"))
    }

    pub(crate) fn scheduled(config: &str, daemon: PathBuf) -> Self {
        Self::with(config, daemon, None, Domains::default())
    }

    pub(crate) fn with(config: &str, daemon: PathBuf, folder: Option<PathBuf>, domains: Domains) -> Self {
        let config = Config::parse(config).unwrap_or_else(|mistake| panic!("{mistake}"));
        let records = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&records);
        let recorder = Box::new(move |entry: &Entry| kept.lock().expect("whole").push(entry.clone()));
        let device = DeviceChoice::Software;
        let options = Options { daemon, device, folder, domains, recorder };
        let cockpit = Cockpit::start(config, options).expect("a cockpit");
        Self { cockpit, records }
    }

    /// A client of a domain.
    pub(crate) fn client(&self, domain: &str) -> Client {
        self.connect(domain).0
    }

    pub(crate) fn connect(&self, domain: &str) -> (Client, ClientId) {
        let domain = self.cockpit.controls().config().domain(domain).expect("a domain");
        let (stream, id) = self.cockpit.controls().connect(domain).expect("a connection");
        (Client::new(stream), id)
    }

    pub(crate) fn capture(&self, output: usize) -> Capture {
        self.cockpit.controls().capture(output, None).expect("a capture")
    }

    /// Waits for a record that fits.
    pub(crate) fn recorded(&self, what: &str, fits: impl Fn(&Entry) -> bool) -> Entry {
        patiently(what, || self.records.lock().expect("whole").iter().find(|entry| fits(entry)).cloned())
    }
}

/// The colour of a pixel as 0xRRGGBB.
pub(crate) fn pixel(capture: &Capture, x: i32, y: i32) -> u32 {
    let at = usize::try_from((y * capture.size.width + x) * 4).expect("inside");
    let bytes = &capture.bytes[at..at + 3];
    u32::from(bytes[0]) << 16 | u32::from(bytes[1]) << 8 | u32::from(bytes[2])
}
