//! How processes share the GPU: whether they take turns, how long a turn is, what a change costs.

pub mod analysis;
