//! What is to be learned from a group when its time is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::known::{self, Known, Sample, Variant, YOUNG};
use super::stats;
use super::trust::Trusted;
use takt_client::ends::Timing;

/// A group that is a piece of a draw.
#[derive(Clone, Debug)]
pub struct Part {
    /// What is known about the draw.
    pub known: Arc<Known>,
    /// Its share of the draw.
    pub share: f64,
    /// Its share of everything that was predicted together: the draw, and what its first piece was
    /// drawn with.
    pub weight: f64,
    /// Its number within the draw, from 1.
    pub number: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// Whether it contains something else.
    pub mixed: bool,
    /// Whether the renderer works on the CPU.
    pub software: bool,
    /// How long it was to take at most.
    pub slice_ns: u64,
    /// What all pieces took.
    pub sum: Arc<Sum>,
}

/// What the pieces of a draw took together.
#[derive(Default, Debug)]
pub struct Sum {
    ns: AtomicU64,
    incomplete: AtomicBool,
}

/// What a group has to do with slicing; nothing, mostly.
#[derive(Clone, Default, Debug)]
pub struct Follow {
    /// Programs that were never measured.
    pub programs: Vec<Variant>,
    /// Draws that are known and were drawn whole.
    pub whole: Vec<Arc<Known>>,
    /// What the group's time tells about how large groups may be.
    pub trusted: Option<Trusted>,
    /// The piece that the group is.
    pub part: Option<Part>,
}

impl Follow {
    /// Whether it must be known at once what the group took, to know how to go on.
    pub fn is_awaited(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.known.figures().pieces < YOUNG)
    }

    /// Whether it tells something that nothing else will tell.
    pub fn is_news(&self) -> bool {
        !self.programs.is_empty() || self.part.is_some()
    }

    /// The group is over; `alone` if it was a single draw. What the models are to learn: for a piece
    /// nothing, for the last one what all of them took.
    pub fn completed(&self, timing: &Timing, alone: bool) -> Option<u64> {
        let cost_ns = timing.cost_ns;
        self.programs.iter().for_each(|program| known::measured(*program));
        self.whole.iter().for_each(|known| known.group(cost_ns, alone));
        self.trusted.iter().for_each(|trusted| trusted.took(cost_ns));
        let Some(part) = &self.part else {
            return Some(cost_ns);
        };
        stats::measured(cost_ns, part.slice_ns);
        match part.mixed {
            true => part.known.unmeasured(),
            false => {
                let (share, together, software) = (part.share, timing.together, part.software);
                part.known.piece(Sample { share, cost_ns, together, software });
            }
        }
        let sum = part.sum.ns.fetch_add(cost_ns, Relaxed) + cost_ns;
        (part.last && !part.sum.incomplete.load(Relaxed)).then_some(sum)
    }

    /// The end of the group was not seen.
    pub fn lost(&self) {
        if let Some(part) = &self.part {
            part.sum.incomplete.store(true, Relaxed);
            part.known.unmeasured();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, last: bool, sum: &Arc<Sum>) -> Follow {
        let known = Arc::new(Known::default());
        let (share, weight, mixed, software, slice_ns, sum) = (0.5, 0.5, false, false, 100, sum.clone());
        Follow {
            part: Some(Part { known, share, weight, number, last, mixed, software, slice_ns, sum }),
            ..Follow::default()
        }
    }

    fn timing(cost_ns: u64) -> Timing {
        Timing { submitted_ns: 0, completed_ns: cost_ns, cost_ns, together: false, in_calls_ns: 0 }
    }

    #[test]
    fn pieces_are_one_measurement_together() {
        let sum = Arc::default();
        assert_eq!(part(1, false, &sum).completed(&timing(30), true), None);
        assert_eq!(part(2, true, &sum).completed(&timing(12), true), Some(42));
        assert_eq!(Follow::default().completed(&timing(7), true), Some(7));
    }

    #[test]
    fn a_lost_piece_spoils_the_measurement() {
        let sum = Arc::default();
        part(1, false, &sum).lost();
        assert_eq!(part(2, true, &sum).completed(&timing(12), true), None);
    }
}
