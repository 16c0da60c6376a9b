//! Libraries that are loaded into other people's programs stay small.
//!
//! Everything that [`HOOKS`] are built from runs in programs that never asked for it. So each crate
//! in there is listed, and a new one is a decision.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Finding;
use crate::tree::Tree;
use crate::workspace::{Kind, Workspace};

/// The libraries that programs load.
const HOOKS: &[&str] =
    &["takt-hook", "takt-hook-glx", "takt-cuda-hook", "takt-cuda-capi", "takt-slices-hook"];

/// Crates from elsewhere that they may be built from.
const ALLOWED: &[&str] = &[
    "libc",
    // System calls of takt-ipc and takt-os. What errno wants from Windows is not built here.
    "rustix",
    "bitflags",
    "errno",
    "linux-raw-sys",
    "windows-sys",
    "windows-link",
    // Error types of takt-predict; all but the first run in the compiler only.
    "thiserror",
    "thiserror-impl",
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
];

const LOCK: &str = "Cargo.lock";

/// Compares what the library is built from with the list.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let Some(lock) = tree.file(LOCK) else {
        return Vec::new();
    };
    let locked = parse(&lock.text);
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = HOOKS.iter().map(|&hook| hook.to_owned()).collect();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match workspace.package(&name) {
            // The lock file mixes test dependencies in; the manifest tells them apart.
            Some(package) => {
                let used = package.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev);
                open.extend(used.map(|dependency| dependency.name.clone()));
            }
            None => {
                open.extend(locked.get(name.as_str()).into_iter().flatten().map(|name| (*name).to_owned()))
            }
        }
    }
    let foreign = seen.iter().filter(|name| workspace.package(name).is_none());
    foreign
        .filter(|name| !ALLOWED.contains(&name.as_str()))
        .map(|name| {
            let message =
                format!("programs would load {name}, which ALLOWED in xtask/src/loaded.rs does not list");
            Finding::error(LOCK, 1, message)
        })
        .collect()
}

/// Dependencies by crate; versions of one crate are taken together.
fn parse(lock: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut current = "";
    for line in lock.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("name = ") {
            current = name.trim_matches('"');
        } else if let Some(name) = line.strip_prefix('"') {
            let name = name.split(['"', ' ']).next().unwrap_or("");
            all.entry(current).or_default().push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Package};

    #[test]
    fn a_crate_that_sneaks_in_is_named() {
        let lock = "[[package]]\nname = \"libc\"\ndependencies = [\n \"sneaky 1.0.0\",\n]\n\n\
                    [[package]]\nname = \"takt-hook\"\ndependencies = [\n \"libc\",\n \"proptest\",\n]\n";
        let tree = Tree::of(&[(LOCK, lock)]);
        let dependency = |name: &str, kind| Dependency { name: name.to_owned(), kind };
        let package = Package {
            name: HOOKS[0].to_owned(),
            dependencies: vec![dependency("libc", Kind::Normal), dependency("proptest", Kind::Dev)],
            ..Package::default()
        };
        let others = HOOKS[1..].iter().map(|hook| Package { name: (*hook).to_owned(), ..Package::default() });
        let found = check(&Workspace { packages: [package].into_iter().chain(others).collect() }, &tree);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("load sneaky"), "{found:?}");
    }
}
