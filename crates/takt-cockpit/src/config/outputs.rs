//! Displays.

use takt_config::{Mistake, mistake};
use takt_core::{Refresh, Span, Time};

use super::file::OutputFile;
use super::values;
use crate::geometry::Size;

/// GPU time that a composition reserves where the file does not say so.
const ETPF_MS: f64 = 3.0;
/// Priority of compositions: above apps, which have smaller numbers in the examples.
const PRIORITY: u32 = 900;

/// A display.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// Its name, for the daemon as well.
    pub name: String,
    /// Its size in pixels.
    pub size: Size,
    /// When it refreshes, if it has no clock of its own.
    pub grid: Refresh,
    /// GPU time that its composition reserves for each frame.
    pub etpf: Span,
    /// Priority of its composition.
    pub priority: u32,
    /// Whether the driver sees all of it while driving.
    pub driver: bool,
    /// The connector of a display device that shows it.
    pub connector: Option<String>,
}

pub(super) fn check(file: &OutputFile) -> Result<Output, Mistake> {
    let mhz = values::rate("refresh_hz", file.refresh_hz.unwrap_or(60.0))?;
    let grid = Refresh::from_mhz(mhz).ok_or_else(|| mistake("refresh_hz", mhz / 1000, "use 1 to 1000"))?;
    let phase = values::ms("phase_ms", file.phase_ms.unwrap_or(0.0), 0.0)?;
    let etpf_ms = file.etpf_ms.unwrap_or(ETPF_MS);
    let etpf = values::ms("etpf_ms", etpf_ms, 0.1)?;
    if etpf >= grid.period_span() {
        let period_ms = grid.period_span().as_ns() as f64 / 1e6;
        return Err(mistake("etpf_ms", etpf_ms, format!("use less than a refresh, {period_ms:.3} ms")));
    }
    Ok(Output {
        name: file.name.clone(),
        size: values::size("size", &file.size)?,
        grid: grid.with_origin(Time::from_ns(phase.as_ns())),
        etpf,
        priority: file.priority.unwrap_or(PRIORITY),
        driver: file.driver,
        connector: file.connector.clone(),
    })
}
