//! Where the frames of a program end that never swaps.
//!
//! A program that draws to framebuffer objects (compositors without a surface, video pipelines, image
//! processing) has frames as well: it draws, makes sure that the GPU gets or finishes the work, and
//! sleeps until the next frame. No call says "frame", so the rhythm has to:
//!
//! ```text
//!   draw draw flush draw finish ....... sleep ....... draw draw flush draw finish ....... sleep
//!   └──────────── frame ──────┘                       └──────────── frame ──────┘
//! ```
//!
//! * A frame begins with the first command after a sleep, or after the frame before.
//! * It ends at its last [`Boundary`] before the sleep. That it was the last one is known only when the
//!   sleep is over, which is too late to judge the frame. So the boundaries of past frames are counted:
//!   once `AGREE` frames in a row had as many of the strongest kind, the frame ends at that one.
//! * A frame that had fewer ends when the sleep is seen.
//! * A program that does not sleep has frames, too: after `RESTLESS` boundaries of the strongest kind
//!   without a sleep, each of them ends one.
//! * Swaps end frames by themselves. From the first one on, nothing else does, until the program has not
//!   swapped for `SWAPS_OVER`.
//!
//! Of several streams, one leads: the first one with the strongest kind of boundary. Others only count
//! when the leader has been silent for `LEADER_SILENT`. A stream that gives no commands never leads: its
//! thread waits for what others draw. A kind of boundary counts as long as it comes once in `LATELY` of
//! them, so that images which a program makes at its start do not hide the flushes that follow.

use takt_core::{Span, Time};

/// A call after which others have, or the GPU has or has done, all that it was given; the stronger ones come
/// later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Boundary {
    /// The work is handed to the GPU (`glFlush`).
    Flush,
    /// What was drawn becomes an image for others (`eglCreateImage`).
    Image,
    /// Others get a fence to wait for (`eglDupNativeFenceFDANDROID`).
    Export,
    /// The program waits for a fence (`glClientWaitSync`, `eglClientWaitSync`).
    Wait,
    /// The program waits for all of it (`glFinish`).
    Finish,
}

/// All of them, strongest first.
const STRONGEST: [Boundary; KINDS] =
    [Boundary::Finish, Boundary::Wait, Boundary::Export, Boundary::Image, Boundary::Flush];
const KINDS: usize = 5;

/// A thread that did nothing for this long between a boundary and its next command slept.
const SLEEP: Span = Span::from_ms(1);
/// So many frames in a row tell where the next one ends.
const AGREE: u32 = 2;
/// After so many boundaries without a sleep, the program does not sleep.
const RESTLESS: u32 = 8;
/// A program that has not swapped for this long has stopped to.
const SWAPS_OVER: Span = Span::from_ms(2_000);
/// A kind of boundary that did not come among so many is not usual.
const LATELY: u32 = 64;
/// A stream that has been silent for this long does not lead any more.
const LEADER_SILENT: Span = Span::from_ms(1_000);

/// Whether a frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// No.
    No,
    /// With this call: it contains all that came before.
    Here,
    /// Before this call, with the last boundary.
    Before,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct FrameFinder {
    leader: Option<Leader>,
    /// Another stream that gave commands.
    other: Option<u64>,
    swapped: Option<Time>,
    /// Boundaries of the frame so far, by kind.
    counts: [u32; KINDS],
    /// Commands came since the frame began, and since it ended.
    began: bool,
    ended: bool,
    /// Where frames ended lately, and how many of them in a row.
    usual: Option<(Boundary, u32)>,
    agreed: u32,
    /// Boundaries of the strongest kind since the last sleep.
    restless: u32,
}

#[derive(Clone, Copy, Debug)]
struct Leader {
    stream: u64,
    heard: Time,
    /// How many boundaries ago each kind came last.
    ago: [u32; KINDS],
}

impl Leader {
    fn new(stream: u64, heard: Time) -> Self {
        Self { stream, heard, ago: [LATELY; KINDS] }
    }

    /// The strongest kind of boundary that it had lately.
    fn strongest(&self) -> Option<Boundary> {
        STRONGEST.into_iter().find(|kind| self.ago[*kind as usize] < LATELY)
    }

    fn had(&mut self, kind: Boundary) {
        self.ago = self.ago.map(|ago| ago.saturating_add(1));
        self.ago[kind as usize] = 0;
    }
}

impl FrameFinder {
    /// A stream gives the GPU a command, after its thread slept for `slept` since its last call.
    pub fn command(&mut self, stream: u64, now: Time, slept: Span) -> Ended {
        if self.is_swapping(now) {
            return Ended::No;
        }
        if !self.leads(stream, None, now) {
            self.other = Some(stream);
            return Ended::No;
        }
        let over = slept >= SLEEP && self.began && self.counts != [0; KINDS];
        let ended = if over { self.close() } else { Ended::No };
        self.began = true;
        ended
    }

    /// A stream reaches a boundary.
    pub fn boundary(&mut self, stream: u64, now: Time, kind: Boundary) -> Ended {
        if self.is_swapping(now) || !self.leads(stream, Some(kind), now) || !self.began {
            return Ended::No;
        }
        self.counts[kind as usize] += 1;
        let Some(leader) = &mut self.leader else { return Ended::No };
        leader.had(kind);
        let strongest = leader.strongest() == Some(kind);
        self.restless += u32::from(strongest);
        let usual = self.usual.filter(|_| self.agreed >= AGREE);
        let ends = match usual {
            Some((at, count)) => at == kind && self.counts[kind as usize] == count,
            None => false,
        };
        if strongest && self.restless > RESTLESS {
            // It does not sleep: each one ends a frame.
            (self.counts, self.began, self.ended, self.agreed) = ([0; KINDS], false, false, 0);
            return Ended::Here;
        }
        if ends && !self.ended {
            self.ended = true;
            return Ended::Here;
        }
        Ended::No
    }

    /// Nothing has come for a while, and all that came is done: whether the frame ended so. It did where no boundary
    /// says it, or none is known to say it yet.
    pub fn quiet(&mut self) -> bool {
        if self.usual.is_some() && self.agreed >= AGREE {
            return false;
        }
        let has_boundaries = self.leader.is_some_and(|leader| leader.strongest().is_some());
        let ends = !has_boundaries || !self.began || self.counts != [0; KINDS];
        // What is seen of its rhythm at the next command stays true.
        self.ended |= ends && self.began;
        ends
    }

    /// A stream swaps: that ends frames from now on.
    pub fn swap(&mut self, now: Time) {
        *self = Self { swapped: Some(now), ..Self::default() };
    }

    /// The sleep after a frame was seen.
    fn close(&mut self) -> Ended {
        let last = STRONGEST.into_iter().find(|kind| self.counts[*kind as usize] > 0);
        let found = last.map(|kind| (kind, self.counts[kind as usize]));
        self.agreed = if found == self.usual { self.agreed + 1 } else { 1 };
        self.usual = found;
        let ended = if self.ended { Ended::No } else { Ended::Before };
        (self.counts, self.began, self.ended, self.restless) = ([0; KINDS], false, false, 0);
        ended
    }

    fn is_swapping(&self, now: Time) -> bool {
        self.swapped.is_some_and(|then| now.since(then) < SWAPS_OVER)
    }

    /// Whether the stream is the one whose rhythm counts.
    fn leads(&mut self, stream: u64, kind: Option<Boundary>, now: Time) -> bool {
        let drew = self.other == Some(stream);
        match &mut self.leader {
            Some(leader) if leader.stream == stream => {
                leader.heard = now;
                return true;
            }
            Some(_) if kind.is_some() && !drew => return false,
            Some(leader) if kind <= leader.strongest() && now.since(leader.heard) < LEADER_SILENT => {
                return false;
            }
            _ => {}
        }
        let leader = Some(Leader::new(stream, now));
        // A stream that takes over has given commands; the first one may not have.
        *self = Self { leader, swapped: self.swapped, began: drew, ..Self::default() };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Boundary::{Export, Finish, Flush, Image, Wait};
    use takt_rng::Rng;

    /// A program of one or more streams, in made-up time.
    #[derive(Default)]
    struct Program {
        finder: FrameFinder,
        now: Time,
        /// When frames ended.
        ends: Vec<Time>,
    }

    impl Program {
        fn pass(&mut self, us: u64) {
            self.now += Span::from_us(us);
        }

        fn note(&mut self, ended: Ended) {
            if ended != Ended::No {
                self.ends.push(self.now);
            }
        }

        fn command(&mut self, stream: u64, slept_us: u64) {
            self.pass(slept_us);
            let ended = self.finder.command(stream, self.now, Span::from_us(slept_us));
            self.note(ended);
        }

        fn boundary(&mut self, stream: u64, kind: Boundary) {
            self.pass(100);
            let ended = self.finder.boundary(stream, self.now, kind);
            self.note(ended);
        }

        /// A frame: commands and boundaries, then the sleep before the next one.
        fn frame(&mut self, slept_us: u64, kinds: &[Boundary]) {
            self.command(1, slept_us);
            for kind in kinds {
                self.command(1, 0);
                self.boundary(1, *kind);
            }
        }
    }

    #[test]
    fn frames_end_quietly_until_their_rhythm_is_known() {
        let mut finder = FrameFinder::default();
        let (ms, mut now) = (Span::from_ms(1), Time::ZERO);
        for frame in 0..6 {
            now += Span::from_ms(20);
            let slept = if frame == 0 { Span::ZERO } else { Span::from_ms(15) };
            assert_eq!(finder.command(1, now, slept), Ended::No, "frame {frame}: it ended before");
            assert_eq!(
                finder.quiet(),
                frame == 0,
                "frame {frame}: that boundaries will come is known by then"
            );
            let ended = finder.boundary(1, now + ms, Wait);
            let known = frame >= 2;
            assert_eq!(ended == Ended::Here, known, "frame {frame}");
            assert_eq!(finder.quiet(), !known, "frame {frame}");
        }
        let mut silent = FrameFinder::default();
        assert_eq!(silent.command(1, now, Span::ZERO), Ended::No);
        assert!((0..5).all(|_| silent.quiet()), "no boundary ever says it");
    }

    #[test]
    fn a_timer_loop_has_a_frame_per_tick_however_it_jitters() {
        let ways = [
            &[Finish][..],
            &[Flush, Flush, Finish],
            &[Flush],
            &[Wait],
            &[Flush, Wait, Wait],
            &[Image, Flush],
            &[Flush, Export],
        ];
        for (seed, kinds) in ways.into_iter().enumerate() {
            let (mut program, mut rng) = (Program::default(), Rng::new(seed as u64, 0));
            for _ in 0..100 {
                program.frame(rng.between(4_000, 15_000), kinds);
            }
            assert!((98..=100).contains(&program.ends.len()), "{kinds:?}: {}", program.ends.len());
        }
    }

    #[test]
    fn a_frame_ends_with_its_last_boundary_once_the_rhythm_is_known() {
        let mut program = Program::default();
        (0..10).for_each(|_| program.frame(10_000, &[Flush, Finish]));
        let last = *program.ends.last().expect("frames");
        assert_eq!(last, program.now, "before the sleep");
    }

    #[test]
    fn bursts_of_other_lengths_are_frames_too() {
        let mut program = Program::default();
        for number in 0..60 {
            let kinds: &[Boundary] = if number % 10 == 9 { &[Finish, Finish, Finish] } else { &[Finish] };
            program.frame(10_000, kinds);
        }
        assert!((57..=60).contains(&program.ends.len()), "{}", program.ends.len());
        // One that has less than usual ends when the sleep is over.
        let mut program = Program::default();
        (0..5).for_each(|_| program.frame(10_000, &[Finish, Finish]));
        let before = program.ends.len();
        program.frame(10_000, &[Finish]);
        assert_eq!(program.ends.len(), before);
        program.frame(10_000, &[Finish, Finish]);
        assert_eq!(program.ends.len(), before + 1, "late, and not lost");
    }

    #[test]
    fn a_program_without_sleep_has_a_frame_per_boundary() {
        let mut program = Program::default();
        (0..100).for_each(|_| program.frame(0, &[Flush, Finish]));
        assert!((90..=100).contains(&program.ends.len()), "{}", program.ends.len());
    }

    #[test]
    fn boundaries_without_commands_end_nothing() {
        let mut program = Program::default();
        for _ in 0..50 {
            program.boundary(1, Finish);
            program.pass(10_000);
        }
        assert!(program.ends.is_empty());
    }

    #[test]
    fn of_two_threads_the_one_that_waits_leads() {
        let mut program = Program::default();
        for _ in 0..100 {
            // A thread that loads textures, between frames of the one that draws.
            program.command(2, 3_000);
            program.boundary(2, Flush);
            program.frame(5_000, &[Finish]);
        }
        assert!((95..=100).contains(&program.ends.len()), "{}", program.ends.len());
        let before = program.ends.len();
        for _ in 0..300 {
            program.command(2, 10_000);
            program.boundary(2, Flush);
        }
        assert!(program.ends.len() > before + 150, "the other one is gone, so this one leads");
    }

    #[test]
    fn images_of_the_start_do_not_hide_the_flushes_that_follow() {
        let mut program = Program::default();
        program.boundary(1, Image);
        (0..100).for_each(|_| program.frame(0, &[Flush]));
        assert!(program.ends.len() >= 90, "no frame had an image: {}", program.ends.len());
        program.frame(0, &[Image, Flush]);
        let before = program.ends.len();
        (0..200).for_each(|_| program.frame(0, &[Flush]));
        assert!(program.ends.len() >= before + 120, "one had: {}", program.ends.len() - before);
    }

    #[test]
    fn a_thread_that_only_waits_does_not_lead() {
        let mut program = Program::default();
        for _ in 0..100 {
            program.frame(10_000, &[Flush]);
            // A second context whose thread waits for the fence of the first.
            program.boundary(2, Wait);
        }
        assert!((95..=100).contains(&program.ends.len()), "{}", program.ends.len());
    }

    #[test]
    fn from_the_first_swap_on_only_swaps_count() {
        let mut program = Program::default();
        (0..10).for_each(|_| program.frame(10_000, &[Finish]));
        let before = program.ends.len();
        for _ in 0..100 {
            program.frame(10_000, &[Finish]);
            program.finder.swap(program.now);
        }
        assert!(program.ends.len() <= before + 1, "the frame of the first swap");
        program.pass(3_000_000);
        (0..20).for_each(|_| program.frame(10_000, &[Finish]));
        assert!(program.ends.len() >= before + 15, "it stopped to swap");
    }
}
