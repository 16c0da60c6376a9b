//! Sums of fractions, compared with one: exact, and fast unless the sum is very close to one.
//!
//! * **Method.** Each fraction is rounded down to a multiple of 2⁻ˢ; the error of the sum is below
//!   one such unit per fraction, which decides nearly always. Where it does not, the sum is
//!   computed as one fraction of long integers.
//! * **Cost.** One division per fraction; the exact way takes n² steps on words for n fractions.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Most fractional bits of a rounded share: with [`takt_core::limits::APPS_MAX`] shares of at most
/// one, the sum stays below 2⁶³.
const SHIFT_MAX: u32 = 50;
const _: () = assert!(takt_core::limits::APPS_MAX <= 1 << (62 - SHIFT_MAX));

/// Fractional bits with which no numerator up to `largest` is shifted out of its word.
#[inline]
pub(super) fn shift_for(largest: u64) -> u32 {
    largest.leading_zeros().min(SHIFT_MAX)
}

/// How `Σ numerator / denominator` compares with one. Denominators must not be zero, and there
/// may be [`takt_core::limits::APPS_MAX`] fractions at most.
pub(super) fn compare_sum_to_one(fractions: impl Iterator<Item = (u64, u64)> + Clone) -> Ordering {
    let largest = fractions.clone().map(|(numerator, _)| numerator).max().unwrap_or(0);
    let shift = shift_for(largest);
    let (mut low, mut count) = (0u64, 0u64);
    for (numerator, denominator) in fractions.clone() {
        if numerator > denominator {
            return Ordering::Greater;
        }
        low += (numerator << shift) / denominator;
        count += 1;
    }
    let one = 1u64 << shift;
    if low > one {
        Ordering::Greater
    } else if low + count <= one {
        Ordering::Less
    } else {
        compare_exactly(fractions)
    }
}

/// The same with long integers.
fn compare_exactly(fractions: impl Iterator<Item = (u64, u64)>) -> Ordering {
    // The sum is `top / bottom`; both in words, least significant first.
    let (mut top, mut bottom) = (vec![0u64], vec![1u64]);
    for (numerator, denominator) in fractions {
        let mut addend = bottom.clone();
        multiply(&mut addend, numerator);
        multiply(&mut top, denominator);
        add(&mut top, &addend);
        multiply(&mut bottom, denominator);
    }
    trim(&mut top);
    trim(&mut bottom);
    let by_length = top.len().cmp(&bottom.len());
    by_length.then_with(|| top.iter().rev().cmp(bottom.iter().rev()))
}

fn multiply(number: &mut Vec<u64>, factor: u64) {
    let mut carry = 0u64;
    for word in number.iter_mut() {
        (*word, carry) = split(u128::from(*word) * u128::from(factor) + u128::from(carry));
    }
    if carry > 0 {
        number.push(carry);
    }
}

fn add(number: &mut Vec<u64>, addend: &[u64]) {
    if number.len() < addend.len() {
        number.resize(addend.len(), 0);
    }
    let mut carry = 0u64;
    let rest = addend.iter().chain(core::iter::repeat(&0));
    for (word, other) in number.iter_mut().zip(rest) {
        (*word, carry) = split(u128::from(*word) + u128::from(*other) + u128::from(carry));
    }
    if carry > 0 {
        number.push(carry);
    }
}

fn trim(number: &mut Vec<u64>) {
    while number.last() == Some(&0) {
        number.pop();
    }
}

/// Low and high word.
#[expect(clippy::cast_possible_truncation, reason = "cutting words out is the purpose")]
const fn split(wide: u128) -> (u64, u64) {
    (wide as u64, (wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(fractions: &[(u64, u64)]) -> Ordering {
        compare_sum_to_one(fractions.iter().copied())
    }

    #[test]
    fn one_is_told_from_nearly_one() {
        assert_eq!(compare(&[]), Ordering::Less);
        assert_eq!(compare(&[(1, 3), (1, 3), (1, 3)]), Ordering::Equal);
        let large = 1u64 << 48;
        assert_eq!(compare(&[(large - 1, large), (1, large)]), Ordering::Equal);
        assert_eq!(compare(&[(large - 1, large), (1, large - 1)]), Ordering::Greater);
        assert_eq!(compare(&[(large - 2, large - 1), (1, large)]), Ordering::Less);
        assert_eq!(compare(&[(2, 1)]), Ordering::Greater);
    }

    #[test]
    fn thousands_of_fractions_are_exact() {
        let mut many = vec![(1, 4096); 4096];
        assert_eq!(compare(&many), Ordering::Equal);
        many[0] = (1, 4097);
        assert_eq!(compare(&many), Ordering::Less);
        many[1] = (1, 4094);
        assert_eq!(compare(&many), Ordering::Greater);
    }

    proptest! {
        /// Small denominators have a common one that fits into a word.
        #[test]
        fn agrees_with_a_common_denominator(set in proptest::collection::vec((0u64..8, 1u64..13), 0..8)) {
            const COMMON: u64 = 27_720;
            let sum: u64 = set.iter().map(|(a, b)| a * (COMMON / b)).sum();
            prop_assert_eq!(compare(&set), sum.cmp(&COMMON));
            prop_assert_eq!(compare_exactly(set.iter().copied()), sum.cmp(&COMMON));
        }
    }
}
