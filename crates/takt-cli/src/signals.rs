//! Signals that end or renew a command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;

/// A flag that any of these signals sets.
pub(crate) fn flag(signals: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&flag)).context("cannot catch signals")?;
    }
    Ok(flag)
}
