//! Which context is current where, and which contexts and surfaces there are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{Context, State};
use crate::entry::real;
use crate::shadow::share::ShareGroup;
use crate::shadow::surface::{Surface, SurfaceKind};
use crate::{clock, guard, measure};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
    /// Time in calls that the current context was not told yet: the next look tells it, so that a call
    /// locks the context once.
    static SPENT_NS: Cell<u64> = const { Cell::new(0) };
    /// The same for what a renderer on the CPU did in dispatches.
    static DISPATCHED_NS: Cell<u64> = const { Cell::new(0) };
}

/// Contexts and surfaces by display and handle.
#[derive(Default, Debug)]
struct World {
    contexts: BTreeMap<(usize, usize), Arc<Context>>,
    surfaces: BTreeMap<(usize, usize), Arc<Surface>>,
}

static WORLD: Mutex<World> = Mutex::new(World { contexts: BTreeMap::new(), surfaces: BTreeMap::new() });

fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the state of the current context, if there is one that is watched, and if commands take effect
/// where they stand. A panic in there ends here.
#[inline]
pub fn with<T>(look: impl FnOnce(&mut State) -> T) -> Option<T> {
    with_any(|state| if state.shadow.legacy.is_silent() { None } else { Some(look(state)) }).flatten()
}

/// The same wherever commands stand: between `glBegin` and `glEnd` and in display lists, where no call may
/// be added.
#[inline]
pub(crate) fn with_any<T>(look: impl FnOnce(&mut State) -> T) -> Option<T> {
    guard::shielded(|| {
        let looked = CURRENT.try_with(|current| {
            // Only this thread can make another context current, and it is here.
            let context = current.try_borrow().ok()?;
            let mut state = context.as_ref()?.lock();
            state.builder.spent(SPENT_NS.try_with(Cell::take).unwrap_or(0));
            state.builder.dispatched(DISPATCHED_NS.try_with(Cell::take).unwrap_or(0));
            Some(look(&mut state))
        });
        looked.ok().flatten()
    })
    .flatten()
}

/// Makes a call that gives the GPU work; the time that it takes belongs to the current group.
#[inline]
pub fn timed(call: impl FnOnce()) {
    let began_ns = clock::now_ns();
    call();
    let spent_ns = clock::now_ns().saturating_sub(began_ns);
    // A thread that ends has no group any more.
    let _ended = SPENT_NS.try_with(|spent| spent.set(spent.get().saturating_add(spent_ns)));
}

/// Makes a dispatch that a renderer on the CPU does before the call is over, in threads that have no name of
/// its own: what all threads of the process ran meanwhile is its time, as far as that is no longer than the
/// call took.
pub fn dispatched(call: impl FnOnce()) {
    let (began_ns, ran_ns) = (clock::now_ns(), measure::process_ns());
    call();
    let took_ns = clock::now_ns().saturating_sub(began_ns);
    let worked_ns = measure::process_ns().saturating_sub(ran_ns).min(took_ns);
    // A thread that ends has no group any more.
    let _ended = DISPATCHED_NS.try_with(|spent| spent.set(spent.get().saturating_add(worked_ns)));
}

/// Makes the driver start with what it was given. A context must be current in this thread.
pub(crate) fn flush() {
    // SAFETY: a context is current; flushing never fails and is allowed at any time.
    unsafe { real::glFlush() };
}

/// Whether a watched context is current in this thread.
pub fn is_there() -> bool {
    CURRENT.try_with(|current| current.try_borrow().is_ok_and(|context| context.is_some())).unwrap_or(false)
}

/// `eglCreateContext`; `share` is 0 if nothing is shared.
pub fn created(display: usize, handle: usize, share: usize) {
    let mut world = world();
    let group = world.contexts.get(&(display, share)).map(|context| context.group.clone());
    let group = group.unwrap_or_else(|| Arc::new(ShareGroup::default()));
    world.contexts.insert((display, handle), Arc::new(Context::new(display, handle, group)));
}

/// `eglDestroyContext`: where it is current it lives on, as in EGL.
pub fn destroyed(display: usize, handle: usize) {
    world().contexts.remove(&(display, handle));
}

/// `eglCreateWindowSurface` and others.
pub fn surface_created(display: usize, handle: usize, samples: u32, kind: SurfaceKind) {
    let surface = Surface::new(display, handle, kind);
    surface.set_samples(samples);
    world().surfaces.insert((display, handle), Arc::new(surface));
}

/// Another surface stands for the same window.
pub fn surface_replaced(display: usize, before: usize, after: usize) {
    let mut world = world();
    if let Some(surface) = world.surfaces.remove(&(display, before)) {
        world.surfaces.insert((display, after), Arc::new(surface.with_handle(after)));
    }
}

/// `eglDestroySurface`.
pub fn surface_destroyed(display: usize, handle: usize) {
    world().surfaces.remove(&(display, handle));
}

/// A drawable of GLX that is no window, of that size if it is known.
pub(crate) fn unseen_drawable(display: usize, handle: usize, size: Option<[u32; 2]>) {
    let surface = Surface::new(display, handle, SurfaceKind::Buffer);
    size.into_iter().for_each(|size| surface.set_size(size));
    world().surfaces.insert((display, handle), Arc::new(surface));
}

/// `glXMakeCurrent` succeeded; handle 0 is no context. A window is a drawable as it is.
pub(crate) fn bound_to_drawable(display: usize, drawable: usize, handle: usize) {
    if drawable != 0 {
        let mut world = world();
        if world.surfaces.len() >= DRAWABLES_MAX {
            // Windows go without a word; those that are current somewhere have other owners.
            world.surfaces.retain(|_, surface| Arc::strong_count(surface) > 1 || !surface.shows());
        }
        let fresh = || Arc::new(Surface::new(display, drawable, SurfaceKind::Window));
        world.surfaces.entry((display, drawable)).or_insert_with(fresh);
    }
    bound(display, drawable, handle);
}

/// Drawables that are kept; beyond this, windows are forgotten that are current nowhere.
const DRAWABLES_MAX: usize = 64;

/// Swaps of a drawable are to wait for so many refreshes.
pub(crate) fn drawable_interval(display: usize, drawable: usize, interval: i32) {
    let surface = world().surfaces.get(&(display, drawable)).cloned();
    surface.into_iter().for_each(|surface| surface.set_interval(interval));
}

/// State of a context was changed in a way that is not followed.
pub(crate) fn lose_track(display: usize, handle: usize) {
    let context = world().contexts.get(&(display, handle)).cloned();
    if let Some(context) = context {
        context.lock().shadow.legacy.lose_track();
    }
}

/// `eglTerminate`: nothing of the display is left, except where it is current.
pub fn terminated(display: usize) {
    let mut world = world();
    world.contexts.retain(|(of, _), _| *of != display);
    world.surfaces.retain(|(of, _), _| *of != display);
}

/// `eglMakeCurrent` succeeded; handle 0 is no context.
pub fn bound(display: usize, surface: usize, handle: usize) {
    let (context, surface) = {
        let world = world();
        let surface = world.surfaces.get(&(display, surface)).cloned();
        (world.contexts.get(&(display, handle)).cloned(), surface)
    };
    // Time in calls of a context that is not watched belongs to no group.
    let _ended = SPENT_NS.try_with(|spent| spent.set(0));
    let _ended = DISPATCHED_NS.try_with(|spent| spent.set(0));
    // A thread that ends has no current context any more.
    let _ended = CURRENT.try_with(|current| {
        if let Ok(mut current) = current.try_borrow_mut() {
            current.clone_from(&context);
        }
    });
    if let Some(context) = context {
        context.lock().bound(surface);
    }
}

/// How many contexts are known.
pub fn contexts() -> usize {
    world().contexts.len()
}
