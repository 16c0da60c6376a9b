//! What the driver of a context says about itself.

use std::ffi::CStr;

use crate::entry::real;
use crate::settings::settings;
use crate::{gl, guard, measure};

/// What the driver says about itself.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) extensions: Vec<String>,
    /// Whether it renders on the CPU.
    pub(crate) software: bool,
    /// Whether it knows what GL ES 3 brought: fences and blocks of uniforms.
    pub(crate) newer: bool,
    /// Whether it is one of desktop GL.
    pub(crate) desktop: bool,
    /// `GL_RENDERER` and `GL_VERSION`.
    pub(crate) renderer: String,
    pub(crate) version: String,
    /// What the store calls it.
    pub(crate) stored: String,
}

impl Driver {
    /// Asks the current context.
    pub(crate) fn ask(display: usize) -> Self {
        let text = |what: u32| {
            // SAFETY: the context is current.
            let text = unsafe { real::glGetString(what) };
            if text.is_null() {
                return String::new();
            }
            // SAFETY: a string that lives as long as the context.
            unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned()
        };
        let renderer = text(gl::RENDERER);
        let version = text(gl::VERSION);
        let desktop = desktop_version(&version);
        let extensions: Vec<String> = match desktop {
            // A core profile has no string of all of them, and takes the question for an error.
            Some(number) if number >= [3, 0] => listed_extensions(),
            _ => text(gl::EXTENSIONS).split_ascii_whitespace().map(str::to_owned).collect(),
        };
        let software = is_software(&renderer);
        if let Some(path) = &settings().facts {
            let word = |yes: bool| if yes { "yes" } else { "no" };
            let (fences, software) = (word(measure::is_possible(display)), word(software));
            let facts = format!(
                "renderer={renderer}\nversion={version}\nfences={fences}\nsoftware={software}\nextensions={}\n",
                extensions.join(" ")
            );
            if let Err(error) = std::fs::write(path, facts) {
                guard::say(&format!("cannot write {}: {error}", path.display()));
            }
        }
        let newer = match desktop {
            Some(number) => number >= [3, 2],
            None => version.starts_with("OpenGL ES 3"),
        };
        let stored = stored_name(&version);
        Self { extensions, software, newer, desktop: desktop.is_some(), renderer, version, stored }
    }
}

/// The extensions of a context of desktop GL 3 or newer.
fn listed_extensions() -> Vec<String> {
    /// No driver has as many.
    const EXTENSIONS_MAX: u32 = 4096;
    let mut count = 0_i32;
    // SAFETY: the context is current, and knows this number.
    unsafe { real::glGetIntegerv(gl::NUM_EXTENSIONS, (&raw mut count).cast()) };
    let count = u32::try_from(count).unwrap_or(0).min(EXTENSIONS_MAX);
    let name = |number: u32| {
        // SAFETY: the context is current, and has so many.
        let name = unsafe { real::glGetStringi(gl::EXTENSIONS, number) };
        if name.is_null() {
            return None;
        }
        // SAFETY: a string that lives as long as the context.
        Some(unsafe { CStr::from_ptr(name.cast()) }.to_string_lossy().into_owned())
    };
    (0..count).filter_map(name).collect()
}

/// The version of desktop GL, if it is one.
fn desktop_version(version: &str) -> Option<[u32; 2]> {
    let number = version.split(' ').next()?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??])
}

/// What the store calls a driver. Its entries are made with contexts of GL ES; what they say about the GPU
/// holds for the same driver's contexts of desktop GL.
fn stored_name(version: &str) -> String {
    if desktop_version(version).is_none() {
        return version.to_owned();
    }
    let rest = version.split_once(' ').map_or("", |(_, rest)| rest);
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((_profile, driver)) => driver,
        None => rest,
    };
    format!("OpenGL ES 3.2 {rest}")
}

/// Whether a renderer of that name runs on the CPU.
pub fn is_software(renderer: &str) -> bool {
    let renderer = renderer.to_ascii_lowercase();
    ["llvmpipe", "softpipe", "swrast", "swiftshader", "software"].iter().any(|name| renderer.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_desktop_gl_from_gl_es() {
        assert_eq!(desktop_version("4.5 (Core Profile) Mesa 22.3.6"), Some([4, 5]));
        assert_eq!(desktop_version("4.6.0 NVIDIA 580.159.04"), Some([4, 6]));
        assert_eq!(desktop_version("2.1 Mesa 22.3.6"), Some([2, 1]));
        for other in ["OpenGL ES 3.2 Mesa 22.3.6", "OpenGL ES-CM 1.1 Mesa", ""] {
            assert_eq!(desktop_version(other), None, "{other}");
        }
    }

    #[test]
    fn a_driver_has_one_name_in_the_store() {
        let mesa = "OpenGL ES 3.2 Mesa 22.3.6";
        for version in [mesa, "4.5 (Core Profile) Mesa 22.3.6", "4.5 (Compatibility Profile) Mesa 22.3.6"] {
            assert_eq!(stored_name(version), mesa, "{version}");
        }
        assert_eq!(stored_name("4.6.0 NVIDIA 580.159.04"), "OpenGL ES 3.2 NVIDIA 580.159.04");
    }
}
