//! What specifications say, what is wrong with others, and what becomes of them.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// The games of the paper against five floods on one reserve.
const PAPER: &str = "\
# name:sched:resv:prio:C:T
X:PRT:-:20::                       # the server blits for all clients
openarena:HT:-:*:0:0
engine:PRT:PE:*:2500:25000
 mplayer : prt : ae : 5 : 10000 : 40000

clearspd-1:PRT:Shared:-3:2500:25000
clearspd 2:PRT:shared:-3::
clearspd.2:PRT:Shared:-3:2500:25000
updates:PRT:Background:-9:-:-
";

fn problems(text: &str) -> Vec<String> {
    let problems = parse("t.spec", text).expect_err("something is wrong");
    problems.iter().map(ToString::to_string).collect()
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&(problems(text).join("\n") + "\n"));
}

#[test]
fn every_field_has_its_meaning() {
    let spec = parse("t.spec", PAPER).unwrap();
    let shown: Vec<String> = spec
        .entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {:?} {:?} {:?}\n",
                entry.line, entry.name, entry.turns, entry.priority, entry.reservation
            )
        })
        .collect();
    expect![[r#"
        2 X Single Some(20) Unlimited
        3 openarena Following None Unlimited
        4 engine Single None Posterior(Terms { capacity: 2500.000us, period: 25000.000us })
        5 mplayer Single Some(5) Apriori(Terms { capacity: 10000.000us, period: 40000.000us })
        7 clearspd-1 Single Some(-3) Shared(Some(Terms { capacity: 2500.000us, period: 25000.000us }))
        8 clearspd 2 Single Some(-3) Shared(None)
        9 clearspd.2 Single Some(-3) Shared(None)
        10 updates Single Some(-9) Background
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a whole file")]
fn the_scenario_can_be_read_by_people() {
    let spec = parse("t.spec", PAPER).unwrap();
    expect![[r##"
        # Made by `takt import timegraph`.
        # What the apps do is not part of a specification: each has a placeholder, 60 frames per second of
        # 1 ms each. Replace it (fps, unpaced, cpu_us, draws, swap_us, recording: see docs/scenarios.md). Several
        # instances of an app: count = 5. An app that the specification does not mention has the lowest
        # priority and service = { background = true }.

        name = "timegraph_spec"
        duration_s = 10

        [scheduler]
        policy = "timegraph"
        admission = 0.905

        # TimeGraph takes predictions as they are.
        [scheduler.margins]
        fixed_us = 0
        upper = 1
        lower = 1
        dispatch_upper_us = 0
        dispatch_lower_us = 0
        group_min_us = 0

        # line 2: X:PRT:-:20::
        [[app]]
        name = "X"
        priority = 800
        fps = 60
        swap_us = 1000

        # line 3: openarena:HT:-:*:0:0
        [[app]]
        name = "openarena"
        priority = 600
        fps = 60
        swap_us = 1000
        service = { follows_focus = true, turns = "following" }

        # line 4: engine:PRT:PE:*:2500:25000
        [[app]]
        name = "engine"
        priority = 500
        fps = 60
        swap_us = 1000
        service = { follows_focus = true, reserve_us = 2500, period_us = 25000, enforcement = "posterior" }

        # line 5: mplayer : prt : ae : 5 : 10000 : 40000
        [[app]]
        name = "mplayer"
        priority = 700
        fps = 60
        swap_us = 1000
        service = { reserve_us = 10000, period_us = 40000, enforcement = "apriori" }

        # line 7: clearspd-1:PRT:Shared:-3:2500:25000
        [[app]]
        name = "clearspd-1"
        priority = 400
        fps = 60
        swap_us = 1000
        service = { reserve_us = 2500, period_us = 25000, enforcement = "posterior" }

        # line 8: clearspd 2:PRT:shared:-3::
        [[app]]
        name = "clearspd_2"
        priority = 300
        fps = 60
        swap_us = 1000
        service = { shared_with = "clearspd-1" }

        # line 9: clearspd.2:PRT:Shared:-3:2500:25000
        [[app]]
        name = "clearspd_2_1"
        priority = 200
        fps = 60
        swap_us = 1000
        service = { shared_with = "clearspd-1" }

        # line 10: updates:PRT:Background:-9:-:-
        [[app]]
        name = "updates"
        priority = 100
        fps = 60
        swap_us = 1000
        service = { background = true }

        # Who has the focus is the most important of the apps that follow it.
        [[focus]]
        at_s = 0
        app = "openarena"
    "##]]
    .assert_eq(&to_toml("timegraph.spec", &spec, Some(905)));
}

#[test]
fn errors_name_the_place_the_value_and_the_remedy() {
    check(
        "a:PRT:PE:1:10:20\n\
         b:FIFO:PE:high:10:20\n\
         c:PRT:PE:1:30:20\n\
         d:PRT:XX:1:30:20\n\
         \u{20} e : PRT : AE : 1 : 1.5 : 99999999999999999999999999999999999999999999999999\n\
         f:PRT:PE:1\n\
         g:PRT:PE:1:1:2:3\n\
         a:PRT:PE:1:10:20\n\
         :PRT:PE:1:10:20\n\
         h:HT:PE:1:10:20\n\
         i:PRT:-:1:10:20\n\
         j:PRT:Shared:1::\n\
         k:PRT:Shared:1:5:10\n\
         l:PRT:Shared:1:6:10\n",
        expect![[r#"
            t.spec:2:3: sched is 'FIFO'
              help: use PRT (predictable response time) or HT (high throughput)
            t.spec:2:11: prio is 'high'
              help: use a whole number (the higher wins), or * for the priority of the focused window
            t.spec:3:12: C is 30, more than T
              help: no more than the whole GPU can be set aside: use C ≤ T
            t.spec:4:7: resv is 'XX'
              help: use PE, AE, Shared, Background or - (none)
            t.spec:5:22: C is '1.5'
              help: use whole microseconds from 1 to 60000000
            t.spec:5:28: T is '9999999999999999999999999999999999999999…'
              help: use whole microseconds from 1 to 60000000
            t.spec:6:11: 'f:PRT:PE:1' ends before its field C
              help: write name:sched:resv:prio:C:T, for example openarena:HT:-:10:: or engine:PRT:PE:5:2500:25000
            t.spec:7:16: '3' is a field too many
              help: write name:sched:resv:prio:C:T, for example openarena:HT:-:10:: or engine:PRT:PE:5:2500:25000
            t.spec:8:1: 'a' is specified again
              help: keep this one or that of line 1
            t.spec:9:1: '' is no name
              help: use 1 to 64 printable characters
            t.spec:10:3: 'h' has a reserve and HT
              help: use PRT, since budgets are looked at between groups; or use - as resv
            t.spec:11:11: C:T is 10:20
              help: leave C and T empty or 0: there is no reserve of its own
            t.spec:12:16: C is ''
              help: use whole microseconds from 1 to 60000000
            t.spec:12:17: T is ''
              help: use whole microseconds from 1 to 60000000
            t.spec:14:16: C:T is 6:10
              help: all share one reserve: leave C and T empty or as in line 13
        "#]],
    );
    check(
        "# nothing\n\n",
        expect![[r#"
            t.spec:1:1: no application is specified
              help: write name:sched:resv:prio:C:T, for example openarena:HT:-:10:: or engine:PRT:PE:5:2500:25000
        "#]],
    );
}

#[test]
fn hostile_files_are_refused_in_bounded_words() {
    let long = "x".repeat(1_000_000);
    for line in [
        format!("{long}:PRT:PE:1:1:2"),
        format!("a:{long}:PE:1:1:2"),
        format!("a:PRT:PE:{long}:1:2"),
        long.clone(),
        ":".repeat(100_000),
    ] {
        let found = problems(&line);
        assert!(found.iter().all(|problem| problem.len() < 400), "{found:?}");
    }
    let many: String = (0..100_000).map(|n| format!("a{n}:PRT:-:1::\n")).collect();
    assert_eq!(problems(&many).len(), 1);
    assert!(problems(&"x\n".repeat(100_000)).len() <= 100);
    let alike: String =
        (0..4000u32).map(|n| format!("{}:PRT:-:1::\n", char::from_u32(0x4e00 + n).unwrap())).collect();
    assert!(to_toml("t", &parse("t", &alike).unwrap(), None).contains("\"__3999\""));
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let error = text("t.spec", b"a:PRT\n\xc3\xa4b\xff:HT").unwrap_err();
    assert_eq!((error.line, error.column), (2, 3));
    assert!(error.message.contains("0xff"));
    assert_eq!(text("t", "\u{feff}a".as_bytes()).unwrap(), "a");
}

#[test]
fn limits_are_percent() {
    for (text, permille) in [("90\n", 900), ("# cap\n  62.5 %\n", 625), ("0", 0), ("100%", 1000)] {
        assert_eq!(parse_limit("t.ac", text), Ok(permille), "{text}");
    }
    for bad in ["", "#\n", "101", "-1", "50.25", "x", "1\n2", "99999999999999999999", ".", "1.", "5 0"] {
        let error = parse_limit("t.ac", bad).unwrap_err();
        assert!(error.remedy.contains("0 to 100"), "{bad}");
    }
    assert_eq!(
        parse_limit("t.ac", "\n  x").unwrap_err().to_string().lines().next(),
        Some("t.ac:2:3: 'x' is no limit")
    );
}

proptest! {
    #[test]
    fn nothing_panics_and_errors_point_into_the_file(text in "[a-zPRTHE:*#0-9 \\n\\-é]{0,200}") {
        if let Err(problems) = parse("t", &text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                let line = text.lines().nth(problem.line as usize - 1).unwrap_or("");
                prop_assert!(problem.column as usize <= line.chars().count() + 1, "{}", problem);
            }
        }
    }
}
