//! A trained model in flat arrays: evaluation, inspection, a readable form.

use std::fmt;

use super::options::{DEGREE_MAX, VARIABLES_MAX};

/// Most terms of a model, the intercept not counted.
pub const MODEL_TERMS_MAX: usize = 1 << 16;

/// A sum of products of hinge functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    variables: usize,
    intercept: f64,
    terms: Vec<FlatTerm>,
    factors: Vec<FlatFactor>,
}

/// One factor of a term: a function of one feature.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Factor {
    /// The feature, from 0.
    pub variable: usize,
    /// Where the function is zero.
    pub knot: f64,
    /// How it rises.
    pub shape: HingeShape,
}

/// How a factor rises around its knot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HingeShape {
    /// `x - knot`, on both sides.
    Linear,
    /// `max(0, x - knot)`.
    Above,
    /// `max(0, knot - x)`.
    Below,
}

/// Why something is no model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// More than [`VARIABLES_MAX`] features.
    #[error("too many features")]
    TooManyVariables,
    /// More than [`MODEL_TERMS_MAX`] terms.
    #[error("too many terms")]
    TooManyTerms,
    /// A term with no factor or more than [`DEGREE_MAX`].
    #[error("a term has no factor or too many")]
    Degree,
    /// A factor of a feature that does not exist.
    #[error("a factor names a feature that does not exist")]
    Variable,
    /// A coefficient or knot that is not finite.
    #[error("a coefficient or knot is not finite")]
    NotFinite,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct FlatTerm {
    coefficient: f64,
    /// Where its factors end; they begin where those of the term before end.
    end: u32,
}

/// A factor such that its value is found without asking for its shape.
#[derive(Clone, Copy, PartialEq, Debug)]
struct FlatFactor {
    knot: f64,
    /// 1 or -1.
    slope: f64,
    /// 0 for hinges, minus infinity for linear factors.
    floor: f64,
    variable: u32,
}

impl Model {
    /// A model of its intercept alone.
    ///
    /// # Errors
    ///
    /// If there are too many features or the intercept is not finite.
    pub fn new(variables: usize, intercept: f64) -> Result<Self, ModelError> {
        if variables > VARIABLES_MAX {
            return Err(ModelError::TooManyVariables);
        }
        if !intercept.is_finite() {
            return Err(ModelError::NotFinite);
        }
        Ok(Self { variables, intercept, terms: Vec::new(), factors: Vec::new() })
    }

    /// Adds a term.
    ///
    /// # Errors
    ///
    /// If the term is not valid; the model is then as before.
    pub fn push(&mut self, coefficient: f64, factors: &[Factor]) -> Result<(), ModelError> {
        if self.terms.len() >= MODEL_TERMS_MAX {
            return Err(ModelError::TooManyTerms);
        }
        if !(1..=DEGREE_MAX).contains(&factors.len()) {
            return Err(ModelError::Degree);
        }
        if !coefficient.is_finite() || factors.iter().any(|factor| !factor.knot.is_finite()) {
            return Err(ModelError::NotFinite);
        }
        if factors.iter().any(|factor| factor.variable >= self.variables) {
            return Err(ModelError::Variable);
        }
        self.factors.extend(factors.iter().map(FlatFactor::from));
        let end = u32::try_from(self.factors.len()).map_err(|_error| ModelError::TooManyTerms)?;
        self.terms.push(FlatTerm { coefficient, end });
        Ok(())
    }

    /// The value for one row of features.
    ///
    /// Allocates nothing. A feature that is not a number and is used makes the result so.
    ///
    /// # Panics
    ///
    /// If the row has not as many features as the model.
    #[must_use]
    pub fn predict(&self, row: &[f64]) -> f64 {
        assert_eq!(row.len(), self.variables, "one value per feature");
        let mut sum = self.intercept;
        let mut start = 0;
        for term in &self.terms {
            let end = term.end as usize;
            let mut product = term.coefficient;
            for factor in &self.factors[start..end] {
                product *= factor.at(row[factor.variable as usize]);
                if product == 0.0 {
                    // Also keeps a large factor after a zero from making the product undefined.
                    break;
                }
            }
            sum += product;
            start = end;
        }
        sum
    }

    /// The values for many rows, one after the other in `features`.
    ///
    /// # Panics
    ///
    /// If there are not as many features per value as in the model.
    pub fn predict_rows(&self, features: &[f64], values: &mut [f64]) {
        assert_eq!(features.len(), self.variables * values.len(), "one row per value");
        if self.variables == 0 {
            values.fill(self.intercept);
            return;
        }
        for (row, value) in features.chunks_exact(self.variables).zip(values) {
            *value = self.predict(row);
        }
    }

    /// Features that a row must have.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// The value where all terms are zero.
    #[must_use]
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// Number of terms, the intercept not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there is only the intercept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Coefficient and factors of each term.
    pub fn terms(&self) -> impl Iterator<Item = (f64, impl Iterator<Item = Factor>)> {
        let starts = std::iter::once(0).chain(self.terms.iter().map(|term| term.end as usize));
        starts.zip(&self.terms).map(|(start, term)| {
            let factors = &self.factors[start..term.end as usize];
            (term.coefficient, factors.iter().map(Factor::from))
        })
    }

    /// Features that make a difference, in ascending order.
    #[must_use]
    pub fn used_variables(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.factors.iter().map(|factor| factor.variable as usize).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The model with names for features; features without one are called `x0`, `x1` and so on.
    pub fn formula<'a>(&'a self, names: &'a [&'a str]) -> impl fmt::Display + 'a {
        Formula { model: self, names }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.formula(&[]).fmt(f)
    }
}

impl FlatFactor {
    fn at(&self, x: f64) -> f64 {
        let height = self.slope * (x - self.knot);
        // Not `max`, which would turn a feature that is not a number into 0.
        if height < self.floor { self.floor } else { height }
    }
}

impl From<&Factor> for FlatFactor {
    fn from(factor: &Factor) -> Self {
        let (slope, floor) = match factor.shape {
            HingeShape::Linear => (1.0, f64::NEG_INFINITY),
            HingeShape::Above => (1.0, 0.0),
            HingeShape::Below => (-1.0, 0.0),
        };
        let variable = u32::try_from(factor.variable).expect("checked against VARIABLES_MAX");
        Self { knot: factor.knot, slope, floor, variable }
    }
}

impl From<&FlatFactor> for Factor {
    fn from(flat: &FlatFactor) -> Self {
        let shape = match (flat.floor == 0.0, flat.slope > 0.0) {
            (false, _) => HingeShape::Linear,
            (true, true) => HingeShape::Above,
            (true, false) => HingeShape::Below,
        };
        Self { variable: flat.variable as usize, knot: flat.knot, shape }
    }
}

struct Formula<'a> {
    model: &'a Model,
    names: &'a [&'a str],
}

impl fmt::Display for Formula<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Short(self.model.intercept))?;
        for (coefficient, factors) in self.model.terms() {
            let sign = if coefficient < 0.0 { '-' } else { '+' };
            write!(f, "\n{sign} {}", Short(coefficient.abs()))?;
            for factor in factors {
                f.write_str(" * ")?;
                self.write_factor(f, &factor)?;
            }
        }
        Ok(())
    }
}

impl Formula<'_> {
    fn write_factor(&self, f: &mut fmt::Formatter<'_>, factor: &Factor) -> fmt::Result {
        let name = match self.names.get(factor.variable) {
            Some(name) => (*name).to_owned(),
            None => format!("x{}", factor.variable),
        };
        let sign = if factor.knot < 0.0 { '+' } else { '-' };
        match factor.shape {
            HingeShape::Linear if factor.knot == 0.0 => f.write_str(&name),
            HingeShape::Linear => write!(f, "({name}{sign}{})", Short(factor.knot.abs())),
            HingeShape::Above => write!(f, "h({name}{sign}{})", Short(factor.knot.abs())),
            HingeShape::Below => write!(f, "h({}-{name})", Short(factor.knot)),
        }
    }
}

/// A number with six digits that count.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = format!("{:.5e}", self.0).parse().unwrap_or(self.0);
        let size = f64::abs(rounded);
        if rounded == 0.0 || (1e-5..1e9).contains(&size) {
            write!(f, "{rounded}")
        } else {
            write!(f, "{rounded:e}")
        }
    }
}
