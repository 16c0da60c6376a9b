//! What `takt run` asks for, by environment variables.

use std::sync::OnceLock;

use takt_client::environment::Environment;
use takt_ipc::message::Hello;

/// What the variables say.
#[derive(Debug)]
pub struct Settings {
    /// What every layer is told.
    pub environment: Environment,
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings { environment: Environment::read() })
}

impl Settings {
    /// Whether a daemon is to schedule the program.
    pub fn is_scheduled(&self) -> bool {
        self.environment.socket.is_some()
    }

    /// Whether anything at all is wanted.
    pub fn is_wanted(&self) -> bool {
        self.is_scheduled() || self.environment.facts.is_some()
    }

    /// What the app asks the daemon for. The GPU interrupts kernels when the slice of their context is over.
    pub fn hello(&self) -> Hello {
        Hello { divisible: true, ..self.environment.hello.clone() }
    }
}

/// Whether an app has jobs that are judged: it asks for a contract.
pub fn is_contract(hello: &Hello) -> bool {
    hello.period_ns.is_some() || hello.fps_mhz.is_some() || hello.etpf_ns.is_some_and(|ns| ns > 0)
}
