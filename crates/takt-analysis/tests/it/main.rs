//! All tests in one program, which is linked once.

#[path = "../schedules/mod.rs"]
mod schedules;

mod golden_analysis;
mod soundness;
