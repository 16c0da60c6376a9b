//! The shared object that CUDA programs load instead of their driver's: `libcuda.so.1`.
//!
//! Everything is in `takt-cuda`; here are only the exported names, those that Takt stands in front of. The loader finds
//! all others in the driver, which this library needs (`build.rs`).

use takt_cuda::class::Class;
use takt_cuda::{driver, entry, hooks};
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

/// What the loader calls when it has loaded the library. Nothing of the driver may be called here.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// What the loader calls when the program ends. The driver may be gone by then.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    takt_cuda::guard::attempted(takt_cuda::facts::write_last);
}

extern "C" fn begin() {
    driver::begin(begin as *const () as Ptr);
    entry::begin(ours().leak());
    takt_cuda::guard::speak_for_panics();
}
