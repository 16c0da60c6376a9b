//! Writes the scenario that a specification stands for.
//!
//! A specification says how applications are scheduled, not what they do. The scenario therefore
//! gives each of them a placeholder of a workload, and says where to put the true one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use takt_core::Span;
use takt_core::service::Turns;

use super::{Entry, Spec, SpecReservation, Terms};
use crate::scenario::NAME_CHARS_MAX;

/// Distance between two priorities: room for instances (`count`) and for apps in between.
const PRIORITY_STEP: usize = 100;
/// The level of automatic priorities among static ones.
const AUTOMATIC_LEVEL: i32 = 0;

const WORKLOAD: &str = "\
# What the apps do is not part of a specification: each has a placeholder, 60 frames per second of
# 1 ms each. Replace it (fps, unpaced, cpu_us, draws, swap_us, recording: see docs/scenarios.md). Several
# instances of an app: count = 5. An app that the specification does not mention has the lowest
# priority and service = { background = true }.
";

/// The scenario as a file; `name` is that of the specification, `limit_permille` the admission
/// limit if there is one.
pub fn to_toml(name: &str, spec: &Spec, limit_permille: Option<u32>) -> String {
    let mut names = Names::default();
    let mut out = String::new();
    let scenario = names.take(name);
    let _infallible = write!(out, "# Made by `takt import timegraph`.\n{WORKLOAD}\nname = \"{scenario}\"\n");
    out.push_str("duration_s = 10\n\n[scheduler]\npolicy = \"timegraph\"\n");
    if let Some(permille) = limit_permille {
        let _infallible = writeln!(out, "admission = {}.{:03}", permille / 1000, permille % 1000);
    }
    out.push_str(
        "\n# TimeGraph takes predictions as they are.\n[scheduler.margins]\nfixed_us = 0\nupper = 1\nlower = 1\n\
         dispatch_upper_us = 0\ndispatch_lower_us = 0\ngroup_min_us = 0\n",
    );
    let mut names = Names::default();
    let taken: Vec<String> = spec.entries.iter().map(|entry| names.take(&entry.name)).collect();
    let owner =
        spec.entries.iter().position(|entry| matches!(entry.reservation, SpecReservation::Shared(Some(_))));
    let owner = owner.and_then(|index| taken.get(index)).map_or("", String::as_str);
    let priorities = priorities(spec);
    for ((entry, name), priority) in spec.entries.iter().zip(&taken).zip(priorities) {
        let text = printable(&entry.text);
        let _infallible = write!(out, "\n# line {}: {text}\n[[app]]\nname = \"{name}\"\n", entry.line);
        let _infallible = write!(out, "priority = {priority}\nfps = 60\nswap_us = 1000\n");
        if let Some(service) = service(entry, owner) {
            let _infallible = writeln!(out, "service = {{ {service} }}");
        }
    }
    let automatic = spec.entries.iter().position(|entry| entry.priority.is_none());
    if let Some(name) = automatic.and_then(|index| taken.get(index)) {
        out.push_str("\n# Who has the focus is the most important of the apps that follow it.\n[[focus]]\n");
        let _infallible = write!(out, "at_s = 0\napp = \"{name}\"\n");
    }
    out
}

/// Unique priorities in the order of the specified ones, ties in the order of lines.
fn priorities(spec: &Spec) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spec.entries.len()).collect();
    let level = |index: &usize| spec.entries[*index].priority.unwrap_or(AUTOMATIC_LEVEL);
    order.sort_by_key(|index| Reverse(level(index)));
    let mut priorities = vec![0; order.len()];
    for (rank, index) in order.iter().enumerate() {
        priorities[*index] = (spec.entries.len() - rank) * PRIORITY_STEP;
    }
    priorities
}

/// The inside of the `service` table, if the app needs one.
fn service(entry: &Entry, owner: &str) -> Option<String> {
    let mut keys = Vec::new();
    if entry.priority.is_none() {
        keys.push("follows_focus = true".to_owned());
    }
    if entry.turns == Turns::Following {
        keys.push("turns = \"following\"".to_owned());
    }
    let us = |span: Span| span.as_us();
    let own = |Terms { capacity, period }: Terms, enforcement: &str| {
        format!("reserve_us = {}, period_us = {}, enforcement = \"{enforcement}\"", us(capacity), us(period))
    };
    match entry.reservation {
        SpecReservation::Unlimited => {}
        SpecReservation::Posterior(terms) | SpecReservation::Shared(Some(terms)) => {
            keys.push(own(terms, "posterior"));
        }
        SpecReservation::Apriori(terms) => keys.push(own(terms, "apriori")),
        SpecReservation::Shared(None) => keys.push(format!("shared_with = \"{owner}\"")),
        SpecReservation::Background => keys.push("background = true".to_owned()),
    }
    (!keys.is_empty()).then(|| keys.join(", "))
}

/// Names as scenarios allow them, each once.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The number to try next for each name that was wanted.
    next: BTreeMap<String, usize>,
}

impl Names {
    /// The nearest allowed name to `name` that is not taken yet.
    fn take(&mut self, name: &str) -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let name: String = name.chars().map(allowed).collect();
        let name = if name.is_empty() { "spec".to_owned() } else { name };
        let numbered = |number: usize| {
            let suffix = if number == 0 { String::new() } else { format!("_{number}") };
            let room = NAME_CHARS_MAX - suffix.len();
            format!("{}{suffix}", &name[..name.len().min(room)])
        };
        let mut number = self.next.get(&name).copied().unwrap_or(0);
        while self.taken.contains(&numbered(number)) {
            number += 1;
        }
        let free = numbered(number);
        self.taken.insert(free.clone());
        self.next.insert(name, number + 1);
        free
    }
}

/// A text that may stand in a comment.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
