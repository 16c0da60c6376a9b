//! What it may cost a frame to find out how long its commands are.
//!
//! A draw or dispatch of which nothing is known is tried out: it begins with small pieces whose ends are waited
//! for. The first frame of a program has hundreds of them, most of them short, and trying out each
//! would take many times as long as drawing them. So [`TRIED_MAX`] of a frame are tried out; what these took
//! as a part of what models said then corrects what models say of the others.

use takt_core::Span;

/// Commands of a frame that are tried out.
pub(super) const TRIED_MAX: u32 = 16;

/// By how much others may be further off than those that were tried out.
const HEADROOM: f64 = 2.0;

/// Trials of a frame.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Trials {
    frame: u64,
    tried: u32,
    /// What they took, as parts of what models said; the first `measured` of them.
    ratios: [f64; TRIED_MAX as usize],
    measured: usize,
}

/// How a command is approached of which nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Approach {
    /// It is tried out.
    Tried,
    /// It is handed over whole, with what goes with it.
    Whole,
    /// It is believed to take that long: in a group of its own, cut if that is too long for one.
    Believed(Span),
}

impl Trials {
    /// A command of that frame, of which models say how long it takes.
    pub(super) fn approach(&mut self, frame: u64, predicted: Span, slice: Span) -> Approach {
        if self.frame != frame {
            *self = Self { frame, ..Self::default() };
        }
        if self.tried < TRIED_MAX {
            self.tried += 1;
            return Approach::Tried;
        }
        if predicted <= slice { Approach::Whole } else { Approach::Believed(self.corrected(predicted)) }
    }

    /// One that was tried out took so long, by what its pieces took.
    pub(super) fn took(&mut self, predicted: Span, ns: f64) {
        if let Some(next) = self.ratios.get_mut(self.measured) {
            *next = ns / predicted.as_ns().max(1) as f64;
            self.measured += 1;
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as is meant")]
    fn corrected(&self, predicted: Span) -> Span {
        let mut ratios = self.ratios;
        let ratios = &mut ratios[..self.measured];
        ratios.sort_by(f64::total_cmp);
        // Something may have got in the way of a few of them.
        let by = ratios.get(ratios.len() * 3 / 4).map_or(1.0, |ratio| ratio * HEADROOM);
        Span::from_ns((predicted.as_ns() as f64 * by) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Span = Span::from_ms(1);

    #[test]
    fn few_commands_of_each_frame_are_tried_out() {
        let mut trials = Trials::default();
        for frame in 0..3 {
            let long = Span::from_ms(5);
            let all: Vec<Approach> = (0..166).map(|_| trials.approach(frame, long, SLICE)).collect();
            assert_eq!(all.iter().filter(|how| **how == Approach::Tried).count(), 16);
            assert_eq!(all[165], Approach::Believed(long), "nothing corrects models yet");
        }
        assert_eq!(trials.approach(2, SLICE, SLICE), Approach::Whole);
    }

    #[test]
    fn what_was_tried_out_corrects_what_models_say_of_others() {
        let mut trials = Trials { tried: TRIED_MAX, ..Trials::default() };
        for ns in [20_000.0, 1e9, 50_000.0, 10_000.0, 30_000.0] {
            trials.took(Span::from_ms(10), ns);
        }
        let believed = |trials: &mut Trials| trials.approach(0, Span::from_ms(20), SLICE);
        assert_eq!(believed(&mut trials), Approach::Believed(Span::from_us(200)));
        (0..100).for_each(|_| trials.took(Span::from_ms(10), 30e6));
        assert_eq!(believed(&mut trials), Approach::Believed(Span::from_ms(120)), "it may be longer, too");
    }
}
