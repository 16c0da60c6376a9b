use proptest::prelude::*;
use takt_core::Span;

use super::*;
use crate::cost::{Buffers, Capabilities, Target, TextureSize};
use crate::fragments::{
    Attribute, BufferId, Elements, Format, IndexFormat, Input, Mode, RasterState, Rect, Trust,
};
use crate::glsl::{MemberLayout, UniformData};
use crate::mars::Model;
use crate::shaders::Submodel;

const STRAIGHT: &str = "attribute vec3 at; uniform mat4 matrix; uniform vec4 colour; varying vec4 v; \
    void main() { v = colour; gl_Position = matrix * vec4(at, 1.0); }";
const BENT: &str = "attribute vec3 at; attribute float size; uniform mat4 matrix; \
    void main() { gl_Position = matrix * vec4(at * abs(size), 1.0); }";
const PLAIN: &str = "precision mediump float; void main() { gl_FragColor = vec4(1.0); }";
const IDENTITY: [f32; 16] = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
const RATES: ShaderRates = ShaderRates { vertex_ns: 2.0, fragment_ns: 1.0 };

fn profile() -> Profile {
    Profile { flush_ns: 1000.0, draw_ns: 100.0, coverage: 1.0, ..Profile::default() }
}

fn program(vertex: &str) -> Program {
    let mut program = Program::new(vertex, PLAIN, &[]);
    if let Some(slot) = program.uniform("matrix") {
        program.set_uniform(slot, 0, UniformData::Floats(&IDENTITY));
    }
    program
}

fn predictor(method: Method, program: &Program) -> Predictor {
    let settings = Settings { fragments: method, ..Settings::default() };
    let mut predictor = Predictor::new(settings, profile(), None);
    predictor.link(program);
    predictor.profiled(program.id(), RATES);
    predictor
}

/// A quad of a quarter of the target.
fn quad() -> Vec<u8> {
    let corners = [-0.5f32, -0.5, 0.0, 0.5, -0.5, 0.0, -0.5, 0.5, 0.0, 0.5, 0.5, 0.0];
    corners.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn state() -> DrawState<'static> {
    DrawState {
        raster: RasterState::new(100, 100),
        target: 0,
        capabilities: Capabilities::default(),
        textures: &[],
    }
}

fn inputs<'a>(program: &Program, bytes: &'a [u8], buffer: Option<BufferId>) -> Vec<Input<'a>> {
    let attribute = Attribute { bytes, offset: 0, stride: 0, components: 3, format: Format::F32 };
    let one = |n: usize| match n {
        0 => Input::Array { attribute, buffer, divisor: 0 },
        _ => Input::Constant([1.0, 0.0, 0.0, 1.0]),
    };
    (0..program.attributes().len()).map(one).collect()
}

fn call<'a>(program: &'a Program, inputs: &'a [Input<'a>], state: &'a DrawState<'a>) -> DrawCall<'a> {
    DrawCall {
        program,
        mode: Mode::TriangleStrip,
        elements: Elements::Arrays { first: 0 },
        index_buffer: None,
        count: 4,
        instances: 1,
        inputs,
        state,
        fragments: None,
    }
}

fn ns(prediction: Prediction) -> u64 {
    prediction.value.span().as_ns()
}

#[test]
fn all_methods_run_on_all_shaders() {
    for source in [STRAIGHT, BENT] {
        let program = program(source);
        let (bytes, state) = (quad(), state());
        for buffer in [None, Some(BufferId { buffer: 7, generation: 1 })] {
            let inputs = inputs(&program, &bytes, buffer);
            for method in [Method::BoundingBox, Method::Samples, Method::Ratio, Method::Sequence] {
                let mut predictor = predictor(method, &program);
                predictor.draw(&call(&program, &inputs, &state));
                let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
                assert_eq!(ns(prediction), 1000 + 100 + 4 * 2 + 2500, "{method:?} {source}");
                assert_eq!((ticket.vertices(), ticket.group_type()), (4, GroupType::Draw));
            }
        }
    }
}

#[test]
fn draws_of_one_scene_are_one_batch() {
    let mut program = program(STRAIGHT);
    let (bytes, state) = (quad(), state());
    let mut predictor = predictor(Method::BoundingBox, &program);
    let colour = program.uniform("colour").unwrap();
    for shade in [0.25, 0.5, 0.75] {
        // What positions do not depend on does not end a batch, so there is one box for all.
        program.set_uniform(colour, 0, UniformData::Floats(&[shade; 4]));
        predictor.draw(&call(&program, &inputs(&program, &bytes, None), &state));
    }
    let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!(ticket.fragments(), 2500.0);
    let matrix = program.uniform("matrix").unwrap();
    for size in [1.0, 0.5] {
        program.set_uniform(matrix, 0, UniformData::Floats(&IDENTITY.map(|value| value * size)));
        program.set_uniform(matrix, 15, UniformData::Floats(&[1.0]));
        predictor.draw(&call(&program, &inputs(&program, &bytes, None), &state));
    }
    let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!(ticket.fragments(), 2500.0 + 625.0, "a matrix that changed begins another batch");
}

#[test]
fn equal_programs_with_other_uniforms_are_other_scenes() {
    let (one, mut two) = (program(STRAIGHT), program(STRAIGHT));
    let matrix = two.uniform("matrix").unwrap();
    two.set_uniform(matrix, 0, UniformData::Floats(&[0.5]));
    assert_eq!(one.id(), two.id());
    let (bytes, state) = (quad(), state());
    let mut predictor = predictor(Method::Samples, &one);
    predictor.draw(&call(&one, &inputs(&one, &bytes, None), &state));
    predictor.draw(&call(&two, &inputs(&two, &bytes, None), &state));
    let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!(ticket.fragments(), 2500.0 + 1250.0);
}

#[test]
fn looking_back_is_by_groups() {
    let (straight, bent) = (program(STRAIGHT), program(BENT));
    let (bytes, state) = (quad(), state());
    let mut predictor = predictor(Method::Sequence, &straight);
    predictor.profiled(bent.id(), ShaderRates { vertex_ns: 2.0, fragment_ns: 3.0 });
    let frame = |predictor: &mut Predictor| {
        predictor.frame_begins();
        let mut predictions = Vec::new();
        for programs in [&[&straight, &bent][..], &[&straight]] {
            for program in programs {
                predictor.draw(&call(program, &inputs(program, &bytes, None), &state));
            }
            let pending = predictor.pending(Disturbance::None);
            let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
            assert_eq!(pending, prediction);
            predictions.push((ns(prediction), ticket));
        }
        predictions
    };
    let first = frame(&mut predictor);
    assert_eq!(first[0].1.fragments(), 5000.0, "samples, as nothing was measured yet");
    for ((_, ticket), fragments) in first.iter().zip([1000.0, 300.0]) {
        let cost = Cost::new(Span::from_us(5));
        predictor
            .learn(ticket, &Measured { cost, disturbance: Disturbance::None, fragments: Some(fragments) });
    }
    predictor.frame_measured();
    let second = frame(&mut predictor);
    assert_eq!([0, 1].map(|n| second[n].1.fragments()), [1000.0, 300.0]);
    // Both programs draw as many vertices, so a fragment costs what it costs on average.
    assert_eq!(second[0].0, 1000 + 200 + 16 + 2 * 1000);
    assert_eq!(second[1].0, 1000 + 100 + 8 + 300);
}

#[test]
fn without_counts_of_fragments_the_time_tells_them() {
    let (program, bytes, state) = (program(STRAIGHT), quad(), state());
    for method in [Method::Ratio, Method::Sequence] {
        let mut predictor = predictor(method, &program);
        let mut frame = |cost_us: u64, disturbance| {
            predictor.frame_begins();
            predictor.draw(&call(&program, &inputs(&program, &bytes, None), &state));
            let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
            let cost = Cost::new(Span::from_us(cost_us));
            predictor.learn(&ticket, &Measured { cost, disturbance, fragments: None });
            predictor.frame_measured();
            (ns(prediction), ticket.fragments())
        };
        assert_eq!(frame(60, Disturbance::None).1, 2500.0, "samples, as nothing was measured yet");
        let (second_ns, fragments) = frame(60, Disturbance::None);
        assert_eq!((second_ns, fragments), (60_000, 60_000.0 - 1108.0), "{method:?}");
        assert_eq!(frame(9000, Disturbance::Unknown).0, 60_000);
        assert_eq!(frame(60, Disturbance::None).0, 60_000, "a disturbed frame changes nothing");
    }
}

#[test]
fn what_cannot_be_placed_fills_the_target() {
    let textured = "attribute vec2 at; uniform sampler2D t; void main() { gl_Position = texture2D(t, at); }";
    let in_block = "#version 300 es\nin vec4 at; uniform Block { mat4 matrix; }; \
        void main() { gl_Position = matrix * at; }";
    for source in [textured, "this is no shader", in_block] {
        let program = Program::new(source, PLAIN, &[]);
        let mut predictor = predictor(Method::BoundingBox, &program);
        predictor.draw(&call(&program, &[], &state()));
        let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
        assert_eq!(ticket.fragments(), 10_000.0, "{source}");
    }
    assert_eq!(program(textured).problem(), None);
    let problem = program("this is no shader").problem().map(ToString::to_string);
    assert!(problem.as_deref().is_some_and(|text| text.starts_with("Vertex shader: ")), "{problem:?}");
}

#[test]
fn two_shader_models_share_fragments_and_nothing_else() {
    let programs = [program(STRAIGHT), program(BENT)];
    let (bytes, state) = (quad(), state());
    let settings = |fragments, shaders| Settings { fragments, shaders, ..Settings::default() };
    for method in [Method::BoundingBox, Method::Samples] {
        let new = |shaders| {
            let mut made = Predictor::new(settings(method, shaders), profile(), Some(models(3.0)));
            programs.iter().for_each(|program| made.link(program));
            made.profiled(programs[0].id(), RATES);
            made
        };
        let (mut profiled, mut mars) = (new(ShaderModel::Profiled), new(ShaderModel::Mars));
        let mut both = new(ShaderModel::Profiled);
        assert!(both.add(&settings(method, ShaderModel::Mars)));
        assert!(!both.add(&settings(method, ShaderModel::Mars)), "there are two");
        for round in 0..6_u64 {
            for predictor in [&mut profiled, &mut mars, &mut both] {
                predictor.work(Work::Upload { bytes: 1 << 20 });
                for program in &programs {
                    predictor.draw(&call(program, &inputs(program, &bytes, None), &state));
                }
                predictor.work(Work::Resolve(Target::Default { pixels: 10_000, fast_clear: false }));
                if round % 2 == 0 {
                    predictor.pending(Disturbance::None);
                }
            }
            let swap = Submission::Swap(Target::Default { pixels: 10_000, fast_clear: false });
            let (first, second) = both.submit_both(swap, Disturbance::None);
            let second = second.expect("a model beside it");
            assert_eq!(first, profiled.submit(swap, Disturbance::None));
            assert_eq!(second, mars.submit(swap, Disturbance::None));
            assert_eq!(first.1.fragments(), second.1.fragments());
            assert_ne!(first.1.parts(), second.1.parts(), "{method:?}: models differ");
            let cost = Cost::new(Span::from_us(40 + round));
            let measured = Measured { cost, disturbance: Disturbance::None, fragments: None };
            for (ticket, alone) in [(first.1, &mut profiled), (second.1, &mut mars)] {
                both.learn(&ticket, &measured);
                alone.learn(&ticket, &measured);
            }
        }
    }
    for method in [Method::Ratio, Method::Sequence] {
        let mut predictor = Predictor::new(settings(method, ShaderModel::Profiled), profile(), None);
        assert!(!predictor.add(&settings(method, ShaderModel::Mars)), "fragments depend on the model");
    }
    let mut predictor = Predictor::new(settings(Method::Samples, ShaderModel::Mars), profile(), None);
    assert!(!predictor.add(&settings(Method::BoundingBox, ShaderModel::Profiled)), "other fragments");
    assert!(!predictor.add(&settings(Method::Samples, ShaderModel::Mars)), "nothing else");
}

#[test]
fn uniforms_in_blocks_place_draws_while_their_buffers_are_known() {
    let in_block = "#version 300 es\nuniform Block { float idle; mat4 matrix; } block; in vec4 at; \
        void main() { gl_Position = block.matrix * at; }";
    let mut program = Program::new(in_block, PLAIN, &[]);
    let members: Vec<_> = program.block_uniforms().map(|(slot, member)| (slot, member.clone())).collect();
    let [(slot, member)] = members.as_slice() else { panic!("{members:?}") };
    assert_eq!((member.block.as_str(), member.name.as_str()), ("Block", "Block.matrix"));
    assert_eq!(program.attributes().len(), 1, "attributes do not depend on what is in buffers");

    let layout = MemberLayout { offset: 16, matrix_stride: 16, ..MemberLayout::default() };
    let buffer = |scale: f32| {
        let matrix = IDENTITY.map(|value| if value == 0.0 { 0.0 } else { scale });
        let words = [0.0; 4].into_iter().chain(matrix[..15].iter().copied()).chain([1.0]);
        words.flat_map(f32::to_ne_bytes).collect::<Vec<u8>>()
    };
    let (vertices, state) = (quad(), state());
    let mut predictor = predictor(Method::Samples, &program);
    let mut fragments = |program: &Program| {
        predictor.draw(&call(program, &inputs(program, &vertices, None), &state));
        predictor.submit(Submission::Flush, Disturbance::None).1.fragments()
    };
    assert_eq!(fragments(&program), 10_000.0, "not read yet");
    program.read_uniform(*slot, &layout, Some(&buffer(1.0)));
    let hash = program.position_hash();
    assert_eq!(fragments(&program), 2500.0);
    program.read_uniform(*slot, &layout, Some(&buffer(0.5)));
    assert_ne!(program.position_hash(), hash, "another scene");
    assert_eq!(fragments(&program), 625.0);
    let hash = program.position_hash();
    for unknown in [None, Some(&buffer(1.0)[..79])] {
        program.read_uniform(*slot, &layout, unknown);
        assert_ne!(program.position_hash(), hash, "no scene that is known");
        assert_eq!(fragments(&program), 10_000.0);
    }
    program.read_uniform(*slot, &layout, Some(&buffer(0.5)));
    assert_eq!((program.position_hash(), fragments(&program)), (hash, 625.0));
}

#[test]
fn a_program_of_which_nothing_is_known_costs_what_the_dearest_does() {
    let (known, unknown) = (program(STRAIGHT), program("nonsense"));
    let (bytes, state) = (quad(), state());
    let mut predictor = predictor(Method::Samples, &known);
    predictor.draw(&call(&known, &inputs(&known, &bytes, None), &state));
    predictor.submit(Submission::Flush, Disturbance::None);
    predictor.draw(&call(&unknown, &[], &state));
    let (prediction, _) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!(ns(prediction), 1000 + 100 + 4 * 2 + 10_000);
}

fn models(per_fragment: f64) -> ShaderModels {
    let constant = |submodel: Submodel| {
        let ns = if submodel == Submodel::FragmentAux { per_fragment } else { 0.0 };
        Model::new(submodel.features().len(), ns).unwrap()
    };
    ShaderModels::new(String::new(), String::new(), Submodel::ALL.map(constant)).unwrap()
}

#[test]
fn the_model_asked_for_comes_first_and_the_other_second() {
    let (program, bytes, state) = (program(STRAIGHT), quad(), state());
    let predicted = |shaders, models: Option<ShaderModels>, profiled: bool| {
        let settings = Settings { fragments: Method::Samples, shaders, ..Settings::default() };
        let mut predictor = Predictor::new(settings, profile(), models);
        predictor.link(&program);
        if profiled {
            predictor.profiled(program.id(), ShaderRates { vertex_ns: 0.0, fragment_ns: 1.0 });
        }
        predictor.draw(&call(&program, &inputs(&program, &bytes, None), &state));
        ns(predictor.submit(Submission::Flush, Disturbance::None).0) - 1100
    };
    assert_eq!(predicted(ShaderModel::Profiled, Some(models(4.0)), true), 2500);
    assert_eq!(predicted(ShaderModel::Mars, Some(models(4.0)), true), 10_000);
    assert_eq!(predicted(ShaderModel::Profiled, Some(models(4.0)), false), 10_000);
    assert_eq!(predicted(ShaderModel::Mars, None, true), 2500);
    assert_eq!(predicted(ShaderModel::Mars, None, false), 0);
}

#[test]
fn clears_and_swaps_that_cost_nothing_are_different_things() {
    let mut profile = Profile { flush_ns: 500.0, ..Profile::default() };
    profile.clear.pixel_ns = [0.125; 8];
    let mut predictor = Predictor::new(Settings::default(), profile, None);
    let target = Target::Default { pixels: 10_000_000, fast_clear: false };
    let buffers = Buffers { color: true, depth: true, stencil: false };
    for _ in 0..100 {
        let (_, swap) = predictor.submit(Submission::Swap(target), Disturbance::None);
        let measured =
            Measured { cost: Cost::new(Span::from_us(100)), disturbance: Disturbance::None, fragments: None };
        predictor.learn(&swap, &measured);
        predictor.work(Work::Clear { buffers, target });
        let most = predictor.pending(Disturbance::None).upper.span();
        assert!(most < Span::from_ms(2), "{most:?}");
        predictor.submit(Submission::Flush, Disturbance::None);
    }
}

#[test]
fn other_commands_count_where_they_belong() {
    let mut profile = profile();
    profile.clear.pixel_ns[1] = 0.5;
    profile.swap.pixel_ns = 2.0;
    profile.memory.upload.below_ns = 3.0;
    let mut predictor = Predictor::new(Settings::default(), profile, None);
    let target = Target::Default { pixels: 100, fast_clear: false };
    predictor.work(Work::Clear { buffers: Buffers { color: true, ..Buffers::default() }, target });
    let (prediction, ticket) = predictor.submit(Submission::Finish, Disturbance::None);
    assert_eq!((ns(prediction), ticket.group_type()), (2050, GroupType::Clear));
    predictor.work(Work::Upload { bytes: 10 });
    let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!((ns(prediction), ticket.group_type()), (1030, GroupType::Copy));
    predictor.work(Work::Resolve(target));
    let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!((ns(prediction), ticket.group_type()), (1200, GroupType::Draw));
    let (prediction, ticket) = predictor.submit(Submission::Swap(target), Disturbance::None);
    assert_eq!((ns(prediction), ticket.group_type()), (1200, GroupType::Swap));
}

#[test]
fn measured_times_are_learnt_unless_told_otherwise() {
    let (program, bytes, state) = (program(STRAIGHT), quad(), state());
    for (adapt, expected) in [(true, 400_000), (false, 101_108)] {
        let settings =
            Settings { fragments: Method::Samples, adapt, overpredict: 2.0, ..Settings::default() };
        let mut predictor = Predictor::new(settings, profile(), None);
        predictor.profiled(program.id(), ShaderRates { vertex_ns: 2.0, fragment_ns: 40.0 });
        let mut last = 0;
        for _ in 0..200 {
            predictor.draw(&call(&program, &inputs(&program, &bytes, None), &state));
            let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
            let cost = Cost::new(Span::from_us(400));
            predictor.learn(&ticket, &Measured { cost, disturbance: Disturbance::None, fragments: None });
            last = ns(prediction) / 2;
        }
        assert!(last.abs_diff(expected) < 2000, "{last}");
    }
}

#[test]
fn known_fragments_are_believed() {
    let (program, bytes, state) = (program(STRAIGHT), quad(), state());
    let mut predictor = predictor(Method::BoundingBox, &program);
    let inputs = inputs(&program, &bytes, None);
    for fragments in [77.0, f64::NAN, f64::INFINITY, -5.0, 23.0] {
        predictor.draw(&DrawCall { fragments: Some(fragments), ..call(&program, &inputs, &state) });
    }
    let (_, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    assert_eq!(ticket.fragments(), 100.0, "what is no count is nothing");
}

/// What a draw call says about itself, true or not.
#[derive(Clone, Debug)]
struct Claims {
    bent: bool,
    count: u32,
    instances: u32,
    size: (u32, u32),
    viewport: Rect,
    mode: Mode,
    trust: Trust,
    buffer: Option<u64>,
    indices: Option<(IndexFormat, Option<u64>)>,
    first: u32,
    inputs: Vec<(Layout, u32)>,
    textures: Vec<TextureSize>,
    fragments: Option<f64>,
}

/// Offset, stride, components and format of an attribute.
type Layout = (usize, usize, u8, Format);

/// Ordinary most of the time, else anything.
fn number(usual: u32) -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..usual, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn any_input() -> impl Strategy<Value = (Layout, u32)> {
    let place = || prop_oneof![4 => 0usize..64, 1 => any::<usize>(), 1 => Just(usize::MAX)];
    let format = prop::sample::select(vec![
        Format::F32,
        Format::F16,
        Format::Fixed,
        Format::U8Normalized,
        Format::I16,
        Format::U32,
        Format::I2101010Normalized,
    ]);
    ((place(), place(), any::<u8>(), format), number(3))
}

fn any_claims() -> impl Strategy<Value = Claims> {
    let modes = vec![
        Mode::Points,
        Mode::Lines,
        Mode::LineStrip,
        Mode::LineLoop,
        Mode::Triangles,
        Mode::TriangleStrip,
        Mode::TriangleFan,
    ];
    let formats = vec![IndexFormat::U8, IndexFormat::U16, IndexFormat::U32];
    let indices = prop::option::of((prop::sample::select(formats), prop::option::of(0u64..3)));
    let textures = prop::collection::vec((any::<u32>(), any::<u32>()), 0..3);
    let fragments = prop_oneof![8 => Just(None), 1 => any::<f64>().prop_map(Some)];
    let trust = prop::sample::select(vec![Trust::Trusted, Trust::Untrusted]);
    let rect = (any::<i32>(), any::<i32>(), any::<u32>(), any::<u32>());
    let of_draw = (any::<bool>(), number(5000), number(3), prop::sample::select(modes), number(100));
    let of_target = ((number(5000), number(100)), prop::option::of(rect), trust);
    let of_buffers = (prop::option::of(0u64..3), indices, prop::collection::vec(any_input(), 0..4));
    (of_draw, of_target, of_buffers, textures, fragments).prop_map(
        |((bent, count, instances, mode, first), (size, rect, trust), buffers, textures, fragments)| {
            let (buffer, indices, inputs) = buffers;
            let (x, y, width, height) = rect.unwrap_or((0, 0, size.0, size.1));
            let viewport = Rect { x, y, width, height };
            let textures =
                textures.into_iter().map(|(width, height)| TextureSize { width, height }).collect();
            Claims {
                bent,
                count,
                instances,
                size,
                viewport,
                mode,
                trust,
                buffer,
                indices,
                first,
                inputs,
                textures,
                fragments,
            }
        },
    )
}

impl Claims {
    fn draw(&self, predictor: &mut Predictor, program: &Program, bytes: &[u8]) {
        let buffer = |number: Option<u64>| number.map(|buffer| BufferId { buffer, generation: 0 });
        let input = |((offset, stride, components, format), divisor): &(Layout, u32)| {
            let (offset, stride, components, format) = (*offset, *stride, *components, *format);
            let attribute = Attribute { bytes, offset, stride, components, format };
            Input::Array { attribute, buffer: buffer(self.buffer), divisor: *divisor }
        };
        let inputs: Vec<Input<'_>> = self.inputs.iter().map(input).collect();
        let (viewport, trust) = (self.viewport, self.trust);
        let raster = RasterState { viewport, trust, ..RasterState::new(self.size.0, self.size.1) };
        let state = DrawState { raster, textures: &self.textures, ..state() };
        let elements = match self.indices {
            None => Elements::Arrays { first: self.first },
            Some((format, _)) => Elements::Indexed { bytes, format },
        };
        let index_buffer =
            self.indices.and_then(|(_, name)| buffer(name)).map(|name| (name, u64::from(self.first)));
        predictor.draw(&DrawCall {
            mode: self.mode,
            elements,
            index_buffer,
            count: self.count,
            instances: self.instances,
            fragments: self.fragments,
            ..call(program, &inputs, &state)
        });
    }
}

#[derive(Clone, Debug)]
enum Op {
    Draw(Box<Claims>),
    Uniform(u32, usize),
    Submit,
    Learn(u64, f64),
    Frame,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any_claims().prop_map(|claims| Op::Draw(Box::new(claims))),
        2 => (any::<u32>(), 0usize..20).prop_map(|(bits, start)| Op::Uniform(bits, start)),
        2 => Just(Op::Submit),
        1 => (any::<u64>(), any::<f64>()).prop_map(|(ns, fragments)| Op::Learn(ns, fragments)),
        1 => Just(Op::Frame),
    ]
}

proptest! {
    #[test]
    fn whatever_an_app_does_predictions_are_in_order(
        ops in prop::collection::vec(any_op(), 1..60),
        data in prop::collection::vec(any::<u8>(), 0..3000),
        method in prop::sample::select(vec![Method::BoundingBox, Method::Samples, Method::Ratio, Method::Sequence]),
    ) {
        let mut programs = [program(STRAIGHT), program(BENT)];
        let mut predictor = predictor(method, &programs[0]);
        let mut ticket = None;
        for op in ops {
            match op {
                Op::Draw(claims) => {
                    claims.draw(&mut predictor, &programs[usize::from(claims.bent)], &data);
                }
                Op::Uniform(bits, start) => {
                    for program in &mut programs {
                        let slot = program.uniform("matrix").unwrap();
                        program.set_uniform(slot, start, UniformData::Floats(&[f32::from_bits(bits)]));
                    }
                }
                Op::Submit => {
                    let (told, new) = predictor.submit(Submission::Flush, Disturbance::ContextSwitch);
                    prop_assert!(told.lower <= told.value && told.value <= told.upper);
                    prop_assert!(new.fragments().is_finite() && new.fragments() >= 0.0);
                    ticket = Some(new);
                }
                Op::Learn(ns, fragments) => {
                    let cost = Cost::new(Span::from_ns(ns));
                    let measured = Measured { cost, disturbance: Disturbance::None, fragments: Some(fragments) };
                    ticket.iter().for_each(|ticket| predictor.learn(ticket, &measured));
                }
                Op::Frame => {
                    predictor.frame_measured();
                    predictor.frame_begins();
                }
            }
        }
    }
}

/// A dispatch of so many workgroups of 64, whose shader does 100 operations as far as it can be seen.
fn dispatch(groups: u32, uniforms: u64) -> DispatchCall {
    let program = ProgramId::of_compute("void main() {}");
    DispatchCall { program, uniforms, groups: Some([groups, 1, 1]), group_size: 64, operations: 100.0 }
}

fn learn(predictor: &mut Predictor, measured_us: u64) -> (Prediction, GroupType) {
    let (prediction, ticket) = predictor.submit(Submission::Flush, Disturbance::None);
    let cost = Cost::new(Span::from_us(measured_us));
    predictor.learn(&ticket, &Measured { cost, disturbance: Disturbance::None, fragments: None });
    (prediction, ticket.group_type())
}

#[test]
fn dispatches_are_learnt_by_program_workgroups_and_uniforms() {
    let mut predictor = Predictor::new(Settings::default(), profile(), None);
    let first = |predictor: &mut Predictor, call: &DispatchCall, measured_us| {
        predictor.dispatch(call, 0.001);
        let (prediction, kind) = learn(predictor, measured_us);
        assert_eq!(kind, GroupType::Compute);
        prediction.value.span().as_ns() as f64 / 1e3
    };
    let features = first(&mut predictor, &dispatch(1000, 1), 96_000);
    assert!((features - 7.5).abs() < 0.01, "flush, call and 6.4 µs by features: {features}");
    for _ in 0..3 {
        let us = first(&mut predictor, &dispatch(1000, 1), 96_000);
        assert!((us / 96_000.0 - 1.0).abs() < 0.2, "{us}");
    }
    let double = first(&mut predictor, &dispatch(2000, 1), 190_000);
    assert!(double > 96_000.0, "more workgroups of a known program take longer: {double}");
    first(&mut predictor, &dispatch(1000, 2), 500);
    for (uniforms, wanted_us) in [(1, 96_000.0), (2, 500.0)] {
        let us = first(&mut predictor, &dispatch(1000, uniforms), if uniforms == 1 { 96_000 } else { 500 });
        assert!((us / wanted_us - 1.0).abs() < 0.2, "{uniforms}: {us}");
    }
}

#[test]
fn a_long_dispatch_is_not_charged_to_draws_beside_it() {
    let (program, bytes, state) = (program(STRAIGHT), quad(), state());
    let mut predictor = predictor(Method::BoundingBox, &program);
    let inputs = inputs(&program, &bytes, None);
    let draw = |predictor: &mut Predictor| {
        // Many more fragments than the dispatch has operations, as far as the models see.
        (0..20).for_each(|_| predictor.draw(&call(&program, &inputs, &state)));
    };
    predictor.dispatch(&dispatch(1000, 1), 0.001);
    learn(&mut predictor, 96_000);
    draw(&mut predictor);
    learn(&mut predictor, 60);
    for _ in 0..3 {
        draw(&mut predictor);
        predictor.dispatch(&dispatch(1000, 1), 0.001);
        let (together, kind) = learn(&mut predictor, 96_060);
        assert_eq!(kind, GroupType::Compute);
        assert!((ns(together) as f64 / 96.06e6 - 1.0).abs() < 0.2, "{together:?}");
    }
    draw(&mut predictor);
    let (alone, kind) = learn(&mut predictor, 60);
    assert_eq!(kind, GroupType::Draw);
    assert!(ns(alone) < 100_000, "{alone:?}");
}
