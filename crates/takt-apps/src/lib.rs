//! Small GL ES apps to schedule, measure and show.
//!
//! Each app is one module of [`apps`] and one program of its name. They share a stage (where
//! they draw: a window of X11 or Wayland, or an off-screen surface), a loop that releases
//! frames on a grid and measures them, and a canvas on which textures are painted at start.
//!
//! What a frame shows depends on its number alone: two runs give the same pixels on the same driver.

#![deny(unsafe_code)]

pub mod apps;
mod font;
mod gfx;
mod load;
mod matrix;
mod options;
mod pace;
mod paint;
mod picture;
mod run;
mod shape;
mod stage;
mod stats;
mod sys;
