//! Which windows are shown where, from back to front.

use takt_core::Time;

use super::{Action, Kind, Motion, Note, Window, WindowId, Windows};
use crate::config::Rule;
use crate::geometry::{Point, Rect};

/// A window in a scene.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    /// Which one.
    pub id: WindowId,
    /// Where its picture goes.
    pub at: Rect,
    /// The part of the output that it may draw to.
    pub clip: Rect,
    /// How opaque it is: 255 is fully.
    pub opacity: u8,
    /// Whether it keeps the picture that it has.
    pub frozen: bool,
}

/// What an output shows, from back to front.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scene {
    /// The windows.
    pub windows: Vec<Placed>,
}

impl Scene {
    /// A window in it.
    pub fn find(&self, id: WindowId) -> Option<&Placed> {
        self.windows.iter().find(|placed| placed.id == id)
    }
}

impl Windows {
    /// What an output shows.
    pub fn scene(&self, output: usize) -> &Scene {
        &self.scenes[output]
    }

    /// The output that a window is shown on.
    pub fn shown_on(&self, id: WindowId) -> Option<usize> {
        self.scenes.iter().position(|scene| scene.find(id).is_some())
    }

    /// The window in front at a place of an output that takes input there, and the place in its picture.
    pub fn hit(&self, output: usize, place: Point) -> Option<(WindowId, Point)> {
        let in_front = self.scenes.get(output)?.windows.iter().rev();
        in_front.filter(|placed| placed.clip.contains(place)).find_map(|placed| {
            let window = self.windows.get(&placed.id)?;
            let inside = placed.inside(place, window);
            window.input.iter().any(|rect| rect.contains(inside)).then_some((placed.id, inside))
        })
    }

    /// A place of an output as one of a window's picture, be it inside or not; none if it is not shown.
    pub fn inside(&self, id: WindowId, place: Point) -> Option<Point> {
        let placed = self.scenes.iter().find_map(|scene| scene.find(id))?;
        Some(placed.inside(place, self.windows.get(&id)?))
    }

    /// Finds out what outputs show, and what changed.
    pub(super) fn arrange(&mut self, now: Time) {
        for output in 0..self.config.outputs.len() {
            let scene = self.compose(output);
            if scene != self.scenes[output] {
                let before = std::mem::replace(&mut self.scenes[output], scene);
                self.compare(now, output, &before);
                self.act(Action::Show(output));
            }
        }
        self.look_for_absences(now);
    }

    fn compose(&self, output: usize) -> Scene {
        let mut candidates: Vec<(&WindowId, &Window, &Rule)> = self.candidates(output).collect();
        candidates.sort_by_key(|(_, window, rule)| importance(window, rule));
        let mut shown: Vec<(Placed, &Rule)> = Vec::new();
        // From the most important window to the least: only those before can hide one.
        for (id, window, rule) in candidates.into_iter().rev() {
            let placed = placed(*id, window, rule);
            let hides = |(other, by): &(Placed, &Rule)| by.exclusive && other.seen().overlaps(placed.seen());
            if rule.must_be_visible || !shown.iter().any(hides) {
                shown.push((placed, rule));
            }
        }
        Scene { windows: shown.into_iter().rev().map(|(placed, _)| placed).collect() }
    }

    fn candidates(&self, output: usize) -> impl Iterator<Item = (&WindowId, &Window, &Rule)> {
        let moving = self.motion == Motion::Moving;
        let with_rule = |(id, window): (_, &'_ Window)| Some((id, window.rule?));
        let known = self.windows.iter().filter_map(with_rule);
        known.filter_map(move |(id, rule)| {
            let (window, rule) = (&self.windows[id], &self.config.rules[rule]);
            let wanted = window.wanted.shown.unwrap_or(!rule.hidden);
            let allowed = !(moving && rule.hidden_while_moving);
            let is_shown = window.mapped && !window.left && wanted && allowed && rule.output == output;
            is_shown.then_some((id, window, rule))
        })
    }

    /// Records which windows are shown now, and which are not any more.
    fn compare(&mut self, now: Time, output: usize, before: &Scene) {
        let scene = self.scenes[output].clone();
        for placed in scene.windows.iter().filter(|placed| before.find(placed.id).is_none()) {
            self.tell(placed.id, output, true);
            self.expect_to_be_seen(now, placed.id);
        }
        for placed in before.windows.iter().filter(|placed| scene.find(placed.id).is_none()) {
            self.tell(placed.id, output, false);
            self.expect_nothing(placed.id);
        }
    }

    fn tell(&mut self, id: WindowId, output: usize, shown: bool) {
        let output = &self.config.outputs[output].name;
        let asked = if shown { format!("shown on {output}") } else { format!("not shown on {output}") };
        let mut note = Note { asked, ..Note::about(Kind::Window) };
        if let Some(window) = self.windows.get(&id) {
            (note.domain, note.client) = (Some(window.domain), Some(window.client));
            note.window = self.name(window);
        }
        self.record(note);
    }

    /// How people call a window.
    pub(super) fn name(&self, window: &Window) -> String {
        window.rule.map_or_else(|| window.claims.to_string(), |rule| self.config.rules[rule].name.clone())
    }
}

impl Placed {
    /// The part of the output that it covers.
    pub fn seen(&self) -> Rect {
        self.at.intersection(self.clip)
    }

    /// A place of the output as one of the window's picture.
    fn inside(&self, place: Point, window: &Window) -> Point {
        let scaled = |offset: i32, whole: i32, size: i32| {
            let at = i64::from(offset) * i64::from(size) / i64::from(whole.max(1));
            i32::try_from(at).unwrap_or(i32::MAX)
        };
        let (x, y) = (place.x.saturating_sub(self.at.at.x), place.y.saturating_sub(self.at.at.y));
        Point {
            x: scaled(x, self.at.size.width, window.size.width),
            y: scaled(y, self.at.size.height, window.size.height),
        }
    }
}

/// Later in this order is in front.
fn importance(window: &Window, rule: &Rule) -> (bool, i32, u32, u64) {
    (rule.must_be_visible, rule.layer, rule.priority, window.arrival)
}

fn placed(id: WindowId, window: &Window, rule: &Rule) -> Placed {
    let (at, clip) = match window.wanted.at {
        Some(at) => (at, at),
        // Its own size, cut off at the area of its rule.
        None => (Rect { at: rule.area.at, size: window.size }, rule.area),
    };
    let (opacity, frozen) = (window.wanted.opacity, window.animation.is_stopped());
    Placed { id, at, clip, opacity, frozen }
}
