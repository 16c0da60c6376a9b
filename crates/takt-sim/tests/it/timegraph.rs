//! TimeGraph's experiments: what its paper says about them, as far as the models can show it.
//!
//! `docs/experiments/timegraph.md` has all figures, and says which of them were calibrated. These
//! are the ones that must hold.

use std::path::Path;

use takt_sim::{scenario, summarize};
use takt_trace::Summary;

const NONE: &[&str] = &["scheduler.policy=fifo", "scheduler.mpcg=64"];
const HT: &[&str] = &["app.engine.service={}", "app.flood.service={}"];
const PE: &[&str] = &[];
const AE: &[&str] = &["app.engine.service.enforcement=apriori", "app.flood.service.enforcement=apriori"];
const ALONE: &[&str] = &["app.flood.join_s=1000"];
const ENGINE: &[&str] = &["app.flood.join_s=1000", "app.engine.join_s=0"];
const FLOOD: &[&str] = &[];
const FLOODS: &[&str] = &["app.flood.count=5", "app.flood.service.reserve_us=500"];

fn simulate(name: &str, sets: &[&[&str]]) -> Summary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).expect("the scenario is there");
    let sets = sets.concat();
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("a valid override")).collect();
    let scenario =
        scenario::parse(name, &text, &sets, &|_| Err("no recordings".into())).expect("the scenario is valid");
    summarize(&scenario)
}

fn fps(summary: &Summary, name: &str) -> f64 {
    summary.apps.iter().find(|app| app.name == name).map_or(f64::NAN, |app| app.fps)
}

fn game(rival: &[&str], scheduling: &[&str]) -> f64 {
    fps(&simulate("timegraph-games", &[&["duration_s=6"], rival, scheduling]), "game")
}

#[test]
fn one_group_at_a_time_costs_what_the_paper_measured() {
    let free = game(ALONE, NONE);
    let overhead = |fps: f64| 1.0 - fps / free;
    let following = overhead(game(ALONE, HT));
    assert!((0.0..0.06).contains(&following), "about 4 % there, {following} here");
    let single = overhead(game(ALONE, &[HT, &["app.game.service={}"]].concat()));
    assert!((0.15..0.30).contains(&single), "17 to 28 % there, {single} here");
}

#[test]
fn priorities_help_and_reserves_help_more() {
    for rival in [ENGINE, FLOOD, FLOODS] {
        let [none, ht, pe, ae] = [NONE, HT, PE, AE].map(|scheduling| game(rival, scheduling));
        assert!(none < ht && ht < pe && pe <= ae, "{none} {ht} {pe} {ae}");
    }
}

#[test]
fn with_reserves_a_flood_is_no_worse_than_a_widget() {
    for scheduling in [PE, AE] {
        let loss = 1.0 - game(FLOOD, scheduling) / game(ENGINE, scheduling);
        assert!(loss < 0.03, "{loss}");
        let loss = 1.0 - game(FLOODS, scheduling) / game(ENGINE, scheduling);
        assert!(loss < 0.03, "{loss}");
    }
    assert!(game(FLOOD, HT) > game(FLOOD, NONE));
    assert!(game(FLOODS, NONE) < 3.0, "nearly unresponsive");
}

#[test]
fn a_film_keeps_its_rate_against_five_floods() {
    let film = |sets: &[&str]| {
        let summary = simulate("timegraph-mplayer", &[sets]);
        let film = summary.apps.iter().find(|app| app.name == "mplayer").expect("it plays");
        let jobs = film.jobs.as_ref().expect("it has a clock of its own");
        (film.fps, jobs.late)
    };
    let (fps, late) = film(&[]);
    assert!((23.9..24.1).contains(&fps) && late == 0, "{fps}, {late} late");
    let (fps, late) = film(NONE);
    assert!(fps < 20.0 && late > 0, "{fps}, {late} late");
}

#[test]
fn ticks_cost_a_factor_of_fifteen_to_thirty() {
    let frames = |group: &str, ticks: bool| {
        let draws = format!("app.viewer.draws.0.us={group}");
        let swap = format!("app.viewer.swap_us={group}");
        let length = [draws.as_str(), swap.as_str()];
        let ticking: &[&str] = &["scheduler.policy=germ", "gpu.completion_poll_us=1000"];
        let scheduler = if ticks { ticking } else { &[] };
        fps(&simulate("small-groups", &[&length, scheduler]), "viewer")
    };
    for group in ["5", "10", "20", "30"] {
        let factor = frames(group, false) / frames(group, true);
        assert!((15.0..30.0).contains(&factor), "{group} us: {factor}");
    }
    let factor = frames("1000", false) / frames("1000", true);
    assert!(factor < 2.1, "long groups hide the tick: {factor}");
}
