//! Profiles and models that `takt profile` and `takt train` have left for this GPU and driver.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use takt_predict::exactness::Exactness;
use takt_predict::profile::Profile;
use takt_predict::programs::ProgramRates;
use takt_predict::shaders::{self, ShaderModels};
use takt_predict::store;

use super::{Models, Programs, are_sources_wanted, rough};
use crate::guard;
use crate::measure::Judge;
use crate::settings::{self, settings};

/// What is known about a GPU.
struct StoredModels {
    gpu: String,
    driver: String,
    profile: Profile,
    shaders: Option<ShaderModels>,
    programs: Arc<Programs>,
    exactness: Arc<Exactness>,
}

/// GPUs that were looked for: few, so a list does.
static STORED: Mutex<Vec<Arc<StoredModels>>> = Mutex::new(Vec::new());

/// The models that were asked for, with all that is known about this GPU; none if none were.
pub fn models(renderer: &str, driver: &str) -> Option<Models> {
    let choice = &settings().choice;
    if choice.combinations().is_empty() {
        return None;
    }
    let known = stored(settings::gpu_name(renderer), driver);
    Models::new(choice, &known.profile, known.shaders.as_ref(), known.programs.clone())
}

/// Which ways of cutting draws are exact with that driver, as its self-test found.
pub(crate) fn exactness(renderer: &str, driver: &str) -> Arc<Exactness> {
    stored(settings::gpu_name(renderer), driver).exactness.clone()
}

/// Who judges the clocks of this GPU.
pub(crate) fn judge(renderer: &str, driver: &str) -> Arc<Judge> {
    let gpu = settings::gpu_name(renderer);
    let ratio = stored(gpu.clone(), driver).profile.timer_ratio;
    Judge::of(&gpu, driver, (ratio > 0.0).then_some(ratio))
}

fn stored(gpu: String, driver: &str) -> Arc<StoredModels> {
    let mut list = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = list.iter().find(|known| known.gpu == gpu && known.driver == driver) {
        return known.clone();
    }
    let folder = store::folder(&gpu, driver);
    let named = settings().profile.clone();
    let profile = named.or_else(|| find(&folder, store::PROFILE, "constants", read_profile));
    let shaders = find(&folder, store::MODELS, "shader models", read_models);
    if settings().verbose && !settings().choice.combinations().is_empty() {
        let lacks = |there: bool, what: &str| {
            if !there {
                guard::say(&format!("no {what} of {gpu} are stored; rough ones are used"));
            }
        };
        lacks(profile.is_some(), "constants (takt profile measures them)");
        lacks(shaders.is_some(), "shader models (takt train makes them)");
    }
    let programs = programs(&folder);
    let exactness = find(&folder, store::EXACTNESS, "findings of the self-test", read_exactness);
    let exactness = Arc::new(exactness.unwrap_or_else(Exactness::untried));
    if settings().verbose && settings().choice.history() && shaders.is_none() {
        let what = if programs.is_empty() { "" } else { " for programs that were not profiled" };
        let why = "no shader models are stored (takt train makes them)";
        guard::say(&format!("{gpu}: {why}, so profiled and mars predict the same{what}"));
    }
    let profile = profile.unwrap_or_else(rough);
    let known =
        Arc::new(StoredModels { gpu, driver: driver.to_owned(), profile, shaders, programs, exactness });
    list.push(known.clone());
    known
}

/// Rates of programs from all stores, and where those that were never measured are noted: in the
/// first store, which is the user's own.
fn programs(folder: &str) -> Arc<Programs> {
    let mut rates = ProgramRates::default();
    if !settings().choice.combinations().is_empty() {
        let found = found(folder, store::RATES, "rates of programs", read_rates);
        found.for_each(|others| rates.add(&others));
    }
    let own = settings().store.first().filter(|_| are_sources_wanted());
    Arc::new(Programs::new(rates, own.map(|store| store.join(folder).join(store::PROGRAMS))))
}

/// The first of a GPU's files that is there.
fn find<T>(folder: &str, file: &str, what: &str, read: fn(&Path) -> Result<T, String>) -> Option<T> {
    found(folder, file, what, read).next()
}

/// A GPU's files of this name in all stores; one that is damaged is named and passed over.
fn found<T>(
    folder: &str,
    file: &str,
    what: &str,
    read: fn(&Path) -> Result<T, String>,
) -> impl Iterator<Item = T> {
    let paths = settings().store.iter().map(move |store| store.join(folder).join(file));
    paths.filter(|path| path.is_file()).filter_map(move |path: PathBuf| match read(&path) {
        Ok(found) => {
            if settings().verbose {
                guard::say(&format!("{what} are those of {}", path.display()));
            }
            Some(found)
        }
        Err(problem) => {
            guard::say(&format!("{}: {problem}; it is not used", path.display()));
            None
        }
    })
}

/// What is no text is damaged like all else whose last line is not right.
fn read_text(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_profile(path: &Path) -> Result<Profile, String> {
    let text = read_text(path)?;
    let body = store::unseal(&text).map_err(|error| format!("{error}; run takt profile again"))?;
    Profile::parse(body).map_err(|error| format!("{error}; run takt profile again"))
}

fn read_models(path: &Path) -> Result<ShaderModels, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    shaders::decode(&bytes).map_err(|error| format!("{error}; run takt train again"))
}

fn read_exactness(path: &Path) -> Result<Exactness, String> {
    Exactness::parse(&read_text(path)?).map_err(|error| format!("{error}; run takt profile again"))
}

fn read_rates(path: &Path) -> Result<ProgramRates, String> {
    let text = read_text(path)?;
    ProgramRates::parse(&text).map_err(|error| format!("{error}; run takt profile --programs again"))
}
