//! Which context is current where, and which contexts and surfaces there are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{Context, State};
use crate::entry::real;
use crate::shadow::share::ShareGroup;
use crate::shadow::surface::Surface;
use crate::{clock, guard};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
    /// Time in calls that the current context was not told yet: the next look tells it, so that a call
    /// locks the context once.
    static SPENT_NS: Cell<u64> = const { Cell::new(0) };
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

/// Looks at the state of the current context, if there is one that is watched. A panic in there ends
/// here.
#[inline]
pub fn with<T>(look: impl FnOnce(&mut State) -> T) -> Option<T> {
    guard::shielded(|| {
        let looked = CURRENT.try_with(|current| {
            // Only this thread can make another context current, and it is here.
            let context = current.try_borrow().ok()?;
            let mut state = context.as_ref()?.lock();
            state.builder.spent(SPENT_NS.try_with(Cell::take).unwrap_or(0));
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
pub fn surface_created(display: usize, handle: usize, samples: u32, shows: bool) {
    let surface = Surface::new(display, handle, shows);
    surface.set_samples(samples);
    world().surfaces.insert((display, handle), Arc::new(surface));
}

/// `eglDestroySurface`.
pub fn surface_destroyed(display: usize, handle: usize) {
    world().surfaces.remove(&(display, handle));
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
