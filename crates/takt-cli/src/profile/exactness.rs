//! Which ways of cutting draws are exact with a driver.

use std::path::Path;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;
use takt_calibrate::Bench;
use takt_calibrate::store::Shelf;
use takt_predict::exactness::{Exactness, Way};

use crate::output;

/// Tries all ways of cutting, and keeps what was found.
pub(super) fn run(store: &Path, bench: &Bench) -> anyhow::Result<Exactness> {
    let found = takt_calibrate::exactness::exactness(bench).context("cannot try how draws are cut")?;
    let shelf = Shelf::new(store, &bench.gpu(), &bench.driver());
    shelf.keep_exactness(&found).with_context(|| output::cannot_write(&shelf.exactness_path()))?;
    Ok(found)
}

/// A way of cutting in a state.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct CaseFound {
    /// ranges or boxes.
    way: String,
    /// Samples per pixel; 1 without any.
    samples: u32,
    /// The state that was tried.
    state: String,
    /// How many values differed from the whole draw; cutting is used where it is 0.
    differing: u64,
}

/// All cases, for JSON.
pub(super) fn cases(found: &Exactness) -> Vec<CaseFound> {
    let case = |(case, differing): (takt_predict::exactness::Case, u64)| CaseFound {
        way: case.way.to_string(),
        samples: case.samples,
        state: case.state.to_string(),
        differing,
    };
    found.cases().map(case).collect()
}

/// A line for each way of cutting.
pub(super) fn summary(found: &Exactness) -> String {
    let line = |way: Way| {
        let of_way: Vec<_> = found.cases().filter(|(case, _)| case.way == way).collect();
        let inexact: Vec<String> = of_way
            .iter()
            .filter(|(_, differing)| *differing > 0)
            .map(|(case, _)| match case.samples {
                1 => case.state.to_string(),
                samples => format!("{} with {samples} samples", case.state),
            })
            .collect();
        let but =
            if inexact.is_empty() { String::new() } else { format!(", not with {}", inexact.join(", ")) };
        format!("{way:<8} exact in {} of {} cases{but}\n", of_way.len() - inexact.len(), of_way.len())
    };
    Way::ALL.map(line).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_predict::exactness::{Case, State};

    #[test]
    fn what_is_inexact_is_named() {
        let mut found = Exactness::default();
        for (way, samples, state, differing) in [
            (Way::Ranges, 1, State::Points, 0),
            (Way::Boxes, 1, State::Points, 7),
            (Way::Boxes, 4, State::Blend, 9),
            (Way::Boxes, 4, State::Triangles, 0),
        ] {
            found.found(Case { way, samples, state }, differing);
        }
        let said = summary(&found);
        assert!(said.starts_with("ranges   exact in 1 of 1 cases\n"), "{said}");
        assert!(
            said.contains("boxes    exact in 1 of 3 cases, not with points, blend with 4 samples\n"),
            "{said}"
        );
    }
}
