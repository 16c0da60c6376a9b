//! Verdicts on small scenarios.

use takt_core::{Clock, Divisible, Gpu, Span, Time};
use takt_sim::Scenario;

use super::{ContractKind, Verdict, gpu, judge, text};
use crate::load;

/// Three apps whose frames of one group take as long as said, without margins.
fn scenario(apps: &[(&str, u32, u64, u64)]) -> Scenario {
    let mut file = "name = \"three\"\nduration_s = 1\n[scheduler]\npolicy = \"timeline\"\n".to_owned();
    for (index, (name, fps, swap_us, etpf_us)) in apps.iter().enumerate() {
        let priority = 9 - index;
        file += &format!(
            "[[app]]\nname = \"{name}\"\npriority = {priority}\nfps = {fps}\nswap_us = {swap_us}\netpf_us = {etpf_us}\n"
        );
    }
    let mut scenario = load::parse("three", &file, &[], None).expect("it is right");
    scenario.config.margins = takt_core::Margins::NONE;
    scenario
}

fn own_clock(scenario: &mut Scenario, index: usize, period_us: u64) {
    let period = Span::from_us(period_us);
    scenario.apps[index].params.clock = Clock::Own { period, deadline: period };
}

fn why(verdict: &Verdict, index: usize) -> &str {
    verdict.apps[index].why_not.as_deref().unwrap_or("covered")
}

fn lines(verdict: &Verdict) -> Vec<&str> {
    verdict.suggestions.iter().map(|one| one.text.as_str()).collect()
}

#[test]
fn every_app_has_a_reason() {
    let apps =
        [("map", 60, 9000, 9000), ("game", 20, 16_000, 16_000), ("menu", 30, 500, 500), ("rest", 60, 900, 0)];
    let verdict = judge(&scenario(&apps), None);
    assert_eq!(why(&verdict, 0), "covered");
    assert_eq!(why(&verdict, 1), "needs 667 us less in 33.3 ms");
    assert_eq!(why(&verdict, 2), "3rd in the order: follows game, which is not covered");
    assert_eq!(why(&verdict, 3), "claims nothing: best effort");
    assert_eq!(verdict.protected, 1);
    assert!(lines(&verdict)[0].starts_with("game: etpf of 15333 us, the largest that fits"), "{verdict:?}");
    let shown = text::describe(&verdict);
    assert!(shown.contains("Covered: 1 of 3 apps with a contract.\n"), "{shown}");
    assert!(shown.contains("Suggestion: game: etpf of 15333 us"), "{shown}");
}

#[test]
fn overload_says_what_is_missing_too() {
    let verdict = judge(&scenario(&[("map", 60, 9000, 9000), ("game", 60, 9000, 9000)]), None);
    assert_eq!(why(&verdict, 1), "needs 1334 us less per period: all down to it claim 108.0 % of the GPU");
}

#[test]
fn own_clocks_block_and_short_groups_help() {
    let mut scenario = scenario(&[("map", 60, 8000, 8000), ("sensor", 60, 9000, 9000)]);
    own_clock(&mut scenario, 1, 40_000);
    let verdict = judge(&scenario, None);
    assert_eq!(verdict.apps[1].contract, ContractKind::OwnClock);
    assert!((verdict.apps[1].fps - 25.0).abs() < 1e-9);
    assert_eq!(why(&verdict, 1), "needs 334 us less in 16.7 ms");
    assert!(verdict.stagger.is_empty());
    let line = "groups of at most 8666 us (group_max): all contracts hold";
    assert!(lines(&verdict).contains(&line), "{:?}", lines(&verdict));
    scenario.config.tuning.group_max = Span::from_us(8666);
    assert!(judge(&scenario, None).schedulable);
}

/// What the GPU adds makes no group too long; what the scheduler promises nothing is not covered.
#[test]
fn groups_longer_than_group_max_are_not_covered() {
    let mut scenario = scenario(&[("map", 60, 8000, 9000), ("sensor", 60, 400, 900)]);
    own_clock(&mut scenario, 1, 40_000);
    scenario.config.gpu = Gpu::TimeShared { slice: Span::from_us(1000), switch: Span::from_us(222) };
    scenario.config.tuning.group_max = Span::from_us(8000);
    let verdict = judge(&scenario, None);
    assert_eq!([why(&verdict, 0), why(&verdict, 1)], ["covered"; 2]);
    scenario.config.tuning.group_max = Span::from_us(7950);
    let verdict = judge(&scenario, None);
    assert_eq!(why(&verdict, 0), "its groups may be 50 us longer than group_max");
    assert_eq!(verdict.apps[0].missing_us, Some(50.0));
    assert_eq!(why(&verdict, 1), "covered");
    assert!(lines(&verdict).is_empty(), "{:?}", lines(&verdict));
}

#[test]
fn a_frame_pays_for_two_switches_however_long_turns_are() {
    let mut scenario = scenario(&[("map", 60, 8000, 8150)]);
    assert_eq!(why(&judge(&scenario, None), 0), "covered");
    for slice in [100, 1000] {
        scenario.config.gpu = Gpu::TimeShared { slice: Span::from_us(slice), switch: Span::from_us(100) };
        let verdict = judge(&scenario, None);
        assert_eq!(why(&verdict, 0), "its frames may need 50 us more than etpf");
        let found = lines(&verdict);
        assert!(found[0].starts_with("map: etpf of 8200 us, enough for its frames"), "{found:?}");
    }
}

#[test]
fn frames_need_turns_of_divisible_work_as_well() {
    let mut scenario = scenario(&[("map", 60, 8000, 8450)]);
    let [slice, quantum, own_slice, switch] = [300, 0, 5000, 0].map(Span::from_us);
    scenario.config.divisible = Some(Divisible { slice, quantum, own_slice, switch });
    let verdict = judge(&scenario, None);
    assert_eq!(verdict.gpu, "in-order; divisible work in turns of 300 us");
    assert_eq!(why(&verdict, 0), "its frames may need 150 us more than etpf");
    let found = lines(&verdict);
    assert!(found.contains(&"without divisible work 1 apps are covered in place of 0"), "{found:?}");
    // One turn in place of two is 300 less: one slice must hold the whole frame.
    let slice = "slices of 8000 us for apps with a contract (gpu.own_slice_us of the daemon, timeslice_us of a \
                 scenario): 1 apps are covered in place of 0";
    assert!(found.contains(&slice), "{found:?}");
    scenario.config.divisible =
        Some(Divisible { own_slice: Span::from_us(8000), ..scenario.config.divisible.unwrap() });
    assert_eq!(why(&judge(&scenario, None), 0), "covered");
    scenario.config.divisible = Some(Divisible { own_slice, ..scenario.config.divisible.unwrap() });
    scenario.apps[0].params.etpf = Span::from_us(8600);
    let verdict = judge(&scenario, None);
    assert_eq!(why(&verdict, 0), "covered");
    assert!(!lines(&verdict).iter().any(|line| line.contains("divisible")), "{verdict:?}");
}

#[test]
fn a_stagger_is_suggested_where_it_helps() {
    let apps = [("a", 20, 12_000, 12_000), ("b", 20, 12_000, 12_000), ("c", 20, 12_000, 12_000)];
    let verdict = judge(&scenario(&apps), None);
    assert!(!verdict.schedulable && verdict.schedulable_staggered);
    assert!(lines(&verdict).iter().any(|line| line.starts_with("stagger first deadlines")), "{verdict:?}");
}

#[test]
fn the_check_and_the_scheduler_say_the_same() {
    for etpf in (1000..16_000).step_by(3000) {
        let mut scenario = scenario(&[("a", 60, 5000, 5000), ("b", 30, etpf, etpf), ("c", 60, 2000, 2000)]);
        own_clock(&mut scenario, 2, 20_000);
        let policy = takt_policies::by_name("timeline").expect("it is there");
        let mut scheduler = takt_core::Scheduler::new(scenario.config, policy);
        for (index, app) in (0..).zip(&scenario.apps) {
            let join = takt_core::Event::Join { app: takt_core::AppId(index), params: app.params, phase: 0 };
            scheduler.handle_event(Time::ZERO, join);
        }
        let verdict = judge(&scenario, None);
        // Both have the most important app first.
        for (lane, app) in scheduler.lanes().iter().zip(&verdict.apps) {
            assert_eq!(lane.protected, app.headroom_us.is_some(), "{} with etpf {etpf}", app.name);
        }
    }
}

#[test]
fn undeclared_gaps_are_outside_the_guarantee_and_shared_contracts_are_not() {
    let verdict = judge(&scenario(&[("map", 60, 5000, 5000), ("menu", 30, 500, 0)]), None);
    assert!(verdict.caveats.is_empty(), "{:?}", verdict.caveats);
    let file = "name = \"gaps\"\nduration_s = 1\n
        [[app]]\nname = \"dial\"\npriority = 3\nfps = 60\netpf_us = 5000\nswap_us = 100\n\
        draws = [{ us = 100, sync = true }]\n
        [[app]]\nname = \"job\"\npriority = 2\nfps = 60\nswap_us = 100\n\
        service = { reserve_us = 1000, period_us = 20000 }\n
        [[app]]\nname = \"feeder\"\npriority = 1\nfps = 60\nswap_us = 100\n\
        draws = [{ us = 100, sync = true }]\nservice = { shared_with = \"job\" }\n";
    let verdict = judge(&load::parse("gaps", file, &[], None).expect("it is right"), None);
    let expected = ["frames or jobs have more or longer gaps than gaps and gap_us declare: dial"];
    assert_eq!(verdict.caveats, expected);
    let declared = file.replacen("etpf_us = 5000", "etpf_us = 5000\ngaps = 1\ngap_us = 300", 1);
    let declared = judge(&load::parse("gaps", &declared, &[], None).expect("it is right"), None);
    assert!(declared.caveats.is_empty(), "{:?}", declared.caveats);
    let needs = |verdict: &Verdict| verdict.apps[0].needs_us.expect("it has a bound");
    let margins = takt_core::Margins::default();
    assert_eq!(needs(&declared) - needs(&verdict), 300.0 + margins.per_frame(5).as_ns() as f64 / 1000.0);
    let feeder = verdict.apps.iter().find(|app| app.name == "feeder").expect("it is there");
    assert!(feeder.covered, "{feeder:?}");
    assert_eq!(feeder.runs_on.as_ref().map(|on| on.app.as_str()), Some("job"));
}

/// Jobs of a server with gaps are frames: a sharer is a source of these, and a producer runs on nothing.
#[test]
fn nothing_is_said_of_gaps_together_with_sources() {
    let file = |gaps: &str| {
        format!(
            "name = \"both\"\nduration_s = 1\n
            [[app]]\nname = \"map\"\npriority = 6\nfps = 60\netpf_us = 5000\nswap_us = 100\n{gaps}\n
            [[app]]\nname = \"hud\"\npriority = 5\nfps = 60\nswap_us = 100\nstarts_with = \"map\"\n\
            service = {{ shared_with = \"map\" }}\n
            [[app]]\nname = \"job\"\npriority = 4\nfps = 60\nswap_us = 100\n{gaps}\n\
            service = {{ reserve_us = 5000, period_us = 20000 }}\n
            [[app]]\nname = \"sharer\"\npriority = 3\nfps = 60\nswap_us = 100\n\
            service = {{ shared_with = \"job\" }}\n
            [[app]]\nname = \"feeder\"\npriority = 2\nfps = 60\nswap_us = 100\n\
            service = {{ feeds = \"job\" }}\n"
        )
    };
    let judged = |gaps| judge(&load::parse("both", &file(gaps), &[], None).expect("it is right"), None);
    let plain = judged("");
    assert!(plain.apps.iter().all(|app| app.covered), "{:?}", plain.apps);
    let gaps = judged("gaps = 1\ngap_us = 300");
    assert!(gaps.apps.iter().all(|app| !app.covered), "{:?}", gaps.apps);
    let reasons: Vec<&str> = (0..5).map(|app| why(&gaps, app)).collect();
    let both = "its frames have both gaps and sources, for which nothing is promised yet";
    let of = |host: &str| format!("runs on the contract of {host}, which is not covered");
    assert_eq!(reasons, [both, &of("map"), both, &of("job"), "claims nothing: best effort"]);
    assert!(gaps.apps[4].runs_on.is_none());
    assert_eq!(gaps.caveats, ["frames have both gaps and sources, of which nothing is proven: map, job"]);
}

#[test]
fn frames_need_what_all_their_sources_submit() {
    let file = |model: &str| {
        format!(
            "name = \"sources\"\nduration_s = 1\n[gpu]\n{model}\n
            [[app]]\nname = \"map\"\npriority = 3\nfps = 60\netpf_us = 5000\nswap_us = 1000\n
            [[app]]\nname = \"hud\"\npriority = 2\nfps = 60\nswap_us = 2000\nstarts_with = \"map\"\n\
            service = {{ shared_with = \"map\" }}\n"
        )
    };
    let judged = |model: &str| {
        let mut scenario = load::parse("sources", &file(model), &[], None).expect("it is right");
        gpu::choose(&mut scenario, None).expect("the GPU of the scenario");
        judge(&scenario, None)
    };
    let in_order = judged("model = \"in-order\"");
    let [map, hud] = [0, 1].map(|app: usize| in_order.apps[app].needs_us.expect("a bound"));
    assert!(hud > 2000.0 && map > hud + 1000.0, "{:?}", in_order.apps);
    assert!(in_order.apps.iter().all(|app| app.covered), "{:?}", in_order.apps);
    // Where contexts take turns, each group pays for two switches and two turnarounds: too much for the frame.
    let shared = judged("model = \"runlist\"\nswitch_us = 700");
    assert!(shared.apps.iter().all(|app| !app.covered), "{:?}", shared.apps);
    assert!(shared.apps[1].why_not.as_ref().is_some_and(|why| why.contains("the contract of map")));
}
