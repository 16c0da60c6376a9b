//! Questions whose answers we may have taken from the program.
//!
//! GL tells once whether the GPU's clock has jumped. Where time stamps of ours asked in between,
//! the program is told when it asks.

use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};

macro_rules! asked {
    ($( $name:ident writes $kind:ty as $yes:expr; )*) => {
        $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(what: u32, values: Ptr) {
                // SAFETY: the program's own call.
                unsafe { real::$name(what, values) };
                if what == crate::gl::GPU_DISJOINT_EXT
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
    glGetIntegerv writes i32 as 1;
    glGetInteger64v writes i64 as 1;
    glGetInteger64vEXT writes i64 as 1;
    glGetBooleanv writes u8 as 1;
    glGetFloatv writes f32 as 1.0;
}
