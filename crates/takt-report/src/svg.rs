//! A small builder of SVG pictures with axes.

use crate::html::{escape, finite};

/// A picture under construction. Colours come from CSS classes, so that it follows the page's
/// light or dark theme.
pub(crate) struct Svg {
    body: String,
}

/// The rectangle that data is drawn in, with room for axes around it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Which end of a text its position is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture; `title` is what a screen reader says about it.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        let body = format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
            escape(title)
        );
        Self { body }
    }

    /// A picture inside this one.
    pub(crate) fn nest(&mut self, picture: &str) {
        self.body.push_str(picture);
    }

    /// A rectangle that shows `hint` under the pointer.
    pub(crate) fn rect(&mut self, frame: Frame, class: &str, hint: &str) {
        self.body.push_str(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"{class}\">\
             <title>{}</title></rect>",
            finite(frame.left),
            finite(frame.top),
            finite(frame.width).max(0.0),
            finite(frame.height).max(0.0),
            escape(hint)
        ));
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.body.push_str(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            finite(from.0),
            finite(from.1),
            finite(to.0),
            finite(to.1)
        ));
    }

    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let path: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", finite(*x), finite(*y))).collect();
        self.body.push_str(&format!("<polyline points=\"{}\" class=\"{class}\"/>", path.join(" ")));
    }

    /// A dot that shows `hint` under the pointer.
    pub(crate) fn dot(&mut self, at: (f64, f64), class: &str, hint: &str) {
        self.body.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" class=\"{class}\"><title>{}</title></circle>",
            finite(at.0),
            finite(at.1),
            escape(hint)
        ));
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
            finite(at.0),
            finite(at.1),
            escape(text)
        ));
    }

    /// A text that runs upwards, for the titles of vertical axes.
    pub(crate) fn text_upwards(&mut self, at: (f64, f64), text: &str) {
        self.body.push_str(&format!(
            "<text transform=\"translate({:.1} {:.1}) rotate(-90)\" text-anchor=\"middle\" \
             class=\"label\">{}</text>",
            finite(at.0),
            finite(at.1),
            escape(text)
        ));
    }

    /// A vertical axis left of `frame`: grid lines, numbers, and its title.
    pub(crate) fn left_axis(&mut self, frame: Frame, max: f64, ticks: &[f64], title: &str) {
        for tick in ticks {
            let y = frame.y(*tick, max);
            self.line((frame.left, y), (frame.right(), y), "grid");
            let at = (frame.left - 6.0, y + 3.5);
            self.text(at, Anchor::End, "tick", &number(*tick));
        }
        let at = (frame.left - 36.0, frame.top + frame.height / 2.0);
        self.text_upwards(at, title);
    }

    /// A vertical axis right of `frame`, without grid lines: the left one has them.
    pub(crate) fn right_axis(&mut self, frame: Frame, max: f64, ticks: &[f64], title: &str) {
        for tick in ticks {
            let at = (frame.right() + 6.0, frame.y(*tick, max) + 3.5);
            self.text(at, Anchor::Start, "tick", &number(*tick));
        }
        let at = (frame.right() + 40.0, frame.top + frame.height / 2.0);
        self.text_upwards(at, title);
    }

    /// The picture's markup.
    pub(crate) fn finish(mut self) -> String {
        self.body.push_str("</svg>");
        self.body
    }
}

/// How pictures of one size are put on a sheet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) columns: usize,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) style: &'static str,
}

/// The pictures as one that needs no page.
pub(crate) fn sheet(pictures: &[String], sheet: Sheet) -> String {
    let Sheet { columns, width, height, style } = sheet;
    let rows = pictures.len().div_ceil(columns);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\"><style>{style}</style>\n",
        width * columns as f64,
        height * rows as f64
    );
    for (index, svg) in pictures.iter().enumerate() {
        let (left, top) = (width * (index % columns) as f64, height * (index / columns) as f64);
        let placed =
            format!("<svg x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" ");
        out += &svg.replacen("<svg ", &placed, 1);
        out.push('\n');
    }
    out + "</svg>\n"
}

impl Frame {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Height of `value` on an axis from 0 to `max`; what does not fit is drawn at the edge.
    pub(crate) fn y(&self, value: f64, max: f64) -> f64 {
        let share = finite(value / max).clamp(0.0, 1.0);
        self.bottom() - share * self.height
    }

    /// Position of `value` on an axis from 0 to `max`.
    pub(crate) fn x(&self, value: f64, max: f64) -> f64 {
        self.left + finite(value / max).clamp(0.0, 1.0) * self.width
    }
}

/// Round numbers from 0 to at least `max`, about `count` of them.
pub(crate) fn ticks(max: f64, count: u32) -> Vec<f64> {
    let max = finite(max).max(1e-9);
    let rough = max / f64::from(count.max(1));
    let magnitude = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.iter().map(|step| step * magnitude);
    let step = step.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(magnitude * 10.0);
    let mut ticks = vec![0.0];
    let mut n = 0u32;
    while f64::from(n) * step < max * 0.999 {
        n += 1;
        ticks.push(f64::from(n) * step);
    }
    ticks
}

/// A number without needless decimals.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(ticks(60.0, 5), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0, 4).first(), Some(&0.0));
        for max in [0.003, 1.0, 7.3, 59.94, 144.0, 1e6] {
            let ticks = ticks(max, 5);
            assert!((3..=7).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.last().is_some_and(|last| *last >= max * 0.999));
        }
    }

    #[test]
    fn numbers_that_are_none_do_no_harm() {
        let mut svg = Svg::new(10.0, 10.0, "x");
        svg.line((f64::NAN, 0.0), (f64::INFINITY, 1.0), "grid");
        let text = svg.finish();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_eq!(ticks(f64::NAN, 5).first(), Some(&0.0));
    }
}
