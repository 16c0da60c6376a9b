//! The state of the vehicle, and configurations that wait for one.

use takt_ipc::name;

use super::Server;
use crate::control::ask::{Answer, PolicyAnswer};
use crate::control::config::{Effective, Settings};
use crate::control::seal::Provenance;
use crate::observe::journal::Entry;

/// The state of the vehicle, and what depends on it.
#[derive(Debug, Default)]
pub(super) struct Vehicle {
    /// The state that a tool told last.
    pub(super) state: Option<String>,
    /// Where the configuration in force came from.
    pub(super) provenance: Option<Provenance>,
    /// A configuration that waits for a state, and where it came from.
    pub(super) waiting: Option<(Box<Settings>, Provenance)>,
}

impl Vehicle {
    pub(super) fn answer(&self) -> PolicyAnswer {
        let from = self.provenance.as_ref();
        PolicyAnswer {
            file: from.map(|from| from.file.to_string_lossy().into_owned()),
            sha256: from.map(|from| from.sha256.clone()),
            sealed: from.is_some_and(|from| from.sealed),
            state: self.state.clone(),
            waiting_sha256: self.waiting.as_ref().map(|(_, from)| from.sha256.clone()),
        }
    }
}

impl Server {
    /// Notes where the configuration came from that the server started with.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.tell_provenance(&provenance, None);
        self.vehicle.provenance = Some(provenance);
        self.prepare_hashes();
        self
    }

    /// Takes another configuration: at once, or in the state that the one in force names for that. Only the
    /// last one that waits counts.
    pub fn renew_from(&mut self, settings: Settings, provenance: Provenance) {
        let wanted = match &self.settings.effective {
            Effective::Reload => None,
            Effective::State(state) => Some(state.clone()),
        };
        if wanted.is_some() && wanted != self.vehicle.state {
            self.tell_provenance(&provenance, wanted.as_deref());
            self.vehicle.waiting = Some((Box::new(settings), provenance));
            return;
        }
        self.vehicle.waiting = None;
        self.take(settings, provenance);
    }

    fn take(&mut self, settings: Settings, provenance: Provenance) {
        self.tell_provenance(&provenance, None);
        self.vehicle.provenance = Some(provenance);
        self.apply(settings);
        self.prepare_hashes();
    }

    fn tell_provenance(&mut self, provenance: &Provenance, waits_for: Option<&str>) {
        let Provenance { file, sha256, sealed } = provenance;
        let file = file.to_string_lossy();
        self.journal.tell(&Entry::Configured { file: &file, sha256, sealed: *sealed, waits_for });
    }

    /// Has the executables read that the configuration lists by their hashes.
    fn prepare_hashes(&mut self) {
        let listed = self.settings.apps.iter().filter(|app| app.sha256.is_some());
        for path in listed.filter_map(|app| app.executable.as_deref()) {
            self.hashes.prepare(path);
        }
    }

    /// The vehicle is in that state.
    pub(super) fn set_state(&mut self, state: &str) -> Answer {
        if !name::is_name(state) {
            return Answer::refused(format!("no name of a state: use {}", name::ALLOWED));
        }
        self.journal.tell(&Entry::State { before: self.vehicle.state.as_deref(), after: state });
        self.vehicle.state = Some(state.to_owned());
        let awaited = matches!(&self.settings.effective, Effective::State(awaited) if awaited == state);
        if let Some((settings, provenance)) = self.vehicle.waiting.take_if(|_| awaited) {
            self.take(*settings, provenance);
        }
        Answer::Done
    }
}
