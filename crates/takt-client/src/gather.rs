//! Short frames that share a group.
//!
//! A program that begins its frames when it likes, each a fraction of a millisecond long, would spend
//! more time on asking and on fences than on its frames. So several frames go into one group, up to its
//! credit and up to `TOGETHER_NS` by the clock: a program that holds a grant and does little with it
//! keeps others waiting. The only client has no others to keep waiting, until one comes.
//!
//! Models learn from times of single frames. So the first frames, and one every `SAMPLE_NS`, have a
//! group each; for the only client one every `SAMPLE_ALONE_NS` is enough. Between samples a frame is
//! taken to cost what the last sample did: a stream that [coasts](Gathering::coasts) asks its models
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use takt_core::Span;
use takt_core::limits::FRAMES_PER_GROUP_MAX;

/// Frames are gathered for this long at most.
const TOGETHER_NS: u64 = 1_000_000;
const TOGETHER_ALONE_NS: u64 = 16_000_000;
/// How often a frame is measured by itself.
const SAMPLE_NS: u64 = 100_000_000;
const SAMPLE_ALONE_NS: u64 = 1_000_000_000;
/// Frames that are measured by themselves before others are gathered, and after something new came.
const FIRST: u32 = 8;
const FIRST_ALONE: u32 = 3;
/// A program that goes on so soon after the end of a group wants the next grant at once.
const PROMPT_NS: u64 = 300_000;
/// So often in a row, and grants are asked for ahead.
const PROMPT: u32 = 4;
/// For so many frames nothing is taken for granted after a group took longer than it was granted.
const OVERRUNS: u32 = 32;

/// How a context's frames are gathered into groups.
#[derive(Default, Debug)]
pub struct Gathering {
    /// When the current group began.
    began_ns: u64,
    /// Frames that ended inside of it, what they were predicted to take, and when the first of them
    /// was handed to the driver.
    frames: u32,
    contained: Span,
    first_ns: u64,
    /// What this frame has in the group so far, where drawing went elsewhere since; and whether it did
    /// at all.
    parts: Span,
    in_parts: bool,
    /// When the last frame ended, and how long the last two took.
    ended_ns: u64,
    lasted_ns: [u64; 2],
    /// What the end of the last frame was predicted to take with its swap, what all of that frame
    /// was, and what the last group began with.
    cost: FrameCost,
    whole: FrameCost,
    need: Span,
    /// When the last group ended with a frame, if nothing came since.
    left_ns: Option<u64>,
    prompt: u32,
    /// Frames measured by themselves since something new came, and when the last one was.
    measured: u32,
    measured_ns: u64,
    /// The next group is a single frame.
    single: bool,
    /// This client is the only one.
    alone: bool,
    /// What this frame does is not looked at.
    coasting: bool,
    /// A group took longer than it was granted.
    overran: Arc<AtomicBool>,
    /// Frames that are measured as often as among others, because one did.
    overruns: u32,
}

/// What a frame is predicted to take.
///
/// Frames that share a group do not all take the most that they may. So what is likely counts for all
/// of them but the last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FrameCost {
    /// Most likely.
    pub likely: Span,
    /// At most.
    pub most: Span,
}

impl FrameCost {
    /// The same with something more.
    fn with(&self, likely: Span) -> Self {
        Self { likely: self.likely + likely, most: self.most + likely }
    }

    /// What so many such frames take at most.
    fn times(&self, count: u64) -> Span {
        self.likely.times(count.saturating_sub(1)) + self.most
    }
}

/// What is to be known about a group of several frames when its end is seen.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// When the first frame was handed to the driver.
    pub since_ns: u64,
    /// What all frames were predicted to take.
    pub predicted: Span,
    /// What the group was granted.
    pub credit: Span,
    overran: Arc<AtomicBool>,
}

impl Gathered {
    /// What the group cost, if its last frame took `last_ns` at least and everything since its first
    /// one `all_ns`: that includes the time between frames, when the GPU may have had nothing to do.
    pub fn cost_ns(&self, last_ns: u64, all_ns: u64) -> u64 {
        if last_ns > self.credit.as_ns() {
            self.overran.store(true, Relaxed);
        }
        last_ns.max(all_ns.min(self.predicted.as_ns()))
    }
}

/// What is to happen to the group of a frame that is about to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// It ends with the frame.
    pub ends: bool,
    /// A grant for another one is to be asked for.
    pub ask_ahead: bool,
}

impl Gathering {
    /// Says whether this client is the only one.
    #[inline]
    pub fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Whether this client was the only one at the last look.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    /// How long frames are gathered by the clock.
    fn together_ns(&self) -> u64 {
        if self.alone { TOGETHER_ALONE_NS } else { TOGETHER_NS }
    }

    /// Whether a frame should be measured by itself.
    fn wants_sample(&self, now_ns: u64) -> bool {
        let seldom = self.alone && self.overruns == 0;
        let every_ns = if seldom { SAMPLE_ALONE_NS } else { SAMPLE_NS };
        now_ns.saturating_sub(self.measured_ns) >= every_ns
    }

    /// A grant is about to be asked for, for a group that begins with commands that take `need`.
    pub fn asks(&mut self, now_ns: u64, need: Span) {
        self.need = need;
        if let Some(left_ns) = self.left_ns.take() {
            let prompt = now_ns.saturating_sub(left_ns) < PROMPT_NS;
            self.prompt = if prompt { self.prompt.saturating_add(1) } else { 0 };
        }
    }

    /// A group begins.
    pub fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.end();
    }

    /// The group ends.
    pub fn end(&mut self) {
        (self.frames, self.contained, self.parts) = (0, Span::ZERO, Span::ZERO);
        self.in_parts = false;
    }

    /// Whether what is known can share a group.
    pub fn shares(&self) -> bool {
        let first = if self.alone { FIRST_ALONE } else { FIRST };
        self.measured >= first && !self.single
    }

    /// Whether what this frame does is not looked at.
    #[inline]
    pub fn coasts(&self) -> bool {
        self.coasting
    }

    /// A frame begins, in a group of at most `slice`: the only client need not look at one that will be
    /// like the one before.
    pub fn begin_frame(&mut self, slice: Span) {
        self.coasting = self.alone && self.shares() && self.whole.most <= slice;
    }

    /// What follows is to be looked at.
    pub fn stop_coasting(&mut self) {
        self.coasting = false;
    }

    /// What the last frame was predicted to take.
    pub fn frame_cost(&self) -> FrameCost {
        self.whole
    }

    /// Drawing goes elsewhere after work that was predicted to take that, and the group goes on.
    pub fn end_part(&mut self, now_ns: u64, likely: Span) {
        if self.contained == Span::ZERO {
            self.first_ns = now_ns;
        }
        self.contained += likely;
        self.parts += likely;
        self.in_parts = true;
    }

    /// What frames and parts of them that ended inside of the group were predicted to take.
    #[inline]
    pub fn contained(&self) -> Span {
        self.contained
    }

    /// What a group takes into which as many frames go as may be; nothing if frames go apart.
    pub fn wanted(&self) -> Span {
        if !self.shares() {
            // No other client has to do without what is not used.
            let apart = if self.alone { Span::from_ns(TOGETHER_ALONE_NS) } else { Span::ZERO };
            return self.cost.most.max(apart);
        }
        let count = (self.together_ns() / self.lasts_ns().max(1)).clamp(1, FRAMES_PER_GROUP_MAX.into());
        let frame = if self.alone { self.whole } else { self.cost };
        frame.times(count)
    }

    /// The same for a group that is not there yet: enough to begin with as well.
    pub fn wanted_ahead(&self) -> Span {
        self.wanted().max(self.need)
    }

    /// How long a frame takes, by the clock: one that was disturbed says little.
    fn lasts_ns(&self) -> u64 {
        self.lasted_ns[0].min(self.lasted_ns[1])
    }

    /// A frame is about to end that was predicted to take `cost`, of the `credit` that is left. With
    /// `news`, it contains something that must be measured.
    pub fn plan(&mut self, now_ns: u64, cost: FrameCost, credit: Span, news: bool) -> Plan {
        let overran = self.overran.swap(false, Relaxed);
        if news || (overran && !self.alone) {
            self.measured = 0;
        }
        self.overruns = if overran { OVERRUNS } else { self.overruns.saturating_sub(1) };
        let lasts_ns = self.lasts_ns();
        let so_far_ns = now_ns.saturating_sub(self.began_ns);
        let frame = cost.with(self.parts);
        // Whether so many frames more would fit, too.
        let fit = |more: u32| {
            let time = so_far_ns.saturating_add(lasts_ns.saturating_mul(more.into())) <= self.together_ns();
            // What frames take that are not looked at is not known exactly; the clock bounds it.
            let credit = self.coasting || cost.likely + frame.times(more.into()) <= credit;
            time && credit && self.frames + more < FRAMES_PER_GROUP_MAX
        };
        let is_known = self.shares() && lasts_ns > 0;
        let ends = !is_known || self.wants_sample(now_ns) || !fit(1);
        Plan { ends, ask_ahead: self.prompt >= PROMPT && (ends || !fit(2)) }
    }

    /// The frame has ended, of which `cost` is the end; its swap began at `began_ns`. All of it was
    /// predicted to take `whole`.
    pub fn end_frame(&mut self, began_ns: u64, now_ns: u64, cost: FrameCost, whole: Span) {
        if self.contained == Span::ZERO {
            self.first_ns = began_ns;
        }
        self.frames += 1;
        self.contained += cost.likely;
        self.cost = cost.with(std::mem::take(&mut self.parts));
        self.whole = self.cost.with(whole.saturating_sub(self.cost.most));
        let lasted_ns = if self.ended_ns > 0 { now_ns.saturating_sub(self.ended_ns) } else { 0 };
        self.lasted_ns = [self.lasted_ns[1], lasted_ns];
        self.ended_ns = now_ns;
    }

    /// The group ended, with a frame.
    pub fn end_with_frame(&mut self, now_ns: u64) {
        self.left_ns = Some(now_ns);
        if self.frames == 1 && !self.in_parts && !self.coasting {
            self.measured = self.measured.saturating_add(1);
            self.measured_ns = now_ns;
            self.single = false;
        } else {
            self.single = self.wants_sample(now_ns);
        }
    }

    /// How long a group must take at least to be taken for one that took too long.
    fn overrun_least(&self) -> Span {
        Span::from_ns(if self.alone { 2 * TOGETHER_ALONE_NS } else { 0 })
    }

    /// How long ago the group began.
    pub fn age(&self, now_ns: u64) -> Span {
        Span::from_ns(now_ns.saturating_sub(self.began_ns))
    }

    /// Whether there is time left for more in the group.
    #[inline]
    pub fn has_time(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.began_ns) < self.together_ns()
    }

    /// What is to be known about the group when its end is seen, if it has several frames or parts
    /// of them.
    pub fn gathered(&self, credit: Option<Span>, ends_with_frame: bool) -> Option<Gathered> {
        let several = self.frames > u32::from(ends_with_frame) || self.in_parts || self.coasting;
        several.then(|| Gathered {
            since_ns: self.first_ns,
            predicted: self.contained,
            credit: credit.unwrap_or(Span::FOREVER).max(self.overrun_least()),
            overran: self.overran.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(us: u64) -> FrameCost {
        FrameCost { likely: Span::from_us(us), most: Span::from_us(us) }
    }

    /// Frames of `lasts_us` until `frames` were made: how many each group had, and how many asked
    /// ahead.
    fn groups(lasts_us: u64, cost_us: u64, credit_us: u64, frames: u32) -> Vec<(u32, u32)> {
        let mut gathering = Gathering::default();
        let (mut groups, mut now_ns, mut ahead) = (Vec::new(), 1_000_000_000, 0);
        let mut open = false;
        for _ in 0..frames {
            if !open {
                gathering.asks(now_ns, Span::ZERO);
                gathering.begin(now_ns);
                open = true;
            }
            now_ns += lasts_us * 1_000;
            let cost = cost(cost_us);
            let credit = Span::from_us(credit_us).saturating_sub(gathering.contained());
            let plan = gathering.plan(now_ns, cost, credit, false);
            gathering.end_frame(now_ns, now_ns, cost, cost.most);
            ahead += u32::from(plan.ask_ahead);
            if plan.ends {
                groups.push((gathering.frames, ahead));
                gathering.end_with_frame(now_ns);
                (open, ahead) = (false, 0);
            }
        }
        groups
    }

    #[test]
    fn short_frames_share_a_group_once_they_are_known() {
        let groups = groups(100, 20, 1_000, 200);
        assert!(groups[..8].iter().all(|(frames, _)| *frames == 1), "{groups:?}");
        let (last, before) = groups.split_last().expect("groups");
        assert!(before[8..].iter().all(|(frames, _)| *frames == 10), "{groups:?}");
        assert_eq!(last.0, 10);
        assert!(before[8..].iter().all(|(_, ahead)| *ahead >= 1), "{groups:?}");
    }

    #[test]
    fn credit_and_time_end_a_group() {
        assert!(groups(100, 300, 1_000, 100).iter().all(|(frames, _)| *frames <= 3));
        assert!(groups(600, 1, 1_000, 100).iter().all(|(frames, _)| *frames == 1));
        assert!(groups(1, 0, 1_000, 2_000).iter().all(|(frames, _)| *frames <= FRAMES_PER_GROUP_MAX));
    }

    #[test]
    fn a_frame_is_measured_by_itself_now_and_then() {
        let groups = groups(100, 20, 1_000, 10_000);
        let single = groups[9..].iter().filter(|(frames, _)| *frames == 1).count();
        assert!((8..=10).contains(&single), "a second has about ten of them: {single}");
    }

    #[test]
    fn programs_that_take_their_time_ask_nothing_ahead() {
        let mut gathering = Gathering::default();
        for frame in 1..100_u64 {
            let now_ns = frame * 33_000_000;
            gathering.asks(now_ns, Span::ZERO);
            gathering.begin(now_ns);
            let plan = gathering.plan(now_ns + 50_000, cost(20), Span::from_ms(1), false);
            assert_eq!(plan, Plan { ends: true, ask_ahead: false });
            gathering.end_frame(now_ns + 50_000, now_ns + 90_000, cost(20), cost(20).most);
            gathering.end_with_frame(now_ns + 90_000);
        }
    }

    #[test]
    fn a_group_that_took_too_long_has_frames_measured_again() {
        let lasted_ns = [100_000; 2];
        let mut gathering = Gathering { measured: FIRST, lasted_ns, ended_ns: 1, ..Gathering::default() };
        gathering.begin(0);
        let plan = |gathering: &mut Gathering| gathering.plan(0, cost(20), Span::from_ms(1), false);
        assert!(!plan(&mut gathering).ends);
        gathering.end_frame(1, 2, cost(20), cost(20).most);
        let gathered = gathering.gathered(Some(Span::from_ms(1)), false).expect("a frame and a part");
        assert_eq!(gathered.cost_ns(5_000, 900_000), 20_000, "what was predicted");
        assert_eq!(gathered.cost_ns(50_000, 900_000), 50_000, "what the last one took");
        assert!(!plan(&mut gathering).ends);
        assert_eq!(gathered.cost_ns(3_000_000, 3_000_000), 3_000_000);
        assert!(plan(&mut gathering).ends);
        assert_eq!(gathering.measured, 0);
    }

    #[test]
    fn the_only_client_has_longer_groups_of_frames_unseen() {
        let mut gathering = Gathering::default();
        let slice = Span::from_ms(16);
        let (mut now_ns, mut open, mut groups, mut seen) = (1_000_000_000, false, Vec::new(), 0);
        for frame in 0..1_000 {
            let alone = frame < 800;
            gathering.set_alone(alone);
            if !open {
                gathering.asks(now_ns, Span::ZERO);
                gathering.begin(now_ns);
                open = true;
            }
            now_ns += 3_000_000;
            // Upper estimates are cautious.
            let cost = cost(5_000);
            let credit = slice.saturating_sub(gathering.contained());
            let plan = gathering.plan(now_ns, cost, credit, false);
            gathering.end_frame(now_ns, now_ns, cost, cost.most);
            seen += u32::from(!gathering.coasts());
            assert!(alone || frame == 800 || !gathering.coasts());
            if plan.ends {
                let single = gathering.gathered(None, true).is_none();
                groups.push((alone, gathering.frames, single));
                gathering.end_with_frame(now_ns);
                open = false;
            }
            gathering.begin_frame(slice);
        }
        let (among, before): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(alone, ..)| !alone);
        assert!(before[..3].iter().all(|group| *group == (true, 1, true)), "{before:?}");
        let long = before.iter().filter(|(_, frames, _)| *frames == 5).count();
        assert!(long >= 155, "800 frames: {before:?}");
        let samples = before[3..].iter().filter(|(.., single)| *single).count();
        assert!((1..=3).contains(&samples), "2.4 s: {samples}");
        assert!(among[1..].iter().all(|(_, frames, _)| *frames == 1), "{among:?}");
        assert!(among[1..].iter().filter(|(.., single)| *single).count() >= 5, "they are measured again");
        assert!((200..220).contains(&seen), "{seen}");
    }

    #[test]
    fn frames_that_are_longer_than_a_group_may_be_are_looked_at() {
        let mut gathering = Gathering { measured: FIRST, ..Gathering::default() };
        gathering.set_alone(true);
        gathering.end_frame(1, 2, cost(20), Span::from_ms(17));
        gathering.begin_frame(Span::from_ms(16));
        assert!(!gathering.coasts());
        gathering.begin_frame(Span::from_ms(17));
        assert!(gathering.coasts());
        gathering.stop_coasting();
        assert!(!gathering.coasts());
    }
}
