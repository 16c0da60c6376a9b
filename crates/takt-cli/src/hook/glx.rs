//! GLX: which drivers libGLX would load, and what stands in front of them.
//!
//! libGLX loads `libGLX_NAME.so.0`, where `__GLX_VENDOR_LIBRARY_NAME` or the X server says the name. So our
//! library lies in a folder of its own, which `LD_LIBRARY_PATH` leads to. A program that does not find it, in
//! a sandbox for example, gets the driver that the X server names.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use takt_gl::vendor::{INNER_FILE, Note};

use super::environment::Environment;
use super::folder;
use super::libraries::Libraries;

/// Name of the library as it is built.
pub(crate) const LIBRARY: &str = "libGLX_takt.so";

/// Name of the library as libGLX looks for it.
const LOADED: &str = "libGLX_takt.so.0";

/// Says which driver libGLX takes, instead of the one that the X server names.
pub(crate) const NAME: &str = "__GLX_VENDOR_LIBRARY_NAME";

/// Drivers that draw nothing themselves, and ours.
const OTHERS: [&str; 3] = ["indirect", "system", "takt"];

/// The drivers that libGLX may load, by the names of their libraries. What the user names comes alone.
pub(crate) fn drivers(libraries: &Libraries) -> Vec<String> {
    let named = env::var(NAME).ok().filter(|name| !name.is_empty() && name != "takt");
    match named {
        Some(name) => vec![format!("libGLX_{name}.so.0")],
        None => installed(libraries.names("libGLX_")),
    }
}

fn installed(names: Vec<String>) -> Vec<String> {
    let is_driver = |name: &String| {
        let vendor = name.strip_prefix("libGLX_").and_then(|rest| rest.strip_suffix(".so.0"));
        vendor.is_some_and(|vendor| !OTHERS.contains(&vendor))
    };
    names.into_iter().filter(is_driver).collect()
}

/// Writes what is missing or stale; adds what leads libGLX to it.
pub(super) fn write(library: &Path, drivers: &[String], environment: &mut Environment) -> anyhow::Result<()> {
    let vendor = |name: &String| name.trim_start_matches("libGLX_").trim_end_matches(".so.0").to_owned();
    let vendors: Vec<String> = drivers.iter().map(vendor).collect();
    let folder = folder::root()?.join(format!("glx-{}", vendors.join("-")));
    let note = Note { driver: drivers.join(" "), number: 0, copies: 1 };
    let written = folder::library(library, &folder.join(LOADED));
    let written = written.and_then(|()| folder::put(&folder.join(INNER_FILE), &note.to_string()));
    written.with_context(|| folder::remedy(&folder))?;
    environment.variables.push((NAME, "takt".into()));
    environment.path.push(folder);
    Ok(())
}

/// The library beside ours, where it is built or installed.
pub(super) fn beside(egl: &Path) -> Option<PathBuf> {
    Some(egl.with_file_name(LIBRARY)).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drivers_count() {
        let names = ["libGLX_indirect.so.0", "libGLX_mesa.so.0", "libGLX_takt.so.0", "libGLX_x.so.1"];
        assert_eq!(installed(names.map(str::to_owned).to_vec()), ["libGLX_mesa.so.0"]);
    }
}
