//! All tests in one program, which is linked once.

mod common;
mod off_screen;
mod windows;
