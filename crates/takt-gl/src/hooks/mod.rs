//! The calls that are looked at.

use crate::entry::{Code, Id};

/// What programs get in place of the driver's function.
pub fn of(id: Id) -> Option<Code> {
    let _ = id;
    None
}
