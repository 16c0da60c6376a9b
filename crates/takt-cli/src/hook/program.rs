//! The program that is to be hooked: which file it is, and whether its environment reaches it.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

use super::Way;

/// The beginning of an ELF file with its program headers.
const HEAD_BYTES: u64 = 4096;

/// The file that a shell would run.
pub(crate) fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The beginning of a file; what cannot be read is empty.
pub(crate) fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // A file that cannot be read is no ELF file; running it fails with an error of its own.
    let _short = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    head
}

/// Whether the beginning of a file is that of a program for 32 bits, which no library of ours fits.
pub(crate) fn is_for_32_bits(head: &[u8]) -> bool {
    const CLASS: usize = 4;
    head.starts_with(b"\x7fELF") && head.get(CLASS) == Some(&1)
}

/// Rights that a program gains when it starts. libEGL and the loader of libraries then ignore what
/// its environment says, and rightly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Gain {
    User,
    Group,
    Capabilities,
}

impl Gain {
    /// Whether Takt stays outside of the program. libglvnd minds users and groups only; the loader
    /// of libraries minds capabilities, too.
    pub(crate) fn keeps_out(self, way: Way) -> bool {
        self != Self::Capabilities || way == Way::Preload
    }

    /// In words.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::User => "runs as another user (setuid)",
            Self::Group => "runs with another group (setgid)",
            Self::Capabilities => "has capabilities of its own (setcap)",
        }
    }

    /// What holds for one that does not keep Takt out.
    pub(crate) fn without_glx(self) -> String {
        format!(
            "{}, so it is not seen if it draws with GLX, and is if with EGL; a copy has none",
            self.what()
        )
    }

    /// What to do about it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::User => "run a copy without the setuid bit, or become that user and run takt there",
            Self::Group => "run a copy without the setgid bit, or run takt with that group (newgrp)",
            Self::Capabilities => {
                "run a copy, which has no capabilities, or hook it as EGL driver (--hook vendor)"
            }
        }
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, so its environment is ignored and Takt stays outside", self.what())
    }
}

/// What is to be known about a file and about us.
#[derive(Clone, Copy, Debug)]
struct Facts {
    mode: u32,
    user: u32,
    group: u32,
    capabilities: bool,
    own_user: u32,
    own_group: u32,
}

/// What a program gains; nothing if it cannot be told.
pub(crate) fn gain(path: &Path) -> Option<Gain> {
    let metadata = fs::metadata(path).ok()?;
    let ignored = rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOSUID));
    // Scripts run with the rights of the user that starts them.
    if ignored || no_new_privileges() || head(path).starts_with(b"#!") {
        return None;
    }
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut [0_u8; 64]).is_ok();
    judge(Facts {
        mode: metadata.mode(),
        user: metadata.uid(),
        group: metadata.gid(),
        capabilities,
        own_user: rustix::process::getuid().as_raw(),
        own_group: rustix::process::getgid().as_raw(),
    })
}

fn judge(facts: Facts) -> Option<Gain> {
    const SETUID: u32 = 0o4000;
    // Without the right to run it, this bit means another thing.
    const SETGID: u32 = 0o2010;
    if facts.mode & SETUID != 0 && facts.user != facts.own_user {
        return Some(Gain::User);
    }
    if facts.mode & SETGID == SETGID && facts.group != facts.own_group {
        return Some(Gain::Group);
    }
    (facts.capabilities && facts.own_user != 0).then_some(Gain::Capabilities)
}

/// Whether nothing that we start can gain rights.
fn no_new_privileges() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("NoNewPrivs:").is_some_and(|value| value.trim() == "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_shells_do() {
        assert_eq!(find(Path::new("no-such-command-of-ours")), None);
        assert!(find(Path::new("sh")).is_some());
        assert_eq!(find(Path::new("/no/such/file")), None);
    }

    #[test]
    fn rights_are_gained_by_bits_of_others() {
        let plain =
            Facts { mode: 0o755, user: 0, group: 0, capabilities: false, own_user: 1000, own_group: 1000 };
        assert_eq!(judge(plain), None);
        assert_eq!(judge(Facts { mode: 0o4755, ..plain }), Some(Gain::User));
        assert_eq!(judge(Facts { mode: 0o4755, own_user: 0, ..plain }), None, "it is that user already");
        assert_eq!(judge(Facts { mode: 0o2755, ..plain }), Some(Gain::Group));
        assert_eq!(judge(Facts { mode: 0o2745, ..plain }), None, "a lock, not a right");
        assert_eq!(judge(Facts { capabilities: true, ..plain }), Some(Gain::Capabilities));
        assert!(!Gain::Capabilities.keeps_out(Way::Vendor) && Gain::Capabilities.keeps_out(Way::Preload));
        assert_eq!(gain(&env::current_exe().unwrap()), None);
    }
}
