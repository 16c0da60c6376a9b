//! The draws of a scene, and what a group has come to so far.

use std::hash::{Hash as _, Hasher as _};

use super::{DispatchCall, DrawCall, Predictor, Work, fragment_state};
use crate::cost::{
    Costs, DrawLoad, FragmentState, GroupCost, ProgramId, SceneKey, ShaderContext, ShaderRates,
};
use crate::fragments::{
    AffinePosition, FragmentEstimator as _, Fragments, MatrixPosition, PositionSource, RasterState, Scene,
    ShaderPosition, View, sane,
};
use crate::table::Mixer;

/// Consecutive draws of one scene.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Batch {
    key: SceneKey,
    /// Sizes of textures, on which rates depend.
    textures: u64,
    view: View,
    /// By the predictor's shader model, and by the one beside it.
    rates: [ShaderRates; 2],
    /// Where vertices land, if one matrix tells.
    position: Option<AffinePosition>,
    /// Whether there are draws whose vertices cannot be placed.
    unplaced: bool,
    /// Fragments that the caller knows.
    given: Option<f64>,
    calls: u64,
    vertices: u64,
}

/// The current group.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub(super) struct Pending {
    pub(super) cost: GroupCost,
    pub(super) vertices: u64,
    pub(super) fragments: f64,
    pub(super) program: ProgramId,
    pub(super) target: u64,
    pub(super) state: FragmentState,
    /// The program of the last dispatch, and what tells all of them from others.
    pub(super) dispatched: (ProgramId, u64),
    /// Kinds of its other commands.
    pub(super) kinds: u64,
    /// Whether fragments are estimated for the group as a whole, and then the sum of vertices
    /// times the time per fragment: what weighs programs against each other.
    pub(super) looks_back: bool,
    weighted_ns: f64,
}

impl Pending {
    /// The draws of a scene, with what its program costs.
    pub(super) fn add(&mut self, costs: &Costs<'_>, batch: &Batch, rates: ShaderRates, fragments: f64) {
        let Batch { key, calls, vertices, .. } = *batch;
        let samples = key.capabilities.samples;
        let load = DrawLoad { calls, vertices, fragments, samples };
        self.cost.draw += costs.draw(&load, rates);
        let one = DrawLoad { calls: 0, vertices: 0, fragments: 1.0, samples };
        self.weighted_ns += vertices as f64 * costs.draw(&one, rates);
        self.vertices = self.vertices.saturating_add(vertices);
        self.fragments += fragments;
        (self.program, self.target) = (key.program, key.target);
        self.state = FragmentState { depth: key.capabilities.depth_test, blend: key.capabilities.blend };
    }

    /// A dispatch.
    pub(super) fn dispatch(&mut self, costs: &Costs<'_>, call: &DispatchCall, operation_ns: f64) {
        self.cost.compute += costs.dispatch(call.invocations(), call.operations, operation_ns);
        self.dispatched = (call.program, call.scene(self.dispatched.1));
    }

    /// A command other than a draw or a dispatch.
    pub(super) fn work(&mut self, costs: &Costs<'_>, work: Work) {
        self.kinds |= work.kind();
        let cost = &mut self.cost;
        match work {
            Work::Clear { buffers, target } => cost.clear += costs.clear(buffers, target),
            Work::Resolve(target) => cost.draw += costs.swap(target, self.fragments),
            Work::Load { bytes } => cost.copy += costs.load(bytes),
            Work::Upload { bytes } => cost.copy += costs.upload(bytes),
            Work::Mipmap { bytes } => cost.copy += costs.mipmap(bytes),
            Work::Copy { bytes } | Work::Blit { bytes } | Work::Read { bytes } => {
                cost.copy += costs.copy(bytes);
            }
            Work::Buffer { bytes } => cost.copy += costs.buffer(bytes),
        }
    }

    /// The group with its fragments, if they are estimated for the group as a whole.
    pub(super) fn whole(&self, fragments: &Fragments) -> Self {
        let mut group = *self;
        if group.looks_back && group.vertices > 0 {
            let fragments = fragments.look_back(group.vertices).unwrap_or(0.0);
            group.fragments += fragments;
            group.cost.draw += fragments * group.fragment_ns();
        }
        group
    }

    /// Time per fragment, on average over vertices.
    pub(super) fn fragment_ns(&self) -> f64 {
        self.weighted_ns / self.vertices as f64
    }
}

impl Predictor {
    /// Adds a draw to the current group.
    pub fn draw(&mut self, call: &DrawCall<'_>) {
        let key = scene_key(call);
        let mut textures = Mixer(0);
        call.state.textures.hash(&mut textures);
        let textures = textures.finish();
        if !self.batch.as_ref().is_some_and(|batch| batch.key == key && batch.textures == textures) {
            self.close_batch();
            self.open_batch(call, key, textures);
        }
        let Some(mut batch) = self.batch.take() else { return };
        let draw = call.draw();
        batch.calls = batch.calls.saturating_add(1);
        batch.vertices = batch.vertices.saturating_add(draw.vertices());
        let nowhere = Scene { view: &batch.view, position: &NOWHERE };
        if let Some(fragments) = call.fragments {
            batch.given = Some(batch.given.unwrap_or(0.0) + sane(fragments));
            self.fragments.record_unplaced(&draw, &nowhere);
        } else if let Some(position) = &batch.position {
            self.fragments.record(&draw, &Scene { view: &batch.view, position });
        } else if self.judge.pending.looks_back || !self.record_general(call, &batch) {
            batch.unplaced = true;
            self.fragments.record_unplaced(&draw, &nowhere);
        }
        self.batch = Some(batch);
    }

    /// Adds a draw whose positions take more than a matrix; false if they cannot be computed.
    fn record_general(&mut self, call: &DrawCall<'_>, batch: &Batch) -> bool {
        let Some(slice) = call.program.slice() else { return false };
        let made = ShaderPosition::new(slice, call.program.uniforms(), call.inputs, &mut self.memory);
        let Ok(position) = made else { return false };
        self.fragments.record(&call.draw(), &Scene { view: &batch.view, position: &position });
        position.failure().is_none()
    }

    fn open_batch(&mut self, call: &DrawCall<'_>, key: SceneKey, textures: u64) {
        let (program, state) = (key.program, fragment_state(call.state));
        let shader = ShaderContext { program, state, textures: call.state.textures };
        let (profiled, mars, looks_back) = (&self.profiled, self.mars.as_ref(), self.fragments.looks_back());
        let mut rates = [ShaderRates::default(); 2];
        for (judge, rates) in [&mut self.judge].into_iter().chain(&mut self.beside).zip(&mut rates) {
            *rates = judge.rates(profiled, mars, &shader);
            if judge.pending.vertices == 0 {
                judge.pending.looks_back = looks_back;
            }
        }
        let view = View::new(&key.raster);
        let position = self.matrix(call);
        let (unplaced, given) = (false, None);
        let batch = Batch { key, textures, view, rates, position, unplaced, given, calls: 0, vertices: 0 };
        self.batch = Some(batch);
    }

    /// The matrix of a program, computed anew only if its uniforms have changed.
    fn matrix(&mut self, call: &DrawCall<'_>) -> Option<AffinePosition> {
        let (program, hash) = (call.program, call.program.position_hash());
        let slice = program.slice()?;
        let position = match program.matrix.get() {
            Some((of, position)) if of == hash => position,
            _ => {
                let uniforms = program.uniforms();
                let position =
                    ShaderPosition::new(slice, uniforms, call.inputs, &mut self.memory).ok()?.affine()?;
                program.matrix.set(Some((hash, position)));
                position
            }
        };
        position.with_inputs(slice, call.inputs)
    }

    /// Predicts the draws of the last scene.
    pub(super) fn close_batch(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        let known = batch.given.is_some() || !self.judge.pending.looks_back;
        let fragments = if known { self.batch_fragments(&batch) } else { 0.0 };
        for (judge, rates) in [&mut self.judge].into_iter().chain(&mut self.beside).zip(batch.rates) {
            judge.add(&self.profile, &batch, rates, fragments);
        }
    }

    fn batch_fragments(&mut self, batch: &Batch) -> f64 {
        let position: &dyn PositionSource = match &batch.position {
            Some(position) => position,
            None => &NOWHERE,
        };
        let estimate = self.fragments.take(&Scene { view: &batch.view, position });
        if let Some(given) = batch.given {
            return given;
        }
        let estimate = estimate.unwrap_or(0.0);
        // Nothing is known of what cannot be placed but that it can fill what is visible.
        if batch.unplaced { estimate.max(batch.view.visible()) } else { estimate }
    }

    /// Moves on to the next group.
    pub(super) fn close_group(&mut self) {
        let pending = &self.judge.pending;
        if pending.looks_back && pending.vertices > 0 {
            let view = View::new(&RasterState::new(0, 0));
            self.fragments.take(&Scene { view: &view, position: &NOWHERE });
        }
        for judge in [&mut self.judge].into_iter().chain(&mut self.beside) {
            judge.pending = Pending::default();
        }
    }
}

/// Where vertices are that no draw needs.
const NOWHERE: MatrixPosition = MatrixPosition([[0.0; 4]; 4]);

fn scene_key(call: &DrawCall<'_>) -> SceneKey {
    SceneKey {
        program: call.program.id(),
        position_uniforms: call.program.position_hash(),
        target: call.state.target,
        raster: call.state.raster,
        mode: call.mode,
        capabilities: call.state.capabilities,
    }
}
