//! A context and everything that its draws depend on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use takt_core::Span;
use takt_predict::adapt::Disturbance;
use takt_predict::cost::{self, Buffers, ProgramId};
use takt_predict::predictor::{Submission, Work};

use super::block::Points;
use super::buffer::Buffer;
use super::copying::Unasked;
use super::driver::Driver;
use super::framebuffer::{Framebuffers, Target};
use super::gather::FrameCost;
use super::inputs::Copies;
use super::leave::Leave;
use super::pieces::Observers;
use super::program::Program;
use super::raster::Raster;
use super::share::ShareGroup;
use super::surface::Surface;
use super::swap::SwapEnd;
use super::texture::Image;
use super::vertex::Vertices;
use crate::backlog::Backlog;
use crate::group::{Builder, End};
use crate::measure::{self, Stamped, Stamper, Submitted, Waiter, Witnessed};
use crate::predict::{self, Models, Predicted};
use crate::settings::settings;
use crate::slice::Follow;
use crate::{clock, frames, gate, gl, heap, vendor};

/// A context.
#[derive(Debug)]
pub struct Context {
    /// Its display.
    pub display: usize,
    /// Objects that it shares.
    pub group: Arc<ShareGroup>,
    state: Mutex<State>,
}

impl Context {
    /// A fresh context.
    pub fn new(display: usize, handle: usize, group: Arc<ShareGroup>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = vendor::context_number(NEXT.fetch_add(1, Ordering::Relaxed));
        let state = State::new(number, (display, handle), group.clone());
        Self { display, group, state: Mutex::new(state) }
    }

    /// Its state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a context.
#[derive(Debug)]
pub struct State {
    number: u64,
    display: usize,
    handle: usize,
    /// Objects that it shares.
    pub shared: Arc<ShareGroup>,
    /// Viewport, scissor and the like.
    pub raster: Raster,
    /// Vertex arrays.
    pub vertices: Vertices,
    /// Framebuffer objects.
    pub framebuffers: Framebuffers,
    /// The program in use, with its name.
    pub program: Option<(u32, Arc<Mutex<Program>>)>,
    /// Buffers by target, except for elements, which belong to vertex arrays.
    pub(super) buffers: BTreeMap<u32, Arc<Buffer>>,
    /// Buffers that uniform blocks read from.
    pub(super) uniform_buffers: Points,
    /// Textures by unit and target.
    pub(super) textures: BTreeMap<(u32, u32), Arc<Image>>,
    pub(super) active_unit: u32,
    /// `GL_RENDERBUFFER`.
    pub renderbuffer: Option<Arc<Image>>,
    pub(super) surface: Option<Arc<Surface>>,
    /// What the GPU is to do.
    pub builder: Builder,
    /// Leave for the current group, and how frames went so far.
    pub(super) leave: Leave,
    /// Copies that need none.
    pub(super) unasked: Unasked,
    /// What forbids to cut draws.
    pub observers: Observers,
    /// What the current group tells about draws.
    pub(super) follow: Follow,
    pub(super) driver: Option<Driver>,
    /// Time stamps around groups, where they are of use.
    stamper: Option<Stamper>,
    /// Where fences are waited for, if not anywhere.
    waiter: Option<Arc<Waiter>>,
    /// Whether a frame has more than one group.
    parted: bool,
    /// The last group of the frame that is being shown, where this thread sees its end.
    pub(super) showing: Option<Witnessed>,
    /// What is known of the end of the swap that is handed over.
    pub(super) swap_end: Option<SwapEnd>,
    /// How long this thread had run when the group began, if that is of use.
    ran_ns: Option<u64>,
    /// GL tells once that its clock jumped; we asked, and the program was not told yet.
    disjoint: bool,
    /// Who predicts, if anybody does.
    pub(super) models: Option<Arc<Mutex<Models>>>,
    /// Programs that they have seen.
    pub(super) seen: Vec<ProgramId>,
    /// For vertices in client memory.
    pub(super) copies: Copies,
    /// Frames of windows that are not there.
    backlog: Backlog,
}

/// What models said about a group, and who wants to learn.
type Ticket = (Weak<Mutex<Models>>, Predicted);

impl State {
    fn new(number: u64, (display, handle): (usize, usize), shared: Arc<ShareGroup>) -> Self {
        Self {
            number,
            display,
            handle,
            shared,
            raster: Raster::default(),
            vertices: Vertices::default(),
            framebuffers: Framebuffers::default(),
            program: None,
            buffers: BTreeMap::new(),
            uniform_buffers: Points::default(),
            textures: BTreeMap::new(),
            active_unit: 0,
            renderbuffer: None,
            surface: None,
            builder: Builder::default(),
            leave: Leave::default(),
            unasked: Unasked::default(),
            observers: Observers::default(),
            follow: Follow::default(),
            driver: None,
            stamper: None,
            waiter: None,
            parted: false,
            showing: None,
            swap_end: None,
            ran_ns: None,
            disjoint: false,
            models: None,
            seen: Vec::new(),
            copies: Copies::new(),
            backlog: Backlog::default(),
        }
    }

    /// The context became current in this thread.
    pub fn bound(&mut self, surface: Option<Arc<Surface>>) {
        if let Some(surface) = &surface {
            surface.measure();
            self.raster.first_surface(surface.size());
        }
        self.surface = surface;
        if self.driver.is_none() {
            if gate::is_wanted() {
                gate::greet();
                measure::prepare();
            }
            let driver = Driver::ask(self.display);
            let models = predict::models(&driver.renderer, &driver.version);
            self.models = models.map(|models| Arc::new(Mutex::new(models)));
            if measure::is_wanted() {
                let judge = predict::judge(&driver.renderer, &driver.version);
                self.stamper = Stamper::new(judge, &driver.extensions);
                self.waiter = measure::waiter(self.display, self.handle, driver.newer);
            }
            if driver.software {
                heap::make_room();
            }
            self.driver = Some(driver);
        }
    }

    /// Whether rendering happens on the CPU.
    pub(super) fn software(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.software)
    }

    /// Macros for extensions that shaders can ask about.
    pub fn extensions(&self) -> &[String] {
        self.driver.as_ref().map_or(&[], |driver| &driver.extensions)
    }

    /// Hands what is pending to the GPU, as far as measuring is concerned: a fence goes behind it.
    /// True if there was something.
    pub fn submit(&mut self, end: End) -> bool {
        let at_ns = clock::now_ns();
        !self.goes_on(end, at_ns) && self.submit_since(end, at_ns)
    }

    /// The same where the program's next call waits for everything that this context was asked to do;
    /// and what to do after that call.
    pub(crate) fn submit_to_wait(&mut self, end: End) -> (bool, Option<Witnessed>) {
        let at_ns = clock::now_ns();
        let ended = if self.goes_on(end, at_ns) { None } else { self.end_group(end) };
        let submitted = ended.and_then(|(predicted, follow)| self.submitted(end, at_ns, predicted, follow));
        let (display, waiter) = (self.display, self.waiter.as_ref());
        (submitted.is_some(), submitted.and_then(|group| Witnessed::before_wait(display, waiter, group)))
    }

    /// Whether the current group goes on in spite of a submission point.
    fn goes_on(&mut self, end: End, at_ns: u64) -> bool {
        // Frames that have ended are with the driver already, so there is nothing to be handed over
        // for somebody who waits for them.
        let waits = matches!(end, End::Flush | End::Finish | End::Read | End::Target);
        waits && self.builder.is_between_frames() && self.leave.gathering.has_time(at_ns)
            || end == End::Flush && self.leave.gathering.coasts()
            || end == End::Target && self.goes_on_elsewhere(at_ns)
    }

    /// A swap begins, which software renderers do in the program's own thread.
    pub fn swap_begins(&mut self) {
        self.stamper.iter_mut().for_each(Stamper::begin);
    }

    /// The driver is about to be given work: the GPU notes when it gets there, if that is of use.
    #[inline]
    pub fn begins(&mut self) {
        // Nobody learns from groups of frames that are not looked at, and on llvmpipe a stamp behind
        // a frame is a scene of its own.
        if let Some(stamper) = self.stamper.as_mut().filter(|_| !self.leave.gathering.coasts()) {
            stamper.begin();
        }
        if self.ran_ns.is_none() && self.software() {
            self.ran_ns = Some(measure::own_ns());
        }
    }

    /// Whether the GPU's clock has jumped since the program last asked, as far as we have asked in
    /// between.
    pub fn take_disjoint(&mut self) -> bool {
        std::mem::take(&mut self.disjoint)
    }

    /// Ends the time stamps of a group, and reads those of groups before.
    fn stamp_end(&mut self) -> Option<Stamped> {
        let stamper = self.stamper.as_mut()?;
        let stamped = stamper.end();
        let collected = stamper.collect();
        self.disjoint |= collected.disjoint;
        if !collected.go_on {
            self.stamper = None;
        }
        stamped
    }

    pub(super) fn submit_since(&mut self, end: End, at_ns: u64) -> bool {
        let ended = self.end_group(end);
        ended.is_some_and(|(predicted, follow)| self.hand_over(end, at_ns, predicted, follow))
    }

    /// The group ends: what models said about it, and what it tells about draws. None if there is none.
    fn end_group(&mut self, end: End) -> Option<(Option<Ticket>, Follow)> {
        if self.builder.is_empty() && end != End::Swap {
            self.builder.end(self.number, end);
            self.stamper.iter_mut().for_each(Stamper::forget);
            return None;
        }
        let draws = self.leave.has_pass() && end != End::Swap;
        let contained = if draws { self.pending() } else { Span::ZERO };
        self.leave.contains(contained);
        if gate::is_wanted() && !self.leave.has_pass() {
            self.unasked.went(self.pending());
        }
        Some((self.predict_group(end), std::mem::take(&mut self.follow)))
    }

    /// What the models say about the group, which ends.
    pub(super) fn predict_group(&mut self, end: End) -> Option<Ticket> {
        let submission = match end {
            End::Finish => Submission::Finish,
            End::Swap => Submission::Swap(self.predicted_target()),
            _ => Submission::Flush,
        };
        let switch = self.switch();
        self.asked_models().map(|models| {
            let predicted = models.lock().unwrap_or_else(PoisonError::into_inner).submit(submission, switch);
            (Arc::downgrade(models), predicted)
        })
    }

    /// Whether the GPU has to change contexts for the group.
    fn switch(&self) -> Disturbance {
        let due = !self.software() && measure::is_switch_due(self.number);
        if due { Disturbance::ContextSwitch } else { Disturbance::None }
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
        let swap_end = self.swap_end.take();
        if let Some(SwapEnd::Seen(at_ns)) = swap_end {
            measure::shown(submitted, at_ns);
        } else if swap_end.is_some() {
            // That it took no time says nothing about swaps that show something.
            measure::submit_idle(Submitted { predicted: None, ..submitted });
        } else if end == End::BeforeSwap && self.software() && measure::is_seen_when_shown() {
            self.showing = Witnessed::before_show(self.display, submitted);
        } else {
            self.part(end);
            measure::submit(self.display, self.waiter.as_ref(), submitted);
        }
        true
    }

    /// The group as it is handed over; none if there is none.
    fn submitted(
        &mut self,
        end: End,
        at_ns: u64,
        predicted: Option<Ticket>,
        follow: Follow,
    ) -> Option<Submitted> {
        let mut group = self.builder.end(self.number, end)?;
        if let Some(began_ns) = self.ran_ns.take() {
            // A call takes no longer than its thread runs, whatever the clock on the wall says.
            group.work.call_ns = group.work.call_ns.min(measure::own_ns().saturating_sub(began_ns));
        }
        let credit = self.leave.pass().map(|pass| pass.credit);
        let gathered = self.leave.gathering.gathered(credit, end == End::Swap);
        // What several frames took together says nothing about one of them.
        let predicted = predicted.filter(|_| gathered.is_none());
        let pass = self.leave.end_group();
        let stamped = self.stamp_end();
        let software = self.software();
        let disturbance = measure::beside_others(self.switch(), software);
        measure::submits(self.number);
        Some(Submitted { group, at_ns, software, predicted, pass, gathered, follow, stamped, disturbance })
    }

    /// A group ends inside of a frame. The driver goes on with the next one meanwhile, so its end must
    /// be waited for, and the program must not be kept from going on.
    fn part(&mut self, end: End) {
        if end == End::Target && !std::mem::replace(&mut self.parted, true) && self.waiter.is_none() {
            let newer = self.driver.as_ref().is_some_and(|driver| driver.newer);
            self.waiter = measure::waiter_beside(self.display, self.handle, newer);
        }
    }

    /// Its display.
    pub(super) fn display(&self) -> usize {
        self.display
    }

    /// All textures that are bound.
    pub(super) fn bound_textures(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.textures.values()
    }

    /// `eglSwapBuffers` is about to show the surface.
    pub(super) fn about_to_swap(&mut self) {
        if let (Some(folder), Some(surface)) = (&settings().frames, &self.surface) {
            let newer = self.driver.as_ref().is_some_and(|driver| driver.newer);
            frames::dump(folder, surface.size(), newer, (self.number, self.builder.frame()));
        }
    }

    /// Who predicts, if anybody is asked.
    fn asked_models(&self) -> Option<&Arc<Mutex<Models>>> {
        self.models.as_ref().filter(|_| !self.leave.gathering.coasts())
    }

    /// What the current group is predicted to cost at most.
    pub(super) fn pending(&self) -> Span {
        let models = self.asked_models();
        models.map_or(Span::ZERO, |models| models.lock().unwrap_or_else(PoisonError::into_inner).pending())
    }

    /// What the current group is likely to cost with a swap, and at most.
    pub(super) fn predicted_swap(&self) -> FrameCost {
        let target = self.predicted_target();
        let models = self.models.as_ref();
        let cost = models.map(|models| models.lock().unwrap_or_else(PoisonError::into_inner).swap(target));
        let (likely, most) = cost.unwrap_or_default();
        FrameCost { likely, most }
    }

    /// Looks whether the surface has another size, if that can be.
    pub(super) fn look_at_surface(&self) {
        let viewport = self.raster.viewport_size();
        if let Some(surface) = self.surface.as_ref().filter(|surface| surface.wants_look(viewport)) {
            surface.measure();
        }
    }

    /// The swap was that of a window without a screen, which would have made the program wait.
    pub fn bound_backlog(&mut self) {
        self.backlog.swapped(self.driver.as_ref().is_some_and(|driver| driver.newer));
    }

    /// What is drawn to.
    pub fn target(&self) -> Target {
        if let Some(target) = self.framebuffers.target() {
            return target;
        }
        let surface = self.surface.as_ref();
        let size = surface.map_or([0, 0], |surface| surface.size());
        let samples = surface.map_or(0, |surface| surface.samples());
        let bytes = u64::from(size[0]) * u64::from(size[1]) * SURFACE_PIXEL_BYTES;
        Target { id: 0, size, samples, bytes }
    }

    /// The same as the predictor sees it.
    fn predicted_target(&self) -> cost::Target {
        let target = self.target();
        let pixels = u64::from(target.size[0]) * u64::from(target.size[1]);
        match target.id {
            0 => cost::Target::Default { pixels, fast_clear: false },
            _ => cost::Target::OffScreen { pixels, bytes: target.bytes },
        }
    }

    /// Work for the GPU that is neither a draw nor a clear.
    pub fn work(&mut self, work: Work) {
        match work {
            Work::Load { bytes }
            | Work::Upload { bytes }
            | Work::Mipmap { bytes }
            | Work::Copy { bytes }
            | Work::Buffer { bytes } => self.builder.copy(bytes),
            Work::Clear { .. } | Work::Resolve(_) => {}
        }
        if let Some(models) = self.asked_models() {
            models.lock().unwrap_or_else(PoisonError::into_inner).work(work);
        }
    }

    /// `glClear`.
    pub fn clear(&mut self, mask: u32) {
        let buffers = Buffers {
            color: mask & gl::COLOR_BUFFER_BIT != 0,
            depth: mask & gl::DEPTH_BUFFER_BIT != 0,
            stencil: mask & gl::STENCIL_BUFFER_BIT != 0,
        };
        if buffers != Buffers::default() {
            self.builder.clear(self.raster.cleared_pixels(self.target().size));
            self.work(Work::Clear { buffers, target: self.predicted_target() });
        }
    }
}

/// Colour and depth of a surface, roughly.
const SURFACE_PIXEL_BYTES: u64 = 8;
