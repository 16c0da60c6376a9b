//! The forward pass: in each step the pair of hinges that helps most joins the model.

use super::backward::gcv;
use super::data::Prepared;
use super::linalg::{Basis, DEPENDENT};
use super::options::{Options, Parents};
use super::scan::{CLEARLY, LANES, Lanes, Offer, OfferBounds, Scan, Spans};

/// Below this corrected R² a model is worse than useless, and no further step will mend it.
const HOPELESS: f64 = -10.0;

/// Why the forward pass ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stop {
    /// [`Options::max_terms`] was reached.
    Terms,
    /// The best step gained less than [`Options::threshold`].
    SmallGain,
    /// R² came closer to 1 than [`Options::threshold`].
    Fitted,
    /// There was nothing left that could be added.
    Exhausted,
    /// So many terms for so few rows that the model cannot be of use.
    Hopeless,
}

/// A factor in scaled units.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) variable: usize,
    /// The row whose value is the knot; none for a linear factor.
    pub(super) knot_row: Option<usize>,
    /// Whether it rises below its knot.
    pub(super) mirrored: bool,
}

/// A term found by the forward pass.
pub(super) struct Found {
    pub(super) pieces: Vec<Piece>,
    /// Value in every row, in scaled units.
    values: Vec<f64>,
}

/// The state of the search.
pub(super) struct Forward<'a> {
    data: &'a Prepared,
    options: &'a Options,
    pub(super) basis: Basis,
    pub(super) terms: Vec<Found>,
    parents: Vec<Parent>,
    cache_left: usize,
    steps: usize,
    /// Steps that added a term without a knot.
    linear_steps: usize,
    /// What the last step gained.
    last_gain: Option<f64>,
}

/// What is known about a term as a parent.
struct Parent {
    /// Running sums for each feature, if memory allows.
    scans: Option<Vec<Scan>>,
    /// Its number if every step counts as two terms, from 1.
    slot: usize,
    /// Basis columns that these sums take into account.
    done: usize,
    /// Its best offer when last examined.
    gain: f64,
    /// When that was.
    step: usize,
}

/// The best offer of all.
#[derive(Clone, Copy)]
struct Choice {
    parent: usize,
    variable: usize,
    offer: Offer,
}

impl<'a> Forward<'a> {
    /// A model with the intercept only.
    pub(super) fn new(data: &'a Prepared, options: &'a Options) -> Self {
        let mut forward = Self {
            data,
            options,
            basis: Basis::new(&data.response),
            terms: Vec::new(),
            parents: Vec::new(),
            cache_left: options.cache_bytes,
            steps: 0,
            linear_steps: 0,
            last_gain: None,
        };
        let added = forward.add(Vec::new(), vec![1.0; data.rows()]);
        debug_assert!(added, "a constant is independent of nothing");
        forward
    }

    /// Adds terms until there is a reason to stop.
    pub(super) fn run(&mut self) -> Stop {
        let null = self.basis.rss();
        let rows = self.data.rows();
        let limit = self.options.terms_limit(self.data.columns.len());
        let threshold = self.options.threshold;
        loop {
            if 3 + 2 * self.steps > limit {
                return Stop::Terms;
            }
            let Some(choice) = self.search() else { return Stop::Exhausted };
            if choice.offer.gain < threshold * null {
                return Stop::SmallGain;
            }
            if !self.take(choice) {
                return Stop::Exhausted;
            }
            self.steps += 1;
            self.linear_steps += usize::from(choice.offer.knot.is_none());
            self.last_gain = Some(choice.offer.gain);
            let rss = self.basis.rss();
            if rss <= threshold * null || rss <= f64::EPSILON * null {
                return Stop::Fitted;
            }
            let price = self.options.knot_price();
            let corrected = 1.0 - gcv(rss, rows, self.terms.len(), price) / gcv(null, rows, 1, price);
            if corrected < HOPELESS {
                return Stop::Hopeless;
            }
        }
    }

    /// The best offer of all parents that are to be examined.
    fn search(&mut self) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        for parent in self.candidates() {
            let found = self.examine(parent);
            self.parents[parent].step = self.steps;
            self.parents[parent].gain = found.map_or(0.0, |choice| choice.offer.gain);
            best = better(best, found);
        }
        best
    }

    /// The parents to examine, in order of age.
    fn candidates(&self) -> Vec<usize> {
        let newest = match self.options.guards.parents {
            Parents::All => usize::MAX,
            Parents::Older => self.terms.len() + self.linear_steps,
        };
        let allowed = |at: &usize| {
            self.terms[*at].pieces.len() < self.options.degree && self.parents[*at].slot <= newest
        };
        let mut candidates: Vec<usize> = (0..self.terms.len()).filter(allowed).collect();
        if let Some(fast) = self.options.fast {
            candidates.sort_by(|&a, &b| self.parents[b].gain.total_cmp(&self.parents[a].gain));
            let mut ranked: Vec<(f64, usize)> = candidates
                .into_iter()
                .enumerate()
                .map(|(rank, at)| {
                    let age = (self.steps - self.parents[at].step) as f64;
                    (rank as f64 - fast.ageing * age, at)
                })
                .collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            ranked.truncate(fast.parents);
            candidates = ranked.into_iter().map(|(_, at)| at).collect();
            candidates.sort_unstable();
        }
        candidates
    }

    /// The best offer of one parent.
    fn examine(&mut self, parent: usize) -> Option<Choice> {
        let columns = self.basis.len();
        let kept = self.parents[parent].scans.take();
        let fresh = kept.is_none();
        if fresh && !self.reserve(parent) {
            return self.examine_unkept(parent);
        }
        let mut scans = kept
            .unwrap_or_else(|| self.variables(parent).map(|variable| self.scan(parent, variable)).collect());
        self.advance(parent, &mut scans, fresh);
        let choice = scans.iter().fold(None, |best, scan| better(best, self.offer(parent, scan)));
        let parent = &mut self.parents[parent];
        (parent.scans, parent.done) = (Some(scans), columns);
        choice
    }

    /// The best offer of a parent for whose sums there is no memory.
    fn examine_unkept(&self, parent: usize) -> Option<Choice> {
        self.variables(parent).fold(None, |best, variable| {
            let mut scans = [self.scan(parent, variable)];
            self.advance(parent, &mut scans, true);
            better(best, self.offer(parent, &scans[0]))
        })
    }

    fn offer(&self, parent: usize, scan: &Scan) -> Option<Choice> {
        scan.best(self.bounds(parent, scan.variable)).map(|offer| Choice {
            parent,
            variable: scan.variable,
            offer,
        })
    }

    fn bounds(&self, parent: usize, variable: usize) -> OfferBounds {
        let guards = &self.options.guards;
        let part_min = if self.steps < guards.early_steps { guards.early } else { guards.late };
        let gain_max = self.last_gain.map_or(f64::INFINITY, |gain| gain * guards.gain_growth_max);
        let pieces = self.terms[parent].pieces.iter().map(|piece| piece.variable);
        let unit: f64 = pieces.chain([variable]).map(|at| self.data.columns[at].range).product();
        OfferBounds {
            part_min: part_min.max(DEPENDENT),
            linear_part_min: guards.linear.max(DEPENDENT),
            linear_norm_min: guards.linear_length / (unit * unit),
            gain_max,
        }
    }

    /// Features that may be multiplied with a parent.
    fn variables(&self, parent: usize) -> impl Iterator<Item = usize> {
        let used: Vec<usize> = self.terms[parent].pieces.iter().map(|piece| piece.variable).collect();
        let useful = |variable: &usize| self.data.columns[*variable].range > 0.0;
        (0..self.data.columns.len()).filter(useful).filter(move |variable| !used.contains(variable))
    }

    fn scan(&self, parent: usize, variable: usize) -> Scan {
        let spans = self.spans(parent);
        let column = &self.data.columns[variable];
        Scan::new(variable, column, &self.terms[parent].values, self.basis.residual(), spans)
    }

    fn spans(&self, parent: usize) -> Spans {
        let (variables, active) = (self.data.columns.len(), self.active(parent));
        let degree = self.terms[parent].pieces.len() + 1;
        Spans {
            min: self.options.min_span_rows(variables, active),
            end: self.options.end_span_rows(variables, degree),
        }
    }

    /// Rows in which a term is not zero.
    fn active(&self, term: usize) -> usize {
        self.terms[term].values.iter().filter(|value| **value != 0.0).count()
    }

    /// Sets memory aside for all sums under a parent, and says whether there was enough.
    fn reserve(&mut self, parent: usize) -> bool {
        let knots = self.active(parent) / self.spans(parent).min + 1;
        let knots_of = |variable: usize| if self.data.columns[variable].linear_only { 0 } else { knots };
        let bytes: usize = self.variables(parent).map(|variable| Scan::bytes(knots_of(variable))).sum();
        let enough = bytes <= self.cache_left;
        if enough {
            self.cache_left -= bytes;
        }
        enough
    }

    /// Brings sums up to date with the basis.
    fn advance(&self, parent: usize, scans: &mut [Scan], fresh: bool) {
        let mut from = if fresh { 0 } else { self.parents[parent].done };
        while from < self.basis.len() {
            let wide = self.basis.len() - from > LANES / 2;
            if wide {
                self.advance_by::<LANES>(parent, scans, from, fresh);
            } else {
                self.advance_by::<{ LANES / 2 }>(parent, scans, from, fresh);
            }
            from += if wide { LANES } else { LANES / 2 };
        }
    }

    fn advance_by<const L: usize>(&self, parent: usize, scans: &mut [Scan], from: usize, fresh: bool) {
        let values = &self.terms[parent].values;
        let mut lanes = Lanes { weights: vec![[0.0; L]; values.len()], response: [0.0; L] };
        for (lane, at) in (from..self.basis.len()).take(L).enumerate() {
            for ((weights, value), q) in lanes.weights.iter_mut().zip(values).zip(self.basis.column(at)) {
                weights[lane] = value * q;
            }
            // Fresh sums were made with the present residual, which has no part along any column.
            lanes.response[lane] = if fresh { 0.0 } else { self.basis.response()[at] };
        }
        for scan in scans {
            scan.advance(&self.data.columns[scan.variable], &lanes);
        }
    }

    /// Adds the terms of a choice; whether at least one was independent of the others.
    fn take(&mut self, choice: Choice) -> bool {
        let column = &self.data.columns[choice.variable];
        let knot_row = choice.offer.knot.map(|rank| column.order[rank as usize] as usize);
        let piece = Piece { variable: choice.variable, knot_row, mirrored: false };
        let both = choice.offer.linear_is_new && knot_row.is_some();
        let mut added = self.multiply(choice.parent, piece);
        if both {
            added |= self.multiply(choice.parent, Piece { mirrored: true, ..piece });
        }
        added
    }

    /// Adds the product of a term with one more factor.
    fn multiply(&mut self, parent: usize, piece: Piece) -> bool {
        let column = &self.data.columns[piece.variable].values;
        let values = self.terms[parent].values.iter().zip(column);
        let knot = piece.knot_row.map(|row| column[row]);
        let values = values.map(|(value, x)| match knot {
            None => value * x,
            Some(knot) if piece.mirrored => value * (knot - x).max(0.0),
            Some(knot) => value * (x - knot).max(0.0),
        });
        let values = values.collect();
        let mut pieces = self.terms[parent].pieces.clone();
        pieces.push(piece);
        self.add(pieces, values)
    }

    fn add(&mut self, pieces: Vec<Piece>, values: Vec<f64>) -> bool {
        let independent = self.basis.push(&values);
        if independent {
            let slot = match pieces.last() {
                None => 1,
                Some(piece) => 2 + 2 * self.steps + usize::from(piece.mirrored),
            };
            self.terms.push(Found { pieces, values });
            let parent = Parent { scans: None, slot, done: 0, gain: f64::INFINITY, step: self.steps };
            self.parents.push(parent);
        }
        independent
    }
}

/// The better of two choices; the first if they are as good as equal.
fn better(first: Option<Choice>, second: Option<Choice>) -> Option<Choice> {
    match (first, second) {
        (Some(a), Some(b)) if b.offer.gain > a.offer.gain * CLEARLY => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}
