//! All tests in one program, which is linked once.

#[path = "../support/mod.rs"]
mod support;

mod asked;
mod belief;
mod compute;
mod contracts;
mod fuzzed;
mod hostile;
mod hung;
mod idle_swaps;
mod limits;
mod live;
mod policies;
mod processes;
mod recorded;
mod reload;
mod replayed;
mod rig;
mod rights;
mod sessions;
mod shares;
mod stated;
mod steered;
mod supervised;
mod turns;
mod users;
