//! Programs that the compositor starts.

use std::collections::BTreeMap;

use takt_config::{Mistake, mistake};
use takt_core::Span;

use super::file::ClientFile;
use super::{Cockpit, values};

/// Most words of a command.
const WORDS_MAX: usize = 64;

/// A program.
#[derive(Clone, PartialEq, Debug)]
pub struct Client {
    /// Its name, for the daemon as well.
    pub name: String,
    /// Whose socket it gets.
    pub domain: usize,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The display that it draws for, as the daemon calls it.
    pub output: Option<usize>,
    /// Its priority at the daemon.
    pub priority: Option<u32>,
    /// Frames per second that it asks the daemon for, in millihertz.
    pub fps_mhz: Option<u32>,
    /// GPU time that it reserves for each frame.
    pub etpf: Option<Span>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// Whether it is started again when it ends.
    pub restart: bool,
    /// The user that runs it, if it is another one than the compositor's.
    pub user: Option<String>,
}

pub(super) fn check(file: &ClientFile, cockpit: &Cockpit) -> Result<Client, Mistake> {
    let domain = values::index("domain", &file.domain, &cockpit.domains, |domain| &domain.name)?;
    let named = |name: &String| values::index("output", name, &cockpit.outputs, |output| &output.name);
    let output = file.output.as_ref().map(named).transpose()?;
    if file.command.is_empty() || file.command.len() > WORDS_MAX || file.command[0].is_empty() {
        let remedy =
            format!("name a program and its arguments, as in [\"/usr/bin/dial\"], {WORDS_MAX} at most");
        return Err(mistake("command", format!("{:?}", file.command), remedy));
    }
    if file.etpf_ms.is_some() && file.fps.is_none() {
        return Err(mistake(
            "etpf_ms",
            file.etpf_ms.unwrap_or_default(),
            "add fps: it is time for each frame",
        ));
    }
    Ok(Client {
        name: file.name.clone(),
        domain,
        command: file.command.clone(),
        output,
        priority: file.priority,
        fps_mhz: file.fps.map(|fps| values::rate("fps", fps)).transpose()?,
        etpf: file.etpf_ms.map(|ms| values::ms("etpf_ms", ms, 0.0)).transpose()?,
        environment: file.environment.clone(),
        restart: file.restart,
        user: file.user.clone(),
    })
}
