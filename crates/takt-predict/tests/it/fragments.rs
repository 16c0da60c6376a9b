//! Estimated against exactly counted fragments, on glmark2's models over a full rotation.
//!
//! Writes the tables of `docs/experiments/fragments.md` when `UPDATE_EXPECT` is set, and
//! compares them otherwise.

use std::fmt::Write as _;

use takt_predict::fragments::raster::DepthTest;
use takt_predict::fragments::{
    BoundingBox, COVERAGE, FragmentEstimator, RecentRatio, RecentSequence, Scene, TriangleSamples, View,
};

use crate::scenes::{self, Frames};
use crate::{document, models};

/// One frame every ten degrees.
const FRAMES: u32 = 36;
/// How far glmark2 turns a model between two frames at 60 Hz.
const DEGREES_PER_FRAME: f64 = 0.6;
/// Choices of samples that are tried.
const SEEDS: u64 = 20;

#[test]
fn estimates_are_as_good_as_the_document_says() {
    let Some(folder) = models::folder() else {
        #[expect(clippy::print_stderr, reason = "a test that checks nothing should say so")]
        {
            eprintln!("glmark2-data is not installed: nothing to compare with");
        }
        return;
    };
    let results: Vec<Results> = scenes::all(&folder).iter().map(evaluate).collect();
    for results in &results {
        let [_, _, ranges] = [0, 1, 2].map(|n| &results.errors[n]);
        match results.name {
            "speedometer" => assert!(ranges.worst() <= 0.2, "{ranges:?}"),
            "build (horse)" | "shading (cat)" => {
                assert!(ranges.worst() <= 5.0, "{ranges:?}");
                assert!(
                    results.seeds.worst() <= 5.0,
                    "{} {}",
                    results.seeds.lowest(),
                    results.seeds.highest()
                );
            }
            _ => {}
        }
    }
    let tables = [coverage_table(&results), error_table(&results), seed_table(&results)];
    document::compare("fragments.md", &tables.join("\n"));
}

/// What was found out about one scene.
struct Results {
    name: &'static str,
    triangles: u32,
    exact: f64,
    with_depth: f64,
    boxes: f64,
    errors: Vec<Errors>,
    /// Of samples of buffer ranges, over many choices of samples.
    seeds: Errors,
}

/// Errors of an estimator over all draw groups, in percent.
#[derive(Debug)]
struct Errors {
    estimator: &'static str,
    all: Vec<f64>,
    with_depth: Vec<f64>,
}

impl Errors {
    fn mean(errors: &[f64]) -> f64 {
        errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64
    }

    fn lowest(&self) -> f64 {
        self.all.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn highest(&self) -> f64 {
        self.all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    fn worst(&self) -> f64 {
        self.highest().max(-self.lowest())
    }
}

fn evaluate(frames: &Frames) -> Results {
    let mut estimators: [(&str, Box<dyn FragmentEstimator>); 5] = [
        ("bb", Box::new(BoundingBox::default())),
        ("ts, 256 samples", Box::new(TriangleSamples::default())),
        ("ts, buffer range", Box::new(TriangleSamples::default())),
        ("ratio", Box::new(RecentRatio::default())),
        ("sequence", Box::new(RecentSequence::default())),
    ];
    let errors = |name: &'static str| Errors { estimator: name, all: Vec::new(), with_depth: Vec::new() };
    let mut results = Results {
        name: frames.name,
        triangles: 0,
        exact: 0.0,
        with_depth: 0.0,
        boxes: 0.0,
        errors: estimators.iter().map(|(name, _)| errors(name)).collect(),
        seeds: errors("ts, buffer range"),
    };
    let view = View::new(&frames.state);
    let mut seeds: Vec<TriangleSamples> = (0..SEEDS).map(|seed| TriangleSamples::new(8, seed)).collect();
    for frame in 0..FRAMES {
        let degrees = 360.0 / f64::from(FRAMES) * f64::from(frame);
        let before = frames.at(degrees - DEGREES_PER_FRAME);
        let groups = frames.at(degrees);
        let exact = frames.count(&groups, DepthTest::Disabled);
        let with_depth = frames.count(&groups, frames.depth);
        results.triangles = groups.iter().flat_map(|group| group.draws()).map(|draw| draw.primitives()).sum();
        results.exact += exact.iter().sum::<f64>() / f64::from(FRAMES);
        results.with_depth += with_depth.iter().sum::<f64>() / f64::from(FRAMES);
        for (group, exact) in groups.iter().zip(&exact) {
            let scene = Scene { view: &view, position: &group.position };
            for samples in &mut seeds {
                group.draws().for_each(|draw| samples.record(&draw, &scene));
                results.seeds.all.push((samples.take(&scene).unwrap() / exact - 1.0) * 100.0);
            }
        }
        let known = frames.count(&before, frames.depth);
        for (n, (name, estimator)) in estimators.iter_mut().enumerate() {
            for (group, fragments) in before.iter().zip(&known) {
                estimator.measured(group.vertices(), *fragments);
            }
            estimator.frame_measured();
            estimator.frame_begins();
            for (place, group) in groups.iter().enumerate() {
                let scene = Scene { view: &view, position: &group.position };
                for mut draw in group.draws() {
                    if *name == "ts, 256 samples" {
                        draw.key = None;
                    }
                    estimator.record(&draw, &scene);
                }
                let estimate = estimator.take(&scene).unwrap();
                results.errors[n].all.push((estimate / exact[place] - 1.0) * 100.0);
                results.errors[n].with_depth.push((estimate / with_depth[place] - 1.0) * 100.0);
                if *name == "bb" {
                    results.boxes += estimate / COVERAGE / f64::from(FRAMES);
                }
            }
        }
    }
    results
}

fn coverage_table(results: &[Results]) -> String {
    let mut text =
        "| scene | triangles | fragments | with depth test | area of the boxes | ratio | with depth test |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for Results { name, triangles, exact, with_depth, boxes, .. } in results {
        let (all, near) = (exact / boxes * 100.0, with_depth / boxes * 100.0);
        let row = format!(
            "| {name} | {triangles} | {exact:.0} | {with_depth:.0} | {boxes:.0} | {all:.1} % | {near:.1} % |"
        );
        writeln!(text, "{row}").unwrap();
    }
    text
}

fn error_table(results: &[Results]) -> String {
    let mut text = "| scene | estimator | mean error | lowest | highest | mean error with depth test |\n\
        | --- | --- | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for Results { name, errors, .. } in results {
        for error in errors {
            let (mean, near) = (Errors::mean(&error.all), Errors::mean(&error.with_depth));
            let (low, high, estimator) = (error.lowest(), error.highest(), error.estimator);
            let row =
                format!("| {name} | {estimator} | {mean:.2} % | {low:+.2} % | {high:+.2} % | {near:.2} % |");
            writeln!(text, "{row}").unwrap();
        }
    }
    text
}

fn seed_table(results: &[Results]) -> String {
    let mut text = format!("| scene | mean error over {SEEDS} seeds | lowest | highest |\n");
    text += "| --- | ---: | ---: | ---: |\n";
    for Results { name, seeds, .. } in results {
        let (mean, low, high) = (Errors::mean(&seeds.all), seeds.lowest(), seeds.highest());
        writeln!(text, "| {name} | {mean:.2} % | {low:+.2} % | {high:+.2} % |").unwrap();
    }
    text
}
