//! All tests in one program, which is linked once.

mod belief;
mod divisible;
mod edf;
mod papers;
mod runlist;
mod shares;
mod special_cases;
mod synchronous;
mod thesis;
mod timegraph;
mod two_displays;
