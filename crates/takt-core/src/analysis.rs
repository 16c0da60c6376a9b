//! What can be promised before anything runs.
