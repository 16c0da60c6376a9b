//! State that decides where primitives land and what happens to fragments.

use takt_predict::cost::Capabilities;
use takt_predict::exactness::{State, States};
use takt_predict::fragments::{Cull, RasterState, Rect, Trust, Winding};

use crate::gl;

/// Shadow of viewport, scissor, culling and the like.
#[derive(Clone, PartialEq, Debug)]
pub struct Raster {
    /// None until the first surface gave it its size.
    viewport: Option<Rect>,
    scissor: Option<Rect>,
    scissor_test: bool,
    cull_face: bool,
    cull_mode: u32,
    front_face: u32,
    depth_range: [f32; 2],
    line_width: f32,
    capabilities: Capabilities,
    discard: bool,
    restart: bool,
}

impl Default for Raster {
    fn default() -> Self {
        Self {
            viewport: None,
            scissor: None,
            scissor_test: false,
            cull_face: false,
            cull_mode: gl::BACK,
            front_face: gl::CCW,
            depth_range: [0.0, 1.0],
            line_width: 1.0,
            capabilities: Capabilities::default(),
            discard: false,
            restart: false,
        }
    }
}

impl Raster {
    /// The context became current with a surface of this size: the first one sets the viewport.
    pub fn first_surface(&mut self, [width, height]: [u32; 2]) {
        let whole = Rect { x: 0, y: 0, width, height };
        self.viewport.get_or_insert(whole);
        self.scissor.get_or_insert(whole);
    }

    /// `glEnable` and `glDisable`.
    pub fn enable(&mut self, capability: u32, on: bool) {
        match capability {
            gl::SCISSOR_TEST => self.scissor_test = on,
            gl::CULL_FACE => self.cull_face = on,
            gl::DEPTH_TEST => self.capabilities.depth_test = on,
            gl::STENCIL_TEST => self.capabilities.stencil_test = on,
            gl::BLEND => self.capabilities.blend = on,
            gl::RASTERIZER_DISCARD => self.discard = on,
            gl::PRIMITIVE_RESTART_FIXED_INDEX => self.restart = on,
            _ => {}
        }
    }

    /// `glViewport`; wrong sizes change nothing, as in GL.
    pub fn viewport(&mut self, x: i32, y: i32, width: i32, height: i32) {
        self.viewport = rect(x, y, width, height).or(self.viewport);
    }

    /// `glScissor`.
    pub fn scissor(&mut self, x: i32, y: i32, width: i32, height: i32) {
        self.scissor = rect(x, y, width, height).or(self.scissor);
    }

    /// `glDepthRangef`.
    pub fn depth_range(&mut self, near: f32, far: f32) {
        self.depth_range = [near, far];
    }

    /// `glCullFace`.
    pub fn cull_face(&mut self, mode: u32) {
        if matches!(mode, gl::FRONT | gl::BACK | gl::FRONT_AND_BACK) {
            self.cull_mode = mode;
        }
    }

    /// `glFrontFace`.
    pub fn front_face(&mut self, mode: u32) {
        if matches!(mode, gl::CW | gl::CCW) {
            self.front_face = mode;
        }
    }

    /// `glLineWidth`.
    pub fn line_width(&mut self, width: f32) {
        if width > 0.0 {
            self.line_width = width;
        }
    }

    /// Whether nothing is rasterised.
    pub fn discards(&self) -> bool {
        self.discard
    }

    /// What could give away that primitives of that mode are cut.
    pub fn states(&self, mode: u32) -> States {
        let (lines, wide) = (matches!(mode, gl::LINES..=gl::LINE_STRIP), self.line_width > 1.0);
        let tests = self.capabilities.depth_test || self.capabilities.stencil_test;
        States::NONE
            .with_if(mode == gl::POINTS, State::Points)
            .with_if(lines && wide, State::WideLines)
            .with_if(lines && !wide, State::Lines)
            .with_if(mode > gl::LINE_STRIP, State::Triangles)
            .with_if(self.capabilities.blend, State::Blend)
            .with_if(tests, State::Tests)
    }

    /// Whether an index says where strips begin anew.
    pub fn restarts(&self) -> bool {
        self.restart
    }

    /// Where primitives land; none if that is not known.
    pub fn viewport_rect(&self) -> Option<Rect> {
        self.viewport
    }

    /// Size of the viewport.
    pub fn viewport_size(&self) -> Option<[u32; 2]> {
        self.viewport.map(|viewport| [viewport.width, viewport.height])
    }

    /// The state as estimators want it, on a target of this size.
    pub fn state(&self, target: [u32; 2]) -> RasterState {
        let whole = Rect { x: 0, y: 0, width: target[0], height: target[1] };
        let cull = match (self.discard, self.cull_face, self.cull_mode) {
            (true, ..) => Cull::Both,
            (_, false, _) => Cull::None,
            (_, true, gl::FRONT) => Cull::Front,
            (_, true, gl::BACK) => Cull::Back,
            _ => Cull::Both,
        };
        RasterState {
            viewport: self.viewport.unwrap_or(whole),
            target,
            scissor: self.scissor_test.then(|| self.scissor.unwrap_or(whole)),
            depth_range: self.depth_range,
            cull,
            front: if self.front_face == gl::CW { Winding::Clockwise } else { Winding::CounterClockwise },
            line_width: self.line_width,
            point_size: 1.0,
            trust: Trust::Trusted,
        }
    }

    /// What else is enabled, on a target with that many samples.
    pub fn capabilities(&self, samples: u32) -> Capabilities {
        Capabilities { samples, ..self.capabilities }
    }

    /// Pixels that a clear touches: the scissor counts, the viewport does not.
    pub fn cleared_pixels(&self, target: [u32; 2]) -> u64 {
        let all = u64::from(target[0]) * u64::from(target[1]);
        match self.scissor.filter(|_| self.scissor_test) {
            None => all,
            Some(rect) => {
                let visible = |start: i32, length: u32, end: u32| {
                    let first = i64::from(start).clamp(0, i64::from(end));
                    let last = (i64::from(start) + i64::from(length)).clamp(0, i64::from(end));
                    last.abs_diff(first)
                };
                visible(rect.x, rect.width, target[0]) * visible(rect.y, rect.height, target[1])
            }
        }
    }
}

fn rect(x: i32, y: i32, width: i32, height: i32) -> Option<Rect> {
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    Some(Rect { x, y, width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_surface_sets_the_viewport_and_later_ones_do_not() {
        let mut raster = Raster::default();
        raster.first_surface([300, 200]);
        raster.first_surface([30, 20]);
        assert_eq!(raster.state([30, 20]).viewport, Rect { x: 0, y: 0, width: 300, height: 200 });
    }

    #[test]
    fn wrong_sizes_and_names_change_nothing() {
        let mut raster = Raster::default();
        raster.viewport(1, 2, 3, 4);
        raster.viewport(0, 0, -1, 4);
        raster.cull_face(7);
        raster.enable(gl::CULL_FACE, true);
        let state = raster.state([10, 10]);
        assert_eq!(state.viewport, Rect { x: 1, y: 2, width: 3, height: 4 });
        assert_eq!(state.cull, Cull::Back);
    }

    #[test]
    fn the_scissor_cuts_clears_only_if_enabled() {
        let mut raster = Raster::default();
        raster.scissor(-5, 5, 10, 100);
        assert_eq!(raster.cleared_pixels([20, 10]), 200);
        raster.enable(gl::SCISSOR_TEST, true);
        assert_eq!(raster.cleared_pixels([20, 10]), 5 * 5);
    }
}
