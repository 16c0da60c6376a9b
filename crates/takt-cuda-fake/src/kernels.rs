//! Kernels: functions by the names that programs give them in PTX text.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::gpu;

/// What a kernel does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel {
    /// `spin(out, n)`: so many iterations.
    Spin,
    /// `append(log, value)`: counts up `log[0]` and writes the value there.
    Append,
    /// `add(a, b, c, n)`: `c[i] = a[i] + b[i]`, of 32 bits each.
    Add,
    /// `await(flag)`: waits until a number of 32 bits is not zero, on the GPU.
    Await,
    /// `raise(flag)`: writes 1.
    Raise,
    /// Any other: nothing, for a moment.
    Other,
}

/// Longest time that `await` waits, so that no test hangs for ever.
const AWAIT_MAX: Duration = Duration::from_secs(60);

impl Kernel {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "spin" => Self::Spin,
            "append" => Self::Append,
            "add" => Self::Add,
            "await" => Self::Await,
            "raise" => Self::Raise,
            _ => Self::Other,
        }
    }
}

/// Executes a kernel.
pub(crate) fn run(kernel: Kernel, parameters: &[u64]) {
    let parameter = |index: usize| parameters.get(index).copied().unwrap_or(0);
    match kernel {
        Kernel::Spin => gpu::iterations(parameter(1)),
        Kernel::Append => {
            let count = load(parameter(0), false) + 1;
            store(parameter(0) + 4 * count, parameter(1), false);
            store(parameter(0), count, false);
        }
        Kernel::Add => {
            for at in (0..parameter(3)).map(|index| 4 * index) {
                let sum = load(parameter(0) + at, false).wrapping_add(load(parameter(1) + at, false));
                store(parameter(2) + at, sum, false);
            }
        }
        Kernel::Await => gpu::work(AWAIT_MAX, || load(parameter(0), false) == 0),
        Kernel::Raise => store(parameter(0), 1, false),
        Kernel::Other => gpu::iterations(100),
    }
}

/// Reads a number of a program.
pub(crate) fn load(at: u64, wide: bool) -> u64 {
    if wide {
        // SAFETY: the program says that there is a number.
        unsafe { AtomicU64::from_ptr(at as *mut u64) }.load(Ordering::SeqCst)
    } else {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }.load(Ordering::SeqCst).into()
    }
}

/// Writes one.
#[expect(clippy::cast_possible_truncation, reason = "a number of 32 bits is asked for")]
pub(crate) fn store(at: u64, value: u64, wide: bool) {
    if wide {
        // SAFETY: the program says that there is a number.
        unsafe { AtomicU64::from_ptr(at as *mut u64) }.store(value, Ordering::SeqCst);
    } else {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }.store(value as u32, Ordering::SeqCst);
    }
}

/// The kernels of PTX text, each with the sizes of its parameters.
pub(crate) fn entries(text: &str) -> Vec<(String, Vec<usize>)> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(".entry") {
        rest = &rest[at + ".entry".len()..];
        let name: String =
            rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let body = rest.find(['(', '{']).map_or("", |at| &rest[at..]);
        let list = body.strip_prefix('(').and_then(|body| body.split(')').next()).unwrap_or("");
        let sizes = list.split(',').filter_map(|parameter| {
            let kind = parameter.split_whitespace().find(|word| word.len() > 1 && *word != ".param")?;
            let bits = kind.trim_start_matches(|c: char| !c.is_ascii_digit());
            bits.parse::<usize>().ok().map(|bits| bits / 8)
        });
        all.push((name, sizes.collect()));
    }
    all
}
