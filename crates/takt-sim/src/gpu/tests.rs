//! What the GPU models do, step by step.

use takt_core::service::Level;

use super::*;
use crate::model::{ClockChange, GpuModel, Interrupts, Stall};

fn job(group: u64, cost_us: u64) -> Job {
    Job { app: AppId(0), group: GroupId(group), cost: Span::from_us(cost_us) }
}

/// Runs the GPU until it is idle and prints what happened.
fn play(gpu: &mut Gpu) -> String {
    let mut out = String::new();
    while gpu.next_at() < Time::NEVER {
        let now = gpu.next_at();
        while let Some(event) = gpu.step(now) {
            let us = now.as_ns() / 1000;
            match event {
                GpuEvent::Queued(job) => out += &format!("{us} queued {}\n", job.group.0),
                GpuEvent::Started(job) => out += &format!("{us} started {}\n", job.group.0),
                GpuEvent::Finished { job, .. } => out += &format!("{us} finished {}\n", job.group.0),
                GpuEvent::Suspended(taken) => {
                    let (group, left) = (taken.job.group.0, taken.job.cost.as_ns() / 1000);
                    out += &format!("{us} suspended {group}, {left} left\n");
                }
                GpuEvent::Stalled { until } => {
                    out += &format!("{us} stalled until {}\n", until.as_ns() / 1000);
                }
                GpuEvent::Clock { permille } => out += &format!("{us} clock {permille}\n"),
            }
        }
    }
    out
}

#[test]
fn executes_in_order_without_preemption() {
    let mut gpu = Gpu::new(&GpuSpec::default());
    gpu.dispatch(Time::from_us(10), job(1, 100));
    gpu.dispatch(Time::from_us(5), job(2, 10));
    expect_test::expect![[r#"
        10 queued 1
        10 started 1
        10 queued 2
        110 finished 1
        110 started 2
        120 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn processes_hand_their_jobs_over_when_they_have_made_them() {
    let mut gpu = Gpu::new(&GpuSpec { model: GpuModel::AnyOrder, ..GpuSpec::default() });
    gpu.dispatch(Time::from_us(10), of(1, 1, 100));
    gpu.dispatch(Time::from_us(5), of(2, 2, 10));
    gpu.dispatch(Time::from_us(7), of(1, 3, 20));
    expect_test::expect![[r#"
        5 queued 2
        5 started 2
        10 queued 1
        10 queued 3
        15 finished 2
        15 started 1
        115 finished 1
        115 started 3
        135 finished 3
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn a_full_queue_makes_jobs_wait_outside() {
    let mut gpu = Gpu::new(&GpuSpec { queue: 1, ..GpuSpec::default() });
    gpu.dispatch(Time::ZERO, job(1, 100));
    gpu.dispatch(Time::ZERO, job(2, 10));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        100 finished 1
        100 queued 2
        100 started 2
        110 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn clock_changes_stretch_what_is_left() {
    let clock = vec![ClockChange { at: Time::from_us(50), permille: 500 }];
    let mut gpu = Gpu::new(&GpuSpec { clock, ..GpuSpec::default() });
    gpu.dispatch(Time::ZERO, job(1, 100));
    gpu.dispatch(Time::ZERO, job(2, 10));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        0 queued 2
        50 clock 500
        150 finished 1
        150 started 2
        170 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn stalls_delay_the_running_job_and_the_next_start() {
    let stalls = vec![
        Stall { at: Time::from_us(50), length: Span::from_us(30) },
        Stall { at: Time::from_us(200), length: Span::from_us(40) },
    ];
    let mut gpu = Gpu::new(&GpuSpec { stalls, ..GpuSpec::default() });
    gpu.dispatch(Time::ZERO, job(1, 100));
    gpu.dispatch(Time::from_us(210), job(2, 10));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        50 stalled until 80
        130 finished 1
        200 stalled until 240
        210 queued 2
        240 started 2
        250 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

fn of(app: u32, group: u64, cost_us: u64) -> Job {
    Job { app: AppId(app), ..job(group, cost_us) }
}

#[test]
fn another_context_costs_time() {
    let mut gpu = Gpu::new(&GpuSpec { switch: Span::from_us(7), ..GpuSpec::default() });
    gpu.dispatch(Time::ZERO, of(0, 1, 100));
    gpu.dispatch(Time::ZERO, of(0, 2, 10));
    gpu.dispatch(Time::ZERO, of(1, 3, 10));
    expect_test::expect![[r#"
        0 queued 1
        0 queued 2
        0 queued 3
        7 started 1
        107 finished 1
        107 started 2
        117 finished 2
        124 started 3
        134 finished 3
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn a_job_that_is_taken_back_goes_on_where_it_was() {
    let clock = vec![ClockChange { at: Time::from_us(40), permille: 500 }];
    let spec = GpuSpec { model: GpuModel::Preemptive, clock, ..GpuSpec::default() };
    let mut gpu = Gpu::new(&spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 100));
    gpu.dispatch(Time::ZERO, of(1, 2, 10));
    while gpu.next_at() <= Time::from_us(60) {
        let now = gpu.next_at();
        while gpu.step(now).is_some() {}
    }
    assert_eq!(gpu.take_back(Time::from_us(60), GroupId(1)), None, "not the last one");
    let second = gpu.take_back(Time::from_us(60), GroupId(2));
    assert_eq!(second, Some(Taken { job: of(1, 2, 10), started: None }));
    // 40 us at full speed and 20 us at half of it.
    let first = gpu.take_back(Time::from_us(60), GroupId(1)).unwrap();
    assert_eq!(first, Taken { job: of(0, 1, 50), started: Some(Time::ZERO) });
    assert_eq!(gpu.next_at(), Time::NEVER);
    gpu.dispatch(Time::from_us(60), second.unwrap().job);
    gpu.dispatch(Time::from_us(60), first.job);
    expect_test::expect![[r#"
        60 queued 2
        60 started 2
        60 queued 1
        80 finished 2
        80 started 1
        180 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
    assert_eq!(gpu.take_back(Time::from_us(200), GroupId(1)), None, "it is done");
}

#[test]
fn a_job_whose_context_is_being_loaded_has_not_begun() {
    let spec = GpuSpec { model: GpuModel::Preemptive, switch: Span::from_us(10), ..GpuSpec::default() };
    let mut gpu = Gpu::new(&spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 100));
    while gpu.step(Time::ZERO).is_some() {}
    let taken = gpu.take_back(Time::from_us(4), GroupId(1)).unwrap();
    assert_eq!(taken, Taken { job: of(0, 1, 100), started: None });
    gpu.dispatch(Time::from_us(4), taken.job);
    expect_test::expect![[r#"
        4 queued 1
        14 started 1
        114 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
}

fn host(channels: &[Channel], spec: GpuSpec) -> Gpu {
    let mut gpu = Gpu::new(&GpuSpec { model: GpuModel::Runlist, ..spec });
    for (app, channel) in (0..).zip(channels) {
        gpu.set_channel(AppId(app), *channel);
    }
    gpu
}

fn channel(level: Level, timeslice_us: u64) -> Channel {
    Channel { level, timeslice: Span::from_us(timeslice_us), ..Channel::default() }
}

#[test]
fn channels_have_their_turns() {
    let channels = [channel(Level::High, 10), channel(Level::High, 10), channel(Level::Low, 5)];
    let mut gpu = host(&channels, GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(2, 1, 12));
    gpu.dispatch(Time::from_us(1), of(0, 2, 25));
    gpu.dispatch(Time::from_us(1), of(1, 3, 4));
    gpu.dispatch(Time::from_us(1), of(1, 4, 4));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        1 queued 2
        1 queued 3
        1 queued 4
        5 suspended 1, 7 left
        5 started 2
        15 suspended 2, 15 left
        15 started 3
        19 finished 3
        19 started 4
        23 finished 4
        23 started 1
        28 suspended 1, 2 left
        28 started 2
        38 suspended 2, 5 left
        38 started 1
        40 finished 1
        40 started 2
        45 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn a_channel_without_rivals_is_not_interrupted() {
    let mut gpu = host(&[channel(Level::High, 10); 2], GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(0, 1, 35));
    gpu.dispatch(Time::from_us(22), of(1, 2, 5));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        22 queued 2
        30 suspended 1, 5 left
        30 started 2
        35 finished 2
        35 started 1
        40 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn a_channel_that_drains_gives_its_turn_away() {
    let mut gpu = host(&[channel(Level::High, 10); 2], GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(0, 1, 4));
    gpu.dispatch(Time::ZERO, of(1, 2, 20));
    gpu.dispatch(Time::from_us(4), of(0, 3, 4));
    expect_test::expect![[r#"
        0 queued 1
        0 queued 2
        0 started 1
        4 finished 1
        4 queued 3
        4 started 2
        14 suspended 2, 10 left
        14 started 3
        18 finished 3
        18 started 2
        28 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn some_channels_cannot_be_interrupted() {
    let stubborn = Channel { uninterruptible: true, ..channel(Level::High, 10) };
    let mut gpu = host(&[stubborn, channel(Level::High, 10)], GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(0, 1, 25));
    gpu.dispatch(Time::ZERO, of(0, 2, 5));
    gpu.dispatch(Time::ZERO, of(1, 3, 15));
    expect_test::expect![[r#"
        0 queued 1
        0 queued 2
        0 queued 3
        0 started 1
        25 finished 1
        25 started 3
        35 suspended 3, 5 left
        35 started 2
        40 finished 2
        40 started 3
        45 finished 3
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn turns_begin_when_the_context_is_loaded_and_stand_still_in_stalls() {
    let stalls = vec![Stall { at: Time::from_us(8), length: Span::from_us(100) }];
    let spec = GpuSpec { switch: Span::from_us(3), stalls, ..GpuSpec::default() };
    let mut gpu = host(&[channel(Level::High, 10); 2], spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 15));
    gpu.dispatch(Time::ZERO, of(1, 2, 5));
    expect_test::expect![[r#"
        0 queued 1
        0 queued 2
        3 started 1
        8 stalled until 108
        113 suspended 1, 5 left
        116 started 2
        121 finished 2
        124 started 1
        129 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn an_end_may_be_work_for_a_turn_of_its_own() {
    let stubborn = Channel { uninterruptible: true, ..channel(Level::High, 10) };
    let spec = GpuSpec { switch: Span::from_us(2), late_ends: true, ..GpuSpec::default() };
    let mut gpu = host(&[stubborn, stubborn, channel(Level::High, 10)], spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 20));
    gpu.dispatch(Time::from_us(1), of(1, 2, 20));
    // Too late to be next: that was decided at the end of the timeslice.
    gpu.dispatch(Time::from_us(15), of(2, 3, 5));
    expect_test::expect![[r#"
        0 queued 1
        1 queued 2
        2 started 1
        15 queued 3
        22 suspended 1, 0 left
        24 started 2
        44 suspended 2, 0 left
        46 started 3
        51 finished 3
        53 started 1
        53 finished 1
        55 started 2
        55 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn an_end_without_waiters_is_seen_at_once() {
    let stubborn = Channel { uninterruptible: true, ..channel(Level::High, 10) };
    let mut gpu = host(&[stubborn; 2], GpuSpec { late_ends: true, ..GpuSpec::default() });
    gpu.dispatch(Time::ZERO, of(0, 1, 25));
    gpu.dispatch(Time::from_us(25), of(1, 2, 5));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        25 finished 1
        25 queued 2
        25 started 2
        30 finished 2
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn what_costs_nothing_needs_no_turn() {
    let mut gpu = host(&[channel(Level::High, 10); 2], GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(0, 1, 8));
    gpu.dispatch(Time::from_us(1), of(1, 2, 0));
    gpu.dispatch(Time::from_us(2), of(0, 3, 0));
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        1 queued 2
        1 finished 2
        2 queued 3
        8 finished 1
        8 finished 3
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn channels_get_their_work_in_any_order() {
    let mut gpu = host(&[channel(Level::High, 10); 2], GpuSpec::default());
    gpu.dispatch(Time::from_us(9), of(0, 1, 4));
    gpu.dispatch(Time::from_us(2), of(1, 2, 4));
    gpu.dispatch(Time::from_us(3), of(0, 3, 4));
    expect_test::expect![[r#"
        2 queued 2
        2 started 2
        6 finished 2
        9 queued 1
        9 queued 3
        9 started 1
        13 finished 1
        13 started 3
        17 finished 3
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn next_to_nothing_is_not_nothing() {
    // A nanosecond at a slower clock is less than that: what is left of the first job when it is
    // interrupted.
    let clock = vec![ClockChange { at: Time::ZERO, permille: 900 }];
    let spec = GpuSpec { switch: Span::from_us(2), clock, ..GpuSpec::default() };
    let mut gpu = host(&[channel(Level::High, 10); 3], spec);
    gpu.dispatch(Time::ZERO, Job { cost: Span::from_ns(9_001), ..of(0, 1, 0) });
    gpu.dispatch(Time::ZERO, of(1, 2, 1));
    gpu.dispatch(Time::from_us(17), of(2, 3, 0));
    let played = play(&mut gpu);
    for job in 1..=3 {
        assert_eq!(played.matches(&format!("finished {job}\n")).count(), 1, "{job} in {played}");
    }
}

#[test]
fn an_end_is_put_off_once() {
    let clock = vec![ClockChange { at: Time::ZERO, permille: 1 }];
    let spec = GpuSpec { late_ends: true, clock, ..GpuSpec::default() };
    let stubborn =
        Channel { uninterruptible: true, timeslice: Span::from_ns(500), ..channel(Level::High, 1) };
    let mut gpu = host(&[stubborn; 2], spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 5));
    gpu.dispatch(Time::ZERO, of(1, 2, 5));
    assert_eq!(play(&mut gpu).matches("finished").count(), 2);
}

#[test]
fn who_was_next_may_have_just_ended() {
    let clock = vec![ClockChange { at: Time::ZERO, permille: 1 }];
    let spec = GpuSpec { late_ends: true, clock, ..GpuSpec::default() };
    let stubborn =
        |level| Channel { uninterruptible: true, timeslice: Span::from_ns(500), ..channel(level, 1) };
    let mut gpu = host(&[Level::High, Level::Medium, Level::Medium].map(stubborn), spec);
    gpu.dispatch(Time::ZERO, of(0, 1, 5));
    gpu.dispatch(Time::ZERO, of(2, 2, 5));
    assert_eq!(play(&mut gpu).matches("finished").count(), 2);
}

fn divisible(timeslice_us: u64, quantum_us: u64) -> Channel {
    let quantum = Span::from_us(quantum_us);
    Channel { divisible: true, quantum, ..channel(Level::Medium, timeslice_us) }
}

#[test]
fn pieces_are_executed_to_their_ends() {
    let mut gpu = host(&[divisible(10, 7), channel(Level::Medium, 100)], GpuSpec::default());
    gpu.dispatch(Time::ZERO, of(0, 1, 100));
    gpu.dispatch(Time::from_us(25), of(1, 2, 20));
    gpu.dispatch(Time::from_us(90), of(1, 3, 20));
    // Its slice is over at 30 and 92; the pieces that run then end at 35 and 97.
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        25 queued 2
        35 suspended 1, 65 left
        35 started 2
        55 finished 2
        55 started 1
        90 queued 3
        97 suspended 1, 23 left
        97 started 3
        117 finished 3
        117 started 1
        140 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
}

#[test]
fn divisible_work_has_turns_beside_a_queue() {
    let interrupts = Interrupts { slice: Span::from_us(10), quantum: Span::ZERO };
    let mut gpu = Gpu::new(&GpuSpec { divisible: Some(interrupts), ..GpuSpec::default() });
    let others = channel(Level::Medium, 30);
    for (app, channel) in (0..).zip([others, divisible(10, 0), others]) {
        gpu.set_channel(AppId(app), channel);
    }
    gpu.dispatch(Time::ZERO, of(1, 1, 100));
    gpu.dispatch(Time::from_us(5), of(2, 2, 40));
    gpu.dispatch(Time::from_us(4), of(0, 3, 20));
    // The second and the third are executed in the order of their dispatch.
    expect_test::expect![[r#"
        0 queued 1
        0 started 1
        5 queued 2
        5 queued 3
        10 suspended 1, 90 left
        10 started 2
        40 suspended 2, 10 left
        40 started 1
        50 suspended 1, 80 left
        50 started 2
        60 finished 2
        60 started 3
        80 finished 3
        80 started 1
        160 finished 1
    "#]]
    .assert_eq(&play(&mut gpu));
}
