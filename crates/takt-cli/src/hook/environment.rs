//! Lists in a program's environment: ours go in front, what is there stays.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the loader looks for libraries.
pub(crate) const PATH: &str = "LD_LIBRARY_PATH";

/// What the loader loads first.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// What goes into the program's environment.
#[derive(Default, Debug)]
pub(super) struct Environment {
    /// Variables of one value.
    pub(super) variables: Vec<(&'static str, OsString)>,
    /// Libraries that are loaded first.
    pub(super) preload: Vec<PathBuf>,
    /// Folders in which libraries are looked for first.
    pub(super) path: Vec<PathBuf>,
}

impl Environment {
    /// All variables to set, with what is there now.
    pub(super) fn variables(self) -> Vec<(&'static str, OsString)> {
        let mut variables = self.variables;
        for (name, ours) in [(PRELOAD, self.preload), (PATH, self.path)] {
            if !ours.is_empty() {
                variables.push((name, in_front(&ours, env::var_os(name).as_deref())));
            }
        }
        variables
    }
}

/// Ours come first, others stay. An empty part would mean the folder that the program is in.
fn in_front(ours: &[PathBuf], others: Option<&OsStr>) -> OsString {
    let others = others.filter(|others| !others.is_empty());
    let others = others.map(|others| env::split_paths(others).collect::<Vec<_>>()).unwrap_or_default();
    let is_other = |part: &&PathBuf| !ours.contains(part);
    let parts = ours.iter().chain(others.iter().filter(is_other)).map(PathBuf::as_path);
    let mut list = OsString::new();
    for (at, part) in parts.map(Path::as_os_str).enumerate() {
        if at > 0 {
            list.push(":");
        }
        list.push(part);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_come_first_and_once() {
        let [cuda, glx] = ["/cache/cuda", "/cache/glx"].map(PathBuf::from);
        let ours = [cuda, glx];
        assert_eq!(in_front(&ours, None), "/cache/cuda:/cache/glx");
        assert_eq!(in_front(&ours[1..], Some(OsStr::new(""))), "/cache/glx");
        assert_eq!(in_front(&ours, Some(OsStr::new("/a:/cache/glx:/b"))), "/cache/cuda:/cache/glx:/a:/b");
        assert_eq!(in_front(&ours[1..], Some(OsStr::new("/a:"))), "/cache/glx:/a:", "the program's own wish");
    }

    #[test]
    fn lists_that_we_have_no_part_in_stay() {
        let variables = Environment { path: vec!["/ours".into()], ..Environment::default() }.variables();
        assert_eq!(variables.len(), 1);
        assert_eq!(variables[0].0, PATH);
    }
}
