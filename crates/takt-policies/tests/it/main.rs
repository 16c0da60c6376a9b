//! All tests in one program, which is linked once, but for those that count allocations.

mod bounds;
mod divisible;
mod late_groups;
mod random_operations;
mod reserves;
