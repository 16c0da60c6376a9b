//! Models of functions that are known, the knot search against a slow one, and hostile data.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use takt_rng::Rng;

use super::data::Prepared;
use super::linalg::Basis;
use super::scan::{Lanes, OfferBounds, Scan, Spans};
use super::*;

/// Every row may carry a knot.
fn all_knots() -> Options {
    Options { min_span: Span::Rows(1), end_span: Span::Rows(1), end_span_factor: 1, ..Options::default() }
}

/// A generator that is the same everywhere.
struct Random(Rng);

impl Random {
    fn next(&mut self) -> f64 {
        self.0.unit()
    }

    fn rows(&mut self, rows: usize, variables: usize) -> Vec<f64> {
        (0..rows * variables).map(|_| self.next()).collect()
    }
}

fn fit(variables: usize, features: &[f64], responses: &[f64], options: &Options) -> Trained {
    train(&Samples::new(variables, features, responses).unwrap(), options).unwrap()
}

fn responses(variables: usize, features: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    features.chunks_exact(variables).map(function).collect()
}

fn check_formula(trained: &Trained, expected: &Expect) {
    expected.assert_eq(&trained.model.to_string());
}

#[test]
fn a_bend_is_found_exactly() {
    let features: Vec<f64> = (0..200).map(|i| f64::from(i) / 2.0).collect();
    let y = responses(1, &features, |x| 3.0 + 2.0 * (x[0] - 30.0).max(0.0) - 0.5 * (30.0 - x[0]).max(0.0));
    let trained = fit(1, &features, &y, &all_knots());
    check_formula(
        &trained,
        &expect![[r#"
            3
            + 2 * h(x0-30)
            - 0.5 * h(30-x0)"#]],
    );
    assert_eq!(trained.summary.stop, Stop::Fitted);
    assert!(trained.summary.r_squared > 1.0 - 1e-12);
}

#[test]
fn products_are_found_and_noise_is_not() {
    let mut random = Random(Rng::seeded(5));
    let features = random.rows(400, 4);
    let y = responses(4, &features, |x| 2.0 + 8.0 * (x[1] - 0.5).max(0.0) * x[2]);
    let y: Vec<f64> = y.iter().map(|value| value + 0.01 * random.next()).collect();
    let trained = fit(4, &features, &y, &Options { degree: 2, ..all_knots() });
    assert_eq!(trained.model.used_variables(), [1, 2]);
    assert!(trained.summary.gr_squared > 0.995, "{:?}", trained.summary);
    let additive = fit(4, &features, &y, &all_knots());
    assert!(additive.summary.gcv > 5.0 * trained.summary.gcv);
    assert!(trained.importance[1].subsets >= trained.importance[0].subsets);
    assert_eq!(trained.importance[0], Importance::default());
}

#[test]
fn linear_features_get_no_knots() {
    let features = Random(Rng::seeded(9)).rows(150, 2);
    let y = responses(2, &features, |x| (x[0] - 0.4).abs() + x[1] * x[1]);
    let options = Options { linear_only: vec![1], degree: 2, ..all_knots() };
    let trained = fit(2, &features, &y, &options);
    for (_, factors) in trained.model.terms() {
        for factor in factors {
            assert_eq!(factor.shape == HingeShape::Linear, factor.variable == 1, "{factor:?}");
        }
    }
}

#[test]
fn limits_on_size_are_kept() {
    let features = Random(Rng::seeded(3)).rows(200, 2);
    let y = responses(2, &features, |x| (9.0 * x[0]).sin() + (7.0 * x[1]).cos());
    let trained = fit(2, &features, &y, &Options { max_terms: Some(11), threshold: 0.0, ..all_knots() });
    assert_eq!(trained.summary.stop, Stop::Terms);
    assert!(trained.summary.terms_found <= 11);
    let few = fit(2, &features, &y, &Options { keep_terms: Some(3), ..all_knots() });
    assert!(few.model.len() < 3);
    let spans = Options { min_span: Span::Rows(usize::MAX), end_span: Span::Rows(1), ..all_knots() };
    assert!(fit(2, &features, &y, &spans).summary.terms_found <= 5, "one knot per feature");
    let spans = Options { end_span: Span::Rows(usize::MAX), ..all_knots() };
    assert!(fit(2, &features, &y, &spans).summary.terms_found <= 3, "no knots");
    let none = fit(2, &features, &y, &Options { max_terms: Some(1), ..all_knots() });
    assert!(none.model.is_empty());
}

#[test]
fn memory_for_sums_changes_speed_only() {
    let features = Random(Rng::seeded(11)).rows(120, 3);
    let y = responses(3, &features, |x| (6.0 * x[0]).sin() * x[1] + (x[2] - 0.3).abs());
    let options = Options { degree: 2, ..all_knots() };
    let with = fit(3, &features, &y, &options);
    let without = fit(3, &features, &y, &Options { cache_bytes: 0, ..options.clone() });
    assert!((with.summary.gcv / without.summary.gcv - 1.0).abs() < 1e-9);
    assert_eq!(with, fit(3, &features, &y, &options), "the same input gives the same model");
}

#[test]
fn looking_at_few_parents_is_nearly_as_good() {
    let features = Random(Rng::seeded(21)).rows(200, 3);
    let y = responses(3, &features, |x| (x[0] - 0.5).max(0.0) * x[1] + 0.3 * x[2]);
    let options = Options { degree: 2, ..all_knots() };
    let fast = Options { fast: Some(Fast { parents: 3, ageing: 1.0 }), ..options.clone() };
    let (all, few) = (fit(3, &features, &y, &options), fit(3, &features, &y, &fast));
    assert!(few.summary.r_squared > all.summary.r_squared - 0.01);
}

#[test]
fn units_do_not_matter() {
    let features = Random(Rng::seeded(2)).rows(150, 2);
    let y = responses(2, &features, |x| (x[0] - 0.4).abs() * x[1]);
    let scaled: Vec<f64> = features.iter().map(|x| x * 1e-12 + 1e-3).collect();
    let scaled_y: Vec<f64> = y.iter().map(|value| value * 1e20).collect();
    let options = Options { degree: 2, ..all_knots() };
    let (one, other) = (fit(2, &features, &y, &options), fit(2, &scaled, &scaled_y, &options));
    assert!((one.summary.gr_squared - other.summary.gr_squared).abs() < 1e-3);
    assert_eq!(one.model.used_variables(), other.model.used_variables());
}

/// Whether a value comes next below that of a row in which the parent is not zero.
fn may_be_knot(at: f64, parent: &[f64], x: &[f64]) -> bool {
    let above = parent.iter().zip(x).filter(|(_, x)| **x > at).min_by(|a, b| a.1.total_cmp(b.1));
    above.is_some_and(|(parent, _)| *parent != 0.0)
}

/// The best gain of a pair of hinges, tried knot by knot.
fn slow_best(terms: &[Vec<f64>], parent: &[f64], x: &[f64], y: &[f64]) -> f64 {
    let rss = |extra: &[Vec<f64>]| {
        let mut basis = Basis::new(y);
        for term in terms.iter().chain(extra) {
            let _independent: bool = basis.push(term);
        }
        basis.rss()
    };
    let hinge = |knot: f64, sign: f64| -> Vec<f64> {
        parent.iter().zip(x).map(|(p, x)| p * (sign * (x - knot)).max(0.0)).collect()
    };
    let gain = |knot: &f64| rss(&[]) - rss(&[hinge(*knot, 1.0), hinge(*knot, -1.0)]);
    x.iter().filter(|knot| may_be_knot(**knot, parent, x)).map(gain).fold(0.0, f64::max)
}

#[test]
fn the_fast_search_finds_what_the_slow_one_finds() {
    for seed in 0..20 {
        let mut random = Random(Rng::seeded(seed));
        let features = random.rows(30, 2);
        let y: Vec<f64> = features.iter().step_by(2).map(|x| (5.0 * x).sin() + 0.2 * random.next()).collect();
        let samples = Samples::new(2, &features, &y).unwrap();
        let data = Prepared::new(&samples, &[]);
        let (x, other) = (&data.columns[0], &data.columns[1].values);
        let parent: Vec<f64> = other.iter().map(|value| (value - 0.3).max(0.0)).collect();
        let terms = [vec![1.0; 30], parent.clone(), other.clone(), x.values.clone()];
        let mut basis = Basis::new(&data.response);
        let mut scan = Scan::new(0, x, &parent, &data.response, Spans { min: 1, end: 1 });
        for (at, term) in terms.iter().enumerate() {
            assert!(basis.push(term));
            let weights = basis.column(at).iter().zip(&parent).map(|(q, p)| [q * p]).collect();
            scan.advance(x, &Lanes { weights, response: [basis.response()[at]] });
        }
        let bounds = OfferBounds {
            part_min: 1e-8,
            linear_part_min: 1e-8,
            linear_norm_min: 0.0,
            gain_max: f64::INFINITY,
        };
        let fast = scan.best(bounds).unwrap().gain;
        let slow = slow_best(&terms, &parent, &x.values, &data.response);
        assert!((fast / slow - 1.0).abs() < 1e-6, "seed {seed}: {fast} {slow}");
    }
}

#[test]
fn wrong_shapes_and_values_are_named() {
    let error = |variables, features: &[f64], responses: &[f64]| {
        Samples::new(variables, features, responses).unwrap_err().to_string()
    };
    assert_eq!(error(2, &[1.0; 5], &[1.0; 3]), "5 values and 3 responses do not make rows of 2 features");
    assert_eq!(error(1, &[1.0], &[1.0]), "1 rows are too few, at least 2 are needed");
    assert_eq!(
        error(2, &[0.0, 1.0, 2.0, f64::NAN], &[0.0, 1.0]),
        "row 1 of column 1 is not a number of usable size"
    );
    assert_eq!(
        error(1, &[0.0, 1.0], &[0.0, f64::INFINITY]),
        "row 1 of column 1 is not a number of usable size"
    );
    assert_eq!(error(usize::MAX, &[0.0, 1.0], &[0.0, 1.0]).split(' ').next(), Some("2"));
}

#[test]
fn data_without_information_give_the_mean() {
    let constant = fit(2, &[1.0; 20], &[4.0; 10], &Options::default());
    assert_eq!((constant.model.len(), constant.model.intercept()), (0, 4.0));
    assert_eq!(constant.summary.r_squared, 0.0);
    let no_features = fit(0, &[], &[1.0, 3.0], &Options::default());
    assert_eq!(no_features.model.predict(&[]), 2.0);
    let duplicates = fit(1, &[5.0; 8], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0], &all_knots());
    assert_eq!(duplicates.model.intercept(), 1.5);
}

/// Values that are likely to make trouble.
fn nasty() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..10.0_f64,
        2 => (0_u8..3).prop_map(f64::from),
        1 => prop::sample::select(vec![0.0, -0.0, 1e100, -1e100, 1e-300, 5e-324, f64::MAX, f64::NAN, f64::INFINITY]),
    ]
}

proptest! {
    #[test]
    fn no_data_makes_it_panic(
        variables in 0_usize..4,
        values in prop::collection::vec(nasty(), 0..120),
        degree in 1_usize..4,
        threshold in prop::sample::select(vec![0.0, 1e-8, 1e-3]),
        fast in any::<bool>(),
    ) {
        let rows = values.len() / (variables + 1);
        let (responses, features) = values.split_at(rows);
        let options = Options {
            degree,
            threshold,
            max_terms: Some(41),
            fast: fast.then_some(Fast { parents: 2, ageing: 1.0 }),
            ..all_knots()
        };
        let samples = Samples::new(variables, &features[..rows * variables], responses);
        if let Ok(trained) = samples.and_then(|samples| train(&samples, &options)) {
            prop_assert!(trained.summary.rss >= 0.0);
            prop_assert!(trained.summary.gcv >= 0.0);
            prop_assert!(trained.model.len() < 41);
            for row in 0..rows {
                let value = trained.model.predict(&features[row * variables..][..variables]);
                prop_assert!(value.is_finite());
            }
        }
    }
}
