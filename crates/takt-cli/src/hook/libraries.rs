//! Which file the loader takes for the name of a library.
//!
//! It looks where `LD_LIBRARY_PATH` says, then into the system's list. Folders that are written
//! into a program itself are not known here.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program;

/// The library through which programs find EGL.
pub(crate) const EGL: &str = "libEGL.so.1";

/// No libEGL is larger; some programs bring libraries of their own that are.
const EGL_BYTES_MAX: u64 = 16 << 20;

/// Where libraries are looked for.
#[derive(Debug)]
pub(crate) struct Libraries {
    folders: Vec<PathBuf>,
    /// The system's list, as ldconfig prints it.
    list: Option<String>,
}

impl Libraries {
    /// Those that `LD_LIBRARY_PATH` leads to.
    pub(crate) fn named() -> Self {
        let path = env::var("LD_LIBRARY_PATH").unwrap_or_default();
        Self { folders: folders(&path), list: None }
    }

    /// All of them.
    pub(crate) fn all() -> Self {
        let ldconfig = ["ldconfig", "/sbin/ldconfig"];
        let asked = ldconfig.iter().find_map(|name| Command::new(name).arg("-p").output().ok());
        let list = asked
            .filter(|asked| asked.status.success())
            .map(|asked| String::from_utf8_lossy(&asked.stdout).into_owned());
        Self { list, ..Self::named() }
    }

    /// Those that do not lie there.
    pub(crate) fn outside(mut self, root: &Path) -> Self {
        self.folders.retain(|folder| !folder.starts_with(root));
        self
    }

    /// Whether the system's list is known.
    pub(crate) fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// The file of a library, by its name or path.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_file());
        }
        let named = self.folders.iter().map(|folder| folder.join(name)).find(|path| is_64_bit(path));
        named.or_else(|| {
            let lines = self.list.as_deref().unwrap_or_default().lines();
            let mut paths = lines.filter_map(|line| listed(line, name));
            paths.find(|path| is_64_bit(path))
        })
    }
}

impl Libraries {
    /// Names of all libraries that begin so, without repetition.
    pub(crate) fn names(&self, start: &str) -> Vec<String> {
        let listed = self.list.as_deref().unwrap_or_default().lines();
        let listed = listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        let files = self.folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let files = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let names: BTreeSet<String> = files.chain(listed).filter(|name| name.starts_with(start)).collect();
        names.into_iter().collect()
    }
}

/// Parts may be empty, which means here, and be parted by either sign.
fn folders(path: &str) -> Vec<PathBuf> {
    if path.is_empty() {
        return Vec::new();
    }
    let place = |part: &str| PathBuf::from(if part.is_empty() { "." } else { part });
    path.split([':', ';']).map(place).collect()
}

/// The path in a line such as `libEGL.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libEGL.so.1`.
fn listed(line: &str, name: &str) -> Option<PathBuf> {
    let rest = line.trim_start().strip_prefix(name)?.strip_prefix(' ')?;
    rest.split_once("=> ").map(|(_, path)| PathBuf::from(path.trim()))
}

/// The loader passes over libraries of other kinds of machine.
fn is_64_bit(path: &Path) -> bool {
    program::head(path).starts_with(b"\x7fELF\x02")
}

/// Whether a libEGL is that of libglvnd, which loads drivers.
pub(crate) fn is_glvnd(path: &Path) -> bool {
    const PART: &[u8] = b"libGLdispatch.so.0";
    let small = fs::metadata(path).is_ok_and(|file| file.len() <= EGL_BYTES_MAX);
    let bytes = if small { fs::read(path).unwrap_or_default() } else { Vec::new() };
    bytes.windows(PART.len()).any(|part| part == PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_named_folders_before_the_list() {
        let folder = env::temp_dir().join(format!("takt-libraries-{}", std::process::id()));
        fs::create_dir_all(folder.join("old")).unwrap();
        fs::write(folder.join("old").join(EGL), b"\x7fELF\x01").unwrap();
        let listed_file = folder.join("libEGL.so.1.1.0");
        fs::write(&listed_file, b"\x7fELF\x02 libGLdispatch.so.0").unwrap();
        let list = format!("\tlibEGL.so (x) => /a\n\t{EGL} (libc6,x86-64) => {}\n", listed_file.display());
        let mut libraries = Libraries { folders: vec![folder.join("old")], list: Some(list) };
        assert_eq!(libraries.find(EGL), Some(listed_file.clone()), "one for 32 bits is passed over");
        assert!(is_glvnd(&listed_file));
        let own = folder.join(EGL);
        fs::write(&own, b"\x7fELF\x02 of another kind").unwrap();
        libraries.folders.push(folder.clone());
        assert_eq!(libraries.find(EGL), Some(own.clone()));
        assert!(!is_glvnd(&own));
        assert_eq!(libraries.find("libEGL_none.so.0"), None);
        assert_eq!(libraries.find("/no/such/file.so"), None);
        let libraries = libraries.outside(&folder);
        assert_eq!(libraries.find(EGL), Some(listed_file), "only folders that are named are left out");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn paths_are_split_as_the_loader_does() {
        assert_eq!(folders(""), Vec::<PathBuf>::new());
        assert_eq!(folders("/a:;/b"), ["/a", ".", "/b"].map(PathBuf::from));
    }
}
