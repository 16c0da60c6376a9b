//! Which GPU `takt check` speaks of.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use takt_calibrate::store::{self, Shelf};
use takt_calibrate::{Bench, Place};
use takt_core::{Config, Divisible, Gpu, Span};
use takt_predict::profile::{Execution, Sharing};
use takt_sim::Scenario;
use takt_sim::model::GpuModel;

/// The GPU in place of the scenario's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum GpuChoice {
    /// Executes in the order of dispatch.
    InOrder,
    /// Contexts take turns, with slice and switch if they are not those of the scenario.
    TimeShared(Option<(Span, Span)>),
    /// As it was measured on this machine.
    Machine,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "in-order" => return Ok(Self::InOrder),
            "time-shared" => return Ok(Self::TimeShared(None)),
            "machine" => return Ok(Self::Machine),
            _ => {}
        }
        let figures = text.strip_prefix("time-shared:").and_then(|figures| figures.split_once(','));
        let figures = figures.and_then(|(slice, switch)| Some((figure(slice)?, figure(switch)?)));
        match figures {
            Some((slice, switch)) if slice > Span::ZERO => Ok(Self::TimeShared(Some((slice, switch)))),
            _ => Err("write in-order, time-shared, time-shared:SLICE_US,SWITCH_US or machine".to_owned()),
        }
    }
}

/// The longest slice or switch that is believed, in microseconds.
const FIGURE_US_MAX: f64 = 10e6;

fn figure(text: &str) -> Option<Span> {
    text.trim().parse().ok().and_then(span)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn span(us: f64) -> Option<Span> {
    (0.0..=FIGURE_US_MAX).contains(&us).then(|| Span::from_ns((us * 1000.0).round() as u64))
}

/// Puts the chosen GPU into the scenario; the measured one, on request.
pub(super) fn choose(scenario: &mut Scenario, choice: Option<GpuChoice>) -> anyhow::Result<Option<Sharing>> {
    let mut measured = None;
    match choice {
        None => {}
        Some(GpuChoice::InOrder) => scenario.gpu.model = GpuModel::InOrder,
        Some(GpuChoice::TimeShared(figures)) => {
            let scenarios = (scenario.config.tuning.timeslice, scenario.gpu.switch);
            share(scenario, figures.unwrap_or(scenarios));
        }
        Some(GpuChoice::Machine) => {
            let sharing = machine(&store::all())?;
            measure(scenario, sharing.execution)?;
            measured = Some(sharing);
        }
    }
    // As the simulator does.
    let timeslice = scenario.config.tuning.timeslice;
    scenario.config.gpu = scenario.gpu.gpu(timeslice);
    scenario.config.divisible = scenario.gpu.divisible(timeslice);
    Ok(measured)
}

fn share(scenario: &mut Scenario, (slice, switch): (Span, Span)) {
    scenario.gpu.model = GpuModel::Runlist;
    scenario.gpu.switch = switch;
    scenario.config.tuning.timeslice = slice;
}

fn measure(scenario: &mut Scenario, execution: Execution) -> anyhow::Result<()> {
    let known = |us: f64| span(us).context("the profile has times that cannot be; run `takt profile` again");
    match execution {
        Execution::SideBySide => bail!(
            "processes run side by side on this GPU, as on a renderer on the CPU: nothing can be promised there; \
             choose --gpu in-order or --gpu time-shared"
        ),
        Execution::InOrder { switch_us } => {
            scenario.gpu.model = GpuModel::InOrder;
            scenario.gpu.switch = known(switch_us)?;
        }
        Execution::TimeShared { slice_us, switch_us } => {
            share(scenario, (known(slice_us)?.max(Span::from_ns(1)), known(switch_us)?));
        }
    }
    Ok(())
}

/// How processes share the GPU of this machine. It is opened only if several are known.
fn machine(stores: &[PathBuf]) -> anyhow::Result<Sharing> {
    const REMEDY: &str = "no profile says how processes share the GPU; run `takt profile` first";
    let mut known = Vec::new();
    for place in stores {
        let shelves = Shelf::list(place).with_context(|| format!("cannot read {}", place.display()))?;
        for shelf in shelves {
            known.extend(shelf.sharing()?);
        }
    }
    match known[..] {
        [] => bail!(REMEDY),
        [only] => Ok(only),
        _ => {
            let bench =
                Bench::open(Place::Auto).context("several GPUs have profiles; cannot tell which it is")?;
            store::sharing(stores, &bench.gpu(), &bench.driver())?.context(REMEDY)
        }
    }
}

/// The GPU in words.
pub(super) fn name(config: &Config) -> String {
    let us = |span: Span| super::us(span);
    let gpu = match config.gpu {
        Gpu::InOrder => "in-order".to_owned(),
        Gpu::Preemptive => "preemptive".to_owned(),
        Gpu::TimeShared { slice, switch } => {
            format!("time-shared: turns of {} us, {} us per switch", us(slice), us(switch))
        }
    };
    match config.divisible {
        Some(Divisible { slice, quantum, .. }) if quantum > Span::ZERO => {
            format!("{gpu}; divisible work in turns of {} us and pieces of {} us", us(slice), us(quantum))
        }
        Some(Divisible { slice, .. }) => format!("{gpu}; divisible work in turns of {} us", us(slice)),
        None => gpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_read() {
        let figures =
            |slice, switch| GpuChoice::TimeShared(Some((Span::from_us(slice), Span::from_us(switch))));
        for (text, choice) in [
            ("in-order", GpuChoice::InOrder),
            ("machine", GpuChoice::Machine),
            ("time-shared", GpuChoice::TimeShared(None)),
            ("time-shared:1024,160", figures(1024, 160)),
            ("time-shared:500,0", figures(500, 0)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
        }
        for text in ["", "any", "time-shared:", "time-shared:5", "time-shared:0,1", "time-shared:1,-1"] {
            assert!(text.parse::<GpuChoice>().unwrap_err().contains("SLICE_US"), "{text}");
        }
    }
}
