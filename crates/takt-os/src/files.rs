//! Which file is which, and which files only the superuser can replace.

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{Statx, makedev};

/// Permissions to write of the group and of all others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A file, whatever its path: two paths with the same one name the same file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl FileId {
    pub(crate) fn of(found: &Statx) -> Self {
        Self { device: makedev(found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino }
    }
}

/// Why a file may be replaced or changed by others than the superuser.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Exposed {
    /// It cannot be looked at.
    #[error("{path} cannot be looked at: {why}")]
    Unknown {
        /// The file or folder.
        path: String,
        /// The error of the system.
        why: String,
    },
    /// It is a link, or the path does not start at the root.
    #[error("{0} is a link or no absolute path: name the file itself")]
    Indirect(String),
    /// Another user owns it.
    #[error("{path} belongs to user {uid}: root must own it")]
    Owned {
        /// The file or folder.
        path: String,
        /// Its owner.
        uid: u32,
    },
    /// Others may write to it.
    #[error("{0} may be written by its group or by others: chmod go-w")]
    Writable(String),
}

/// The file at that path, if the superuser alone can change or replace it: root owns the file and all
/// folders above it, and no other user may write to any of them. The path must have no links.
///
/// It starts at the root and stops at the first folder of another user, so it never looks at what that
/// user put below.
pub fn only_roots(path: &Path) -> Result<FileId, Exposed> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(Exposed::Indirect(path.display().to_string()));
    }
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    let mut id = Err(Exposed::Indirect(path.display().to_string()));
    for part in parts {
        id = only_root_writes(part);
        if id.is_err() {
            break;
        }
    }
    id
}

/// A file or folder, if root owns it and no other user may write to it.
fn only_root_writes(path: &Path) -> Result<FileId, Exposed> {
    let name = path.display().to_string();
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) => return Err(Exposed::Unknown { path: name, why: error.to_string() }),
    };
    if found.is_symlink() {
        Err(Exposed::Indirect(name))
    } else if found.uid() != 0 {
        Err(Exposed::Owned { path: name, uid: found.uid() })
    } else if found.mode() & WRITABLE_BY_OTHERS != 0 {
        Err(Exposed::Writable(name))
    } else {
        Ok(FileId { device: found.dev(), inode: found.ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_can_replace_are_told() {
        let shell = std::fs::canonicalize("/bin/sh").expect("every system has one");
        let id = only_roots(&shell).expect("only root replaces it");
        assert_eq!(id.inode, std::fs::metadata(&shell).expect("there").ino());
        let path = std::env::temp_dir().join(format!("takt-files-{}", std::process::id()));
        std::fs::write(&path, "").expect("written");
        let exposed = only_roots(&path).expect_err("all may write to that folder");
        assert!(matches!(exposed, Exposed::Writable(_) | Exposed::Owned { .. }), "{exposed}");
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(only_roots(Path::new("/nothing-there")), Err(Exposed::Unknown { .. })));
        for indirect in ["/proc/self", "bin/sh", "/usr/../usr", ""] {
            assert!(matches!(only_roots(Path::new(indirect)), Err(Exposed::Indirect(_))), "{indirect}");
        }
    }
}
