//! How bodies are lit, from cheap to dear.

/// Kinds of shaders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Shader {
    /// Lit at vertices.
    Diffuse,
    /// Lit at fragments, with a highlight.
    Phong,
    /// Veins by a loop for each fragment, then as phong.
    Marble,
}

impl Shader {
    /// The vertex and the fragment shader.
    pub(super) fn sources(self, loops: u32, textured: bool) -> (String, String) {
        let mut defines = String::new();
        if textured {
            defines += "#define TEXTURED\n";
        }
        match self {
            Self::Diffuse => defines += "#define AT_VERTICES\n",
            Self::Phong => {}
            Self::Marble => defines += &format!("#define LOOPS {loops}\n"),
        }
        (format!("{defines}{VERTEX}"), format!("{defines}{FRAGMENT}"))
    }
}

const VERTEX: &str = "\
attribute vec3 position;
attribute vec3 normal;
attribute vec2 texel;
uniform mat4 matrix;
uniform mat4 turn;
varying vec3 towards;
varying vec3 place;
varying vec2 at;
#ifdef AT_VERTICES
varying float light;
#endif
void main() {
    towards = (turn * vec4(normal, 0.0)).xyz;
    place = position;
    at = texel;
#ifdef AT_VERTICES
    light = 0.25 + 0.75 * max(dot(normalize(towards), vec3(0.48, 0.60, 0.64)), 0.0);
#endif
    gl_Position = matrix * vec4(position, 1.0);
}
";

const FRAGMENT: &str = "\
#ifdef GL_FRAGMENT_PRECISION_HIGH
precision highp float;
#else
precision mediump float;
#endif
uniform vec3 colour;
varying vec3 towards;
varying vec3 place;
varying vec2 at;
#ifdef TEXTURED
uniform sampler2D picture;
#endif
#ifdef AT_VERTICES
varying float light;
#endif
void main() {
    vec3 base = colour;
#ifdef TEXTURED
    base *= texture2D(picture, at).rgb;
#endif
#ifdef LOOPS
    float vein = 0.0;
    vec3 p = place * 3.0;
    for (int i = 0; i < LOOPS; i++) {
        vein += abs(sin(p.x + 2.0 * sin(p.y + sin(p.z))));
        p = p.yzx * 1.3 + 0.7;
    }
    base *= 0.35 + 0.9 * vein / float(LOOPS);
#endif
#ifdef AT_VERTICES
    gl_FragColor = vec4(base * light, 1.0);
#else
    vec3 n = normalize(towards);
    vec3 l = vec3(0.48, 0.60, 0.64);
    float diffuse = max(dot(n, l), 0.0);
    float shine = pow(max(dot(n, normalize(l + vec3(0.0, 0.0, 1.0))), 0.0), 48.0);
    float rim = pow(1.0 - max(n.z, 0.0), 3.0);
    gl_FragColor = vec4(base * (0.18 + 0.82 * diffuse) + 0.6 * shine + 0.15 * rim * base, 1.0);
#endif
}
";
