//! Schedules live clients, in three rooms.
//!
//! * [`rt`]: what the real-time thread touches.
//! * [`control`]: the socket, the list of clients and the configuration, on a thread that may block.
//! * [`observe`]: what the daemon reports to people, files and tools.
//!
//! The head of each room says what must not be in it. `rt` uses neither of the others.
//! Outside of them is [`tool`], the other end of the control socket: what tools ask by.

#![forbid(unsafe_code)]

pub mod control;
pub mod observe;
pub mod rt;
pub mod tool;
