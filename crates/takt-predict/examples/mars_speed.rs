//! Measures how long it takes to train a spline model and to evaluate one.
//!
//! Usage: `mars_speed [rows] [features] [degree] [terms]`

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use takt_predict::mars::{Options, Samples, Trained, encode, train};
use takt_rng::Rng;

const PASSES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (rows, variables, degree, terms) = (next(50_000)?, next(100)?, next(2)?, next(41)?);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{rows} rows, {variables} features, degree {degree}, up to {terms} terms")?;

    let (features, costs) = costs(rows, variables);
    let samples = Samples::new(variables, &features, &costs)?;
    let options = Options { degree, max_terms: Some(terms), threshold: 0.0, ..Options::default() };
    let start = Instant::now();
    let trained = train(&samples, &options)?;
    writeln!(out, "training: {:.1} s", start.elapsed().as_secs_f64())?;
    report(&mut out, &trained)?;

    let count = rows.min(1000);
    let mut values = vec![0.0; count];
    // The fastest pass is the one that nothing else disturbed.
    let mut fastest = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        trained.model.predict_rows(black_box(&features[..count * variables]), &mut values);
        black_box(&values);
        fastest = fastest.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    writeln!(out, "prediction: {fastest:.1} ns, fastest of {PASSES} passes over {count} rows")?;
    Ok(())
}

fn report(out: &mut impl std::io::Write, trained: &Trained) -> std::io::Result<()> {
    let summary = &trained.summary;
    writeln!(out, "{} terms, {} found, {:?}", trained.model.len() + 1, summary.terms_found, summary.stop)?;
    let bytes = encode(&trained.model).len();
    writeln!(out, "R2 {:.5}, by GCV {:.5}, {bytes} bytes", summary.r_squared, summary.gr_squared)
}

/// Costs that bend in some features, with a product and noise; most features do not matter.
fn costs(rows: usize, variables: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::seeded(42);
    let mut random = move || rng.unit();
    let features: Vec<f64> = (0..rows * variables).map(|_| random()).collect();
    let cost = |row: &[f64]| {
        let at = |variable: usize| row[variable % variables];
        let bends: f64 = (0..8).map(|i| (i as f64 - 4.0) * (at(3 * i) - 0.1 * i as f64).max(0.0)).sum();
        5.0 + bends + 6.0 * at(1) * (at(2) - 0.5).max(0.0) + (6.0 * at(5)).sin()
    };
    let costs = features.chunks_exact(variables).map(|row| cost(row) + 0.2 * random()).collect();
    (features, costs)
}
