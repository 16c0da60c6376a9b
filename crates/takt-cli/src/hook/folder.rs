//! What stands in front of drivers, on disk.
//!
//! Each driver gets a folder with a copy of our library, a note that names the driver, and a
//! description for libEGL; [`stand_in`] says under which name. One library cannot serve two
//! drivers: libEGL refuses to load a file twice. Everything lies in the user's cache and stays there,
//! because programs may outlive the `takt run` that started them; files are replaced as a whole, so a
//! program that has one loaded keeps it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use takt_calibrate::store::replace;
use takt_daemon::control::socket_path;
use takt_gl::vendor::{INNER_FILE, Note};

use super::libraries::Libraries;
use super::{LIBRARY, Vendor, stand_in};

/// Writes what is missing or stale; returns the list of descriptions for libEGL: ours, and behind them those of
/// drivers for programs that do not find ours.
pub(crate) fn write(library: &Path, vendors: &[Vendor]) -> anyhow::Result<OsString> {
    let root = root()?;
    let libraries = Libraries::all();
    let (mut descriptions, mut behind) = (Vec::new(), Vec::new());
    for (number, vendor) in vendors.iter().enumerate() {
        let folder = root.join(format!("{number}-{}", vendor.name()));
        let (number, copies) = (number as u64, vendors.len() as u64);
        let path =
            stand_in::path(vendor, &libraries).and_then(|path| path.into_os_string().into_string().ok());
        let named = path.as_ref().map(|_| vendor.library.as_str());
        let driver = path.clone().unwrap_or_else(|| vendor.library.clone());
        let note = Note { driver, number, copies };
        let (description, stands_in) =
            one(library, &vendor.json, &note, named, &folder).with_context(|| remedy(&folder))?;
        descriptions.push(description);
        behind.extend(stands_in.then(|| vendor.json.clone()));
    }
    descriptions.extend(behind);
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

/// Writes one copy with what belongs to it, if it can under the driver's name; its description, and whether it has
/// that name.
fn one(
    library: &Path,
    json: &Path,
    note: &Note,
    name: Option<&str>,
    folder: &Path,
) -> anyhow::Result<(PathBuf, bool)> {
    let stands_in = copy(library, name, folder)?;
    put(&folder.join(INNER_FILE), &note.to_string())?;
    let copy = folder.join(LIBRARY);
    let description = folder.join(json.file_name().context("a description has a name")?);
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": copy.to_str().context("the path is no UTF-8, which JSON demands")? },
    });
    put(&description, &format!("{text:#}\n"))?;
    Ok((description, stands_in))
}

/// Makes a copy of the library, unless it is there; whether its own name is the driver's.
fn copy(library: &Path, name: Option<&str>, folder: &Path) -> io::Result<bool> {
    // Which name the copy has, and of which library it was made.
    let (copy, about) = (folder.join(LIBRARY), folder.join("name"));
    let name = name.unwrap_or_default();
    if is_copy(library, &copy)? && fs::read_to_string(&about).is_ok_and(|there| there == name) {
        return Ok(!name.is_empty());
    }
    fs::create_dir_all(folder)?;
    let Some(renamed) = stand_in::renamed(&fs::read(library)?, name) else {
        // A copy that has another name is none of this library.
        let is_other = fs::read_to_string(&about).is_ok_and(|there| !there.is_empty());
        is_other.then(|| fs::remove_file(&copy)).transpose()?;
        put(&about, "")?;
        self::library(library, &copy)?;
        return Ok(false);
    };
    replace(&copy, |path| {
        fs::write(path, renamed)?;
        fs::File::options().write(true).open(path)?.set_modified(fs::metadata(library)?.modified()?)
    })?;
    put(&about, name)?;
    Ok(true)
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
        let one =
            |into: &Path| one(&library, Path::new("/a/50_mesa.json"), &note, Some("libEGL_mesa.so.0"), into);
        fs::write(&library, "one").unwrap();
        let (description, stands_in) = one(&folder.join("0")).unwrap();
        assert!(!stands_in, "it has no room for a name");
        let copy = folder.join("0").join(LIBRARY);
        assert!(is_copy(&library, &copy).unwrap());
        assert!(fs::read_to_string(&description).unwrap().contains(copy.to_str().unwrap()));
        assert_eq!(Note::parse(&fs::read_to_string(folder.join("0/driver")).unwrap()), Some(note.clone()));
        fs::write(&library, "second").unwrap();
        assert!(!is_copy(&library, &copy).unwrap());
        one(&folder.join("0")).unwrap();
        assert_eq!(fs::read_to_string(&copy).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.join("0")).unwrap().count(), 4, "nothing is left behind");
        fs::write(&library, "libEGL_takt.so-in-place-of-").unwrap();
        assert!(one(&folder.join("0")).unwrap().1);
        assert!(fs::read_to_string(&copy).unwrap().starts_with("libEGL_mesa.so.0\0"));
        assert!(is_copy(&library, &copy).unwrap() && one(&folder.join("0")).unwrap().1, "it is kept");
        fs::remove_dir_all(&folder).unwrap();
    }
}
