//! Work that the GPU interrupts, beside frames that must not be late.

use std::path::Path;

use takt_sim::{Scenario, scenario, summarize};

fn load(sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/divisible.toml");
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("a valid override")).collect();
    scenario::parse("divisible", &text, &sets, &|_| Err("no recordings".into())).expect("it is valid")
}

#[test]
fn long_kernels_take_the_rest_and_make_nothing_late() {
    for sets in [
        &["seed=1"][..],
        &["gpu.model=in-order", "gpu.switch_us=0"],
        &[
            "gpu.model=in-order",
            "gpu.switch_us=0",
            "gpu.divisible.quantum_us=200",
            "app.instrument.etpf_us=3910",
        ],
        &["gpu.divisible.quantum_us=200", "app.instrument.etpf_us=4060"],
        &["app.kernels.prediction.scale=inf"],
    ] {
        let summary = summarize(&load(sets));
        let [instrument, kernels] = &summary.apps[..] else { panic!("two apps") };
        assert_eq!((instrument.missed, instrument.deadlines), (0, 1140), "{sets:?}");
        let rest = 1.0 - instrument.gpu_share;
        let share = kernels.gpu_share / rest;
        assert!(share >= 0.95, "{sets:?}: {share} of the rest");
    }
}

/// Without the flag, or without such a GPU, they are groups that fit nowhere.
#[test]
fn kernels_that_are_not_divisible_are_held_for_ever() {
    for set in ["app.kernels.service.divisible=false", "app.kernels.etpf_us=1"] {
        let summary = summarize(&load(&[set]));
        let [instrument, kernels] = &summary.apps[..] else { panic!("two apps") };
        assert_eq!(instrument.missed, 0, "{set}");
        assert!(kernels.gpu_share < 0.01, "{set}: {}", kernels.gpu_share);
    }
}

/// A frame that takes nearly its whole period in one turn waits for one turn of divisible work, however many
/// apps have such work, and all of them have some of the rest.
#[test]
fn apps_with_divisible_work_share_the_rest() {
    let app = |name: &str, priority: u32, us: u32, more: &str| {
        format!("[[app]]\nname = \"{name}\"\npriority = {priority}\nfps = 60\nswap_us = {us}\n{more}")
    };
    let mut text = "name = \"t\"\nduration_s = 5\n\
        [scheduler]\ntimeslice_us = 20000\n\
        margins = { fixed_us = 0, upper = 1, lower = 1, dispatch_upper_us = 0, dispatch_lower_us = 0 }\n\
        [gpu]\nmodel = \"in-order\"\ndivisible = { slice_us = 300 }\n"
        .to_owned();
    text += &app("frame", 9, 15_000, "etpf_us = 16600\n");
    for number in 1..=5 {
        let more = "unpaced = true\nservice = { divisible = true }\n";
        text += &app(&format!("kernel-{number}"), number, 300, more);
    }
    for model in ["in-order", "runlist"] {
        let model = format!("gpu.model={model}").parse().expect("a valid override");
        let scenario = scenario::parse("t", &text, &[model], &|_| Err(String::new())).expect("it is valid");
        let summary = summarize(&scenario);
        assert_eq!(summary.apps[0].missed, 0);
        assert!(summary.apps[0].response_us.max <= 15_310.0, "{}", summary.apps[0].response_us.max);
        for kernel in &summary.apps[1..] {
            assert!(kernel.gpu_share > 0.015, "{} has {}", kernel.name, kernel.gpu_share);
        }
    }
}

/// One frame of `endless` lasts longer than the run, so its due date stays the earliest. The other one has turns when
/// it is late.
#[test]
fn an_app_that_never_ends_a_frame_has_turns_as_others_have() {
    let text = "name = \"t\"\nduration_s = 4\n\
        [scheduler]\ntimeslice_us = 20000\n\
        [gpu]\nmodel = \"in-order\"\ndivisible = { slice_us = 300 }\n\
        [[app]]\nname = \"endless\"\npriority = 2\nfps = 60\nunpaced = true\n\
        draws = [{ us = 2000, count = 4000 }]\nswap_us = 100\nservice = { divisible = true }\n\
        [[app]]\nname = \"other\"\npriority = 1\nfps = 60\nunpaced = true\n\
        swap_us = 2000\nservice = { divisible = true }\n";
    let scenario = scenario::parse("t", text, &[], &|_| Err(String::new())).expect("it is valid");
    let summary = summarize(&scenario);
    for app in &summary.apps {
        assert!(app.gpu_share > 0.05, "{} has {}", app.name, app.gpu_share);
    }
}
