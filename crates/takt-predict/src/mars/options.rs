//! What can be set for a training, and what can be wrong with it.

/// Most rows that a training accepts; ranks are stored in 32 bits.
pub const ROWS_MAX: usize = 1 << 24;
/// Most features.
pub const VARIABLES_MAX: usize = 1 << 16;
/// Most terms that may be asked for.
pub const TERMS_MAX: usize = 1 << 12;
/// Most factors in a term.
pub const DEGREE_MAX: usize = 16;
/// Largest magnitude of an input: squares of sums of such values are still finite.
pub const MAGNITUDE_MAX: f64 = 1e100;

/// Chance, per run of noise, that a knot is placed on it: Friedman's alpha for automatic spans.
const SPAN_ALPHA: f64 = 0.05;

/// How a model is searched for.
///
/// The names in brackets are those of R's `earth`, whose meaning they share.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Most factors in a term (`degree`); 1 gives an additive model.
    pub degree: usize,
    /// Size at which the search ends (`nk`), or by the number of features if absent.
    ///
    /// As in `earth` each step counts as two terms even where it adds only one, so that the limit
    /// bounds the number of steps.
    pub max_terms: Option<usize>,
    /// Smallest gain of R² that is worth a step (`thresh`).
    pub threshold: f64,
    /// Price of a knot in degrees of freedom (`penalty`); 2 for additive models and 3 otherwise
    /// if absent.
    pub penalty: Option<f64>,
    /// Rows from one knot to the next (`minspan`).
    pub min_span: Span,
    /// Rows without a knot at both ends of a feature (`endspan`).
    pub end_span: Span,
    /// By what to multiply the end span in products; `Adjust.endspan` is this less one.
    pub end_span_factor: usize,
    /// Which hinges are refused because they hardly differ from what is there.
    pub guards: Guards,
    /// Features that enter without a knot (`linpreds`).
    pub linear_only: Vec<usize>,
    /// Most terms that remain after pruning, the intercept included (`nprune`).
    pub keep_terms: Option<usize>,
    /// Look only at the most promising parents in each step (`fast.k`); all of them if absent.
    pub fast: Option<Fast>,
    /// Memory for running sums that are kept from step to step, in bytes.
    ///
    /// With less the result is the same and the search takes longer.
    pub cache_bytes: usize,
}

/// Distance between knots, in rows in which the parent term is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// By the number of rows and features, so that noise gets no knot of its own.
    Auto,
    /// So many rows.
    Rows(usize),
}

/// Friedman's heuristic of 1993: parents are ranked by the gain they offered when last examined.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fast {
    /// Parents to examine in each step (`fast.k`).
    pub parents: usize,
    /// Ranks that a parent rises per step for which it was not examined (`fast.beta`).
    pub ageing: f64,
}

/// What a hinge must have of its own.
///
/// A hinge of which the model spans nearly everything already gets a coefficient that few rows
/// support. The parts are of its squared length once the mean is taken off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Guards {
    /// Smallest part outside the model in the first steps.
    pub early: f64,
    /// Steps to which that applies.
    pub early_steps: usize,
    /// Smallest part in all later steps.
    pub late: f64,
    /// Smallest part of a product without a knot.
    pub linear: f64,
    /// Smallest squared length outside the model of a product without a knot, in the units of the
    /// data. It makes the result depend on these units, so better leave it at 0.
    pub linear_length: f64,
    /// Which terms may be parents.
    pub parents: Parents,
    /// How many times the gain of the step before a step may have; infinite for no limit.
    pub gain_growth_max: f64,
}

/// Terms that may be multiplied with another factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parents {
    /// All below the largest degree.
    All,
    /// Those whose number, with two for every step, does not exceed the number of terms, with two
    /// for every step but those that added a single hinge.
    ///
    /// After such steps the newest terms are then left out for a while. There is no sense in that;
    /// it is here because `earth` does it.
    Older,
}

/// Why there is no model.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Fewer rows than it takes to estimate anything.
    #[error("{rows} rows are too few, at least 2 are needed")]
    TooFewRows {
        /// Rows given.
        rows: usize,
    },
    /// Sizes that do not belong together.
    #[error("{values} values and {responses} responses do not make rows of {variables} features")]
    HingeShape {
        /// Feature values given.
        values: usize,
        /// Responses given.
        responses: usize,
        /// Features per row.
        variables: usize,
    },
    /// Above one of the limits of this module.
    #[error("{count} {what} are more than {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A value that is not a number, infinite, or beyond [`MAGNITUDE_MAX`].
    #[error("row {row} of column {column} is not a number of usable size")]
    BadValue {
        /// Row, from 0.
        row: usize,
        /// Feature, from 0; the number of features stands for the response.
        column: usize,
    },
    /// An option outside its range.
    #[error("option {name}: {problem}")]
    Option {
        /// Field of [`Options`].
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The data span so many orders of magnitude that the model cannot be written in its units.
    #[error("the coefficients cannot be represented: scale the features")]
    Unrepresentable,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            degree: 1,
            max_terms: None,
            threshold: 1e-3,
            penalty: None,
            min_span: Span::Auto,
            end_span: Span::Auto,
            end_span_factor: 3,
            guards: Guards::default(),
            linear_only: Vec::new(),
            keep_terms: None,
            fast: None,
            cache_bytes: 512 << 20,
        }
    }
}

impl Guards {
    /// What `earth` 5.3.2 does, as far as its choices tell: it has no options for this.
    pub const EARTH: Self = Self {
        early: 1e-2,
        early_steps: 7,
        late: 1e-5,
        linear: 0.0,
        linear_length: 1e-2,
        parents: Parents::Older,
        gain_growth_max: 10.0,
    };
}

/// No guards but numerical ones: spans and GCV keep watch over what few rows support.
impl Default for Guards {
    fn default() -> Self {
        Self {
            early: 0.0,
            early_steps: 0,
            late: 0.0,
            linear: 0.0,
            linear_length: 0.0,
            parents: Parents::All,
            gain_growth_max: f64::INFINITY,
        }
    }
}

impl Options {
    /// Checks all fields against `variables` features.
    pub(super) fn check(&self, variables: usize) -> Result<(), TrainError> {
        let bad = |name, problem| Err(TrainError::Option { name, problem });
        if !(1..=DEGREE_MAX).contains(&self.degree) {
            return bad("degree", "must be from 1 to 16");
        }
        if self.max_terms.is_some_and(|terms| !(1..=TERMS_MAX).contains(&terms)) {
            return bad("max_terms", "must be from 1 to 4096");
        }
        if !(0.0..1.0).contains(&self.threshold) {
            return bad("threshold", "must be at least 0 and below 1");
        }
        if self.penalty.is_some_and(|penalty| !(0.0..=1000.0).contains(&penalty)) {
            return bad("penalty", "must be from 0 to 1000");
        }
        if self.min_span == Span::Rows(0) || self.end_span == Span::Rows(0) {
            return bad("min_span, end_span", "must be at least one row");
        }
        if self.end_span_factor == 0 {
            return bad("end_span_factor", "must be at least 1");
        }
        let Guards { early, late, linear, linear_length, gain_growth_max, .. } = self.guards;
        if ![early, late, linear].iter().all(|part| (0.0..1.0).contains(part)) {
            return bad("guards", "a part must be at least 0 and below 1");
        }
        if gain_growth_max.is_nan() || gain_growth_max < 1.0 || linear_length.is_nan() || linear_length < 0.0
        {
            return bad("guards", "a gain must be allowed to stay the same, a length is at least 0");
        }
        if self.linear_only.iter().any(|&variable| variable >= variables) {
            return bad("linear_only", "there is no such feature");
        }
        if self.keep_terms == Some(0) {
            return bad("keep_terms", "the intercept always remains");
        }
        if self.fast.is_some_and(|fast| fast.parents == 0 || !fast.ageing.is_finite() || fast.ageing < 0.0) {
            return bad("fast", "needs a parent and an ageing of at least 0");
        }
        Ok(())
    }

    /// The largest number of terms before pruning, steps counting as two.
    pub(super) fn terms_limit(&self, variables: usize) -> usize {
        self.max_terms.unwrap_or_else(|| variables.saturating_mul(2).clamp(20, 200) + 1)
    }

    /// The price of a knot.
    pub(super) fn knot_price(&self) -> f64 {
        self.penalty.unwrap_or(if self.degree > 1 { 3.0 } else { 2.0 })
    }

    /// Rows between knots under a parent that is not zero in `active` rows.
    pub(super) fn min_span_rows(&self, variables: usize, active: usize) -> usize {
        match self.min_span {
            Span::Rows(rows) => rows,
            Span::Auto => {
                // Friedman 1991, equation 43: a run of noise of one sign of this length is rare.
                let places = (variables * active).max(1) as f64;
                whole_rows(-(-(1.0 - SPAN_ALPHA).ln() / places).log2() / 2.5)
            }
        }
    }

    /// Rows without a knot at each end, for a term of `degree` factors.
    pub(super) fn end_span_rows(&self, variables: usize, degree: usize) -> usize {
        let rows = match self.end_span {
            Span::Rows(rows) => rows,
            // Friedman 1991, equation 45.
            Span::Auto => whole_rows(3.0 - (SPAN_ALPHA / variables.max(1) as f64).log2()),
        };
        if degree > 1 { rows.saturating_mul(self.end_span_factor) } else { rows }
    }
}

/// The whole part of a span, at least one row.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of a number of rows, clamped to at least 1"
)]
fn whole_rows(span: f64) -> usize {
    span.clamp(1.0, 1e6) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_spans_follow_friedman() {
        let options = Options::default();
        // -log2(-ln(0.95) / 5e6) / 2.5 = 10.6 and 3 - log2(0.0005) = 13.97.
        assert_eq!(options.min_span_rows(100, 50_000), 10);
        assert_eq!(options.end_span_rows(100, 1), 13);
        assert_eq!(options.end_span_rows(100, 2), 39);
        assert_eq!(options.min_span_rows(1, 1), 1);
    }

    #[test]
    fn sizes_and_prices_have_the_usual_defaults() {
        let options = Options::default();
        assert_eq!([1, 15, 500].map(|variables| options.terms_limit(variables)), [21, 31, 201]);
        assert_eq!(options.knot_price(), 2.0);
        assert_eq!(Options { degree: 2, ..options }.knot_price(), 3.0);
    }

    #[test]
    fn options_out_of_range_are_named() {
        let wrong = [
            Options { degree: 0, ..Options::default() },
            Options { max_terms: Some(0), ..Options::default() },
            Options { threshold: f64::NAN, ..Options::default() },
            Options { penalty: Some(-1.0), ..Options::default() },
            Options { min_span: Span::Rows(0), ..Options::default() },
            Options { end_span_factor: 0, ..Options::default() },
            Options { guards: Guards { late: 1.0, ..Guards::EARTH }, ..Options::default() },
            Options { guards: Guards { gain_growth_max: 0.5, ..Guards::EARTH }, ..Options::default() },
            Options { linear_only: vec![3], ..Options::default() },
            Options { keep_terms: Some(0), ..Options::default() },
            Options { fast: Some(Fast { parents: 0, ageing: 1.0 }), ..Options::default() },
        ];
        for options in wrong {
            assert!(matches!(options.check(3), Err(TrainError::Option { .. })), "{options:?}");
        }
        assert_eq!(Options::default().check(3), Ok(()));
    }
}
