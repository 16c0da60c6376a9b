//! The configuration file of a cockpit.
//!
//! ```toml
//! [[output]]
//! name = "cluster"
//! size = "1440x540"
//! refresh_hz = 60
//! etpf_ms = 3.0                 # GPU time that its composition reserves in each frame
//! driver = true
//!
//! [[domain]]
//! name = "instruments"          # one socket for Wayland clients, of this name
//!
//! [[window]]
//! name = "speedometer"
//! domain = "instruments"        # a claim of another domain is refused
//! app_id = "takt-speedometer"
//! output = "cluster"
//! area = "720x540+0+0"
//! must_be_visible = true
//! ```

mod clients;
mod domains;
mod file;
mod inputs;
mod outputs;
#[cfg(test)]
mod tests;
mod values;
mod windows;

use takt_config::{Mistake, mistake};

pub use clients::Client;
pub use domains::{Domain, Shell};
use file::CockpitFile;
pub use inputs::{Hands, Input, Kind};
pub use outputs::Output;
pub use windows::Rule;

/// Most `[[output]]` sections: the daemon knows as many displays.
pub const OUTPUTS_MAX: usize = 4;
/// Most `[[domain]]` sections.
pub const DOMAINS_MAX: usize = 16;
/// Most `[[window]]` sections.
pub const RULES_MAX: usize = 256;
/// Most `[[input]]` sections.
pub const INPUTS_MAX: usize = 32;
/// Most `[[client]]` sections.
pub const CLIENTS_MAX: usize = 64;
/// Largest file.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A checked configuration; `docs/cockpit.md` describes the keys. Sections name each other by their index.
#[derive(Clone, PartialEq, Debug)]
pub struct Cockpit {
    /// Displays.
    pub outputs: Vec<Output>,
    /// Domains.
    pub domains: Vec<Domain>,
    /// Rules of windows; the first that fits counts.
    pub rules: Vec<Rule>,
    /// Input devices.
    pub inputs: Vec<Input>,
    /// Programs to start.
    pub clients: Vec<Client>,
}

impl Cockpit {
    /// Reads a configuration file.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let file: CockpitFile = toml::from_str(text).map_err(|error| Mistake::Syntax(error.to_string()))?;
        file.check().map_err(|mistake| mistake.located(text))
    }

    /// The output of that name, as its index.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|output| output.name == name)
    }

    /// The domain of that name, as its index.
    pub fn domain(&self, name: &str) -> Option<usize> {
        self.domains.iter().position(|domain| domain.name == name)
    }
}

impl CockpitFile {
    fn check(&self) -> Result<Cockpit, Mistake> {
        let outputs = sections("output", &self.output, OUTPUTS_MAX, |file| &file.name, outputs::check)?;
        if outputs.is_empty() {
            return Err(mistake("output", "none", "add an [[output]] section with name and size"));
        }
        let domains = sections("domain", &self.domain, DOMAINS_MAX, |file| &file.name, domains::check)?;
        let mut cockpit =
            Cockpit { outputs, domains, rules: Vec::new(), inputs: Vec::new(), clients: Vec::new() };
        let rule = |file: &_| windows::check(file, &cockpit);
        cockpit.rules = sections("window", &self.window, RULES_MAX, |file| &file.name, rule)?;
        windows::check_together(&cockpit)?;
        let input = |file: &_| inputs::check(file, &cockpit);
        cockpit.inputs = sections("input", &self.input, INPUTS_MAX, |file| &file.name, input)?;
        inputs::check_exits(&cockpit)?;
        let client = |file: &_| clients::check(file, &cockpit);
        cockpit.clients = sections("client", &self.client, CLIENTS_MAX, |file| &file.name, client)?;
        Ok(cockpit)
    }
}

/// Checks all sections of a kind: how many there are, that each has a name of its own, and each by itself.
fn sections<F, T>(
    kind: &'static str,
    files: &[F],
    most: usize,
    name: impl Fn(&F) -> &String,
    check: impl Fn(&F) -> Result<T, Mistake>,
) -> Result<Vec<T>, Mistake> {
    if files.len() > most {
        return Err(mistake(kind, files.len(), format!("use {most} sections at most")));
    }
    let one = |(index, file): (usize, &F)| {
        let twice = files[..index].iter().any(|other| name(other) == name(file));
        let checked = match twice {
            true => Err(mistake("name", name(file), format!("name each {kind} once"))),
            false => values::name(name(file)).and_then(|()| check(file)),
        };
        checked.map_err(|mistake| mistake.within(kind, index, name(file)))
    };
    files.iter().enumerate().map(one).collect()
}
