//! All tests in one program, which is linked once, but for those that count allocations.

mod bounds;
mod divisible;
mod hostile_operations;
mod late_groups;
mod random_operations;
mod reserves;
