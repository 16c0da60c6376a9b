//! What the shader front end costs: `cargo run --release --example glsl_cost [shader files]`.
//!
//! Without arguments it takes glmark2's shaders where Debian puts them. A file that is a template
//! or lacks its header is analysed as far as it goes; the time counts all the same.

#![expect(clippy::print_stdout, reason = "a report is what this program is for")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use takt_predict::glsl::{
    AttributeArray, AttributeData, Options, Scratch, Stage, UniformData, UniformValues, VertexIds,
    VertexInputs, analyse,
};

const HEADER: &str = "#define HIGHP_OR_DEFAULT highp\n#define MEDIUMP_OR_DEFAULT mediump\n";

fn main() {
    println!("position slice, ns per vertex, best of 50 calls with 10 000 vertices");
    for (name, source) in [
        ("one matrix product", "gl_Position = m * vec4(position, 1.0);"),
        ("three matrix products", "gl_Position = m * (v * (w * vec4(position, 1.0)));"),
        ("one sine", "gl_Position = m * vec4(position + vec3(0.0, sin(position.x), 0.0), 1.0);"),
        (
            "branch and loop",
            "vec3 p = position; for (int i = 0; i < 4; i++) if (p.x > 0.5) p = p.yzx * 0.9;
                             gl_Position = m * vec4(p, 1.0);",
        ),
    ] {
        println!("  {name:24} {:8.2}", slice_cost(source));
    }
    println!("hostile sources, ms, one call");
    for (name, source) in hostile() {
        let start = Instant::now();
        let outcome = analyse(&source, &Options { stage: Stage::Vertex, extensions: &[] });
        let end = outcome.map_or_else(|error| error.to_string(), |shader| shader.counts.to_string());
        println!("  {name:24} {:8.2}  {end:.60}", start.elapsed().as_secs_f64() * 1e3);
    }
    println!("analysis, µs, best of 50 calls");
    let mut costs: Vec<(f64, String)> = files().iter().filter_map(analysis_cost).collect();
    costs.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (cost, what) in costs.iter().take(12) {
        println!("  {cost:8.1}  {what}");
    }
}

fn slice_cost(body: &str) -> f64 {
    let source = format!(
        "attribute vec3 position; uniform mat4 m; uniform mat4 v; uniform mat4 w; void main() {{ {body} }}"
    );
    let options = Options { stage: Stage::Vertex, extensions: &[] };
    let shader = analyse(&source, &options).expect("the shader is fine");
    let slice = shader.position.and_then(|position| position.slice.ok()).expect("it has a position");
    let mut uniforms = UniformValues::new(&shader.interface);
    let matrix: Vec<f32> = (0..16_u8).map(|n| f32::from(n) * 0.1).collect();
    for uniform in &shader.interface.uniforms {
        uniforms.set(uniform, 0, UniformData::Floats(&matrix));
    }
    let data: Vec<f32> = (0..30_000_u16).map(|n| f32::from(n) * 0.001).collect();
    let attributes = [AttributeArray { data: AttributeData::Floats(&data), stride: 3, components: 3 }];
    let draw =
        VertexInputs { uniforms: &uniforms, attributes: &attributes, ids: VertexIds::From(0), instance: 0 };
    let (mut scratch, mut positions) = (Scratch::default(), vec![[0.0; 4]; 10_000]);
    best(50, || {
        let outcome = slice.evaluate(black_box(&draw), &mut scratch, black_box(&mut positions));
        outcome.expect("the data fits");
    }) * 1e9
        / 10_000.0
}

fn best(times: usize, mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64());
    }
    least
}

fn files() -> Vec<PathBuf> {
    let given: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if !given.is_empty() {
        return given;
    }
    let entries = std::fs::read_dir("/usr/share/glmark2/shaders");
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn analysis_cost(path: &PathBuf) -> Option<(f64, String)> {
    let stage = match path.extension()?.to_str()? {
        "vert" => Stage::Vertex,
        "frag" => Stage::Fragment,
        _ => return None,
    };
    let source = format!("{HEADER}{}", std::fs::read_to_string(path).ok()?);
    let options = Options { stage, extensions: &[] };
    let cost = best(50, || drop(black_box(analyse(black_box(&source), &options))));
    let outcome = analyse(&source, &options).err().map_or_else(String::new, |error| format!(" ({error})"));
    Some((cost * 1e6, format!("{} bytes, {}{outcome}", source.len(), path.display())))
}

fn hostile() -> Vec<(&'static str, String)> {
    let main = |body: &str| {
        format!(
            "attribute vec4 a; uniform int n; void main() {{ float x = a.x; {body} gl_Position = vec4(x); }}"
        )
    };
    let mut doubling = String::from("float f0(float x) { return sin(x) + x * x; }\n");
    for level in 1..30 {
        let inner = level - 1;
        doubling += &format!("float f{level}(float x) {{ return f{inner}(x + 1.0) + f{inner}(x * 2.0); }}\n");
    }
    vec![
        ("calls that double", doubling + &main("x = f29(x);")),
        ("2e9 iterations", main("for (int i = 0; i < 2000000000; i++) x = sin(x);")),
        ("30 nested data loops", main(&("for (int i = 0; i < n; i++) ".repeat(30) + "x += a.y;"))),
        ("4 nested data loops", main(&("for (int i = 0; i < n; i++) ".repeat(4) + "x += a.y;"))),
        ("3 nested 999", main(&("for (int i = 0; i < 999; i++) ".repeat(3) + "x = sin(x);"))),
        ("2000 data loops", main(&"for (int i = 0; i < n; i++) x += a.y;".repeat(2_000))),
        (
            "computed subscripts",
            main("float y[4096]; for (int i = 0; i < 999; i++) { y[int(x)] = x; x += y[int(a.y)]; }"),
        ),
        ("1 MB line", main(&"x+=a.y*x;".repeat(100_000))),
        ("many branches", main(&"if (x > a.y) x += a.z;".repeat(9_000))),
    ]
}
