//! One front door to all of this crate, for a caller that sees the commands of an app.
//!
//! A [`Predictor`] belongs to one app. Tell it what the app does, in the order of its calls, and
//! it says what each command group will cost; tell it what groups did cost, and it learns.
//!
//! ```
//! use takt_core::{Cost, Span};
//! use takt_predict::adapt::Disturbance;
//! use takt_predict::cost::{Capabilities, ShaderRates};
//! use takt_predict::fragments::{Attribute, Elements, Format, Input, Method, Mode, RasterState};
//! use takt_predict::glsl::UniformData;
//! use takt_predict::predictor::{DrawCall, DrawState, Measured, Predictor, Program, Settings, Submission};
//! use takt_predict::profile::Profile;
//!
//! let profile = Profile { flush_ns: 8_000.0, draw_ns: 300.0, ..Profile::default() };
//! let settings = Settings { fragments: Method::Samples, ..Settings::default() };
//! let mut predictor = Predictor::new(settings, profile, None);
//!
//! // glLinkProgram, glUniform
//! let vertex = "attribute vec2 at; uniform mat2 turn; void main() { gl_Position = vec4(turn * at, 0, 1); }";
//! let mut program = Program::new(vertex, "void main() { gl_FragColor = vec4(1); }", &[]);
//! predictor.link(&program);
//! predictor.profiled(program.id(), ShaderRates { vertex_ns: 2.0, fragment_ns: 0.5 });
//! let turn = program.uniform("turn").expect("the shader has it");
//! program.set_uniform(turn, 0, UniformData::Floats(&[0.0, 1.0, -1.0, 0.0]));
//!
//! // glDrawArrays
//! let corners = [-1.0f32, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0];
//! let bytes: Vec<u8> = corners.iter().flat_map(|value| value.to_ne_bytes()).collect();
//! let attribute = Attribute { bytes: &bytes, offset: 0, stride: 0, components: 2, format: Format::F32 };
//! let state = DrawState {
//!     raster: RasterState::new(800, 600),
//!     target: 0,
//!     capabilities: Capabilities::default(),
//!     textures: &[],
//! };
//! predictor.draw(&DrawCall {
//!     program: &program,
//!     mode: Mode::TriangleStrip,
//!     elements: Elements::Arrays { first: 0 },
//!     index_buffer: None,
//!     count: 4,
//!     instances: 1,
//!     inputs: &[Input::Array { attribute, buffer: None, divisor: 0 }],
//!     state: &state,
//!     fragments: None,
//! });
//!
//! // glFlush
//! let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
//! assert_eq!(prediction.value.span(), Span::from_ns(8_000 + 300 + 4 * 2 + 800 * 600 / 2));
//!
//! // when the GPU is done
//! let measured = Measured { cost: Cost::new(Span::from_us(260)), disturbance: Disturbance::None, fragments: None };
//! predictor.learn(&ticket, &measured);
//! ```

mod batch;
mod call;
mod judge;
mod program;
#[cfg(test)]
mod tests;

pub use call::{DispatchCall, DrawCall, DrawState, Submission, Work};
pub use program::{Program, ProgramProblem, UniformSlot};

use takt_core::Cost;

use crate::adapt::{AdaptionConfig, Disturbance, GroupKey};
use crate::cost::{Costs, FragmentState, GroupType, Parts, ProfiledShaders, ProgramId, ShaderRates, Target};
use crate::estimate::Prediction;
use crate::fragments::{
    BoundingBox, FragmentEstimator as _, Fragments, Method, ShaderMemory, TriangleSamples,
};
use crate::profile::Profile;
use crate::shaders::{MarsShaders, ShaderModels};
use batch::Batch;
use judge::Judge;

/// Which model says what shaders cost.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum ShaderModel {
    /// Measured rates of programs; trained models for programs without.
    #[default]
    Profiled,
    /// Trained models; measured rates for programs that could not be read.
    Mars,
}

/// How to predict.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Settings {
    /// Who estimates fragments.
    pub fragments: Method,
    /// Who says what shaders cost.
    pub shaders: ShaderModel,
    /// How measured times are learnt from.
    pub adaption: AdaptionConfig,
    /// Whether they are.
    pub adapt: bool,
    /// By what to multiply predictions of this app.
    pub overpredict: f64,
    /// Programs that are remembered.
    pub programs: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let (fragments, shaders) = (Method::default(), ShaderModel::default());
        let adaption = AdaptionConfig::default();
        Self { fragments, shaders, adaption, adapt: true, overpredict: 1.0, programs: 256 }
    }
}

/// What is to be known about a group when its measured time arrives.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Ticket {
    /// Who gave it.
    model: ShaderModel,
    key: GroupKey,
    parts: Parts,
    vertices: u64,
    fragments: f64,
    /// Time per fragment, by the models.
    fragment_ns: f64,
    /// Whether fragments are those of a frame before.
    looked_back: bool,
}

impl Ticket {
    /// What the group was about.
    pub fn group_type(&self) -> GroupType {
        self.key.group_type
    }

    /// Vertices of the group's draws.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    /// Fragments of the group's draws, as estimated.
    pub fn fragments(&self) -> f64 {
        self.fragments
    }

    /// What the models said, before any correction.
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// The fragments that would explain a time: what is left of it when all else is taken off.
    /// None if fragments are free.
    fn explained(&self, measured_ns: f64) -> Option<f64> {
        let others_ns = self.parts.aux_ns + self.parts.of_type_ns - self.fragments * self.fragment_ns;
        let fragments = (measured_ns - others_ns) / self.fragment_ns;
        fragments.is_finite().then_some(fragments.max(0.0))
    }
}

/// What a group turned out to cost.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Measured {
    /// Its time.
    pub cost: Cost,
    /// Whether the time is its own.
    pub disturbance: Disturbance,
    /// Its fragments, where the driver counts them. Otherwise estimators that look back get those
    /// that explain the time.
    pub fragments: Option<f64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Predictor {
    settings: Settings,
    profile: Profile,
    fragments: Fragments,
    profiled: ProfiledShaders,
    mars: Option<MarsShaders>,
    memory: ShaderMemory,
    batch: Option<Batch>,
    judge: Judge,
    /// Another shader model that is asked about the same fragments.
    beside: Option<Judge>,
}

impl Predictor {
    /// A predictor for a machine with these constants and, where there are some, trained models.
    pub fn new(settings: Settings, profile: Profile, models: Option<ShaderModels>) -> Self {
        let boxes = BoundingBox::with_coverage(profile.coverage);
        Self {
            fragments: Fragments::with(settings.fragments, boxes, TriangleSamples::default()),
            profiled: ProfiledShaders::new(&profile, settings.programs),
            mars: models.map(|models| MarsShaders::new(models, settings.programs)),
            memory: ShaderMemory::default(),
            batch: None,
            judge: Judge::new(&settings),
            beside: None,
            settings,
            profile,
        }
    }

    /// Has the other shader model say as well what it thinks, of the same fragments. False if that
    /// cannot be: settings differ in more than that, or fragments are explained by times, which
    /// depends on the model.
    pub fn add(&mut self, settings: &Settings) -> bool {
        let same = Settings { shaders: self.settings.shaders, ..*settings } == self.settings;
        let other = settings.shaders != self.settings.shaders && self.beside.is_none();
        let fits = same && other && !self.explains();
        if fits {
            self.beside = Some(Judge::new(settings));
        }
        fits
    }

    /// How many shader models are asked.
    pub fn models(&self) -> usize {
        1 + usize::from(self.beside.is_some())
    }

    /// A program was linked.
    pub fn link(&mut self, program: &Program) {
        if let (Some(mars), Some(features)) = (&mut self.mars, program.features()) {
            mars.insert(program.id(), features);
        }
    }

    /// A program was measured in a context of its own.
    pub fn profiled(&mut self, program: ProgramId, rates: ShaderRates) {
        self.profiled.insert(program, rates);
    }

    /// Adds a dispatch to the current group, whose operations take so long, roughly.
    pub fn dispatch(&mut self, call: &DispatchCall, operation_ns: f64) {
        let costs = Costs(&self.profile);
        for judge in [&mut self.judge].into_iter().chain(&mut self.beside) {
            judge.pending.dispatch(&costs, call, operation_ns);
        }
    }

    /// Adds a command other than a draw or a dispatch to the current group.
    pub fn work(&mut self, work: Work) {
        if let Work::Resolve(_) = work {
            self.close_batch();
        }
        let costs = Costs(&self.profile);
        for judge in [&mut self.judge].into_iter().chain(&mut self.beside) {
            judge.pending.work(&costs, work);
        }
    }

    /// What the current group would cost if it were submitted now. Later draws are predicted
    /// apart from those so far, even if they are of the same scene.
    pub fn pending(&mut self, switch: Disturbance) -> Prediction {
        self.close_batch();
        self.judge.pending(&self.fragments, &self.profile, None, switch)
    }

    /// The same if it were submitted by a swap of `target`.
    pub fn pending_swap(&mut self, target: Target, switch: Disturbance) -> Prediction {
        self.close_batch();
        self.judge.pending(&self.fragments, &self.profile, Some(target), switch)
    }

    /// Submits the current group. With `switch`, a context switch of the GPU is due before it.
    pub fn submit(&mut self, end: Submission, switch: Disturbance) -> (Prediction, Ticket) {
        self.submit_both(end, switch).0
    }

    /// The same, with what a model says that was [added](Self::add).
    pub fn submit_both(
        &mut self,
        end: Submission,
        switch: Disturbance,
    ) -> ((Prediction, Ticket), Option<(Prediction, Ticket)>) {
        self.close_batch();
        let (fragments, profile) = (&self.fragments, &self.profile);
        let first = self.judge.submit(fragments, profile, end, switch);
        let beside = self.beside.as_mut().map(|judge| judge.submit(fragments, profile, end, switch));
        self.close_group();
        (first, beside)
    }

    /// Learns what a group cost. Groups come in the order in which they were submitted.
    pub fn learn(&mut self, ticket: &Ticket, measured: &Measured) {
        let recent = self.explains();
        // What an estimator gets wrong that only fills in is nothing to correct the other one by.
        let counts = !recent || ticket.looked_back || ticket.vertices == 0;
        let judges = [&mut self.judge].into_iter().chain(&mut self.beside);
        if let Some(judge) =
            judges.into_iter().find(|judge| judge.gave(ticket)).filter(|_| self.settings.adapt && counts)
        {
            judge.adaption.learn(&ticket.key, &ticket.parts, measured.cost, measured.disturbance);
        }
        if ticket.vertices > 0 && self.judge.gave(ticket) {
            let fragments = measured.fragments.or_else(|| explained(ticket, measured).filter(|_| recent));
            fragments.into_iter().for_each(|count| self.fragments.measured(ticket.vertices, count));
        }
    }

    /// Whether fragments are those of frames before, which their times explain.
    fn explains(&self) -> bool {
        matches!(self.settings.fragments, Method::Ratio | Method::Sequence)
    }

    /// The first group of a frame is about to be filled.
    pub fn frame_begins(&mut self) {
        self.fragments.frame_begins();
    }

    /// All groups of a frame have been learnt.
    pub fn frame_measured(&mut self) {
        self.fragments.frame_measured();
    }

    /// Mean time that a context switch adds to the group after it.
    pub fn switch_ns(&self) -> f64 {
        self.judge.adaption.switch_ns()
    }
}

/// Fragments by the time, for estimators that look back. A disturbed group has those that it was
/// thought to have: places in the sequence must not move.
fn explained(ticket: &Ticket, measured: &Measured) -> Option<f64> {
    match measured.disturbance {
        Disturbance::None | Disturbance::Company => ticket.explained(measured.cost.span().as_ns() as f64),
        Disturbance::ContextSwitch | Disturbance::Unknown => Some(ticket.fragments),
    }
}

/// The part of a draw's state that changes what fragments cost.
fn fragment_state(state: &DrawState<'_>) -> FragmentState {
    FragmentState { depth: state.capabilities.depth_test, blend: state.capabilities.blend }
}
