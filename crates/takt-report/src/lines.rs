//! Lines over an axis: how a figure depends on a parameter.

use crate::html::escape;
use crate::svg::{Anchor, Frame, Sheet, Svg, number, sheet};

/// A picture with axes and lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What stands above it; may be empty.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_title: String,
    /// What the vertical axis counts.
    pub y_title: String,
    /// What the lines differ in; heads the legend.
    pub series_title: String,
    /// Names along the horizontal axis, for what has no numbers: 0 is the first.
    pub x_names: Option<Vec<String>>,
    /// Ends of the vertical axis, where the data should not decide.
    pub y_range: (Option<f64>, Option<f64>),
    /// The lines.
    pub series: Vec<Series>,
}

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The line's height.
    pub y: f64,
    /// The lowest and the highest of the values that `y` stands for.
    pub spread: (f64, f64),
}

const FRAME: Frame = Frame { left: 62.0, top: 26.0, width: 470.0, height: 270.0 };
const LEGEND: f64 = 150.0;
const COLOURS: usize = 8;
/// Height of a line of the legend.
const LEADING: f64 = 16.0;

/// What pictures outside of a page need of its style.
pub(crate) const STYLE: &str = "svg{background:#fff}text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:#5f6b76}\
    .label{fill:#1c2126}.title{fill:#1c2126;font-weight:600;font-size:12.5px}.grid{stroke:#d5dbe1;stroke-width:.6}\
    .axis{stroke:#1c2126}.series{fill:none;stroke-width:1.6;stroke-linejoin:round}.dashed{stroke-dasharray:5 3}\
    .line0{stroke:#0072b2}.line1{stroke:#e69f00}.line2{stroke:#009e73}.line3{stroke:#cc79a7}.line4{stroke:#56b4e9}\
    .line5{stroke:#8c6d00}.line6{stroke:#6a51a3}.line7{stroke:#7f8c8d}.ink0{fill:#0072b2}.ink1{fill:#e69f00}\
    .ink2{fill:#009e73}.ink3{fill:#cc79a7}.ink4{fill:#56b4e9}.ink5{fill:#8c6d00}.ink6{fill:#6a51a3}\
    .ink7{fill:#7f8c8d}";

/// The panel as markup for a page.
pub fn draw(panel: &Panel) -> String {
    let legend = FRAME.top + LEADING * (panel.series.len() + 2) as f64;
    let height = (FRAME.bottom() + 44.0).max(legend);
    let title = format!("{}: {} over {}", panel.title, panel.y_title, panel.x_title);
    let mut svg = Svg::new(FRAME.right() + LEGEND, height, &title);
    svg.text((FRAME.left, FRAME.top - 10.0), Anchor::Start, "title", &panel.title);
    let (x, y) = (x_scale(panel), y_scale(panel));
    axes(&mut svg, panel, &x, &y);
    for (index, series) in panel.series.iter().enumerate() {
        line(&mut svg, series, (&x, &y), index);
    }
    key(&mut svg, panel);
    svg.finish()
}

/// The panels as one picture that needs no page, side by side in pairs.
pub fn picture(panels: &[Panel]) -> String {
    let drawn: Vec<String> = panels.iter().map(draw).collect();
    let (width, height) = (FRAME.right() + LEGEND, FRAME.bottom() + 44.0);
    let columns = drawn.len().clamp(1, 2);
    sheet(&drawn, Sheet { columns, width, height, style: STYLE })
}

/// One direction of a panel: which values it shows, and where.
struct Scale {
    low: f64,
    high: f64,
    /// Places with their labels.
    ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From `low` to `high`, with round ticks between.
    fn between(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 6.0);
        let first = (low / step - 1e-9).ceil();
        let tick = |n: i32| (first + f64::from(n)) * step;
        let ticks = (0..64).map(tick).take_while(|tick| *tick <= high + step * 1e-9);
        let ticks = ticks.map(|tick| (tick, label(tick, step))).collect();
        Self { low, high, ticks }
    }

    /// How far along `value` is; what does not fit is at the edge.
    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn x(&self, value: f64) -> f64 {
        FRAME.left + self.share(value) * FRAME.width
    }

    fn y(&self, value: f64) -> f64 {
        FRAME.bottom() - self.share(value) * FRAME.height
    }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn round_step(rough: f64) -> f64 {
    let magnitude = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(magnitude * 10.0)
}

/// A tick with as many decimals as its step needs.
fn label(tick: f64, step: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 to 12")]
    let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{tick:.decimals$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".to_owned() } else { text }
}

fn finite_points(panel: &Panel) -> impl Iterator<Item = &Point> {
    panel.series.iter().flat_map(|series| &series.points).filter(|point| is_finite(point))
}

fn is_finite(point: &Point) -> bool {
    [point.x, point.y, point.spread.0, point.spread.1].iter().all(|value| value.is_finite())
}

fn x_scale(panel: &Panel) -> Scale {
    if let Some(names) = &panel.x_names {
        let last = names.len().saturating_sub(1) as f64;
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect();
        return Scale { low: -0.5, high: last + 0.5, ticks };
    }
    let low = finite_points(panel).map(|point| point.x).fold(f64::INFINITY, f64::min);
    let high = finite_points(panel).map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
    if low <= high { Scale::between(low, high) } else { Scale::between(0.0, 1.0) }
}

fn y_scale(panel: &Panel) -> Scale {
    let lowest = finite_points(panel).map(|point| point.spread.0).fold(0.0, f64::min);
    let highest = finite_points(panel).map(|point| point.spread.1).fold(f64::NEG_INFINITY, f64::max);
    let highest = if highest > lowest { highest } else { lowest + 1.0 };
    let step = round_step((highest - lowest) / 6.0);
    let low = panel.y_range.0.unwrap_or_else(|| (lowest / step).floor() * step);
    let high = panel.y_range.1.unwrap_or_else(|| (highest / step - 1e-9).ceil() * step);
    Scale::between(low, high)
}

fn axes(svg: &mut Svg, panel: &Panel, x: &Scale, y: &Scale) {
    for (tick, label) in &y.ticks {
        let at = y.y(*tick);
        svg.line((FRAME.left, at), (FRAME.right(), at), "grid");
        svg.text((FRAME.left - 6.0, at + 3.5), Anchor::End, "tick", label);
    }
    for (tick, label) in &x.ticks {
        let at = x.x(*tick);
        svg.line((at, FRAME.bottom()), (at, FRAME.bottom() + 4.0), "axis");
        svg.text((at, FRAME.bottom() + 16.0), Anchor::Middle, "tick", label);
    }
    svg.line((FRAME.left, FRAME.bottom()), (FRAME.right(), FRAME.bottom()), "axis");
    svg.text_upwards((FRAME.left - 44.0, FRAME.top + FRAME.height / 2.0), &panel.y_title);
    let middle = (FRAME.left + FRAME.width / 2.0, FRAME.bottom() + 34.0);
    svg.text(middle, Anchor::Middle, "label", &panel.x_title);
}

fn line(svg: &mut Svg, series: &Series, (x, y): (&Scale, &Scale), index: usize) {
    let points: Vec<&Point> = series.points.iter().filter(|point| is_finite(point)).collect();
    let path: Vec<(f64, f64)> = points.iter().map(|point| (x.x(point.x), y.y(point.y))).collect();
    let colour = index % COLOURS;
    let dashed = if index >= COLOURS { " dashed" } else { "" };
    svg.polyline(&path, &format!("series line{colour}{dashed}"));
    for (point, at) in points.into_iter().zip(path) {
        if point.spread.0 < point.spread.1 {
            svg.line((at.0, y.y(point.spread.0)), (at.0, y.y(point.spread.1)), &format!("line{colour}"));
        }
        let hint = format!("{}: {} at {}", series.name, number_of(point.y), number_of(point.x));
        svg.dot(at, &format!("ink{colour}"), &hint);
    }
}

/// The legend.
fn key(svg: &mut Svg, panel: &Panel) {
    if panel.series.len() < 2 {
        return;
    }
    let left = FRAME.right() + 14.0;
    // So many letters fit beside the frame.
    let title = crate::html::shortened(&panel.series_title, 22);
    svg.text((left, FRAME.top + 4.0), Anchor::Start, "tick", &title);
    for (index, series) in panel.series.iter().enumerate() {
        let y = FRAME.top + LEADING * (index + 1) as f64 + 4.0;
        let (colour, dashed) = (index % COLOURS, if index >= COLOURS { " dashed" } else { "" });
        svg.polyline(&[(left, y - 4.0), (left + 18.0, y - 4.0)], &format!("series line{colour}{dashed}"));
        let name = crate::html::shortened(&series.name, 19);
        svg.text((left + 24.0, y), Anchor::Start, "label", &name);
    }
}

fn number_of(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.4}") } else { number(value) }
}

/// A page about a study.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub description: String,
    /// What else there is to know, in pairs.
    pub facts: Vec<(String, String)>,
    /// Pictures, each of several panels.
    pub charts: Vec<Vec<Panel>>,
    /// Names of the columns of results.
    pub columns: Vec<String>,
    /// Results, as text.
    pub rows: Vec<Vec<String>>,
}

/// Rows of results on the page; the rest is in the files.
const ROWS_SHOWN: usize = 1000;

/// A self-contained page that shows results of a study.
pub fn page(page: &Page) -> String {
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"sub\">{}</p></header>\n<main>\n",
        escape(&page.name),
        escape(&page.description)
    );
    for panels in &page.charts {
        body += "<div class=\"columns\">";
        for panel in panels {
            body += &format!("<figure>{}</figure>", draw(panel));
        }
        body += "</div>\n";
    }
    body += "<h2>Results</h2><div class=\"scroll\"><table><thead><tr>";
    body.extend(page.columns.iter().map(|name| format!("<th>{}</th>", escape(name))));
    body += "</tr></thead><tbody>\n";
    for row in page.rows.iter().take(ROWS_SHOWN) {
        let cells = row.iter().map(|cell| format!("<td class=\"num\">{}</td>", escape(cell)));
        body += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    body += "</tbody></table></div>\n";
    if page.rows.len() > ROWS_SHOWN {
        body += &format!("<p class=\"note\">The first {ROWS_SHOWN} of {} rows.</p>\n", page.rows.len());
    }
    body += "<h2>How it was made</h2><dl>";
    body.extend(
        page.facts.iter().map(|(what, is)| format!("<dt>{}</dt><dd>{}</dd>", escape(what), escape(is))),
    );
    body += "</dl></main>\n";
    crate::page::document(&escape(&page.name), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, spread: (y, y) }
    }

    fn panel(points: Vec<Point>) -> Panel {
        Panel {
            title: "<t>".to_owned(),
            x_title: "x".to_owned(),
            y_title: "y".to_owned(),
            series_title: "s".to_owned(),
            x_names: None,
            y_range: (None, None),
            series: vec![Series { name: "a&b".to_owned(), points }],
        }
    }

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_tell_apart() {
        assert_eq!(labels(&Scale::between(0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&Scale::between(0.97, 1.0)),
            ["0.970", "0.975", "0.980", "0.985", "0.990", "0.995", "1.000"]
        );
        assert_eq!(labels(&Scale::between(500.0, 8000.0)), ["2000", "4000", "6000", "8000"]);
        assert_eq!(labels(&Scale::between(-1.0, 1.0)), ["-1.0", "-0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(&Scale::between(3.0, 3.0)).first(), Some(&"3.0"));
    }

    #[test]
    fn the_axis_begins_at_zero_unless_told_otherwise() {
        let mut panel = panel(vec![point(0.0, 0.93), point(1.0, 0.99)]);
        let scale = y_scale(&panel);
        assert_eq!((scale.low, scale.high), (0.0, 1.0));
        panel.y_range = (Some(0.9), Some(1.0));
        let scale = y_scale(&panel);
        assert_eq!((scale.low, scale.high), (0.9, 1.0));
        assert_eq!(scale.y(0.5), FRAME.bottom());
    }

    #[test]
    fn pictures_are_whole_and_harmless() {
        let bad = vec![point(f64::NAN, 1.0), point(1.0, f64::INFINITY), point(1.0, 2.0)];
        for panel in [panel(bad), panel(Vec::new()), panel(vec![point(1.0, -5.0)])] {
            let text = picture(&[panel.clone(), panel.clone(), panel]);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(!text.contains("<t>") && text.contains("&lt;t&gt;"));
            assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
        }
    }

    #[test]
    fn names_stand_where_numbers_do_not() {
        let mut panel = panel(vec![point(0.0, 1.0), point(1.0, 2.0)]);
        panel.x_names = Some(vec!["fifo".to_owned(), "edf".to_owned()]);
        let scale = x_scale(&panel);
        assert_eq!(labels(&scale), ["fifo", "edf"]);
        assert!(scale.x(0.0) > FRAME.left && scale.x(1.0) < FRAME.right());
    }

    #[test]
    fn the_page_shows_rows_and_facts() {
        let text = page(&Page {
            name: "n<".to_owned(),
            description: "d".to_owned(),
            facts: vec![("seed".to_owned(), "1".to_owned())],
            charts: vec![vec![panel(vec![point(0.0, 1.0)])]],
            columns: vec!["x".to_owned()],
            rows: vec![vec!["42".to_owned()]; ROWS_SHOWN + 1],
        });
        assert!(text.contains("<td class=\"num\">42</td>") && text.contains("<dt>seed</dt><dd>1</dd>"));
        assert!(text.contains("n&lt;") && text.contains("1000 of 1001 rows"));
    }
}
