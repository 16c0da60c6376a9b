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
    /// Whether it knows GL ES 3.
    pub(crate) newer: bool,
    /// `GL_RENDERER` and `GL_VERSION`.
    pub(crate) renderer: String,
    pub(crate) version: String,
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
        let extensions: Vec<String> =
            text(gl::EXTENSIONS).split_ascii_whitespace().map(str::to_owned).collect();
        let renderer = text(gl::RENDERER);
        let version = text(gl::VERSION);
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
        let newer = version.starts_with("OpenGL ES 3");
        Self { extensions, software, newer, renderer, version }
    }
}

/// Whether a renderer of that name runs on the CPU.
pub fn is_software(renderer: &str) -> bool {
    let renderer = renderer.to_ascii_lowercase();
    ["llvmpipe", "softpipe", "swrast", "swiftshader", "software"].iter().any(|name| renderer.contains(name))
}
