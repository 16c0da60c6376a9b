//! The contents of executables that the configuration lists by their hashes.
//!
//! A thread of its own reads them, when the configuration is read and when a file has changed: a large
//! file takes longer than the control thread may. An app that joins before its hash is known asks again.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use sha2::{Digest, Sha256};

use crate::control::seal::hex;
use crate::rt::realtime;

/// Files that may wait to be read.
const WAITING_MAX: usize = 64;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// What differs between two versions of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Whether a file has the contents that are listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    /// It has.
    Listed,
    /// It has others, or cannot be read: its hash, or why.
    Others(String),
    /// It is being read.
    Unknown,
}

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Hashed {
    /// Which version; none if there was no file.
    stamp: Option<Stamp>,
    hash: Result<String, String>,
}

/// The thread that reads.
#[derive(Debug)]
struct Reader {
    paths: SyncSender<PathBuf>,
    hashed: Receiver<(PathBuf, Hashed)>,
}

/// The hashes of executables.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    reader: Option<Reader>,
    /// Files that are being read have none yet.
    known: BTreeMap<PathBuf, Option<Hashed>>,
}

impl Hashes {
    /// Reads a file in the background, unless its hash is known.
    pub(super) fn prepare(&mut self, path: &Path) {
        self.check(path, "");
    }

    /// Whether the file at a path has that hash.
    pub(super) fn check(&mut self, path: &Path, listed: &str) -> Contents {
        self.collect();
        let stamp = stamp(path);
        match self.known.get(path) {
            Some(None) => Contents::Unknown,
            Some(Some(Hashed { stamp: then, hash: Ok(hash) })) if *then == stamp => match hash == listed {
                true => Contents::Listed,
                false => Contents::Others(format!("it has sha256 {hash}")),
            },
            Some(Some(Hashed { stamp: then, hash: Err(why) })) if *then == stamp => {
                Contents::Others(why.clone())
            }
            _ => {
                self.read(path);
                Contents::Unknown
            }
        }
    }

    fn collect(&mut self) {
        let Some(reader) = &self.reader else { return };
        while let Ok((path, hashed)) = reader.hashed.try_recv() {
            self.known.insert(path, Some(hashed));
        }
    }

    fn read(&mut self, path: &Path) {
        if self.reader.is_none() {
            self.reader = Reader::start().ok();
        }
        let asked = self.reader.as_ref().map(|reader| reader.paths.try_send(path.to_owned()));
        // Where there is no room or no thread, the next question tries again.
        if matches!(asked, Some(Ok(()))) {
            self.known.insert(path.to_owned(), None);
        } else if matches!(asked, Some(Err(TrySendError::Disconnected(_)))) {
            self.reader = None;
        }
    }
}

impl Reader {
    fn start() -> std::io::Result<Self> {
        let (paths, given) = sync_channel::<PathBuf>(WAITING_MAX);
        let (tell, hashed) = sync_channel(WAITING_MAX);
        std::thread::Builder::new().name("takt-hashes".to_owned()).spawn(move || {
            realtime::ordinary();
            for path in given {
                let (stamp, hash) = match hash(&path) {
                    Ok((stamp, hash)) => (Some(stamp), Ok(hash)),
                    Err(error) => (stamp(&path), Err(format!("it cannot be read: {error}"))),
                };
                if tell.send((path, Hashed { stamp, hash })).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { paths, hashed })
    }
}

/// Which version of a file is at a path, if one is.
fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|found| Stamp::of(&found))
}

fn hash(path: &Path) -> std::io::Result<(Stamp, String)> {
    let mut file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let (mut state, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((stamp, hex(&state.finalize()))),
            length => state.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::seal::sha256;

    fn await_known(hashes: &mut Hashes, path: &Path, listed: &str) -> Contents {
        loop {
            match hashes.check(path, listed) {
                Contents::Unknown => std::thread::yield_now(),
                known => return known,
            }
        }
    }

    #[test]
    fn contents_are_compared_and_read_again_when_they_change() {
        let path = std::env::temp_dir().join(format!("takt-hashes-{}", std::process::id()));
        std::fs::write(&path, "released").expect("written");
        let (mut hashes, listed) = (Hashes::default(), sha256(b"released"));
        assert_eq!(hashes.check(&path, &listed), Contents::Unknown, "it is read elsewhere");
        assert_eq!(await_known(&mut hashes, &path, &listed), Contents::Listed);
        std::fs::write(&path, "tampered with").expect("written");
        let other = format!("it has sha256 {}", sha256(b"tampered with"));
        assert_eq!(await_known(&mut hashes, &path, &listed), Contents::Others(other));
        std::fs::remove_file(&path).expect("removed");
        let gone = await_known(&mut hashes, &path, &listed);
        assert!(matches!(&gone, Contents::Others(why) if why.contains("cannot be read")), "{gone:?}");
    }
}
