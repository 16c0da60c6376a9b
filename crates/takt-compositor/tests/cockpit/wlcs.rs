//! The conformance suite of Wayland, where it is installed (Debian: wlcs). With `TAKT_WLCS=1` alone, since most of
//! its cases do not pass yet: docs/cockpit.md says why.
//!
//! Every case passes, or is skipped by the suite because its protocol is not offered, or is listed in
//! `wlcs-failures.txt` with a reason; a listed case that passes is to be taken off the list.
//! `TAKT_WLCS_FILTER` runs some cases only, as `--gtest_filter` has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::admin::Tool;
use crate::program::Program;
use crate::world::path;

const CONFIG: &str = "
[[output]]
name = 'screen'
size = '1600x1200'
refresh_hz = 240
etpf_ms = 1

[[domain]]
name = 'wlcs'
clients_max = 64

[[window]]
name = 'any'
domain = 'wlcs'
app_id = '*'
output = 'screen'
own_size = true
instances_max = 64

[[input]]
name = 'mouse'
kind = 'pointer'

[[input]]
name = 'panel'
kind = 'touch'

[[input]]
name = 'keys'
kind = 'keys'
hands = 0
";

/// Cases that fail, with the reason: a name with `*` for any text, then the reason.
const LISTED: &str = include_str!("wlcs-failures.txt");

fn suite() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let in_folder = |entry: std::fs::DirEntry| entry.path().join("wlcs/wlcs");
    folders.flatten().map(in_folder).find(|path| path.exists())
}

/// What became of each case, from what the suite prints.
fn outcomes(printed: &str) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for line in printed.lines() {
        for (mark, outcome) in
            [("[       OK ] ", "passed"), ("[  FAILED  ] ", "failed"), ("[  SKIPPED ] ", "skipped")]
        {
            if let Some(rest) = line.strip_prefix(mark)
                && let Some(name) = rest.split([' ', ',']).next().filter(|name| name.contains('.'))
            {
                found.insert(name.to_owned(), outcome);
            }
        }
    }
    found
}

fn listed(name: &str) -> bool {
    let patterns =
        LISTED.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    patterns
        .map(|(pattern, _)| takt_cockpit::pattern::Pattern::new(pattern))
        .any(|pattern| pattern.fits(name))
}

#[test]
#[expect(clippy::print_stderr, reason = "says that it was skipped, and how many cases there were")]
fn the_conformance_suite_passes_but_for_what_is_listed() {
    if std::env::var_os("TAKT_WLCS").is_none() {
        return eprintln!("skipped: TAKT_WLCS is not set");
    }
    let Some(suite) = suite() else {
        return eprintln!("skipped: wlcs is not installed");
    };
    let module = path("wlcs.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cockpit/wlcs.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&module).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
    let cockpit = Program::start(CONFIG);
    let parked = Tool::new(&cockpit.folder).ask("{\"ask\":\"motion\",\"motion\":\"parked\"}");
    assert_eq!(parked, takt_cockpit::control::Reply::Done);
    let filter = std::env::var("TAKT_WLCS_FILTER").unwrap_or_else(|_| "*".to_owned());
    let ran = Command::new(suite)
        .arg(&module)
        .arg(format!("--gtest_filter={filter}"))
        .env("TAKT_WLCS_FOLDER", &cockpit.folder)
        .output()
        .expect("it runs");
    std::fs::remove_file(module).expect("there");
    let printed = String::from_utf8_lossy(&ran.stdout);
    if let Some(log) = std::env::var_os("TAKT_WLCS_LOG") {
        std::fs::write(log, format!("{printed}\n{}", String::from_utf8_lossy(&ran.stderr))).expect("written");
    }
    let outcomes = outcomes(&printed);
    let of = |outcome: &'static str| {
        outcomes.iter().filter(move |(_, found)| **found == outcome).map(|(name, _)| name)
    };
    let (passed, failed, skipped) = (of("passed").count(), of("failed").count(), of("skipped").count());
    eprintln!(
        "wlcs: {passed} passed, {failed} failed, {skipped} skipped, since their protocols are not offered"
    );
    let unlisted: Vec<&String> = of("failed").filter(|name| !listed(name)).collect();
    assert!(unlisted.is_empty(), "failed and not listed: {unlisted:#?}");
    assert!(passed > 0, "{:?}: {printed}", ran.status);
    assert!(failed * 20 <= passed + failed, "more than 5 % fail");
}
