//! All checks together, and what they report.

use std::fmt;

use crate::tree::Tree;
use crate::workspace::Workspace;
use crate::{
    claims, documents, generated, hashes, layers, loaded, map, policies, purity, rust_files, sentences,
    test_programs, types, words,
};

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    /// Path from the root of the repository.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Whether it fails the check.
    pub(crate) severity: Severity,
    /// What is wrong and what to do about it.
    pub(crate) message: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Severity {
    Error,
    Warning,
}

impl Finding {
    /// A finding that fails the check.
    pub(crate) fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, severity: Severity::Error, message: message.into() }
    }

    /// A finding that only asks for attention.
    pub(crate) fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, line, message) }
    }

    /// Whether it fails the check.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {severity}: {}", self.path, self.line, self.message)
    }
}

/// Runs every check.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(layers::check(workspace, tree));
    findings.extend(rust_files::check(workspace, tree));
    findings.extend(policies::check(tree));
    findings.extend(purity::check(workspace, tree));
    findings.extend(documents::check(workspace, tree));
    findings.extend(claims::check(tree));
    findings.extend(generated::check(tree));
    findings.extend(loaded::check(workspace, tree));
    findings.extend(map::check(tree));
    findings.extend(test_programs::check(tree));
    findings.extend(types::check(tree));
    findings.extend(words::check(tree));
    findings.extend(hashes::check(tree));
    findings.extend(sentences::check(tree));
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn every_kind_of_check_runs() {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "no table\n"),
            ("README.md", "[gone](gone.md)\n"),
            ("SECURITY.md", "`lost_test`\n"),
            ("crates/takt-core/src/lib.rs", "use std::fs;\t\n"),
        ]);
        let packages = vec![Package {
            name: "takt-core".to_owned(),
            manifest: "crates/takt-core/Cargo.toml".to_owned(),
            roots: vec!["crates/takt-core/src/lib.rs".to_owned()],
            dependencies: Vec::new(),
        }];
        let found = check(&Workspace { packages }, &tree);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        for part in
            ["markers", "gone.md", "lost_test", "std::fs", "forbid(unsafe_code)", "README.md is missing"]
        {
            assert!(found.iter().any(|line| line.contains(part)), "{part}: {found:#?}");
        }
    }

    #[test]
    fn a_finding_names_file_and_line() {
        let finding = Finding::warning("a/b.rs", 7, "too long");
        assert_eq!(finding.to_string(), "a/b.rs:7: warning: too long");
    }
}
