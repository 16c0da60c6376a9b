//! Whatever the source says, the analysis ends with a value, soon.
//!
//! Time is not measured here: the bounds on steps make it finite, and a test that hangs is seen.
//! Tests run on threads with small stacks, so unbounded recursion would be seen as well.

use proptest::prelude::*;
use takt_predict::glsl::{
    AttributeArray, AttributeData, ErrorKind, GlslError, Options, Scratch, Shader, Stage, UniformValues,
    VertexIds, VertexInputs, analyse, effort, limits, with_base,
};

fn vertex(source: &str) -> Result<Shader, GlslError> {
    analyse(source, &Options { stage: Stage::Vertex, extensions: &[] })
}

/// Analyses for both stages and evaluates what can be; only the end matters.
fn survive(source: &str) {
    drop(analyse(source, &Options { stage: Stage::Fragment, extensions: &[] }));
    let compute = format!("#version 310 es\n{source}\n");
    drop((effort(&compute, &[]), with_base(&compute)));
    let Ok(shader) = vertex(source) else { return };
    let Some(Ok(slice)) = shader.position.map(|position| position.slice) else { return };
    let uniforms = UniformValues::new(&shader.interface);
    let data = [0.5; 4];
    let array = AttributeArray { data: AttributeData::Floats(&data), stride: 0, components: 4 };
    let attributes = vec![array; slice.attributes().len()];
    let draw =
        VertexInputs { uniforms: &uniforms, attributes: &attributes, ids: VertexIds::From(0), instance: 0 };
    let outcome = slice.evaluate(&draw, &mut Scratch::default(), &mut [[0.0; 4]; 3]);
    assert!(outcome.is_ok() || outcome.is_err());
}

fn limit_of(source: &str) -> &'static str {
    match vertex(source).map_err(|error| error.kind) {
        Err(ErrorKind::Limit(name)) => name,
        Err(other) => panic!("{other}"),
        Ok(_) => "none",
    }
}

fn in_main(body: &str) -> String {
    format!("attribute vec4 a; uniform int n; void main() {{ {body} gl_Position = a; }}")
}

#[test]
fn nesting_is_bounded() {
    let deep = 20_000;
    for (open, middle, close) in [
        ("(", "1.0", ")"),
        ("-", "1.0", ""),
        ("!", "true", ""),
        ("a[", "0", "]"),
        ("sin(", "1.0", ")"),
        ("true ? 1.0 : ", "1.0", ""),
        ("x = ", "1.0", ""),
    ] {
        let source = in_main(&format!("x = {}{middle}{};", open.repeat(deep), close.repeat(deep)));
        assert_eq!(limit_of(&source), "NESTING_MAX", "{open}");
    }
    for (open, close) in [("{", "}"), ("if (true) ", ";"), ("for (;;) ", ";"), ("if (true) ; else ", ";")] {
        let source = in_main(&format!("{}{}", open.repeat(deep), close.repeat(deep)));
        assert_eq!(limit_of(&source), "NESTING_MAX", "{open}");
    }
    assert_eq!(limit_of(&in_main(&format!("a{};", ".x".repeat(deep)))), "NESTING_MAX");
    assert_eq!(limit_of(&"#if 1\n".repeat(deep)), "CONDITION_DEPTH_MAX");
    assert_eq!(limit_of(&format!("#if {}1\n#endif\n", "(".repeat(deep))), "CONDITION_DEPTH_MAX");
    assert_eq!(limit_of(&format!("#if {}1\n#endif\n", "!".repeat(deep))), "CONDITION_DEPTH_MAX");
}

#[test]
fn compute_shaders_are_bounded_as_well() {
    let deep = 20_000;
    for (open, close) in
        [("{", "}"), ("(", ")"), ("f(", ")"), ("a[", "]"), ("for (;;) ", ";"), ("if (f(", ")) ;")]
    {
        survive(&format!("void main() {{ {}{} }}", open.repeat(deep), close.repeat(deep)));
    }
    let chain: String = (1..deep).map(|n| format!("void f{n}() {{ f{}(); f{}(); }}", n - 1, n - 1)).collect();
    survive(&format!("void f0() {{}} {chain} void main() {{ f{}(); }}", deep - 1));
}

/// Apps call from threads of their own, and some of these have small stacks.
#[test]
fn the_deepest_sources_fit_a_small_stack() {
    const STACK_BYTES: usize = 512 << 10;
    let check = || {
        for depth in [20, 40, 47, 60, 90, 95] {
            survive(&in_main(&format!("gl_Position = {}a{}; return;", "(".repeat(depth), ")".repeat(depth))));
            survive(&in_main(&format!(
                "gl_Position = {}a{}; return;",
                "sin(".repeat(depth),
                ")".repeat(depth)
            )));
            survive(&in_main(&format!("{}gl_Position = a;{}", "{".repeat(depth), "}".repeat(depth))));
            survive(&in_main(&format!("{}gl_Position += a;", "if (a.x > 0.5) ".repeat(depth))));
            let mut calls = String::from("attribute vec4 a; vec4 f0(vec4 x) { return sin(x); }\n");
            for level in 1..depth {
                let call = format!("f{}(x + 1.0)", level - 1);
                calls += &format!(
                    "vec4 f{level}(vec4 x) {{ if (x.y > 0.0) {{ return (({call})); }} return x; }}\n"
                );
            }
            survive(&format!("{calls} void main() {{ gl_Position = f{}(a); }}", depth - 1));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(check);
    assert!(thread.is_ok_and(|thread| thread.join().is_ok()));
}

#[test]
fn long_flat_sources_are_fine() {
    let sum = format!("float x = 0.0{};", " + 1.0".repeat(20_000));
    assert_eq!(limit_of(&in_main(&sum)), "none");
    assert_eq!(limit_of(&in_main(&format!("float x = (1.0{});", ", 1.0".repeat(20_000)))), "none");
    assert_eq!(limit_of(&in_main(&"{}".repeat(20_000))), "none");
}

#[test]
fn large_sources_are_refused() {
    assert_eq!(limit_of(&" ".repeat(limits::SOURCE_BYTES_MAX + 1)), "SOURCE_BYTES_MAX");
    assert_eq!(limit_of(&"; ".repeat(limits::TOKENS_MAX + 1)), "TOKENS_MAX");
    assert_eq!(limit_of(&"x".repeat(1_000_000)), "NAME_BYTES_MAX");
    survive(&format!("void main() {{ gl_Position = vec4({}1.0); }}", "1.0,".repeat(90_000)));
    survive(&format!("#define F({}\nF(1)", "x,".repeat(90_000)));
    survive(&format!("#error {}", "x ".repeat(90_000)));
}

#[test]
fn macros_cannot_explode() {
    let mut laughs = String::from("#define A0 x x x x x x x x x x\n");
    for level in 1..30 {
        let previous = format!("A{} ", level - 1).repeat(10);
        laughs += &format!("#define A{level} {previous}\n");
    }
    assert!(["EXPANSION_MAX", "MACRO_DEPTH_MAX"].contains(&limit_of(&format!("{laughs}A29"))));
    assert_eq!(limit_of(&format!("{laughs}A7")), "EXPANSION_MAX");
    let nested = format!("#define F(x) x\nfloat y = {}1.0{};", "F(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(limit_of(&nested), "MACRO_DEPTH_MAX");
    survive("#define F F F\n#define G(x) G(x)\nF G(1) G(G(2))");
    survive("#define F(x\nF(");
}

#[test]
fn recursion_is_an_error() {
    for source in [
        "float f(float x) { return f(x); } void main() { gl_Position = vec4(f(1.0)); }",
        "float g(float x); float f(float x) { return g(x); } float g(float x) { return f(x); }
         void main() { gl_Position = vec4(f(1.0)); }",
        "void main() { main(); }",
    ] {
        assert!(matches!(vertex(source).map_err(|error| error.kind), Err(ErrorKind::Recursion(_))));
    }
}

#[test]
fn calls_that_double_are_bounded() {
    let mut source = String::from("attribute vec4 a; vec4 f0(vec4 x) { return sin(x) + x * x; }\n");
    for level in 1..60 {
        let inner = level - 1;
        source += &format!("vec4 f{level}(vec4 x) {{ return f{inner}(x + 1.0) + f{inner}(x * 2.0); }}\n");
    }
    let ends = |level: u32| limit_of(&format!("{source} void main() {{ gl_Position = f{level}(a); }}"));
    assert_eq!(ends(3), "none");
    assert!(["STEPS_MAX", "INSTRUCTIONS_MAX", "LOWERING_DEPTH_MAX"].contains(&ends(59)));
    assert!(["STEPS_MAX", "INSTRUCTIONS_MAX"].contains(&ends(20)));
}

#[test]
fn loops_are_bounded_and_flagged() {
    for body in [
        "float x = 0.0; for (int i = 0; i < 2000000000; i++) x += a.x; gl_Position = vec4(x); return;",
        "for (;;) { }",
        "while (true) { gl_Position += a; } return;",
        "int i = 0; do { i--; } while (i < 1);",
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) gl_Position += a;",
        "float x = a.x; for (int i = 0; i < 999; i++) for (int j = 0; j < 999; j++) for (int k = 0; k < 999; k++)
         x = sin(x); gl_Position = vec4(x); return;",
        "float x = a.x; for (int i = 0; i < 500; i++) { float y[500]; y[int(x)] = x; x += y[i] + y[int(a.y)]; }
         gl_Position = vec4(x); return;",
    ] {
        survive(&in_main(body));
    }
    for depth in [4, 30] {
        let nested = "for (int i = 0; i < n; i++) ".repeat(depth);
        survive(&in_main(&format!("float x = a.x; {nested} x += a.y; gl_Position = vec4(x); return;")));
    }
    let many = "for (int i = 0; i < n; i++) x += a.y;".repeat(2_000);
    survive(&in_main(&format!("float x = a.x; {many} gl_Position = vec4(x); return;")));
}

#[test]
fn large_types_are_bounded() {
    assert_eq!(limit_of("uniform mat4 m[100000]; void main() {}"), "VARIABLE_SCALARS_MAX");
    assert_eq!(limit_of("uniform mat4 m[4294967295u]; void main() {}"), "VARIABLE_SCALARS_MAX");
    let many: String = (0..200).map(|n| format!("uniform mat4 m{n}[1024];\n")).collect();
    assert!(["SCALARS_MAX", "INSTRUCTIONS_MAX"].contains(&limit_of(&format!("{many} void main() {{}}"))));
    let mut structs = String::from("struct S0 { float x; };\n");
    for level in 1..100 {
        structs += &format!("struct S{level} {{ S{} s; }};\n", level - 1);
    }
    let last = "uniform S99 s; void main() {}";
    assert_eq!(limit_of(&format!("{structs} {last}")), "STRUCT_DEPTH_MAX");
    let wide = "struct S { float x; float y; }; uniform S s[8000]; void main() {}";
    assert_eq!(limit_of(wide), "UNIFORMS_MAX");
    survive("struct S { S s; }; void main() {}");
    survive("uniform float x[]; void main() { gl_Position = vec4(x[0]); }");
    survive("void main() { float x[2]; gl_Position = vec4(x[-1], x[2], x[2147483647], x.length()); }");
}

/// Small own shaders to break.
const SEEDS: &[&str] = &[
    "attribute vec3 p; uniform mat4 m; void main() { gl_Position = m * vec4(p, 1.0); }",
    "#version 300 es\nin vec4 a; uniform int n; struct S { mat3 m; float f[3]; }; uniform S s[2];
     float g(inout vec2 v, int k) { v.yx += s[k].m[k].xy;
     for (int i = 0; i < n; i++) { if (v.x > 1.0) break; v *= 1.5; } return v.y; }
     void main() { vec2 v = a.xy; switch (n) { case 1: v += 1.0; break; default: v.x = g(v, n % 2); }
     gl_Position = vec4(v, s[1].f[n], float(uint(n) >> 1u)); }",
    "#define F(x, y) ((x) + y)\n#if defined(GL_ES) && F(1, 2) == 3\nattribute vec2 q;\n#else\n#error\n#endif
     void main() { vec4 r = vec4(0); gl_Position = vec4(F(q, 1.0), mix(q.x, q.y, 0.5) > 0.0 ? q.yx : -q); }",
];

const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ".",
    "=",
    "+",
    "*",
    "<",
    "?",
    ":",
    "#",
    "\n",
    "for",
    "if",
    "else",
    "while",
    "vec4",
    "mat4",
    "int",
    "float",
    "x",
    "main",
    "void",
    "uniform",
    "attribute",
    "struct",
    "return",
    "break",
    "1",
    "2.5",
    "0x",
    "1e",
    "//",
    "/*",
    "*/",
    "#define",
    "#if",
    "#endif",
    "defined",
    "gl_Position",
    "texture2D",
    ".xyzw",
    "[0]",
    "++",
    "sampler2D",
    "inout",
    "const",
    "switch",
    "case",
    "default",
    "\\\n",
    "\u{e6}",
    "4294967295",
    "while(true)",
    "&&",
    "a",
    "n",
    "p",
    "m",
    "v",
    "-",
    "/",
    "%",
    "0",
    "precision",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_pieces(pieces in proptest::collection::vec(0..PIECES.len(), 0..120)) {
        let text: Vec<&str> = pieces.iter().map(|piece| PIECES[*piece]).collect();
        survive(&text.join(" "));
        survive(&in_main(&text.join(" ")));
    }

    #[test]
    fn mutated_shaders(
        seed in 0..SEEDS.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len(), 0..6_usize), 1..6),
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (place, piece, removed) in changes {
            let at = place.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        survive(&text.iter().collect::<String>());
    }
}
