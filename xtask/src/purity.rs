//! Pure crates do not reach the outside world.
//!
//! Same inputs, same outputs holds only if nothing else comes in. So a pure crate must not name
//! the parts of the standard library that read clocks, files, the environment or the network, or
//! that start threads or processes. Tests may: items under `#[cfg(test)]`, the files of modules
//! declared so, and everything outside `src/`.
//!
//! The check reads names, not meanings: it expands `use` trees and refuses globs and new names
//! for the modules in question, so a plain search of the rest suffices.

use crate::layers::Layer;
use crate::lexer::{Source, find_words, is_word, line_at};
use crate::tidy::Finding;
use crate::tree::{File, Tree};
use crate::workspace::Workspace;

/// What pure code must not name.
const BANNED: &[(&str, &str)] = &[
    ("std::fs", "files belong to the caller"),
    ("std::env", "settings are arguments"),
    ("std::net", "there is no network here"),
    ("std::os", "there is no operating system here"),
    ("std::process", "there are no processes here"),
    ("std::thread", "there are no threads here"),
    ("time::Instant", "time is an argument"),
    ("time::SystemTime", "time is an argument"),
    ("io::stdin", "input is an argument"),
    ("io::stdout", "write into an `impl Write`"),
    ("io::stderr", "write into an `impl Write`"),
    ("RandomState", "randomness comes from a seed"),
];

/// Modules that must keep their names, because the search above relies on them.
const NAMED: &[&str] = &["std", "std::time", "std::io"];

/// Checks the sources of all pure crates.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let pure = |name: &str| Layer::of(name).is_some_and(|layer| layer.pure);
    let packages = workspace.packages.iter().filter(|package| pure(&package.name));
    let mut findings = Vec::new();
    for package in packages {
        let sources = format!("{}/src/", package.folder());
        let inside = |file: &&File| file.is_rust() && file.path.starts_with(&sources);
        let files: Vec<&File> = tree.files().iter().filter(inside).collect();
        findings.extend(check_sources(&files));
    }
    findings
}

/// Checks the files of one crate's `src/`.
fn check_sources(files: &[&File]) -> Vec<Finding> {
    let mut test_only = Vec::new();
    let mut sources = Vec::new();
    for file in files {
        let (code, modules) = without_tests(&Source::new(&file.text).code);
        test_only.extend(modules.iter().flat_map(|module| module_paths(&file.path, module)));
        sources.push((file.path.as_str(), code));
    }
    sources.retain(|(path, _)| {
        let under =
            |place: &String| path == place || (place.ends_with('/') && path.starts_with(place.as_str()));
        !test_only.iter().any(under)
    });
    sources.iter().flat_map(|(path, code)| check_code(path, code)).collect()
}

/// Where the file of a module declared in `parent` can be: `a.rs`, `a/mod.rs`, and all below.
fn module_paths(parent: &str, module: &str) -> [String; 2] {
    let (folder, file) = parent.rsplit_once('/').unwrap_or(("", parent));
    let base = match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{module}"),
        _ => format!("{folder}/{}/{module}", file.trim_end_matches(".rs")),
    };
    [format!("{base}.rs"), format!("{base}/")]
}

fn check_code(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |line: usize, name: &str, reason: &str| {
        let message = format!("a pure crate must not name {name}: {reason}");
        findings.push(Finding::error(path, line, message));
    };
    for (banned, reason) in BANNED {
        for at in find_words(code, banned) {
            report(line_at(code, at), banned, reason);
        }
    }
    for at in find_words(code, "use") {
        let line = line_at(code, at);
        let tree = code[at + "use".len()..].split(';').next().unwrap_or("");
        for import in expand("", tree) {
            for (banned, reason) in BANNED {
                if find_words(&import.path, banned).next().is_some() {
                    report(line, banned, reason);
                }
            }
            let module = import.path.trim_end_matches("::*");
            if NAMED.contains(&module) && (import.renamed || import.path.ends_with("::*")) {
                report(line, &import.path, "import what you need by its own name");
            }
        }
    }
    findings
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Import {
    path: String,
    renamed: bool,
}

/// The single imports of a `use` tree.
fn expand(prefix: &str, tree: &str) -> Vec<Import> {
    split_top(tree).into_iter().flat_map(|part| expand_one(prefix, part)).collect()
}

fn expand_one(prefix: &str, part: &str) -> Vec<Import> {
    let part = part.trim();
    if let Some((head, rest)) = part.split_once('{') {
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        return expand(&format!("{prefix}{}", compact(head)), inner);
    }
    if part.is_empty() {
        return Vec::new();
    }
    let (path, renamed) = match part.split_once(" as ") {
        Some((path, _)) => (path, true),
        None => (part, false),
    };
    let path = format!("{prefix}{}", compact(path));
    let path = path.trim_start_matches("::");
    vec![Import { path: path.strip_suffix("::self").unwrap_or(path).to_owned(), renamed }]
}

fn compact(path: &str) -> String {
    path.split_whitespace().collect()
}

/// The parts of a list, split at the commas outside all braces.
fn split_top(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0u32, 0);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

const TEST_ITEM: &str = "#[cfg(test)]";
const TEST_FILE: &str = "#![cfg(test)]";

/// Code with its test items blanked, and the names of test modules that have their own file.
pub(crate) fn without_tests(code: &str) -> (String, Vec<String>) {
    if code.contains(TEST_FILE) {
        return (String::new(), Vec::new());
    }
    let (mut kept, mut modules, mut rest) = (String::new(), Vec::new(), code);
    while let Some(at) = rest.find(TEST_ITEM) {
        let item = &rest[at..];
        let length = item_length(item);
        kept.push_str(&rest[..at]);
        kept.extend(item[..length].chars().filter(|character| *character == '\n'));
        modules.extend(module_name(&item[TEST_ITEM.len()..length]));
        rest = &item[length..];
    }
    kept.push_str(rest);
    (kept, modules)
}

/// Bytes from an item's first attribute to its closing brace or semicolon.
fn item_length(item: &str) -> usize {
    let mut depth = 0u32;
    for (at, character) in item.char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && character == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// The name in `mod name;`.
fn module_name(item: &str) -> Option<String> {
    let at = find_words(item, "mod").next()?;
    let name = item[at + "mod".len()..].strip_suffix(';')?.trim();
    name.chars().all(is_word).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let files: Vec<&File> = files.iter().collect();
        let mut lines: Vec<String> = check_sources(&files)
            .iter()
            .map(|finding| format!("{}:{}", finding.path, finding.line))
            .collect();
        lines.dedup();
        lines
    }

    #[track_caller]
    fn check(text: &str, lines: &[&str]) {
        assert_eq!(found(&[("c/src/a.rs", text)]), lines, "{text}");
    }

    #[test]
    fn the_outside_world_is_found_however_it_is_named() {
        for text in [
            "use std::fs;",
            "use std::{fmt, fs};",
            "use std::{fmt, time::{Duration, Instant}};",
            "use std::time::{self as t};",
            "use std::time as t;",
            "use std::time::*;",
            "use std as s;",
            "use ::std::thread;",
            "fn f() { time::Instant::now(); }",
            "fn f() { std::process::exit(1) }",
            "fn f() { std::env::var(\"A\"); }",
            "use std::time::SystemTime as Wall;",
            "use std::hash::RandomState;",
            "fn f() { io::stdout(); }",
        ] {
            check(text, &["c/src/a.rs:1"]);
        }
    }

    #[test]
    fn harmless_names_pass() {
        check("use std::time::Duration;\nuse std::{fmt, io::{self, Write}};\n", &[]);
        check("// std::fs\nconst A: &str = \"std::fs\";\nenum Kind { Instant }\n", &[]);
        check("let reuse = env!(\"X\");", &[]);
    }

    #[test]
    fn tests_may_do_what_they_like_and_nothing_after_them() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  use std::fs;\n  fn b() { if x { } }\n}\nuse std::net;\n";
        check(text, &["c/src/a.rs:7"]);
        check("#[cfg(test)]\nuse std::{fs, env};\nuse std::fs;\n", &["c/src/a.rs:3"]);
        check("#[cfg(test)]\n#[expect(x)]\nfn a(b: [u8; 3]) { std::env::args(); }\n", &[]);
        check("#![cfg(test)]\nuse std::fs;", &[]);
        check("#[cfg(not(test))]\nuse std::fs;", &["c/src/a.rs:2"]);
    }

    #[test]
    fn files_of_test_modules_are_exempt_and_only_those() {
        let tests = "use std::fs;";
        let declared = "#[cfg(test)]\nmod tests;\nmod other;\n";
        assert!(found(&[("c/src/lib.rs", declared), ("c/src/tests.rs", tests)]).is_empty());
        assert!(found(&[("c/src/a.rs", declared), ("c/src/a/tests.rs", tests)]).is_empty());
        assert!(found(&[("c/src/a.rs", declared), ("c/src/a/tests/b.rs", tests)]).is_empty());
        let wrong = found(&[("c/src/lib.rs", declared), ("c/src/other.rs", tests)]);
        assert_eq!(wrong, ["c/src/other.rs:1"]);
        let undeclared = found(&[("c/src/lib.rs", "mod tests;"), ("c/src/tests.rs", tests)]);
        assert_eq!(undeclared, ["c/src/tests.rs:1"]);
    }
}
