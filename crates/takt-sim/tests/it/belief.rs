//! Wrong estimates in the simulator, with and without the daemon's rules for them.

use std::collections::BTreeSet;

use takt_core::{Action, AppId, Event, GroupId, Refusal, Span, Time};
use takt_sim::{World, scenario};
use takt_trace::{Observer, Record};

const DIAL: AppId = AppId(0);
const OTHER: AppId = AppId(1);

const BELIEF: &str = "belief = true";

/// What counts here.
#[derive(Default)]
struct Seen {
    /// Per app: frames done, and deadlines missed.
    frames: [u64; 2],
    missed: [u64; 2],
    /// When estimates were revised, and to what.
    revised: Vec<(Time, Span)>,
    /// Longest estimate of each app that the scheduler heard of.
    longest: [Span; 2],
    groups: BTreeSet<GroupId>,
    refused: u64,
}

impl Observer for Seen {
    fn record(&mut self, at: Time, record: &Record) {
        match *record {
            Record::In(Event::Submit { app, estimate, .. }) => {
                let longest = &mut self.longest[app.index()];
                *longest = estimate.span().max(*longest);
            }
            Record::In(Event::Revise { group, estimate, .. }) => {
                self.revised.push((at, estimate.span()));
                self.groups.insert(group);
            }
            Record::Out(Action::FrameDone(done)) => self.frames[done.app.index()] += 1,
            Record::Out(Action::Missed { app, count, .. }) => self.missed[app.index()] += count,
            Record::Out(Action::Refused { group: Some(group), reason, .. }) => {
                let revised = self.groups.contains(&group) && reason == Refusal::UnknownGroup;
                self.refused += u64::from(revised);
            }
            _ => {}
        }
    }
}

/// Plays for 30 s what the daemon's `tests/belief.rs` plays with live clients: a dial of 60 FPS that
/// reserves 8 ms and takes 7, and another app that takes 0.5 ms and goes on at once.
fn play(belief: &str, dial: &str, other: &str) -> Seen {
    let text = format!(
        "name = \"t\"\nduration_s = 30\n[scheduler]\nmpcg = 2\nmax_blocking_us = 1000\n{belief}\n\
         [gpu]\nmodel = \"any-order\"\n\
         [[app]]\nname = \"dial\"\npriority = 9\nfps = 60\netpf_us = 8000\nsynchronous = true\n\
         swap_us = 7000\n{dial}\n\
         [[app]]\nname = \"other\"\npriority = 1\nfps = 60\nunpaced = true\nsynchronous = true\n\
         swap_us = 500\n{other}\n"
    );
    let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
    let mut seen = Seen::default();
    takt_sim::run(&scenario, &mut seen);
    seen
}

/// Only the first frame falls into that time.
fn first_frame(prediction: &str) -> String {
    format!("[[app.phase]]\nfrom_s = 0\nuntil_s = 0.001\nprediction = {{ {prediction} }}")
}

#[test]
fn one_wrong_estimate_starves_an_app_only_without_belief() {
    for wrong in ["bias_us = 158_500", "scale = inf"] {
        let starved = play("", "", &first_frame(wrong));
        assert_eq!(starved.frames[OTHER.index()], 0, "its only wrong estimate is never found out");
        assert_eq!(starved.revised.len(), 0);
        let seen = play(BELIEF, "", &first_frame(wrong));
        assert_eq!(seen.revised, [(Time::from_ms(2_000), Span::from_ms(1))], "once, after two seconds");
        assert!(seen.frames[OTHER.index()] > 1_000, "{:?}", seen.frames);
        assert_eq!(seen.missed[DIAL.index()], 0, "and this costs no other app a deadline");
    }
}

#[test]
fn uncut_work_that_may_run_breaks_promises_each_time() {
    let long = "[[app.phase]]\nfrom_s = 0\nuntil_s = 30\ngpu_scale = 318";
    let waits = play("", "", long);
    assert_eq!((waits.frames[OTHER.index()], waits.missed[DIAL.index()]), (0, 0), "it fits nowhere");
    let seen = play(BELIEF, "", long);
    let ran = seen.frames[OTHER.index()];
    assert!(ran > 10, "{:?}", seen.revised);
    assert!(seen.missed[DIAL.index()] >= ran * 8, "{:?}", seen.missed);
}

#[test]
fn a_reservation_caps_what_is_believed() {
    let wrong = first_frame("bias_us = 100_000");
    let late = play("", &wrong, "");
    let seen = play(BELIEF, &wrong, "");
    assert_eq!(late.longest[DIAL.index()], Span::from_ms(107));
    assert_eq!(seen.longest[DIAL.index()], Span::from_ms(8));
    assert!(late.missed[DIAL.index()] > 0 && seen.missed[DIAL.index()] == 0, "{:?}", late.missed);
}

/// Otherwise an app with a small reservation would run what others have to wait with.
#[test]
fn a_small_reservation_does_not_let_long_work_pass() {
    for (etpf_us, draws) in [(1_000, ""), (400, "draws = [{ us = 500, count = 30 }]")] {
        let long =
            format!("etpf_us = {etpf_us}\n{draws}\n[[app.phase]]\nfrom_s = 0\nuntil_s = 30\ngpu_scale = 100");
        let seen = play(BELIEF, "", &long);
        // Two groups lift the cap; from then on one runs every two seconds, as uncut work may here. Each costs up to
        // seven of 1800 deadlines.
        let ran = seen.revised.len() as u64 + 2;
        assert!(seen.missed[DIAL.index()] <= 7 * ran && ran < 18, "{:?} in {ran}", seen.missed);
    }
}

/// Apps that end, change and lose completions on each kind of GPU under each policy: no estimate of
/// a group is revised that does not wait.
#[test]
fn only_waiting_groups_are_revised() {
    let mut revised = 0;
    for name in takt_policies::NAMES {
        for model in ["in-order", "preemptive", "runlist", "any-order"] {
            let text = format!(
                "name = \"t\"\nduration_s = 6\n[scheduler]\nbelief = true\npolicy = \"{name}\"\n\
                 max_blocking_us = 1000\n[gpu]\nmodel = \"{model}\"\nlost_completion = 0.01\n\
                 [[app]]\nname = \"dial\"\npriority = 9\nfps = 60\netpf_us = 8000\ndraws = [{{ us = 6000 }}]\n\
                 swap_us = 1000\nservice = {{ reserve_us = 8000, period_us = 16000 }}\n\
                 [[app]]\nname = \"other\"\npriority = 1\nfps = 30\ndraws = [{{ us = 500, count = 3 }}]\n\
                 swap_us = 500\ncrash_s = 5\ncrash_notice_ms = 3\n\
                 prediction = {{ outliers = {{ share = 0.2, error_us = [1000, 900_000] }} }}\n\
                 service = {{ reserve_us = 1000, period_us = 16000, enforcement = \"apriori\" }}\n\
                 [[app.change]]\nat_s = 4\netpf_us = 1000\n"
            );
            let scenario = scenario::parse("t", &text, &[], &|_| Err(String::new())).expect("it makes sense");
            let mut seen = Seen::default();
            let mut world = World::new(&scenario, &mut seen);
            world.run_until(Time::ZERO + scenario.duration);
            world.scheduler().check_invariants();
            assert_eq!(seen.refused, 0, "{name}, {model}");
            revised += seen.revised.len();
        }
    }
    assert!(revised > 10, "{revised}");
}
