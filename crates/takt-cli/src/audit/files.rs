//! Reads the files of audits.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use takt_audit::chain::read_line;
use takt_audit::verify::{Kept, sorted, verify};
use takt_audit::{Entry, Head, Record, Report, Source};

use crate::output;

/// Longest file that is read: the daemon writes none that is longer.
const FILE_BYTES_MAX: u64 = 2 << 30;
/// Longest file with the head of a chain.
const HEAD_BYTES_MAX: u64 = 4096;

/// The files of one chain, in the order in which they were written.
#[derive(Debug)]
pub(super) struct AuditChain {
    pub(super) name: String,
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// What is kept beside the files.
    kept: Option<Kept>,
}

impl AuditChain {
    /// Checks the chain.
    pub(super) fn verify(&self, heads: &[Head]) -> Report {
        let sources: Vec<Source<'_>> =
            self.files.iter().map(|(name, bytes)| Source { name, bytes }).collect();
        verify(&sources, self.kept, heads)
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let lines = self.files.iter().flat_map(|(_, bytes)| bytes.split(|byte| *byte == b'\n'));
        lines.filter_map(|line| match read_line(line)?.1 {
            Entry::Record(record) => Some(*record),
            Entry::Opening(_) => None,
        })
    }
}

/// The chains in these files and folders.
pub(super) fn load(paths: &[PathBuf]) -> anyhow::Result<Vec<AuditChain>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = in_folder(path)?;
            if found.is_empty() {
                bail!("{}: no files of an audit, which end in .jsonl", path.display());
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    let mut read = Vec::new();
    for path in &files {
        read.push((path.display().to_string(), bytes(path)?));
    }
    let sources: Vec<Source<'_>> = read.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let chain = |(name, sources): (String, Vec<Source<'_>>)| {
        let kept = sources.first().and_then(|source| head_beside(Path::new(source.name), &name));
        let files = sources.iter().map(|source| (source.name.to_owned(), source.bytes.to_vec())).collect();
        AuditChain { name, files, kept }
    };
    Ok(sorted(&sources).into_iter().map(chain).collect())
}

/// All records, in the order in which they were made; complains about chains that are not intact.
pub(super) fn records(chains: &[AuditChain]) -> Vec<Record> {
    let mut all = Vec::new();
    for chain in chains {
        if !chain.verify(&[]).is_intact() {
            output::warn(&format!(
                "warning: chain {} is not intact; takt audit verify says more",
                chain.name
            ));
        }
        all.push(chain.records().collect::<Vec<Record>>());
    }
    merged(all)
}

/// One list in the order of time. Each chain keeps its order, also where a clock was set back.
fn merged(chains: Vec<Vec<Record>>) -> Vec<Record> {
    let mut chains: Vec<_> = chains.into_iter().map(|chain| chain.into_iter().peekable()).collect();
    let mut all = Vec::new();
    loop {
        let earliest = chains.iter_mut().filter_map(|chain| Some((chain.peek()?.at_us, chain)));
        match earliest.min_by_key(|(at_us, _)| *at_us) {
            Some((_, chain)) => all.extend(chain.next()),
            None => return all,
        }
    }
}

fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The bytes of a file. Devices and pipes may have no end, or wait for one.
fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let found = std::fs::metadata(path).with_context(cannot)?;
    if !found.is_file() {
        bail!("{}: no file of an audit, but a device, a pipe or a socket", path.display());
    }
    if found.len() > FILE_BYTES_MAX {
        bail!("{}: {} bytes; files of an audit have {FILE_BYTES_MAX} at most", path.display(), found.len());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .with_context(cannot)?
        .take(FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(cannot)?;
    Ok(bytes)
}

/// The head that the daemon keeps beside the files of a chain.
fn head_beside(file: &Path, chain: &str) -> Option<Kept> {
    let head = file.with_file_name(format!("{chain}.head"));
    let mut text = Vec::new();
    if std::fs::metadata(&head).is_ok_and(|found| found.is_file()) {
        File::open(head).ok()?.take(HEAD_BYTES_MAX).read_to_end(&mut text).ok()?;
    }
    serde_json::from_slice(&text).ok()
}
