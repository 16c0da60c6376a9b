//! Commits of clients: their pixels are copied, and their surfaces arranged.
//!
//! Pixels are copied once at most for each picture that an output takes, and once more ahead; of what a
//! client commits beyond that, the newest is copied when an output took the one before. The client has its
//! buffer back as soon as it is copied, or as soon as a newer one takes its place.

use std::sync::{Arc, Mutex, PoisonError};

use smithay::desktop::{PopupKind, PopupManager, find_popup_root_surface};
use smithay::reexports::wayland_server::Resource;
use smithay::reexports::wayland_server::protocol::wl_buffer::WlBuffer;
use smithay::reexports::wayland_server::protocol::wl_callback::WlCallback;
use smithay::reexports::wayland_server::protocol::wl_output;
use smithay::reexports::wayland_server::protocol::wl_shm;
use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::utils::Transform;
use smithay::wayland::compositor::{
    BufferAssignment, Damage, SurfaceAttributes, SurfaceData, TraversalAction, get_parent,
    is_sync_subsurface, with_states, with_surface_tree_downward,
};
use smithay::wayland::presentation::{PresentationFeedbackCachedState, PresentationFeedbackCallback};
use takt_cockpit::geometry::{Rect, Size};
use takt_cockpit::windows::WindowId;

use super::notes::FromClient;
use super::shm::ShmBuffer;
use super::state::{State, next_number};
use super::windows::{Role, WAITING_MAX};
use crate::picture::{Picture, Pixels};

/// Pictures that are copied before an output takes one.
const COPIES_MAX: u32 = 2;

/// What a surface shows.
#[derive(Debug)]
pub(super) struct Content {
    number: u64,
    version: u64,
    pub(super) pixels: Option<Arc<Pixels>>,
    /// Committed, and not copied yet.
    pending: Option<WlBuffer>,
    /// What changed since the last copy, in pixels.
    damage: Rect,
    pub(super) scale: i32,
    pub(super) transform: Transform,
    /// Memory of pixels that no output uses any more.
    spare: Option<Arc<Pixels>>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            number: next_number(),
            version: 0,
            pixels: None,
            pending: None,
            damage: Rect::default(),
            scale: 1,
            transform: Transform::Normal,
            spare: None,
        }
    }
}

/// The content of a surface; each has one from its first commit on.
pub(super) fn content(states: &SurfaceData) -> &Mutex<Content> {
    states.data_map.get_or_insert_threadsafe(|| Mutex::new(Content::default()))
}

impl State {
    /// A client committed a surface.
    pub(super) fn committed(&mut self, surface: &WlSurface) {
        self.protocols.popups.commit(surface);
        // A commit to it counts with the next commit of its parent.
        if is_sync_subsurface(surface) {
            return;
        }
        take_buffers(surface);
        let root = root_of(surface);
        if let Some(popup) = self.protocols.popups.find_popup(&root) {
            self.popup_committed(&popup, *surface == root);
            return;
        }
        let Some(window) = self.window_of(&root) else {
            self.take_loose(surface);
            return;
        };
        let id = window.id();
        let Role::Xdg(toplevel) = &window.role else {
            // It said what it is when it was made.
            self.publish(id);
            return;
        };
        let shows = *surface == root && has_pixels(&root);
        if shows && !toplevel.ensure_configured() {
            return;
        }
        if *surface == root && !toplevel.is_initial_configure_sent() {
            self.first_commit(id);
            return;
        }
        self.publish(id);
    }

    fn popup_committed(&mut self, popup: &PopupKind, is_root: bool) {
        if let PopupKind::Xdg(popup) = popup
            && is_root
        {
            let shows = has_pixels(popup.wl_surface());
            if shows && !popup.ensure_configured() {
                return;
            }
            if !shows && !popup.is_initial_configure_sent() {
                // It was not configured before, so that cannot fail.
                let _first = popup.send_configure();
            }
        }
        if let Ok(root) = find_popup_root_surface(popup) {
            self.publish_root(&root);
        }
    }

    /// A window has said what it claims to be, and wants to hear its size.
    fn first_commit(&mut self, id: WindowId) {
        self.tell_claims(id);
        if let Some(window) = self.windows.get(&id) {
            window.configure();
        }
        self.unmap(id);
    }

    /// Publishes the window of a root surface, whatever it is the root of.
    pub(super) fn publish_root(&mut self, root: &WlSurface) {
        if let Some(id) = self.window_of(root).map(|window| window.id()) {
            self.publish(id);
        }
    }

    /// Copies what was left, now that an output may take more.
    pub(super) fn catch_up(&mut self, id: WindowId) {
        let has_more = self.windows.get(&id).is_some_and(|window| {
            let mut pending = false;
            for_each_surface(window.root(), |_, states| {
                pending |= content(states).lock().unwrap_or_else(PoisonError::into_inner).pending.is_some();
            });
            pending
        });
        if has_more {
            self.publish(id);
        }
    }

    /// Copies the pixels of a window's surfaces, as far as it may, and publishes its picture.
    pub(super) fn publish(&mut self, id: WindowId) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let root = window.root().clone();
        window.number += 1;
        let (number, may_copy) = (window.number, window.copies < COPIES_MAX);
        let (callbacks, feedback) = waiting(&root);
        window.callbacks.push_back((number, callbacks));
        window.feedback.push_back((number, feedback));
        if window.waiting() > WAITING_MAX {
            self.offend("callbacks-max", &format!("more than {WAITING_MAX} callbacks wait"));
            return;
        }
        let mut copied = 0;
        if may_copy {
            for_each_surface(&root, |surface, states| copied += self.copy(surface, states));
        }
        self.count_memory();
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        window.copies += u32::from(copied > 0);
        match super::picture::of(&root, number) {
            Some((picture, input)) => {
                let size = picture.size;
                window.shared.publish(picture);
                let told = (size, input);
                if window.told.picture.as_ref() != Some(&told) {
                    self.notes.put(FromClient::Mapped(id, told.0, told.1.clone()));
                    window.told.picture = Some(told);
                }
            }
            None => self.unmap(id),
        }
    }

    fn unmap(&mut self, id: WindowId) {
        if let Some(window) = self.windows.get_mut(&id)
            && window.told.picture.take().is_some()
        {
            window.shared.publish(Picture::default());
            self.notes.put(FromClient::Unmapped(id));
            // It begins anew: with a commit, and with an answer to that.
            if let Role::Xdg(toplevel) = &window.role {
                toplevel.reset_initial_configure_sent();
            }
        }
    }

    /// Copies the pixels of a surface if there are new ones; says how many pictures that were.
    fn copy(&mut self, _surface: &WlSurface, states: &SurfaceData) -> u32 {
        let mut content = content(states).lock().unwrap_or_else(PoisonError::into_inner);
        let Some(buffer) = content.pending.take() else {
            return 0;
        };
        let Some(shm) = buffer.data::<ShmBuffer>() else {
            return 0;
        };
        if self.memory.saturating_add(shm.bytes()) > self.domain.memory_max {
            let most = self.domain.memory_max >> 20;
            self.offend("memory-max", &format!("more than {most} MiB of pictures"));
            return 0;
        }
        let mut bytes = content.reuse();
        if shm.read(&mut bytes).is_err() {
            buffer.post_error(wl_shm::Error::InvalidFd, "the file is shorter than the buffer");
            return 0;
        }
        content.replace(shm.size, shm.format, bytes);
        buffer.release();
        1
    }

    /// Counts the memory that pictures of this client take.
    fn count_memory(&mut self) {
        let mut bytes = 0u64;
        for window in self.windows.values() {
            for_each_surface(window.root(), |_, states| {
                bytes += content(states).lock().unwrap_or_else(PoisonError::into_inner).memory();
            });
        }
        self.memory = bytes;
    }

    /// Keeps callbacks of a surface that is in no window.
    fn take_loose(&mut self, surface: &WlSurface) {
        let (callbacks, feedback) = waiting(surface);
        self.loose.extend(callbacks);
        feedback.into_iter().for_each(PresentationFeedbackCallback::discarded);
        for_each_surface(surface, |_, states| {
            let mut content = content(states).lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(buffer) = content.pending.take() {
                buffer.release();
            }
        });
        if self.loose.len() > WAITING_MAX {
            self.offend("callbacks-max", &format!("more than {WAITING_MAX} callbacks wait"));
        }
    }

    /// A surface is gone; its window shows what is left.
    pub(super) fn forget_surface(&mut self, surface: &WlSurface) {
        let root = root_of(surface);
        if root != *surface {
            self.publish_root(&root);
        } else if let Some(id) = self.window_of(surface).map(|window| window.id()) {
            self.remove_window(id);
        }
    }
}

impl Content {
    /// Memory for the next copy.
    fn reuse(&mut self) -> Vec<u8> {
        let spare = self.spare.take().and_then(|spare| Arc::try_unwrap(spare).ok());
        spare.map(|pixels| pixels.bytes).unwrap_or_default()
    }

    fn replace(&mut self, size: Size, format: smithay::backend::allocator::Fourcc, bytes: Vec<u8>) {
        let damage = std::mem::take(&mut self.damage).intersection(Rect::of(size));
        let is_same = |old: &Arc<Pixels>| old.size == size && old.format == format && old.bytes == bytes;
        let same = self.pixels.as_ref().is_some_and(is_same);
        // Many programs draw what they have drawn before: that is no change, and nothing to upload.
        self.version += u64::from(!same);
        let pixels = Pixels { surface: self.number, version: self.version, size, format, bytes, damage };
        if same {
            self.spare = Some(Arc::new(pixels));
            return;
        }
        self.spare = self.pixels.replace(Arc::new(pixels));
    }

    fn memory(&self) -> u64 {
        let of = |pixels: &Option<Arc<Pixels>>| pixels.as_ref().map_or(0, |pixels| pixels.bytes.len() as u64);
        of(&self.pixels) + of(&self.spare)
    }

    /// Takes the buffer and the scale of a commit.
    fn take(&mut self, attributes: &mut SurfaceAttributes) {
        match attributes.buffer.take() {
            Some(BufferAssignment::NewBuffer(buffer)) => {
                self.scale = attributes.buffer_scale.max(1);
                self.transform = transform(attributes.buffer_transform);
                self.add_damage(attributes);
                if let Some(old) = self.pending.replace(buffer) {
                    old.release();
                }
            }
            Some(BufferAssignment::Removed) => {
                if let Some(old) = self.pending.take() {
                    old.release();
                }
                (self.pixels, self.spare) = (None, None);
            }
            None => {}
        }
    }

    /// What changed, as one rectangle of pixels. Damage in other coordinates counts as everything.
    fn add_damage(&mut self, attributes: &mut SurfaceAttributes) {
        let everything = Rect::new(0, 0, i32::MAX, i32::MAX);
        let plain = self.scale == 1 && self.transform == Transform::Normal;
        for damage in attributes.damage.drain(..) {
            let part = match damage {
                Damage::Buffer(rect) => Rect::new(rect.loc.x, rect.loc.y, rect.size.w, rect.size.h),
                Damage::Surface(rect) if plain => Rect::new(rect.loc.x, rect.loc.y, rect.size.w, rect.size.h),
                Damage::Surface(_) => everything,
            };
            self.damage = self.damage.union(part.intersection(everything));
        }
    }
}

/// Takes the commits to a surface and to those that go with it.
fn take_buffers(surface: &WlSurface) {
    for_each_surface(surface, |_, states| {
        let mut attributes = states.cached_state.get::<SurfaceAttributes>();
        content(states).lock().unwrap_or_else(PoisonError::into_inner).take(attributes.current());
    });
}

/// Those that wait for a window's next picture.
fn waiting(root: &WlSurface) -> (Vec<WlCallback>, Vec<PresentationFeedbackCallback>) {
    let (mut callbacks, mut feedback) = (Vec::new(), Vec::new());
    let mut collect = |_: &WlSurface, states: &SurfaceData| {
        callbacks.append(&mut states.cached_state.get::<SurfaceAttributes>().current().frame_callbacks);
        feedback
            .append(&mut states.cached_state.get::<PresentationFeedbackCachedState>().current().callbacks);
    };
    for_each_surface(root, &mut collect);
    for (popup, _) in PopupManager::popups_for_surface(root) {
        for_each_surface(popup.wl_surface(), &mut collect);
    }
    (callbacks, feedback)
}

/// Whether a surface has pixels, or will have when they are copied.
fn has_pixels(surface: &WlSurface) -> bool {
    with_states(surface, |states| {
        let content = content(states).lock().unwrap_or_else(PoisonError::into_inner);
        content.pixels.is_some() || content.pending.is_some()
    })
}

/// Visits a surface and all below it, be they shown or not.
pub(super) fn for_each_surface(root: &WlSurface, mut visit: impl FnMut(&WlSurface, &SurfaceData)) {
    with_surface_tree_downward(
        root,
        (),
        |_, _, ()| TraversalAction::DoChildren(()),
        |surface, states, ()| visit(surface, states),
        |_, _, ()| true,
    );
}

/// The surface that a tree of surfaces hangs on.
pub(super) fn root_of(surface: &WlSurface) -> WlSurface {
    std::iter::successors(Some(surface.clone()), get_parent).last().unwrap_or_else(|| surface.clone())
}

fn transform(given: wl_output::Transform) -> Transform {
    Transform::from(given)
}
