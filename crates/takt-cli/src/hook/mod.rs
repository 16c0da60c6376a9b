//! Putting Takt under a program, without installing anything.
//!
//! [`mod@vendors`] finds the EGL drivers of the system and [`glx`] those of GLX, [`folder`] makes what
//! stands in front of them, and [`Hooking`] says what the program's environment must be. [`libraries`]
//! tells which libEGL there is, [`program`] whether a program listens to its environment at all. [`cuda`] stands in
//! front of CUDA's driver, and [`slices`] lets programs set their own time slices.

pub(crate) mod cuda;
mod environment;
mod folder;
pub(crate) mod glx;
pub(crate) mod libraries;
pub(crate) mod program;
mod slices;
mod stand_in;
mod vendors;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use cuda::Cuda;
use environment::Environment;
pub(crate) use environment::{PATH, PRELOAD};
use libraries::Libraries;
pub(crate) use vendors::{Vendor, vendors};

/// Names the library to load, where it is neither beside the `takt` command nor installed.
pub(crate) const LIBRARY_VARIABLE: &str = "TAKT_HOOK_LIBRARY";

/// Name of the library.
pub(crate) const LIBRARY: &str = "libEGL_takt.so";

/// Tells libEGL which drivers there are.
pub(crate) const FILENAMES: &str = "__EGL_VENDOR_LIBRARY_FILENAMES";

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
    /// CUDA's driver, if programs that use it are hooked.
    pub(crate) cuda: Option<Cuda>,
    /// The folder of what stands in front of drivers, if there is any.
    pub(crate) files: Option<PathBuf>,
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
        if way == Way::Vendor && vendors.is_empty() {
            bail!(
                "no EGL driver is known to libglvnd: install one (for example Debian's libegl-mesa0), \
                 or preload with --hook preload"
            );
        }
        let mut environment = Environment::default();
        let cuda = Cuda::prepare(&library)?;
        environment.preload.extend(slices::library(&library, cuda.as_ref())?);
        environment.path.extend(cuda.iter().map(|cuda| cuda.folder.clone()));
        let mut glx = Vec::new();
        if way == Way::Preload {
            environment.preload.extend(cuda.as_ref().map(Cuda::library));
            environment.preload.push(library.clone());
        } else {
            environment.variables.push((FILENAMES, folder::write(&library, &vendors)?));
            if let Some(library) = glx::beside(&library) {
                glx = glx::drivers(&Libraries::all());
                if !glx.is_empty() {
                    glx::write(&library, &glx, &mut environment)?;
                }
            }
        }
        let files = folder::root().ok().filter(|_| way == Way::Vendor);
        Ok(Self { way, library, vendors, glx, cuda, files, variables: environment.variables() })
    }
}

impl fmt::Display for Hooking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers = self.vendors.iter().map(|vendor| &vendor.library).chain(&self.glx);
        let cuda = self.cuda.as_ref().map(|cuda| cuda.driver.display().to_string());
        let drivers: Vec<&str> = drivers.chain(&cuda).map(String::as_str).collect();
        match self.way {
            Way::Preload => {
                write!(f, "{} is preloaded", self.library.display())?;
                cuda.iter().try_for_each(|driver| write!(f, ", and CUDA is seen in front of {driver}"))
            }
            _ => write!(f, "{} stands in front of {}", self.library.display(), drivers.join(" and ")),
        }
    }
}

/// Whether programs are led past libglvnd, to a libEGL that loads no drivers.
fn has_other_egl() -> bool {
    Libraries::named().find(libraries::EGL).is_some_and(|path| !libraries::is_glvnd(&path))
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
