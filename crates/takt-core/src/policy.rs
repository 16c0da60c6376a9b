//! The rules that pick the next command group.
