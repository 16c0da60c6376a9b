//! Programs at random: valid, different, and spread over what the models look at.

use takt_predict::cost::{FragmentState, TextureSize};
use takt_predict::shaders::Submodel;
use takt_rng::Rng;

use super::statements::{LOOKUP, STATEMENTS};

/// A program and how it is drawn.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Generated {
    pub(super) vertex: String,
    pub(super) fragment: String,
    /// Components of each attribute.
    pub(super) attributes: Vec<u32>,
    pub(super) state: FragmentState,
    /// Lookups in a texture of the size below.
    pub(super) lookups: u32,
    pub(super) texture: TextureSize,
}

const TYPES: [&str; 4] = ["float", "vec2", "vec3", "vec4"];
/// What of `x` goes into a variable of one to four components.
const PARTS: [&str; 4] = ["x.x", "x.xy", "x.xyz", "x"];
/// What makes four components of one to four.
const REST: [&str; 4] = ["", ", 0.5, 0.5", ", 0.5", ""];

/// Variables of a kind, at most; drivers of GL ES 2.0 have at least eight.
pub(super) const VARIABLES_MAX: u32 = 6;
/// Statements of a shader, at most.
const STATEMENTS_MAX: u32 = 40;
/// The largest texture has sides of 2 to this.
const TEXTURE_MAX_LOG: u32 = 11;
const LOOKUPS_MAX: u32 = 4;

/// The program of a job.
pub(super) fn generate(submodel: Submodel, seed: u64, number: usize) -> Generated {
    let random = &mut Rng::new(seed, number as u64);
    // The first attribute is always there: positions depend on it.
    let attributes: Vec<u32> = (0..=random.below(VARIABLES_MAX)).map(|_| 1 + random.below(4)).collect();
    let varyings: Vec<u32> = (0..random.below(VARIABLES_MAX + 1)).map(|_| 1 + random.below(4)).collect();
    let none = FragmentState::default();
    let state = FragmentState { depth: random.below(2) == 0, blend: random.below(2) == 0 };
    let texture = TextureSize { width: side(random), height: side(random) };
    let of_vertices = |code: &str| Generated {
        vertex: vertex_shader(&attributes, &varyings, code),
        fragment: fragment_shader(&varyings, ""),
        attributes: attributes.clone(),
        state: none,
        lookups: 0,
        texture,
    };
    let of_fragments = |code: &str, state| Generated {
        vertex: covering_shader(&varyings),
        fragment: fragment_shader(&varyings, code),
        attributes: vec![4],
        state,
        lookups: 0,
        texture,
    };
    match submodel {
        Submodel::VertexAux => of_vertices(""),
        Submodel::VertexCommands => of_vertices(&code(random, false)),
        Submodel::FragmentAux => of_fragments("", state),
        Submodel::FragmentCommands => of_fragments(&code(random, true), none),
        Submodel::Texture => textured(1 + random.below(LOOKUPS_MAX), texture),
    }
}

fn side(random: &mut Rng) -> u32 {
    1 << random.below(TEXTURE_MAX_LOG + 1)
}

/// Statements from a few families, so that programs differ in more than their length.
fn code(random: &mut Rng, lookups: bool) -> String {
    let families: Vec<&[&str]> =
        (0..=random.below(4)).map(|_| STATEMENTS[random.index(STATEMENTS.len())]).collect();
    let mut lines: Vec<&str> = Vec::new();
    for _ in 0..=random.below(STATEMENTS_MAX) {
        let family = families[random.index(families.len())];
        lines.push(family[random.index(family.len())]);
    }
    if lookups && random.below(2) == 0 {
        for _ in 0..=random.below(LOOKUPS_MAX) {
            let at = random.below(u32::try_from(lines.len()).unwrap_or(1));
            lines.insert(at as usize, LOOKUP);
        }
    }
    lines.join("\n    ")
}

fn declare(keyword: &str, letter: char, sizes: &[u32]) -> String {
    let one =
        |(number, size): (usize, &u32)| format!("{keyword} {} {letter}{number};\n", TYPES[index(*size)]);
    sizes.iter().enumerate().map(one).collect()
}

fn index(size: u32) -> usize {
    size as usize - 1
}

/// Lines that add variables up, so that none is idle.
fn sum(letter: char, sizes: &[u32]) -> String {
    let one =
        |(number, size): (usize, &u32)| format!("    x += vec4({letter}{number}{});\n", REST[index(*size)]);
    sizes.iter().enumerate().map(one).collect()
}

/// All vertices of a draw have the same attributes, so its triangles have no area; positions stay
/// inside of the viewport, where nothing is clipped.
fn vertex_shader(attributes: &[u32], varyings: &[u32], code: &str) -> String {
    let hand_on = |(number, size): (usize, &u32)| format!("    v{number} = {};\n", PARTS[index(*size)]);
    format!(
        "{}{}uniform mat4 turn;\nvoid main() {{\n    vec4 x = vec4(0.1);\n{}    vec4 y = fract(x.yzwx);\n    \
         {code}\n{}    gl_Position = vec4(clamp(x.xyz + y.xyz, -0.5, 0.5), 1.0);\n}}\n",
        declare("attribute", 'a', attributes),
        declare("varying", 'v', varyings),
        sum('a', attributes),
        varyings.iter().enumerate().map(hand_on).collect::<String>(),
    )
}

/// Fills the viewport; varyings change from pixel to pixel.
fn covering_shader(varyings: &[u32]) -> String {
    let hand_on = |(number, size): (usize, &u32)| format!("    v{number} = {};\n", PARTS[index(*size)]);
    format!(
        "attribute vec4 a0;\n{}void main() {{\n    vec4 x = a0 * 0.5 + 0.3;\n{}    gl_Position = a0;\n}}\n",
        declare("varying", 'v', varyings),
        varyings.iter().enumerate().map(hand_on).collect::<String>(),
    )
}

fn fragment_shader(varyings: &[u32], code: &str) -> String {
    format!(
        "precision mediump float;\nuniform sampler2D picture;\nuniform mat4 turn;\n{}void main() {{\n    \
         vec4 x = vec4(0.1, 0.2, 0.3, 0.4);\n{}    vec4 y = fract(x.yzwx);\n    {code}\n    \
         gl_FragColor = x + y;\n}}\n",
        declare("varying", 'v', varyings),
        sum('v', varyings),
    )
}

/// Lookups next to each other for pixels next to each other, as pictures are drawn.
fn textured(lookups: u32, texture: TextureSize) -> Generated {
    let lines: String = (0..lookups)
        .map(|number| format!("    x += texture2D(picture, v0 + {:.2});\n", f64::from(number) * 0.17))
        .collect();
    Generated {
        vertex: "attribute vec2 a0;\nvarying vec2 v0;\nvoid main() {\n    v0 = a0 * 0.5 + 0.5;\n    \
                 gl_Position = vec4(a0, 0.0, 1.0);\n}\n"
            .to_owned(),
        fragment: format!(
            "precision mediump float;\nuniform sampler2D picture;\nvarying vec2 v0;\nvoid main() {{\n    \
             vec4 x = vec4(0.0);\n{lines}    gl_FragColor = x;\n}}\n"
        ),
        attributes: vec![2],
        state: FragmentState::default(),
        lookups,
        texture,
    }
}
