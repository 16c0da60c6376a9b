use proptest::prelude::*;

use super::super::{
    Elements, Format, FragmentEstimator, Fragments, MatrixPosition, Method, Mode, RasterState, Scene, View,
};
use super::*;
use crate::glsl::{Options, Shader, Stage, UniformData, analyse};

const MATRIX: [f32; 16] = [0.5, 0.1, 0.0, 0.0, -0.1, 0.5, 0.0, 0.1, 0.0, 0.0, -0.4, 0.2, 0.1, -0.2, 0.1, 1.5];

fn shader(source: &str) -> (Shader, UniformValues) {
    let shader = analyse(source, &Options { stage: Stage::Vertex, extensions: &[] }).expect("a good shader");
    let mut uniforms = UniformValues::new(&shader.interface);
    for uniform in &shader.interface.uniforms {
        uniforms.set(uniform, 0, UniformData::Floats(&MATRIX));
    }
    (shader, uniforms)
}

fn slice(shader: &Shader) -> &PositionSlice {
    shader.position.as_ref().and_then(|position| position.slice.as_ref().ok()).expect("it has a slice")
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn array(bytes: &[u8], components: u8, divisor: u32) -> Input<'_> {
    let attribute = Attribute { bytes, offset: 0, stride: 0, components, format: Format::F32 };
    Input::Array { attribute, buffer: None, divisor }
}

fn vertices(input: &Input<'_>, count: u32) -> Vec<Vertex> {
    (0..count).map(|index| Vertex { index, position: input.value(index, 0) }).collect()
}

/// Positions of the first vertices.
fn positions(source: &str, inputs: &[Input<'_>], instance: u32, count: u32) -> Vec<[f32; 4]> {
    let (shader, uniforms) = shader(source);
    let mut memory = ShaderMemory::default();
    let position = ShaderPosition::new(slice(&shader), &uniforms, inputs, &mut memory).expect("all fits");
    let main = position_input(inputs).map_or(Input::Constant([0.0; 4]), |at| inputs[at]);
    let mut clip = vec![[0.0; 4]; count as usize];
    position.positions(instance, &vertices(&main, count), &mut clip);
    assert_eq!(position.failure(), None);
    clip
}

#[test]
fn a_product_of_matrices_is_projective_and_equals_the_matrix() {
    let (shader, uniforms) =
        shader("attribute vec3 p; uniform mat4 m; void main() { gl_Position = m * vec4(p, 1.0); }");
    let data = bytes(&[1.0, 2.0, 3.0, -1.0, 0.5, 0.25]);
    let inputs = [array(&data, 3, 0)];
    let mut memory = ShaderMemory::default();
    let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
    assert!(position.is_projective() && !position.needs_draw());
    let (columns, _) = MATRIX.as_chunks::<4>();
    let matrix = MatrixPosition(std::array::from_fn(|column| columns[column]));
    let (mut ours, mut expected) = ([[0.0; 4]; 2], [[0.0; 4]; 2]);
    position.positions(0, &vertices(&inputs[0], 2), &mut ours);
    matrix.positions(0, &vertices(&inputs[0], 2), &mut expected);
    assert_eq!(ours, expected);
}

#[test]
fn further_attributes_are_found_by_the_number_of_the_vertex() {
    let source =
        "attribute vec3 p; attribute vec2 q; void main() { gl_Position = vec4(p.xy * q, q.x, 1.0); }";
    let (p, q) = (bytes(&[1.0, 2.0, 0.0, 3.0, 4.0, 0.0]), bytes(&[10.0, 20.0, 30.0, 40.0]));
    let clip = positions(source, &[array(&p, 3, 0), array(&q, 2, 0)], 0, 2);
    assert_eq!(clip, [[10.0, 40.0, 10.0, 1.0], [90.0, 160.0, 30.0, 1.0]]);
    let clip = positions(source, &[array(&p, 3, 0), Input::Constant([5.0, 6.0, 0.0, 1.0])], 0, 2);
    assert_eq!(clip[1], [15.0, 24.0, 5.0, 1.0]);
}

#[test]
fn instances_and_vertex_numbers_reach_the_shader() {
    let source = "#version 300 es\nin vec2 p; in vec2 offset; \
        void main() { gl_Position = vec4(p + offset, float(gl_VertexID), float(gl_InstanceID)); }";
    let (p, offset) = (bytes(&[1.0, 1.0, 2.0, 2.0]), bytes(&[0.0, 0.0, 100.0, 200.0]));
    let inputs = [array(&p, 2, 0), array(&offset, 2, 2)];
    assert_eq!(positions(source, &inputs, 3, 2), [[101.0, 201.0, 0.0, 3.0], [102.0, 202.0, 1.0, 3.0]]);
}

#[test]
fn integer_attributes_are_integers() {
    let source = "#version 300 es\nin ivec2 p; void main() { gl_Position = vec4(p / 2, 0, 1); }";
    let data: Vec<u8> = [7i16, -7].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let attribute = Attribute { bytes: &data, offset: 0, stride: 0, components: 2, format: Format::I16 };
    let clip = positions(source, &[Input::Array { attribute, buffer: None, divisor: 0 }], 0, 1);
    assert_eq!(clip, [[3.0, -3.0, 0.0, 1.0]]);
}

#[test]
fn a_shift_of_points_with_w_is_not_projective() {
    let source = "attribute vec4 p; void main() { gl_Position = p + vec4(0.5); }";
    let (shader, uniforms) = shader(source);
    let data = bytes(&[1.0, 2.0, 3.0, 2.0]);
    for (components, projective) in [(4, false), (3, true)] {
        let inputs = [array(&data, components, 0)];
        let mut memory = ShaderMemory::default();
        let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
        assert_eq!(position.is_projective(), projective);
    }
    assert_eq!(positions(source, &[array(&data, 4, 0)], 0, 1), [[1.5, 2.5, 3.5, 2.5]]);
}

#[test]
fn endless_shaders_fail_and_leave_no_numbers() {
    let source = "#version 300 es\nin vec2 p; uniform float limit; void main() { float x = p.x; \
        while (x < limit) { x += p.y; } gl_Position = vec4(x); }";
    let (shader, uniforms) = shader(source);
    let data = bytes(&[0.0, 0.0]);
    let inputs = [array(&data, 2, 0)];
    let mut memory = ShaderMemory::default();
    let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
    let mut clip = [[0.0; 4]];
    position.positions(0, &vertices(&inputs[0], 1), &mut clip);
    assert_eq!(position.failure(), Some(EvaluateError::TooLong));
    assert!(clip[0][0].is_nan());
}

#[test]
fn all_positions_of_a_draw_share_one_budget() {
    let source = "#version 300 es\nin vec2 p; uniform float limit; void main() { float x = p.x; \
        while (x < limit) { x += p.y; } gl_Position = vec4(x); }";
    let (shader, uniforms) = shader(source);
    // Ten thousand rounds, which one call may take, but not a hundred calls.
    let data = bytes(&[0.0, 0.000_05]);
    let inputs = [array(&data, 2, 0)];
    let mut memory = ShaderMemory::default();
    let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
    let mut clip = [[0.0; 4]];
    let mut ask = || position.positions(0, &vertices(&inputs[0], 1), &mut clip);
    ask();
    assert_eq!(position.failure(), None);
    (0..100).for_each(|_| ask());
    assert_eq!(position.failure(), Some(EvaluateError::TooLong));
}

#[test]
fn wrong_inputs_are_refused() {
    let (shader, uniforms) =
        shader("attribute vec3 p; uniform mat4 m; void main() { gl_Position = m * p.xyzz; }");
    let mut memory = ShaderMemory::default();
    let made = ShaderPosition::new(slice(&shader), &uniforms, &[], &mut memory);
    assert_eq!(made.err(), Some(EvaluateError::Attributes));
    let inputs = [Input::Array { attribute: NOTHING, buffer: None, divisor: 0 }];
    let others = UniformValues::default();
    let made = ShaderPosition::new(slice(&shader), &others, &inputs, &mut memory);
    assert_eq!(made.err(), Some(EvaluateError::Uniforms));
}

const NOTHING: Attribute<'_> =
    Attribute { bytes: &[], offset: 0, stride: 0, components: 3, format: Format::F32 };

/// Estimates one quad by each method.
fn estimate(method: Method, source: &str, key: bool) -> f64 {
    let (shader, uniforms) = shader(source);
    let data = bytes(&[-0.5, -0.5, 0.0, 0.5, -0.5, 0.0, -0.5, 0.5, 0.0, 0.5, 0.5, 0.0]);
    let inputs = vec![array(&data, 3, 0); slice(&shader).attributes().len()];
    let attribute = Attribute { bytes: &data, ..NOTHING };
    let mut memory = ShaderMemory::default();
    let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
    let view = View::new(&RasterState::new(100, 100));
    let scene = Scene { view: &view, position: &position };
    let mode = Mode::TriangleStrip;
    let range = super::super::RangeKey {
        positions: BufferId::default(),
        layout: 0,
        indices: None,
        first: 0,
        count: 4,
        mode,
    };
    let draw = super::super::Draw {
        mode,
        elements: Elements::Arrays { first: 0 },
        count: 4,
        instances: 2,
        positions: attribute,
        key: key.then_some(range),
    };
    let mut fragments = Fragments::new(method);
    fragments.record(&draw, &scene);
    fragments.take(&scene).unwrap()
}

#[test]
fn estimators_run_on_shaders() {
    let plain = "attribute vec3 p; void main() { gl_Position = vec4(p, 1.0); }";
    let bent = "attribute vec3 p; attribute vec3 q; \
        void main() { gl_Position = vec4(p.x * abs(q.x) * 2.0, p.yz, 1.0); }";
    for key in [false, true] {
        assert_eq!(estimate(Method::BoundingBox, plain, key), 0.6 * 2500.0);
        assert_eq!(estimate(Method::Samples, plain, key), 2.0 * 2500.0);
        assert_eq!(estimate(Method::BoundingBox, bent, key), 2.0 * 2500.0, "falls back to samples");
        assert_eq!(estimate(Method::Ratio, bent, key), 2.0 * 2500.0);
    }
    let apart = "#version 300 es\nin vec3 p; \
        void main() { gl_Position = vec4(p.x + 9.0 * float(gl_InstanceID), p.yz, 1.0); }";
    assert_eq!(estimate(Method::Samples, apart, true), 2500.0, "the second instance is outside");
}

proptest! {
    /// Whatever the bytes, a bent shader and a straight one give numbers or say why not.
    #[test]
    fn hostile_bytes_are_no_problem(data in prop::collection::vec(any::<u8>(), 0..200), stride in 0usize..40) {
        let (shader, uniforms) = shader("attribute vec4 p; attribute vec4 q; void main() { gl_Position = p / q; }");
        let attribute = Attribute { bytes: &data, offset: 3, stride, components: 4, format: Format::F32 };
        let inputs = [Input::Array { attribute, buffer: None, divisor: 0 }; 2];
        let mut memory = ShaderMemory::default();
        let position = ShaderPosition::new(slice(&shader), &uniforms, &inputs, &mut memory).unwrap();
        let view = View::new(&RasterState::new(64, 64));
        let scene = Scene { view: &view, position: &position };
        let draw = super::super::Draw {
            mode: Mode::Triangles,
            elements: Elements::Arrays { first: 0 },
            count: 30,
            instances: 1,
            positions: attribute,
            key: None,
        };
        let mut fragments = Fragments::new(Method::BoundingBox);
        fragments.record(&draw, &scene);
        let found = fragments.take(&scene).unwrap();
        prop_assert!((0.0..=10.0 * 64.0 * 64.0).contains(&found), "{}", found);
    }
}
