//! Time slices of NVIDIA GPUs: the library by which a program sets its own.

use std::path::{Path, PathBuf};

use super::{cuda, folder};

/// Name of the library.
const LIBRARY: &str = "libtakt_ioctl.so";

/// The device file that each program with an NVIDIA driver opens.
const DEVICE: &str = "/dev/nvidiactl";

/// The library to preload; none where no program could have slices.
pub(super) fn library(egl: &Path, cuda: Option<&cuda::Cuda>) -> anyhow::Result<Option<PathBuf>> {
    let library = egl.with_file_name(LIBRARY);
    if !library.is_file() || !(cuda.is_some() || Path::new(DEVICE).exists()) {
        return Ok(None);
    }
    // Programs may outlive the folder that it was built in.
    let copy = folder::root()?.join("slices").join(LIBRARY);
    folder::library(&library, &copy)
        .map_err(|error| anyhow::Error::new(error).context(folder::remedy(&copy)))?;
    Ok(Some(copy))
}
