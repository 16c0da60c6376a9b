//! Random displays, and apps that go by them or by clocks of their own.

use proptest::prelude::*;
use proptest::sample::select;
use takt_core::limits::DISPLAYS_MAX;
use takt_core::{Clock, Config, DisplayId, Refresh, Span, Stride, Time};

use super::read;
use super::worlds::{interval, span};
use crate::model::{Jobs, Pace};
use crate::prove::{self, Execution, Options};
use crate::scenario::to_toml;

fn refresh() -> impl Strategy<Value = Refresh> {
    prop_oneof![
        Just(Refresh::HZ_60),
        (1_000..=1_000_000_u32).prop_map(|mhz| Refresh::from_mhz(mhz).unwrap()),
        (1..=4_000_000_000_u32).prop_map(|ns| Refresh::from_period_ns(ns.try_into().unwrap())),
    ]
}

/// A configuration with one display, or with as many as there can be.
pub(super) fn displays() -> impl Strategy<Value = Config> {
    let phased = || {
        (refresh(), any::<u64>()).prop_map(|(refresh, phase)| {
            let phase = phase % refresh.period_span().as_ns();
            refresh.with_origin(Time::from_ns(phase))
        })
    };
    let others: [_; DISPLAYS_MAX - 1] = std::array::from_fn(|_| phased());
    let others = prop_oneof![Just(Config::default().more_displays), others];
    (refresh(), others).prop_map(|(refresh, more_displays)| Config {
        refresh,
        more_displays,
        ..Config::default()
    })
}

fn stride() -> impl Strategy<Value = Stride> {
    select(vec![1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 24]).prop_map(|s| Stride::new(s).unwrap())
}

/// A clock that the scheduler knows, and a stride that goes with it.
pub(super) fn timing() -> impl Strategy<Value = (Clock, Stride)> {
    let number = 0..u8::try_from(DISPLAYS_MAX).unwrap();
    let shown = number.prop_map(|number| Clock::Display(DisplayId(number)));
    let own = (100_000..=4_000_000_000_u64, 1_000..=4_000_000_000_u64).prop_map(|(period, deadline)| {
        Clock::Own { period: Span::from_ns(period), deadline: Span::from_ns(deadline.min(period)) }
    });
    let display = prop_oneof![Just(Clock::default()), shown];
    prop_oneof![2 => (display, stride()), 1 => (own, Just(Stride::ONE))]
}

/// When an app begins frames of which the scheduler takes `clock` to be the source.
pub(super) fn pace(clock: Clock) -> impl Strategy<Value = Pace> {
    let known = match clock {
        Clock::Own { period, deadline } => Some((period, deadline)),
        Clock::Display(_) => None,
    };
    let jobs = (span(), interval(), interval(), any::<bool>()).prop_map(
        move |(offset, period, deadline, honest)| {
            let (period, deadline) = known.filter(|_| honest).unwrap_or((period, deadline));
            Pace::Periodic(Jobs { offset, period, deadline })
        },
    );
    prop_oneof![Just(Pace::Released), Just(Pace::Unpaced), jobs]
}

/// Counterexamples to the guarantee are shown as files, so a file must say all that there is in a case.
#[test]
fn cases_of_the_guarantee_are_read_back() {
    let in_turn = Execution::TimeShared { switch: Span::from_us(160) };
    for (gpu, mixed) in [(Execution::InOrder, true), (in_turn, true), (Execution::InOrder, false)] {
        let options = Options { gpu, mixed, ..Options::default() };
        let mut clocks = 0;
        for index in 0..200 {
            let mut scenario = prove::draw(&options, index).scenario;
            // In files no app changes after its end.
            scenario.apps.iter_mut().for_each(|app| app.end = None);
            // How the GPU executes follows from its model.
            scenario.config.gpu = takt_core::Gpu::default();
            clocks += scenario.apps.iter().filter(|app| app.params.clock != Clock::default()).count();
            let text = to_toml(&scenario);
            match read(&text, &[]) {
                Ok(back) => assert_eq!(back, scenario, "case {index}"),
                Err(found) => panic!("case {index}: {}\n{text}", found[0]),
            }
        }
        assert_eq!(mixed, clocks > 0);
    }
}
