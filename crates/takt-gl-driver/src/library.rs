//! Libraries that are loaded at run time: a program starts on a machine that lacks some of them, and says what is
//! missing when it needs it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use takt_gl_api::entry::{self, Id};

/// Why a library cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Missing {
    /// It is not there, or does not load.
    #[error("cannot load {name}: {reason} (Debian: install {package})")]
    Library {
        /// File name.
        name: &'static str,
        /// What the loader says.
        reason: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// It lacks a function.
    #[error("the system's libraries lack the function {0}")]
    Function(String),
}

/// A library of the system, which stays loaded.
#[derive(Debug)]
pub struct Library(libloading::Library);

impl Library {
    /// Loads a library for good.
    ///
    /// # Errors
    ///
    /// If it is not there, or does not load.
    pub fn open(name: &'static str, package: &'static str) -> Result<&'static Self, Missing> {
        // SAFETY: loading runs the initialisers of a system library, as linking with it would.
        let library = unsafe { libloading::Library::new(name) };
        let library =
            library.map_err(|error| Missing::Library { name, reason: error.to_string(), package })?;
        Ok(Box::leak(Box::new(Self(library))))
    }

    /// The address of a function or variable; null if there is none.
    pub fn address(&self, name: &CStr) -> *mut c_void {
        // SAFETY: only the address is taken; its user states the type.
        let symbol = unsafe { self.0.get::<*mut c_void>(name) };
        symbol.map_or(std::ptr::null_mut(), |symbol| *symbol)
    }

    /// The same, if it must be there.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn needed(&self, name: &CStr) -> Result<*mut c_void, Missing> {
        let found = self.address(name);
        if found.is_null() { Err(Missing::Function(name.to_string_lossy().into_owned())) } else { Ok(found) }
    }
}

/// libEGL, libGLESv2 and `eglGetProcAddress`, once they are loaded.
static LIBRARIES: OnceLock<Result<Libraries, Missing>> = OnceLock::new();

struct Libraries {
    egl: &'static Library,
    gles: &'static Library,
    proc_address: entry::Finder,
}

impl Libraries {
    fn load() -> Result<Self, Missing> {
        let egl = Library::open("libEGL.so.1", "libegl1")?;
        let gles = Library::open("libGLESv2.so.2", "libgles2")?;
        let found = egl.needed(c"eglGetProcAddress")?;
        // SAFETY: the function of this name has this signature, by the headers of EGL.
        let proc_address = unsafe { std::mem::transmute::<*mut c_void, entry::Finder>(found) };
        Ok(Self { egl, gles, proc_address })
    }

    fn find(&self, name: &CStr) -> *mut c_void {
        let exported = [self.egl, self.gles].map(|library| library.address(name));
        let exported = exported.into_iter().find(|found| !found.is_null());
        // SAFETY: the name ends with a zero byte.
        exported.unwrap_or_else(|| unsafe { (self.proc_address)(name.as_ptr()) })
    }
}

/// Finds a function for the table of entry points; null if there is none.
unsafe extern "C" fn find(name: *const c_char) -> *mut c_void {
    let Some(Ok(libraries)) = LIBRARIES.get() else { return std::ptr::null_mut() };
    // SAFETY: the table hands over names that end with a zero byte.
    libraries.find(unsafe { CStr::from_ptr(name) })
}

/// Loads the libraries and makes sure that all these functions are there.
pub(crate) fn load(needed: &[Id]) -> Result<(), Missing> {
    if let Err(missing) = LIBRARIES.get_or_init(Libraries::load) {
        return Err(missing.clone());
    }
    entry::set_finder(find);
    match needed.iter().find(|id| !id.is_there()) {
        Some(missing) => Err(Missing::Function(missing.name().to_owned())),
        None => Ok(()),
    }
}
