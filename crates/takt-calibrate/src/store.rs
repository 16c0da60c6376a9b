//! Where profiles and models are kept: a folder per GPU and driver, in the user's data folder.
//!
//! Files are written beside their place and then put there in one step, so a reader sees
//! the old or the new, whole. A damaged file is named, never used.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use takt_predict::exactness::Exactness;
use takt_predict::profile::{Profile, Sharing};
use takt_predict::programs::{ProgramRates, Sources};
use takt_predict::shaders::{self, ShaderModels};
use takt_predict::store;

/// Below each data folder.
const BELOW: &str = "takt/gpus";
/// Measurements of a training that goes on.
const UNFINISHED: &str = "training.part";
/// Measurements that the models were made from.
const FINISHED: &str = "training.txt";

/// The machine's store, which a daemon of the system fills.
const MACHINE: &str = "/var/lib/takt/gpus";

/// Where results are kept: in `$XDG_DATA_HOME`, in the folder that a service manager gives a daemon of the system
/// (`$STATE_DIRECTORY`), or in `~/.local/share`.
pub fn home() -> Option<PathBuf> {
    let data = absolute("XDG_DATA_HOME").map(|data| data.join(BELOW));
    let state = || absolute("STATE_DIRECTORY").map(|state| state.join("gpus"));
    let home = || absolute("HOME").map(|home| home.join(".local/share").join(BELOW));
    data.or_else(state).or_else(home)
}

fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// All stores: the user's own first, then the machine's, then those that came with the system (`$XDG_DATA_DIRS`).
pub fn all() -> Vec<PathBuf> {
    let dirs = env::var_os("XDG_DATA_DIRS").filter(|dirs| !dirs.is_empty());
    let dirs = dirs.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let system = env::split_paths(&dirs).filter(|path| path.is_absolute()).map(|path| path.join(BELOW));
    let mut all: Vec<PathBuf> = home().into_iter().chain([PathBuf::from(MACHINE)]).chain(system).collect();
    all.dedup();
    all
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct BadFile {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// How processes share a GPU, by the first of these stores that knows it; see [`all`].
///
/// # Errors
///
/// If a profile is damaged.
pub fn sharing(stores: &[PathBuf], gpu: &str, driver: &str) -> Result<Option<Sharing>, BadFile> {
    let found = stores.iter().map(|store| Shelf::new(store, gpu, driver).sharing());
    found.map(Result::transpose).find_map(|found| found).transpose()
}

/// What is kept about one GPU with one driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    /// The place of a GPU with a driver in a store.
    pub fn new(store: &Path, gpu: &str, driver: &str) -> Self {
        Self { folder: store.join(store::folder(gpu, driver)) }
    }

    /// All that there are in a store; none if there is no store.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn list(store: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(store) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut shelves = Vec::new();
        for entry in entries {
            let folder = entry?.path();
            if folder.is_dir() {
                shelves.push(Self { folder });
            }
        }
        shelves.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(shelves)
    }

    /// Where the profile is.
    pub fn profile_path(&self) -> PathBuf {
        self.folder.join(store::PROFILE)
    }

    /// Where the models are.
    pub fn models_path(&self) -> PathBuf {
        self.folder.join(store::MODELS)
    }

    /// Where measurements of an unfinished training are.
    pub fn unfinished_path(&self) -> PathBuf {
        self.folder.join(UNFINISHED)
    }

    /// Where measurements go once models were made from them.
    pub fn finished_path(&self) -> PathBuf {
        self.folder.join(FINISHED)
    }

    /// The profile; none if there is none.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn profile(&self) -> Result<Option<Profile>, BadFile> {
        read(self.profile_path(), |text| {
            let body = store::unseal(text).map_err(|error| error.to_string())?;
            Profile::parse(body).map_err(|error| error.to_string())
        })
    }

    /// How processes share the GPU; none if it was not measured.
    ///
    /// # Errors
    ///
    /// If the profile is damaged.
    pub fn sharing(&self) -> Result<Option<Sharing>, BadFile> {
        Ok(self.profile()?.and_then(|profile| profile.sharing))
    }

    /// Where the findings of the self-test are.
    pub fn exactness_path(&self) -> PathBuf {
        self.folder.join(store::EXACTNESS)
    }

    /// Which ways of cutting draws are exact; none if that was not tried.
    ///
    /// # Errors
    ///
    /// If the findings are damaged.
    pub fn exactness(&self) -> Result<Option<Exactness>, BadFile> {
        read(self.exactness_path(), |text| Exactness::parse(text).map_err(|error| error.to_string()))
    }

    /// Keeps what the self-test found.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep_exactness(&self, found: &Exactness) -> io::Result<()> {
        put(&self.exactness_path(), &found.to_text())
    }

    /// The trained models; none if there are none.
    ///
    /// # Errors
    ///
    /// If they are damaged, or made for other features.
    pub fn models(&self) -> Result<Option<ShaderModels>, BadFile> {
        read(self.models_path(), |text| shaders::decode(text.as_bytes()).map_err(|error| error.to_string()))
    }

    /// Where sources of programs are.
    pub fn programs_path(&self) -> PathBuf {
        self.folder.join(store::PROGRAMS)
    }

    /// Where rates of programs are.
    pub fn rates_path(&self) -> PathBuf {
        self.folder.join(store::RATES)
    }

    /// Rates of programs that were measured one by one; none if there are none.
    ///
    /// # Errors
    ///
    /// If they are damaged.
    pub fn rates(&self) -> Result<Option<ProgramRates>, BadFile> {
        read(self.rates_path(), |text| ProgramRates::parse(text).map_err(|error| error.to_string()))
    }

    /// Keeps rates of programs.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn keep_rates(&self, rates: &ProgramRates) -> io::Result<()> {
        put(&self.rates_path(), &rates.to_text())
    }

    /// Programs whose sources were noted, by name, and files that do not match their checksum. These are
    /// removed, so that they can be noted again.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn noted(&self) -> io::Result<(Vec<Sources>, Vec<BadFile>)> {
        let entries = match fs::read_dir(self.programs_path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            entries => entries?,
        };
        let paths: Result<Vec<PathBuf>, io::Error> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| path.to_string_lossy().ends_with(store::SOURCES_END));
        paths.sort();
        let (mut noted, mut bad) = (Vec::new(), Vec::new());
        for path in paths {
            let sources = read(path.clone(), |text| {
                let sources = Sources::parse(text).map_err(|error| error.to_string())?;
                let named = path.ends_with(store::sources_file(sources.id()));
                if named { Ok(sources) } else { Err("its name is that of another program".to_owned()) }
            });
            match sources {
                Ok(sources) => noted.extend(sources),
                Err(error) => {
                    // If it stays, it is named again next time.
                    let _gone = fs::remove_file(&path);
                    bad.push(error);
                }
            }
        }
        Ok((noted, bad))
    }

    /// Keeps a profile as text, remarks included.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep_profile(&self, text: String) -> io::Result<()> {
        put(&self.profile_path(), &store::seal(text))
    }

    /// Keeps models.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn keep_models(&self, models: &ShaderModels) -> io::Result<()> {
        put(&self.models_path(), &shaders::encode(models))
    }
}

fn read<T>(path: PathBuf, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, BadFile> {
    let text = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BadFile { path, reason: error.to_string() }),
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    parse(&text).map(Some).map_err(|reason| BadFile { path, reason })
}

/// Writes a text and its folder; the place holds the old or the new one, whatever happens.
fn put(path: &Path, text: &str) -> io::Result<()> {
    replace(path, |beside| fs::write(beside, text))
}

/// Has a file written beside its place, with its folder, and puts it there in one step: the place holds
/// the old or the new file, whatever happens.
///
/// # Errors
///
/// If it cannot be written.
pub fn replace(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(name);
    let put = || -> io::Result<()> {
        write(&beside)?;
        File::open(&beside)?.sync_all()?;
        fs::rename(&beside, path)?;
        // The name itself must survive, too.
        File::open(folder)?.sync_all()
    };
    put().inspect_err(|_error| {
        // Nothing is left behind; what went wrong first is what matters.
        let _gone = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use takt_predict::profile::Execution;

    use super::*;

    #[test]
    fn what_is_kept_is_read_and_damage_is_named() {
        let root = env::temp_dir().join(format!("takt-store-{}", std::process::id()));
        let shelf = Shelf::new(&root, "a GPU", "1.0");
        assert!(Shelf::list(&root).unwrap().is_empty());
        assert_eq!(shelf.profile().unwrap(), None);
        assert!(shelf.models().unwrap().is_none());
        let profile = Profile { gpu: "a GPU".to_owned(), flush_ns: 5.0, ..Profile::default() };
        shelf.keep_profile(profile.to_text() + "# a remark\n").unwrap();
        assert_eq!(shelf.profile().unwrap(), Some(profile));
        assert_eq!(Shelf::list(&root).unwrap(), std::slice::from_ref(&shelf));
        assert_eq!(fs::read_dir(&shelf.folder).unwrap().count(), 1, "nothing is left behind");
        fs::write(shelf.profile_path(), "takt-profile 1\nflush_ns = 1\n").unwrap();
        let error = shelf.profile().unwrap_err().to_string();
        assert!(error.contains("profile.txt: the file is damaged"), "{error}");
        fs::write(shelf.models_path(), [0xff, 0]).unwrap();
        let error = shelf.models().unwrap_err().to_string();
        assert!(error.contains("shaders.txt: line 1: expected"), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn sharing_is_found_in_the_first_store_that_knows_it() {
        let root = env::temp_dir().join(format!("takt-sharing-{}", std::process::id()));
        let stores = ["own", "none", "system"].map(|name| root.join(name));
        let execution = Execution::TimeShared { slice_us: 1024.0, switch_us: 160.0 };
        let sharing = Some(Sharing { execution, delay_us: 40.0 });
        // As an older version left it.
        let old = Shelf::new(&stores[0], "a GPU", "1.0");
        old.keep_profile(Profile::default().to_text()).unwrap();
        assert_eq!(super::sharing(&stores, "a GPU", "1.0").unwrap(), None);
        let text = Profile { sharing, ..Profile::default() }.to_text();
        Shelf::new(&stores[2], "a GPU", "1.0").keep_profile(text).unwrap();
        assert_eq!(super::sharing(&stores, "a GPU", "1.0").unwrap(), sharing);
        assert_eq!(super::sharing(&stores, "a GPU", "2.0").unwrap(), None);
        fs::write(old.profile_path(), "takt-profile 1\n").unwrap();
        assert!(super::sharing(&stores, "a GPU", "1.0").is_err());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn programs_are_kept_and_damaged_ones_go() {
        let root = env::temp_dir().join(format!("takt-noted-{}", std::process::id()));
        let shelf = Shelf::new(&root, "a GPU", "1.0");
        assert!(shelf.rates().unwrap().is_none());
        assert_eq!(shelf.noted().unwrap().0, []);
        let sources = Sources { vertex: "a".to_owned(), fragment: "b".to_owned() };
        let folder = shelf.folder.join(store::PROGRAMS);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(store::sources_file(sources.id())), sources.to_text()).unwrap();
        fs::write(folder.join("0000000000000001.glsl"), sources.to_text()).unwrap();
        fs::write(folder.join("0000000000000002.glsl"), "takt-program 1\nvertex 1\n").unwrap();
        let (noted, bad) = shelf.noted().unwrap();
        assert_eq!(noted, std::slice::from_ref(&sources));
        let bad: Vec<String> = bad.iter().map(ToString::to_string).collect();
        assert!(bad[0].contains("01.glsl: its name") && bad[1].contains("02.glsl: the file is"), "{bad:?}");
        assert_eq!(shelf.noted().unwrap().1.len(), 0, "they are gone");
        let mut rates = ProgramRates::default();
        rates.insert(sources.id(), takt_predict::cost::ShaderRates { vertex_ns: 1.5, fragment_ns: 0.5 });
        shelf.keep_rates(&rates).unwrap();
        assert_eq!(shelf.rates().unwrap(), Some(rates));
        fs::write(shelf.rates_path(), "takt-rates 1\n").unwrap();
        let error = shelf.rates().unwrap_err().to_string();
        assert!(error.contains("programs.txt: the file is damaged"), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }
}
