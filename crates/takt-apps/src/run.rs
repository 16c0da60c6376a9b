//! The loop that every app runs in: release, draw, hand over, wait, measure.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{LineWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use takt_gl_driver::{Gl, Waited};

use crate::options::{Options, Pace, Size};
use crate::pace::Grid;
use crate::picture;
use crate::stage::{self, Connection, Context, Display, Stage};
use crate::stats::{FrameTimes, Stats, Summary};
use crate::sys::clock::now_ns;
use crate::sys::signal;

/// An app: something that draws frames.
pub(crate) trait App {
    /// Draws a frame on the current surface.
    fn draw(&mut self, gl: &Gl, frame: &Frame);

    /// Draws per frame, and what else is worth knowing about the load.
    fn facts(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// Which frame to draw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Frame {
    /// Seconds since the first frame, as the frame's number has it (or the clock, if told so).
    pub(crate) time: f64,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
}

impl Frame {
    /// Width divided by height.
    pub(crate) fn aspect(&self) -> f32 {
        self.size.0 as f32 / self.size.1 as f32
    }
}

/// What an app is unless told otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) name: &'static str,
    pub(crate) size: Size,
    pub(crate) fps: f64,
}

/// Frames of an app without a rate move as if there were this many per second.
const STEP_FPS: f64 = 60.0;
/// The longest nap, so that requests to stop are heard.
const NAP_NS: u64 = 100_000_000;

/// Makes an app on a stage, whose size is given.
pub(crate) type Make<'a> = dyn Fn(&Gl, (u32, u32)) -> anyhow::Result<Box<dyn App>> + Sync + 'a;

/// Runs an app to its end, and says how it went: 0, 1 if pixels or calls were wrong, 2 if it could
/// not run.
pub(crate) fn run(defaults: &Defaults, options: &Options, make: &Make<'_>) -> ExitCode {
    match try_run(defaults, options, make) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // The reader of our output has closed it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("takt-{}: {error:#}", defaults.name));
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn complain(message: &str) {
    // Where standard error is closed, the message is lost.
    writeln!(std::io::stderr(), "{message}").unwrap_or(());
}

fn try_run(defaults: &Defaults, options: &Options, make: &Make<'_>) -> anyhow::Result<bool> {
    signal::watch();
    let (display, connection) = stage::open(options)?;
    let off_screen = matches!(connection, Connection::OffScreen);
    if options.threads > 1 && !off_screen {
        bail!("--threads works off-screen only: add --platform off-screen");
    }
    let mut contexts = Vec::new();
    for _ in 0..options.threads {
        let share = contexts.first().copied().filter(|_| options.share);
        contexts.push(display.context(share, options.egl_priority)?);
    }
    let job = |connection, thread| {
        let context: Context = contexts[thread];
        Job { defaults, options, display: &display, thread }.run(connection, context, make)
    };
    let outcomes: Vec<anyhow::Result<Outcome>> = if options.threads == 1 {
        vec![job(connection, 0)]
    } else {
        std::thread::scope(|scope| {
            let job = &job;
            let start = |thread| scope.spawn(move || job(Connection::OffScreen, thread));
            let threads: Vec<_> = (0..options.threads).map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("threads of apps do not panic")).collect()
        })
    };
    if off_screen {
        display.close();
    }
    let mut good = true;
    for outcome in outcomes {
        good &= outcome?.print(options)?;
    }
    Ok(good)
}

/// One thread's share of a run.
struct Job<'a> {
    defaults: &'a Defaults,
    options: &'a Options,
    display: &'a Display,
    thread: usize,
}

impl Job<'_> {
    fn run(&self, connection: Connection, context: Context, make: &Make<'_>) -> anyhow::Result<Outcome> {
        let (options, defaults) = (self.options, self.defaults);
        let title = format!("takt-{}", defaults.name);
        let size = options.size.unwrap_or(defaults.size);
        let mut stage = Stage::new(self.display, connection, context, &title, size)?;
        let fps = options.fps.unwrap_or(defaults.fps);
        stage.set_swap_interval(options.swap_interval.unwrap_or_else(|| u32::from(fps == 0.0)));
        let first_size = stage.poll().unwrap_or((size.0, size.1));
        let mut app = make(&stage.gl, first_size)?;
        let mut play = Play::new(self, fps)?;
        for _ in 0..options.warm_up {
            let time = options.first_frame as f64 / if fps > 0.0 { fps } else { STEP_FPS };
            app.draw(&stage.gl, &Frame { time, size: first_size });
            show(options, &stage)?;
            stage.gl.finish();
        }
        play.frames(&mut stage, app.as_mut())?;
        let good = play.gl_errors == 0 && options.output.expect_hash.is_none_or(|hash| hash == play.hash);
        Ok(Outcome { summary: play.stats.summary(), facts: self.facts(&stage, &play, app.as_ref()), good })
    }

    fn facts(&self, stage: &Stage, play: &Play<'_>, app: &dyn App) -> Map<String, Value> {
        let (width, height) = stage.size();
        let mut facts = Map::new();
        let mut note = |name: &str, value: Value| facts.insert(name.to_owned(), value);
        note("app", json!(self.defaults.name));
        note("thread", json!(self.thread));
        note("platform", json!(self.display.platform));
        note("renderer", json!(stage.renderer()));
        note("size", json!(format!("{width}x{height}")));
        note("msaa", json!(self.options.msaa));
        note("in_flight", json!(self.options.in_flight));
        note("target_fps", json!(play.fps));
        if self.options.egl_priority.is_some() {
            note("egl_priority", json!(stage.priority()));
        }
        if self.options.output.validate {
            note("hash", json!(format!("{:016x}", play.hash)));
            note("gl_errors", json!(play.gl_errors));
        }
        for (name, value) in app.facts() {
            note(name, value);
        }
        facts
    }
}

/// A frame that the GPU may still work on.
struct Unfinished {
    times: FrameTimes,
    fence: usize,
}

/// The state of a run.
struct Play<'a> {
    options: &'a Options,
    name: &'static str,
    fps: f64,
    stats: Stats,
    unfinished: VecDeque<Unfinished>,
    /// By lines, so that a run that is killed keeps its frames.
    log: Option<LineWriter<File>>,
    hash: u64,
    gl_errors: u64,
    next_report_ns: Option<u64>,
}

impl<'a> Play<'a> {
    fn new(job: &Job<'a>, fps: f64) -> anyhow::Result<Self> {
        let options = job.options;
        let log = options.output.frame_log.as_ref().filter(|_| job.thread == 0);
        let log = log.map(|path| {
            let mut file = LineWriter::new(File::create(path)?);
            writeln!(file, "frame,release_ns,begin_ns,swap_ns,end_ns,deadline_ns")?;
            Ok::<_, std::io::Error>(file)
        });
        let log = log.transpose().context("cannot write the --frame-log")?;
        Ok(Self {
            options,
            name: job.defaults.name,
            fps,
            stats: Stats::default(),
            unfinished: VecDeque::with_capacity(options.in_flight),
            log,
            hash: picture::HASH_START,
            gl_errors: 0,
            next_report_ns: options.output.report_every.map(|every| now_ns() + nanoseconds(every)),
        })
    }

    fn frames(&mut self, stage: &mut Stage, app: &mut dyn App) -> anyhow::Result<()> {
        let start = now_ns();
        let end = self.options.seconds.map(|seconds| start + nanoseconds(seconds));
        let mut grid = (self.fps > 0.0).then(|| Grid::new(start, self.fps));
        let first = self.options.first_frame;
        for number in (first..).take(self.frame_count()) {
            let period = grid.as_mut().map(|grid| match self.options.pace {
                Pace::Clock => grid.advance(now_ns()),
                Pace::Swap => grid.restart(now_ns()),
            });
            self.stats.skip(period.map_or(0, |period| period.skipped));
            if let Some(period) = period {
                self.wait_until(stage, period.release_ns)?;
            }
            let Some(size) = stage.poll() else { break };
            if signal::stopped() || end.is_some_and(|end| now_ns() >= end) {
                break;
            }
            let begin = now_ns();
            let release = period.map_or(begin, |period| period.release_ns);
            let step_fps = if self.fps > 0.0 { self.fps } else { STEP_FPS };
            let time = match period {
                Some(period) if self.options.real_time => (first + period.number) as f64 / step_fps,
                None if self.options.real_time => first as f64 / step_fps + (begin - start) as f64 / 1e9,
                _ => number as f64 / step_fps,
            };
            app.draw(&stage.gl, &Frame { time, size });
            self.look_at(number, size, &stage.gl)?;
            let deadline = period.map(|period| period.deadline_ns);
            let times = FrameTimes { frame: number, release, begin, swap: 0, end: 0, deadline };
            if self.options.finish || self.options.pace == Pace::Swap {
                // The swap may come back long after the frame's end.
                self.hand_over(stage, times);
                self.finish_oldest(stage, u64::MAX)?;
                show(self.options, stage)?;
            } else {
                show(self.options, stage)?;
                self.hand_over(stage, times);
                while self.unfinished.len() >= self.options.in_flight {
                    self.finish_oldest(stage, u64::MAX)?;
                }
            }
            self.report();
        }
        while !self.unfinished.is_empty() {
            self.finish_oldest(stage, u64::MAX)?;
        }
        Ok(())
    }

    /// The frame is the GPU's now.
    fn hand_over(&mut self, stage: &Stage, times: FrameTimes) {
        let fence = stage.fences.map_or(0, |fences| fences.insert());
        let times = FrameTimes { swap: now_ns(), ..times };
        self.unfinished.push_back(Unfinished { times, fence });
    }

    fn frame_count(&self) -> usize {
        self.options.frames.and_then(|frames| usize::try_from(frames).ok()).unwrap_or(usize::MAX)
    }

    /// Sleeps, and notes frames that end meanwhile.
    fn wait_until(&mut self, stage: &Stage, until_ns: u64) -> anyhow::Result<()> {
        loop {
            let now = now_ns();
            if now >= until_ns || signal::stopped() {
                return Ok(());
            }
            let nap = (until_ns - now).min(NAP_NS);
            if self.unfinished.is_empty() {
                std::thread::sleep(Duration::from_nanos(nap));
            } else {
                self.finish_oldest(stage, nap)?;
            }
        }
    }

    /// Waits for the oldest frame, and takes its end.
    fn finish_oldest(&mut self, stage: &Stage, timeout_ns: u64) -> anyhow::Result<()> {
        let Some(Unfinished { fence, .. }) = self.unfinished.front() else { return Ok(()) };
        match stage.fences {
            Some(fences) if *fence != 0 => {
                if fences.wait(*fence, timeout_ns) == Waited::TimedOut {
                    return Ok(());
                }
                fences.destroy(*fence);
            }
            _ => stage.gl.finish(),
        }
        let Some(Unfinished { mut times, .. }) = self.unfinished.pop_front() else { return Ok(()) };
        times.end = now_ns();
        self.finished(&times)
    }

    /// Counts a frame that has ended on the GPU.
    fn finished(&mut self, times: &FrameTimes) -> anyhow::Result<()> {
        self.stats.add(times);
        if let Some(log) = &mut self.log {
            let FrameTimes { frame, release, begin, swap, end, deadline } = *times;
            let deadline = deadline.map(|deadline| deadline.to_string()).unwrap_or_default();
            writeln!(log, "{frame},{release},{begin},{swap},{end},{deadline}")
                .context("cannot write the --frame-log")?;
        }
        Ok(())
    }

    /// Reads the frame back, if a picture was asked for.
    fn look_at(&mut self, number: u64, size: (u32, u32), gl: &Gl) -> anyhow::Result<()> {
        let output = &self.options.output;
        let last = self.options.first_frame + self.options.frames.map_or(0, |frames| frames - 1);
        let dump = output.dump.as_ref().filter(|_| output.dump_frame.unwrap_or(last) == number);
        if dump.is_none() && !output.validate {
            return Ok(());
        }
        let mut pixels = vec![0; size.0 as usize * size.1 as usize * 4];
        gl.read_pixels(size.0, size.1, &mut pixels);
        if output.validate {
            self.hash = picture::hash(self.hash, &pixels);
            while gl.error() != 0 {
                self.gl_errors += 1;
            }
        }
        if let Some(path) = dump {
            picture::save(path, size, &pixels).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn report(&mut self) {
        let (Some(next), Some(every)) = (self.next_report_ns, self.options.output.report_every) else {
            return;
        };
        if now_ns() >= next {
            self.next_report_ns = Some(next + nanoseconds(every));
            complain(&line(self.name, &self.stats.summary()));
        }
    }
}

/// Ends a frame: by a swap, or by waiting for it.
fn show(options: &Options, stage: &Stage) -> anyhow::Result<()> {
    if options.no_swap {
        stage.gl.finish();
        return Ok(());
    }
    stage.swap()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds are checked when parsed"
)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// What came of a thread's run.
struct Outcome {
    summary: Summary,
    facts: Map<String, Value>,
    good: bool,
}

impl Outcome {
    /// Prints it; whether all was well.
    fn print(mut self, options: &Options) -> anyhow::Result<bool> {
        let mut out = std::io::stdout().lock();
        if options.output.json {
            if let Value::Object(figures) = serde_json::to_value(&self.summary)? {
                self.facts.extend(figures);
            }
            writeln!(out, "{}", Value::Object(self.facts))?;
        } else {
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = self.facts.remove("app").map(|name| plain(&name)).unwrap_or_default();
            let facts: Vec<String> =
                self.facts.iter().map(|(name, value)| format!("  {name:<12} {}", plain(value))).collect();
            writeln!(out, "{}\n{}", line(&name, &self.summary), facts.join("\n"))?;
        }
        if !self.good {
            let wanted = options.output.expect_hash.map(|hash| format!(", wanted hash {hash:016x}"));
            complain(&format!("validation failed{}", wanted.unwrap_or_default()));
        }
        Ok(self.good)
    }
}

/// The figures in one line.
fn line(name: &str, summary: &Summary) -> String {
    let Summary { frames, seconds, fps, late, skipped, missed_percent, response_us, frame_time_us } = summary;
    let missed = missed_percent
        .map(|percent| format!(", missed {percent:.2} % ({late} late, {skipped} skipped)"))
        .unwrap_or_default();
    format!(
        "{name}: {frames} frames in {seconds:.2} s, {fps:.1} FPS{missed}; \
         response ms p50 {:.2} p99 {:.2} max {:.2}; frame time ms p50 {:.2} p99 {:.2} max {:.2}",
        response_us.p50 / 1e3,
        response_us.p99 / 1e3,
        response_us.max / 1e3,
        frame_time_us.p50 / 1e3,
        frame_time_us.p99 / 1e3,
        frame_time_us.max / 1e3,
    )
}
