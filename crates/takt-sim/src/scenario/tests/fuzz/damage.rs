//! Damaged texts and random trees of TOML.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A change of a text: what to do, and where.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    DropLine(Index),
    RepeatLine(Index, Index),
    SwapLines(Index, Index),
    SetByte(Index, u8),
    DropBytes(Index, usize),
    SetValue(Index, &'static str),
}

/// Values that are right in some places and wrong in others.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "60",
    "1e9",
    "1e-9",
    "nan",
    "inf",
    "-inf",
    "\"x\"",
    "[]",
    "[1]",
    "[2, 1]",
    "[1, 2]",
    "{}",
    "[{}]",
    "true",
    "1979-05-27",
    "99999999999999999999",
    "0x7fffffffffffffff",
    "[{ share = 1, us = 1 }]",
    "\"own\"",
    "{ period_us = 20000, deadline_us = 9000 }",
    "4096",
    "",
];

pub(super) fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Damage::DropLine),
        (index(), index()).prop_map(|(a, b)| Damage::RepeatLine(a, b)),
        (index(), index()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::SetByte(at, byte)),
        (index(), 1..40_usize).prop_map(|(at, count)| Damage::DropBytes(at, count)),
        (index(), select(VALUES)).prop_map(|(at, value)| Damage::SetValue(at, value)),
    ]
}

pub(super) fn harm(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut bytes = text.as_bytes().to_vec();
    if lines.is_empty() {
        return String::new();
    }
    let at = |index: &Index| index.index(lines.len());
    let line: String;
    match damage {
        Damage::DropLine(a) => drop(lines.remove(at(a))),
        Damage::RepeatLine(a, b) => lines.insert(at(a), lines[at(b)]),
        Damage::SwapLines(a, b) => {
            let (a, b) = (at(a), at(b));
            lines.swap(a, b);
        }
        Damage::SetValue(a, value) => {
            let a = at(a);
            line = format!("{} = {value}", lines[a].split('=').next().unwrap_or(""));
            lines[a] = &line;
        }
        Damage::SetByte(a, byte) => {
            let a = a.index(bytes.len());
            bytes[a] = *byte;
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        Damage::DropBytes(a, count) => {
            let a = a.index(bytes.len());
            bytes.drain(a..(a + count).min(bytes.len()));
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    lines.join("\n")
}

/// A TOML value of known keys in unknown places.
pub(super) fn tree() -> impl Strategy<Value = String> {
    let leaf = select(VALUES).prop_map(ToString::to_string);
    leaf.prop_recursive(4, 24, 5, |inner| {
        let entry = (select(KEYS), inner.clone()).prop_map(|(key, value)| format!("{key} = {value}"));
        prop_oneof![
            vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            vec(entry, 0..5).prop_map(|items| format!("{{ {} }}", items.join(", "))),
        ]
    })
}

pub(super) const KEYS: &[&str] = &[
    "name",
    "duration_s",
    "app",
    "gpu",
    "clock",
    "at_s",
    "speed",
    "display",
    "refresh_hz",
    "phase_us",
    "fps",
    "stride",
    "draws",
    "us",
    "mix",
    "share",
    "count",
    "priority",
    "prediction",
    "history",
    "outliers",
    "error_us",
    "change",
    "phase",
    "from_s",
    "until_s",
    "recording",
    "recording_csv",
    "swap_us",
    "model",
    "switch_us",
    "late_ends",
    "divisible",
    "gaps",
    "gap_us",
    "slice_us",
    "quantum_us",
    "belief",
    "focus",
    "service",
    "reserve_us",
    "period_us",
    "deadline_us",
    "shared_with",
    "feeds",
    "starts_with",
    "background",
    "level",
    "scheduler",
    "margins",
    "upper",
    "x",
];
