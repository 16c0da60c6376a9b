//! Which models are asked.

use std::fmt;
use std::str::FromStr;

use takt_predict::fragments::Method;
use takt_predict::predictor::{Settings, ShaderModel};

/// Who estimates fragments, and who says what shaders cost.
///
/// By default boxes and profiled shaders: the cheapest ones, which measurements correct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combination {
    fragments: Method,
    shaders: ShaderModel,
}

impl Default for Combination {
    fn default() -> Self {
        Self { fragments: Method::BoundingBox, shaders: ShaderModel::Profiled }
    }
}

const METHODS: [(&str, Method); 4] = [
    ("bb", Method::BoundingBox),
    ("ts", Method::Samples),
    ("ratio", Method::Ratio),
    ("sequence", Method::Sequence),
];

const SHADERS: [(&str, ShaderModel); 2] = [("profiled", ShaderModel::Profiled), ("mars", ShaderModel::Mars)];

impl Combination {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        METHODS.iter().flat_map(|(_, fragments)| {
            SHADERS.iter().map(|(_, shaders)| Self { fragments: *fragments, shaders: *shaders })
        })
    }

    pub(super) fn settings(self, overpredict: f64) -> Settings {
        Settings { fragments: self.fragments, shaders: self.shaders, overpredict, ..Settings::default() }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fragments = METHODS.iter().find(|(_, method)| *method == self.fragments);
        let shaders = SHADERS.iter().find(|(_, model)| *model == self.shaders);
        let name = |found: Option<&'static str>| found.unwrap_or("unknown");
        write!(f, "{}+{}", name(fragments.map(|(name, _)| *name)), name(shaders.map(|(name, _)| *name)))
    }
}

impl FromStr for Combination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|combination| combination.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|combination| combination.to_string()).collect();
            format!("'{text}' is none of {}", names.join(", "))
        })
    }
}

/// Which models are asked, and by what their answers are multiplied.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    combinations: Vec<Combination>,
    history: bool,
    /// Factor on every prediction.
    pub overpredict: f64,
}

impl Default for Choice {
    fn default() -> Self {
        Self { combinations: Vec::new(), history: false, overpredict: 1.0 }
    }
}

impl Choice {
    /// One model.
    pub fn one(combination: Combination, overpredict: f64) -> Self {
        Self { combinations: vec![combination], history: false, overpredict }
    }

    /// All models and the history beside them.
    pub fn all(overpredict: f64) -> Self {
        Self { combinations: Combination::all().collect(), history: true, overpredict }
    }

    /// The models.
    pub fn combinations(&self) -> &[Combination] {
        &self.combinations
    }

    /// Whether the history is asked as well.
    pub fn history(&self) -> bool {
        self.history
    }

    /// Names of columns, each with a comma before it.
    pub fn columns(&self) -> String {
        let mut columns = String::new();
        for combination in &self.combinations {
            columns += &format!(",pred_{combination}_us,upper_{combination}_us,raw_{combination}_us");
        }
        if self.history {
            columns += ",pred_history_us,history_hit";
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(Combination::all().count(), 8);
        for combination in Combination::all() {
            assert_eq!(combination.to_string().parse(), Ok(combination));
        }
        assert!("bb".parse::<Combination>().unwrap_err().contains("bb+mars"));
    }

    #[test]
    fn each_model_has_its_columns() {
        assert_eq!(Choice::default().columns(), "");
        let one = Choice::one("bb+mars".parse().unwrap(), 1.0);
        assert_eq!(one.columns(), ",pred_bb+mars_us,upper_bb+mars_us,raw_bb+mars_us");
        assert!(Choice::all(1.0).columns().ends_with(",pred_history_us,history_hit"));
    }
}
