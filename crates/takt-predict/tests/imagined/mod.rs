//! A GPU that exists only here, and programs to measure on it.
//!
//! Its costs have the structure that the models assume, with bends and products that they must
//! find, and every measurement is off by up to two percent.

use takt_predict::cost::{FragmentState, TextureSize};
use takt_predict::glsl::{Kind, Options, Stage, analyse};
use takt_predict::shaders::{ProgramFeatures, Run, StageFeatures, TrainingSet};
use takt_rng::Rng;

/// Around 1, by up to two percent.
fn noise(rng: &mut Rng) -> f64 {
    0.98 + 0.04 * rng.unit()
}

fn vertex_aux(stage: &StageFeatures) -> f64 {
    let floats = f64::from(stage.inputs.floats());
    4.0 + 0.9 * f64::from(stage.inputs.count()) + 0.3 * floats + 0.8 * (floats - 8.0).max(0.0)
}

fn fragment_aux(stage: &StageFeatures, state: FragmentState) -> f64 {
    let flags = [state.depth, state.blend].map(|flag| f64::from(u8::from(flag)));
    0.6 + 0.12 * f64::from(stage.varyings.floats())
        + 0.7 * flags[0]
        + 1.1 * flags[1]
        + 0.4 * flags[0] * flags[1]
}

fn commands(stage: &StageFeatures, scale: f64) -> f64 {
    let of = |kind| stage.operations.of(kind) as f64;
    let operations = 0.10 * of(Kind::Alu)
        + 0.14 * of(Kind::Mad)
        + 0.55 * of(Kind::Special)
        + 0.8 * of(Kind::Texture)
        + 0.12 * (of(Kind::Compare) + of(Kind::Select))
        + 0.2 * of(Kind::Convert);
    scale * (1.0 + operations * (1.0 + 0.01 * f64::from(stage.varyings.floats())))
}

fn texture(lookups: f64, size: TextureSize) -> f64 {
    let texels = f64::from(size.width) * f64::from(size.height);
    lookups * (0.05 * texels.ln() + 0.5 * (texels.ln() - 11.0).max(0.0))
}

/// What a vertex and a fragment really cost.
pub(crate) fn cost(features: &ProgramFeatures, state: FragmentState, size: TextureSize) -> [f64; 2] {
    let ProgramFeatures { vertex, fragment } = features;
    let of_vertex = commands(vertex, 1.0) + texture(vertex.lookups(), size);
    let of_fragment = commands(fragment, 0.4) + texture(fragment.lookups(), size);
    [of_vertex.max(vertex_aux(vertex)), of_fragment.max(fragment_aux(fragment, state))]
}

const TYPES: [&str; 4] = ["float", "vec2", "vec3", "vec4"];
/// Each leaves another mix of operations behind.
const EXPRESSIONS: [&str; 12] = [
    "x += x.yzwx * 1.3;",
    "x = x * x.wxyz + x;",
    "x.x = sin(x.y) + x.z;",
    "x = sqrt(abs(x));",
    "x = max(x, x.yxwz - 0.2);",
    "x = vec4(dot(x, x.wzyx));",
    "x = normalize(x);",
    "if (x.x > x.y) x.z += 1.7;",
    "x.w = pow(abs(x.x), 2.2);",
    "x = mix(x, x.zwxy, 0.3);",
    "x.y = float(int(x.x) + 2);",
    "x = x / (x.yzwx + 3.0);",
];

/// A generated program: variables of the sizes given, and lines of code in both stages.
fn program(attributes: &[usize], varyings: &[usize], vertex: &str, fragment: &str) -> ProgramFeatures {
    let declare = |keyword: &str, sizes: &[usize]| -> String {
        let one = |(n, size): (usize, &usize)| format!("{keyword} {} {}{n};\n", TYPES[*size], &keyword[..1]);
        sizes.iter().enumerate().map(one).collect()
    };
    let sum = |letter: &str, sizes: &[usize]| -> String {
        let rest = |size: usize| ["", ", 0.5, 0.5", ", 0.5", ""][size];
        let one = |(n, size): (usize, &usize)| format!("x += vec4({letter}{n}{});\n", rest(*size));
        sizes.iter().enumerate().map(one).collect()
    };
    let hand_on: String = varyings
        .iter()
        .enumerate()
        .map(|(n, size)| format!("v{n} = {}(x{});\n", TYPES[*size], [".x", ".xy", ".xyz", ""][*size]))
        .collect();
    let vertex = format!(
        "{}{}void main() {{ vec4 x = vec4(0.1);\n{}{vertex}\n{hand_on}gl_Position = x; }}",
        declare("attribute", attributes),
        declare("varying", varyings),
        sum("a", attributes),
    );
    let fragment = format!(
        "precision mediump float;\nuniform sampler2D t;\n{}void main() {{ vec4 x = vec4(0.1);\n\
        {}{fragment}\ngl_FragColor = x; }}",
        declare("varying", varyings),
        sum("v", varyings),
    );
    let read = |source: &str, stage| analyse(source, &Options { stage, extensions: &[] }).expect(source);
    ProgramFeatures::of(&read(&vertex, Stage::Vertex), &read(&fragment, Stage::Fragment))
}

fn sizes(rng: &mut Rng) -> Vec<usize> {
    (0..=rng.below(4)).map(|_| rng.index(4)).collect()
}

fn code(rng: &mut Rng, lines: u32) -> String {
    (0..lines).map(|_| EXPRESSIONS[rng.index(12)]).collect()
}

/// A program as apps have them: all kinds of operations and some lookups.
pub(crate) fn app(rng: &mut Rng) -> ProgramFeatures {
    let (vertex_lines, fragment_lines) = (rng.below(15), rng.below(25));
    let lookups = "x += texture2D(t, x.xy);".repeat(rng.index(4));
    let (attributes, varyings) = (sizes(rng), sizes(rng));
    let (vertex, fragment) = (code(rng, vertex_lines), code(rng, fragment_lines) + &lookups);
    program(&attributes, &varyings, &vertex, &fragment)
}

/// Runs of generated programs, about `programs` of each kind.
pub(crate) fn training_set(programs: u64) -> TrainingSet {
    let mut rng = Rng::seeded(1);
    let mut runs = TrainingSet::default();
    let one = TextureSize { width: 1, height: 1 };
    let none = FragmentState::default();
    for _ in 0..programs {
        let features = program(&sizes(&mut rng), &sizes(&mut rng), "", "");
        runs.push(&Run::VertexAux { features, ns: vertex_aux(&features.vertex) * noise(&mut rng) });
        let state = FragmentState { depth: rng.below(2) == 0, blend: rng.below(2) == 0 };
        let ns = fragment_aux(&features.fragment, state) * noise(&mut rng);
        runs.push(&Run::FragmentAux { features, state, ns });
        let (vertex_lines, fragment_lines) = (1 + rng.below(40), 1 + rng.below(40));
        let lookups = "x += texture2D(t, x.xy);".repeat(rng.index(3));
        let (vertex, fragment) = (code(&mut rng, vertex_lines), code(&mut rng, fragment_lines) + &lookups);
        let features = program(&sizes(&mut rng), &sizes(&mut rng), &vertex, &fragment);
        let [vertex, fragment] = cost(&features, none, one);
        runs.push(&Run::VertexCommands { features, ns: vertex * noise(&mut rng) });
        runs.push(&Run::FragmentCommands { features, ns: fragment * noise(&mut rng) });
        let lookups = 1 + rng.below(3);
        let side = |rng: &mut Rng| 1 << rng.below(12);
        let size = TextureSize { width: side(&mut rng), height: side(&mut rng) };
        runs.push(&Run::Texture { lookups, size, ns: texture(f64::from(lookups), size) * noise(&mut rng) });
    }
    runs
}
