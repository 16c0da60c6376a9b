//! The program's own scissor, and ours for a while.

use super::tiles::Area;
use crate::entry::real;
use crate::gl;

/// The scissor as the program has set it, to be put back.
///
/// The driver is asked for it, not the shadow: what is put back must be right to the last bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scissor {
    area: [i32; 4],
    enabled: bool,
}

/// No target reaches further; every driver can still add to it.
const FAR: i32 = 1 << 16;

impl Scissor {
    /// The scissor of the current context.
    pub fn current() -> Self {
        let mut area = [0_i32; 4];
        // SAFETY: a context is current; there is room for the four numbers.
        unsafe { real::glGetIntegerv(gl::SCISSOR_BOX, area.as_mut_ptr().cast()) };
        // SAFETY: a context is current; every version knows this name.
        let enabled = unsafe { real::glIsEnabled(gl::SCISSOR_TEST) } != 0;
        Self { area, enabled }
    }

    /// What it lets through.
    pub fn clip(&self) -> Area {
        let [x, y, width, height] = self.area;
        match self.enabled {
            true => Area::new(x, y, u32::try_from(width).unwrap_or(0), u32::try_from(height).unwrap_or(0)),
            false => Area { left: 0, low: 0, right: FAR, high: FAR },
        }
    }

    /// Lets through what is in the area, and nothing else.
    pub fn narrow(&self, area: &Area) {
        set([area.left, area.low, area.right.saturating_sub(area.left), area.high.saturating_sub(area.low)]);
        if !self.enabled {
            // SAFETY: a context is current; every version knows this name.
            unsafe { real::glEnable(gl::SCISSOR_TEST) };
        }
    }

    /// Puts everything back.
    pub fn restore(&self) {
        set(self.area);
        if !self.enabled {
            // SAFETY: a context is current; every version knows this name.
            unsafe { real::glDisable(gl::SCISSOR_TEST) };
        }
    }
}

fn set([x, y, width, height]: [i32; 4]) {
    // SAFETY: a context is current; widths are not negative, as the driver takes none that are.
    unsafe { real::glScissor(x, y, width, height) };
}
