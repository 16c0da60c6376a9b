//! Completions of GPUs that are made up.

use std::collections::VecDeque;

use super::*;
use takt_rng::Rng;

/// A GPU that is made up.
#[derive(Clone, Copy)]
enum Made {
    InOrder { switch_ns: u64 },
    TimeShared { slice_ns: u64, switch_ns: u64 },
    SideBySide,
    Starving,
}

const PACES: [u64; 2] = [40_000, 45_000];
const DEPTHS: [usize; 2] = [96, 24];
const LENGTH_NS: u64 = 1_000_000_000;
const WINDOW: Window = Window { from_ns: 50_000_000, to_ns: LENGTH_NS };

/// Two processes that keep draws waiting, each a new one when one ends.
struct Processes {
    waiting: [VecDeque<u64>; 2],
    done: [Vec<Draw>; 2],
}

impl Processes {
    fn new() -> Self {
        let waiting = DEPTHS.map(|depth| (0..depth as u64).map(|number| number * 7_000).collect());
        Self { waiting, done: [Vec::new(), Vec::new()] }
    }

    fn complete(&mut self, who: usize, at_ns: u64) {
        let submitted_ns = self.waiting[who].pop_front().expect("always full");
        self.waiting[who].push_back(at_ns + 3_000);
        self.done[who].push(Draw { submitted_ns, done_ns: at_ns });
    }

    /// Who is next on a GPU, after so many nanoseconds of its turn.
    fn next(&self, made: Made, who: usize, turn_ns: u64) -> usize {
        match made {
            Made::InOrder { .. } => usize::from(self.waiting[1].front() < self.waiting[0].front()),
            Made::TimeShared { slice_ns, .. } if turn_ns >= slice_ns => 1 - who,
            Made::Starving => usize::from(self.done[0].len() % 300 == 299 && who == 0),
            _ => who,
        }
    }
}

/// What two processes see of a GPU; each sees ends up to `late_ns` late.
fn played(made: Made, late_ns: u64) -> [Vec<Draw>; 2] {
    let mut processes = Processes::new();
    if let Made::SideBySide = made {
        for who in [0, 1] {
            (1..LENGTH_NS / PACES[who]).for_each(|number| processes.complete(who, number * PACES[who]));
        }
        return processes.done.map(|draws| seen_late(draws, late_ns));
    }
    let (Made::InOrder { switch_ns } | Made::TimeShared { switch_ns, .. }) = made else {
        return played_turns(processes, made, 0).map(|draws| seen_late(draws, late_ns));
    };
    played_turns(processes, made, switch_ns).map(|draws| seen_late(draws, late_ns))
}

fn played_turns(mut processes: Processes, made: Made, switch_ns: u64) -> [Vec<Draw>; 2] {
    let (mut now_ns, mut who, mut turn_ns) = (0, 0, 0);
    while now_ns < LENGTH_NS {
        let next = processes.next(made, who, turn_ns);
        if next != who {
            (now_ns, who, turn_ns) = (now_ns + switch_ns, next, 0);
        }
        now_ns += PACES[who];
        turn_ns += PACES[who];
        processes.complete(who, now_ns);
    }
    processes.done
}

fn seen_late(mut draws: Vec<Draw>, late_ns: u64) -> Vec<Draw> {
    let (mut rng, mut last_ns) = (Rng::seeded(draws.len() as u64), 0);
    for draw in &mut draws {
        let late = rng.between(0, late_ns.saturating_sub(1));
        draw.done_ns = (draw.done_ns + late).max(last_ns);
        last_ns = draw.done_ns;
    }
    draws
}

fn judged(made: Made, late_ns: u64) -> Result<Verdict, Unclear> {
    let [first, second] = played(made, late_ns);
    verdict(PACES.map(|pace| pace as f64), [&first, &second], WINDOW, false)
}

fn is_near(found: f64, real: f64, by: f64) -> bool {
    (found - real).abs() <= by
}

#[test]
fn turns_are_found_with_their_length_and_cost() {
    for (slice_us, switch_us) in [(1000, 0), (1000, 160), (2000, 0), (2000, 160), (300, 160)] {
        let made = Made::TimeShared { slice_ns: slice_us * 1000, switch_ns: switch_us * 1000 };
        let verdict = judged(made, 0).unwrap();
        let Execution::TimeShared { slice_us: slice, switch_us: switch } = verdict.execution else {
            panic!("{slice_us}, {switch_us}: {verdict:?}")
        };
        // The last draw of a turn is not interrupted.
        assert!(is_near(slice, slice_us as f64 + 22.5, 22.5), "{slice_us}, {switch_us}: {verdict:?}");
        assert!(is_near(switch, switch_us as f64, 5.0), "{slice_us}, {switch_us}: {verdict:?}");
        assert!(verdict.turns as u64 > 900_000 / (slice_us + 50 + switch_us), "{verdict:?}");
    }
}

#[test]
fn clocks_that_are_late_change_little() {
    for (slice_us, switch_us) in [(1000, 0), (1000, 160), (2000, 160)] {
        let made = Made::TimeShared { slice_ns: slice_us * 1000, switch_ns: switch_us * 1000 };
        let verdict = judged(made, 120_000).unwrap();
        let Execution::TimeShared { slice_us: slice, switch_us: switch } = verdict.execution else {
            panic!("{slice_us}, {switch_us}: {verdict:?}")
        };
        assert!(is_near(slice, slice_us as f64, 0.12 * slice_us as f64), "{verdict:?}");
        assert!(is_near(switch, switch_us as f64, 25.0), "{verdict:?}");
        let spread = verdict.switch_us.expect("there are turns");
        assert!(spread.lower <= spread.median && spread.median <= spread.upper, "{verdict:?}");
    }
}

#[test]
fn a_gpu_in_order_is_not_taken_for_one_with_turns() {
    for (switch_ns, late_ns) in [(0, 0), (100_000, 0), (0, 60_000), (100_000, 60_000)] {
        let verdict = judged(Made::InOrder { switch_ns }, late_ns).unwrap();
        let Execution::InOrder { switch_us } = verdict.execution else { panic!("{verdict:?}") };
        assert!(is_near(switch_us, switch_ns as f64 / 1000.0, 10.0), "{verdict:?}");
        assert_eq!(verdict.slice_us, None);
    }
}

#[test]
fn processes_side_by_side_have_no_slice() {
    let verdict = judged(Made::SideBySide, 30_000).unwrap();
    assert_eq!(verdict.execution, Execution::SideBySide);
    assert_eq!((verdict.slice_us, verdict.switch_us, verdict.turns), (None, None, 0));
    assert!(is_near(verdict.work, 2.0, 0.05), "{verdict:?}");
}

#[test]
fn a_renderer_on_the_cpu_has_none_either_though_it_looks_so() {
    let [first, second] = played(Made::TimeShared { slice_ns: 3_000_000, switch_ns: 0 }, 0);
    let found = verdict(PACES.map(|pace| pace as f64), [&first, &second], WINDOW, true).unwrap();
    assert_eq!(found.execution, Execution::SideBySide);
}

#[test]
fn who_is_starved_is_told() {
    let Err(Unclear::Starved(share)) = judged(Made::Starving, 0) else { panic!("it had nothing") };
    assert!(share < 0.01, "{share}");
    let [first, _] = played(Made::Starving, 0);
    let nothing = verdict([1e4, 1e4], [&first, &[]], WINDOW, false);
    assert_eq!(nothing, Err(Unclear::Starved(0.0)));
}

#[test]
fn too_little_says_nothing() {
    let [first, second] = played(Made::TimeShared { slice_ns: 1_000_000, switch_ns: 0 }, 0);
    let few = verdict([4e4, 4e4], [&first[..50], &second[..50]], Window { from_ns: 0, ..WINDOW }, false);
    assert_eq!(few, Err(Unclear::FewDraws(100)));
    let [first, second] = played(Made::TimeShared { slice_ns: 90_000_000, switch_ns: 0 }, 0);
    let few = verdict([4e4, 4e4], [&first, &second], WINDOW, false);
    assert!(matches!(few, Err(Unclear::FewTurns(turns)) if turns < 12), "{few:?}");
    assert_eq!(pace_ns(&first[..10], Window { from_ns: 0, ..WINDOW }), Err(Unclear::FewDraws(10)));
    assert_eq!(verdict([0.0; 2], [&[], &[]], WINDOW, false), Err(Unclear::FewDraws(0)));
}

#[test]
fn the_pace_is_that_of_the_window() {
    let draws: Vec<Draw> = (0..1000).map(|at| Draw { submitted_ns: at, done_ns: at * at }).collect();
    let window = Window { from_ns: 500 * 500, to_ns: 1000 * 1000 };
    assert_eq!(pace_ns(&draws, window), Ok((999 * 999 - 500 * 500) as f64 / 499.0));
}
