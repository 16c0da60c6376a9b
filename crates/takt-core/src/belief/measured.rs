//! How long groups took, by how long they were predicted to take.
//!
//! Measurements count by estimate, so that neither the short groups of an app nor its slow start
//! say anything about its long groups.

use super::tuning::{CONFIRMATIONS_MAX, Tuning};
use crate::time::{Estimate, Span};

/// Estimates with the same number of binary digits, in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Class(usize);

/// No digits, up to 64 of them.
const CLASSES: usize = 65;

impl Class {
    pub(super) fn of(estimate: Estimate) -> Self {
        Self((64 - estimate.span().as_ns().leading_zeros()) as usize)
    }
}

/// The longest times of each class, longest first.
#[derive(Clone, Debug)]
pub(super) struct Measured([[Span; CONFIRMATIONS_MAX]; CLASSES]);

impl Measured {
    pub(super) const fn new() -> Self {
        Self([[Span::ZERO; CONFIRMATIONS_MAX]; CLASSES])
    }

    pub(super) fn add(&mut self, class: Class, cost: Span) {
        let mut carried = cost;
        for longest in &mut self.0[class.0] {
            let longer = carried.max(*longest);
            carried = carried.min(*longest);
            *longest = longer;
        }
    }

    /// The longest time that enough groups of this class, or of one just below, took.
    pub(super) fn confirmed(&self, class: Class, tuning: &Tuning) -> Span {
        let rank = tuning.confirmations.clamp(1, CONFIRMATIONS_MAX) - 1;
        let near = &self.0[class.0.saturating_sub(tuning.classes_below)..=class.0];
        near.iter().map(|longest| longest[rank]).max().unwrap_or(Span::ZERO)
    }
}
