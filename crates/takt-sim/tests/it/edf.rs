//! The modelled GPU under earliest deadline first, with and without preemption, against an exact
//! analysis and against bounds.

use takt_analysis::edf_response::{Preemption, bounds};
use takt_analysis::task::{Task, Ticks};
use takt_core::{AppId, GroupId, Span, Time};
use takt_sim::gpu::{Gpu, GpuEvent, Job};
use takt_sim::model::{GpuModel, GpuSpec};
use takt_sim::rng::Rng;
use takt_sim::task_sets::TaskSets;

/// A completed job: task, number of the job from 0, release and end.
struct Done {
    task: usize,
    job: u64,
    release: Ticks,
    end: Ticks,
}

/// A job that waits; in order of urgency. Ties are decided the same way everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    deadline: Ticks,
    task: usize,
    job: u64,
    release: Ticks,
    left: Ticks,
}

/// Plays the releases (time, task), one piece of a job on the GPU at a time; a tick is a nanosecond.
fn play(tasks: &[Task], mut releases: Vec<(Ticks, usize)>, preemption: Preemption) -> Vec<Done> {
    releases.sort_unstable();
    let mut releases = releases.into_iter().peekable();
    let mut gpu = Gpu::new(&GpuSpec { model: GpuModel::Preemptive, ..GpuSpec::default() });
    let mut numbers = vec![0; tasks.len()];
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut running: Option<Waiting> = None;
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    loop {
        while let Some(event) = gpu.step(now) {
            if let GpuEvent::Finished { .. } = event
                && let Some(ended) = running.take()
            {
                match ended.left {
                    0 => {
                        let Waiting { task, job, release, .. } = ended;
                        done.push(Done { task, job, release, end: now.as_ns() });
                    }
                    _ => waiting.push(ended),
                }
            }
        }
        while let Some((release, task)) = releases.next_if(|(release, _)| *release <= now.as_ns()) {
            let (deadline, left) = (release + tasks[task].deadline(), tasks[task].wcet());
            waiting.push(Waiting { deadline, task, job: numbers[task], release, left });
            numbers[task] += 1;
        }
        let first = (0..waiting.len()).min_by_key(|index| waiting[*index]);
        if preemption == Preemption::Anywhere
            && let (Some(current), Some(first)) = (running, first)
            && waiting[first] < current
            && let Some(taken) = gpu.take_back(now, GroupId(current.job))
        {
            waiting.push(Waiting { left: taken.job.cost.as_ns(), ..current });
            running = None;
        }
        if running.is_none()
            && let Some(first) = (0..waiting.len()).min_by_key(|index| waiting[*index])
        {
            let next = waiting.swap_remove(first);
            let piece = match preemption {
                Preemption::Segments(most) | Preemption::Pieces(most) => next.left.min(most),
                Preemption::Anywhere | Preemption::Nowhere => next.left,
            };
            let cost = Span::from_ns(piece);
            gpu.dispatch(now, Job { app: AppId(0), group: GroupId(next.job), cost });
            running = Some(Waiting { left: next.left - piece, ..next });
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
const SETS: &str = include_str!("../../../takt-analysis/tests/golden/npedf_vsync.sets.csv");
/// Columns: set, U, task, job (both from 1), earliest and latest end.
const ENDS: &str = include_str!("../../../takt-analysis/tests/golden/npedf_vsync_det.csv");

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
        let mut done = play(&tasks, ends.iter().map(release).collect(), Preemption::Nowhere);
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
    for round in 0..if slow { 300_000 } else { 6_000 } {
        let sets = TaskSets {
            tasks: 1 + round / 3 % 6,
            utilisation_ppb: rng.between(300_000_000, 990_000_000),
            period: (10, 200),
            deadline_permille_min: 500,
            ..TaskSets::hercules(0, 0)
        };
        let tasks = sets.draw(&mut rng).expect("such sets exist");
        let preemption = match round % 3 {
            0 => Preemption::Nowhere,
            1 => Preemption::Segments(rng.between(1, 12)),
            _ => Preemption::Anywhere,
        };
        let Ok(bounds) = bounds(&tasks, preemption) else {
            // Gpu times of at least one tick can add up to an overload.
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
        for done in play(&tasks, releases, preemption) {
            let response = done.end - done.release;
            assert!(
                response <= bounds[done.task],
                "task {} took {response}, {preemption:?}: {tasks:?} {bounds:?}",
                done.task
            );
        }
    }
}
