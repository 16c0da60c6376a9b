//! Programs one by one: rates of those that were measured, and sources of those that were not.
//!
//! Nothing is measured here: that would be unscheduled work in the program's process.
//! Sources are noted for `takt profile --programs`. That is done as well as it can be: a folder
//! that cannot be written leaves the program as unknown as it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use takt_predict::cost::{ProgramId, ShaderRates};
use takt_predict::programs::{PROGRAMS_MAX, ProgramRates, Sources};
use takt_predict::store;

use crate::guard;
use crate::settings::settings;

/// What is known about the programs of a GPU.
#[derive(Default, Debug)]
pub struct Programs {
    rates: ProgramRates,
    /// Where sources are noted; none if they are not.
    folder: Option<PathBuf>,
    /// Whether it was said that a program is not known.
    said: AtomicBool,
}

impl Programs {
    /// Rates that were measured, and where sources of other programs are noted.
    pub fn new(rates: ProgramRates, folder: Option<PathBuf>) -> Self {
        Self { rates, folder, said: AtomicBool::new(false) }
    }

    /// Whether no program was measured.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }

    /// Rates of a program that is used for the first time; if there are none, its sources are noted.
    pub fn meet(&self, program: ProgramId, sources: Option<&Sources>) -> Option<ShaderRates> {
        let rates = self.rates.get(program);
        if rates.is_none() {
            let noted = self.folder.as_deref().zip(sources).map(|(folder, sources)| note(folder, sources));
            self.say(noted);
        }
        rates
    }

    /// Says once that trained models stand in for rates, and why they do so again next time.
    fn say(&self, noted: Option<io::Result<()>>) {
        if !settings().verbose || self.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let next = match noted {
            Some(Ok(())) => "their sources are noted, and takt profile --programs measures them".to_owned(),
            Some(Err(error)) => format!("their sources cannot be noted ({error})"),
            None => "their sources are noted only with --measure or --compare".to_owned(),
        };
        guard::say(&format!("not all programs were profiled, mars stands in for profiled; {next}"));
    }
}

/// Whether sources of programs are wanted.
pub(crate) fn are_sources_wanted() -> bool {
    settings().measure.is_some() && !settings().choice.combinations().is_empty()
}

/// Writes sources, unless they are there, too long, or too many are.
fn note(folder: &Path, sources: &Sources) -> io::Result<()> {
    let path = folder.join(store::sources_file(sources.id()));
    if path.exists() {
        return Ok(());
    }
    let refuse = |why: &str| Err(io::Error::other(why));
    if !sources.fit() {
        return refuse("they are too long");
    }
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.count() >= PROGRAMS_MAX {
        return refuse("there are too many already");
    }
    // Under another name first, so that readers find all of it.
    let beside = folder.join(format!("{:016x}.{}", sources.id().0, std::process::id()));
    fs::write(&beside, sources.to_text()).and_then(|()| fs::rename(&beside, &path)).inspect_err(|_error| {
        let _gone = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(vertex: &str) -> Sources {
        Sources { vertex: vertex.to_owned(), fragment: "void main() {}".to_owned() }
    }

    #[test]
    fn sources_of_unknown_programs_are_noted() {
        let folder = std::env::temp_dir().join(format!("takt-programs-{}", std::process::id()));
        let known = sources("known");
        let mut rates = ProgramRates::default();
        rates.insert(known.id(), ShaderRates { vertex_ns: 1.0, fragment_ns: 2.0 });
        let programs = Programs::new(rates, Some(folder.clone()));
        assert!(!programs.is_empty());
        assert_eq!(programs.meet(known.id(), Some(&known)).map(|rates| rates.fragment_ns), Some(2.0));
        assert!(!folder.exists(), "what is known is not noted");
        let new = sources("new");
        for _again in 0..2 {
            assert_eq!(programs.meet(new.id(), Some(&new)), None);
        }
        let text = fs::read_to_string(folder.join(store::sources_file(new.id()))).expect("it was noted");
        assert_eq!(Sources::parse(&text), Ok(new));
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1, "nothing is left behind");

        note(&folder, &sources(&"long".repeat(1 << 20))).unwrap_err();
        for number in 1..PROGRAMS_MAX {
            note(&folder, &sources(&number.to_string())).expect("there is room");
        }
        note(&folder, &sources("one more")).unwrap_err();
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
