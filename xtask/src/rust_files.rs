//! Size, width, words and attributes of source files.

use crate::layers::Layer;
use crate::lexer::{Source, find_words, line_at};
use crate::tidy::Finding;
use crate::tree::{File, Tree};
use crate::workspace::Workspace;

/// A file of this many lines asks for its seam.
const LINES_WARN: usize = 800;
/// No file is longer, unless it is generated.
const LINES_MAX: usize = 1200;
/// No line is wider, in characters.
const WIDTH_MAX: usize = 120;

/// Files written by a program: size and width do not matter there.
const GENERATED: &[(&str, &str)] = crate::generated::FILES;

/// What must not be left behind, and what to do instead. Split, lest they be found here.
const LEFT_OVERS: &[(&str, &str)] = &[
    (concat!("to", "do!("), "finish it or leave it out"),
    (concat!("unimple", "mented!("), "finish it or leave it out"),
    (concat!("db", "g!("), "take the debug output out"),
    (concat!("FIX", "ME"), "fix it or open an issue"),
    (concat!("XX", "X"), "say what is wrong, or open an issue"),
    (concat!("#[ign", "ore"), "a slow test asks for TAKT_SLOW_TESTS=1, a broken one is mended"),
];

/// Crates that call into drivers or share memory with other processes; each of their unsafe blocks
/// says why it is sound, which clippy demands everywhere.
const TALKS_TO_OTHERS: &[&str] = &[
    "takt-apps",
    "takt-calibrate",
    "takt-capi",
    "takt-cuda",
    "takt-compositor",
    "takt-cuda-api",
    "takt-cuda-capi",
    "takt-cuda-fake",
    "takt-cuda-hook",
    "takt-gl",
    "takt-gl-api",
    "takt-gl-driver",
    "takt-hook",
    "takt-hook-glx",
    "takt-ipc",
    "takt-nvml",
    "takt-os",
    "takt-slices",
    "takt-slices-hook",
];

/// Forbids code that the compiler cannot check.
const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// Checks all source files.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        if file.is_rust() {
            findings.extend(check_file(file));
        } else if !file.is_markdown() {
            findings.extend(left_overs(&file.path, &file.text));
        }
    }
    for (path, _) in GENERATED {
        if tree.file(path).is_none() {
            let message = format!("GENERATED lists {path}, which does not exist");
            findings.push(Finding::error("xtask/src/rust_files.rs", 1, message));
        }
    }
    for package in &workspace.packages {
        let roots = package.roots.iter().filter(|_| !TALKS_TO_OTHERS.contains(&package.name.as_str()));
        for root in roots {
            findings.extend(tree.file(root).and_then(check_root));
        }
        findings.extend(check_no_std(&package.name, &package.roots, tree));
    }
    findings
}

fn check_file(file: &File) -> Vec<Finding> {
    let source = Source::new(&file.text);
    let mut findings = left_overs(&file.path, &source.prose);
    findings.extend(white_space(&file.path, &source.prose));
    if !GENERATED.iter().any(|(path, _)| *path == file.path) {
        findings.extend(length(file));
        findings.extend(width(file, &source.data_lines));
    }
    findings
}

fn length(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        let message = format!("{lines} lines, at most {LINES_MAX} are allowed: split the file");
        Some(Finding::error(&file.path, LINES_MAX + 1, message))
    } else if lines > LINES_WARN {
        let message = format!("{lines} lines: look for the seam, {LINES_MAX} is the limit");
        Some(Finding::warning(&file.path, LINES_WARN + 1, message))
    } else {
        None
    }
}

/// Wide lines; those inside a literal are data, such as a golden table, and cannot be broken.
fn width(file: &File, data_lines: &[usize]) -> Vec<Finding> {
    let wide = |(index, line): (usize, &str)| {
        let width = line.chars().count();
        (width > WIDTH_MAX && !data_lines.contains(&(index + 1))).then(|| {
            let message = format!("{width} characters wide, at most {WIDTH_MAX} are allowed");
            Finding::error(&file.path, index + 1, message)
        })
    };
    file.text.lines().enumerate().filter_map(wide).collect()
}

/// Tabs and white space at line ends; the text must have literals blanked, where both are data.
pub(crate) fn white_space(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.contains('\t') {
            findings.push(Finding::error(path, index + 1, "tab: use spaces"));
        }
        if line.ends_with([' ', '\t']) {
            findings.push(Finding::error(path, index + 1, "white space at the end of the line"));
        }
    }
    findings
}

fn left_overs(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (word, advice) in LEFT_OVERS {
        for at in find_words(text, word) {
            let message = format!("`{word}` left behind: {advice}");
            findings.push(Finding::error(path, line_at(text, at), message));
        }
    }
    findings
}

fn check_root(file: &File) -> Option<Finding> {
    let forbids = Source::new(&file.text).code.contains(FORBID_UNSAFE);
    (!forbids).then(|| Finding::error(&file.path, 1, format!("the crate must say {FORBID_UNSAFE}")))
}

/// The crate that uses nothing must not use the standard library either.
fn check_no_std(name: &str, roots: &[String], tree: &Tree) -> Option<Finding> {
    let root = roots.iter().find_map(|root| tree.file(root))?;
    let wanted = Layer::of(name).is_some_and(Layer::stands_alone);
    let says = Source::new(&root.text).code.contains("#![no_std]");
    (wanted && !says).then(|| Finding::error(&root.path, 1, "the crate must say #![no_std]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let findings = check_file(&File::new("a.rs", text));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn long_files_warn_then_fail() {
        assert!(found(&"x\n".repeat(LINES_WARN)).is_empty());
        assert!(found(&"x\n".repeat(LINES_WARN + 1))[0].starts_with("a.rs:801: warning: 801 lines"));
        assert!(found(&"x\n".repeat(LINES_MAX))[0].contains("warning"));
        assert!(found(&"x\n".repeat(LINES_MAX + 1))[0].starts_with("a.rs:1201: error: 1201 lines"));
    }

    #[test]
    fn width_counts_characters() {
        assert!(found(&"µ".repeat(WIDTH_MAX)).is_empty());
        let wide = format!("\n{}", "µ".repeat(WIDTH_MAX + 1));
        assert_eq!(found(&wide), ["a.rs:2: error: 121 characters wide, at most 120 are allowed"]);
        assert!(found(&format!("f(\"\n{}\");", "µ".repeat(WIDTH_MAX))).is_empty());
        assert_eq!(found(&format!("f(\"{}\");", "µ".repeat(WIDTH_MAX))).len(), 1);
    }

    #[test]
    fn white_space_is_data_only_in_literals() {
        assert_eq!(found("a \n"), ["a.rs:1: error: white space at the end of the line"]);
        assert_eq!(found("// a \n").len(), 1);
        assert_eq!(found("\ta\n"), ["a.rs:1: error: tab: use spaces"]);
        assert!(found("let a = \"x \n\ty\";\n").is_empty());
    }

    #[test]
    fn left_overs_are_found_in_code_and_comments() {
        for (word, _) in LEFT_OVERS {
            assert_eq!(found(&format!("a();\n// {word}\n")).len(), 1, "{word}");
            assert_eq!(found(&format!("a();\n{word}\n")).len(), 1, "{word}");
            assert!(found(&format!("a(\"{word}\");")).is_empty(), "{word}");
        }
        assert!(found("mktemp_XXXXXX").is_empty());
    }

    #[test]
    fn unsafe_must_be_forbidden_in_code() {
        let root = |text| check_root(&File::new("src/lib.rs", text));
        assert_eq!(root("//! A.\n#![forbid(unsafe_code)]\n"), None);
        assert!(root("// #![forbid(unsafe_code)]\n").is_some());
    }

    #[test]
    fn the_core_must_do_without_std() {
        let roots = ["src/lib.rs".to_owned()];
        let tree = Tree::of(&[("src/lib.rs", "//! A.\n")]);
        assert!(check_no_std("takt-core", &roots, &tree).is_some());
        assert!(check_no_std("takt-sim", &roots, &tree).is_none());
    }
}
