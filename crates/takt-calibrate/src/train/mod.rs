//! Generated shaders, measured one by one.
//!
//! A training is a list of numbered jobs. What a job is follows from its number and the
//! [`Plan`] alone, so measurements can be kept as numbers ([`Checkpoint`]), and a training
//! that was interrupted goes on where it stopped.

mod checkpoint;
mod generate;
mod measure;
mod statements;

use takt_predict::glsl::{self, Options, Stage};
use takt_predict::shaders::{ProgramFeatures, Run, Submodel, TrainingSet};
use takt_predict::store;

use crate::Problem;
use crate::bench::{Bench, Effort};
pub use checkpoint::{Begun, Checkpoint};
use generate::{Generated, generate};

/// How much is measured, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Seed of all random choices.
    pub seed: u64,
    /// Programs of each submodel, in the order of [`Submodel::ALL`].
    pub programs: [usize; 5],
    /// How often each is drawn.
    pub effort: Effort,
    /// Side of the square that fragments are measured on.
    pub side: u32,
    /// Vertices that vertex shaders are measured with.
    pub vertices: u32,
}

impl Plan {
    /// Good models.
    pub const fn thorough(seed: u64) -> Self {
        let effort = Effort { repeats_min: 5, repeats_max: 25 };
        Self { seed, programs: [400, 800, 400, 1000, 400], effort, side: 768, vertices: 30_000 }
    }

    /// Models in a minute.
    pub const fn quick(seed: u64) -> Self {
        let effort = Effort { repeats_min: 3, repeats_max: 15 };
        Self { seed, programs: [100, 200, 100, 250, 150], effort, side: 512, vertices: 12_000 }
    }

    /// The fewest programs that make models at all, for tests of the whole way.
    pub const fn tiny(seed: u64) -> Self {
        let effort = Effort { repeats_min: 3, repeats_max: 3 };
        Self { seed, programs: [8, 12, 8, 12, 8], effort, side: 192, vertices: 3_000 }
    }

    /// How many programs are measured.
    pub fn jobs(&self) -> usize {
        self.programs.iter().sum()
    }

    /// The job of a number: which model it is for, and the program. Models take turns as long as
    /// they have programs left, so that what disturbs a training hits all of them alike.
    fn job(&self, number: usize) -> (Submodel, Generated) {
        let mut left = number;
        let mut round = 0;
        loop {
            let in_round = Submodel::ALL.into_iter().zip(self.programs).filter(|(_, count)| *count > round);
            for (submodel, _) in in_round {
                if left == 0 {
                    return (submodel, generate(submodel, self.seed, number));
                }
                left -= 1;
            }
            round += 1;
            assert!(self.programs.iter().any(|count| *count > round), "there are {} jobs", self.jobs());
        }
    }

    /// A number that tells this plan's jobs from all others'.
    fn fingerprint(&self) -> u64 {
        let mut text = format!("{self:?}");
        for number in 0..self.jobs() {
            let (submodel, job) = self.job(number);
            text += &format!("{}{}{}{:?}", submodel.name(), job.vertex, job.fragment, job.texture);
        }
        store::sum(&text)
    }
}

/// Measures what is still missing, and gives all of it.
///
/// # Errors
///
/// If the GPU or the checkpoint fails.
pub fn measure(
    bench: &mut Bench,
    plan: &Plan,
    checkpoint: &mut Checkpoint,
    progress: &mut dyn FnMut(usize),
) -> Result<TrainingSet, TrainProblem> {
    let mut stand = None;
    for number in 0..plan.jobs() {
        progress(number);
        if checkpoint.get(number).is_some() {
            continue;
        }
        let stand = match &stand {
            Some(stand) => stand,
            None => stand.insert(measure::Stand::new(bench, plan)?),
        };
        let (submodel, job) = plan.job(number);
        let measured = stand.measure(bench, submodel, &job)?;
        checkpoint.add(number, measured)?;
    }
    progress(plan.jobs());
    let mut set = TrainingSet::default();
    for number in 0..plan.jobs() {
        let (submodel, job) = plan.job(number);
        let measured = checkpoint.get(number).flatten();
        if let Some((ns, features)) = measured.zip(job.features()) {
            set.push(&job.run(submodel, features, ns));
        }
    }
    Ok(set)
}

/// Why a training ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrainProblem {
    /// The GPU failed.
    #[error(transparent)]
    Gpu(#[from] Problem),
    /// The measurements could not be written.
    #[error("cannot keep what was measured")]
    Checkpoint(#[from] std::io::Error),
}

impl Generated {
    /// Features of the program; none if it is more than the models' front end takes.
    fn features(&self) -> Option<ProgramFeatures> {
        let read = |source, stage| glsl::analyse(source, &Options { stage, extensions: &[] }).ok();
        let vertex = read(&self.vertex, Stage::Vertex)?;
        Some(ProgramFeatures::of(&vertex, &read(&self.fragment, Stage::Fragment)?))
    }

    fn run(&self, submodel: Submodel, features: ProgramFeatures, ns: f64) -> Run {
        match submodel {
            Submodel::VertexAux => Run::VertexAux { features, ns },
            Submodel::VertexCommands => Run::VertexCommands { features, ns },
            Submodel::FragmentAux => Run::FragmentAux { features, state: self.state, ns },
            Submodel::FragmentCommands => Run::FragmentCommands { features, ns },
            Submodel::Texture => Run::Texture { lookups: self.lookups, size: self.texture, ns },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_comes_once_and_is_understood() {
        let plan = Plan::quick(3);
        let mut counts = [0; 5];
        for number in 0..plan.jobs() {
            let (submodel, job) = plan.job(number);
            counts[submodel as usize] += 1;
            assert!(job.features().is_some(), "{}\n{}", job.vertex, job.fragment);
        }
        assert_eq!(counts, plan.programs);
    }

    #[test]
    fn plans_tell_themselves_apart() {
        assert_eq!(Plan::tiny(1).fingerprint(), Plan::tiny(1).fingerprint());
        assert_ne!(Plan::tiny(1).fingerprint(), Plan::tiny(2).fingerprint());
        assert_ne!(Plan::tiny(1).fingerprint(), Plan::quick(1).fingerprint());
    }

    #[test]
    fn generated_programs_have_all_kinds_of_operations() {
        let plan = Plan::quick(1);
        let mut seen = [[0; 8]; 2];
        for number in 0..plan.jobs() {
            let features = plan.job(number).1.features().expect("it is understood");
            for (seen, stage) in seen.iter_mut().zip([features.vertex, features.fragment]) {
                seen.iter_mut().zip(stage.operations.scalar).for_each(|(seen, count)| *seen += count);
            }
        }
        // Lookups are for fragments.
        assert!(seen[1].iter().all(|count| *count > 20), "{seen:?}");
        assert_eq!(seen[0].iter().filter(|count| **count > 20).count(), 7, "{seen:?}");
    }
}
