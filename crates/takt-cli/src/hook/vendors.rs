//! The EGL drivers that libglvnd would load, found by its own rules.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use takt_gl::vendor::{INNER_FILE, Note};

use super::{FILENAMES, LIBRARY};

/// Lists folders with the descriptions of drivers.
const DIRECTORIES: &str = "__EGL_VENDOR_LIBRARY_DIRS";

/// Where descriptions are kept if nothing else is said.
const STANDARD: [&str; 2] = ["/etc/glvnd/egl_vendor.d", "/usr/share/glvnd/egl_vendor.d"];

/// A driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vendor {
    /// Its description.
    pub(crate) json: PathBuf,
    /// Its library, as the description names it: a path, or a name for the loader to find.
    pub(crate) library: String,
}

impl Vendor {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        let stem = self.json.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        stem.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned()
    }
}

/// All drivers in the order in which libEGL asks them, and what is wrong with descriptions.
pub(crate) fn vendors() -> (Vec<Vendor>, Vec<String>) {
    let (mut vendors, mut problems) = (Vec::new(), Vec::new());
    for json in descriptions() {
        match read(&json) {
            Ok(library) => add(&mut vendors, Vendor { json, library }),
            Err(problem) => problems.push(problem),
        }
    }
    (vendors, problems)
}

/// Adds a driver. Where Takt stands in front already, the driver's own description follows behind ours, and is the
/// one to keep.
fn add(vendors: &mut Vec<Vendor>, vendor: Vendor) {
    let file = |vendor: &Vendor| Path::new(&vendor.library).file_name().map(OsStr::to_owned);
    match vendors.iter_mut().find(|known| file(known) == file(&vendor)) {
        Some(known) => *known = vendor,
        None => vendors.push(vendor),
    }
}

fn descriptions() -> Vec<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(names) = set(FILENAMES) {
        return env::split_paths(&names).collect();
    }
    let folders: Vec<PathBuf> = match set(DIRECTORIES) {
        Some(names) => env::split_paths(&names).collect(),
        None => STANDARD.iter().map(PathBuf::from).collect(),
    };
    folders.iter().flat_map(|folder| inside(folder)).collect()
}

/// The descriptions in a folder, by name; a folder that is not there has none.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("json")))
        .collect();
    files.sort();
    files
}

/// The library that a description names; what lies behind Takt, if Takt stands in front already.
fn read(json: &Path) -> Result<String, String> {
    let shown = json.display();
    let text =
        fs::read_to_string(json).map_err(|error| format!("{shown}: {error}; this driver is left out"))?;
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{shown}: {error}; this driver is left out, as libEGL does"))?;
    let library = value["ICD"]["library_path"].as_str();
    let library =
        library.ok_or_else(|| format!("{shown}: ICD.library_path is missing; this driver is left out"))?;
    if Path::new(library).file_name() != Some(OsStr::new(LIBRARY)) {
        return Ok(library.to_owned());
    }
    let path = Path::new(library).with_file_name(INNER_FILE);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let note = Note::parse(&text)
        .ok_or_else(|| format!("{}: it names no driver; remove its folder", path.display()))?;
    Ok(note.driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_have_short_names() {
        let vendor = Vendor { json: "/a/10_nvidia.json".into(), library: "libEGL_nvidia.so.0".into() };
        assert_eq!(vendor.name(), "nvidia");
    }

    #[test]
    fn a_driver_behind_ours_is_the_same_one() {
        let vendor = |json: &str, library: &str| Vendor { json: json.into(), library: library.to_owned() };
        let mut vendors = vec![vendor("/cache/50_mesa.json", "/usr/lib/libEGL_mesa.so.0")];
        add(&mut vendors, vendor("/usr/share/50_mesa.json", "libEGL_mesa.so.0"));
        add(&mut vendors, vendor("/usr/share/10_x.json", "libEGL_x.so.0"));
        assert_eq!(vendors[0], vendor("/usr/share/50_mesa.json", "libEGL_mesa.so.0"));
        assert_eq!(vendors.len(), 2);
    }

    #[test]
    fn broken_descriptions_are_named() {
        let folder = env::temp_dir().join(format!("takt-vendors-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("2.json"), "{").unwrap();
        fs::write(folder.join("1.json"), r#"{"ICD":{"library_path":"libA.so"}}"#).unwrap();
        fs::write(folder.join("3.json"), r#"{"ICD":{}}"#).unwrap();
        fs::write(folder.join("4.txt"), "").unwrap();
        let read: Vec<_> = inside(&folder).iter().map(|json| read(json)).collect();
        assert_eq!(read.len(), 3);
        assert_eq!(read[0], Ok("libA.so".to_owned()));
        assert!(read[1].as_ref().unwrap_err().contains("2.json"));
        assert!(read[2].as_ref().unwrap_err().contains("library_path"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
