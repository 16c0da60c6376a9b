//! `takt check --config`: a configuration of the daemon, before it is in force.

use std::path::Path;

use serde::Serialize;
use takt_daemon::control::config::{AppReview, AppSettings};
use takt_daemon::control::seal;
use takt_os::files;

use crate::args::CheckArgs;
use crate::table::Table;
use crate::{Answer, output, serve};

/// The answer, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct ConfigVerdict {
    /// The file.
    file: String,
    /// The hash of its text.
    sha256: String,
    /// Whether its signature was checked.
    sealed: bool,
    /// Names of its domains, in the order in which they are tried.
    domains: Vec<String>,
    /// Listed apps, most important first.
    apps: Vec<AppReview>,
    /// What is wrong beyond the file itself.
    problems: Vec<String>,
}

pub(super) fn run(file: &Path, args: &CheckArgs) -> anyhow::Result<Answer> {
    let (settings, from) = serve::from_file(file, args.sealed_by.as_deref())?;
    let verdict = ConfigVerdict {
        file: from.file.display().to_string(),
        sha256: from.sha256,
        sealed: from.sealed,
        domains: settings.domains.iter().map(|domain| domain.name.clone()).collect(),
        apps: settings.review(),
        problems: settings.apps.iter().filter_map(problem).collect(),
    };
    output::json(args.json.as_deref(), &verdict)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&verdict))?;
    }
    let holds = verdict.apps.iter().all(|app| app.covered != Some(false)) && verdict.problems.is_empty();
    Ok(if holds { Answer::Yes } else { Answer::No })
}

/// What is wrong with the executable of a listed app.
fn problem(app: &AppSettings) -> Option<String> {
    let path = app.executable.as_deref()?;
    if let Err(exposed) = files::only_roots(path) {
        return Some(format!("app {}: {exposed}", app.name));
    }
    let listed = app.sha256.as_ref()?;
    match std::fs::read(path).map(|bytes| seal::sha256(&bytes)) {
        Ok(found) if found == *listed => None,
        Ok(found) => Some(format!("app {}: {} has sha256 {found}, not {listed}", app.name, path.display())),
        Err(error) => Some(format!("app {}: {} cannot be read: {error}", app.name, path.display())),
    }
}

fn describe(verdict: &ConfigVerdict) -> String {
    let mut table = Table::new("<app, <domain, <level, priority, <contract, <holds");
    for app in &verdict.apps {
        let holds = match (app.covered, &app.why_not) {
            (Some(false), Some(why)) => format!("NO: {why}"),
            (Some(covered), _) => if covered { "yes" } else { "NO" }.to_owned(),
            (None, _) => "-".to_owned(),
        };
        table.row(vec![
            app.name.clone(),
            app.domain.clone(),
            app.level.name().to_owned(),
            app.priority.to_string(),
            app.contract.clone(),
            holds,
        ]);
    }
    let problems: String = verdict.problems.iter().map(|problem| format!("PROBLEM {problem}\n")).collect();
    let sealed = if verdict.sealed { "sealed" } else { "not sealed" };
    let domains = verdict.domains.join(", ");
    let apps = if verdict.apps.is_empty() { String::new() } else { table.render() };
    format!("{apps}{problems}{}: {sealed}, sha256 {}; domains {domains}\n", verdict.file, verdict.sha256)
}
