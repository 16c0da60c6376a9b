//! Domains: who may connect, with which shells, and how much they may use.

use serde::Deserialize;
use takt_config::{Mistake, mistake};

use super::file::DomainFile;
use super::values;

/// Most clients of a domain, whatever the file says.
const CLIENTS_MAX: usize = 64;
/// Most surfaces of a client, whatever the file says.
const SURFACES_MAX: usize = 1024;
/// Most memory of a client's pictures in mebibytes, whatever the file says.
const MEMORY_MIB_MAX: u64 = 16_384;

/// How clients make windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// `xdg_wm_base`.
    Xdg,
    /// `ivi_application`.
    Ivi,
}

/// A domain.
#[derive(Clone, PartialEq, Debug)]
pub struct Domain {
    /// Its name: that of its socket, and of the domain of the daemon whose clients may connect.
    pub name: String,
    /// Shells that it is offered.
    pub shells: Vec<Shell>,
    /// Most clients at once.
    pub clients_max: usize,
    /// Most surfaces of a client.
    pub surfaces_max: usize,
    /// Most bytes of pictures of a client, in its own memory and in that of the compositor.
    pub memory_max: u64,
}

pub(super) fn check(file: &DomainFile) -> Result<Domain, Mistake> {
    let shells = file.shells.clone().unwrap_or_else(|| vec![Shell::Xdg]);
    if shells.is_empty() {
        return Err(mistake("shells", "[]", "use \"xdg\", \"ivi\" or both"));
    }
    let memory_mib = file.memory_mib_max.unwrap_or(256);
    if !(1..=MEMORY_MIB_MAX).contains(&memory_mib) {
        return Err(mistake("memory_mib_max", memory_mib, format!("use 1 to {MEMORY_MIB_MAX}")));
    }
    Ok(Domain {
        name: file.name.clone(),
        shells,
        clients_max: values::count("clients_max", file.clients_max.unwrap_or(16), CLIENTS_MAX)?,
        surfaces_max: values::count("surfaces_max", file.surfaces_max.unwrap_or(64), SURFACES_MAX)?,
        memory_max: memory_mib << 20,
    })
}
