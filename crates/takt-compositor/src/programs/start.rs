//! One start of a program: what it executes, as whom, and with which surroundings.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use takt_cockpit::config::Client;
use takt_os::descriptors;
use takt_os::users::{self, Account};

use super::Surroundings;
use crate::sys;

/// Variables that are about this process, and not about those that it starts.
const OWN: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "WAYLAND_SOCKET",
];

/// The user that a section wants, if it is another one than this process has.
pub(super) fn account(client: &Client) -> Result<Option<Account>, String> {
    let Some(name) = &client.user else {
        return Ok(None);
    };
    let account =
        users::account(name).ok_or_else(|| format!("user = {name}: there is no such user in /etc/passwd"))?;
    let own = rustix::process::geteuid();
    if own.as_raw() == account.uid {
        return Ok(None);
    }
    match own.is_root() {
        true => Ok(Some(account)),
        false => Err(format!("user = {name}: only root starts programs of other users: remove it")),
    }
}

/// Starts a program for the socket of that domain.
pub(super) fn start(client: &Client, domain: &str, surroundings: &Surroundings) -> std::io::Result<Child> {
    let account = account(client).map_err(std::io::Error::other)?;
    let words = words(client, surroundings);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).process_group(0);
    // What programs print goes where the cockpit's own output goes, and not among its records.
    let printed = std::io::stdout();
    command.stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(printed);
    for name in OWN {
        command.env_remove(name);
    }
    if let Some(account) = &account {
        let runtime = format!("/run/user/{}", account.uid);
        command.env("HOME", &account.home).env("USER", &account.name).env("LOGNAME", &account.name);
        match Path::new(&runtime).is_dir() {
            true => command.env("XDG_RUNTIME_DIR", runtime),
            false => command.env_remove("XDG_RUNTIME_DIR"),
        };
    }
    command.env("PATH", search_path()).envs(&client.environment);
    command.env("WAYLAND_DISPLAY", std::path::absolute(surroundings.folder.join(domain))?);
    sys::prepare(&mut command, account.as_ref());
    // Libraries may have opened files without a word about programs that are started.
    descriptors::close_on_exec()?;
    command.spawn()
}

/// What is executed: the program under Takt, or the program alone.
fn words(client: &Client, surroundings: &Surroundings) -> Vec<OsString> {
    let program = client.command.iter().map(OsString::from);
    let Some(takt) = &surroundings.takt else {
        return program.collect();
    };
    let mut words: Vec<OsString> = vec![takt.into(), "run".into(), "--schedule".into(), "--name".into()];
    words.push((&client.name).into());
    words.extend(["--socket".into(), surroundings.daemon.clone().into_os_string()]);
    let terms = [
        ("--priority", client.priority.map(|priority| priority.to_string())),
        ("--fps", client.fps_mhz.map(|mhz| (f64::from(mhz) / 1000.0).to_string())),
        ("--etpf-ms", client.etpf.map(|etpf| (etpf.as_ns() as f64 / 1e6).to_string())),
        ("--display", client.output.and_then(|output| surroundings.displays.get(output).cloned())),
    ];
    for (name, value) in terms {
        if let Some(value) = value {
            words.extend([name.into(), value.into()]);
        }
    }
    words.push("--".into());
    words.into_iter().chain(program).collect()
}

/// Where programs are looked for: as this process does, and then beside its own file.
fn search_path() -> OsString {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&given).chain(beside());
    std::env::join_paths(all).unwrap_or(given)
}

/// Folders beside the file of this process: where it is, and where packages put what comes with it.
fn beside() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok();
    let folder = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let packaged = folder.as_ref().and_then(|folder| folder.parent()).map(|above| above.join("lib/takt"));
    folder.into_iter().chain(packaged).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// The `takt` command: beside the file of this process, else in `PATH`.
pub(super) fn takt() -> Option<PathBuf> {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside().into_iter().take(1).chain(std::env::split_paths(&given));
    folders.map(|folder| folder.join("takt")).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_cockpit::config::Cockpit;

    #[test]
    fn programs_run_under_takt_on_their_terms() {
        let config = Cockpit::parse(
            "[[output]]\nname='cluster'\nsize='8x8'\n[[domain]]\nname='apps'\n\
             [[client]]\nname='dial'\ndomain='apps'\ncommand=['takt-speedometer','--fps','60']\n\
             output='cluster'\npriority=80\nfps=59.94\netpf_ms=2.5\n\
             [[client]]\nname='game'\ndomain='apps'\ncommand=['game']\n",
        )
        .expect("fine");
        let mut surroundings = Surroundings {
            folder: "/run/x".into(),
            daemon: "/run/takt/control".into(),
            takt: Some("/usr/bin/takt".into()),
            displays: vec!["cluster".to_owned()],
        };
        let said = |index: usize, surroundings: &Surroundings| {
            let client = &config.clients[index];
            let words = words(client, surroundings);
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            said(0, &surroundings),
            "/usr/bin/takt run --schedule --name dial --socket /run/takt/control --priority 80 --fps 59.94 \
             --etpf-ms 2.5 --display cluster -- takt-speedometer --fps 60"
        );
        let game = "/usr/bin/takt run --schedule --name game --socket /run/takt/control -- game";
        assert_eq!(said(1, &surroundings), game);
        surroundings.takt = None;
        assert_eq!(said(1, &surroundings), "game");
    }
}
