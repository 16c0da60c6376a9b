//! Folders among temporary files, which other users share.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Names that are tried for a folder.
const TRIES: u32 = 100;

/// Makes a folder for the user alone. Another user may have put something among temporary
/// files under a name that can be guessed, so an existing one is not used.
pub(crate) fn fresh_folder(among: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let mut tries = (0..TRIES).map(|n| among.join(format!("{name}-{}-{n}", std::process::id())));
    let made = tries.find_map(|folder| match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
        made => Some(made.with_context(|| format!("cannot make {}", folder.display())).map(|()| folder)),
    });
    made.with_context(|| format!("remove {name}-* from {}", among.display()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_others_are_not_used() {
        let among = std::env::temp_dir().join(format!("takt-temporary-{}", std::process::id()));
        fs::create_dir(&among).expect("made");
        let first = fresh_folder(&among, "x").expect("made");
        fs::remove_dir(&first).expect("removed");
        std::os::unix::fs::symlink("/", &first).expect("a trap");
        let second = fresh_folder(&among, "x").expect("made");
        assert_ne!(first, second);
        assert!(second.symlink_metadata().expect("there").is_dir());
        fs::remove_dir_all(&among).expect("removed");
    }
}
