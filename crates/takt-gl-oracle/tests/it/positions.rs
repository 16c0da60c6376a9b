//! Positions computed by the slice are those that a driver computes.
//!
//! Every vertex shader of glmark2 and es2gears, and own ones for the rest of the language, run
//! with random attributes and uniforms on the system's driver and in the slice.

use takt_gl_oracle::{Attribute, Driver, Run, Uniform, Value, corpus};
use takt_predict::glsl::{
    AttributeArray, AttributeData, Base, NotEvaluable, Options, PositionSlice, Scalar, Scratch, Shader,
    Stage, UniformData, UniformValues, VertexIds, VertexInputs, analyse,
};
use takt_rng::Rng;

use crate::{driver, shaders};

/// Positions may differ by this much of the largest component.
const TOLERANCE: f32 = 1e-4;
const VERTICES: usize = 150;
const SEEDS: u64 = 24;

/// Between -2 and 2, with all the bits a float has, so that rounding shows.
fn float(rng: &mut Rng) -> f32 {
    let steps =
        [rng.next_u64() >> 52, rng.next_u64() >> 52].map(|bits| f32::from(u16::try_from(bits).unwrap()));
    (steps[0] + steps[1] / 4096.0) / 1024.0 - 2.0
}

fn vertex_shader(text: &str) -> Shader {
    analyse(text, &Options { stage: Stage::Vertex, extensions: &[] }).unwrap()
}

/// Sets all uniforms at random, for the driver and for the slice.
fn uniforms(shader: &Shader, rng: &mut Rng) -> (UniformValues, Vec<Uniform>) {
    let mut values = UniformValues::new(&shader.interface);
    let mut all = Vec::new();
    for uniform in &shader.interface.uniforms {
        let Base::Number { scalar, columns, rows } = uniform.ty.base else { continue };
        let count = usize::try_from(uniform.words).unwrap();
        let value = if scalar == Scalar::Float {
            let data: Vec<f32> = (0..count).map(|_| float(rng)).collect();
            values.set(uniform, 0, UniformData::Floats(&data));
            Value::Floats(data)
        } else {
            let data: Vec<i32> = (0..count).map(|_| i32::try_from(rng.below(7)).unwrap()).collect();
            values.set(uniform, 0, UniformData::Ints(&data));
            Value::Ints(data)
        };
        all.push(Uniform { name: uniform.name.clone(), shape: (columns, rows), value });
    }
    (values, all)
}

fn attributes(slice: &PositionSlice, rng: &mut Rng) -> Vec<Attribute> {
    let attributes = slice.attributes().iter().map(|attribute| Attribute {
        name: attribute.name.clone(),
        column: attribute.column,
        components: u8::try_from(attribute.components).unwrap(),
        data: (0..VERTICES * attribute.components as usize).map(|_| float(rng)).collect(),
    });
    attributes.collect()
}

/// Compares one shader for one seed; the largest relative difference.
fn compare(driver: &Driver, name: &str, text: &str, seed: u64, tolerance: f32) -> f32 {
    let rng = &mut Rng::new(seed, 0);
    let shader = vertex_shader(text);
    let slice = shader.position.as_ref().unwrap().slice.as_ref().unwrap();
    let (values, uniforms) = uniforms(&shader, rng);
    let attributes = attributes(slice, rng);
    let arrays: Vec<AttributeArray<'_>> = attributes
        .iter()
        .map(|attribute| AttributeArray {
            data: AttributeData::Floats(&attribute.data),
            stride: usize::from(attribute.components),
            components: usize::from(attribute.components),
        })
        .collect();
    let draw = VertexInputs { uniforms: &values, attributes: &arrays, ids: VertexIds::From(0), instance: 0 };
    let mut ours = vec![[0.0; 4]; VERTICES];
    slice.evaluate(&draw, &mut Scratch::default(), &mut ours).unwrap();
    drop(arrays);
    let run = Run { shader: text.to_owned(), attributes, uniforms, vertices: VERTICES };
    let theirs = driver.positions(&run).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut worst = 0.0_f32;
    for (vertex, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        let scale = theirs.iter().fold(1e-3_f32, |scale, value| scale.max(value.abs()));
        for (a, b) in ours.iter().zip(theirs) {
            let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            let difference = if same { 0.0 } else { (a - b).abs() / scale };
            assert!(
                difference <= tolerance,
                "{name}, seed {seed}, vertex {vertex}: slice {ours:?}, driver {theirs:?}"
            );
            worst = worst.max(difference);
        }
    }
    worst
}

#[test]
fn slices_of_real_shaders_agree_with_the_driver() {
    let Some(driver) = driver() else { return };
    let sources = corpus::glmark2().into_iter().chain(corpus::es2gears());
    let mut compared = 0;
    for source in sources.filter(|source| source.vertex) {
        let shader = vertex_shader(&source.text);
        if shader.position.as_ref().unwrap().slice.as_ref().err() == Some(&NotEvaluable::Texture) {
            assert_eq!(source.name, "terrain.vert", "only this one reads a texture for its position");
            continue;
        }
        let worst = (0..SEEDS).map(|seed| compare(&driver, &source.name, &source.text, seed, TOLERANCE));
        let worst = worst.fold(0.0, f32::max);
        println!("{:32} {worst:.1e}", source.name);
        compared += 1;
    }
    println!("{compared} shaders, {SEEDS} seeds, {VERTICES} vertices each");
    if corpus::glmark2().is_empty() {
        eprintln!("SKIPPED: glmark2-data is not installed (make setup installs it)");
    } else {
        assert!(compared >= 30, "only {compared} shaders compared");
    }
}

#[test]
fn slices_of_own_shaders_agree_with_the_driver() {
    let Some(driver) = driver() else { return };
    for (name, text) in shaders::ALL {
        let worst = (0..SEEDS).map(|seed| compare(&driver, name, text, seed, TOLERANCE)).fold(0.0, f32::max);
        println!("{name:32} {worst:.1e}");
    }
    let (text, tolerance) = shaders::ARC_SINES;
    let worst =
        (0..SEEDS).map(|seed| compare(&driver, "arc sines", text, seed, tolerance)).fold(0.0, f32::max);
    println!("{:32} {worst:.1e}", "arc sines");
}
