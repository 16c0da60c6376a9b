//! The cost of a prediction.
//!
//! `fragments-…` estimate one model: `first` when its buffer is new, `cached` when it is known.
//! `batch-…` is all that is done for a group with one batch of draws whose buffer, program and
//! scene are known, through the front door: fragments by bounding box on the app's own vertex
//! shader, trained shader models, cost of the draws, correction and quantiles. `batch-moved` has
//! another matrix each time, as scenes that move have.

mod models;
mod vase;

use std::fs;
use std::hint::black_box;
use std::path::Path;

use takt_core::{Cost, Span};
use takt_predict::adapt::Disturbance;
use takt_predict::cost::{Capabilities, FragmentState, ShaderContext, ShaderCost as _, TextureSize};
use takt_predict::fragments::{
    Attribute, BoundingBox, BufferId, Cull, Draw, Elements, Format, FragmentEstimator, Input, MatrixPosition,
    Method, Mode, RangeKey, RasterState, Scene, TriangleSamples, View,
};
use takt_predict::glsl::{
    self, AttributeArray, AttributeData, Options, Scratch, Stage, UniformData, UniformValues, VertexIds,
    analyse,
};
use takt_predict::predictor::{
    DrawCall, DrawState, Measured, Predictor, Program, Settings, ShaderModel, Submission,
};
use takt_predict::profile::Profile;
use takt_predict::shaders::{MarsShaders, ShaderModels};

use super::{Measurement, time};
use vase::TRIANGLES;

const VERTEX: &str = "attribute vec3 position; attribute vec3 normal; uniform mat4 camera; uniform vec3 light; \
    varying vec4 shade; void main() { shade = vec4(max(dot(normal, light), 0.0)); \
    gl_Position = camera * vec4(position, 1.0); }";
const FRAGMENT: &str = "precision mediump float; varying vec4 shade; uniform sampler2D image; \
    void main() { gl_FragColor = texture2D(image, shade.xy) * shade + 0.1; }";
/// Vertices that one call of the position slice computes.
const VERTICES: u16 = 10_000;

pub(super) fn measure_all() -> anyhow::Result<Vec<Measurement>> {
    let mut all = vec![position_slice()?];
    all.extend(largest_shader(Path::new("/usr/share/glmark2/shaders"))?);
    let bytes = vase::model();
    all.extend(estimators(&bytes)?);
    let models = models::trained()?;
    all.push(shader_rates(&models)?);
    all.extend(batches(&bytes, &models)?);
    Ok(all)
}

fn measure<T>(
    name: &str,
    n: u64,
    iterations: u64,
    mut run: impl FnMut() -> T,
) -> anyhow::Result<Measurement> {
    time(name, n, iterations, |count| {
        for _ in 0..count {
            black_box(run());
        }
    })
}

/// Positions by one matrix product, per vertex.
fn position_slice() -> anyhow::Result<Measurement> {
    let shader = analyse(VERTEX, &Options { stage: Stage::Vertex, extensions: &[] })?;
    let Some(Ok(slice)) = shader.position.as_ref().map(|position| position.slice.as_ref()) else {
        anyhow::bail!("the shader of the bench has no position");
    };
    let mut uniforms = UniformValues::new(&shader.interface);
    for uniform in &shader.interface.uniforms {
        uniforms.set(uniform, 0, UniformData::Floats(CAMERA.0.as_flattened()));
    }
    let data: Vec<f32> = (0..3 * VERTICES).map(|n| f32::from(n) * 0.001).collect();
    let attributes = [AttributeArray { data: AttributeData::Floats(&data), stride: 3, components: 3 }];
    let draw = glsl::VertexInputs {
        uniforms: &uniforms,
        attributes: &attributes,
        ids: VertexIds::From(0),
        instance: 0,
    };
    let mut scratch = Scratch::default();
    let mut positions = vec![[0.0; 4]; usize::from(VERTICES)];
    let mut measured = measure("position-slice", u64::from(VERTICES), 2_000, || {
        slice.evaluate(black_box(&draw), &mut scratch, black_box(&mut positions))
    })?;
    for ns in [&mut measured.mean_ns, &mut measured.p50_ns, &mut measured.p99_ns] {
        *ns /= f64::from(VERTICES);
    }
    Ok(measured)
}

/// Analysis of the largest shader in a folder; nothing if there is none.
fn largest_shader(folder: &Path) -> anyhow::Result<Option<Measurement>> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let read = paths.filter_map(|path| {
        let stage = match path.extension()?.to_str()? {
            "vert" => Stage::Vertex,
            "frag" => Stage::Fragment,
            _ => return None,
        };
        // glmark2 puts such a header before each of its shaders.
        let header = "#define HIGHP_OR_DEFAULT highp\n#define MEDIUMP_OR_DEFAULT mediump\n";
        let source = header.to_owned() + &fs::read_to_string(path).ok()?;
        analyse(&source, &Options { stage, extensions: &[] }).ok().map(|_| (source, stage))
    });
    let Some((source, stage)) = read.max_by_key(|(source, _)| source.len()) else { return Ok(None) };
    let options = Options { stage, extensions: &[] };
    measure("glsl-largest", source.len() as u64, 200, || analyse(black_box(&source), &options)).map(Some)
}

fn estimators(bytes: &[u8]) -> anyhow::Result<Vec<Measurement>> {
    let view = View::new(&raster());
    let scene = Scene { view: &view, position: &CAMERA };
    let mut samples = TriangleSamples::default();
    let mut boxes = BoundingBox::default();
    let mut fresh = 0;
    let mut one = |name: &str, iterations, estimator: &mut dyn FragmentEstimator, first: bool| {
        measure(name, u64::from(TRIANGLES), iterations, || {
            fresh += u64::from(first);
            estimator.record(&draw(bytes, if first { fresh } else { 0 }), &scene);
            estimator.take(&scene)
        })
    };
    Ok(vec![
        one("fragments-ts-first", 2_000, &mut samples, true)?,
        one("fragments-ts-cached", 20_000, &mut samples, false)?,
        one("fragments-bb-first", 500, &mut boxes, true)?,
        one("fragments-bb-cached", 200_000, &mut boxes, false)?,
    ])
}

/// What a program costs by the trained models, with one texture bound.
fn shader_rates(models: &ShaderModels) -> anyhow::Result<Measurement> {
    let program = Program::new(VERTEX, FRAGMENT, &[]);
    let mut shaders = MarsShaders::new(models.clone(), 64);
    let Some(features) = program.features() else { anyhow::bail!("the shaders of the bench cannot be read") };
    shaders.insert(program.id(), features);
    let state = FragmentState { depth: true, blend: false };
    let context = ShaderContext { program: program.id(), state, textures: &TEXTURES };
    measure("shader-rates", 1, 200_000, || shaders.rates(black_box(&context)))
}

/// A whole prediction, and learning from what came of it.
fn batches(bytes: &[u8], models: &ShaderModels) -> anyhow::Result<Vec<Measurement>> {
    let mut program = Program::new(VERTEX, FRAGMENT, &[]);
    let Some(camera) = program.uniform("camera") else {
        anyhow::bail!("the shader of the bench has no camera")
    };
    program.set_uniform(camera, 0, UniformData::Floats(CAMERA.0.as_flattened()));
    let profile = Profile { flush_ns: 8_000.0, draw_ns: 500.0, ..Profile::default() };
    let settings =
        Settings { fragments: Method::BoundingBox, shaders: ShaderModel::Mars, ..Settings::default() };
    let mut predictor = Predictor::new(settings, profile, Some(models.clone()));
    predictor.link(&program);
    let attribute = Attribute { bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
    let buffer = Some(BufferId { buffer: 1, generation: 1 });
    let inputs = [Input::Array { attribute, buffer, divisor: 0 }];
    let capabilities = Capabilities { depth_test: true, ..Capabilities::default() };
    let state = DrawState { raster: raster(), target: 0, capabilities, textures: &TEXTURES };
    let predict = |program: &Program, predictor: &mut Predictor| {
        predictor.draw(&DrawCall {
            program,
            mode: Mode::Triangles,
            elements: Elements::Arrays { first: 0 },
            index_buffer: None,
            count: 3 * TRIANGLES,
            instances: 1,
            inputs: &inputs,
            state: &state,
            fragments: None,
        });
        predictor.submit(Submission::Flush, Disturbance::None)
    };
    let (_, ticket) = predict(&program, &mut predictor);
    let measured = Measured {
        cost: Cost::new(Span::from_us(400)),
        disturbance: Disturbance::None,
        fragments: Some(1e5),
    };
    let n = u64::from(TRIANGLES);
    let learn = measure("batch-learn", n, 200_000, || predictor.learn(&ticket, black_box(&measured)))?;
    let cached = measure("batch-cached", n, 200_000, || predict(&program, &mut predictor))?;
    let mut turn = 0.0;
    let moved = measure("batch-moved", n, 200_000, || {
        turn += 1e-9;
        program.set_uniform(camera, 1, UniformData::Floats(&[turn]));
        predict(&program, &mut predictor)
    })?;
    Ok(vec![cached, moved, learn])
}

fn raster() -> RasterState {
    RasterState { cull: Cull::Back, ..RasterState::new(800, 600) }
}

fn draw(bytes: &[u8], buffer: u64) -> Draw<'_> {
    let count = 3 * TRIANGLES;
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

const TEXTURES: [TextureSize; 1] = [TextureSize { width: 512, height: 512 }];

/// Looks at the vase from two units away.
const CAMERA: MatrixPosition = MatrixPosition([
    [1.3, 0.0, 0.0, 0.0],
    [0.0, 1.7, 0.0, 0.0],
    [0.0, 0.0, -1.1, -1.0],
    [0.0, 0.0, 1.9, 2.0],
]);
