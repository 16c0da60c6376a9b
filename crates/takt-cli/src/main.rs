//! The `takt` command.
#![forbid(unsafe_code)]
fn main() {}
