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

const HEAD: &str = "takt-profile 1\nflush_ns = 1\ndraw_ns = 1\n";

#[test]
fn sharing_is_kept_and_may_be_missing() {
    let executions = [
        Execution::SideBySide,
        Execution::InOrder { switch_us: 12.5 },
        Execution::TimeShared { slice_us: 1024.0, switch_us: 160.25 },
    ];
    for execution in executions {
        let sharing = Some(Sharing { execution, delay_us: 45.5 });
        let profile = Profile { sharing, ..Profile::default() };
        assert_eq!(Profile::parse(&profile.to_text()), Ok(profile));
    }
    assert_eq!(Profile::parse(HEAD).unwrap().sharing, None, "as in files of older versions");
    assert!(!Profile::default().to_text().contains("sharing"), "what was not measured is not written");
}

#[test]
fn sharing_must_be_whole() {
    let problem = |lines: &str| problem(&format!("{HEAD}{lines}"));
    let name = "sharing.execution";
    assert_eq!(problem("sharing.slice_us = 5"), "line 4: sharing.execution is missing");
    assert_eq!(
        problem(&format!("{name} = magic")),
        "line 4: sharing.execution is one of side-by-side, in-order and time-shared"
    );
    assert_eq!(problem(&format!("{name} = in-order")), "line 4: sharing.switch_us is missing");
    let both = "sharing.slice_us = 1\nsharing.switch_us = 2";
    assert!(problem(&format!("{name} = time-shared\nsharing.switch_us = 1")).contains("slice_us is missing"));
    let zero = format!("{name} = time-shared\nsharing.switch_us = 1\nsharing.slice_us = 0");
    assert!(problem(&zero).contains("slice_us must be more than 0"));
    let stray = "does not belong to this sharing.execution";
    assert!(problem(&format!("{name} = in-order\n{both}")).contains(stray));
    assert!(problem(&format!("{name} = side-by-side\n{both}")).contains(stray));
    assert!(problem(&format!("{name} = in-order\n{name} = in-order")).contains("was given before"));
    assert!(problem("sharing.delay_us = -1").contains("must be between"));
    assert!(problem("sharing.delay_us = 1\nsharing.delay_us = 1").contains("was given before"));
}

/// Lines that are nearly right reach further into the parser than noise does.
fn any_line() -> impl Strategy<Value = String> {
    let keys = [&KEYS[..], &SHARING_KEYS].concat();
    let key = prop_oneof![prop::sample::select(keys).prop_map(str::to_owned), ".{0,12}"];
    let value =
        prop_oneof![any::<f64>().prop_map(|value| value.to_string()), Just("in-order".to_owned()), ".{0,12}"];
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
