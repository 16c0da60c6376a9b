//! The cost of a prediction.
//!
//! `fragments-…` estimate one model: `first` when its buffer is new, `cached` when it is known.
//! `batch-cached` is all that is done for a batch of draws whose buffer, program and scene are
//! known: fragments by bounding box, rates of the shader, cost of the draws, correction and
//! quantiles. The shader model is a stand-in that looks rates up.

use std::hint::black_box;

use takt_core::{Cost, Span};
use takt_predict::Prediction;
use takt_predict::adapt::{Adaption, AdaptionConfig, Disturbance, Fingerprint, GroupKey};
use takt_predict::cost::{
    Costs, DrawLoad, FragmentState, GroupCost, ProfiledShaders, ProgramId, ShaderContext, ShaderCost,
    ShaderRates,
};
use takt_predict::fragments::{
    Attribute, BoundingBox, BufferId, Cull, Draw, Elements, Format, FragmentEstimator, MatrixPosition, Mode,
    RangeKey, RasterState, Scene, TriangleSamples, View,
};
use takt_predict::profile::Profile;

use super::{Measurement, time};

/// Rings and sectors of the model, which has two triangles for each pair: about 14 000.
const RINGS: u32 = 70;
const SECTORS: u32 = 100;

pub(super) fn measure_all() -> anyhow::Result<Vec<Measurement>> {
    let bytes = model();
    let state = RasterState { cull: Cull::Back, ..RasterState::new(800, 600) };
    let view = View::new(&state);
    let scene = Scene { view: &view, position: &CAMERA };
    let mut samples = TriangleSamples::default();
    let mut boxes = BoundingBox::default();
    let known = draw(&bytes, 0);
    let mut all = Vec::new();
    let mut fresh = 0;
    all.push(measure("fragments-ts-first", 1_000, || {
        fresh += 1;
        samples.record(&draw(&bytes, fresh), &scene);
        samples.take(&scene)
    })?);
    all.push(measure("fragments-ts-cached", 20_000, || {
        samples.record(&known, &scene);
        samples.take(&scene)
    })?);
    all.push(measure("fragments-bb-first", 500, || {
        fresh += 1;
        boxes.record(&draw(&bytes, fresh), &scene);
        boxes.take(&scene)
    })?);
    all.push(measure("fragments-bb-cached", 200_000, || {
        boxes.record(&known, &scene);
        boxes.take(&scene)
    })?);
    let predictor = Predictor::new();
    all.push(measure("batch-cached", 200_000, || {
        boxes.record(&known, &scene);
        predictor.predict(&known, boxes.take(&scene).unwrap_or(0.0))
    })?);
    Ok(all)
}

fn measure<T>(name: &str, iterations: u64, mut run: impl FnMut() -> T) -> anyhow::Result<Measurement> {
    time(name, u64::from(2 * RINGS * SECTORS), iterations, |count| {
        for _ in 0..count {
            black_box(run());
        }
    })
}

/// All but the fragments.
struct Predictor {
    profile: Profile,
    shaders: ProfiledShaders,
    adaption: Adaption,
}

const PROGRAM: ProgramId = ProgramId(1);
const STATE: FragmentState = FragmentState { depth: true, blend: false };

impl Predictor {
    fn new() -> Self {
        let profile = Profile { flush_ns: 8_000.0, draw_ns: 500.0, depth_ns: 0.1, ..Profile::default() };
        let mut shaders = ProfiledShaders::new(&profile, 64);
        shaders.insert(PROGRAM, ShaderRates { vertex_ns: 4.0, fragment_ns: 2.0 });
        let mut predictor = Self { profile, shaders, adaption: Adaption::new(AdaptionConfig::default()) };
        let (key, cost) = predictor.cost(42_000, 100_000.0);
        for _ in 0..1_000 {
            let parts = cost.parts(key.group_type);
            predictor.adaption.learn(&key, &parts, Cost::new(Span::from_us(400)), Disturbance::None);
        }
        predictor
    }

    fn cost(&self, vertices: u64, fragments: f64) -> (GroupKey, GroupCost) {
        let costs = Costs(&self.profile);
        let shader = ShaderContext { program: PROGRAM, state: STATE, textures: &[] };
        let rates = self.shaders.rates(&shader).unwrap_or_default();
        let load = DrawLoad { calls: 1, vertices, fragments, samples: 1 };
        let cost = GroupCost { flush: costs.flush(), draw: costs.draw(&load, rates), ..GroupCost::default() };
        let scene = Fingerprint::new(vertices, 0, STATE);
        (GroupKey { program: PROGRAM, group_type: cost.group_type(), scene }, cost)
    }

    fn predict(&self, draw: &Draw<'_>, fragments: f64) -> Prediction {
        let (key, cost) = self.cost(draw.vertices(), fragments);
        self.adaption.predict(&key, &cost.parts(key.group_type), Disturbance::None)
    }
}

fn draw(bytes: &[u8], buffer: u64) -> Draw<'_> {
    let count = 6 * RINGS * SECTORS;
    let positions = Attribute { bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
    let key = RangeKey {
        positions: BufferId { buffer, generation: 0 },
        layout: 0,
        indices: None,
        first: 0,
        count,
        mode: Mode::Triangles,
    };
    let elements = Elements::Arrays { first: 0 };
    Draw { mode: Mode::Triangles, elements, count, instances: 1, positions, key: Some(key) }
}

/// A vase.
fn model() -> Vec<u8> {
    let point = |ring: u32, sector: u32| {
        let height = f64::from(ring) / f64::from(RINGS);
        let angle = std::f64::consts::TAU * f64::from(sector) / f64::from(SECTORS);
        let radius = 0.4 + 0.2 * (6.0 * height).sin();
        #[expect(clippy::cast_possible_truncation, reason = "vertices have single precision")]
        let point =
            [radius * angle.cos(), 1.6 * height - 0.8, radius * angle.sin()].map(|value| value as f32);
        point
    };
    let quads = (0..RINGS).flat_map(|ring| (0..SECTORS).map(move |sector| (ring, sector)));
    let vertices = quads.flat_map(|(ring, sector)| {
        let [a, b] = [point(ring, sector), point(ring, sector + 1)];
        let [c, d] = [point(ring + 1, sector + 1), point(ring + 1, sector)];
        [a, c, b, a, d, c]
    });
    vertices.flatten().flat_map(f32::to_ne_bytes).collect()
}

/// Looks at the vase from two units away.
const CAMERA: MatrixPosition = MatrixPosition([
    [1.3, 0.0, 0.0, 0.0],
    [0.0, 1.7, 0.0, 0.0],
    [0.0, 0.0, -1.1, -1.0],
    [0.0, 0.0, 1.9, 2.0],
]);
