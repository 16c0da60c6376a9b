//! The gain of every possible knot of one feature under one parent, in time linear in the rows.
//!
//! A step of the forward pass adds `p·h(x-t)` and `p·h(t-x)` for a parent term `p`, a feature `x`
//! and a knot `t`. With `p` in the model these two span the same functions as `p·x` and
//! `b = p·h(x-t)`, and `p·x` does not depend on the knot. So what has to be known of each knot are
//! three numbers: the squared length of `b` outside the basis, its product with the residual, and
//! its product with the part of `p·x` outside the basis.
//!
//! From one knot to the next smaller one all products with `b` follow from sums over the rows
//! above (Friedman 1991, section 3.9), here as increments and never as differences of large sums.
//! When the basis grows by a column `q`, each number changes by a product of `q·b` with something
//! that does not depend on the knot. So the numbers are kept from step to step, and a step costs
//! one pass over the rows for each new column instead of one for every column.

use super::data::Column;
use super::linalg::dot;

/// A gain must exceed another by this factor to count as larger, lest rounding decides ties.
pub(super) const CLEARLY: f64 = 1.0 + 1e-9;

/// Basis columns that are taken into account in one pass over the rows.
pub(super) const LANES: usize = 4;

/// All knots of one feature under one parent.
pub(super) struct Scan {
    pub(super) variable: usize,
    linear: Linear,
    knots: Vec<Knot>,
}

/// The product of parent and feature, without a knot.
#[derive(Default)]
struct Linear {
    /// Squared length after its mean is taken off.
    centred: f64,
    /// Squared length outside the basis.
    norm: f64,
    /// Product with the residual.
    gain: f64,
}

/// The hinge above one knot.
struct Knot {
    /// Place in the sorted feature; rows before it have larger values.
    rank: u32,
    /// Squared length after its mean is taken off.
    centred: f64,
    /// Squared length outside the basis.
    norm: f64,
    /// Product with the residual.
    gain: f64,
    /// Product with the linear term, both outside the basis.
    cross: f64,
}

/// Which rows may carry a knot.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    /// Rows between knots.
    pub(super) min: usize,
    /// Rows without knots at each end.
    pub(super) end: usize,
}

/// The best that a scan offers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Offer {
    /// By how much the residual sum of squares falls.
    pub(super) gain: f64,
    /// Where the knot is, as a rank; none for a linear term.
    pub(super) knot: Option<u32>,
    /// Whether the linear term is new, so that both hinges are needed.
    pub(super) linear_is_new: bool,
}

/// What an offer must keep to.
#[derive(Clone, Copy)]
pub(super) struct OfferBounds {
    /// Smallest part of a hinge outside the basis.
    pub(super) part_min: f64,
    /// Smallest part of a linear term outside the basis.
    pub(super) linear_part_min: f64,
    /// Its smallest squared length there.
    pub(super) linear_norm_min: f64,
    /// Largest gain that is believed.
    pub(super) gain_max: f64,
}

/// Up to `L` basis columns times the parent, row by row.
pub(super) struct Lanes<const L: usize> {
    pub(super) weights: Vec<[f64; L]>,
    /// The coordinate of the response that each column took out of the residual.
    pub(super) response: [f64; L],
}

impl Scan {
    /// Sums for an empty basis, but with the given residual.
    pub(super) fn new(
        variable: usize,
        column: &Column,
        parent: &[f64],
        residual: &[f64],
        spans: Spans,
    ) -> Self {
        let product: Vec<f64> = parent.iter().zip(&column.values).map(|(p, x)| p * x).collect();
        let total = dot(&product, &product);
        let sum: f64 = product.iter().sum();
        let centred = total - sum * sum / product.len() as f64;
        let linear = Linear { centred, norm: total, gain: dot(&product, residual) };
        let ranks = if column.linear_only { Vec::new() } else { knot_ranks(column, parent, spans) };
        let knots = measure(column, parent, residual, &ranks);
        Self { variable, linear, knots }
    }

    /// Takes further basis columns into account.
    pub(super) fn advance<const L: usize>(&mut self, column: &Column, lanes: &Lanes<L>) {
        let mut along = [0.0; L];
        for (weights, x) in lanes.weights.iter().zip(&column.values) {
            for lane in 0..L {
                along[lane] += weights[lane] * x;
            }
        }
        self.linear.norm -= dot(&along, &along);
        self.linear.gain -= dot(&along, &lanes.response);
        let (mut sums, mut products) = ([0.0; L], [0.0; L]);
        let (mut from, mut above) = (0, 0.0);
        for knot in &mut self.knots {
            let to = knot.rank as usize;
            let at = column.sorted[to];
            for lane in 0..L {
                products[lane] += (above - at) * sums[lane];
            }
            for (row, x) in column.order[from..to].iter().zip(&column.sorted[from..to]) {
                let weights = &lanes.weights[*row as usize];
                for lane in 0..L {
                    sums[lane] += weights[lane];
                    products[lane] += weights[lane] * (x - at);
                }
            }
            (from, above) = (to, at);
            for lane in 0..L {
                knot.norm -= products[lane] * products[lane];
                knot.gain -= products[lane] * lanes.response[lane];
                knot.cross -= products[lane] * along[lane];
            }
        }
    }

    /// The best knot, or the linear term if no knot is clearly better.
    ///
    /// Knots beyond the bounds do not count.
    pub(super) fn best(&self, bounds: OfferBounds) -> Option<Offer> {
        let linear = &self.linear;
        let linear_is_new =
            linear.norm > bounds.linear_part_min * linear.centred && linear.norm > bounds.linear_norm_min;
        let (inverse, share) =
            if linear_is_new { (1.0 / linear.norm, linear.gain / linear.norm) } else { (0.0, 0.0) };
        let base = linear.gain * share;
        let mut best = Offer { gain: base, knot: None, linear_is_new };
        // What a hinge has to offer in addition to the linear term.
        let most = bounds.gain_max - base;
        let mut wanted = base * (CLEARLY - 1.0);
        for knot in &self.knots {
            let norm = knot.norm - knot.cross * knot.cross * inverse;
            let gain = knot.gain - knot.cross * share;
            let square = gain * gain;
            if norm > bounds.part_min * knot.centred && square > wanted * norm && square <= most * norm {
                best.gain = base + square / norm;
                best.knot = Some(knot.rank);
                wanted = best.gain * CLEARLY - base;
            }
        }
        (best.gain > 0.0 && best.gain <= bounds.gain_max).then_some(best)
    }

    /// Memory that a scan with so many knots holds.
    pub(super) fn bytes(knots: usize) -> usize {
        size_of::<Self>() + knots.saturating_mul(size_of::<Knot>())
    }
}

/// Ranks of the rows that may carry a knot, from the largest value down.
///
/// Rows above a knot count if the parent is not zero in them, since elsewhere a hinge does nothing;
/// at the lower end all rows count. A knot lies at the row after one that counts: any place up to
/// the next such row gives nearly the same hinge. These are the choices of `earth`, so that results
/// can be compared. Of equal values the first is taken, since the others give the same hinge.
fn knot_ranks(column: &Column, parent: &[f64], spans: Spans) -> Vec<u32> {
    let rows = parent.len();
    let room = rows.saturating_sub(spans.end.saturating_mul(2));
    // What does not fill a span is left free half above and half below.
    let mut next = spans.end.saturating_add((room.saturating_sub(1) % spans.min).div_ceil(2));
    let last = rows.saturating_sub(spans.end);
    let mut ranks = Vec::new();
    let mut above = 0;
    let (mut value, mut rank_of_value) = (f64::INFINITY, 0);
    for ((rank, row), x) in (0_u32..).zip(&column.order).zip(&column.sorted).take(last) {
        if *x < value {
            (value, rank_of_value) = (*x, rank);
        }
        if above == next {
            next = next.saturating_add(spans.min);
            // Nothing lies above the largest value.
            if rank_of_value > 0 && ranks.last() != Some(&rank_of_value) {
                ranks.push(rank_of_value);
            }
        }
        above += usize::from(parent[*row as usize] != 0.0);
    }
    ranks
}

/// Squared lengths of the hinges, and their products with residual and linear term.
fn measure(column: &Column, parent: &[f64], residual: &[f64], ranks: &[u32]) -> Vec<Knot> {
    let rows = parent.len() as f64;
    let mut knots = Vec::with_capacity(ranks.len());
    let (mut squares, mut moments, mut total) = (0.0, 0.0, 0.0);
    // Products with the residual, the linear term and the constant.
    let (mut sums, mut products) = ([0.0; 3], [0.0; 3]);
    let (mut from, mut above) = (0, 0.0);
    for &rank in ranks {
        let to = rank as usize;
        let at = column.sorted[to];
        let step = above - at;
        total += step * (2.0 * moments + step * squares);
        moments += step * squares;
        for (product, sum) in products.iter_mut().zip(&sums) {
            *product += step * sum;
        }
        for (row, x) in column.order[from..to].iter().zip(&column.sorted[from..to]) {
            let (p, r, height) = (parent[*row as usize], residual[*row as usize], x - at);
            squares += p * p;
            moments += p * p * height;
            total += p * p * height * height;
            for (lane, weight) in [p * r, p * p * x, p].into_iter().enumerate() {
                sums[lane] += weight;
                products[lane] += weight * height;
            }
        }
        (from, above) = (to, at);
        let [gain, cross, sum] = products;
        let centred = total - sum * sum / rows;
        knots.push(Knot { rank, centred, norm: total, gain, cross });
    }
    knots
}
