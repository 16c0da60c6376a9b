//! Notices that a file is another one than before.
//!
//! By looking now and then: that works on every file system, for files that do not exist yet and for
//! those that editors replace. A file is taken for complete when it has stayed the same from one look
//! to the next.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often to look.
const EVERY: Duration = Duration::from_millis(250);

/// What tells two versions of a file apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// A file that may change.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    known: Option<Stamp>,
    seen: Option<Stamp>,
    next: Instant,
}

impl Watch {
    /// The file as it is now.
    pub fn new(path: PathBuf) -> Self {
        let mut watch = Self { path, known: None, seen: None, next: Instant::now() };
        watch.known = watch.stamp();
        watch.seen = watch.known;
        watch
    }

    /// Whether the file is another one than when this last said so. To be called often.
    pub fn has_changed(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + EVERY;
        self.look()
    }

    fn look(&mut self) -> bool {
        let stamp = self.stamp();
        let settled = stamp == self.seen;
        self.seen = stamp;
        // One that is gone is about to come back, or the one that was read holds.
        if !settled || stamp.is_none() || stamp == self.known {
            return false;
        }
        self.known = stamp;
        true
    }

    fn stamp(&self) -> Option<Stamp> {
        let file = std::fs::metadata(&self.path).ok()?;
        Some(Stamp { inode: file.ino(), size: file.size(), modified: (file.mtime(), file.mtime_nsec()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noticed_once_and_when_they_are_complete() {
        let path = std::env::temp_dir().join(format!("takt-watch-{}", std::process::id()));
        std::fs::write(&path, "a").expect("written");
        let mut watch = Watch::new(path.clone());
        assert!(!watch.look(), "nothing has changed");
        std::fs::write(&path, "ab").expect("written");
        assert!(!watch.look(), "it may not be complete yet");
        assert!(watch.look());
        assert!(!watch.look(), "once");
        std::fs::remove_file(&path).expect("removed");
        assert!(!watch.look() && !watch.look(), "gone");
        std::fs::write(&path, "abc").expect("written");
        assert!(!watch.look());
        assert!(watch.look(), "back");
        std::fs::remove_file(&path).expect("removed");
    }
}
