//! Attacks the offline test of contracts: random sets just at its limit are played against
//! adversaries, and nothing that is covered may be late.
//!
//! The rule that is played: protected groups by earliest due date, bound by protected promises
//! that are due earlier (in flight, waiting or to come); best effort bound by all of them.

mod gpu;
mod machine;
mod promises;
mod sets;

use takt_rng::Rng;

use gpu::{Delays, Picks};
use machine::{Late, Machine};
use promises::Costs;
use sets::{App, Charge, Traits};

/// Ticks that each set is played: several of the longest periods.
const TICKS: u64 = 500;

const EVERYTHING: Traits = Traits { servers: true, gaps: true, jitter: true };
const PLAIN: Traits = Traits { servers: false, gaps: false, jitter: false };

/// What a test attacks.
struct Attack {
    in_order: bool,
    delayed: bool,
    traits: Traits,
    charge: fn(&Delays) -> Charge,
}

fn delays(rng: &mut Rng, attack: &Attack) -> Delays {
    let in_flight = rng.between(1, 3);
    let none = Delays { dispatch: 0, completion: 0, slice: 1 << 30, switch: 0, group_min: 1, in_flight };
    let mut delays = match attack.delayed {
        true => {
            let (dispatch, completion) = (rng.between(0, 2), rng.between(0, 2));
            Delays { dispatch, completion, group_min: rng.between(1, 3), ..none }
        }
        false => none,
    };
    if !attack.in_order && rng.percent(60) {
        (delays.switch, delays.slice) = (1, rng.between(2, 12));
    }
    delays
}

/// Plays one set twice.
fn play(rng: &mut Rng, attack: &Attack) -> Option<(Late, Vec<App>, Costs)> {
    let delays = delays(rng, attack);
    let costs = Costs { delays, charge: (attack.charge)(&delays), in_order: attack.in_order };
    let apps = sets::set(rng, &costs, attack.traits)?;
    let late = (0..2).find_map(|_| {
        let picks = match attack.in_order {
            true => Picks::InOrder,
            false => [Picks::LatestDue, Picks::Together, Picks::Random][rng.index(3)],
        };
        Machine::new(&apps, costs, picks, rng).play(TICKS, rng)
    });
    late.map(|late| (late, apps, costs))
}

/// How many sets a test plays.
fn rounds() -> u64 {
    if std::env::var_os("TAKT_SLOW_TESTS").is_some_and(|value| value == "1") { 50_000 } else { 1_000 }
}

#[track_caller]
fn holds(seed: u64, attack: &Attack) {
    for round in 0..rounds() {
        let late = play(&mut Rng::seeded(seed << 40 | round << 20), attack);
        assert!(late.is_none(), "round {round}: {late:?}");
    }
}

#[test]
fn nothing_covered_is_late_in_order() {
    holds(1, &Attack { in_order: true, delayed: false, traits: EVERYTHING, charge: Charge::usual });
}

#[test]
fn nothing_covered_is_late_in_order_with_delays() {
    holds(2, &Attack { in_order: true, delayed: true, traits: EVERYTHING, charge: Charge::usual });
}

#[test]
fn nothing_covered_is_late_in_turns() {
    holds(3, &Attack { in_order: false, delayed: false, traits: EVERYTHING, charge: Charge::usual });
}

#[test]
fn nothing_covered_is_late_in_turns_with_delays() {
    holds(4, &Attack { in_order: false, delayed: true, traits: EVERYTHING, charge: Charge::usual });
}

/// The attack is worth something: without the lead in the blocking, sets break.
#[test]
fn a_group_that_is_let_in_too_late_leaves_the_gpu_empty() {
    let charge = |delays: &Delays| Charge { lead: 0, ..Charge::usual(delays) };
    let attack = Attack { in_order: false, delayed: true, traits: PLAIN, charge };
    let late = (0..1_500).filter(|round| play(&mut Rng::seeded(round << 20), &attack).is_some());
    assert!(late.count() > 0);
}
