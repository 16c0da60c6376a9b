//! Documents that hold together: links, lists of pages, a page for every crate, a short README.

use crate::layers::LAYERS;
use crate::lexer::is_word;
use crate::rust_files::white_space;
use crate::tidy::Finding;
use crate::tree::{File, Tree};
use crate::workspace::Workspace;

/// Lines of a crate's `README.md`, blank ones not counted.
const README_LINES: std::ops::RangeInclusive<usize> = 3..=8;

/// The first page, and how many words a newcomer reads there at most, as `wc -w` counts them.
const FIRST_PAGE: &str = "README.md";
const FIRST_PAGE_WORDS: usize = 700;

/// The book's table of contents. Pages of a folder of documents follow the folder's own page.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The page that says which file does what.
const MAP: &str = "ARCHITECTURE.md";

/// The list of decisions.
const ADR_INDEX: &str = "docs/adr/README.md";
/// Where decisions are kept.
const ADR_FOLDER: &str = "docs/adr/";

/// Checks all documents.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().iter().filter(|file| file.is_markdown()) {
        findings.extend(white_space(&file.path, &file.text));
        findings.extend(check_links(file, tree));
        findings.extend(check_sources(file, tree));
    }
    findings.extend(check_decisions(tree));
    findings.extend(check_summary(tree));
    findings.extend(check_first_page(tree));
    findings.extend(check_map(tree));
    for package in &workspace.packages {
        if package.name != "xtask" && LAYERS.iter().any(|layer| layer.name == package.name) {
            findings.extend(check_readme(package.folder(), tree));
        }
    }
    findings
}

fn check_readme(folder: &str, tree: &Tree) -> Option<Finding> {
    let path = format!("{folder}/README.md");
    let Some(file) = tree.file(&path) else {
        let message = "README.md is missing: say what the crate is and what it must not depend on";
        return Some(Finding::error(&path, 1, message));
    };
    let lines = file.text.lines().filter(|line| !line.trim().is_empty()).count();
    let message = || format!("{lines} lines that are not blank, wanted {README_LINES:?}");
    (!README_LINES.contains(&lines)).then(|| Finding::error(&path, 1, message()))
}

fn check_first_page(tree: &Tree) -> Option<Finding> {
    let words = tree.file(FIRST_PAGE)?.text.split_whitespace().count();
    let message = || format!("{words} words, wanted {FIRST_PAGE_WORDS} at most: move the rest to docs");
    (words > FIRST_PAGE_WORDS).then(|| Finding::error(FIRST_PAGE, 1, message()))
}

/// Every page at the top, in docs and in the first level of folders below is in the book.
fn check_summary(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.file(SUMMARY) else { return Vec::new() };
    let listed: Vec<String> =
        links(summary).iter().filter_map(|link| resolve(SUMMARY, &link.target)).collect();
    let is_wanted = |path: &str| {
        let below = path.strip_prefix("docs/").unwrap_or(path);
        !below.contains('/')
            || (below != path && below.ends_with("/README.md") && below.matches('/').count() == 1)
    };
    let pages = tree.files().iter().filter(|file| file.is_markdown() && file.path != SUMMARY);
    let missing = pages.filter(|file| is_wanted(&file.path) && !listed.contains(&file.path));
    missing.map(|file| Finding::error(SUMMARY, 1, format!("{} is not listed", file.path))).collect()
}

/// Every source file that the map names is there, below the top or below `crates`, and has the names that the map
/// puts behind it in parentheses, or before it with "in" or "of".
fn check_map(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.file(MAP) else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, line) in map.text.lines().enumerate() {
        let mut error = |message: String| findings.push(Finding::error(MAP, index + 1, message));
        // Code spans are every second part between backticks.
        let parts: Vec<&str> = line.split('`').collect();
        let mut inside = None;
        for (at, span) in parts.iter().enumerate().skip(1).step_by(2) {
            let (before, after) = (parts[at - 1], parts.get(at + 1).copied().unwrap_or_default());
            if before.contains(')') {
                inside = None;
            }
            if span.contains("/src/") {
                inside = None;
                let file = tree.file(span).or_else(|| tree.file(&format!("crates/{span}")));
                let Some(file) = file else {
                    if !tree.exists(span) && !tree.exists(&format!("crates/{span}")) {
                        error(format!("there is no {span}"));
                    }
                    continue;
                };
                let name = parts.get(at.wrapping_sub(2)).filter(|_| [" in ", " of "].contains(&before));
                if let Some(name) = name.filter(|name| !has_name(file, name)) {
                    error(format!("{span} has no {name}"));
                }
                inside = (after == " (").then_some(file);
            } else if let Some(file) = inside.filter(|file| !has_name(file, span)) {
                error(format!("{} has no {span}", file.path));
            }
        }
    }
    findings
}

/// Every source file that a page names from the top is there.
fn check_sources(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // Code spans are every second part between backticks.
        for span in line.split('`').skip(1).step_by(2) {
            let source =
                span.starts_with("crates/") && span.ends_with(".rs") && !span.contains(['*', ' ', '{']);
            if source && !tree.exists(span) {
                findings.push(Finding::error(&file.path, index + 1, format!("there is no {span}")));
            }
        }
    }
    findings
}

/// Whether a file has the last part of a path such as `Session::pace`; commands are no names.
fn has_name(file: &File, path: &str) -> bool {
    let name = path.rsplit("::").next().unwrap_or(path);
    name.contains(' ') || file.text.split(|letter| !is_word(letter)).any(|word| word == name)
}

/// Every decision is listed, and no two have the same number.
fn check_decisions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed: Vec<String> =
        tree.file(ADR_INDEX).map(links).into_iter().flatten().map(|link| link.target).collect();
    let mut numbers = Vec::new();
    for file in tree.files() {
        let Some(name) = file.path.strip_prefix(ADR_FOLDER).filter(|name| *name != "README.md") else {
            continue;
        };
        if !listed.iter().any(|target| target == name) {
            findings.push(Finding::error(ADR_INDEX, 1, format!("{name} is not listed")));
        }
        let number = name.split('-').next().unwrap_or("");
        if number.len() != 4 || number.parse::<u32>().is_err() {
            findings.push(Finding::error(&file.path, 1, "the name must begin with a number of four digits"));
        } else if numbers.contains(&number) {
            findings.push(Finding::error(&file.path, 1, format!("number {number} is taken")));
        }
        numbers.push(number);
    }
    findings
}

fn check_links(file: &File, tree: &Tree) -> Vec<Finding> {
    let problem = |link: &Link| {
        let target = link.target.as_str();
        let outside = target.contains("://") || target.starts_with("mailto:");
        if outside { None } else { broken(file, target, tree) }
    };
    let found = links(file).into_iter();
    found
        .filter_map(|link| problem(&link).map(|message| Finding::error(&file.path, link.line, message)))
        .collect()
}

/// Why a relative link leads nowhere.
fn broken(file: &File, target: &str, tree: &Tree) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = resolve(&file.path, path) else {
        return Some(format!("link {target} leads out of the repository"));
    };
    if !tree.exists(&path) {
        return Some(format!("link {target} leads nowhere: there is no {path}"));
    }
    let page = tree.file(&path).filter(|page| page.is_markdown() && !anchor.is_empty())?;
    let known = headings(&page.text).iter().any(|heading| heading == anchor);
    (!known).then(|| format!("link {target} leads nowhere: {path} has no heading #{anchor}"))
}

/// A path in the repository, as seen from the page at `from`.
fn resolve(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Link {
    line: usize,
    target: String,
}

/// All links and images of a page: `[text](target)` and `[name]: target`.
fn links(file: &File) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, text) in plain_lines(&file.text) {
        let mut push = |target: &str| {
            let target = target.split_whitespace().next().unwrap_or("");
            let target = target.trim_matches(['<', '>']).to_owned();
            links.push(Link { line, target });
        };
        if let Some((_, target)) = text.split_once("]: ").filter(|(name, _)| name.starts_with('[')) {
            push(target);
        }
        for part in text.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                push(target);
            }
        }
    }
    links
}

/// The lines outside code blocks with their numbers, code spans blanked.
pub(crate) fn plain_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                // Code spans are every second part between backticks.
                let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
                lines.push((index + 1, plain));
            }
        }
    }
    lines
}

/// The anchors of a page's headings, as the usual renderers make them.
fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        anchors.push(kept.collect::<String>().to_lowercase().replace(' ', "-"));
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let mut findings: Vec<Finding> =
            tree.files().iter().flat_map(|file| check_links(file, &tree)).collect();
        findings.extend(check_decisions(&tree));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_must_lead_somewhere() {
        let files =
            [("docs/a.md", "see\n[b](b.md) and [c](../c.md#two-words) [d](d/) [e](/x) ![f](f.svg)\n")];
        assert_eq!(
            found(&files),
            [
                "docs/a.md:2: error: link b.md leads nowhere: there is no docs/b.md",
                "docs/a.md:2: error: link ../c.md#two-words leads nowhere: there is no c.md",
                "docs/a.md:2: error: link d/ leads nowhere: there is no docs/d",
                "docs/a.md:2: error: link /x leads out of the repository",
                "docs/a.md:2: error: link f.svg leads nowhere: there is no docs/f.svg",
            ]
        );
        let mut whole = files.to_vec();
        whole[0].1 = "[b](b.md) and [c](../c.md#two-words) [d](d/)\n[g]: b.md\n";
        whole.extend([("docs/b.md", ""), ("c.md", "# Two `words`\n"), ("docs/d/x.md", "")]);
        assert!(found(&whole).is_empty());
    }

    #[test]
    fn anchors_must_exist() {
        let text = "# A title: yes\n[x](#a-title-yes) [y](#gone)\n```\n# gone\n```\n";
        assert_eq!(
            found(&[("a.md", text)]),
            ["a.md:2: error: link #gone leads nowhere: a.md has no heading #gone"]
        );
    }

    #[test]
    fn code_and_the_outside_are_not_followed() {
        let text = "`[a](b)` [c](https://example.org/x) ``\n```text\n[a](b)\n```\n";
        assert!(found(&[("a.md", text)]).is_empty());
    }

    #[test]
    fn decisions_are_listed_and_numbered() {
        let index = (ADR_INDEX, "[1](0001-a.md)\n");
        assert!(found(&[index, ("docs/adr/0001-a.md", "")]).is_empty());
        let bad =
            found(&[index, ("docs/adr/0001-a.md", ""), ("docs/adr/0001-b.md", ""), ("docs/adr/x.md", "")]);
        assert_eq!(
            bad,
            [
                "docs/adr/README.md:1: error: 0001-b.md is not listed",
                "docs/adr/0001-b.md:1: error: number 0001 is taken",
                "docs/adr/README.md:1: error: x.md is not listed",
                "docs/adr/x.md:1: error: the name must begin with a number of four digits",
            ]
        );
    }

    #[test]
    fn the_book_has_every_page() {
        let page = |path| (path, "");
        let pages = ["a.md", "docs/b.md", "docs/c/README.md", "docs/c/d.md", "crates/e/README.md"].map(page);
        let listed = |summary| {
            let mut files = pages.to_vec();
            files.push((SUMMARY, summary));
            check_summary(&Tree::of(&files)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(listed("[a](../a.md)\n- [b](b.md)\n- [c](c/README.md)\n").is_empty());
        assert_eq!(
            listed("[a](../a.md)\n"),
            [
                "docs/SUMMARY.md:1: error: docs/b.md is not listed",
                "docs/SUMMARY.md:1: error: docs/c/README.md is not listed",
            ]
        );
    }

    #[test]
    fn the_map_names_files_that_are_there() {
        let text = "`a/src/b.rs`, `xtask/src/c.rs`\n| x | `a/src/gone.rs` |\n\
                    `a/src/b.rs` (`turn`, `lost`); `A::turn` in `a/src/b.rs`, `lost` of `a/src/b.rs`\n";
        let files = [(MAP, text), ("crates/a/src/b.rs", "fn turn() {}"), ("xtask/src/c.rs", "")];
        let found: Vec<String> = check_map(&Tree::of(&files)).iter().map(ToString::to_string).collect();
        let wanted = [
            "ARCHITECTURE.md:2: error: there is no a/src/gone.rs",
            "ARCHITECTURE.md:3: error: crates/a/src/b.rs has no lost",
            "ARCHITECTURE.md:3: error: a/src/b.rs has no lost",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn pages_name_sources_that_are_there() {
        let page =
            ("docs/a.md", "x\n`crates/a/src/b.rs` `crates/a/src/gone.rs` `crates/*/src/c.rs` `d.rs`\n");
        let tree = Tree::of(&[page, ("crates/a/src/b.rs", "")]);
        let found = check_sources(tree.file("docs/a.md").expect("the page"), &tree);
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["docs/a.md:2: error: there is no crates/a/src/gone.rs"]
        );
    }

    #[test]
    fn the_first_page_is_short() {
        let words = |count| check_first_page(&Tree::of(&[(FIRST_PAGE, &"word ".repeat(count))]));
        assert_eq!(words(FIRST_PAGE_WORDS), None);
        assert!(words(FIRST_PAGE_WORDS + 1).is_some());
    }

    #[test]
    fn every_crate_has_a_short_page() {
        let tree = Tree::of(&[("a/README.md", "# A\n\nOne.\nTwo.\n"), ("b/README.md", "# B\n")]);
        assert_eq!(check_readme("a", &tree), None);
        assert!(check_readme("b", &tree).is_some());
        assert!(check_readme("c", &tree).is_some());
    }
}
