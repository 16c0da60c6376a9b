//! The map of source files in `ARCHITECTURE.md`: each file of each crate, with the first sentence of its head.
//!
//! The sentence is written once, in the file, so the map cannot say something else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// The crates on the way of a draw, in the order of that way; the map shows all others after them, by name.
const ON_THE_WAY: &[&str] = &[
    "crates/takt-cli",
    "crates/takt-gl",
    "crates/takt-cuda",
    "crates/takt-capi",
    "crates/takt-client",
    "crates/takt-ipc",
    "crates/takt-daemon",
    "crates/takt-core",
    "crates/takt-os",
];

/// The page that prints the map.
const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- files:begin, written by `cargo xtask map --write` -->";
const END: &str = "<!-- files:end -->";

/// The map as Markdown.
pub(crate) fn render(tree: &Tree) -> String {
    let mut map = String::new();
    for folder in folders(tree) {
        let name = folder.strip_prefix("crates/").unwrap_or(&folder).trim_end_matches('/');
        map += &format!("\n### `{name}`\n\n| file | what it does |\n| --- | --- |\n");
        for file in tree.files().iter().filter(|file| is_listed(file, &folder)) {
            let below = file.path.strip_prefix(&folder).unwrap_or(&file.path);
            map += &format!("| `{below}` | {} |\n", sentence(&file.text).replace('|', "\\|"));
        }
    }
    map + "\n"
}

/// The folders of sources of all crates, in the order of the map.
fn folders(tree: &Tree) -> Vec<String> {
    let roots = tree.files().iter().filter_map(|file| file.path.split_once("/src/")).map(|(root, _)| root);
    let is_crate = |root: &&str| *root == "xtask" || root.strip_prefix("crates/").is_some_and(is_name);
    let present: BTreeSet<&str> = roots.filter(is_crate).collect();
    let first = ON_THE_WAY.iter().copied().filter(|root| present.contains(root));
    let others = present.iter().copied().filter(|root| !ON_THE_WAY.contains(root));
    first.chain(others).map(|root| format!("{root}/src/")).collect()
}

fn is_name(path: &str) -> bool {
    !path.contains('/')
}

/// Puts the map between the markers of the page.
pub(crate) fn write(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let page = tree.file(PAGE).with_context(|| format!("there is no {PAGE}"))?;
    let (before, _, after) =
        split(&page.text).with_context(|| format!("{PAGE} lacks the markers {BEGIN} and {END}"))?;
    fs::write(root.join(PAGE), format!("{before}{BEGIN}\n{}{END}{after}", render(&tree)))
        .with_context(|| format!("cannot write {PAGE}"))
}

/// Compares the page with the files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        folders(tree).iter().flat_map(|folder| check_heads(tree, folder)).collect();
    let page = tree.file(PAGE).map_or("", |file| &file.text);
    let Some((before, map, _)) = split(page) else {
        findings.push(Finding::error(PAGE, 1, format!("the map's markers are missing: {BEGIN} and {END}")));
        return findings;
    };
    if map != render(tree) {
        let line = before.lines().count() + 1;
        findings.push(Finding::error(PAGE, line, "the map of files is stale: run `cargo xtask map --write`"));
    }
    findings
}

/// Each listed file says in its head what it does.
fn check_heads(tree: &Tree, folder: &str) -> Vec<Finding> {
    let silent = |file: &&File| is_listed(file, folder) && sentence(&file.text).is_empty();
    let message = "say in a first line with `//!` what the file does; the map shows it";
    tree.files().iter().filter(silent).map(|file| Finding::error(&file.path, 1, message)).collect()
}

/// Whether it is a source of that folder, and no test.
fn is_listed(file: &File, folder: &str) -> bool {
    let below = file.path.strip_prefix(folder);
    below.is_some_and(|below| {
        below.ends_with(".rs") && !below.ends_with("tests.rs") && !below.contains("tests/")
    })
}

/// The first sentence of a file's head, without its links.
fn sentence(text: &str) -> String {
    // Generated files begin with their checksum.
    let own = text.lines().skip_while(|line| line.starts_with(crate::generated::CHECKSUM));
    let head = own.map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph = head.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.match_indices(['.', '?']).map(|(at, _)| at + 1);
    let first = end.into_iter().find(|at| paragraph[*at..].starts_with(' ')).unwrap_or(paragraph.len());
    without_links(&paragraph[..first]).trim_end_matches(['.', ':']).to_owned()
}

/// The text of `[text](target)` and of `[text]`, as rustdoc has it, with the last part of a path.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((inner, after)) = link.split_once(']') else { break };
        plain += before;
        let short = inner.trim_matches('`').rsplit("::").next().unwrap_or(inner);
        plain += &if inner.starts_with('`') { format!("`{short}`") } else { inner.to_owned() };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

/// The page before the map, the map, and the page after it.
fn split(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (map, after) = rest.split_once(END)?;
    Some((before, map.strip_prefix('\n').unwrap_or(map), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_the_first_one_of_the_head() {
        assert_eq!(sentence("//! One, or `a.b`,\n//! more. Two.\n//!\n//! Three.\n"), "One, or `a.b`, more");
        assert_eq!(sentence("//! Which one?\n"), "Which one?");
        assert_eq!(sentence("//! A [`x::Y`] of [text](../a.md) [z]:\n"), "A `Y` of text z");
        assert_eq!(sentence("// checksum 12ab\n//! Every name.\n"), "Every name");
        assert_eq!(sentence("use a;\n"), "");
    }

    #[test]
    fn every_crate_is_on_the_map_and_the_way_of_a_draw_comes_first() {
        let files = [
            "crates/takt-core/src/a.rs",
            "crates/takt-anew/src/b/c.rs",
            "xtask/src/d.rs",
            "fuzz/src/e.rs",
            "crates/takt-anew/tests/fixture/src/f.rs",
        ];
        let map = render(&Tree::of(&files.map(|path| (path, "//! Does it.\n"))));
        let titles: Vec<&str> = map.lines().filter(|line| line.starts_with("###")).collect();
        assert_eq!(titles, ["### `takt-core/src`", "### `takt-anew/src`", "### `xtask/src`"]);
        assert!(map.contains("| `b/c.rs` | Does it |\n") && !map.contains("f.rs"), "{map}");
    }

    #[test]
    fn the_map_follows_the_files() {
        let source = ("crates/takt-core/src/a.rs", "//! What a does.\n");
        let test = ("crates/takt-core/src/a/tests.rs", "use super::*;\n");
        let map = render(&Tree::of(&[source, test]));
        assert!(map.contains("| `a.rs` | What a does |\n") && !map.contains("tests"), "{map}");
        let page = format!("x\n{BEGIN}\n{map}{END}\n");
        assert!(check(&Tree::of(&[source, test, (PAGE, &page)])).is_empty());
        let more = ("crates/takt-core/src/b.rs", "//! What b does.\n");
        let stale = check(&Tree::of(&[source, more, (PAGE, &page)]));
        assert_eq!(stale.len(), 1);
        assert!(stale[0].message.contains("stale"), "{stale:?}");
        let silent = check(&Tree::of(&[source, ("crates/takt-core/src/b.rs", "use a;\n"), (PAGE, &page)]));
        assert!(silent.iter().any(|finding| finding.path.ends_with("b.rs")), "{silent:?}");
        assert_eq!(check(&Tree::of(&[source])).len(), 1, "no markers");
    }
}
