//! The configuration of the daemon under attack: that of a user with apps that matter.
//!
//! It lists domains, supervises the victim, keeps a share of the GPU for a game, and records all decisions.

use std::path::{Path, PathBuf};

use takt_daemon::control::server::Server;

use crate::support::BEARS;

/// The user of the apps that matter.
pub(crate) const LISTED: u32 = 42_000;
/// The user of the domain with a minimum share.
pub(crate) const PLAYER: u32 = 42_001;
/// Its domain.
pub(crate) const GAME: &str = "game";

const CONFIG: &str = r#"
[[domain]]
name = "cluster"
user = 42000
level = "safety-critical"

[[domain]]
name = "game"
user = 42001
share_min = 0.2

[[app]]
name = "victim"
domain = "cluster"
priority = 90
fps = 60
etpf_ms = 2
silence_ms_max = 2000
on_silence = "tell"

[[app]]
name = "listed"
domain = "cluster"
priority = 80
fps = 60
etpf_ms = 1
"#;

/// What is special in an attack.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setting {
    /// Before the sections of the configuration.
    pub(crate) more: &'static str,
    /// In the section of the audit.
    pub(crate) audit: &'static str,
    /// Done to the daemon before it serves.
    pub(crate) prepare: Option<fn(&mut Server)>,
}

impl Setting {
    /// The configuration, with the audit in that folder.
    pub(crate) fn config(&self, folder: &Path) -> String {
        let audit = format!("[audit]\nfolder = '{}'\n{}", folder.display(), self.audit);
        [BEARS, self.more, CONFIG, &audit].concat()
    }
}

/// A folder of an audit that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// An empty place of that name.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("takt-{name}-audit-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
