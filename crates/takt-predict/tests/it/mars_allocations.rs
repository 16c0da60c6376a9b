//! Evaluation of a spline model allocates nothing.

use takt_predict::mars::{Options, Samples, train};

#[test]
fn prediction_allocates_nothing() {
    let features: Vec<f64> = (0..300).map(|i| f64::from(i * 37 % 101)).collect();
    let costs: Vec<f64> = features.chunks_exact(3).map(|x| (x[0] - 50.0).max(0.0) * x[1] + x[2]).collect();
    let samples = Samples::new(3, &features, &costs).unwrap();
    let model = train(&samples, &Options { degree: 2, ..Options::default() }).unwrap().model;
    assert!(!model.is_empty());
    let mut values = vec![0.0; costs.len()];
    let counted = allocation_counter::measure(|| {
        std::hint::black_box(model.predict(&features[..3]));
        model.predict_rows(&features, &mut values);
    });
    assert_eq!(counted.count_total, 0);
}
