//! The constants of a machine: work of several sizes is measured, and a line laid through it.
//!
//! Each experiment varies one size, so that its constant is a slope and everything that does not
//! depend on the size stays out of it.

mod draws;
mod memory;
mod pictures;
mod targets;

use takt_gl::measure::TimerProblem;
use takt_predict::profile::Profile;

use crate::Problem;
use crate::bench::{Bench, Effort, TimeSource};
use crate::fit::Quality;
use crate::sharing::Finding;

/// A constant, and how well it fits.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// Its key in profile files.
    pub key: &'static str,
    /// Its value there.
    pub value: f64,
    /// The line that it comes from; none if it is no slope.
    pub quality: Option<Quality>,
    /// What else is to be known about it.
    pub note: Option<&'static str>,
}

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// All constants.
    pub profile: Profile,
    /// Those that were measured.
    pub constants: Vec<Constant>,
    /// Experiments that failed, and why; their constants have defaults.
    pub failed: Vec<(&'static str, Problem)>,
    /// How processes share the GPU, if that was measured.
    pub sharing: Option<Finding>,
}

impl Calibration {
    /// Adds how processes share the GPU, or why that is unknown; all else is kept.
    pub fn share(&mut self, found: Result<Finding, Problem>) {
        match found {
            Ok(finding) => {
                self.profile.sharing = Some(finding.sharing());
                self.sharing = Some(finding);
            }
            Err(problem) => self.failed.push(("sharing", problem)),
        }
    }

    /// The profile as text, with the quality of each constant as a remark.
    pub fn to_text(&self, source: TimeSource) -> String {
        let mut text = self.profile.to_text();
        text += &format!("# measured by {source}\n");
        for constant in &self.constants {
            text += &format!("# {constant}\n");
        }
        if let Some(sharing) = &self.sharing {
            text += &format!("# sharing: {sharing}\n");
        }
        for (name, problem) in &self.failed {
            text += &format!("# {name}: not measured ({problem})\n");
        }
        text
    }
}

impl std::fmt::Display for Constant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.key)?;
        if let Some(quality) = &self.quality {
            let Quality { r_squared, error_p50, error_p95, points, outliers } = quality;
            let [p50, p95] = [error_p50, error_p95].map(|error| error * 100.0);
            write!(f, ": R² {r_squared:.4}, errors p50 {p50:.1} % p95 {p95:.1} %, {points} points")?;
            for [size, measured, expected] in outliers {
                write!(f, ", outlier at {size}: {measured:.0} ns instead of {expected:.0}")?;
            }
        }
        self.note.map_or(Ok(()), |note| write!(f, "; {note}"))
    }
}

/// One experiment.
type Experiment = (&'static str, fn(&mut Lab<'_>) -> Result<(), Problem>);

/// All of them; the first says what every group costs, which others take off.
const EXPERIMENTS: [Experiment; 12] = [
    ("draws", draws::draws),
    ("dispatch", draws::dispatch),
    ("clears", targets::clears),
    ("off-screen clears", targets::off_screen_clears),
    ("depth and blending", targets::fragments),
    ("samples", targets::samples),
    ("swaps", targets::swaps),
    ("uploads", memory::uploads),
    ("mipmaps", memory::mipmaps),
    ("copies", memory::copies),
    ("buffers", memory::buffers),
    ("loads", memory::loads),
];

/// Measures all constants. `progress` hears which constant comes next, and how much is done of all. An
/// experiment that fails leaves its constants at their defaults, and the others go on.
///
/// # Errors
///
/// If the first experiment fails: others cannot be told from what every group costs without it.
pub fn measure(
    bench: &mut Bench,
    quick: bool,
    progress: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Calibration, Problem> {
    let timer_ratio = match bench.source() {
        TimeSource::Timer { ratio } | TimeSource::Fences(TimerProblem::Wrong(ratio)) => ratio,
        TimeSource::Fences(_) => 0.0,
    };
    let profile = Profile { gpu: bench.gpu(), driver: bench.driver(), timer_ratio, ..Profile::default() };
    let effort = if quick { Effort::QUICK } else { Effort::THOROUGH };
    let mut failed = Vec::new();
    let mut lab = Lab { bench, effort, quick, profile, constants: Vec::new() };
    for (done, (name, experiment)) in EXPERIMENTS.into_iter().enumerate() {
        progress(name, done, EXPERIMENTS.len());
        let before = (lab.profile.clone(), lab.constants.len());
        if let Err(problem) = experiment(&mut lab).and_then(|()| lab.bench.check(name)) {
            if done == 0 {
                return Err(problem);
            }
            // Whatever it measured before it failed is as doubtful as the rest.
            lab.profile = before.0;
            lab.constants.truncate(before.1);
            lab.bench.recover();
            failed.push((name, problem));
        }
    }
    Ok(Calibration { profile: lab.profile, constants: lab.constants, failed, sharing: None })
}

/// Where experiments are made.
struct Lab<'a> {
    bench: &'a mut Bench,
    effort: Effort,
    quick: bool,
    profile: Profile,
    constants: Vec<Constant>,
}

impl Lab<'_> {
    /// Sides of square targets and textures.
    fn sides(&self) -> &'static [u32] {
        const ALL: [u32; 12] = [64, 96, 128, 192, 256, 384, 512, 640, 768, 1024, 1536, 2048];
        if self.quick { &ALL[..9] } else { &ALL }
    }

    fn note(&mut self, key: &'static str, value: f64, quality: Option<Quality>, note: Option<&'static str>) {
        self.constants.push(Constant { key, value, quality, note });
    }
}
