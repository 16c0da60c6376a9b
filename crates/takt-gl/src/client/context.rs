//! A context: its shadow, its stream of groups, and what measures them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_client::Stream;
use takt_client::backlog::Backlog;
use takt_client::ends::Submission;
use takt_core::Span;
use takt_predict::adapt::Disturbance;
use takt_predict::cost::Buffers;
use takt_predict::predictor::Work;
use takt_predict::store;

use super::backlog;
use super::current::flush;
use super::filling::{CutFilling, FILLED_PIXEL_BYTES, Filling};
use super::forecast::{Forecast, Ticket};
use super::group::{Builder, End};
use super::meter::{Meter, Stamping, SwapEnd};
use super::rhythm::Rhythm;
use super::trials::Trials;
use crate::measure::{self, Stamper, Submitted, Witnessed};
use crate::session::session;
use crate::settings::settings;
use crate::shadow::Shadow;
use crate::shadow::driver::Driver;
use crate::shadow::share::ShareGroup;
use crate::shadow::surface::Surface;
use crate::slice::{Area, Fill, Follow, Trust, Variant};
use crate::{clock, frames, gl, heap, predict, slice, vendor};

/// A context.
#[derive(Debug)]
pub struct Context {
    /// Objects that it shares.
    pub group: Arc<ShareGroup>,
    state: Mutex<State>,
}

impl Context {
    /// A fresh context.
    pub fn new(display: usize, handle: usize, group: Arc<ShareGroup>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = vendor::context_number(NEXT.fetch_add(1, Ordering::Relaxed));
        let state = State::new(Identity { number, display, handle }, group.clone());
        Self { group, state: Mutex::new(state) }
    }

    /// Its state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a context.
#[derive(Debug)]
pub struct State {
    pub(super) id: Identity,
    /// Its GL state.
    pub shadow: Shadow,
    /// What the GPU is to do.
    pub builder: Builder,
    /// Its grants, and how frames went so far.
    pub(super) stream: Stream,
    /// What the current group tells about draws.
    pub(super) follow: Follow,
    /// The program of the last draw, if it was measured once: most draws have the same.
    pub(super) measured: Option<Variant>,
    /// The current group ends with its last command, whose time tells what it takes.
    pub(super) measure_apart: bool,
    /// How many commands a group may have.
    pub(super) trust: Trust,
    /// Work other than draws that was measured apart.
    pub(super) apart: BTreeSet<Variant>,
    /// Commands of the frame that were tried out piece by piece.
    pub(super) trials: Trials,
    pub(super) forecast: Forecast,
    pub(super) meter: Meter,
    /// Frames of windows that are not there.
    backlog: Backlog<usize>,
    /// Frames of programs that never swap.
    pub(super) rhythm: Rhythm,
}

/// How a context is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// By us.
    pub(super) number: u64,
    /// Its display.
    pub(super) display: usize,
    /// By EGL.
    pub(super) handle: usize,
}

impl State {
    fn new(id: Identity, shared: Arc<ShareGroup>) -> Self {
        Self {
            id,
            shadow: Shadow::new(shared),
            builder: Builder::default(),
            stream: Stream::default(),
            follow: Follow::default(),
            measured: None,
            measure_apart: false,
            trust: Trust::default(),
            apart: BTreeSet::new(),
            trials: Trials::default(),
            forecast: Forecast::new(),
            meter: Meter::default(),
            backlog: Backlog::default(),
            rhythm: Rhythm::default(),
        }
    }

    /// The context became current in this thread.
    pub fn bound(&mut self, surface: Option<Arc<Surface>>) {
        if let Some(surface) = &surface {
            surface.measure();
            self.shadow.raster.first_surface(surface.size());
        }
        self.shadow.surface = surface;
        if self.shadow.driver.is_none() {
            self.first_bound();
        }
    }

    /// It did so for the first time.
    fn first_bound(&mut self) {
        let driver = Driver::ask(self.id.display);
        let (gpu, stored) = (&driver.renderer, &driver.stored);
        if session().is_wanted() {
            session().draws_on(store::folder(gpu, stored), driver.software);
            session().join();
        }
        slice::prepare();
        self.forecast.set(predict::models(gpu, stored));
        self.forecast.exactness = predict::exactness(gpu, stored);
        if measure::is_wanted() {
            measure::table();
            let judge = predict::judge(gpu, stored);
            self.meter.stamper = Stamper::new(judge, &driver.extensions);
            self.meter.waiter = measure::waiter(self.id.display, self.id.handle, driver.newer);
        }
        if driver.software {
            heap::make_room();
        }
        self.shadow.driver = Some(driver);
    }

    /// Hands what is pending to the GPU, as far as measuring is concerned: a fence goes behind it.
    /// True if there was something.
    pub fn submit(&mut self, end: End) -> bool {
        if self.goes_on(end, clock::now_ns()) {
            return false;
        }
        self.renew_grant();
        self.submit_since(end, clock::now_ns())
    }

    /// The group is about to be handed over. Where it was filled for so long that its grant was taken back, or counts
    /// no more, another one is asked for: a program that draws a little, sleeps, and flushes when another one's
    /// frame begins would delay that.
    pub(super) fn renew_grant(&mut self) {
        if !session().is_wanted() || self.builder.is_empty() || self.builder.is_between_frames() {
            return;
        }
        self.stream.check(session());
        if !session().reserves() {
            self.stream.expire(session());
        }
        let pending = self.pending();
        if !self.stream.has_grant() && self.stream.ungranted.is_too_much(pending) && !measure::is_early() {
            self.stream.command = self.builder.command();
            self.stream.ask_exactly(measure::watched(), pending);
        }
    }

    /// The same where the program's next call waits for everything that this context was asked to do;
    /// and what to do after that call.
    pub(crate) fn submit_to_wait(&mut self, end: End) -> (bool, Option<Witnessed>) {
        let goes_on = self.goes_on(end, clock::now_ns());
        if !goes_on {
            self.renew_grant();
        }
        let at_ns = clock::now_ns();
        let ended = if goes_on { None } else { self.end_group(end) };
        let submitted = ended.and_then(|(predicted, follow)| self.submitted(end, at_ns, predicted, follow));
        let (display, waiter) = (self.id.display, self.meter.waiter.as_ref());
        (submitted.is_some(), submitted.and_then(|group| Witnessed::before_wait(display, waiter, group)))
    }

    /// Whether the current group goes on in spite of a submission point.
    fn goes_on(&mut self, end: End, at_ns: u64) -> bool {
        // Frames that have ended are with the driver already, so a thread that waits for them needs
        // nothing to be handed over.
        let waits = matches!(end, End::Flush | End::Finish | End::Read | End::Target);
        waits && self.builder.is_between_frames() && self.stream.gathering.has_time(at_ns)
            || end == End::Flush && self.stream.gathering.coasts()
            || end == End::Target && self.goes_on_elsewhere(at_ns)
    }

    /// The driver is about to be given work.
    #[inline]
    pub fn begins(&mut self) {
        let stamps = if self.stream.gathering.coasts() { Stamping::Off } else { Stamping::On };
        self.meter.begins(stamps, self.shadow.software());
    }

    /// Whether the GPU's clock has jumped since the program last asked.
    pub fn take_disjoint(&mut self) -> bool {
        self.meter.take_disjoint()
    }

    /// The same for a group that began then.
    pub(crate) fn submit_since(&mut self, end: End, at_ns: u64) -> bool {
        let ended = self.end_group(end);
        ended.is_some_and(|(predicted, follow)| self.hand_over(end, at_ns, predicted, follow))
    }

    /// The group ends: what models said about it, and what it tells about draws. None if there is none.
    fn end_group(&mut self, end: End) -> Option<(Option<Ticket>, Follow)> {
        if self.builder.is_empty() && end != End::Swap {
            self.builder.end(self.id.number, end);
            self.meter.forget();
            return None;
        }
        let draws = self.stream.has_grant() && end != End::Swap;
        let contained = if draws { self.pending() } else { Span::ZERO };
        self.stream.contains(contained);
        if session().is_wanted() && !self.stream.has_grant() {
            self.stream.ungranted.went(self.pending());
        }
        Some((self.predict_group(end), std::mem::take(&mut self.follow)))
    }

    /// What the models say about the group, which ends.
    pub(super) fn predict_group(&mut self, end: End) -> Option<Ticket> {
        if self.stream.gathering.coasts() {
            return None;
        }
        self.forecast.end_group(end, self.shadow.predicted_target(), self.switch())
    }

    /// Whether the GPU has to change contexts for the group.
    fn switch(&self) -> Disturbance {
        let switches = !self.shadow.software() && measure::switches_context(self.id.number);
        if switches { Disturbance::ContextSwitch } else { Disturbance::None }
    }

    /// Has the group measured, for which that was predicted.
    pub(super) fn hand_over(
        &mut self,
        end: End,
        at_ns: u64,
        predicted: Option<Ticket>,
        follow: Follow,
    ) -> bool {
        let Some(submitted) = self.submitted(end, at_ns, predicted, follow) else {
            return false;
        };
        let Identity { display, handle, .. } = self.id;
        let swap_end = self.meter.swap_end.take();
        if let Some(SwapEnd::Seen(at_ns)) = swap_end {
            measure::shown(submitted, at_ns);
        } else if swap_end.is_some() {
            // That it took no time says nothing about swaps that show something.
            measure::submit_idle(Submitted { predicted: None, ..submitted });
        } else if end == End::BeforeSwap && self.shadow.software() && measure::is_seen_when_shown() {
            self.meter.showing = Witnessed::before_show(display, self.meter.waiter.as_ref(), submitted);
        } else {
            if end == End::Target {
                self.meter.part(display, handle, self.shadow.newer());
            }
            measure::submit(display, self.meter.waiter.as_ref(), submitted);
        }
        true
    }

    /// The group as it is handed over; none if there is none.
    fn submitted(
        &mut self,
        end: End,
        at_ns: u64,
        predicted: Option<Ticket>,
        mut follow: Follow,
    ) -> Option<Submitted> {
        let commands = self.builder.commands();
        let mut group = self.builder.end(self.id.number, end)?;
        group.work.call_ns = self.meter.in_calls(group.work.call_ns).saturating_add(group.work.dispatch_ns);
        let credit = self.stream.grant().map(|grant| grant.credit);
        let gathered = self.stream.gathering.gathered(credit, end == End::Swap);
        if follow.part.is_none() && commands > 0 && !self.stream.gathering.coasts() {
            follow.trusted = credit.map(|credit| self.trust.group(commands, credit));
        }
        // What several frames took together says nothing about one of them.
        let predicted = predicted.filter(|_| gathered.is_none());
        let grant = self.stream.end_group(session());
        let stamped = self.meter.stamp_end();
        let software = self.shadow.software();
        let disturbance = measure::beside_others(self.switch(), software);
        measure::submits(self.id.number);
        let in_calls_ns = if software { group.work.call_ns } else { 0 };
        let submission = Submission { at_ns, in_calls_ns, gathered };
        Some(Submitted { group, submission, software, predicted, grant, follow, stamped, disturbance })
    }

    /// `eglSwapBuffers` is about to show the surface.
    pub(super) fn about_to_swap(&mut self) {
        if let (Some(folder), Some(surface)) = (&settings().frames, &self.shadow.surface) {
            let at = (self.id.number, self.builder.frame());
            frames::dump(folder, surface.size(), self.shadow.newer(), at);
        }
    }

    /// What the current group is predicted to cost at most.
    pub(super) fn pending(&self) -> Span {
        if self.stream.gathering.coasts() { Span::ZERO } else { self.forecast.pending() }
    }

    /// The swap was that of a window without a screen, which would have made the program wait.
    pub fn bound_backlog(&mut self) {
        backlog::swapped(&mut self.backlog, self.shadow.newer());
    }

    /// Hands the current group over if it contains as much as it was granted, so that the next
    /// command begins another one.
    pub fn make_room(&mut self) {
        if !session().is_wanted() {
            return;
        }
        self.commands();
        self.stream.check(session());
        let apart = std::mem::take(&mut self.measure_apart);
        if self.stream.must_yield() {
            self.make_way();
        } else if (apart || self.is_too_long_by_now()) && self.submit(End::Limit) {
            flush();
        }
    }

    /// Whether the current group contains as much as it was granted, or as many commands as models are trusted with.
    fn is_too_long_by_now(&self) -> bool {
        let others =
            !self.stream.gathering.is_alone() && !self.stream.gathering.coasts() && !session().reserves();
        let untrusted = others && self.stream.has_grant() && !self.trust.allows(self.builder.commands());
        untrusted && measure::is_possible(self.id.display) || self.stream.is_full(|| self.pending())
    }

    /// Hands the current group over, and looks at everything that follows.
    pub(super) fn make_way(&mut self) {
        let handed_over = self.submit(End::Limit);
        self.stream.gathering.stop_coasting();
        if handed_over {
            flush();
        }
    }

    /// Asks for a grant for the current group, which has its first command, unless it has one.
    pub fn ask(&mut self) {
        let begins = !self.stream.has_grant() && !self.builder.is_empty();
        if session().is_wanted() && begins && !measure::is_early() {
            let need = self.pending();
            self.stream.command = self.builder.current_call();
            self.stream.ask(measure::watched(), need);
        }
    }

    /// Work for the GPU that is neither a draw nor a clear.
    pub fn work(&mut self, work: Work) {
        if !matches!(work, Work::Clear { .. } | Work::Resolve(_)) {
            self.builder.copy(work.bytes());
        }
        if !self.stream.gathering.coasts() {
            self.forecast.work(work);
        }
    }

    /// `glClear`. It gives the GPU something to do for each byte, roughly.
    pub fn about_to_clear(&mut self, mask: u32) -> Option<Box<CutFilling>> {
        let (pixels, target) =
            (self.shadow.raster.cleared_pixels(self.shadow.target().size), self.shadow.target());
        let area = Area::new(0, 0, target.size[0], target.size[1]);
        let bytes = pixels.saturating_mul(FILLED_PIXEL_BYTES);
        let filling = Filling { fill: Fill::Clear, bytes, kind: (mask, target.samples), area };
        self.about_to_fill(filling, |state| state.clear(mask))
    }

    fn clear(&mut self, mask: u32) {
        let buffers = Buffers {
            color: mask & gl::COLOR_BUFFER_BIT != 0,
            depth: mask & gl::DEPTH_BUFFER_BIT != 0,
            stencil: mask & gl::STENCIL_BUFFER_BIT != 0,
        };
        if buffers != Buffers::default() {
            self.builder.clear(self.shadow.raster.cleared_pixels(self.shadow.target().size));
            self.work(Work::Clear { buffers, target: self.shadow.predicted_target() });
        }
    }
}
