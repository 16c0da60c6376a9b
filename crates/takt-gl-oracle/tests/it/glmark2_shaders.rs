//! Every shader of glmark2 and es2gears is analysed.

use takt_gl_oracle::corpus;
use takt_predict::glsl::{Options, Stage, analyse};

#[test]
fn all_are_analysed() {
    let mut sources = corpus::glmark2();
    if sources.is_empty() {
        eprintln!("SKIPPED: glmark2-data is not installed (make setup installs it)");
    } else {
        assert!(sources.len() >= 71, "only {} shaders found", sources.len());
    }
    sources.extend(corpus::es2gears());
    let mut failures = Vec::new();
    for source in &sources {
        let stage = if source.vertex { Stage::Vertex } else { Stage::Fragment };
        match analyse(&source.text, &Options { stage, extensions: &[] }) {
            Ok(shader) => {
                println!("{:40} {}", source.name, shader.counts);
                if let Some(position) = shader.position {
                    let shape = position.slice.as_ref().map(|slice| (slice.shape(), slice.steps()));
                    println!("{:40}   position {} {shape:?}", "", position.counts);
                }
            }
            Err(error) => failures.push(format!("{}: {error}", source.name)),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
