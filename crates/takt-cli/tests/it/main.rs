//! All tests in one program, which is linked once.

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod browsers;
mod calibrate;
mod chaos;
mod command;
mod cuda;
mod demo;
mod desktop;
mod evaluation;
mod families;
mod first_commands;
mod import;
mod on_demand;
mod paced;
mod packaging;
mod passing;
mod priorities;
mod programs;
mod replay;
mod run;
mod scheduled;
mod sealed;
mod seen;
mod serve;
mod slicing;
mod survival;
mod sweep;
mod waits;
