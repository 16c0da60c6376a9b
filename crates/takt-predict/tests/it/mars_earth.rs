//! Takt's splines against those of R's `earth`, case by case.
//!
//! The data were made by `scripts/mars_oracle.R`; `docs/experiments/mars-vs-earth.md` has the
//! table and says where they differ and why.

use takt_predict::mars::Guards;

use crate::mars_cases;

/// How far the criterion may be above that of `earth`.
const GCV_EXCESS_MAX: f64 = 1.02;
/// How far fitted values may be apart where the criterion is the same, as a part of the
/// response's deviation.
const DISTANCE_MAX: f64 = 0.001;
/// What counts as the same criterion.
const SAME: std::ops::Range<f64> = 0.999..1.001;

#[test]
fn models_are_those_of_earth_or_better() {
    let cases = mars_cases::cases();
    let mut same = 0;
    for case in &cases {
        let trained = case.train(Guards::EARTH);
        let ratio = trained.summary.gcv / case.gcv;
        assert!(ratio <= GCV_EXCESS_MAX, "{}: the criterion is {ratio} times that of earth", case.name);
        assert_eq!(trained.model.used_variables(), case.selected, "{}", case.name);
        if SAME.contains(&ratio) {
            same += 1;
            let distance = case.distance(&trained);
            let terms = (trained.model.len() + 1, case.terms);
            assert!(distance < DISTANCE_MAX, "{}: distance {distance}, terms {terms:?}", case.name);
        }
    }
    assert!(cases.len() >= 70, "{} cases", cases.len());
    assert!(same >= 74, "{same} of {} have the same criterion", cases.len());
}

#[test]
fn without_its_guards_the_criterion_is_lower_on_the_whole() {
    let cases = mars_cases::cases();
    let ratios = cases.iter().map(|case| case.train(Guards::default()).summary.gcv / case.gcv);
    let mean = (ratios.map(f64::ln).sum::<f64>() / cases.len() as f64).exp();
    assert!(mean < 0.9, "geometric mean {mean}");
}
