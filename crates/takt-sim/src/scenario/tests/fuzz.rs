//! Random scenarios and random nonsense: what is written is read back, and nothing panics.

mod clocks;
mod damage;
mod worlds;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use takt_core::{Config, Span, Time};

use damage::{KEYS, damage, harm, tree};
use worlds::scenario;

use super::*;
use crate::model::*;

fn read(text: &str, overrides: &[Override]) -> Result<Scenario, Vec<Diagnostic>> {
    let none = |path: &str| Err(format!("no file {path}"));
    let result = parse("x.toml", text, overrides, &none);
    if let Err(found) = &result {
        assert!(!found.is_empty());
        for diagnostic in found {
            assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
            assert!(!diagnostic.message.is_empty() && !diagnostic.remedy.is_empty());
            assert!(!diagnostic.message.contains("cannot be understood"), "{diagnostic}");
        }
    }
    result
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(scenario in scenario()) {
        let text = to_toml(&scenario);
        match read(&text, &[]) {
            Ok(back) => prop_assert_eq!(back, scenario),
            Err(found) => prop_assert!(false, "{}\n{text}", found[0]),
        }
    }

    /// Every valid scenario can be simulated and judged: nothing panics, time passes, no rule of all
    /// runs is broken, and shares are shares.
    #[test]
    fn what_is_valid_can_be_run(mut scenario in scenario()) {
        scenario.duration = scenario.duration.min(Span::from_ms(50));
        scenario.warm_up = Span::ZERO;
        let meta = crate::meta(&scenario);
        let mut metrics = takt_trace::Metrics::new(meta.clone(), scenario.warm_up);
        let mut trace = takt_trace::export::Perfetto::new(std::io::sink(), &meta).unwrap();
        // How the GPU executes follows from its model.
        let gpu = scenario.gpu.gpu(scenario.config.tuning.timeslice);
        let mut rules = takt_trace::rules::Rules::of(&Config { gpu, ..scenario.config });
        let mut world = crate::World::new(&scenario, ((&mut metrics, &mut rules), &mut trace));
        world.run_until(Time::ZERO + scenario.duration);
        world.scheduler().check_invariants();
        let outcome = world.outcome();
        let summary = metrics.finish(outcome.facts(&scenario));
        trace.finish().unwrap();
        prop_assert_eq!(rules.broken(), &[""; 0]);
        prop_assert!((0.0..=1.0).contains(&summary.gpu.utilisation), "{}", summary.gpu.utilisation);
        for app in &summary.apps {
            prop_assert!((0.0..=1.0).contains(&app.met), "{}", app.met);
        }
    }

    #[test]
    fn random_text_is_survived(bytes in vec(any::<u8>(), 0..400)) {
        drop(read(&String::from_utf8_lossy(&bytes), &[]));
    }

    #[test]
    fn damaged_scenarios_are_survived(
        file in any::<Index>(),
        damages in vec(damage(), 1..5),
    ) {
        let files = shipped();
        let (_, text) = file.get(&files);
        let harmed = damages.iter().fold(text.clone(), |text, damage| harm(&text, damage));
        if let Ok(scenario) = read(&harmed, &[]) {
            prop_assert_eq!(read(&to_toml(&scenario), &[]), Ok(scenario));
        }
    }

    #[test]
    fn random_trees_are_survived(entries in vec((select(KEYS), tree()), 0..8)) {
        let text: String = entries.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        drop(read(&text, &[]));
    }

    #[test]
    fn random_overrides_are_survived(
        sets in vec((vec(select(KEYS), 1..4), tree()), 1..4),
        file in any::<Index>(),
    ) {
        let files = shipped();
        let (_, text) = file.get(&files);
        let set = |(keys, value): (Vec<&str>, String)| Override { key: keys.join("."), value };
        let overrides: Vec<Override> = sets.into_iter().map(set).collect();
        drop(read(text, &overrides));
    }
}

#[test]
fn shipped_scenarios_are_read_back() {
    for (_, text) in shipped() {
        let scenario = read(&text, &[]).unwrap();
        assert_eq!(read(&to_toml(&scenario), &[]), Ok(scenario));
    }
}
