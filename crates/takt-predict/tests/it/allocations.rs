//! Predicting what is known and learning from it take no memory.

use takt_core::{Cost, Span};
use takt_predict::adapt::{Adaption, AdaptionConfig, Command, Disturbance, Fingerprint, GroupKey, History};
use takt_predict::cost::{Capabilities, FragmentState, GroupType, Parts, ProgramId};
use takt_predict::fragments::{
    Attribute, BufferId, Draw, Elements, Format, FragmentEstimator, Fragments, Input, MatrixPosition, Method,
    Mode, RangeKey, RasterState, Scene, View,
};
use takt_predict::glsl::UniformData;
use takt_predict::predictor::{DrawCall, DrawState, Measured, Predictor, Program, Settings, Submission};
use takt_predict::profile::Profile;

const CAMERA: MatrixPosition =
    MatrixPosition([[0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]);

/// Batches from client memory and from buffers, with measurements coming back.
fn estimate(fragments: &mut Fragments, bytes: &[u8], rounds: u64) -> f64 {
    let view = View::new(&RasterState::new(800, 600));
    let scene = Scene { view: &view, position: &CAMERA };
    let positions = Attribute { bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
    let count = u32::try_from(bytes.len() / 12).unwrap_or(0);
    let (mode, elements) = (Mode::Triangles, Elements::Arrays { first: 0 });
    let mut sum = 0.0;
    for round in 0..rounds {
        fragments.frame_begins();
        for buffer in 0..4 {
            let positions_of = BufferId { buffer, generation: 0 };
            let key = RangeKey { positions: positions_of, layout: 0, indices: None, first: 0, count, mode };
            let key = (buffer > 0).then_some(key);
            let draw =
                Draw { mode, elements, count, instances: 1 + u32::from(round % 2 == 0), positions, key };
            fragments.record(&draw, &scene);
            let estimate = fragments.take(&scene).unwrap_or(0.0);
            fragments.measured(draw.vertices(), estimate);
            sum += estimate;
        }
        fragments.frame_measured();
    }
    sum
}

#[test]
fn estimating_known_buffers_takes_no_memory() {
    let values = (0..30_000u32).map(|n| ((n * 7919) % 1000) as f32 / 500.0 - 1.0);
    let bytes: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    for method in [Method::BoundingBox, Method::Samples, Method::Ratio, Method::Sequence] {
        let mut fragments = Fragments::new(method);
        estimate(&mut fragments, &bytes, 2);
        let mut sum = 0.0;
        let memory = allocation_counter::measure(|| sum = estimate(&mut fragments, &bytes, 50));
        assert!(sum > 0.0, "{method:?}");
        assert_eq!(memory.count_total, 0, "{method:?} allocates");
    }
}

#[test]
fn adaption_takes_no_memory() {
    let mut adaption = Adaption::new(AdaptionConfig::default());
    let memory = allocation_counter::measure(|| {
        for n in 0..20_000u64 {
            let scene = Fingerprint::new(n % 5000, n % 7, FragmentState::default());
            let key = GroupKey { program: ProgramId(n % 300), group_type: GroupType::Draw, scene };
            let parts = Parts { of_type_ns: 1e5, aux_ns: 1e4 };
            let prediction = adaption.predict(&key, &parts, Disturbance::ContextSwitch);
            let measured = Cost::new(prediction.value.span() + Span::from_ns(n));
            adaption.learn(&key, &parts, measured, Disturbance::None);
        }
    });
    assert_eq!(memory.count_total, 0);
}

#[test]
fn a_full_history_takes_no_memory() {
    let mut history = History::default();
    let mut learn = |from: u32, to: u32| {
        for method in from..to {
            let list = [Command { method, size: 1 }; 20];
            history.learn(&list, Cost::new(Span::from_us(u64::from(method))));
        }
    };
    learn(0, 100);
    let memory = allocation_counter::measure(|| learn(100, 400));
    assert_eq!(memory.count_total, 0);
}

#[test]
fn predicting_known_batches_takes_no_memory() {
    let values = (0..9_000u32).map(|n| ((n * 7919) % 1000) as f32 / 500.0 - 1.0);
    let bytes: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    let sources = [
        "attribute vec3 at; uniform mat4 m; void main() { gl_Position = m * vec4(at, 1.0); }",
        "attribute vec3 at; attribute vec3 to; uniform mat4 m; void main() { gl_Position = m * vec4(at * to, 1.0); }",
    ];
    let mut programs =
        sources.map(|source| Program::new(source, "void main() { gl_FragColor = vec4(1.0); }", &[]));
    let attribute = Attribute { bytes: &bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
    let input = Input::Array { attribute, buffer: Some(BufferId { buffer: 1, generation: 1 }), divisor: 0 };
    let state = DrawState {
        raster: RasterState::new(800, 600),
        target: 0,
        capabilities: Capabilities::default(),
        textures: &[],
    };
    for fragments in [Method::BoundingBox, Method::Samples, Method::Ratio, Method::Sequence] {
        let mut predictor =
            Predictor::new(Settings { fragments, ..Settings::default() }, Profile::default(), None);
        let mut frames = |predictor: &mut Predictor, count: u32| {
            for frame in 0..count {
                predictor.frame_begins();
                for program in &mut programs {
                    let slot = program.uniform("m").expect("it has one");
                    program.set_uniform(slot, 0, UniformData::Floats(&[frame as f32]));
                    let inputs = [input; 2];
                    predictor.draw(&DrawCall {
                        program,
                        mode: Mode::Triangles,
                        elements: Elements::Arrays { first: 0 },
                        index_buffer: None,
                        count: 3_000,
                        instances: 1,
                        inputs: &inputs[..program.attributes().len()],
                        state: &state,
                        fragments: None,
                    });
                }
                let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
                let (cost, disturbance) = (Cost::new(Span::from_us(100)), Disturbance::None);
                predictor.learn(&ticket, &Measured { cost, disturbance, fragments: Some(1e5) });
                predictor.frame_measured();
            }
        };
        frames(&mut predictor, 3);
        let memory = allocation_counter::measure(|| frames(&mut predictor, 50));
        assert_eq!(memory.count_total, 0, "{fragments:?} allocates");
    }
}
