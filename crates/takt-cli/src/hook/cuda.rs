//! CUDA: where the driver is, and what stands in front of it.
//!
//! Programs find the driver as `libcuda.so.1` or `libcuda.so`, so our library lies under both names in a folder that
//! `LD_LIBRARY_PATH` leads to. Beside it is a link to the driver under the name by which our library needs it. Programs
//! that do not use CUDA load none of this.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::folder;
use super::libraries::Libraries;

/// Name of the library as it is built.
const LIBRARY: &str = "libcuda_takt.so";

/// Name of the driver as programs load it.
const LOADED: &str = "libcuda.so.1";

/// The same without a version.
const UNVERSIONED: &str = "libcuda.so";

/// The name by which our library needs the driver; that of `takt-cuda-hook/build.rs`.
const DRIVER: &str = "libcuda-driver.so";

/// Where our library itself lies under that name, for a driver that is gone.
const NO_DRIVER: &str = "none";

/// What stands in front of a CUDA driver.
#[derive(Debug)]
pub(crate) struct Cuda {
    /// The driver.
    pub(crate) driver: PathBuf,
    /// The folder that programs are led to.
    pub(super) folder: PathBuf,
}

impl Cuda {
    /// Writes what is missing or stale, if there is a driver and the library is beside the one for EGL.
    pub(super) fn prepare(egl: &Path) -> anyhow::Result<Option<Self>> {
        let library = egl.with_file_name(LIBRARY);
        let Some(driver) = driver()?.filter(|_| library.is_file()) else {
            return Ok(None);
        };
        let folder = folder::root()?.join(name(&driver));
        write(&library, &driver, &folder).with_context(|| folder::remedy(&folder))?;
        Ok(Some(Self { driver, folder }))
    }

    /// The library as programs load it.
    pub(crate) fn library(&self) -> PathBuf {
        self.folder.join(LOADED)
    }
}

/// The driver as the loader would find it without us.
pub(crate) fn driver() -> anyhow::Result<Option<PathBuf>> {
    let found = Libraries::all().outside(&folder::root()?).find(LOADED);
    Ok(found.map(std::path::absolute).transpose()?)
}

/// Each driver has a folder of its own: programs may run with several.
fn name(driver: &Path) -> String {
    format!("cuda{}", driver.display().to_string().replace('/', "-"))
}

fn write(library: &Path, driver: &Path, folder: &Path) -> io::Result<()> {
    folder::library(library, &folder.join(LOADED))?;
    fs::create_dir_all(folder.join(NO_DRIVER))?;
    link(Path::new(LOADED), &folder.join(UNVERSIONED))?;
    link(driver, &folder.join(DRIVER))?;
    link(&Path::new("..").join(LOADED), &folder.join(NO_DRIVER).join(DRIVER))
}

/// Makes a link, unless it is there; one to elsewhere is replaced as a whole.
fn link(to: &Path, from: &Path) -> io::Result<()> {
    if fs::read_link(from).is_ok_and(|there| there == to) {
        return Ok(());
    }
    let beside = from.with_extension(format!("{}.new", std::process::id()));
    symlink(to, &beside)?;
    fs::rename(&beside, from).inspect_err(|_error| {
        // Nothing is left behind; what went wrong first is what matters.
        let _gone = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_our_library_and_our_library_the_driver() {
        let folder = std::env::temp_dir().join(format!("takt-cuda-{}", std::process::id()));
        let (library, place) = (folder.join("ours"), folder.join("place"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(&library, "ours").unwrap();
        for driver in ["/old/libcuda.so.1", "/new/libcuda.so.1", "/new/libcuda.so.1"] {
            write(&library, Path::new(driver), &place).unwrap();
            assert_eq!(fs::read_to_string(place.join("libcuda.so")).unwrap(), "ours");
            assert_eq!(fs::read_to_string(place.join("none/libcuda-driver.so")).unwrap(), "ours");
            assert_eq!(fs::read_link(place.join("libcuda-driver.so")).unwrap(), Path::new(driver));
            assert_eq!(fs::read_dir(&place).unwrap().count(), 4, "nothing is left behind");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn drivers_have_folders_of_their_own() {
        assert_eq!(name(Path::new("/usr/lib/libcuda.so.1")), "cuda-usr-lib-libcuda.so.1");
    }
}
