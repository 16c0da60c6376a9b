//! Shaders of real programs.
//!
//! Those of glmark2 are read from where its Debian package puts them and completed as glmark2
//! does; they are not part of this repository. Those of es2gears are written anew after what it
//! draws.

use std::fs;
use std::path::Path;

/// Where Debian's `glmark2-data` has them.
pub const GLMARK2_SHADERS: &str = "/usr/share/glmark2/shaders";

/// A complete shader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// File name, with the variant for templates.
    pub name: String,
    /// Whether it is a vertex shader.
    pub vertex: bool,
    /// What an app would hand to the driver.
    pub text: String,
}

/// What precedes each shader in a GL ES build of glmark2: names for precisions, and defaults.
const HEADER: &str = "\
#ifdef GL_ES
#ifdef GL_FRAGMENT_PRECISION_HIGH
#define HIGHP_OR_DEFAULT highp
#else
#define HIGHP_OR_DEFAULT mediump
#endif
#define MEDIUMP_OR_DEFAULT mediump
precision HIGHP_OR_DEFAULT float;
#else
#define HIGHP_OR_DEFAULT
#define MEDIUMP_OR_DEFAULT
#endif
";

/// Constants that scenes add, by name.
const CONSTANTS: &[(&str, &str)] = &[
    ("LightSourcePosition", "const vec4 LightSourcePosition = vec4(20.0, 20.0, 10.0, 1.0);\n"),
    ("LightSourceHalfVector", "const vec3 LightSourceHalfVector = vec3(0.577, 0.577, 0.577);\n"),
    ("LightColor", "const vec4 LightColor = vec4(0.4, 0.4, 0.4, 1.0);\n"),
    ("MaterialDiffuse", "const vec4 MaterialDiffuse = vec4(0.7, 0.7, 0.7, 1.0);\n"),
    ("MaterialColor", "const vec4 MaterialColor = vec4(0.7, 0.2, 0.2, 1.0);\n"),
    ("PI", "const float PI = 3.14159265;\n"),
    ("TextureStepX", "const float TextureStepX = 0.00125;\n"),
    ("TextureStepY", "const float TextureStepY = 0.00166;\n"),
    ("RefractiveIndex", "const float RefractiveIndex = 1.2;\n"),
    ("TextureSize", "const vec2 TextureSize = vec2(512.0, 512.0);\n"),
];

/// All shaders of glmark2; none if the package is not installed.
#[must_use]
pub fn glmark2() -> Vec<Source> {
    let Ok(entries) = fs::read_dir(GLMARK2_SHADERS) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let mut sources = Vec::new();
    for name in &names {
        let vertex = name.ends_with(".vert");
        if !vertex && !name.ends_with(".frag") {
            continue;
        }
        for (variant, body) in variants(name, &read(name)) {
            let text = format!("{HEADER}{}{body}", constants(&body));
            sources.push(Source { name: format!("{name}{variant}"), vertex, text });
        }
    }
    sources
}

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(GLMARK2_SHADERS).join(name)).unwrap_or_default()
}

/// The constants that a shader uses but does not declare.
fn constants(body: &str) -> String {
    let words: Vec<&str> = body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let declares = |name: &str| {
        ["float", "vec2", "vec3", "vec4"].iter().any(|ty| body.contains(&format!("{ty} {name};")))
    };
    let wanted = |name: &&str| words.contains(name) && !declares(name);
    CONSTANTS.iter().filter(|(name, _)| wanted(name)).map(|(_, text)| *text).collect()
}

/// A template filled in the ways its scene does; a plain shader as it is.
fn variants(name: &str, body: &str) -> Vec<(&'static str, String)> {
    let steps = |file: &str, times: usize| read(file).repeat(times);
    let main = |text: String| body.replace("$MAIN$", &text);
    if name.starts_with("conditionals") {
        return vec![
            ("#simple", main(steps("conditionals-step-simple.all", 5))),
            ("#branches", main(steps("conditionals-step-conditional.all", 5))),
        ];
    }
    if name.starts_with("function") {
        let low = main(steps("function-call.all", 5)).replace("$PROCESS$", &read("function-step-low.all"));
        let medium =
            main(steps("function-call.all", 5)).replace("$PROCESS$", &read("function-step-medium.all"));
        return vec![("#low", low), ("#medium", medium)];
    }
    if name.starts_with("loop") {
        let count = if name.ends_with(".vert") { "VertexLoops" } else { "FragmentLoops" };
        let looped = |count: &str| main(read("loop-step-loop.all")).replace("$NLOOPS$", count);
        return vec![
            ("#steps", main(steps("loop-step-simple.all", 5))),
            ("#constant", looped("5")),
            ("#uniform", looped(count)),
        ];
    }
    if body.contains("$CONVOLUTION$") {
        return vec![
            ("#3x3", body.replace("$CONVOLUTION$", &convolution(3))),
            ("#5x5", body.replace("$CONVOLUTION$", &convolution(5))),
        ];
    }
    if body.contains("$DO_LIGHTS$") {
        let call = "    gl_FragColor = compute_color(LightSourcePosition, MaterialDiffuse);\n";
        return vec![("#one", body.replace("$DO_LIGHTS$", call))];
    }
    vec![("", body.to_owned())]
}

/// A sum over texels around the current one, as the scenes generate it.
fn convolution(size: i32) -> String {
    let half = size / 2;
    let mut text = String::from("result = ");
    for y in -half..=half {
        for x in -half..=half {
            let weight = 1.0 / f64::from(1 + x * x + y * y);
            text += &format!(
                "texture2D(Texture0, TextureCoord + vec2({:.6} * TextureStepX, {:.6} * TextureStepY)) * {weight:.6} + ",
                f64::from(x),
                f64::from(y)
            );
        }
    }
    text + "vec4(0.0);\n"
}

/// Shaders that draw what es2gears draws: lit gears of one colour each.
#[must_use]
pub fn es2gears() -> Vec<Source> {
    let vertex = "\
attribute vec3 position;
attribute vec3 normal;
uniform mat4 ModelViewProjectionMatrix;
uniform mat4 NormalMatrix;
uniform vec4 LightSourcePosition;
uniform vec4 MaterialColor;
varying vec4 Color;
void main(void)
{
    vec3 turned = normalize(vec3(NormalMatrix * vec4(normal, 1.0)));
    vec3 towards = normalize(LightSourcePosition.xyz);
    Color = max(dot(turned, towards), 0.0) * MaterialColor;
    gl_Position = ModelViewProjectionMatrix * vec4(position, 1.0);
}
";
    let fragment = "\
precision mediump float;
varying vec4 Color;
void main(void)
{
    gl_FragColor = Color;
}
";
    let source =
        |name: &str, vertex, text: &str| Source { name: name.to_owned(), vertex, text: text.to_owned() };
    vec![source("es2gears.vert", true, vertex), source("es2gears.frag", false, fragment)]
}
