//! Evaluating a position slice takes no memory once its scratch has grown to fit.

use takt_predict::glsl::{
    AttributeArray, AttributeData, Options, Scratch, Stage, UniformValues, VertexIds, VertexInputs, analyse,
};

fn allocations(body: &str) -> u64 {
    let source =
        format!("#version 300 es\nin vec3 p; uniform mat4 m; uniform int n; void main() {{ {body} }}");
    let shader = analyse(&source, &Options { stage: Stage::Vertex, extensions: &[] });
    let shader = shader.expect("the shader is fine");
    let slice = shader.position.and_then(|position| position.slice.ok()).expect("it has a position");
    let uniforms = UniformValues::new(&shader.interface);
    let data = vec![0.5; 3 * 500];
    let attributes = [AttributeArray { data: AttributeData::Floats(&data), stride: 3, components: 3 }];
    let draw =
        VertexInputs { uniforms: &uniforms, attributes: &attributes, ids: VertexIds::From(0), instance: 0 };
    let (mut scratch, mut positions) = (Scratch::default(), vec![[0.0; 4]; 500]);
    let mut call = || slice.evaluate(&draw, &mut scratch, &mut positions);
    assert_eq!(call(), Ok(()));
    allocation_counter::measure(|| assert_eq!(call(), Ok(()))).count_total
}

#[test]
fn later_calls_do_not_allocate() {
    for body in [
        "gl_Position = m * vec4(p, 1.0);",
        "gl_Position = m * vec4(sin(p), 1.0);",
        "vec3 q = p; for (int i = 0; i < n + 5; i++) { if (q.x > 9.0) break; q += p; } gl_Position = vec4(q, 1.0);",
    ] {
        assert_eq!(allocations(body), 0, "{body}");
    }
}
