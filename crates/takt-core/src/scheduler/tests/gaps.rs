//! Apps that wait for their own groups within a frame.

use std::boxed::Box;

use expect_test::expect;

use super::check;
use crate::policy::Timeline;
use crate::service::{Gaps, Service};
use crate::{
    AppId, AppParams, Clock, Config, Cost, Estimate, Event, GroupId, GroupKind, Priority, Scheduler, Span,
    Stride, Time,
};

/// A waits after 250, for 100 at most, and has 250 more until 1000. C is due at 2000.
const GAP: &str = "A 3 etpf 600 gaps 1/100
                   C 2 stride 2 etpf 500
                   @0 A 250y";

#[test]
fn what_is_due_later_waits_in_a_gap() {
    check(
        &std::format!(
            "{GAP}
             @0 C 400s
             @350 A 250s"
        ),
        expect![[r#"
            0..250 A 250 for 0
            0 hold C: behind A
            250 hold C: protects A
            350..600 A 250s for 0
            350 hold C: behind A
            600 A frame 0 met 0
            600..1000 C 400s for 1
            1000 C frame 0 met 1
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn what_leaves_room_goes_in_a_gap() {
    check(
        &std::format!(
            "{GAP}
             @0 C 300s
             @350 A 250s"
        ),
        expect![[r#"
            0..250 A 250 for 0
            0 hold C: behind A
            250..550 C 300s for 1
            350 hold A: no slot
            550 C frame 0 met 1
            550..800 A 250s for 0
            800 A frame 0 met 0
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn work_without_a_promise_needs_slack_in_a_gap() {
    // 400 are left at 250 and at 350, because the gap takes what it was promised.
    check(
        &std::format!(
            "B 1
             {GAP}
             @0 B 400
             @350 A 150
             @360 A 90s"
        ),
        expect![[r#"
            0..250 A 250 for 0
            0 hold B: behind A
            250 hold B: protects A
            350..500 A 150 for 0
            350 hold B: behind A
            360 hold A: no slot
            500..590 A 90s for 0
            590 A frame 0 met 0
            590 hold B: protects A
            1000 B missed frame 0 for 0 ×1
            1401 hold B: protects C
            1501..1901 B 400 for 1
            2000 A missed frame 1 for 1 ×1
            2000 B missed frame 0 for 1 ×1
            3000 A missed frame 1 for 2 ×1
            3000 B missed frame 0 for 2 ×1
        "#]],
    );
}

#[test]
fn a_longer_gap_than_declared_binds_nothing_that_is_due_later() {
    check(
        &std::format!(
            "{GAP}
             @0 C 400s
             @500 A 250s"
        ),
        expect![[r#"
            0..250 A 250 for 0
            0 hold C: behind A
            250 hold C: protects A
            500..750 A 250s for 0
            500 hold C: behind A
            750 A frame 0 met 0
            750..1150 C 400s for 1
            1150 C frame 0 met 1
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn a_gap_that_is_not_declared_binds_nothing_that_is_due_later() {
    check(
        "A 3 etpf 600 gaps 1/100
         C 2 stride 2 etpf 500
         @0 A 100y
         @150 A 100y
         @160 C 400s
         @300 A 250s",
        expect![[r#"
            0..100 A 100 for 0
            150..250 A 100 for 0
            160 hold C: no slot
            250..650 C 400s for 1
            300 hold A: no slot
            650 C frame 0 met 1
            650..900 A 250s for 0
            900 A frame 0 met 0
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

#[test]
fn a_frame_that_ends_in_its_gap_is_owed_nothing() {
    check(
        &std::format!(
            "{GAP}
             @0 C 400s
             @300 A ends frame"
        ),
        expect![[r#"
            0..250 A 250 for 0
            0 hold C: behind A
            250 hold C: protects A
            300 A frame 0 met 0
            300..700 C 400s for 1
            700 C frame 0 met 1
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

/// As long as groups of a frame with gaps are in flight, its next group may come just after them.
#[test]
fn what_is_due_later_does_not_go_behind_a_group_before_a_gap() {
    check(
        &std::format!(
            "mpcg 2
             {GAP}
             @100 C 400s
             @350 A 250s"
        ),
        expect![[r#"
            0..250 A 250 for 0
            100 hold C: protects A
            350..600 A 250s for 0
            600..1000 C 400s for 1
            600 A frame 0 met 0
            1000 C frame 0 met 1
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

/// Groups of a server are due a period after they came. With gaps, all groups of a job have one due date.
#[test]
fn jobs_of_a_server_with_gaps_have_one_due_date() {
    let script = |gaps: &str| {
        std::format!(
            "period 9_000_000
             until 400_000
             S 2 posterior 100_000/200_000 {gaps}
             B 1
             @0 S 20_000y
             @0 B 60_000 60_000 60_000 60_000 60_000
             @30_000 S 20_000y
             @150_000 S 20_000s"
        )
    };
    check(
        &script("gaps 2/20_000"),
        expect![[r#"
        0..20000 S 20000 for 0
        0 hold B: behind S
        20000..80000 B 60000 for 0
        20000 hold B: no slot
        30000 hold S: no slot
        80000..100000 S 20000 for 0
        80000 hold B: behind S
        100000 hold B: protects S
        150000..170000 S 20000s for 0
        150000 hold B: behind S
        170000 S frame 0 met 0
        170000..230000 B 60000 for 0
        170000 hold B: no slot
        230000..290000 B 60000 for 0
        290000..350000 B 60000 for 0
        350000..410000 B 60000 for 0
    "#]],
    );
    check(
        &script(""),
        expect![[r#"
        0..20000 S 20000 for 0
        0 hold B: behind S
        20000..80000 B 60000 for 0
        20000 hold B: no slot
        30000 hold S: no slot
        80000..100000 S 20000 for 0
        80000 hold B: behind S
        100000..160000 B 60000 for 0
        100000 hold B: no slot
        150000 hold S: no slot
        160000..180000 S 20000s for 0
        160000 hold B: behind S
        180000 S frame 0 met 0
        180000..240000 B 60000 for 0
        180000 hold B: no slot
        240000..300000 B 60000 for 0
        300000..360000 B 60000 for 0
    "#]],
    );
}

/// Where protected apps have the GPU one at a time, what comes after a gap pays for its way as a frame does.
#[test]
fn apps_change_in_gaps_of_time_shared_gpus() {
    check(
        "gpu time-shared slice=100 switch=10
         A 3 etpf 600 gaps 2/100
         C 2 stride 2 etpf 500
         @0 A 150y
         @0 C 100 100 100s
         @260 A 100y
         @460 A 100s",
        expect![[r#"
            0 grant A 150 for 0
            0 hold C: turn of A
            150 end A 150
            150 grant C 100 for 1
            150 grant C 100 for 1
            150 hold C: no slot
            260 end C 100
            260 hold A: turn of C
            260 hold C: behind A
            360 end C 100
            360 grant A 100 for 0
            360 hold C: turn of A
            460 grant A 100s for 0
            470 end A 100
            570 end A 100s
            570 A frame 0 met 0
            570 grant C 100s for 1
            680 end C 100s
            680 C frame 0 met 1
            2000 A missed frame 1 for 1 ×1
            3000 A missed frame 1 for 2 ×1
        "#]],
    );
}

/// L is late and due first. A may not be interrupted by it in the middle of its frame, unless there is time for the
/// way back as well: A has paid for one change to it and one to what it displaced.
#[test]
fn what_interrupts_a_frame_pays_for_the_way_back() {
    check(
        "gpu time-shared slice=2000 switch=1600
         period 192_000
         until 400_000
         A 9 etpf 60_000
         L 1 etpf 50_000 clock 150_000/150_000
         @0 L 5_000
         @123_000 A 5_000 5_000 5_000 5_000 5_000 5_000 5_000 5_000 5_000 5_000 6_800s
         @124_000 L 8_900s",
        expect![[r#"
            0 grant L 5000 for 0
            5000 end L 5000
            123000 grant A 5000 for 0
            123000 grant A 5000 for 0
            123000 hold A: no slot
            124000 hold L: no slot
            129600 end A 5000
            129600 hold A: protects L
            129600 hold L: turn of A
            134600 end A 5000
            134600 grant A 5000 for 0
            139600 end A 5000
            139600 grant A 5000 for 0
            139600 hold A: behind L
            144600 end A 5000
            144600 grant A 5000 for 0
            144600 grant A 5000 for 0
            144600 hold A: no slot
            149600 end A 5000
            149600 grant A 5000 for 0
            150000 L missed frame 0 for 0 ×1
            154600 end A 5000
            154600 grant A 5000 for 0
            159600 end A 5000
            159600 grant A 5000 for 0
            164600 end A 5000
            164600 grant A 5000 for 0
            169600 end A 5000
            169600 grant A 6800s for 0
            174600 end A 5000
            181400 end A 6800s
            181400 A frame 0 met 0
            181400 grant L 8900s for 0
            191900 end L 8900s
            191900 L frame 0 late 0
            384000 A missed frame 1 for 1 ×1
        "#]],
    );
}

/// What a frame is owed that fell silent in a gap shrinks all the time, which is no reason to decide all the time.
#[test]
fn a_gap_that_lasts_is_looked_at_a_few_times() {
    let gaps = Gaps { count: 1, length: Span::from_ms(1) };
    let mut scheduler = Scheduler::new(Config::default(), Box::new(Timeline::new()));
    let join = |app, etpf, service| {
        let (app, priority) = (AppId(app), Priority(9 - app));
        let (stride, clock) = (Stride::ONE, Clock::default());
        let params = AppParams { priority, stride, etpf: Span::from_ms(etpf), clock, service };
        Event::Join { app, params, phase: 0 }
    };
    let submit = |app, group, kind, ms| {
        let (app, group, estimate) = (AppId(app), GroupId(group), Estimate::new(Span::from_ms(ms)));
        Event::Submit { app, group, kind, estimate }
    };
    let mut tell = |ms, event| {
        scheduler.handle_event(Time::from_ms(ms), event);
        while scheduler.poll_action().is_some() {}
    };
    tell(0, join(0, 6, Service { gaps, ..Service::default() }));
    tell(0, join(1, 0, Service::default()));
    tell(0, submit(0, 1, GroupKind::Sync, 1));
    // It fits into no period beside the other app.
    tell(1, submit(1, 2, GroupKind::Swap, 30));
    let (group, cost) = (GroupId(1), Cost::new(Span::from_ms(1)));
    tell(1, Event::Complete { group, finished: Time::from_ms(1), cost, frames: 0 });
    let before = scheduler.stats().runs;
    while let Some(at) = scheduler.poll_timeout().filter(|at| *at < Time::from_ms(50)) {
        scheduler.handle_timeout(at);
        while scheduler.poll_action().is_some() {}
        let runs = scheduler.stats().runs - before;
        assert!(runs < 20, "{runs} decisions until {at:?}");
    }
}
