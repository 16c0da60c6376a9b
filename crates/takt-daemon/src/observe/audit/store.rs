//! The files of one chain: they grow, the oldest are deleted, and a head says where the chain ends.
//!
//! ```text
//! FOLDER/main-00000001.jsonl   lines of an audit, oldest file first
//! FOLDER/main-00000002.jsonl
//! FOLDER/main.head             number and hash of the last line, number of the first one
//! ```
//!
//! A file is only appended to. It is continued after a restart if it is intact; otherwise the next file
//! begins with what was found. A line that could not be written as a whole is taken back; where that
//! fails, the next file says how many bytes of it are left.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use takt_audit::chain::{LINE_MAX, read_line};
use takt_audit::verify::{Kept, verify};
use takt_audit::{Chain, Entry, Head, Record, Source};

use super::Limits;

/// Length of the file with the head; what is in it is padded, so that it is written at once.
const HEAD_LEN: usize = 160;

/// The files of one chain.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    name: &'static str,
    limits: Limits,
    chain: Chain,
    /// Number and first line of each file, oldest first.
    files: VecDeque<(u64, u64)>,
    /// The first line that there should be.
    first: u64,
    file: File,
    size: u64,
    head: File,
    /// Whether there is something that the disk may not have yet.
    dirty: bool,
}

/// What a chain was left as.
struct Found {
    chain: Chain,
    /// Bytes of an unfinished line.
    torn: u64,
    /// What is wrong, in words.
    fault: Option<String>,
    size: u64,
}

impl Store {
    /// Continues the chain of that name in a folder, which is made if it is missing.
    pub(super) fn open(folder: &Path, name: &'static str, limits: Limits, at_us: u64) -> Result<Self> {
        if let Err(error) = DirBuilder::new().mode(0o700).create(folder)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(named(folder, &error));
        }
        own(folder)?;
        let head = lock(&folder.join(format!("{name}.head")))?;
        let mut files = files_of(folder, name)?;
        // A file without a line was made just before the disk was full, or the machine stopped.
        while let Some((number, _)) = files.back()
            && std::fs::metadata(path_of(folder, name, *number))
                .is_ok_and(|file| file.is_file() && file.len() == 0)
        {
            std::fs::remove_file(path_of(folder, name, *number))?;
            files.pop_back();
        }
        let kept = read_head(&head);
        let mut found = found(folder, name, files.back().map(|(number, _)| *number), kept)?;
        let oldest = files.front().map_or_else(|| found.chain.next_seq(), |(_, first)| *first);
        let first = kept.map_or(oldest, |kept| kept.first);
        if first < oldest {
            found.fault.get_or_insert_with(|| format!("records {first} to {} are missing", oldest - 1));
        }
        let reusable = found.fault.is_none() && found.torn == 0 && found.size > 0;
        let number = files.back().map_or(1, |(number, _)| number + u64::from(!reusable));
        let file = append(&path_of(folder, name, number))?;
        let (folder, chain) = (folder.to_owned(), found.chain);
        let (size, dirty) = (found.size, false);
        let mut store = Self { folder, name, limits, chain, files, first, file, size, head, dirty };
        if !reusable {
            store.size = 0;
            store.begin(number, at_us, found.torn, found.fault)?;
        }
        Ok(store)
    }

    /// The last line.
    pub(super) fn head(&self) -> Option<Head> {
        self.chain.head()
    }

    /// Appends a record; returns its line.
    pub(super) fn append(&mut self, record: &Record) -> Result<String> {
        let mut next = self.chain.clone();
        let mut line = next.record(record);
        if self.size + line.len() as u64 > self.limits.file_bytes {
            self.rotate(record.at_us)?;
            next = self.chain.clone();
            line = next.record(record);
        }
        self.write(&line)?;
        self.chain = next;
        Ok(line)
    }

    /// Writes where the chain ends.
    pub(super) fn keep_head(&mut self) -> Result<()> {
        let Some(head) = self.chain.head() else {
            return Ok(());
        };
        let mut text = serde_json::to_string(&Kept { head, first: self.first })?;
        text.push_str(&" ".repeat(HEAD_LEN.saturating_sub(text.len() + 1)));
        text.push('\n');
        self.head.write_all_at(text.as_bytes(), 0)
    }

    /// Waits until the disk has everything.
    pub(super) fn sync(&mut self) -> Result<()> {
        if std::mem::take(&mut self.dirty) {
            self.file.sync_data()?;
            self.head.sync_data()?;
        }
        Ok(())
    }

    /// Begins the next file, and deletes the oldest ones.
    fn rotate(&mut self, at_us: u64) -> Result<()> {
        self.sync()?;
        let number = self.files.back().map_or(1, |(number, _)| number + 1);
        self.file = append(&path_of(&self.folder, self.name, number))?;
        self.size = 0;
        self.begin(number, at_us, 0, None)?;
        while self.files.len() > self.limits.files {
            if let Some((oldest, _)) = self.files.pop_front() {
                std::fs::remove_file(path_of(&self.folder, self.name, oldest))?;
                self.first = self.files.front().map_or(self.first, |(_, first)| *first);
            }
        }
        self.keep_head()
    }

    fn begin(&mut self, number: u64, at_us: u64, torn: u64, found: Option<String>) -> Result<()> {
        let mut next = self.chain.clone();
        let first = next.next_seq();
        let line = next.open(at_us, torn, found);
        self.write(&line)?;
        self.chain = next;
        self.files.push_back((number, first));
        self.keep_head()
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let written = self.file.write_all(line.as_bytes());
        if written.is_err() {
            // A part of the line may be there: the next one must not follow it.
            self.file.set_len(self.size)?;
        } else {
            self.size += line.len() as u64;
            self.dirty = true;
        }
        written
    }
}

fn named(path: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn path_of(folder: &Path, name: &str, number: u64) -> PathBuf {
    folder.join(format!("{name}-{number:08}.jsonl"))
}

/// Fails unless this user or root alone made the folder: any other user could replace what is in it, or make the
/// daemon wait for a pipe.
fn own(folder: &Path) -> Result<()> {
    let is_foreign = |uid: u32| uid != 0 && uid != rustix::process::geteuid().as_raw();
    for found in [std::fs::symlink_metadata(folder), std::fs::metadata(folder)] {
        let found = found.map_err(|error| named(folder, &error))?;
        let wrong = match found {
            found if is_foreign(found.uid()) => format!("belongs to user {}", found.uid()),
            found if !found.is_symlink() && found.mode() & 0o002 != 0 => {
                "may be written by all users".to_owned()
            }
            _ => continue,
        };
        let text = format!("{} {wrong}; use a folder of the daemon's user", folder.display());
        return Err(Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// Opens a file that is made if it is missing; neither a link is followed nor a pipe waited for.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| named(path, &error))?;
    if !file.metadata()?.is_file() {
        return Err(named(path, &Error::new(ErrorKind::InvalidInput, "it is no file")));
    }
    Ok(file)
}

fn append(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().append(true))
}

/// Opens the file with the head; no other daemon may have it.
fn lock(path: &Path) -> Result<File> {
    let file = open(path, OpenOptions::new().read(true).write(true).truncate(false))?;
    let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    locked.map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => Error::new(
            ErrorKind::ResourceBusy,
            format!("{}: another daemon writes this audit", path.display()),
        ),
        error => named(path, &error.into()),
    })?;
    Ok(file)
}

fn read_head(file: &File) -> Option<Kept> {
    let mut text = Vec::new();
    file.take(HEAD_LEN as u64).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The files of a chain by number, each with the number of its first line.
fn files_of(folder: &Path, name: &str) -> Result<VecDeque<(u64, u64)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| named(folder, &error))? {
        let entry = entry?.file_name();
        let number = entry.to_str().and_then(|file| {
            file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".jsonl")?.parse::<u64>().ok()
        });
        if let Some(number) = number {
            files.push((number, first_line(&path_of(folder, name, number))));
        }
    }
    files.sort_unstable();
    Ok(files.into())
}

/// Number of the first line of a file; 0 if it has none, as the oldest line of all has.
fn first_line(path: &Path) -> u64 {
    let mut line = Vec::new();
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_file {
        return 0;
    }
    let read = File::open(path)
        .and_then(|file| BufReader::new(file.take(LINE_MAX as u64)).read_until(b'\n', &mut line));
    match read.ok().and_then(|_| read_line(line.trim_ascii_end())) {
        Some((seq, Entry::Opening(_))) => seq,
        _ => 0,
    }
}

/// Checks the newest file, and finds where the chain goes on.
fn found(folder: &Path, name: &str, newest: Option<u64>, kept: Option<Kept>) -> Result<Found> {
    let Some(number) = newest else {
        let fault = kept.map(|kept| format!("no files; record {} was the last", kept.head.seq));
        let chain = kept.map_or_else(|| Chain::new(name), |kept| Chain::after(name, kept.head));
        return Ok(Found { chain, torn: 0, fault, size: 0 });
    };
    let path = path_of(folder, name, number);
    // It is never longer than a file of this chain, with whatever limits that was written.
    let mut bytes = Vec::new();
    let mut file = open(&path, OpenOptions::new().read(true).append(true))?;
    file.read_to_end(&mut bytes).map_err(|error| named(&path, &error))?;
    let label = path.display().to_string();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // What the head says of other files is not asked here.
    let kept = kept.map(|kept| Kept { first: u64::MAX, ..kept });
    let report = verify(&[Source { name: &label, bytes: &bytes[..end] }], kept, &[]);
    let last = report.head.into_iter().chain(kept.map(|kept| kept.head)).max_by_key(|head| head.seq);
    Ok(Found {
        chain: last.map_or_else(|| Chain::new(name), |head| Chain::after(name, head)),
        torn: (bytes.len() - end) as u64,
        fault: report.findings.first().map(ToString::to_string),
        size: bytes.len() as u64,
    })
}
