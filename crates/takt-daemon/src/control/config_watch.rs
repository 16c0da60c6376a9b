//! Notices that the configuration file changed.
//!
//! It polls: that works on every file system, for files that do not exist yet and for those that
//! editors replace. A file counts as complete when it is the same in two polls in a row.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two polls.
const EVERY: Duration = Duration::from_millis(250);

/// What differs between two versions of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ConfigStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// A file that may change.
#[derive(Debug)]
pub struct ConfigWatch {
    path: PathBuf,
    known: Option<ConfigStamp>,
    seen: Option<ConfigStamp>,
    next: Instant,
}

impl ConfigWatch {
    /// The file as it is now.
    pub fn new(path: PathBuf) -> Self {
        let mut watch = Self { path, known: None, seen: None, next: Instant::now() };
        watch.known = watch.stamp();
        watch.seen = watch.known;
        watch
    }

    /// Whether the file changed since this last returned true. To be called often.
    pub fn has_changed(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + EVERY;
        self.poll()
    }

    fn poll(&mut self) -> bool {
        let stamp = self.stamp();
        let settled = stamp == self.seen;
        self.seen = stamp;
        // A file that is gone may come back; until then the one that was read holds.
        if !settled || stamp.is_none() || stamp == self.known {
            return false;
        }
        self.known = stamp;
        true
    }

    fn stamp(&self) -> Option<ConfigStamp> {
        let file = std::fs::metadata(&self.path).ok()?;
        Some(ConfigStamp {
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noticed_once_and_when_they_are_complete() {
        let path = std::env::temp_dir().join(format!("takt-watch-{}", std::process::id()));
        std::fs::write(&path, "a").expect("written");
        let mut watch = ConfigWatch::new(path.clone());
        assert!(!watch.poll(), "nothing has changed");
        std::fs::write(&path, "ab").expect("written");
        assert!(!watch.poll(), "it may not be complete yet");
        assert!(watch.poll());
        assert!(!watch.poll(), "once");
        std::fs::remove_file(&path).expect("removed");
        assert!(!watch.poll() && !watch.poll(), "gone");
        std::fs::write(&path, "abc").expect("written");
        assert!(!watch.poll());
        assert!(watch.poll(), "back");
        std::fs::remove_file(&path).expect("removed");
    }
}
