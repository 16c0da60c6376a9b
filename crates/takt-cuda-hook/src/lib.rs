//! The shared object that CUDA programs load instead of their driver's: `libcuda.so.1`.
//!
//! Everything is in `takt-cuda`; here are only the exported names: those that Takt stands in front of, two that
//! `libtakt-cuda` looks for, and one that the driver may. The loader finds all others in the driver, which this library
//! needs (`build.rs`).

use takt_cuda::class::Class;
use takt_cuda::deadlines::{self, Answer, Terms};
use takt_cuda::streams::Stream;
use takt_cuda::{driver, entry, guard, hooks};
use takt_cuda_api::{Id, Ptr, real};

macro_rules! export {
    ($( $name:ident ( $($arg:ident : $ty:ty),* ) ; )*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "names of the API")]
            #[allow(clippy::too_many_arguments, reason = "signatures of the API")]
            unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
                const CLASS: Class = match Class::of(Id::$name) {
                    Some(class) => class,
                    None => panic!("hooked, and of no class"),
                };
                let words = [$(hooks::Word::word($arg)),*];
                // SAFETY: as the program called it.
                let call = || unsafe { real::$name($($arg),*) };
                // SAFETY: these are the arguments.
                unsafe { hooks::through(Id::$name, CLASS, &words, call) }
            }
        )*

        fn ours() -> Vec<(Id, usize)> {
            vec![$((Id::$name, $name as *const () as usize)),*]
        }
    };
}

takt_cuda_api::for_each_hook!(export);

/// What `libtakt-cuda` calls for `cudaStreamDeadlineBegin`; how it ended is an [`Answer`].
#[unsafe(no_mangle)]
extern "C" fn takt_stream_deadline_begin(
    stream: Ptr,
    deadline_us: u32,
    budget_us: u32,
    period_us: i32,
) -> i32 {
    let terms = Terms { deadline_us, budget_us, period_us };
    let begin = || deadlines::begin(Stream::of(stream.addr(), false), terms);
    guard::shielded(begin).unwrap_or(Answer::Unscheduled) as i32
}

/// What `libtakt-cuda` calls for `cudaStreamDeadlineEnd`.
#[unsafe(no_mangle)]
extern "C" fn takt_stream_deadline_end(stream: Ptr) -> i32 {
    let end = || deadlines::end(Stream::of(stream.addr(), false));
    guard::shielded(end).unwrap_or(Answer::Unscheduled) as i32
}

/// What the driver calls at its begin if `CUDA_INJECTION64_PATH` names this library, as under `takt doctor`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "a name of the driver's")]
extern "C" fn InitializeInjection() -> i32 {
    guard::attempted(takt_cuda::witness::begin);
    1
}

/// What the loader calls when it has loaded the library. Nothing of the driver may be called here.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// What the loader calls when the program ends. The driver may be gone by then.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    guard::attempted(takt_cuda::facts::write_last);
}

extern "C" fn begin() {
    driver::begin(begin as *const () as Ptr);
    entry::begin(ours().leak());
    guard::speak_for_panics();
}
