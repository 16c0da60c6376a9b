//! Single values of a configuration: ranges and units.

use rustix::thread::CpuSet;
use takt_core::{Gpu, Refresh, Span};

use crate::control::mistake::{Mistake, mistake};

/// Longest time in a configuration.
const MS_MAX: f64 = 60_000.0;

/// A value within a range, or the remedy.
fn within(key: &str, value: f64, range: std::ops::RangeInclusive<f64>, remedy: &str) -> Result<f64, Mistake> {
    if range.contains(&value) { Ok(value) } else { Err(mistake(key, value, remedy)) }
}

/// A number that is not negative, rounded.
fn rounded(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let whole = value.round() as u64;
    whole
}

/// The same, of a value that was found to be small.
fn rounded_u32(value: f64) -> u32 {
    u32::try_from(rounded(value)).unwrap_or(u32::MAX)
}

/// Milliseconds as a span.
pub(crate) fn ms(key: &str, value: f64) -> Result<Span, Mistake> {
    let ms = within(key, value, 0.0..=MS_MAX, "use 0 to 60000 ms")?;
    Ok(Span::from_ns(rounded(ms * 1e6)))
}

/// Milliseconds as a span, if they are given.
pub(crate) fn ms_if(key: &str, value: Option<f64>) -> Result<Option<Span>, Mistake> {
    value.map(|value| ms(key, value)).transpose()
}

/// How many groups may be in flight.
pub(crate) fn mpcg(value: u32) -> Result<u32, Mistake> {
    if (1..=64).contains(&value) { Ok(value) } else { Err(mistake("mpcg", value, "use 1 to 64")) }
}

/// Longest delay by less important apps; it may be infinite.
pub(crate) fn blocking(value: f64) -> Result<Span, Mistake> {
    if value == f64::INFINITY { Ok(Span::FOREVER) } else { ms("max_blocking_ms", value) }
}

/// Longest group, if it is given; zero stands for no limit.
pub(crate) fn slice(value: Option<f64>) -> Result<Option<Span>, Mistake> {
    let span = ms_if("max_slice_ms", value)?;
    Ok(span.map(|span| if span == Span::ZERO { Span::FOREVER } else { span }))
}

/// A rate in millihertz, if it is given.
pub(crate) fn rate(key: &str, hz: Option<f64>) -> Result<Option<u32>, Mistake> {
    let rate = |hz| within(key, hz, 0.001..=1000.0, "use a rate from 0.001 to 1000");
    Ok(hz.map(rate).transpose()?.map(|hz| rounded_u32(hz * 1000.0)))
}

/// The refresh rate of a display.
pub(super) fn refresh(hz: Option<f64>) -> Result<Refresh, Mistake> {
    let mhz = rate("refresh_hz", hz)?.unwrap_or(60_000);
    Refresh::from_mhz(mhz).ok_or_else(|| mistake("refresh_hz", mhz / 1000, "use 1 to 1000"))
}

/// A factor of 1 to 10 in thousandths.
pub(super) fn permille(key: &str, factor: f64) -> Result<u32, Mistake> {
    Ok(rounded_u32(within(key, factor, 1.0..=10.0, "use 1 to 10")? * 1000.0))
}

/// A share of a span.
pub(super) fn share(value: f64, whole: Span) -> Result<Span, Mistake> {
    if value > 0.0 && value <= 1.0 {
        return Ok(Span::from_ns(rounded(whole.as_ns() as f64 * value)));
    }
    Err(mistake("share", value, "use more than 0, and 1 at most"))
}

/// A share of the GPU that may be zero, in millionths.
pub(super) fn share_ppm(key: &str, value: f64) -> Result<u64, Mistake> {
    Ok(rounded(within(key, value, 0.0..=1.0, "use 0 to 1")? * 1e6))
}

/// How long to poll, in microseconds. Polling for about twice as long as a wake-up takes never costs
/// much more than the better choice would have; on a single processor nothing can arrive meanwhile.
pub(super) fn spin(key: &str, value: Option<u32>) -> Result<u32, Mistake> {
    let several = || std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let us = value.unwrap_or_else(|| if several() { 50 } else { 0 });
    if us > 1000 { Err(mistake(key, us, "use 0 to 1000")) } else { Ok(us) }
}

/// The number of a processor, within what the system can name.
pub(super) fn processor(number: u32) -> Result<usize, Mistake> {
    let known = usize::try_from(number).ok().filter(|number| *number < CpuSet::MAX_CPU);
    known.ok_or_else(|| mistake("processor", number, format!("use 0 to {}", CpuSet::MAX_CPU - 1)))
}

/// Longest time to wake up, in microseconds; none if it is infinite.
pub(super) fn wake(us: f64) -> Result<Option<u32>, Mistake> {
    if us == f64::INFINITY {
        return Ok(None);
    }
    Ok(Some(rounded_u32(within("wake_us", us, 0.0..=10_000.0, "use 0 to 10000, or inf")?.floor())))
}

/// Microseconds of a slice.
pub(super) fn slice_us(key: &str, value: f64) -> Result<Span, Mistake> {
    Ok(Span::from_ns(rounded(within(key, value, 1.0..=1e6, "use 1 to 1000000")? * 1e3)))
}

/// Microseconds of a piece, which may be none.
pub(super) fn piece_us(key: &str, value: f64) -> Result<Span, Mistake> {
    Ok(Span::from_ns(rounded(within(key, value, 0.0..=1e6, "use 0 to 1000000")? * 1e3)))
}

/// A GPU whose processes take turns, with times in microseconds.
pub fn time_shared(slice_us: f64, switch_us: f64) -> Result<Gpu, Mistake> {
    let slice = within("gpu.slice_us", slice_us, 1.0..=1e6, "use 1 to 1000000")?;
    let switch = within("gpu.switch_us", switch_us, 0.0..=1e5, "use 0 to 100000")?;
    let span = |us: f64| Span::from_ns(rounded(us * 1e3));
    Ok(Gpu::TimeShared { slice: span(slice), switch: span(switch) })
}
