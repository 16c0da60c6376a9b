//! The `takt` command.
fn main() {}
