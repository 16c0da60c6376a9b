//! A canvas in memory, on which textures are painted once at start.

use crate::shape::{Point, Shape};

/// Red, green, blue and alpha from 0 to 1; not multiplied by alpha.
pub(crate) type Colour = [f32; 4];

/// A colour from `0xRRGGBB`.
pub(crate) fn rgb(code: u32) -> Colour {
    let part = |shift: u32| (code >> shift & 0xFF) as f32 / 255.0;
    [part(16), part(8), part(0), 1.0]
}

/// The colour, less opaque.
pub(crate) const fn faint(colour: Colour, alpha: f32) -> Colour {
    [colour[0], colour[1], colour[2], colour[3] * alpha]
}

/// Between two colours.
pub(crate) fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|part| a[part] + (b[part] - a[part]) * share)
}

/// Pixels with the origin of coordinates in the middle, x to the right and y up.
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    /// Pixels per unit.
    scale: f32,
    /// Multiplied by alpha, from the bottom row up, as GL wants them.
    pixels: Vec<Colour>,
}

impl Canvas {
    /// An empty canvas; half its height is `units_up` units.
    pub(crate) fn new(width: u32, height: u32, units_up: f32) -> Self {
        let pixels = vec![[0.0; 4]; width as usize * height as usize];
        Self { width, height, scale: height as f32 / 2.0 / units_up, pixels }
    }

    /// Fills a shape with one colour.
    pub(crate) fn fill(&mut self, shape: &Shape, colour: Colour) {
        self.shade(shape, |_| colour);
    }

    /// Fills a shape with a colour for each point.
    pub(crate) fn shade(&mut self, shape: &Shape, colour: impl Fn(Point) -> Colour) {
        let scale = self.scale;
        self.paint(shape.bounds(1.0 / scale), |point| {
            let cover = (0.5 - shape.distance(point) * scale).clamp(0.0, 1.0);
            if cover > 0.0 { faint(colour(point), cover) } else { [0.0; 4] }
        });
    }

    /// Lights up the surroundings of a shape.
    pub(crate) fn glow(&mut self, shape: &Shape, reach: f32, colour: Colour) {
        self.paint(shape.bounds(reach), |point| {
            let near = 1.0 - (shape.distance(point) / reach).clamp(0.0, 1.0);
            faint(colour, near * near)
        });
    }

    fn paint(&mut self, (low, high): (Point, Point), colour: impl Fn(Point) -> Colour) {
        let (columns, rows) =
            (self.span(low[0], high[0], self.width), self.span(low[1], high[1], self.height));
        for row in rows {
            for column in columns.clone() {
                let middle = |at: u32, length: u32| (at as f32 + 0.5 - length as f32 / 2.0) / self.scale;
                let [r, g, b, a] = colour([middle(column, self.width), middle(row, self.height)]);
                if a > 0.0 {
                    let pixel = &mut self.pixels[(row * self.width + column) as usize];
                    let over = [r * a, g * a, b * a, a];
                    *pixel = std::array::from_fn(|part| over[part] + pixel[part] * (1.0 - a));
                }
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the canvas")]
    fn span(&self, low: f32, high: f32, length: u32) -> std::ops::Range<u32> {
        let limit = length as f32;
        let at = |position: f32| (position * self.scale + limit / 2.0).clamp(0.0, limit);
        at(low).floor() as u32..at(high).ceil() as u32
    }

    /// Width and height in pixels.
    pub(crate) const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// RGBA bytes, multiplied by alpha.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let byte = |part: f32| (part.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
        self.pixels.iter().flat_map(|pixel| pixel.map(byte)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disc_covers_its_area() {
        let mut canvas = Canvas::new(200, 100, 1.0);
        canvas.fill(&Shape::disc([0.0; 2], 0.8), [1.0; 4]);
        let area: f32 = canvas.pixels.iter().map(|pixel| pixel[3]).sum();
        let wanted = std::f32::consts::PI * 40.0 * 40.0;
        assert!((area / wanted - 1.0).abs() < 0.001, "{area} of {wanted}");
        assert_eq!(canvas.bytes().len(), 200 * 100 * 4);
    }

    #[test]
    fn colours_are_blended_over() {
        let mut canvas = Canvas::new(4, 4, 1.0);
        let all = Shape::panel([0.0; 2], [9.0; 2], 0.0);
        canvas.fill(&all, rgb(0xFF_00_00));
        canvas.fill(&all, faint(rgb(0x00_00_FF), 0.25));
        assert_eq!(canvas.bytes()[..4], [191, 0, 64, 255]);
    }
}
