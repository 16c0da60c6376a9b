//! The modelled GPU under earliest deadline first, against an exact analysis and against bounds.

use takt_core::analysis::edf_response::{Preemption, bounds};
use takt_core::analysis::task::{Task, Ticks};
use takt_core::{AppId, GroupId, Span, Time};
use takt_sim::gpu::{Gpu, GpuEvent, Job};
use takt_sim::model::GpuSpec;
use takt_sim::rng::Rng;
use takt_sim::task_sets::TaskSets;

/// A completed job: task, number of the job from 0, release and end.
struct Done {
    task: usize,
    job: u64,
    release: Ticks,
    end: Ticks,
}

/// Plays the releases (time, task), one job on the GPU at a time; a tick is a nanosecond.
fn play(tasks: &[Task], mut releases: Vec<(Ticks, usize)>) -> Vec<Done> {
    releases.sort_unstable();
    let mut releases = releases.into_iter().peekable();
    let mut gpu = Gpu::new(&GpuSpec::default());
    let mut numbers = vec![0; tasks.len()];
    // Deadline, then index: ties are decided the same way everywhere.
    let mut waiting: Vec<(Ticks, usize, u64, Ticks)> = Vec::new();
    let mut running = None;
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    loop {
        while let Some((release, task)) = releases.next_if(|(release, _)| *release <= now.as_ns()) {
            waiting.push((release + tasks[task].deadline(), task, numbers[task], release));
            numbers[task] += 1;
        }
        if running.is_none()
            && let Some(first) = (0..waiting.len()).min_by_key(|index| waiting[*index])
        {
            let (_, task, job, release) = waiting.swap_remove(first);
            let cost = Span::from_ns(tasks[task].wcet());
            gpu.dispatch(now, Job { app: AppId(0), group: GroupId(job), cost });
            running = Some((task, job, release));
        }
        while let Some(event) = gpu.step(now) {
            if let GpuEvent::Finished { .. } = event
                && let Some((task, job, release)) = running.take()
            {
                done.push(Done { task, job, release, end: now.as_ns() });
            }
        }
        if running.is_none() && !waiting.is_empty() {
            continue;
        }
        let release = releases.peek().map_or(Time::NEVER, |(release, _)| Time::from_ns(*release));
        now = gpu.next_at().min(release);
        if now == Time::NEVER {
            return done;
        }
    }
}

fn numbers(line: &str) -> Vec<u64> {
    // The second column is a utilisation and of no use here.
    line.split(',').map(|cell| cell.parse().unwrap_or(0)).collect()
}

/// Columns: set, U, task (from 1), C, D, T; ticks of 1/3 600 000 s, one hyperperiod.
const SETS: &str = include_str!("../../takt-core/tests/golden/npedf_vsync.sets.csv");
/// Columns: set, U, task, job (both from 1), earliest and latest end.
const ENDS: &str = include_str!("../../takt-core/tests/golden/npedf_vsync_det.csv");

#[test]
fn every_job_ends_when_the_exact_analysis_says() {
    let sets: Vec<Vec<u64>> = SETS.lines().skip(1).map(numbers).collect();
    let ends: Vec<Vec<u64>> = ENDS.lines().skip(1).map(numbers).collect();
    let mut compared = 0;
    for (set, ends) in sets.chunk_by(|a, b| a[0] == b[0]).zip(ends.chunk_by(|a, b| a[0] == b[0])) {
        let task = |row: &Vec<u64>| Task::new(row[3], row[4], row[5]).expect("in range");
        let tasks: Vec<Task> = set.iter().map(task).collect();
        let release = |row: &Vec<u64>| {
            let task = usize::try_from(row[2] - 1).expect("small");
            ((row[3] - 1) * tasks[task].period(), task)
        };
        let mut done = play(&tasks, ends.iter().map(release).collect());
        done.sort_by_key(|done| (done.task, done.job));
        assert_eq!(done.len(), ends.len());
        for (done, row) in done.iter().zip(ends) {
            assert_eq!((done.task as u64 + 1, done.job + 1), (row[2], row[3]));
            assert_eq!((done.end, done.end), (row[4], row[5]), "{row:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, ENDS.lines().count() - 1);
}

#[test]
fn no_response_on_the_gpu_is_above_its_bound() {
    let slow = std::env::var_os("TAKT_SLOW_TESTS").is_some_and(|value| value == "1");
    let mut rng = Rng::new(11, 0);
    for round in 0..if slow { 100_000 } else { 2_000 } {
        let sets = TaskSets {
            tasks: 1 + round % 6,
            utilisation_ppb: rng.between(300_000_000, 990_000_000),
            period: (10, 200),
            deadline_permille_min: 500,
            ..TaskSets::hercules(0, 0)
        };
        let tasks = sets.draw(&mut rng).expect("such sets exist");
        let Ok(bounds) = bounds(&tasks, Preemption::Nowhere) else {
            // Execution times of at least one tick can add up to an overload.
            continue;
        };
        let mut releases = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let mut at = rng.between(0, task.period());
            while at < 2_000 {
                releases.push((at, index));
                at += task.period() + if rng.chance(200_000) { rng.between(1, task.period()) } else { 0 };
            }
        }
        for done in play(&tasks, releases) {
            let response = done.end - done.release;
            assert!(
                response <= bounds[done.task],
                "task {} took {response}: {tasks:?} {bounds:?}",
                done.task
            );
        }
    }
}
