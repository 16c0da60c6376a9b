//! A CUDA driver without a GPU: a shared object with the names of the real one, for tests.
//!
//! Programs and Takt's hook load it as they load NVIDIA's. Streams are threads, device memory is memory of the
//! process, and kernels are functions of `kernels` that a program names in PTX text. What matters for a scheduler
//! is as the vendor documents it: order of streams, events, both default streams, capture and graphs, contexts, what
//! is forbidden during a capture, lazy loading, and `cuGetProcAddress`. Nothing of it is fit for use.
//!
//! * `world`: tables of handles, and the one lock. `queue`: streams and what they execute. `gpu`: how long work
//!   takes, and turns among processes.
//! * One file for each part of the interface: `device`, `context`, `stream`, `event`, `memory`, `module`,
//!   `launch`, `capture`, `graph`, `address`.
//!
//! `witness` has what CUPTI has to tell of launches.
//!
//! Environment variables change how it behaves:
//!
//! | variable | then |
//! | --- | --- |
//! | `TAKT_FAKE_GPU=FILE` | processes that name the same file take turns on one GPU |
//! | `TAKT_FAKE_SLICE_US=N` | how long such a turn lasts (2000) |
//! | `TAKT_FAKE_ITERATION_NS=N` | how long an iteration of `spin` takes (20) |
//! | `TAKT_FAKE_NULL=1` | launches do nothing and cost next to nothing, to measure what is above |
//! | `TAKT_FAKE_DEVICES=N` | how many devices there are (1); with 0, `cuInit` fails as without a GPU |
//! | `TAKT_FAKE_VERSION=N` | the version that `cuDriverGetVersion` tells (13000) |
//! | `TAKT_FAKE_HIDDEN=1` | `cuGetProcAddress` gives other addresses than `dlsym` |
//! | `TAKT_FAKE_LOG=FILE` | a line for each piece of work that was executed is added to the file |

#![allow(non_snake_case, reason = "names of the API")]
#![allow(clippy::missing_safety_doc, reason = "what each function demands is said by the vendor")]
#![allow(clippy::too_many_arguments, reason = "signatures of the API")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "callers answer for all of a call at once")]

#[macro_use]
mod macros;
mod address;
mod capture;
mod context;
mod device;
mod event;
mod gpu;
mod graph;
mod kernels;
mod launch;
mod memory;
mod module;
mod queue;
mod stream;
mod witness;
mod world;

use takt_cuda_api::result;

/// How a call ends.
type Answer = Result<(), i32>;

/// The number of an answer.
fn code(answer: Answer) -> i32 {
    match answer {
        Ok(()) => result::SUCCESS,
        Err(code) => code,
    }
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Writes to where a caller wants something; an error if that is nowhere.
///
/// # Safety
///
/// `to` is null or points to room for it.
unsafe fn put<T>(to: takt_cuda_api::Ptr, what: T) -> Answer {
    if to.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: up to the caller.
    unsafe { to.cast::<T>().write_unaligned(what) };
    Ok(())
}
