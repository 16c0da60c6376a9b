//! What learning from measured times gains, on frames of real models and a GPU that is made up.
//!
//! Writes the tables of `docs/experiments/adaption.md` when `UPDATE_EXPECT` is set, and compares
//! them otherwise.

use std::fmt::Write as _;

use takt_predict::fragments::Method;

use crate::play::{App, FRAMES, Learning, Outcome, TURNS, Told, play};
use crate::{document, models};

const METHODS: [(&str, Method); 2] = [("bb", Method::BoundingBox), ("ts", Method::Samples)];
const LEARNING: [Learning; 3] = [Learning::Nothing, Learning::Program, Learning::Scene];

#[test]
fn learning_gains_what_the_document_says() {
    let Some(folder) = models::folder() else {
        #[expect(clippy::print_stderr, reason = "a test that checks nothing should say so")]
        {
            eprintln!("SKIPPED: glmark2-data is not installed (make setup installs it)");
        }
        return;
    };
    let apps = App::all(&folder);
    let mixed = apps.last().unwrap();
    let tables = [gain_table(&apps), settling_table(&apps), disturbance_table(mixed)];
    document::compare("adaption.md", &tables.join("\n"));
}

/// Mean of the absolute errors in percent of the measured times.
fn error<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> f64 {
    let errors: Vec<f64> =
        outcomes.into_iter().map(|one| (one.predicted / one.measured - 1.0).abs() * 100.0).collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

fn share(outcomes: &[&Outcome], is: impl Fn(&Outcome) -> bool) -> f64 {
    outcomes.iter().filter(|one| is(one)).count() as f64 / outcomes.len() as f64 * 100.0
}

fn gain_table(apps: &[App]) -> String {
    let mut text =
        "| app | estimator | not learning | factor per program | and per scene | took longer than \
        predicted | than the upper estimate |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for app in apps {
        for (name, method) in METHODS {
            let settled = LEARNING.map(|learning| {
                let outcomes = play(app, method, learning, Told::Undisturbed).outcomes;
                outcomes.into_iter().filter(|one| one.turn > 0).collect::<Vec<_>>()
            });
            let [none, program, scene] = settled.each_ref().map(error);
            assert!(scene < none, "learning has to gain something: {} {name} {scene} {none}", app.name);
            let last: Vec<&Outcome> = settled[2].iter().collect();
            let under = share(&last, |one| one.measured > one.predicted);
            let above = share(&last, |one| one.measured > one.upper);
            let row = format!(
                "| {} | {name} | {none:.1} % | {program:.1} % | {scene:.1} % | {under:.0} % | {above:.1} % |",
                app.name
            );
            writeln!(text, "{row}").unwrap();
        }
    }
    text
}

fn settling_table(apps: &[App]) -> String {
    let mut text = "| app | frames 1 to 5 | 6 to 15 | 16 to 40 | 41 to 100 | later |\n\
        | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for app in apps {
        let outcomes = play(app, Method::BoundingBox, Learning::Scene, Told::Undisturbed).outcomes;
        let frame = |one: &&Outcome| one.turn * FRAMES + one.frame;
        let of = |from: u32, to: u32| error(outcomes.iter().filter(|one| (from..to).contains(&frame(one))));
        let [a, b, c, d, e] = [(0, 5), (5, 15), (15, 40), (40, 100), (100, u32::MAX)].map(|(a, b)| of(a, b));
        writeln!(text, "| {} | {a:.1} % | {b:.1} % | {c:.1} % | {d:.1} % | {e:.1} % |", app.name).unwrap();
    }
    text
}

/// One group of seven runs right after another app, and one of 101 while clocks change.
fn disturbance_table(app: &App) -> String {
    let mut text =
        "| what the predictor is told | of undisturbed groups | after a switch | switch learnt |\n\
        | --- | ---: | ---: | ---: |\n"
            .to_owned();
    for (name, told) in [("nothing", Told::Nothing), ("which groups were disturbed", Told::Disturbances)] {
        let played = play(app, Method::Samples, Learning::Scene, told);
        let settled = || played.outcomes.iter().filter(|one| one.turn > 0);
        let own = error(settled().filter(|one| !one.switched && !one.odd));
        let switched = error(settled().filter(|one| one.switched));
        let learnt = played.switch_ns / 1000.0;
        writeln!(text, "| {name} | {own:.1} % | {switched:.1} % | {learnt:.0} µs |").unwrap();
    }
    assert_eq!(TURNS, 4, "the document says so");
    text
}
