//! What was to be seen: the scenes of both runs, drawn again afterwards by the numbers of their frames.

use std::collections::HashMap;
use std::path::Path;

use takt_report::frames::{Cell, Run, Strip};

use super::cast::Role;
use super::stage::Stage;

/// Pictures of a strip, and the time between two of them in nanoseconds.
const CELLS: u64 = 6;
const BETWEEN_NS: u64 = 100_000_000;
/// Strips begin so long after the judged time.
const AFTER_NS: u64 = 500_000_000;
/// Pictures are not wider than this, roughly.
const WIDTH_MAX: u32 = 200;

/// Strips of all apps with a frame rate, those of one app below each other.
pub(super) fn strips(
    stage: &Stage,
    roles: &[Role],
    runs: &[Run],
    folder: &Path,
) -> anyhow::Result<Vec<Strip>> {
    let mut strips = Vec::new();
    for (index, role) in
        roles.iter().enumerate().filter(|(_, role)| !role.is_flood() && role.size().is_some())
    {
        let mut drawn: HashMap<u64, Vec<u8>> = HashMap::new();
        for run in runs {
            let mut cells = Vec::new();
            for at_ns in (0..CELLS).map(|cell| run.window.from + AFTER_NS + cell * BETWEEN_NS) {
                let frames = &run.apps[index].frames;
                let shown = frames.iter().filter(|frame| frame.end <= at_ns).max_by_key(|frame| frame.end);
                let number = shown.map_or(0, |frame| frame.number);
                if let std::collections::hash_map::Entry::Vacant(vacant) = drawn.entry(number) {
                    let file = folder.join("picture.png");
                    let shrink = role.size().map_or(1, |[width, _]| width.div_ceil(WIDTH_MAX));
                    stage.draw(role, number, shrink, &file)?;
                    vacant.insert(std::fs::read(&file)?);
                    std::fs::remove_file(&file)?;
                }
                let age_ns = shown.map_or(at_ns - run.window.from, |frame| at_ns - frame.end);
                cells.push(Cell { png: drawn[&number].clone(), age_ms: age_ns / 1_000_000 });
            }
            strips.push(Strip {
                app: role.name.clone(),
                run: run.name.clone(),
                period_ms: 1000.0 / role.fps,
                cells,
            });
        }
    }
    Ok(strips)
}
