//! What completions of two processes say about the GPU that they share. Nothing here measures.
//!
//! Both processes keep draws waiting at the GPU all the time, one of them more than the other. Then
//!
//! * if both together do more than one GPU's work, there is no unit that they share;
//! * if draws are never overtaken by later ones of the other process, and the one with more of them waiting
//!   gets more done, the GPU works in order;
//! * otherwise processes take turns: completions of one between those of the other are a turn, and
//!   time in which neither worked is what changes cost.

use takt_predict::profile::Execution;

/// A draw of one process, by a clock that all processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// When it was handed to the driver.
    pub submitted_ns: u64,
    /// When its fence was seen to be passed.
    pub done_ns: u64,
}

/// From when to when completions count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first instant.
    pub from_ns: u64,
    /// The first one after it.
    pub to_ns: u64,
}

impl Window {
    fn length_ns(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64
    }

    /// Draws that were completed in it; a process completes its own in order.
    fn of(self, draws: &[Draw]) -> &[Draw] {
        let before = |at_ns: u64| draws.partition_point(|draw| draw.done_ns < at_ns);
        let (from, to) = (before(self.from_ns), before(self.to_ns));
        &draws[from..to.max(from)]
    }
}

/// A median and its quartiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The lower quartile.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub upper: f64,
}

impl Spread {
    /// Of at least one value, none below zero.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4].max(0.0);
        Self { lower: at(1), median: at(2), upper: at(3) }
    }
}

/// What was found, and how sure it is. Times are in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Who runs when both have work.
    pub execution: Execution,
    /// How long turns were; none if there are no turns.
    pub slice_us: Option<Spread>,
    /// What changes cost, in the mean of some each.
    pub switch_us: Option<Spread>,
    /// How many turns were seen.
    pub turns: usize,
    /// How many draws each process completed.
    pub draws: [usize; 2],
    /// What both did together, as a share of what one does alone in that time.
    pub work: f64,
}

/// Why nothing can be said.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unclear {
    /// Too few completions.
    #[error("only {0} draws were completed, too few to judge by")]
    FewDraws(usize),
    /// Too few turns.
    #[error("the GPU changed only {0} times between two processes, too rarely to judge by")]
    FewTurns(usize),
    /// One process did hardly anything.
    #[error("one of two processes got only {:.1} % of the GPU's time", .0 * 100.0)]
    Starved(f64),
}

/// Fewer draws of both together say nothing.
const DRAWS_MIN: usize = 200;
/// Draws of a process alone are alike, so fewer do.
const ALONE_MIN: usize = 20;
/// Fewer turns say nothing.
const TURNS_MIN: usize = 24;
/// A process with a smaller share of the work is starved.
const SHARE_MIN: f64 = 0.05;
/// One GPU does not do that much more than its work; changes of its clock are less.
const WORK_MAX: f64 = 1.2;
/// From this share of overtaken draws on, the order of submission is not that of execution.
const OVERTAKEN_MIN: f64 = 0.25;
/// In order, the process with more draws waiting does at least so many times the work of the other.
const FAVOURED_MIN: f64 = 2.0;
/// A turn that is shorter than this share of a typical one comes from late clocks.
const TURN_MIN: f64 = 0.25;
/// So many changes are looked at together.
const BLOCK: usize = 6;

/// Nanoseconds per draw of a process that is alone.
///
/// # Errors
///
/// If there are too few.
pub fn pace_ns(draws: &[Draw], window: Window) -> Result<f64, Unclear> {
    let draws = window.of(draws);
    let few = Unclear::FewDraws(draws.len());
    let (first, last) = draws.first().zip(draws.last()).ok_or(few)?;
    let span_ns = (last.done_ns - first.done_ns) as f64;
    if draws.len() < ALONE_MIN || span_ns <= 0.0 { Err(few) } else { Ok(span_ns / (draws.len() - 1) as f64) }
}

/// Says how two processes shared a GPU. `paces_ns` are what their draws take alone; the first of
/// them kept several times as many draws waiting as the second. A renderer on the CPU has no turns
/// of its own, whatever its completions look like.
///
/// # Errors
///
/// If there is too little to say anything.
pub fn verdict(
    paces_ns: [f64; 2],
    together: [&[Draw]; 2],
    window: Window,
    software: bool,
) -> Result<Verdict, Unclear> {
    let draws = together.map(|draws| window.of(draws).len());
    let works = [0, 1].map(|who| draws[who] as f64 * paces_ns[who] / window.length_ns());
    let work = works[0] + works[1];
    let execution = Execution::SideBySide;
    let beside = Verdict { execution, slice_us: None, switch_us: None, turns: 0, draws, work };
    if software {
        return Ok(beside);
    }
    if draws[0] + draws[1] < DRAWS_MIN {
        return Err(Unclear::FewDraws(draws[0] + draws[1]));
    }
    let share = works[0].min(works[1]) / work;
    if share < SHARE_MIN {
        return Err(Unclear::Starved(share));
    }
    if work > WORK_MAX {
        return Ok(beside);
    }
    // A driver may hand draws over no sooner than the GPU takes them; then none is seen to be overtaken.
    let favoured = works[0] >= FAVOURED_MIN * works[1];
    let in_order = favoured && overtaken(together, window) < OVERTAKEN_MIN;
    // In order, a single draw between many of the other process is a turn as well.
    let shortest = if in_order { 0.0 } else { TURN_MIN };
    let turns = turns(paces_ns, together, window, shortest);
    if turns.len() < TURNS_MIN {
        return Err(Unclear::FewTurns(turns.len()));
    }
    let switch = switches_us(&turns, paces_ns, together);
    let slice = Spread::of(turns.iter().map(|turn| turn.length_ns(paces_ns) / 1000.0).collect());
    let (execution, slice_us) = if in_order {
        (Execution::InOrder { switch_us: switch.median }, None)
    } else {
        (Execution::TimeShared { slice_us: slice.median, switch_us: switch.median }, Some(slice))
    };
    Ok(Verdict { execution, slice_us, switch_us: Some(switch), turns: turns.len(), ..beside })
}

/// Draws of the process with many waiting that a later one of the other overtook, as a share of
/// all that were waiting then. In order, there are none.
fn overtaken([many, few]: [&[Draw]; 2], window: Window) -> f64 {
    let (mut passed, mut waiting) = (0, 0);
    for draw in window.of(few) {
        let submitted = many.partition_point(|other| other.submitted_ns < draw.submitted_ns);
        let done = |at_ns: u64| many.partition_point(|other| other.done_ns <= at_ns);
        waiting += submitted.saturating_sub(done(draw.submitted_ns));
        passed += submitted.saturating_sub(done(draw.done_ns));
    }
    passed as f64 / waiting.max(1) as f64
}

/// Completions of one process without one of the other between them.
#[derive(Clone, Copy, Debug)]
struct Turn {
    who: usize,
    first_ns: u64,
    last_ns: u64,
}

impl Turn {
    /// From the begin of its first draw to the end of its last.
    fn length_ns(&self, paces_ns: [f64; 2]) -> f64 {
        (self.last_ns - self.first_ns) as f64 + paces_ns[self.who]
    }
}

/// All whole turns, without those below a share of a typical one, which only late clocks show.
fn turns(paces_ns: [f64; 2], together: [&[Draw]; 2], window: Window, shortest: f64) -> Vec<Turn> {
    let of = |who: usize| window.of(together[who]).iter().map(move |draw| (draw.done_ns, who));
    let mut ends: Vec<(u64, usize)> = of(0).chain(of(1)).collect();
    ends.sort_unstable();
    let turns = joined(ends.into_iter().map(|(at, who)| Turn { who, first_ns: at, last_ns: at }));
    let shortest_ns = shortest * typical_ns(&turns, paces_ns);
    let long = turns.into_iter().filter(|turn| turn.length_ns(paces_ns) >= shortest_ns);
    let mut turns = joined(long);
    // The window cuts the first and the last.
    turns.pop();
    turns.drain(..turns.len().min(1));
    turns
}

/// Turns of the same process that follow each other are one.
fn joined(parts: impl Iterator<Item = Turn>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for part in parts {
        match turns.last_mut() {
            Some(turn) if turn.who == part.who => turn.last_ns = part.last_ns,
            _ => turns.push(part),
        }
    }
    turns
}

/// The length of the turn that is on at half of all instants, or a longer one is: many turns of a
/// single draw that only late clocks show hardly change it.
fn typical_ns(turns: &[Turn], paces_ns: [f64; 2]) -> f64 {
    let mut lengths: Vec<f64> = turns.iter().map(|turn| turn.length_ns(paces_ns)).collect();
    lengths.sort_by(f64::total_cmp);
    let half = lengths.iter().sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reached = |length: &&f64| {
        sum += **length;
        sum >= half
    };
    lengths.iter().find(reached).copied().unwrap_or(0.0)
}

/// What changes cost: time without work, for blocks of some changes each.
fn switches_us(turns: &[Turn], paces_ns: [f64; 2], together: [&[Draw]; 2]) -> Spread {
    let cost = |block: &[Turn]| {
        // From the end of a turn to the end of a later one there is a change for each.
        let window = Window { from_ns: block[0].last_ns + 1, to_ns: block[BLOCK].last_ns + 1 };
        let work = [0, 1].map(|who| window.of(together[who]).len() as f64 * paces_ns[who]);
        (window.length_ns() - work[0] - work[1]) / BLOCK as f64 / 1000.0
    };
    Spread::of(turns.windows(BLOCK + 1).step_by(BLOCK).map(cost).collect())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
