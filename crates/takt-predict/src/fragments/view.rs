//! Where on the render target primitives can land, and which of them count.

use super::clip::Bounds;

/// A rectangle of pixels; `x` and `y` are its lower left corner, as in GL.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Rect {
    /// Left edge.
    pub x: i32,
    /// Lower edge.
    pub y: i32,
    /// Width; nothing is inside when it is zero.
    pub width: u32,
    /// Height; nothing is inside when it is zero.
    pub height: u32,
}

/// Which way round the vertices of a front face go (`glFrontFace`).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Winding {
    /// Front faces go counter-clockwise, as GL starts.
    #[default]
    CounterClockwise,
    /// Front faces go clockwise.
    Clockwise,
}

/// Which faces are thrown away (`GL_CULL_FACE` and `glCullFace` together).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Cull {
    /// None: culling is disabled.
    #[default]
    None,
    /// Front faces.
    Front,
    /// Back faces.
    Back,
    /// All triangles; lines and points remain.
    Both,
}

/// How far the geometry of an app is believed.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Trust {
    /// Rounding errors cancel out over many triangles, so the plain area is best.
    #[default]
    Trusted,
    /// The app may pick triangles whose area says little about their fragments. Sizes are
    /// rounded up, a thin triangle counts at least its longest side, and one that cannot be
    /// placed counts as the whole visible rectangle.
    Untrusted,
}

/// The state that decides where primitives land.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct RasterState {
    /// `glViewport`.
    pub viewport: Rect,
    /// Width and height of the render target.
    pub target: [u32; 2],
    /// `glScissor`, when the scissor test is enabled.
    pub scissor: Option<Rect>,
    /// `glDepthRangef`: window depth of the near and the far plane.
    pub depth_range: [f32; 2],
    /// Which faces are culled.
    pub cull: Cull,
    /// Which faces are front faces.
    pub front: Winding,
    /// `glLineWidth`.
    pub line_width: f32,
    /// `gl_PointSize`, or the largest value it is assumed to take.
    pub point_size: f32,
    /// Whether to guard against geometry made to be underestimated.
    pub trust: Trust,
}

impl RasterState {
    /// The state of a fresh context on a target of this size.
    pub fn new(width: u32, height: u32) -> Self {
        Self {
            viewport: Rect { x: 0, y: 0, width, height },
            target: [width, height],
            scissor: None,
            depth_range: [0.0, 1.0],
            cull: Cull::None,
            front: Winding::CounterClockwise,
            line_width: 1.0,
            point_size: 1.0,
            trust: Trust::Trusted,
        }
    }

    /// The pixels that anything can be drawn to: the target, cut by the scissor.
    pub(crate) fn drawable(&self) -> Pixels {
        let [width, height] = self.target.map(i64::from);
        let target = Pixels { left: 0, bottom: 0, right: width, top: height };
        self.scissor.map_or(target, |scissor| target.cut(Pixels::of(scissor)))
    }
}

/// Half-open ranges of pixel columns and rows; wide enough that no corner overflows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pixels {
    pub(crate) left: i64,
    pub(crate) bottom: i64,
    pub(crate) right: i64,
    pub(crate) top: i64,
}

impl Pixels {
    fn of(rect: Rect) -> Self {
        let (left, bottom) = (i64::from(rect.x), i64::from(rect.y));
        Self { left, bottom, right: left + i64::from(rect.width), top: bottom + i64::from(rect.height) }
    }

    pub(crate) fn cut(self, other: Self) -> Self {
        Self {
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.min(other.right),
            top: self.top.min(other.top),
        }
    }

    fn is_empty(self) -> bool {
        self.left >= self.right || self.bottom >= self.top
    }

    pub(crate) fn count(self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        (self.right - self.left).unsigned_abs() * (self.top - self.bottom).unsigned_abs()
    }
}

/// [`RasterState`] made ready: the visible rectangle in normalised device coordinates.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct View {
    pub(super) state: RasterState,
    /// Half the viewport's width and height, by which device coordinates are scaled.
    pub(super) half: [f64; 2],
    /// The visible rectangle in device coordinates.
    pub(super) bounds: Bounds,
    /// Pixels in the visible rectangle.
    pub(super) visible: f64,
    /// The same in single precision, for the many triangles that need no clipping.
    pub(super) quick: Quick,
}

/// What the quick path needs.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Quick {
    /// Whether areas are taken as they are.
    pub(super) trusted: bool,
    /// Left, right, bottom and top; not-a-number if nothing is visible, so that nothing is inside.
    pub(super) bounds: [f32; 4],
    /// From twice an area in device coordinates to fragments: of triangles that go
    /// counter-clockwise and of those that go clockwise. Zero for those that are culled.
    pub(super) scale: [f32; 2],
}

impl Quick {
    /// Nothing is inside yet.
    const NONE: Self = Self { trusted: true, bounds: [f32::NAN; 4], scale: [0.0; 2] };

    #[expect(clippy::cast_possible_truncation, reason = "rounding is what single precision is about")]
    fn of(view: &View) -> Self {
        let Bounds { left, right, bottom, top } = view.bounds;
        let bounds = [left, right, bottom, top].map(|edge| edge as f32);
        let scale = (view.half[0] * view.half[1] / 2.0) as f32;
        let scale = [1.0, -1.0].map(|sign| if view.keeps(sign) { scale } else { 0.0 });
        Self { trusted: view.state.trust == Trust::Trusted, bounds, scale }
    }
}

impl View {
    /// Prepares a state for many primitives.
    pub fn new(state: &RasterState) -> Self {
        let drawable = state.drawable();
        let seen = drawable.cut(Pixels::of(state.viewport));
        let visible = seen.count() as f64;
        let half = [f64::from(state.viewport.width) / 2.0, f64::from(state.viewport.height) / 2.0];
        let device = |pixel: i64, origin: i32, half: f64| (pixel as f64 - f64::from(origin)) / half - 1.0;
        let bounds = if visible > 0.0 {
            Bounds {
                left: device(seen.left, state.viewport.x, half[0]),
                right: device(seen.right, state.viewport.x, half[0]),
                bottom: device(seen.bottom, state.viewport.y, half[1]),
                top: device(seen.top, state.viewport.y, half[1]),
            }
        } else {
            Bounds::WHOLE
        };
        let mut view = Self { state: *state, half, bounds, visible, quick: Quick::NONE };
        if visible > 0.0 {
            view.quick = Quick::of(&view);
        }
        view
    }

    /// Pixels that primitives can cover: viewport, scissor and target together.
    pub fn visible(&self) -> f64 {
        self.visible
    }

    /// Whether a triangle is drawn whose area has this sign; positive is counter-clockwise.
    pub(super) fn keeps(&self, signed_area: f64) -> bool {
        let front = match self.state.front {
            Winding::CounterClockwise => signed_area > 0.0,
            Winding::Clockwise => signed_area < 0.0,
        };
        match self.state.cull {
            Cull::None => true,
            Cull::Front => !front,
            Cull::Back => front,
            Cull::Both => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scissor_outside_leaves_nothing() {
        let scissor = Some(Rect { x: 900, y: 0, width: 10, height: 10 });
        let state = RasterState { scissor, ..RasterState::new(800, 600) };
        assert_eq!(View::new(&state).visible(), 0.0);
    }

    #[test]
    fn extreme_rectangles_do_not_overflow() {
        let huge = Rect { x: i32::MIN, y: i32::MAX, width: u32::MAX, height: u32::MAX };
        let state =
            RasterState { viewport: huge, scissor: Some(huge), ..RasterState::new(u32::MAX, u32::MAX) };
        assert!(View::new(&state).visible().is_finite());
    }

    #[test]
    fn bounds_are_the_visible_part_of_the_viewport() {
        let viewport = Rect { x: -400, y: 0, width: 800, height: 600 };
        let view = View::new(&RasterState { viewport, ..RasterState::new(800, 600) });
        assert_eq!(view.visible(), 400.0 * 600.0);
        assert_eq!(view.bounds, Bounds { left: 0.0, right: 1.0, bottom: -1.0, top: 1.0 });
    }

    #[test]
    fn culling_follows_the_winding() {
        let keeps =
            |cull, front, area| View::new(&RasterState { cull, front, ..RasterState::new(8, 8) }).keeps(area);
        assert!(keeps(Cull::Back, Winding::CounterClockwise, 1.0));
        assert!(!keeps(Cull::Back, Winding::Clockwise, 1.0));
        assert!(keeps(Cull::Front, Winding::Clockwise, 1.0));
        assert!(keeps(Cull::None, Winding::Clockwise, -1.0));
        assert!(!keeps(Cull::Both, Winding::Clockwise, -1.0));
    }
}
