//! The files of the working tree that people write.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold products, not sources.
const SKIPPED: &[&str] = &[".git", "target", "out"];

/// Endings of the text files that are checked.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sh", ".c", ".h", ".py"];

/// Names of further text files that are checked.
const NAMES: &[&str] = &["Makefile", "run", "test", "Cargo.lock"];

/// A file with its content.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Path from the root of the repository, with `/` between parts.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

impl File {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }
}

/// All checked files, by path, and the names of everything else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    files: Vec<File>,
    /// Every file and folder, checked or not: what a link may point to.
    paths: Vec<String>,
}

impl Tree {
    /// Reads the tree below `root`.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.walk(root, "")?;
        tree.sort();
        Ok(tree)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(File::new(path, text));
            let mut path = *path;
            tree.paths.push(path.to_owned());
            while let Some((folder, _)) = path.rsplit_once('/') {
                tree.paths.push(folder.to_owned());
                path = folder;
            }
        }
        tree.sort();
        tree
    }

    /// The checked files, by path.
    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// The checked file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().map(|index| &self.files[index])
    }

    /// Whether a file or folder of that path exists.
    pub(crate) fn exists(&self, path: &str) -> bool {
        path.is_empty() || self.paths.binary_search_by(|known| known.as_str().cmp(path)).is_ok()
    }

    fn sort(&mut self) {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.paths.sort();
        self.paths.dedup();
    }

    fn walk(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let cache = entry.path().join("CACHEDIR.TAG").exists();
                if !cache && !SKIPPED.contains(&name.as_str()) {
                    self.paths.push(path.clone());
                    self.walk(&entry.path(), &path)?;
                }
            } else if kind.is_file() {
                self.paths.push(path.clone());
                if ENDINGS.iter().any(|ending| name.ends_with(ending)) || NAMES.contains(&name.as_str()) {
                    let text =
                        fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
                    self.files.push(File { path, text });
                }
            }
        }
        Ok(())
    }
}
