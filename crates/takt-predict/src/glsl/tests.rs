//! Tests of the whole front end: source in, text out.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

fn options(stage: Stage) -> Options<'static> {
    Options { stage, extensions: &["GL_OES_standard_derivatives"] }
}

/// Interface, counts and slice as text.
fn describe(stage: Stage, source: &str) -> String {
    let shader = match analyse(source, &options(stage)) {
        Ok(shader) => shader,
        Err(error) => return format!("{error}\n"),
    };
    let mut text = String::new();
    let interface = &shader.interface;
    for (what, variables) in [("in", &interface.inputs), ("out", &interface.outputs)] {
        for variable in variables {
            let idle = if variable.active { "" } else { " (idle)" };
            writeln!(text, "{what} {} {}{idle}", variable.ty, variable.name).unwrap();
        }
    }
    for uniform in &interface.uniforms {
        let idle = if uniform.active { "" } else { " (idle)" };
        writeln!(text, "uniform {} {} @{}{idle}", uniform.ty, uniform.name, uniform.first).unwrap();
    }
    for sampler in &interface.samplers {
        writeln!(text, "sampler {:?} {} x{}", sampler.texture, sampler.name, sampler.length).unwrap();
    }
    let sizes = (shader.input_sizes(), shader.output_sizes());
    writeln!(text, "sizes {:?} -> {:?}", sizes.0.0, sizes.1.0).unwrap();
    writeln!(text, "counts {}", shader.counts).unwrap();
    if let Some(position) = &shader.position {
        writeln!(text, "position {}", position.counts).unwrap();
        match &position.slice {
            Ok(slice) => {
                let needs: Vec<&str> = slice.attributes().iter().map(|a| a.name.as_str()).collect();
                writeln!(text, "slice {:?} of {needs:?}, steps {:?}", slice.shape(), slice.steps()).unwrap();
            }
            Err(reason) => writeln!(text, "slice: {reason}").unwrap(),
        }
    }
    text
}

fn check_vertex(source: &str, expected: &Expect) {
    expected.assert_eq(&describe(Stage::Vertex, source));
}

fn check_fragment(source: &str, expected: &Expect) {
    expected.assert_eq(&describe(Stage::Fragment, source));
}

/// Positions of vertices with one attribute each.
fn positions(
    source: &str,
    uniforms: &[(&str, &[f32])],
    data: &[f32],
) -> Result<Vec<[f32; 4]>, EvaluateError> {
    let shader = analyse(source, &options(Stage::Vertex)).unwrap();
    let slice = shader.position.unwrap().slice.unwrap();
    let mut values = UniformValues::new(&shader.interface);
    for (name, data) in uniforms {
        let uniform = shader.interface.uniforms.iter().find(|uniform| uniform.name == *name).unwrap();
        assert_eq!(values.set(uniform, 0, UniformData::Floats(data)).words, data.len());
    }
    let components = slice.attributes()[0].components as usize;
    let array = AttributeArray { data: AttributeData::Floats(data), stride: components, components };
    let mut positions = vec![[0.0; 4]; data.len() / components];
    let draw = VertexInputs { uniforms: &values, attributes: &[array], ids: VertexIds::From(0), instance: 0 };
    slice.evaluate(&draw, &mut Scratch::default(), &mut positions)?;
    Ok(positions)
}

#[test]
fn a_matrix_product_is_affine_and_the_rest_is_not_in_the_slice() {
    check_vertex(
        "attribute vec3 position; attribute vec3 normal; attribute vec2 unused;
         uniform mat4 mvp; uniform mat3 turn; uniform vec3 light;
         varying float shade; varying vec2 never;
         void main() {
             shade = max(dot(normalize(turn * normal), light), 0.0);
             gl_Position = mvp * vec4(position, 1.0);
         }",
        &expect![[r#"
            in vec3 position
            in vec3 normal
            in vec2 unused (idle)
            out float shade
            out vec2 never (idle)
            uniform mat4 mvp @0
            uniform mat3 turn @16
            uniform vec3 light @25
            sizes [0, 0, 2, 0] -> [1, 0, 0, 0]
            counts Alu 17/7, Mad 18/6, Special 1/1
            position Alu 8/2, Mad 8/2
            slice Affine { attribute: 0 } of ["position"], steps (17, 0)
        "#]],
    );
}

#[test]
fn several_matrices_are_affine_too() {
    check_vertex(
        "#version 300 es
         in vec4 position; uniform mat4 p, v, m; uniform bool mirror;
         void main() {
             vec4 world = m * position;
             if (mirror) world.x = -world.x;
             gl_Position = p * (v * (world / 2.0));
         }",
        &expect![[r#"
            in vec4 position
            uniform mat4 p @0
            uniform mat4 v @16
            uniform mat4 m @32
            uniform bool mirror @48
            sizes [0, 0, 0, 1] -> [0, 0, 0, 0]
            counts Alu 16/4, Mad 36/9, Select 1/1, Branch 1/1
            position Alu 16/4, Mad 36/9, Select 1/1, Branch 1/1
            slice Affine { attribute: 0 } of ["position"], steps (334, 0)
        "#]],
    );
}

#[test]
fn what_bends_is_general() {
    check_vertex(
        "attribute vec3 position; uniform mat4 mvp; uniform float time;
         void main() {
             vec3 p = position;
             p.y += sin(p.x + time) * cos(time);
             gl_Position = mvp * vec4(p, 1.0);
         }",
        &expect![[r#"
            in vec3 position
            uniform mat4 mvp @0
            uniform float time @16
            sizes [0, 0, 1, 0] -> [0, 0, 0, 0]
            counts Alu 9/3, Mad 9/3, Special 2/2
            position Alu 9/3, Mad 9/3, Special 2/2
            slice General of ["position"], steps (18, 31)
        "#]],
    );
}

#[test]
fn a_texture_makes_it_not_evaluable() {
    check_vertex(
        "attribute vec3 position; uniform sampler2D heights; uniform mat4 mvp;
         void main() {
             float h = texture2D(heights, position.xz).x;
             gl_Position = mvp * vec4(position + vec3(0.0, h, 0.0), 1.0);
         }",
        &expect![[r#"
            in vec3 position
            uniform mat4 mvp @1
            sampler D2 heights x1
            sizes [0, 0, 1, 0] -> [0, 0, 0, 0]
            counts Alu 9/3, Mad 8/2, Texture 1/1
            position Alu 9/3, Mad 8/2, Texture 1/1
            slice: the position depends on a texture
        "#]],
    );
}

#[test]
fn structures_blocks_and_arrays_are_taken_apart() {
    check_vertex(
        "#version 300 es
         struct Light { vec3 at; float power; };
         layout(std140) uniform Camera { mat4 view; vec4 eye[2]; } camera;
         uniform Light lights[2];
         uniform highp sampler2DArray layers[3];
         layout(location = 4) in mat2 frame;
         flat out ivec3 cell;
         out vec2 bent[2];
         void main() {
             cell = ivec3(frame[0], lights[1].power);
             bent[0] = frame[1];
             bent[1] = camera.eye[1].xy;
             gl_Position = camera.view[2];
         }",
        &expect![[r#"
            in mat2 frame
            out ivec3 cell
            out vec2[2] bent
            uniform mat4 Camera.view @0
            uniform vec4[2] Camera.eye @16
            uniform vec3 lights[0].at @24 (idle)
            uniform float lights[0].power @27 (idle)
            uniform vec3 lights[1].at @28 (idle)
            uniform float lights[1].power @31
            sampler D2Array layers x3
            sizes [0, 2, 0, 0] -> [0, 2, 1, 0]
            counts Convert 3/2
            position nothing
            slice Constant of [], steps (4, 0)
        "#]],
    );
}

#[test]
fn constants_fold_and_short_loops_unroll() {
    check_fragment(
        "precision mediump float;
         #define TAPS 4
         uniform sampler2D image; varying vec2 at;
         const float step = 1.0 / float(TAPS);
         float weight(int i) { return i == 0 ? 0.0 : step * float(i); }
         void main() {
             vec4 sum = vec4(0.0);
             for (int i = 0; i < TAPS; i++) sum += weight(i) * texture2D(image, at + vec2(float(i) * step, 0.0));
             gl_FragColor = sum;
         }",
        &expect![[r#"
            in vec2 at
            sampler D2 image x1
            sizes [0, 1, 0, 0] -> [0, 0, 0, 0]
            counts Alu 7/4, Mad 8/2, Texture 3/3
        "#]],
    );
}

#[test]
fn a_loop_over_data_is_an_assumption() {
    check_fragment(
        "#version 300 es
         precision highp float;
         uniform int n; in float x; out float y;
         void main() { y = x; for (int i = 0; i < n; i++) y = y * y + x; }",
        &expect![[r#"
            in float x
            out float y
            uniform int n @0
            sizes [1, 0, 0, 0] -> [1, 0, 0, 0]
            counts Alu 2048/2048, Mad 1024/1024, Compare 1024/1024, Branch 1024/1024 (assumed iterations)
        "#]],
    );
}

#[test]
fn a_loop_left_early_is_an_upper_bound() {
    check_fragment(
        "precision highp float;
         varying float x;
         void main() {
             float y = x;
             for (int i = 0; i < 8; i++) { if (y > 4.0) break; y = y * y + x; }
             if (y > 2.0) discard;
             gl_FragColor = vec4(y);
         }",
        &expect![[r#"
            in float x
            sizes [1, 0, 0, 0] -> [0, 0, 0, 0]
            counts Alu 27/20, Mad 8/8, Compare 9/9, Select 14/8, Branch 9/9 (upper bound)
        "#]],
    );
}

#[test]
fn a_long_loop_is_kept_and_counted() {
    check_fragment(
        "precision highp float;
         varying float x;
         void main() {
             float y = x;
             for (int i = 0; i < 5000; i++) y = sin(y);
             gl_FragColor = vec4(y);
         }",
        &expect![[r#"
            in float x
            sizes [1, 0, 0, 0] -> [0, 0, 0, 0]
            counts Alu 10000/10000, Special 5000/5000, Compare 5000/5000, Branch 5000/5000 (upper bound)
        "#]],
    );
}

#[test]
fn the_preprocessor_follows_the_driver() {
    check_fragment(
        "#ifdef GL_ES
         precision mediump float;
         #endif
         #if defined(GL_OES_standard_derivatives) && __VERSION__ == 100
         #extension GL_OES_standard_derivatives : enable
         #define SLOPE(v) \\
             (fwidth(v) + MUL(v, MUL(2.0, v)))
         #elif 1 / 0
         #error not here
         #endif
         #define MUL(a, b) ((a) * (b)) // nested
         #if !(MUL(2, 3) == 6) || defined GL_EXT_other
         #error nor here
         #endif
         varying float x;
         void main() { gl_FragColor = vec4(SLOPE(x)); }",
        &expect![[r#"
            in float x
            sizes [1, 0, 0, 0] -> [0, 0, 0, 0]
            counts Alu 3/3, Mad 1/1
        "#]],
    );
}

#[test]
fn errors_name_line_and_reason() {
    let mut text = String::new();
    for source in [
        "void main() { gl_Position = vec4(1.0) }",
        "void main() {\n\n gl_Position = pos; }",
        "void main() { vec4 a = vec3(1.0); }",
        "float f(float x) { return f(x); }\nvoid main() { gl_Position = vec4(f(1.0)); }",
        "void f();\nvoid g() { f(); }\nvoid f() { g(); }\nvoid main() { f(); }",
        "#error stop here\nvoid main() {}",
        "#version 450\nvoid main() {}",
        "uniform float x;",
        "#if 1\nvoid main() {}",
        "struct S { };\nvoid main() {}",
        "attribute vec4 a[99999];\nvoid main() {}",
        "void main() { gl_Position.xq = vec2(1.0); }",
        "void main() { continue; }",
    ] {
        text += &describe(Stage::Vertex, source);
    }
    expect![[r#"
        line 1: syntax: `;` expected, found `}`
        line 3: unknown name `pos`
        line 1: type: vec4 initialised with vec3
        line 1: recursion through `f`
        line 3: recursion through `f`
        line 1: #error stop here
        line 1: version 450 is not supported
        line 0: no function main
        line 2: syntax: #if without #endif
        line 1: syntax: structure without members
        line 1: limit reached: VARIABLE_SCALARS_MAX
        sizes [0, 0, 0, 0] -> [0, 0, 0, 0]
        counts nothing
        position Alu 1/1
        slice: the position depends on a value that is not known
        line 1: syntax: break or continue outside of a loop
    "#]]
    .assert_eq(&text);
}

#[test]
fn kept_loops_run_until_the_last_vertex_is_done() {
    let source = "#version 300 es
        in vec2 a;
        void main() {
            float x = a.x;
            int n = 0;
            while (x < a.y) { x *= 2.0; n++; if (n == 40) return; }
            gl_Position = vec4(x, float(n), 0.0, 1.0);
        }";
    // Where main returns early, the position is unknown.
    let shader = analyse(source, &options(Stage::Vertex)).unwrap();
    assert_eq!(shader.position.unwrap().slice.err(), Some(NotEvaluable::Unknown));
    let source = source.replace("if (n == 40) return;", "if (n == 4) break;");
    let found = positions(&source, &[], &[1.0, 5.0, 3.0, 3.0, 1.0, 1000.0]).unwrap();
    assert_eq!(found, [[8.0, 3.0, 0.0, 1.0], [3.0, 0.0, 0.0, 1.0], [16.0, 4.0, 0.0, 1.0]]);
}

#[test]
fn a_loop_that_never_ends_is_an_error_value() {
    let source = "#version 300 es
        in float a; uniform float b;
        void main() { float x = a; while (x > b) x += 1.0; gl_Position = vec4(x); }";
    assert_eq!(positions(source, &[("b", &[5.0])], &[1.0, 2.0]).unwrap(), [[1.0; 4], [2.0; 4]]);
    assert_eq!(positions(source, &[("b", &[1.5])], &[1.0, 2.0]), Err(EvaluateError::TooLong));
}

#[test]
fn wrong_inputs_are_error_values() {
    let source = "attribute vec3 a; uniform mat4 m; void main() { gl_Position = m * vec4(a, 1.0); }";
    let shader = analyse(source, &options(Stage::Vertex)).unwrap();
    let slice = shader.position.unwrap().slice.unwrap();
    let values = UniformValues::new(&shader.interface);
    let evaluate = |uniforms: &UniformValues, attributes: &[AttributeArray<'_>]| {
        let draw = VertexInputs { uniforms, attributes, ids: VertexIds::From(0), instance: 0 };
        slice.evaluate(&draw, &mut Scratch::default(), &mut [[0.0; 4]; 3])
    };
    let array = |data| AttributeArray { data: AttributeData::Floats(data), stride: 3, components: 3 };
    assert_eq!(evaluate(&values, &[]), Err(EvaluateError::Attributes));
    assert_eq!(evaluate(&values, &[array(&[0.0; 8])]), Err(EvaluateError::ShortArray(0)));
    assert_eq!(evaluate(&UniformValues::default(), &[array(&[0.0; 9])]), Err(EvaluateError::Uniforms));
    assert_eq!(evaluate(&values, &[array(&[0.0; 9])]), Ok(()));
}

#[test]
fn arrays_may_be_interleaved_short_or_constant() {
    let source = "attribute vec4 a; attribute vec2 b; void main() { gl_Position = a * a + b.xyxy; }";
    let shader = analyse(source, &options(Stage::Vertex)).unwrap();
    let slice = shader.position.unwrap().slice.unwrap();
    let data = [1.0, 2.0, 9.0, 3.0, 4.0, 9.0];
    let arrays = [
        AttributeArray { data: AttributeData::Floats(&data), stride: 3, components: 2 },
        AttributeArray { data: AttributeData::Floats(&[10.0, 20.0]), stride: 0, components: 2 },
    ];
    let uniforms = UniformValues::default();
    let draw =
        VertexInputs { uniforms: &uniforms, attributes: &arrays, ids: VertexIds::From(0), instance: 0 };
    let mut positions = [[0.0; 4]; 2];
    slice.evaluate(&draw, &mut Scratch::default(), &mut positions).unwrap();
    assert_eq!(positions, [[11.0, 24.0, 10.0, 21.0], [19.0, 36.0, 10.0, 21.0]]);
}
