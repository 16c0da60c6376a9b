//! Predictions beside measurements: one or several models watch the same commands.
//!
//! Each context has models of its own. They see its commands as they come, say what a group will
//! cost when it is submitted, and learn what it did cost from the thread that measures.

mod choice;
mod programs;
mod stored;

pub use choice::{Choice, Combination};
pub use programs::Programs;
pub(crate) use programs::are_sources_wanted;
pub use stored::models;
pub(crate) use stored::{exactness, judge};

use std::sync::Arc;

use takt_core::{Cost, Span};
use takt_predict::Prediction;
use takt_predict::adapt::{AdaptionConfig, Command, Disturbance, History, HistoryAnswer, Spread};
use takt_predict::cost::{ShaderRates, Target};
use takt_predict::predictor::{
    DispatchCall, DrawCall, Measured, Predictor, Program, Submission, Ticket, Work,
};
use takt_predict::profile::Profile;
use takt_predict::programs::Sources;
use takt_predict::shaders::ShaderModels;

/// The models of a context.
#[derive(Debug)]
pub struct Models {
    predictors: Vec<Predictor>,
    history: Option<History>,
    /// Whether nothing says what shaders cost.
    untrained: bool,
    /// What is known about programs one by one.
    programs: Arc<Programs>,
    /// Commands of the current group, as the history wants them.
    commands: Vec<Command>,
    /// Whether the current group uses a program for the first time.
    fresh: bool,
    /// How far groups go beyond the upper estimate of the first model until their end is seen.
    beyond: Spread,
    /// Groups in a row whose times were not their own.
    disturbed: u32,
    /// What was last said about the current group, until something changes.
    pending: Option<Span>,
}

/// What a group turned out to cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupCost {
    /// By what measures.
    pub ns: u64,
    /// By its fence.
    pub fence_ns: u64,
    /// Whether the GPU's own clock measured it.
    pub by_timer: bool,
    /// Whether the time is its own.
    pub disturbance: Disturbance,
    /// Whether the group ends a frame.
    pub ends_frame: bool,
}

/// What the models said about a group, for when it is complete.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// In the order of [`Choice::combinations`].
    pub predictions: Vec<(Prediction, Ticket)>,
    /// What the history said.
    pub history: Option<HistoryAnswer>,
    commands: Vec<Command>,
    /// Whether it uses a program for the first time.
    fresh: bool,
}

impl Models {
    /// The models that were asked for; none if none were.
    pub fn new(
        choice: &Choice,
        profile: &Profile,
        shaders: Option<&ShaderModels>,
        programs: Arc<Programs>,
    ) -> Option<Self> {
        let mut predictors: Vec<Predictor> = Vec::new();
        for combination in choice.combinations() {
            let settings = combination.settings(choice.overpredict);
            // Fragments need not be estimated twice for two models of shaders.
            if !predictors.last_mut().is_some_and(|last| last.add(&settings)) {
                predictors.push(Predictor::new(settings, profile.clone(), shaders.cloned()));
            }
        }
        let history = choice.history().then(History::default);
        let untrained = shaders.is_none();
        let commands = Vec::new();
        let models = Self {
            predictors,
            history,
            untrained,
            programs,
            commands,
            fresh: false,
            beyond: Spread::default(),
            disturbed: 0,
            pending: None,
        };
        (!models.predictors.is_empty()).then_some(models)
    }

    /// A program is used that these models have not seen; drivers finish compiling it just then,
    /// so the group's time tells nothing.
    pub fn link(&mut self, program: &Program, sources: Option<&Sources>, software: bool) {
        self.pending = None;
        self.fresh = true;
        let rough = if software { ROUGH_SOFTWARE } else { ROUGH };
        let rates = self.programs.meet(program.id(), sources).or_else(|| self.untrained.then_some(rough));
        for predictor in &mut self.predictors {
            predictor.link(program);
            if let Some(rates) = rates {
                predictor.profiled(program.id(), rates);
            }
        }
    }

    /// A draw.
    pub fn draw(&mut self, call: &DrawCall<'_>) {
        self.pending = None;
        self.note(DRAW, call.count);
        for predictor in &mut self.predictors {
            predictor.draw(call);
        }
    }

    /// A compute program is used for the first time; drivers finish compiling it just then.
    pub fn meet_compute(&mut self) {
        self.fresh = true;
    }

    /// A dispatch.
    pub fn dispatch(&mut self, call: &DispatchCall, software: bool) {
        self.pending = None;
        let groups =
            call.groups.unwrap_or_default().iter().fold(1, |all: u32, side| all.saturating_mul(*side));
        self.note(DISPATCH, groups);
        let operation_ns = if software { OPERATION_NS_SOFTWARE } else { OPERATION_NS };
        for predictor in &mut self.predictors {
            predictor.dispatch(call, operation_ns);
        }
    }

    /// Other work.
    pub fn work(&mut self, work: Work) {
        self.pending = None;
        let (method, size) = match work {
            Work::Clear { .. } | Work::Resolve(_) => (CLEAR, 0),
            Work::Load { bytes } | Work::Upload { bytes } | Work::Buffer { bytes } => (UPLOAD, bytes),
            Work::Mipmap { bytes } | Work::Copy { bytes } | Work::Blit { bytes } | Work::Read { bytes } => {
                (COPY, bytes)
            }
        };
        self.note(method, u32::try_from(size).unwrap_or(u32::MAX));
        for predictor in &mut self.predictors {
            predictor.work(work);
        }
    }

    /// What the current group costs at most until its end is seen, by the first model.
    pub fn pending(&mut self) -> Span {
        if let Some(known) = self.pending {
            return known;
        }
        let first = self.predictors.first_mut();
        let most = first.map_or(Span::ZERO, |first| first.pending(Disturbance::None).upper.span());
        let pending = self.until_seen(most);
        self.pending = Some(pending);
        pending
    }

    /// What the current group and a swap of this target are likely to cost, and what they cost at most
    /// until their end is seen, by the first model.
    pub fn swap(&mut self, target: Target) -> (Span, Span) {
        let first = self.predictors.first_mut();
        let prediction = first.map(|first| first.pending_swap(target, Disturbance::None));
        prediction.map_or((Span::ZERO, Span::ZERO), |prediction| {
            (prediction.value.span(), self.until_seen(prediction.upper.span()))
        })
    }

    /// An upper estimate for a thread that waits for the end of a group: what the fence adds
    /// to it, and what gets in its way, counts there.
    fn until_seen(&self, upper: Span) -> Span {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as is meant")]
        let ns = (upper.as_ns() as f64 * self.beyond.upper().clamp(1.0, BEYOND_MAX)) as u64;
        Span::from_ns(ns)
    }

    /// The group is submitted; with `switch`, the GPU changes contexts first.
    pub fn submit(&mut self, end: Submission, switch: Disturbance) -> Predicted {
        self.pending = None;
        if let Submission::Swap(_) = end {
            self.note(SWAP, 0);
        }
        let commands = std::mem::take(&mut self.commands);
        let mut predictions = Vec::new();
        for predictor in &mut self.predictors {
            let (first, beside) = predictor.submit_both(end, switch);
            predictions.extend([first].into_iter().chain(beside));
        }
        if let Submission::Swap(_) = end {
            self.predictors.iter_mut().for_each(Predictor::frame_begins);
        }
        let history = self.history.as_ref().map(|history| history.predict(&commands));
        let fresh = std::mem::take(&mut self.fresh);
        Predicted { predictions, history, commands, fresh }
    }

    /// The group turned out to cost this.
    pub fn learn(&mut self, predicted: &Predicted, group: &GroupCost) {
        self.pending = None;
        let cost = Cost::new(Span::from_ns(group.ns));
        let disturbance = if predicted.fresh { Disturbance::Unknown } else { self.believed(group) };
        // Where the GPU's clock tells what is a group's own, the rest of its fence's time is that of
        // other groups, and a thread that waits for the end knows of those.
        // A swap is so short that anything in its way is many times as long, which says nothing about
        // the others.
        let telling = !predicted.fresh && !group.by_timer && !group.ends_frame;
        if let Some((prediction, _)) = predicted.predictions.first().filter(|_| telling) {
            let upper_ns = prediction.upper.span().as_ns() as f64;
            self.beyond.learn(group.fence_ns as f64 / upper_ns.max(1.0), &AdaptionConfig::default());
        }
        let measured = Measured { cost, disturbance, fragments: None };
        let mut tickets = predicted.predictions.iter().map(|(_, ticket)| ticket);
        for predictor in &mut self.predictors {
            for ticket in tickets.by_ref().take(predictor.models()) {
                predictor.learn(ticket, &measured);
            }
            if group.ends_frame {
                predictor.frame_measured();
            }
        }
        let own = matches!(disturbance, Disturbance::None | Disturbance::Company);
        if let Some(history) = self.history.as_mut().filter(|_| own) {
            history.learn(&predicted.commands, cost);
        }
    }

    /// Whether a group's time is its own. Where all of them are disturbed, for example because the
    /// machine is always busy, that is how long groups take there.
    fn believed(&mut self, group: &GroupCost) -> Disturbance {
        if group.disturbance != Disturbance::Unknown {
            // Swaps are shorter; that they get through says nothing about the others.
            self.disturbed = if group.ends_frame { self.disturbed } else { 0 };
            return group.disturbance;
        }
        self.disturbed = self.disturbed.saturating_add(1);
        if self.disturbed > DISTURBED_MAX { Disturbance::None } else { Disturbance::Unknown }
    }

    fn note(&mut self, method: u32, size: u32) {
        if self.history.is_some() && self.commands.len() <= takt_predict::adapt::COMMANDS_MAX {
            self.commands.push(Command { method, size });
        }
    }
}

/// Estimates are not made larger than by this: a machine that disturbs more cannot keep deadlines.
const BEYOND_MAX: f64 = 2.0;

/// After so many disturbed groups in a row, their times are learnt from.
const DISTURBED_MAX: u32 = 32;

const DRAW: u32 = 1;
const CLEAR: u32 = 2;
const UPLOAD: u32 = 3;
const COPY: u32 = 4;
const SWAP: u32 = 5;
const DISPATCH: u32 = 6;

/// What shaders cost before anything is known about them; measurements correct it soon.
const ROUGH: ShaderRates = ShaderRates { vertex_ns: 0.1, fragment_ns: 0.02 };

/// The same for renderers on the CPU.
const ROUGH_SOFTWARE: ShaderRates = ShaderRates { vertex_ns: 20.0, fragment_ns: 10.0 };

/// What an operation of a compute shader takes before anything is known about it: on a small GPU, and on
/// the CPU.
const OPERATION_NS: f64 = 0.001;
const OPERATION_NS_SOFTWARE: f64 = 0.1;

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
