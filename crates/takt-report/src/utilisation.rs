//! How busy the GPU was, window by window.

use takt_trace::Summary;

use crate::html::percent;
use crate::svg::{Anchor, Frame, Svg, number, ticks};

const WIDTH: f64 = 640.0;
const FRAME: Frame = Frame { left: 56.0, top: 14.0, width: WIDTH - 56.0 - 60.0, height: 150.0 };
/// With more windows than this, dots hide the line.
const DOTS_MAX: usize = 120;
/// More points than the picture has room for are thinned out to their extremes.
const POINTS_MAX: usize = 600;

/// The picture for one run; `seconds` is common to all runs, so that they align.
pub(crate) fn chart(summary: &Summary, seconds: f64) -> String {
    let gpu = &summary.gpu;
    let title = format!(
        "GPU utilisation over time under {}, {} on average",
        summary.policy,
        percent(gpu.utilisation)
    );
    let mut svg = Svg::new(WIDTH, FRAME.bottom() + 44.0, &title);
    svg.left_axis(FRAME, 100.0, &ticks(100.0, 5), "GPU utilisation (%)");
    let x_ticks = ticks(seconds, 8);
    let x_max = x_ticks.last().copied().unwrap_or(1.0);
    for tick in &x_ticks {
        let at = (FRAME.x(*tick, x_max), FRAME.bottom() + 15.0);
        svg.text(at, Anchor::Middle, "tick", &number(*tick));
    }
    let mean = FRAME.y(gpu.utilisation, 1.0);
    svg.line((FRAME.left, mean), (FRAME.right(), mean), "mean");
    let at = (FRAME.right() + 5.0, mean + 3.5);
    svg.text(at, Anchor::Start, "value", &format!("ø {}", percent(gpu.utilisation)));

    let points = points(summary);
    let place = |(time, share): &(f64, f64)| (FRAME.x(*time, x_max), FRAME.y(*share, 1.0));
    let drawn: Vec<(f64, f64)> = points.iter().map(place).collect();
    svg.polyline(&drawn, "series");
    if points.len() <= DOTS_MAX {
        for (point, at) in points.iter().zip(&drawn) {
            let hint = format!("{} s: {}", number(point.0), percent(point.1));
            svg.dot(*at, "dot", &hint);
        }
    }
    svg.line((FRAME.left, FRAME.bottom()), (FRAME.right(), FRAME.bottom()), "axis");
    let at = (FRAME.left + FRAME.width / 2.0, FRAME.bottom() + 34.0);
    let label = format!("Time (s), one point per {} s", number(gpu.window_s));
    svg.text(at, Anchor::Middle, "label", &label);
    svg.finish()
}

/// (middle of the window in seconds, share), thinned out if there are too many.
fn points(summary: &Summary) -> Vec<(f64, f64)> {
    let shares = &summary.gpu.utilisation_windows;
    let mut points = Vec::with_capacity(shares.len());
    let mut middle = summary.gpu.windows_from_s + summary.gpu.window_s / 2.0;
    for share in shares {
        points.push((middle, *share));
        middle += summary.gpu.window_s;
    }
    if points.len() <= POINTS_MAX {
        return points;
    }
    let bucket = points.len().div_ceil(POINTS_MAX / 2);
    points.chunks(bucket).flat_map(extremes).collect()
}

/// The lowest and the highest point, in order of time: thinning must not hide a dip.
fn extremes(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let by_share = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let low = points.iter().min_by(by_share).copied();
    let high = points.iter().max_by(by_share).copied();
    let mut both: Vec<(f64, f64)> = low.into_iter().chain(high).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    both.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_dips() {
        let points = [(0.5, 0.9), (1.5, 0.1), (2.5, 0.95), (3.5, 0.9)];
        let kept: Vec<_> = extremes(&points).collect();
        assert_eq!(kept, [(1.5, 0.1), (2.5, 0.95)]);
    }
}
