use proptest::prelude::*;

use super::*;

fn problem(text: &str) -> String {
    Profile::parse(text).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let head = "takt-profile 1\n\nflush_ns = 1 # remark\n";
    assert_eq!(problem(""), "line 1: expected \"takt-profile 1\"");
    assert_eq!(problem("# x\ntakt-profile 2"), "line 2: expected \"takt-profile 1\"");
    assert_eq!(problem(head), "line 3: draw_ns is missing");
    assert_eq!(problem(&format!("{head}draw_ns")), "line 4: expected \"key = value\"");
    assert_eq!(problem(&format!("{head}drawns = 1")), "line 4: unknown key");
    assert_eq!(problem(&format!("{head}flush_ns = 1")), "line 4: flush_ns was given before");
    assert_eq!(problem(&format!("{head}draw_ns = many")), "line 4: draw_ns needs a number");
    for number in ["-1", "inf", "NaN", "1e16"] {
        let text = format!("{head}draw_ns = {number}");
        assert_eq!(problem(&text), "line 4: draw_ns must be between 0 and 1e15");
    }
    assert_eq!(problem(&format!("{head}gpu = {}", "x".repeat(300))), "line 4: names have 256 bytes at most");
    assert_eq!(problem(&"x".repeat(PROFILE_BYTES_MAX + 1)), "line 1: longer than 65536 bytes");
}

#[test]
fn keys_reach_their_fields() {
    let text = "takt-profile 1\nflush_ns=8400\ndraw_ns=310.5\nclear.pixel_ns.cd=0.25\ncopy.knee_bytes=4096\nmsaa.4=1.5";
    let profile = Profile::parse(text).unwrap();
    assert_eq!(profile.flush_ns, 8400.0);
    assert_eq!(profile.draw_ns, 310.5);
    assert_eq!(profile.clear.pixel_ns[3], 0.25);
    assert_eq!(profile.memory.copy.knee_bytes, 4096.0);
    assert_eq!(profile.msaa, [1.0, 1.5, 1.0, 1.0]);
}

#[test]
fn hostile_names_stay_on_their_line() {
    let gpu = format!("a#b\nflush_ns = 3\r{}", "ä".repeat(300));
    let read = Profile::parse(&Profile { gpu, ..Profile::default() }.to_text()).unwrap();
    assert!(read.gpu.starts_with("a_b_flush_ns = 3_ä"), "{}", read.gpu);
    assert_eq!(read.flush_ns, 0.0);
}

#[test]
fn a_knee_changes_the_slope() {
    let cost = Piecewise { fixed_ns: 5.0, below_ns: 1.0, above_ns: 2.0, knee_bytes: 10.0 };
    assert_eq!([0.0, 10.0, 15.0].map(|bytes| cost.cost_ns(bytes)), [5.0, 15.0, 25.0]);
}

/// Lines that are nearly right reach further into the parser than noise does.
fn any_line() -> impl Strategy<Value = String> {
    let key = prop_oneof![prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), ".{0,12}"];
    let value = prop_oneof![any::<f64>().prop_map(|value| value.to_string()), ".{0,12}"];
    prop_oneof![(key, value).prop_map(|(key, value)| format!("{key} = {value}")), ".{0,30}"]
}

proptest! {
    #[test]
    fn any_text_ends_with_a_profile_or_a_line(
        lines in prop::collection::vec(any_line(), 0..60),
        head in prop_oneof![Just("takt-profile 1"), Just("")],
    ) {
        let text = format!("{head}\n{}", lines.join("\n"));
        match Profile::parse(&text) {
            Ok(profile) => prop_assert_eq!(Profile::parse(&profile.to_text()), Ok(profile)),
            Err(error) => prop_assert!((1..=text.lines().count().max(1)).contains(&error.line)),
        }
    }

    #[test]
    fn writing_and_reading_gives_the_same(numbers in prop::collection::vec(0.0..VALUE_MAX, KEYS.len())) {
        let mut profile = Profile { gpu: "Ä GPU = one".to_owned(), ..Profile::default() };
        for (place, number) in profile.numbers().into_iter().zip(numbers) {
            *place = number;
        }
        prop_assert_eq!(Profile::parse(&profile.to_text()), Ok(profile));
    }
}
