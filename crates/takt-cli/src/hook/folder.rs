//! What stands in front of drivers, on disk.
//!
//! Each driver gets a folder with a copy of our library, a note that names the driver, and a
//! description for libEGL. One library cannot serve two drivers: libEGL refuses to load a file
//! twice. Everything lies in the user's cache and stays there, because programs may outlive the
//! `takt run` that started them; files are replaced as a whole, so a program that has one loaded
//! keeps it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use takt_calibrate::store::replace;
use takt_daemon::control::socket_path;
use takt_gl::vendor::{INNER_FILE, Note};

use super::{LIBRARY, Vendor};

/// Writes what is missing or stale; returns the list of descriptions for libEGL.
pub(crate) fn write(library: &Path, vendors: &[Vendor]) -> anyhow::Result<OsString> {
    let root = root()?;
    let mut descriptions = Vec::new();
    for (number, vendor) in vendors.iter().enumerate() {
        let folder = root.join(format!("{number}-{}", vendor.name()));
        let note =
            Note { driver: vendor.library.clone(), number: number as u64, copies: vendors.len() as u64 };
        let description = one(library, &vendor.json, &note, &folder).with_context(|| remedy(&folder))?;
        descriptions.push(description);
    }
    env::join_paths(&descriptions)
        .with_context(|| format!("{} contains a colon, which libEGL cannot read", root.display()))
}

/// Where everything lies.
pub(super) fn root() -> anyhow::Result<PathBuf> {
    Ok(cache_folder(|name| env::var_os(name))?.join("takt/hook"))
}

/// What to do about a folder that cannot be written.
pub(super) fn remedy(folder: &Path) -> String {
    let folder = folder.display();
    format!("cannot prepare {folder}; make it writable, or set XDG_CACHE_HOME to a folder that is")
}

fn one(library: &Path, json: &Path, note: &Note, folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder.join(LIBRARY);
    self::library(library, &copy)?;
    put(&folder.join(INNER_FILE), &note.to_string())?;
    let description = folder.join(json.file_name().context("a description has a name")?);
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": copy.to_str().context("the path is no UTF-8, which JSON demands")? },
    });
    put(&description, &format!("{text:#}\n"))?;
    Ok(description)
}

/// Makes a copy of a library, unless it is there.
pub(super) fn library(library: &Path, copy: &Path) -> io::Result<()> {
    copy.parent().map_or(Ok(()), fs::create_dir_all)?;
    if is_copy(library, copy)? {
        return Ok(());
    }
    replace(copy, |path| {
        fs::copy(library, path)?;
        fs::File::options().write(true).open(path)?.set_modified(fs::metadata(library)?.modified()?)
    })
}

/// Whether `copy` is `library` as it is now.
fn is_copy(library: &Path, copy: &Path) -> io::Result<bool> {
    let Ok(have) = fs::metadata(copy) else {
        return Ok(false);
    };
    let want = fs::metadata(library)?;
    Ok(have.len() == want.len() && have.modified()? == want.modified()?)
}

pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(there) if there == text => Ok(()),
        _ => replace(path, |path| fs::write(path, text)),
    }
}

/// The user's cache; without a home, a folder among temporary files that no other user can have made:
/// programs load what lies in it.
fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("XDG_RUNTIME_DIR"));
    if let Some(folder) = own {
        return Ok(folder);
    }
    let user = rustix::process::geteuid().as_raw();
    let folder = env::temp_dir().join(format!("takt-cache-{user}"));
    socket_path::make(&folder).context("neither HOME nor XDG_RUNTIME_DIR is set: set XDG_CACHE_HOME")?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_the_cache_belongs_to_the_user_alone() {
        use std::os::unix::fs::MetadataExt;
        let homely = |name: &str| (name == "HOME").then(|| OsString::from("/home/me"));
        assert_eq!(cache_folder(homely).unwrap(), Path::new("/home/me/.cache"));
        let folder = cache_folder(|_| None).unwrap();
        let found = folder.symlink_metadata().unwrap();
        assert_eq!((found.mode() & 0o777, found.uid()), (0o700, rustix::process::geteuid().as_raw()));
    }

    #[test]
    fn a_stale_copy_is_replaced_and_a_fresh_one_kept() {
        let folder = env::temp_dir().join(format!("takt-hook-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let library = folder.join("original.so");
        let note = Note { driver: "libEGL_mesa.so.0".to_owned(), number: 0, copies: 1 };
        let one = |into: &Path| one(&library, Path::new("/a/50_mesa.json"), &note, into);
        fs::write(&library, "one").unwrap();
        let description = one(&folder.join("0")).unwrap();
        let copy = folder.join("0").join(LIBRARY);
        assert!(is_copy(&library, &copy).unwrap());
        assert!(fs::read_to_string(&description).unwrap().contains(copy.to_str().unwrap()));
        assert_eq!(Note::parse(&fs::read_to_string(folder.join("0/driver")).unwrap()), Some(note.clone()));
        fs::write(&library, "second").unwrap();
        assert!(!is_copy(&library, &copy).unwrap());
        one(&folder.join("0")).unwrap();
        assert_eq!(fs::read_to_string(&copy).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.join("0")).unwrap().count(), 3, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
