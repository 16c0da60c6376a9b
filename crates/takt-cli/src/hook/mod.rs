//! Putting Takt under a program, without installing anything.
//!
//! [`mod@vendors`] finds the EGL drivers of the system and [`glx`] those of GLX, [`folder`] makes what
//! stands in front of them, and [`Hooking`] says what the program's environment must be. [`libraries`]
//! tells which libEGL there is, [`program`] whether a program listens to its environment at all.

mod folder;
pub(crate) mod glx;
pub(crate) mod libraries;
pub(crate) mod program;
mod vendors;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use libraries::Libraries;
pub(crate) use vendors::{Vendor, vendors};

/// Names the library to load, where it is neither beside the `takt` command nor installed.
pub(crate) const LIBRARY_VARIABLE: &str = "TAKT_HOOK_LIBRARY";

/// Name of the library.
pub(crate) const LIBRARY: &str = "libEGL_takt.so";

/// Tells libEGL which drivers there are.
const FILENAMES: &str = "__EGL_VENDOR_LIBRARY_FILENAMES";

/// How calls are caught.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Way {
    /// In front of the drivers that libglvnd knows, if programs use it, else by preloading.
    #[default]
    Auto,
    /// As EGL driver of libglvnd: sees every call, however the program found it.
    Vendor,
    /// Preloaded: for systems without libglvnd.
    Preload,
}

/// What makes a program run with Takt underneath.
#[derive(Debug)]
pub(crate) struct Hooking {
    /// How calls will be caught; never `Auto`.
    pub(crate) way: Way,
    /// The library.
    pub(crate) library: PathBuf,
    /// The drivers in question.
    pub(crate) vendors: Vec<Vendor>,
    /// Those of GLX, if programs that use it are hooked.
    pub(crate) glx: Vec<String>,
    /// Variables to set for the program.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

impl Hooking {
    /// Prepares everything that must lie on disk.
    pub(crate) fn prepare(way: Way) -> anyhow::Result<Self> {
        let library = library()?;
        let (vendors, problems) = vendors();
        for problem in &problems {
            crate::output::warn(&format!("takt: {problem}"));
        }
        let way = match way {
            Way::Auto if vendors.is_empty() || has_other_egl() => Way::Preload,
            Way::Auto => Way::Vendor,
            way => way,
        };
        let glx_library = glx::beside(&library).filter(|_| way == Way::Vendor);
        let glx = glx_library.as_ref().map(|_| glx::drivers(&Libraries::all())).unwrap_or_default();
        let mut variables = match way {
            Way::Preload => vec![("LD_PRELOAD", preload(&library))],
            _ if vendors.is_empty() => bail!(
                "no EGL driver is known to libglvnd: install one (for example Debian's libegl-mesa0), \
                 or preload with --hook preload"
            ),
            _ => vec![(FILENAMES, folder::write(&library, &vendors)?)],
        };
        if let Some(library) = glx_library.filter(|_| !glx.is_empty()) {
            variables.extend(glx::write(&library, &glx)?);
        }
        Ok(Self { way, library, vendors, glx, variables })
    }
}

impl fmt::Display for Hooking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers = self.vendors.iter().map(|vendor| &vendor.library).chain(&self.glx);
        let drivers: Vec<&str> = drivers.map(String::as_str).collect();
        match self.way {
            Way::Preload => write!(f, "{} is preloaded", self.library.display()),
            _ => write!(f, "{} stands in front of {}", self.library.display(), drivers.join(" and ")),
        }
    }
}

/// Whether programs are led past libglvnd, to a libEGL that loads no drivers.
fn has_other_egl() -> bool {
    Libraries::named().find(libraries::EGL).is_some_and(|path| !libraries::is_glvnd(&path))
}

/// Ours goes first, others stay.
fn preload(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// The library: named, beside the command, or installed.
fn library() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(LIBRARY_VARIABLE) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("{LIBRARY_VARIABLE} names {}, which is no file", named.display());
        }
        return Ok(named.canonicalize()?);
    }
    let command = std::env::current_exe().context("cannot tell where the takt command lies")?;
    let here = command.parent().unwrap_or_else(|| Path::new("/"));
    let places = [here.join(LIBRARY), here.join("../lib/takt").join(LIBRARY)];
    let found = places.iter().find(|place| place.is_file());
    let Some(found) = found else {
        let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        bail!(
            "cannot find {LIBRARY}; looked for {}. Build it with `make build`, or name it with {LIBRARY_VARIABLE}",
            tried.join(" and ")
        );
    };
    Ok(found.canonicalize()?)
}
