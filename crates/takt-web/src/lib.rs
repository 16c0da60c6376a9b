//! The console of the daemon: a page for browsers, the same in JSON, and counters for Prometheus.
//!
//! It is a tool as `takt top` is: it asks the daemon over its control socket, as the user that runs it. All that it may
//! do there, the daemon decides.
//!
//! * [`access`]: tokens, hosts and origins: which requests are answered at all.
//! * [`api`]: the types of all answers, and their schema.
//! * `args`: the command line.
//! * `assets`: the page.
//! * `board`: asks the daemon every second, and keeps what pages are shown.
//! * `changes`: what was changed from here, and how to undo it.
//! * `connections`: the HTTP server, with a bound on connections.
//! * `content`: bodies of answers.
//! * [`history`]: percentiles of minutes and hours, in bounded memory.
//! * `routes`: which request gets which answer.
//! * `timeline`: what the GPU did in the last seconds, as it happens.
//! * `what_if`: simulations of scenarios that a page sends.

#![forbid(unsafe_code)]

pub mod access;
pub mod api;
mod args;
mod assets;
mod board;
mod changes;
mod connections;
mod console;
mod content;
pub mod history;
mod routes;
mod timeline;
mod what_if;

pub use args::Args;
pub use console::{Console, Serving, Settings};
