//! A process that keeps the GPU busy with short draws, and notes when each of them ended.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use super::analysis::{Draw, Window};
use crate::Problem;
use crate::bench::{Bench, Load};
use crate::sys::now_ns;
use takt_gl_driver::Stamps;

/// When to draw, and how many draws are kept waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DrawPlan {
    pub(super) window: Window,
    pub(super) depth: usize,
}

impl DrawPlan {
    /// From soon on.
    pub(super) fn soon(length: Duration, depth: usize) -> Self {
        let from_ns = now_ns() + u64::try_from(SOON.as_nanos()).unwrap_or(0);
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(0);
        Self { window: Window { from_ns, to_ns: from_ns + length_ns }, depth }
    }

    /// The window without its beginning, in which clocks rise and queues fill.
    pub(super) fn steady(&self) -> Window {
        let Window { from_ns, to_ns } = self.window;
        Window { from_ns: from_ns + (to_ns - from_ns) / 4, to_ns }
    }
}

/// Long enough for a line to reach another process.
const SOON: Duration = Duration::from_millis(10);

impl fmt::Display for DrawPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.window.from_ns, self.window.to_ns, self.depth)
    }
}

impl FromStr for DrawPlan {
    type Err = Problem;

    fn from_str(line: &str) -> Result<Self, Problem> {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [from_ns, to_ns, depth @ 1..=1024] if from_ns <= to_ns => {
                let depth = usize::try_from(depth).expect("a small number");
                Ok(Self { window: Window { from_ns, to_ns }, depth })
            }
            _ => Err(Problem::Peer(format!("was asked for nonsense: {line:?}"))),
        }
    }
}

/// DrawPlan as a line of text.
pub(super) fn to_line(draws: &[Draw]) -> String {
    let words: Vec<String> =
        draws.iter().map(|draw| format!("{} {}", draw.submitted_ns, draw.done_ns)).collect();
    words.join(" ")
}

/// DrawPlan from a line of text, if it is one.
pub(super) fn from_line(line: &str) -> Option<Vec<Draw>> {
    let numbers: Result<Vec<u64>, _> = line.split_ascii_whitespace().map(str::parse).collect();
    let numbers = numbers.ok()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let draws: Vec<Draw> =
        pairs.iter().map(|&[submitted_ns, done_ns]| Draw { submitted_ns, done_ns }).collect();
    (rest.is_empty() && draws.is_sorted_by_key(|draw| draw.done_ns)).then_some(draws)
}

/// A draw of microseconds that takes longer never ends.
const STUCK: Duration = Duration::from_secs(2);
/// No more draws than this, however short they are.
const DRAWS_MAX: usize = 200_000;

/// DrawPlan that are handed over at once where the GPU takes time stamps: longer than its slices, as it may change
/// contexts behind each fence.
const BATCH: usize = 64;
/// One batch stands for so many draws of a plan's depth.
const PER_BATCH: usize = 12;
/// How often the clocks are compared.
const COMPARISONS: usize = 9;

/// DrawPlan by plan: as many as it says wait at the GPU until its end.
pub(super) fn run(bench: &Bench, load: &Load, plan: DrawPlan) -> Result<Vec<Draw>, Problem> {
    match bench.stamps() {
        Some(stamps) => stamped(bench, load, plan, stamps),
        None => fenced(bench, load, plan),
    }
}

/// The same with a time stamp behind each draw, and a fence behind each batch.
fn stamped(bench: &Bench, load: &Load, plan: DrawPlan, mut stamps: Stamps) -> Result<Vec<Draw>, Problem> {
    let Window { from_ns, to_ns } = plan.window;
    let ahead_ns = ahead_ns(bench, &mut stamps)?;
    thread::sleep(Duration::from_nanos(from_ns.saturating_sub(now_ns())));
    let depth = plan.depth.div_ceil(PER_BATCH).max(2);
    let mut waiting = VecDeque::with_capacity(depth);
    let mut draws: Vec<Draw> = Vec::new();
    loop {
        while waiting.len() < depth && draws.len() < DRAWS_MAX && now_ns() < to_ns {
            let draw = |_| {
                load.draw(&bench.gl);
                stamps.put()
            };
            let batch: Vec<_> = (0..BATCH).map(draw).collect();
            let fence = bench.submit("how processes share the GPU")?;
            waiting.push_back((now_ns(), fence, batch));
        }
        let Some((submitted_ns, fence, batch)) = waiting.pop_front() else { return Ok(draws) };
        if !bench.wait(fence, STUCK) {
            return Err(Problem::Stuck(STUCK.as_secs()));
        }
        draws.extend(batch.into_iter().map(|stamp| {
            let done_ns = stamps.read(stamp).wrapping_add(ahead_ns);
            Draw { submitted_ns, done_ns }
        }));
    }
}

/// What is to be added to the GPU's clock, so that it is that of this machine: the least that a fence was seen after
/// the stamp before it. Processes do that alike, so that their draws can be compared.
fn ahead_ns(bench: &Bench, stamps: &mut Stamps) -> Result<u64, Problem> {
    let mut least = None::<u64>;
    for _ in 0..COMPARISONS {
        let stamp = stamps.put();
        let fence = bench.submit("what time it is on the GPU")?;
        if !bench.wait(fence, STUCK) {
            return Err(Problem::Stuck(STUCK.as_secs()));
        }
        let seen_ns = now_ns();
        let ahead_ns = seen_ns.wrapping_sub(stamps.read(stamp));
        // The GPU's clock may be ahead of this machine's, so differences are signed.
        let is_less = |least: u64| ahead_ns.cast_signed() < least.cast_signed();
        least = Some(least.filter(|least| !is_less(*least)).unwrap_or(ahead_ns));
    }
    Ok(least.unwrap_or(0))
}

/// The same with a fence behind each draw.
fn fenced(bench: &Bench, load: &Load, plan: DrawPlan) -> Result<Vec<Draw>, Problem> {
    let Window { from_ns, to_ns } = plan.window;
    thread::sleep(Duration::from_nanos(from_ns.saturating_sub(now_ns())));
    let mut waiting = VecDeque::with_capacity(plan.depth);
    let mut draws: Vec<Draw> = Vec::new();
    loop {
        while waiting.len() < plan.depth && draws.len() < DRAWS_MAX && now_ns() < to_ns {
            load.draw(&bench.gl);
            let fence = bench.submit("how processes share the GPU")?;
            waiting.push_back((now_ns(), fence));
        }
        let Some((submitted_ns, fence)) = waiting.pop_front() else { return Ok(draws) };
        if !bench.wait(fence, STUCK) {
            return Err(Problem::Stuck(STUCK.as_secs()));
        }
        draws.push(Draw { submitted_ns, done_ns: now_ns() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_draws_survive_the_way() {
        let plan = DrawPlan { window: Window { from_ns: 5, to_ns: 9 }, depth: 24 };
        assert_eq!(plan.to_string().parse(), Ok(plan));
        for bad in ["", "1 2", "9 5 24", "5 9 0", "5 9 2000", "5 9 24 1"] {
            assert!(bad.parse::<DrawPlan>().is_err(), "{bad}");
        }
        let draws = [1, 2].map(|at| Draw { submitted_ns: at, done_ns: at + 10 });
        assert_eq!(from_line(&to_line(&draws)), Some(draws.to_vec()));
        assert_eq!(from_line(""), Some(Vec::new()));
        for bad in ["1", "1 2 3", "x y", "1 9 2 8"] {
            assert_eq!(from_line(bad), None, "{bad}");
        }
    }
}
