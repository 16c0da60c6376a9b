//! Calls through hooks, and the table that measuring leaves.

use std::path::Path;

use takt_gl::{measure, settings};

/// Calls a hook of the driver that `find` knows.
macro_rules! call {
    ($name:ident($($arg:expr),*)) => {{
        let name = std::ffi::CString::new(stringify!($name)).expect("as this test writes it");
        // SAFETY: a string.
        let hook = takt_gl::entry::offer(&name, unsafe { find(name.as_ptr()) });
        // SAFETY: a hook has the signature of its name.
        let function: takt_gl::entry::kind::$name = unsafe { std::mem::transmute(hook) };
        // SAFETY: handles of this test, and room for what is written.
        unsafe { function($($arg),*) }
    }};
}
pub(crate) use call;

/// A column of the table that groups were written to.
pub(crate) fn column(table: &Path, name: &str) -> Vec<String> {
    let header = measure::header(&settings::settings().choice);
    let place = header.split(',').position(|column| column.trim() == name).expect("as this test writes it");
    let table = std::fs::read_to_string(table).unwrap_or_default();
    table.lines().map(|row| row.split(',').nth(place).expect("a whole row").to_owned()).collect()
}

/// The same of numbers.
pub(crate) fn numbers(table: &Path, name: &str) -> Vec<f64> {
    column(table, name).iter().map(|cell| cell.parse().expect("a number")).collect()
}
