//! What happens at each refresh of an output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use takt_client::{Display, Vsync};
use takt_cockpit::geometry::Rect;
use takt_cockpit::windows::WindowId;
use takt_core::{Period, Span, Time};
use takt_os::clock;

use super::capture::{Capture, Wish};
use super::contract::Contract;
use super::painter::{Item, Painter};
use super::{Counters, Scene, Shared, Shown};
use crate::client::ToClient;
use crate::manager::{FromOutput, Teller};
use crate::picture::Picture;

/// An output that shows the same for longer composes it again, so that the daemon sees it alive.
const IDLE_MAX: Span = Span::from_ms(400);
/// How often the manager is told that a window looks different: often enough to know when it began and ended.
const CHANGES_EVERY: Span = Span::from_ms(50);
/// How long a frame may be on its way from the GPU to here, of those that the GPU has finished in time.
const LATE_COMMIT_MAX: Span = Span::from_us(1_500);

/// The refreshes of an output, and what it shows.
pub(super) struct Refreshes {
    display: Display,
    contract: Contract,
    painter: Painter,
    counters: Arc<Counters>,
    seen: Teller,
    etpf: Span,
    /// Which of the two buffers is shown.
    front: usize,
    /// The refresh at which that began.
    shown_since: (Period, Time),
    /// What is in the other one, if it is to be shown.
    next: Option<Composed>,
    /// The last picture of each window that was taken.
    taken: BTreeMap<WindowId, Arc<Picture>>,
    /// What windows looked like when the manager was last told that it is new, and when that was.
    looks: BTreeMap<WindowId, (u64, Time)>,
    /// What was last composed.
    composed: (u64, Vec<(WindowId, u64)>),
    composed_at: Time,
}

/// A composition that is finished, or was begun.
struct Composed {
    /// When the GPU had finished it.
    finished: Time,
    /// The refresh that it was for.
    due: Time,
    /// Windows in it, with the numbers of their pictures, and of their looks.
    windows: Vec<(Shown, u64, u64)>,
}

impl Refreshes {
    pub(super) fn new(
        display: Display,
        contract: Contract,
        painter: Painter,
        counters: Arc<Counters>,
        seen: Teller,
        etpf: Span,
    ) -> Self {
        let (composed, composed_at) = ((u64::MAX, Vec::new()), Time::ZERO);
        let shown_since = (Period(0), Time::ZERO);
        let (front, next, taken, looks) = (0, None, BTreeMap::new(), BTreeMap::new());
        Self {
            display,
            contract,
            painter,
            counters,
            seen,
            etpf,
            front,
            shown_since,
            next,
            taken,
            looks,
            composed,
            composed_at,
        }
    }

    /// Goes on until the output ends.
    pub(super) fn run(&mut self, shared: &Shared) {
        while !shared.has_ended() {
            let vsync = self.display.wait();
            self.count(&vsync);
            self.present(&vsync);
            let scene = shared.scene();
            self.await_commits(shared, &scene, &vsync);
            self.compose(&scene, &vsync);
            for wish in shared.take_wishes() {
                self.capture(wish);
            }
            self.counters.turned_ns.store(clock::now().as_ns(), Ordering::Relaxed);
        }
    }

    fn count(&self, vsync: &Vsync) {
        self.counters.refreshes.fetch_add(1 + vsync.skipped, Ordering::Relaxed);
        self.counters.skipped.fetch_add(vsync.skipped, Ordering::Relaxed);
        self.contract.tell(&self.counters);
    }

    /// Shows the composition that is ready, and tells its windows when that was: at the first refresh after
    /// its end, which the thread may have slept through.
    fn present(&mut self, vsync: &Vsync) {
        let Some(next) = self.next.take() else {
            return;
        };
        let grid = *self.display.grid();
        let period = grid.period_from(next.finished.max(next.due));
        let at = grid.start(period);
        if at > vsync.at {
            self.next = Some(next);
            return;
        }
        self.front = 1 - self.front;
        self.shown_since = (period, at);
        for (shown, number, look) in next.windows {
            let id = shown.window.id;
            shown.window.client.tell(ToClient::Presented {
                window: id,
                number,
                at,
                sequence: period.0,
                refresh: grid.period_span(),
            });
            self.seen.tell(FromOutput::Seen { window: id, number, look, at });
        }
    }

    /// Waits a moment for frames that the GPU has finished before the refresh, and whose clients have not
    /// handed them over yet.
    fn await_commits(&self, shared: &Shared, scene: &Scene, vsync: &Vsync) {
        let finished = |shown: &&Shown| {
            let process = shown.window.client.process();
            vsync.windows.iter().any(|app| app.process == process)
        };
        let is_new = |shown: &Shown| {
            let taken = self.taken.get(&shown.window.id).map_or(0, |picture| picture.number);
            shown.window.newest() > taken
        };
        let missing: Vec<&Shown> =
            scene.windows.iter().filter(finished).filter(|shown| !is_new(shown)).collect();
        // The composition must have its time.
        let latest = (vsync.at + LATE_COMMIT_MAX)
            .min(Time::from_ns(vsync.next.as_ns().saturating_sub(self.etpf.times(2).as_ns())));
        if !missing.is_empty() {
            shared.bell.wait(latest, || missing.iter().all(|shown| is_new(shown)));
        }
    }

    /// Takes the newest pictures of all windows and composes them, if anything changed.
    fn compose(&mut self, scene: &Scene, vsync: &Vsync) {
        let is_shown = |id: &WindowId| scene.windows.iter().any(|shown| shown.window.id == *id);
        self.taken.retain(|id, _| is_shown(id));
        self.looks.retain(|id, _| is_shown(id));
        for shown in &scene.windows {
            self.watch(shown, vsync.at);
            self.take(shown, vsync);
        }
        if self.next.is_some() {
            return;
        }
        let windows: Vec<(WindowId, u64)> =
            self.taken.iter().map(|(id, picture)| (*id, picture.number)).collect();
        let same = self.composed == (scene.generation, windows.clone());
        if same && vsync.at.since(self.composed_at) < IDLE_MAX {
            return;
        }
        let items: Vec<Item> = scene.windows.iter().filter_map(|shown| self.item(shown)).collect();
        let back = 1 - self.front;
        let grant = self.contract.begin();
        let began = clock::now();
        let painted = self.painter.paint(back, &items);
        let finished = clock::now();
        let cost = finished.since(began);
        self.contract.end(grant, cost);
        self.contract.end_frame();
        if let Err(error) = painted {
            self.seen.tell(FromOutput::Failed(error.to_string()));
            return;
        }
        self.count_composition(cost, finished > vsync.next);
        let taken = |shown: &Shown| {
            let picture = self.taken.get(&shown.window.id)?;
            Some((shown.clone(), picture.number, picture.look))
        };
        let shown = scene.windows.iter().filter_map(taken).collect();
        self.next = Some(Composed { finished, due: vsync.next, windows: shown });
        (self.composed, self.composed_at) = ((scene.generation, windows), vsync.at);
    }

    /// Tells the manager if a window looks different, be that taken or not: one that keeps its picture because
    /// it moved for too long may change again when its client is still.
    fn watch(&mut self, shown: &Shown, now: Time) {
        let (id, picture) = (shown.window.id, shown.window.picture());
        let known = self.looks.get(&id);
        let is_new = known.is_none_or(|(look, at)| *look != picture.look && now.since(*at) >= CHANGES_EVERY);
        if is_new && !picture.layers.is_empty() {
            self.looks.insert(id, (picture.look, now));
            self.seen.tell(FromOutput::Changed(id));
        }
    }

    /// Takes the newest picture of a window; its client may draw the next one now.
    fn take(&mut self, shown: &Shown, vsync: &Vsync) {
        let window = &shown.window;
        let before = self.taken.get(&window.id).map(|picture| picture.number);
        if shown.frozen && before.is_some() {
            return;
        }
        let picture = window.picture();
        if before == Some(picture.number) || picture.layers.is_empty() {
            return;
        }
        let number = picture.number;
        self.taken.insert(window.id, picture);
        window.client.tell(ToClient::Taken { window: window.id, number, at: vsync.at });
    }

    fn item(&self, shown: &Shown) -> Option<Item> {
        let picture = Arc::clone(self.taken.get(&shown.window.id)?);
        Some(Item { picture, at: shown.at, clip: shown.clip, opacity: shown.opacity })
    }

    fn count_composition(&self, cost: Span, late: bool) {
        self.counters.composed.fetch_add(1, Ordering::Relaxed);
        self.counters.late.fetch_add(u64::from(late), Ordering::Relaxed);
        self.counters.longest_ns.fetch_max(cost.as_ns(), Ordering::Relaxed);
        self.counters.busy_ns.fetch_add(cost.as_ns(), Ordering::Relaxed);
    }

    /// Reads what is shown now.
    fn capture(&mut self, wish: Wish) {
        let whole = Rect::of(self.painter.size());
        let part = wish.part.map_or(whole, |part| part.intersection(whole));
        if part.is_empty() {
            return;
        }
        let (refresh, at) = self.shown_since;
        if let Ok(bytes) = self.painter.read(self.front, part) {
            let capture = Capture { refresh, at, size: part.size, bytes };
            // One that does not wait for it any more gets none.
            wish.to.try_send(capture).unwrap_or_default();
        }
    }
}
