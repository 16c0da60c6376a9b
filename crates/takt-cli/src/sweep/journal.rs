//! Journals on disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use takt_sim::study::journal::{self, Header, Journal};
use takt_sim::study::table::Cell;
use takt_sim::study::{Shard, Study};

use super::Done;
use crate::output;

/// A journal that this process alone writes.
pub(super) struct JournalFile {
    file: File,
    path: PathBuf,
}

/// Name of the journal of a part.
fn name(shard: Shard) -> String {
    match shard {
        Shard::WHOLE => format!("{STEM}{ENDING}"),
        Shard { part, of } => format!("{STEM}-{part}-of-{of}{ENDING}"),
    }
}

const STEM: &str = "journal";
const ENDING: &str = ".tsv";

impl JournalFile {
    /// Opens or begins the journal of a part; also what it holds already.
    pub(super) fn open(folder: &Path, study: &Study, shard: Shard) -> anyhow::Result<(Self, Done)> {
        let path = folder.join(name(shard));
        std::fs::create_dir_all(folder).with_context(|| output::cannot_write(&path))?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| output::cannot_write(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{}: another takt sweep is working on it; wait, or give another --out", path.display())
            }
            // Not every file system has locks; results are checked in any case.
            Err(TryLockError::Error(_)) => {}
        }
        let journal = load(&mut file, &path)?;
        let whole = journal.whole_bytes as u64;
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        let expected = Header::new(study, shard);
        let done = match journal.header {
            Some(_) => checked(journal, &path, study, Some(shard))?.1,
            None => {
                file.write_all(expected.line().as_bytes()).with_context(|| output::cannot_write(&path))?;
                Done::new()
            }
        };
        Ok((Self { file, path }, done))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line at once: a killed process leaves it whole, or without its end.
    pub(super) fn append(&mut self, job: u64, cells: &[Cell]) -> anyhow::Result<()> {
        let line = journal::entry(job, cells);
        self.file.write_all(line.as_bytes()).with_context(|| output::cannot_write(&self.path))
    }
}

/// The journals in some folders.
pub(super) fn find(folders: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        let cannot = || format!("cannot read {}", folder.display());
        let before = found.len();
        for entry in std::fs::read_dir(folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if name.starts_with(STEM) && name.ends_with(ENDING) {
                found.push(path);
            }
        }
        ensure!(
            found.len() > before,
            "{}: there is no {STEM}*{ENDING} in it; give folders that takt sweep --shard wrote to",
            folder.display()
        );
    }
    found.sort();
    Ok(found)
}

/// The jobs of a journal, and which part it is for.
pub(super) fn read(path: &Path, study: &Study) -> anyhow::Result<(Shard, Done)> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let journal = load(&mut file, path)?;
    ensure!(journal.header.is_some(), "{}: it has not even begun; run its part again", path.display());
    checked(journal, path, study, None)
}

fn load(file: &mut File, path: &Path) -> anyhow::Result<Journal> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    journal::read(&bytes)
        .with_context(|| format!("{} is damaged; remove it, and its jobs are computed anew", path.display()))
}

/// Refuses the journal of another study or part.
fn checked(
    journal: Journal,
    path: &Path,
    study: &Study,
    shard: Option<Shard>,
) -> anyhow::Result<(Shard, Done)> {
    let Journal { header: Some(header), entries, .. } = journal else {
        bail!("{}: it has no first line", path.display());
    };
    let shard = shard.unwrap_or(header.shard);
    let expected = Header::new(study, shard);
    let remedy = "give another --out, or remove the journal to compute everything anew";
    ensure!(
        header.study == expected.study,
        "{}: it is the journal of another study, {}, not of {}; {remedy}",
        path.display(),
        header.study,
        expected.study
    );
    ensure!(
        header.fingerprint == expected.fingerprint && header.jobs == expected.jobs,
        "{}: the study {} or the scenario has changed since the journal was begun \
         (fingerprint {:016x}, now {:016x}); {remedy}",
        path.display(),
        header.study,
        header.fingerprint,
        expected.fingerprint
    );
    ensure!(
        header.shard == shard,
        "{}: it is for part {}, not {shard}; {remedy}",
        path.display(),
        header.shard
    );
    let measures = study.measures().len();
    let mut done = Done::new();
    for (job, cells) in entries {
        ensure!(
            job < study.jobs() && shard.has(job) && cells.len() == measures,
            "{}: job {job} with {} results does not belong to this study; {remedy}",
            path.display(),
            cells.len()
        );
        done.insert(job, cells);
    }
    Ok((shard, done))
}
