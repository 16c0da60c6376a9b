//! Predictions beside measurements: one or several models watch the same commands.
//!
//! Each context has models of its own. They see its commands as they come, say what a group will
//! cost when it is submitted, and learn what it did cost from the thread that measures.

mod choice;
mod stored;

pub use choice::{Choice, Combination};
pub(crate) use stored::judge;
pub use stored::models;

use takt_core::{Cost, Span};
use takt_predict::Prediction;
use takt_predict::adapt::{Command, Disturbance, History};
use takt_predict::cost::{ShaderRates, Target};
use takt_predict::predictor::{DrawCall, Measured, Predictor, Program, Submission, Ticket, Work};
use takt_predict::profile::Profile;
use takt_predict::shaders::ShaderModels;

/// The models of a context.
#[derive(Debug)]
pub struct Models {
    predictors: Vec<Predictor>,
    history: Option<History>,
    /// Whether nothing says what shaders cost.
    untrained: bool,
    /// Commands of the current group, as the history wants them.
    commands: Vec<Command>,
    /// Whether the current group uses a program for the first time.
    fresh: bool,
    /// By how much groups take longer by their fences than by what measures, on average: whoever
    /// waits for their end waits for that, too.
    beyond_ns: f64,
}

/// What a group turned out to cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupCost {
    /// By what measures.
    pub ns: u64,
    /// By its fence.
    pub fence_ns: u64,
    /// Whether the time tells nothing, because a clock jumped.
    pub doubtful: bool,
    /// Whether the group ends a frame.
    pub ends_frame: bool,
}

/// What the models said about a group, for when it is complete.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// In the order of [`Choice::combinations`].
    pub predictions: Vec<(Prediction, Ticket)>,
    /// What the history said.
    pub history: Option<Span>,
    commands: Vec<Command>,
    disturbance: Disturbance,
}

impl Models {
    /// The models that were asked for; none if none were.
    pub fn new(choice: &Choice, profile: &Profile, shaders: Option<&ShaderModels>) -> Option<Self> {
        let predictors: Vec<Predictor> = choice
            .combinations()
            .iter()
            .map(|combination| {
                Predictor::new(combination.settings(choice.overpredict), profile.clone(), shaders.cloned())
            })
            .collect();
        let history = choice.history().then(History::default);
        let untrained = shaders.is_none();
        let commands = Vec::new();
        let models = Self { predictors, history, untrained, commands, fresh: false, beyond_ns: 0.0 };
        (!models.predictors.is_empty()).then_some(models)
    }

    /// A program is used that these models have not seen; drivers finish compiling it just then,
    /// so the group's time tells nothing.
    pub fn link(&mut self, program: &Program, software: bool) {
        self.fresh = true;
        for predictor in &mut self.predictors {
            predictor.link(program);
            if self.untrained {
                predictor.profiled(program.id(), if software { ROUGH_SOFTWARE } else { ROUGH });
            }
        }
    }

    /// A draw.
    pub fn draw(&mut self, call: &DrawCall<'_>) {
        self.note(DRAW, call.count);
        for predictor in &mut self.predictors {
            predictor.draw(call);
        }
    }

    /// Other work.
    pub fn work(&mut self, work: Work) {
        let (method, size) = match work {
            Work::Clear { .. } | Work::Resolve(_) => (CLEAR, 0),
            Work::Load { bytes } | Work::Upload { bytes } | Work::Buffer { bytes } => (UPLOAD, bytes),
            Work::Mipmap { bytes } | Work::Copy { bytes } => (COPY, bytes),
        };
        self.note(method, u32::try_from(size).unwrap_or(u32::MAX));
        for predictor in &mut self.predictors {
            predictor.work(work);
        }
    }

    /// What the current group costs at most until its end is seen, by the first model.
    pub fn pending(&mut self) -> Span {
        let first = self.predictors.first_mut();
        let most = first.map_or(Span::ZERO, |first| first.pending(Disturbance::None).upper.span());
        most + self.beyond()
    }

    /// What a swap of this target costs at most until its end is seen, by the first model.
    pub fn swap(&mut self, target: Target) -> Span {
        let first = self.predictors.first_mut();
        first.map_or(Span::ZERO, |first| first.pending_swap(target, Disturbance::None).upper.span())
    }

    fn beyond(&self) -> Span {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as is meant")]
        Span::from_ns(self.beyond_ns as u64)
    }

    /// The group is submitted.
    pub fn submit(&mut self, end: Submission) -> Predicted {
        if let Submission::Swap(_) = end {
            self.note(SWAP, 0);
        }
        let commands = std::mem::take(&mut self.commands);
        let predictions =
            self.predictors.iter_mut().map(|predictor| predictor.submit(end, Disturbance::None)).collect();
        if let Submission::Swap(_) = end {
            self.predictors.iter_mut().for_each(Predictor::frame_begins);
        }
        let history = self.history.as_ref().map(|history| history.predict(&commands).estimate().span());
        let fresh = std::mem::take(&mut self.fresh);
        let disturbance = if fresh { Disturbance::Unknown } else { Disturbance::None };
        Predicted { predictions, history, commands, disturbance }
    }

    /// The group turned out to cost this.
    pub fn learn(&mut self, predicted: &Predicted, group: &GroupCost) {
        let cost = Cost::new(Span::from_ns(group.ns));
        let disturbance = if group.doubtful { Disturbance::Unknown } else { predicted.disturbance };
        if disturbance == Disturbance::None {
            let beyond_ns = group.fence_ns.saturating_sub(group.ns) as f64;
            self.beyond_ns += (beyond_ns - self.beyond_ns) * BEYOND_WEIGHT;
        }
        let measured = Measured { cost, disturbance, fragments: None };
        for (predictor, (_, ticket)) in self.predictors.iter_mut().zip(&predicted.predictions) {
            predictor.learn(ticket, &measured);
            if group.ends_frame {
                predictor.frame_measured();
            }
        }
        if let Some(history) = self.history.as_mut().filter(|_| disturbance == Disturbance::None) {
            history.learn(&predicted.commands, cost);
        }
    }

    fn note(&mut self, method: u32, size: u32) {
        if self.history.is_some() && self.commands.len() <= takt_predict::adapt::COMMANDS_MAX {
            self.commands.push(Command { method, size });
        }
    }
}

/// Weight of the last group in what fences take beyond timers.
const BEYOND_WEIGHT: f64 = 0.02;

const DRAW: u32 = 1;
const CLEAR: u32 = 2;
const UPLOAD: u32 = 3;
const COPY: u32 = 4;
const SWAP: u32 = 5;

/// What shaders cost before anything is known about them; measurements correct it soon.
const ROUGH: ShaderRates = ShaderRates { vertex_ns: 0.1, fragment_ns: 0.02 };

/// The same for renderers on the CPU.
const ROUGH_SOFTWARE: ShaderRates = ShaderRates { vertex_ns: 20.0, fragment_ns: 10.0 };

/// Constants of no machine in particular: not one is zero, so that each can be corrected.
fn rough() -> Profile {
    let mut profile = Profile { flush_ns: 10_000.0, draw_ns: 500.0, ..Profile::default() };
    profile.clear.pixel_ns = [0.2; 8];
    profile.clear.byte_ns = 0.05;
    profile.swap.pixel_ns = 0.5;
    let memory = &mut profile.memory;
    for part in
        [&mut memory.load, &mut memory.upload, &mut memory.mipmap, &mut memory.copy, &mut memory.buffer]
    {
        part.below_ns = 0.2;
    }
    profile
}
