//! Questions whose answers we may have taken from the program, or change.
//!
//! A scheduled program is told that there are no formats of program binaries: it then keeps none, and
//! compiles its sources at each start, which cutting needs.
//!
//! GL tells once whether the GPU's clock has jumped. Where time stamps of ours asked in between,
//! the program is told when it asks.

use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::session::session;
use crate::{gl, guard};

macro_rules! asked {
    ($( $name:ident writes $kind:ty as $yes:expr, $no:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(what: u32, values: Ptr) {
                if what == gl::PROGRAM_BINARY_FORMATS && keeps_no_binaries() {
                    // There are none to write.
                    return;
                }
                // SAFETY: the program's own call.
                unsafe { real::$name(what, values) };
                if what == gl::NUM_PROGRAM_BINARY_FORMATS && !values.is_null() && keeps_no_binaries() {
                    // SAFETY: the driver has just written a value of this type there.
                    unsafe { values.cast::<$kind>().write($no) };
                }
                if what == gl::GPU_DISJOINT_EXT
                    && !values.is_null()
                    && current::with(State::take_disjoint) == Some(true)
                {
                    // SAFETY: the driver has just written a value of this type there.
                    unsafe { values.cast::<$kind>().write($yes) };
                }
            }
        )*
        super::offered!($($name)*);
    };
}

asked! {
    glGetIntegerv writes i32 as 1, 0;
    glGetInteger64v writes i64 as 1, 0;
    glGetInteger64vEXT writes i64 as 1, 0;
    glGetBooleanv writes u8 as 1, 0;
    glGetFloatv writes f32 as 1.0, 0.0;
}

/// Whether the program is to keep no binaries of its programs.
fn keeps_no_binaries() -> bool {
    guard::shielded(|| session().is_wanted()) == Some(true)
}
