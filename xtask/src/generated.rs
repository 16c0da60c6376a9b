//! Files that xtask writes from sources that are not part of this repository.
//!
//! Tidy cannot compare them with their source, but each carries a checksum by which a change by hand is noticed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tidy::Finding;
use crate::tree::Tree;

/// How the first line of a generated file begins.
pub(crate) const CHECKSUM: &str = "// checksum ";

/// All generated files, and the command that writes each.
pub(crate) const FILES: &[(&str, &str)] = &[
    (crate::gl::ENTRY_POINTS, "cargo xtask gl DIR"),
    (crate::gl::GL, "cargo xtask gl DIR"),
    (crate::gl::EGL, "cargo xtask gl DIR"),
    (crate::gl::GLX, "cargo xtask gl DIR"),
    (crate::cuda::ENTRY_POINTS, "cargo xtask cuda FILE"),
    (crate::cuda::HOOKS, "cargo xtask cuda FILE"),
];

/// Writes a file with its checksum.
pub(crate) fn save(root: &Path, file: &str, body: &str) -> Result<()> {
    fs::write(root.join(file), with_checksum(body)).with_context(|| format!("cannot write {file}"))
}

fn with_checksum(body: &str) -> String {
    format!("{CHECKSUM}{}\n{body}", checksum(body))
}

/// Notices changes by hand.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let changed = |path: &str| {
        let Some(file) = tree.file(path) else { return false };
        let (stated, body) = file.text.split_once('\n').unwrap_or_default();
        stated.strip_prefix(CHECKSUM) != Some(checksum(body).as_str())
    };
    let finding = |(path, command): &(&str, &str)| {
        Finding::error(path, 1, format!("changed by hand: run `{command}` as its crate's README.md says"))
    };
    FILES.iter().filter(|(path, _)| changed(path)).map(finding).collect()
}

/// FNV-1a, which suffices against slips.
fn checksum(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_hand_is_noticed() {
        let (path, _) = FILES[0];
        let text = with_checksum("glDrawArrays(mode: u32, first: i32);\n");
        assert_eq!(check(&Tree::of(&[(path, &text)])), []);
        let changed = text.replace("first: i32", "first: i64");
        assert_eq!(check(&Tree::of(&[(path, &changed)])).len(), 1);
    }
}
