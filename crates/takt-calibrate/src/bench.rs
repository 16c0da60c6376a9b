//! A GPU without a window, and how long it takes for what.

mod load;
mod place;
mod probe;

use std::time::{Duration, Instant};

pub(crate) use load::Load;
pub use place::Place;
pub use takt_gl::measure::TimeSource;

use takt_gl::measure::TimerProblem;
use takt_predict::cost::FragmentState;

use crate::Problem;
use crate::sys::evictions;
use takt_gl_api::egl;
use takt_gl_api::gl::{BLEND, DEPTH_TEST, FRAMEBUFFER};
use takt_gl_driver::{Egl, Fences, Waited};
use takt_gl_driver::{Gl, Stamps, Timer};

/// How often something is repeated until its time is believed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// At least so often.
    pub repeats_min: usize,
    /// At most so often, however much times differ.
    pub repeats_max: usize,
}

impl Effort {
    /// As much as good constants need.
    pub const THOROUGH: Self = Self { repeats_min: 7, repeats_max: 31 };
    /// As little as makes sense.
    pub const QUICK: Self = Self { repeats_min: 3, repeats_max: 9 };
}

/// A time is stable once its median is known to this share of itself.
const STABLE: f64 = 0.01;

/// Repeated measurements of one thing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample {
    /// The median.
    pub(crate) ns: f64,
    /// Distance of the quartiles.
    pub(crate) spread_ns: f64,
}

impl Sample {
    /// Median and quartiles of at least one time.
    fn of(times: &mut [f64]) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
        Self { ns: at(2), spread_ns: at(3) - at(1) }
    }

    /// Whether more repetitions would hardly change the median, after so many of them.
    fn is_stable(&self, repeats: usize) -> bool {
        self.spread_ns <= STABLE * self.ns.abs() * (repeats as f64).sqrt()
    }
}

/// The two shortest times so far. Whatever disturbs work makes it longer, so the shortest time is
/// its own; that it came twice says that it was no slip of the clock.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    ns: [f64; 2],
}

impl Default for Shortest {
    fn default() -> Self {
        Self { ns: [f64::INFINITY; 2] }
    }
}

impl Shortest {
    fn add(&mut self, ns: f64) {
        let [first, second] = self.ns;
        self.ns = if ns < first { [ns, first] } else { [first, second.min(ns)] };
    }

    fn is_seen_twice(&self) -> bool {
        self.ns[1] <= self.ns[0] * (1.0 + TWICE)
    }
}

/// Tries to get a time in which no other thread took the processor.
const TRIES: usize = 4;
/// Times are the same if they differ by this share.
const TWICE: f64 = 0.02;

/// A GPU to measure on: its own context, current on this thread, with an off-screen surface.
#[derive(Debug)]
pub struct Bench {
    pub(crate) gl: Gl,
    egl: Egl,
    place: String,
    display: usize,
    config: usize,
    context: usize,
    surface: usize,
    software: bool,
    fences: Fences,
    timer: Option<Timer>,
    source: TimeSource,
}

/// A fence that was submitted and not waited for yet.
#[derive(Debug)]
pub(crate) struct Fence(usize);

/// Side of the surface at first.
const FIRST_SIDE: u32 = 256;

impl Bench {
    /// Opens a GPU, and finds out how times can be measured on it.
    ///
    /// # Errors
    ///
    /// If there is none, or its driver lacks fences or pbuffers.
    pub fn open(place: Place) -> Result<Self, Problem> {
        let egl = Egl::load()?;
        let (display, config, place) = place::open(egl, place)?;
        let fail = |step| Problem::Egl { place: place.clone(), step, error: egl.error() };
        let Some(fences) = Fences::new(&egl, display) else { return Err(Problem::NoFences(place)) };
        // 3.0 for samples per pixel; all else is there in 2.0.
        let context = [3, 2].map(|version| [egl::CONTEXT_CLIENT_VERSION, version, egl::NONE]);
        let context = context.iter().map(|list| egl.new_context(display, config, 0, list));
        let context = context.into_iter().find(|context| *context != 0);
        let context = context.ok_or_else(|| fail("make a context of GL ES"))?;
        let surface = new_surface(egl, display, config, (FIRST_SIDE, FIRST_SIDE));
        if surface == 0 || egl.make_current(display, surface, surface, context) == 0 {
            return Err(fail("make a surface without a window"));
        }
        let gl = Gl::load()?;
        gl.usual_functions();
        let software = takt_gl::shadow::driver::is_software(&gl.renderer());
        let timer = Timer::new(&gl);
        let mut bench = Self {
            gl,
            egl,
            place,
            display,
            config,
            context,
            surface,
            software,
            fences,
            timer,
            source: TimeSource::Fences(TimerProblem::NoTimer),
        };
        bench.source = probe::probe(&mut bench)?;
        Ok(bench)
    }

    /// `GL_RENDERER`, with what else tells renderers on CPUs apart.
    pub fn gpu(&self) -> String {
        takt_gl::settings::gpu_name(&self.gl.renderer())
    }

    /// `GL_VERSION`.
    pub fn driver(&self) -> String {
        self.gl.version()
    }

    /// Which display it is on.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What measures.
    pub fn source(&self) -> TimeSource {
        self.source
    }

    /// Time stamps of the GPU, where its timer queries are right.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        matches!(self.source, TimeSource::Timer { .. }).then(|| Stamps::new(&self.gl)).flatten()
    }

    /// Whether the renderer works on the CPU, inside of calls.
    pub(crate) fn is_software(&self) -> bool {
        self.software
    }

    /// Draws on another surface of this size from now on.
    pub(crate) fn resize(&mut self, width: u32, height: u32) -> Result<(), Problem> {
        let surface = new_surface(self.egl, self.display, self.config, (width, height));
        let current =
            surface != 0 && self.egl.make_current(self.display, surface, surface, self.context) != 0;
        if !current {
            let step = "make a larger surface without a window";
            return Err(Problem::Egl { place: self.place.clone(), step, error: self.egl.error() });
        }
        self.egl.destroy_surface(self.display, self.surface);
        self.surface = surface;
        self.gl.viewport(0, 0, width.cast_signed(), height.cast_signed());
        Ok(())
    }

    /// Does something on a surface of that size with so many samples per pixel (1 for none), in a context of its own;
    /// none if there are no such surfaces.
    pub(crate) fn on_surface<T>(
        &self,
        samples: u32,
        size: (u32, u32),
        act: impl FnOnce(&Gl) -> T,
    ) -> Option<T> {
        let Self { egl, display, .. } = *self;
        let config = place::config(egl, display, if samples > 1 { samples } else { 0 })?;
        let context = egl.new_context(display, config, 0, &[egl::CONTEXT_CLIENT_VERSION, 3, egl::NONE]);
        let surface = new_surface(egl, display, config, size);
        let current =
            context != 0 && surface != 0 && egl.make_current(display, surface, surface, context) != 0;
        let result = current.then(|| act(&self.gl));
        egl.make_current(display, self.surface, self.surface, self.context);
        egl.destroy_surface(display, surface);
        egl.destroy_context(display, context);
        result
    }

    /// Shows the surface, which means nothing here.
    pub(crate) fn swap(&self) {
        self.egl.swap_buffers(self.display, self.surface);
    }

    /// Depth test and blending for what follows.
    pub(crate) fn set_state(&self, state: FragmentState) {
        for (what, on) in [(DEPTH_TEST, state.depth), (BLEND, state.blend)] {
            if on { self.gl.enable(what) } else { self.gl.disable(what) }
        }
    }

    /// Fails if GL has reported an error since this was last asked.
    pub(crate) fn check(&self, what: &'static str) -> Result<(), Problem> {
        match self.gl.error() {
            0 => Ok(()),
            error => Err(Problem::Gl(error, what)),
        }
    }

    /// Puts back what an experiment that failed may have left behind.
    pub(crate) fn recover(&self) {
        // A driver has few kinds of errors; one that has lost its context reports that for ever.
        let _last = (0..16).find(|_| self.gl.error() == 0);
        self.gl.bind_framebuffer(FRAMEBUFFER, 0);
        self.set_state(FragmentState::default());
    }

    /// Nanoseconds from the submission of work to its completion, as `takt run` measures groups:
    /// with the time inside of calls if the renderer works there.
    pub(crate) fn by_fence(&self, work: &mut dyn FnMut()) -> f64 {
        self.gl.finish();
        let mut start = Instant::now();
        work();
        if !self.software {
            start = Instant::now();
        }
        let fence = self.fences.insert();
        if fence == 0 || !self.wait(Fence(fence), Duration::MAX) {
            self.gl.finish();
        }
        start.elapsed().as_nanos() as f64
    }

    /// Hands over all work so far, with a fence behind it.
    pub(crate) fn submit(&self, what: &'static str) -> Result<Fence, Problem> {
        let fence = self.fences.insert();
        self.gl.flush();
        if fence == 0 { Err(Problem::Gl(self.gl.error(), what)) } else { Ok(Fence(fence)) }
    }

    /// Waits until a fence is passed; false if it is not within this time.
    pub(crate) fn wait(&self, fence: Fence, most: Duration) -> bool {
        let most_ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let waited = self.fences.wait(fence.0, most_ns);
        self.fences.destroy(fence.0);
        waited == Waited::Passed
    }

    fn once(&self, work: &mut dyn FnMut()) -> f64 {
        match (&self.timer, self.source) {
            (Some(timer), TimeSource::Timer { .. }) => timer.measure(work) as f64,
            _ => self.by_fence(work),
        }
    }

    /// Nanoseconds of work, by what measures here.
    pub(crate) fn time(&self, effort: Effort, work: &mut dyn FnMut()) -> Sample {
        self.repeat(effort, || self.once(work))
    }

    /// By how many nanoseconds `more` takes longer than `less`, if nothing disturbs them: both take
    /// turns until the shortest time of each has been seen twice. What a renderer on the CPU did
    /// while others had its processor counts only if there is nothing else.
    pub(crate) fn difference(&self, effort: Effort, less: &mut dyn FnMut(), more: &mut dyn FnMut()) -> f64 {
        self.once(less);
        self.once(more);
        let (mut of_less, mut of_more) = (Shortest::default(), Shortest::default());
        for repeat in 1..=effort.repeats_max {
            of_less.add(self.undisturbed(less));
            of_more.add(self.undisturbed(more));
            if repeat >= effort.repeats_min && of_less.is_seen_twice() && of_more.is_seen_twice() {
                break;
            }
        }
        of_more.ns[0] - of_less.ns[0]
    }

    /// The time of work that did not have to share its processor, or the shortest of several tries.
    fn undisturbed(&self, work: &mut dyn FnMut()) -> f64 {
        let mut shortest = f64::INFINITY;
        for _ in 0..TRIES {
            let before = evictions();
            let ns = self.once(work);
            if !self.software || evictions() == before {
                return ns;
            }
            shortest = shortest.min(ns);
        }
        shortest
    }

    /// Measures until it is stable. The first time does not count: drivers compile then.
    fn repeat(&self, effort: Effort, mut once: impl FnMut() -> f64) -> Sample {
        once();
        let mut times = Vec::with_capacity(effort.repeats_max);
        loop {
            times.push(once());
            if times.len() < effort.repeats_min {
                continue;
            }
            let sample = Sample::of(&mut times);
            if times.len() >= effort.repeats_max || sample.is_stable(times.len()) {
                return sample;
            }
        }
    }
}

fn new_surface(egl: Egl, display: usize, config: usize, (width, height): (u32, u32)) -> usize {
    let list = [egl::WIDTH, width.cast_signed(), egl::HEIGHT, height.cast_signed(), egl::NONE];
    egl.new_pbuffer(display, config, &list)
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The display stays: other threads may use it, and EGL keeps one per process.
        self.egl.make_current(self.display, 0, 0, 0);
        self.egl.destroy_surface(self.display, self.surface);
        self.egl.destroy_context(self.display, self.context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        let sample = Sample::of(&mut [9.0, 1.0, 3.0, 100.0, 2.0]);
        assert_eq!(sample, Sample { ns: 3.0, spread_ns: 7.0 });
        assert!(!sample.is_stable(5));
        assert!(Sample { ns: 100.0, spread_ns: 3.0 }.is_stable(9));
        assert!(Sample { ns: 0.0, spread_ns: 0.0 }.is_stable(3));
    }

    #[test]
    fn the_shortest_time_must_come_twice() {
        let mut shortest = Shortest::default();
        for (ns, twice) in [(50.0, false), (80.0, false), (50.5, true), (40.0, false), (40.1, true)] {
            shortest.add(ns);
            assert_eq!(shortest.is_seen_twice(), twice, "after {ns}");
        }
        assert_eq!(shortest.ns, [40.0, 40.1]);
    }
}
