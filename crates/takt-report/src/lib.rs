//! Turns results into pages people look at.
#![forbid(unsafe_code)]
