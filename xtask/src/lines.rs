//! How many lines of Rust each crate has, tests and generated files apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::generated;
use crate::tree::{File, Tree};
use crate::types::without_tests;

/// Lines of one crate.
#[derive(Clone, Copy, Default)]
struct Count {
    source: usize,
    tests: usize,
    generated: usize,
}

/// A table of all crates, and their sum.
pub(crate) fn render(tree: &Tree) -> String {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        let (lines, source) = (file.text.lines().count(), source_lines(file));
        for name in [name(&file.path), "all"] {
            let count = counts.entry(name).or_default();
            if generated::FILES.iter().any(|(path, _)| *path == file.path) {
                count.generated += lines;
            } else {
                count.source += source;
                count.tests += lines - source;
            }
        }
    }
    let all = counts.remove("all").into_iter().map(|count| ("all", count));
    let mut table = format!("{:<20}{:>8}{:>8}{:>10}\n", "crate", "source", "tests", "generated");
    for (name, Count { source, tests, generated }) in counts.into_iter().chain(all) {
        writeln!(table, "{name:<20}{source:>8}{tests:>8}{generated:>10}").expect("a string takes all text");
    }
    table
}

fn name(path: &str) -> &str {
    path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or(path)
}

/// Lines with comments and blanks, up to the tests.
fn source_lines(file: &File) -> usize {
    let is_test = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
    if is_test { 0 } else { without_tests(&file.text).lines().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_generated_files_are_counted_apart() {
        let source = "//! A.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let files = [
            ("crates/a/src/lib.rs", source),
            ("crates/a/tests/it/main.rs", "fn c() {}\n"),
            ("xtask/src/main.rs", "fn d() {}\n"),
            (crate::gl::EGL, "// generated\n"),
        ];
        let rows = [
            "crate                 source   tests generated",
            "a                          3       5         0",
            "takt-gl-api                0       0         1",
            "xtask                      1       0         0",
            "all                        4       5         1",
        ];
        assert_eq!(render(&Tree::of(&files)).lines().collect::<Vec<_>>(), rows);
    }
}
