//! The console with a real daemon, over real sockets.

#![forbid(unsafe_code)]

mod browser;
mod crowds;
mod daemon;
mod http;
mod prometheus;
mod reconnects;
mod refused;
mod seen;
mod steered;
