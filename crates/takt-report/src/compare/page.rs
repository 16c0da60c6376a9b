//! Compare files as a page: table, cumulative errors, residuals.

use super::figures::{Figures, absolute_errors, figures};
use super::table::{Comparison, Row};
use crate::html::{count, escape, percent};
use crate::lines::STYLE;
use crate::page::document;
use crate::svg::{Anchor, Frame, Sheet, Svg, number, sheet, ticks};

const WIDTH: f64 = 720.0;
const FRAME: Frame = Frame { left: 60.0, top: 14.0, width: WIDTH - 60.0 - 20.0, height: 240.0 };
/// Points of a curve or a cloud; more are thinned out evenly.
const POINTS_MAX: usize = 1500;
/// The axis of errors ends here, lest a single outlier squeeze everything to the left.
const ERRORS_SHOWN: f64 = 0.99;

/// A self-contained page about `comparison`; `title` is usually the name of its file, and `by`
/// splits the figures as for [`figures`].
pub fn render(title: &str, comparison: &Comparison, by: Option<fn(&Row) -> &str>) -> String {
    let rows: Vec<&Row> = comparison.rows.iter().collect();
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"sub\">{} command groups, models: {}</p></header>\n<main>\n",
        escape(title),
        count(rows.len() as u64),
        escape(&comparison.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", "))
    );
    body += &table(&figures(comparison, by));
    body += "<h2>Cumulative error</h2><p class=\"note\">Share of command groups whose prediction was wrong by at \
             most so much.</p>";
    body += &cumulative(comparison, &rows);
    body += "<h2>Residuals</h2><p class=\"note\">Predicted minus measured over the measured time. Below the line a \
             group took longer than predicted.</p><div class=\"columns\">";
    for (index, model) in comparison.models.iter().enumerate() {
        body += &format!("<figure><figcaption>{}</figcaption>", escape(&model.name));
        body += &residuals(index, &rows, &model.name);
        body += "</figure>";
    }
    body += "</div></main>\n";
    document(&escape(title), &body)
}

/// The cumulative errors of all models, as a picture that needs no page.
pub fn plot(comparison: &Comparison) -> String {
    let rows: Vec<&Row> = comparison.rows.iter().collect();
    let (width, height) = (WIDTH, FRAME.bottom() + 44.0);
    sheet(&[cumulative(comparison, &rows)], Sheet { columns: 1, width, height, style: STYLE })
}

fn table(figures: &[Figures]) -> String {
    let mut out = "<h2>Errors</h2><div class=\"wide\"><table><thead><tr><th>rows</th><th>model</th>\
                   <th>predicted</th><th>MAE µs</th><th>MAPE</th><th>bias µs</th><th>p50 µs</th><th>p95 µs</th>\
                   <th>p99 µs</th><th>max µs</th><th>under-predicted</th><th>above upper</th></tr></thead><tbody>"
        .to_owned();
    for group in figures {
        for model in &group.models {
            let cells = [
                escape(&group.of),
                escape(&model.model),
                count(model.predicted as u64),
                number(model.mae_us),
                percent(model.mape),
                number(model.bias_us),
                number(model.p50_us),
                number(model.p95_us),
                number(model.p99_us),
                number(model.max_us),
                percent(model.under_predicted),
                model.upper_exceeded.map_or_else(|| "–".to_owned(), percent),
            ];
            out += &format!("<tr><td>{}</td></tr>", cells.join("</td><td>"));
        }
    }
    out + "</tbody></table></div>"
}

fn cumulative(comparison: &Comparison, rows: &[&Row]) -> String {
    let curves: Vec<Vec<f64>> =
        (0..comparison.models.len()).map(|index| absolute_errors(index, rows)).collect();
    let most = curves.iter().map(|errors| at_share(errors, ERRORS_SHOWN)).fold(1.0, f64::max);
    let mut svg = Svg::new(WIDTH, FRAME.bottom() + 44.0, "Cumulative error of each model");
    svg.left_axis(FRAME, 100.0, &ticks(100.0, 5), "Command groups (%)");
    let x_ticks = ticks(most, 8);
    let x_max = x_ticks.last().copied().unwrap_or(1.0);
    bottom_axis(&mut svg, &x_ticks, x_max, "Absolute error (µs)");
    for (index, (errors, model)) in curves.iter().zip(&comparison.models).enumerate() {
        let step = errors.len().div_ceil(POINTS_MAX).max(1);
        let share = |rank: usize| 100.0 * (rank + 1) as f64 / errors.len() as f64;
        let inside = errors.iter().enumerate().step_by(step).filter(|(_, error)| **error <= x_max);
        let mut points = vec![(FRAME.left, FRAME.bottom())];
        points.extend(inside.map(|(rank, error)| (FRAME.x(*error, x_max), FRAME.y(share(rank), 100.0))));
        svg.polyline(&points, &format!("series line{}", index % 8));
        let at = (FRAME.right() - 6.0, FRAME.bottom() - 12.0 - 15.0 * index as f64);
        svg.text(at, Anchor::End, &format!("label ink{}", index % 8), &model.name);
    }
    svg.finish()
}

fn residuals(index: usize, rows: &[&Row], name: &str) -> String {
    let points: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.measured_us, row.predicted_us[index]? - row.measured_us)))
        .collect();
    let x_most = points.iter().map(|(x, _)| *x).fold(1.0, f64::max);
    let y_most = points.iter().map(|(_, y)| y.abs()).fold(1.0, f64::max);
    let mut svg = Svg::new(WIDTH, FRAME.bottom() + 44.0, &format!("Residuals of {name}"));
    let y_ticks = ticks(y_most, 3);
    let y_max = y_ticks.last().copied().unwrap_or(1.0);
    let y = |value: f64| FRAME.y(value + y_max, 2.0 * y_max);
    let below = y_ticks.iter().skip(1).map(|tick| -tick);
    for tick in below.chain(y_ticks.iter().copied()) {
        svg.line((FRAME.left, y(tick)), (FRAME.right(), y(tick)), "grid");
        svg.text((FRAME.left - 6.0, y(tick) + 3.5), Anchor::End, "tick", &number(tick));
    }
    svg.text_upwards((FRAME.left - 44.0, FRAME.top + FRAME.height / 2.0), "Predicted − measured (µs)");
    let x_ticks = ticks(x_most, 6);
    let x_max = x_ticks.last().copied().unwrap_or(1.0);
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    for (measured, residual) in points.iter().step_by(step) {
        let class = if *residual < 0.0 { "dot late" } else { "dot" };
        let hint = format!("measured {} µs, error {} µs", number(*measured), number(*residual));
        svg.dot((FRAME.x(*measured, x_max), y(*residual)), class, &hint);
    }
    svg.line((FRAME.left, y(0.0)), (FRAME.right(), y(0.0)), "axis");
    bottom_axis(&mut svg, &x_ticks, x_max, "Measured (µs)");
    svg.finish()
}

fn bottom_axis(svg: &mut Svg, ticks: &[f64], max: f64, title: &str) {
    for tick in ticks {
        let at = (FRAME.x(*tick, max), FRAME.bottom() + 15.0);
        svg.text(at, Anchor::Middle, "tick", &number(*tick));
    }
    svg.line((FRAME.left, FRAME.bottom()), (FRAME.right(), FRAME.bottom()), "axis");
    svg.text((FRAME.left + FRAME.width / 2.0, FRAME.bottom() + 34.0), Anchor::Middle, "label", title);
}

/// The value that this share of the sorted values does not exceed.
fn at_share(sorted: &[f64], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let rank = (share * sorted.len() as f64) as usize;
    sorted.get(rank.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
