//! Prints how Takt's splines compare with those of R's `earth`, as a table in Markdown.

use std::io::Write as _;

use takt_predict::mars::Guards;

#[path = "../tests/mars_cases/mod.rs"]
mod mars_cases;

const HEAD: &str = "\
| case | rows | features | degree | terms | GCV of earth | with its guards | ratio | distance | without | ratio | features |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|";

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{HEAD}")?;
    let list = |of: &[usize]| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    for case in mars_cases::cases() {
        let (same, free) = (case.train(Guards::EARTH), case.train(Guards::default()));
        let mut features = list(&case.selected);
        for (name, trained) in [("with", &same), ("without", &free)] {
            let used = trained.model.used_variables();
            if used != case.selected {
                features.push_str(&format!("; {name}: {}", list(&used)));
            }
        }
        writeln!(
            out,
            "| {} | {} | {} | {} | {} / {} / {} | {:.4e} | {:.4e} | {:.4} | {:.4} | {:.4e} | {:.4} | {features} |",
            case.name,
            case.responses.len(),
            case.variables,
            case.options.degree,
            case.terms,
            same.model.len() + 1,
            free.model.len() + 1,
            case.gcv,
            same.summary.gcv,
            same.summary.gcv / case.gcv,
            case.distance(&same),
            free.summary.gcv,
            free.summary.gcv / case.gcv,
        )?;
    }
    Ok(())
}
