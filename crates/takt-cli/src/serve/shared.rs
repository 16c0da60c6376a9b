//! How processes share the GPU, as `takt profile` found.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use takt_calibrate::store::Shelf;
use takt_core::Gpu;
use takt_daemon::control::config::time_shared;
use takt_predict::profile::Execution;

use crate::output;

/// A model of the GPU, and where it comes from.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Measured {
    /// The model.
    pub(super) gpu: Gpu,
    /// The GPUs that were measured, by their names in the store.
    pub(super) names: Vec<String>,
}

/// The GPU as profiles of this machine have it, if they all say the same. The daemon draws nothing, so it
/// does not know which of several GPUs and drivers its programs use.
pub(super) fn measured(stores: &[PathBuf]) -> Option<Measured> {
    let (mut found, mut seen): (Vec<(Gpu, String)>, Vec<OsString>) = (Vec::new(), Vec::new());
    for shelf in stores.iter().flat_map(|store| Shelf::list(store).unwrap_or_default()) {
        // Of one GPU and driver, the first store that knows them counts.
        let path = shelf.profile_path();
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_owned();
        if seen.contains(&name) {
            continue;
        }
        match shelf.sharing() {
            Err(damaged) => output::warn(&format!("takt: {damaged}; what it says of the GPU is not used")),
            Ok(Some(sharing)) => {
                found.extend(gpu(sharing.execution).map(|gpu| (gpu, name.to_string_lossy().into_owned())));
                seen.push(name);
            }
            Ok(None) => {}
        }
    }
    let (first, _) = *found.first()?;
    if found.iter().any(|(other, _)| *other != first) {
        output::warn(
            "takt: profiles of several GPUs or drivers differ in how processes share them; none is used: \
             write slice_us and switch_us to [gpu] of the configuration",
        );
        return None;
    }
    Some(Measured { gpu: first, names: found.into_iter().map(|(_, name)| name).collect() })
}

/// Only turns matter: the daemon takes every GPU to finish in an order of its own.
fn gpu(execution: Execution) -> Option<Gpu> {
    match execution {
        Execution::TimeShared { slice_us, switch_us } => time_shared(slice_us, switch_us).ok(),
        Execution::SideBySide | Execution::InOrder { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::Span;
    use takt_predict::profile::{Profile, Sharing};

    #[test]
    fn profiles_that_agree_say_how_the_gpu_is_shared() {
        let root = std::env::temp_dir().join(format!("takt-shared-{}", std::process::id()));
        let stores = [root.join("own"), root.join("system")];
        let keep = |store: usize, gpu: &str, execution: Execution| {
            let profile =
                Profile { sharing: Some(Sharing { execution, delay_us: 40.0 }), ..Profile::default() };
            Shelf::new(&stores[store], gpu, "1.0").keep_profile(profile.to_text()).expect("kept");
        };
        let model = || measured(&stores).map(|measured| measured.gpu);
        assert_eq!(measured(&stores), None);
        keep(0, "a renderer on the CPU", Execution::SideBySide);
        assert_eq!(measured(&stores), None);
        keep(1, "a GPU", Execution::TimeShared { slice_us: 2000.0, switch_us: 150.0 });
        let gpu = Gpu::TimeShared { slice: Span::from_us(2000), switch: Span::from_us(150) };
        assert_eq!(model(), Some(gpu));
        let names = measured(&stores).expect("a model").names;
        assert_eq!(names, [takt_predict::store::folder("a GPU", "1.0")], "the CPU is no GPU");
        keep(0, "a GPU", Execution::TimeShared { slice_us: 4000.0, switch_us: 0.0 });
        let own = Gpu::TimeShared { slice: Span::from_us(4000), switch: Span::ZERO };
        assert_eq!(model(), Some(own), "the first store counts");
        keep(0, "another GPU", Execution::TimeShared { slice_us: 1000.0, switch_us: 150.0 });
        assert_eq!(measured(&stores), None, "it is unknown which one programs use");
        std::fs::remove_dir_all(&root).expect("it was there");
    }
}
