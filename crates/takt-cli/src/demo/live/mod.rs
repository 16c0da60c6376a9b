//! Real programs on a real driver, with and without Takt.

pub(crate) mod cast;
mod load;
mod outcome;
mod stage;
mod strips;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::Told;
use crate::output;
use cast::Cast;
use outcome::{LiveFigures, Runs};
use stage::Stage;

/// The same programs, without and with Takt in turn.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) cast: Cast,
    /// How often both.
    pub(crate) rounds: u32,
    /// Seconds that are judged of each run.
    pub(crate) seconds: u32,
    /// Configuration of the daemon.
    pub(crate) config: Option<PathBuf>,
}

impl Experiment {
    /// Runs it; everything it leaves behind is below `out`.
    pub(super) fn run(&self, out: &Path) -> anyhow::Result<Told<LiveFigures>> {
        let began = Instant::now();
        let stage = Stage::find(self.config.as_deref())?;
        let progress = Progress::new(self);
        let roles = self.cast.measure(&stage, &mut |what| progress.step(what))?;
        let folder = out.join("live");
        let length = Duration::from_secs(self.seconds.into());
        let mut outcome = Runs::new(self.cast, roles.clone(), self.seconds);
        for round in 1..=self.rounds {
            for scheduled in [false, true] {
                let name = outcome::name(scheduled);
                progress.step(&format!("{} s {name}{}", self.seconds, self.which(round)));
                let place = folder.join(format!("{}-{round}", if scheduled { "takt" } else { "native" }));
                let played = stage.play(&roles, scheduled, length, &place, &mut || progress.tick())?;
                outcome.add(scheduled, played);
            }
        }
        progress.step("drawing again what was to be seen");
        // The figures hold without pictures.
        let strips = strips::strips(&stage, &roles, outcome.shown(), &folder);
        let strips = strips.unwrap_or_else(|error| {
            output::warn(&format!("the page has no pictures: {error:#}"));
            Vec::new()
        });
        progress.end();
        let took = began.elapsed();
        let page = out.join("live.html");
        output::file(&page, &takt_report::frames::render(&outcome.page(took, strips)))?;
        let raw = folder.join("figures.json");
        let figures = outcome.figures();
        output::json(Some(&raw), &figures)?;
        let text = format!(
            "\n{}\nReport:  {} (open it in a browser)\nFigures: {}, with the log of every frame beside it\n\
             The part with real programs took {:.0} s.\n",
            outcome.text(),
            page.display(),
            raw.display(),
            took.as_secs_f64()
        );
        Ok(Told { text, figures })
    }

    fn which(&self, round: u32) -> String {
        if self.rounds == 1 { String::new() } else { format!(", round {round} of {}", self.rounds) }
    }
}

/// Says what is being done, on a terminal with a bar.
struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Seconds of a run beside those that are judged, and of all measurements before, roughly.
const AROUND_S: u64 = 4;
const BEFORE_S: u64 = 8;

impl Progress {
    fn new(experiment: &Experiment) -> Self {
        let runs = u64::from(experiment.rounds) * 2;
        let total = BEFORE_S + runs * (u64::from(experiment.seconds) + AROUND_S);
        output::warn(&format!(
            "\nNow for real: {}, drawn by the processor (llvmpipe); about {total} s.",
            experiment.cast.title()
        ));
        Self { bar: output::progress(total, ""), began: Instant::now() }
    }

    fn step(&self, what: &str) {
        if self.bar.is_hidden() {
            output::warn(&format!("  {what} …"));
        }
        self.bar.set_message(what.to_owned());
        self.tick();
    }

    fn tick(&self) {
        self.bar.set_position(self.began.elapsed().as_secs());
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
