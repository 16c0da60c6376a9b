//! What the audit says when an attack is over.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use takt_audit::chain::read_line;
use takt_audit::verify::Kept;
use takt_audit::{Entry, Event, Record, Source, verify};

/// Both chains of an audit.
pub(crate) struct Evidence {
    /// About the daemon, its own user and listed clients.
    pub(crate) main: Chain,
    /// About all others.
    pub(crate) unlisted: Chain,
}

/// A chain of records without a fault.
pub(crate) struct Chain {
    pub(crate) records: Vec<Record>,
    /// Its size on disk.
    pub(crate) bytes: usize,
    /// Number of its first record, which counts those that were deleted as old.
    pub(crate) first: u64,
}

impl Evidence {
    /// Reads an audit that a daemon is done with, or soon will be.
    pub(crate) fn read(folder: &Path) -> Self {
        Self { main: Chain::read(folder, "main"), unlisted: Chain::read(folder, "unlisted") }
    }
}

impl Chain {
    fn read(folder: &Path, name: &str) -> Self {
        let head = folder.join(format!("{name}.head"));
        let Ok(lock) = File::open(&head) else {
            // There was no record for it.
            return Self { records: Vec::new(), bytes: 0, first: 0 };
        };
        // The daemon's writer holds it to its end.
        flock(&lock, FlockOperation::LockExclusive).expect("locked");
        let kept: Kept = serde_json::from_slice(&std::fs::read(&head).expect("a head")).expect("a head");
        let files: Vec<(String, Vec<u8>)> = files(folder, name).iter().map(|path| contents(path)).collect();
        let sources: Vec<Source<'_>> = files.iter().map(|(name, bytes)| Source { name, bytes }).collect();
        let report = verify(&sources, Some(kept), &[]);
        assert!(report.is_intact(), "{name}: {:?}", report.findings);
        let lines = sources.iter().flat_map(|source| source.bytes.split(|byte| *byte == b'\n'));
        let records = lines.filter_map(read_line).filter_map(|(_, entry)| match entry {
            Entry::Record(record) => Some(*record),
            Entry::Opening(_) => None,
        });
        let (records, first) = (records.collect(), report.first.unwrap_or_default());
        Self { records, bytes: files.iter().map(|(_, bytes)| bytes.len()).sum(), first }
    }

    /// How often that happened to clients of that user, records included that were counted only.
    pub(crate) fn times(&self, event: Event, user: u32) -> u64 {
        let about = |record: &&Record| record.event == event && record.subject.user == Some(user);
        self.records.iter().filter(about).map(|record| record.times).sum()
    }

    /// The first record of that kind about that app.
    pub(crate) fn about(&self, event: Event, app: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.event == event && record.subject.app.as_deref() == Some(app))
    }
}

/// The files of a chain, oldest first.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
    let is_part = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(name) && file.ends_with(".jsonl")
    };
    let mut files: Vec<PathBuf> = all.filter(is_part).collect();
    files.sort();
    files
}

fn contents(path: &Path) -> (String, Vec<u8>) {
    (path.display().to_string(), std::fs::read(path).expect("a file of the audit"))
}
