//! The cases that `scripts/mars_oracle.R` has fitted with R's `earth`.

use takt_predict::mars::{Guards, Options, Samples, Span, Trained, train};

const CASES: &str = include_str!("../data/mars/cases.csv");
const ROWS: &str = include_str!("../data/mars/rows.csv");

/// One case: data, settings, and what `earth` found.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) features: Vec<f64>,
    pub(crate) responses: Vec<f64>,
    /// Row and value, for some of the rows.
    pub(crate) fitted: Vec<(usize, f64)>,
    pub(crate) variables: usize,
    pub(crate) options: Options,
    pub(crate) terms: usize,
    pub(crate) gcv: f64,
    pub(crate) selected: Vec<usize>,
}

impl Case {
    /// What Takt makes of it.
    pub(crate) fn train(&self, guards: Guards) -> Trained {
        let samples = Samples::new(self.variables, &self.features, &self.responses).expect("clean data");
        train(&samples, &Options { guards, ..self.options.clone() }).expect("a model")
    }

    /// Root mean square of the difference between the models, as a part of the deviation of the
    /// response.
    pub(crate) fn distance(&self, trained: &Trained) -> f64 {
        // The half sphere is its own mirror image in eight ways, and the models may be each other's.
        let images = if self.name.starts_with("half-sphere") { 8 } else { 1 };
        (0..images).map(|image| self.distance_to_image(trained, image)).fold(f64::INFINITY, f64::min)
    }

    fn distance_to_image(&self, trained: &Trained, image: u8) -> f64 {
        let error = |(at, value): &(usize, f64)| {
            let mut row = self.features[at * self.variables..][..self.variables].to_vec();
            for (bit, feature) in row.iter_mut().take(2).enumerate() {
                *feature *= if image >> bit & 1 == 1 { -1.0 } else { 1.0 };
            }
            if image & 4 != 0 {
                row.reverse();
            }
            trained.model.predict(&row) - value
        };
        let mean_square =
            self.fitted.iter().map(error).map(|error| error * error).sum::<f64>() / self.fitted.len() as f64;
        let rows = self.responses.len() as f64;
        let mean = self.responses.iter().sum::<f64>() / rows;
        let variance = self.responses.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / rows;
        (mean_square / variance).sqrt()
    }
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut rows = ROWS.lines();
    CASES.lines().skip(1).map(|line| case(line, &mut rows)).collect()
}

fn case(line: &'static str, rows: &mut std::str::Lines<'static>) -> Case {
    let fields: Vec<&str> = line.split(',').collect();
    let whole = |at: usize| fields[at].parse::<usize>().expect("a count");
    let real = |at: usize| fields[at].parse::<f64>().expect("a number");
    let list =
        |at: usize| fields[at].split_whitespace().map(|word| word.parse().expect("a feature")).collect();
    let (count, variables) = (whole(1), whole(2));
    let one = fields[6] == "one";
    let span = if one { Span::Rows(1) } else { Span::Auto };
    let options = Options {
        degree: whole(3),
        max_terms: Some(whole(4)),
        threshold: real(5),
        min_span: span,
        end_span: span,
        // `earth` adds this often the end span, which is there already.
        end_span_factor: if one { 2 } else { 3 },
        linear_only: list(7),
        ..Options::default()
    };
    let mut case = Case {
        name: fields[0],
        features: Vec::new(),
        responses: Vec::new(),
        fitted: Vec::new(),
        variables,
        options,
        terms: whole(9),
        gcv: real(10),
        selected: list(14),
    };
    for (at, row) in rows.take(count).enumerate() {
        let values: Vec<&str> = row.split(',').collect();
        case.features.extend(values[..variables].iter().map(|value| value.parse::<f64>().expect("a number")));
        case.responses.push(values[variables].parse().expect("a number"));
        case.fitted.extend(values[variables + 1].parse().map(|value: f64| (at, value)));
    }
    case
}
