//! Met deadlines and frame rate of each app, as a pair of bars per priority.

use takt_trace::{AppSummary, Summary};

use crate::html::{percent, shortened};
use crate::svg::{Anchor, Frame, Svg, number, ticks};

const WIDTH: f64 = 640.0;
const FRAME: Frame = Frame { left: 56.0, top: 42.0, width: WIDTH - 56.0 - 60.0, height: 190.0 };
/// With more apps than this, numbers above the bars would run into each other.
const LABELLED_MAX: usize = 10;
/// Width that the number of a priority needs below its bars; some are left out if there is less.
const PRIORITY_ROOM: f64 = 22.0;
/// Bars do not get wider than this, however few there are.
const BAR_MAX: f64 = 34.0;

/// The picture for one run; `fps_max` is common to all runs, so that heights compare.
pub(crate) fn chart(summary: &Summary, fps_max: f64) -> String {
    let title = format!("Met deadlines and frame rate per app under {}", summary.policy);
    let mut svg = Svg::new(WIDTH, FRAME.bottom() + 60.0, &title);
    let fps_ticks = ticks(fps_max, 5);
    let fps_top = fps_ticks.last().copied().unwrap_or(1.0);
    svg.left_axis(FRAME, 100.0, &ticks(100.0, 5), "Met deadlines (%)");
    svg.right_axis(FRAME, fps_top, &fps_ticks, "Frame rate (FPS)");
    legend(&mut svg);

    let count = summary.apps.len().max(1);
    #[expect(clippy::cast_precision_loss, reason = "a number of apps is small")]
    let slot = FRAME.width / count as f64;
    let bar = (slot * 0.36).min(BAR_MAX);
    let labelled = count <= LABELLED_MAX;
    let mut middle = FRAME.left + slot / 2.0;
    let mut labelled_until = 0.0;
    for app in &summary.apps {
        pair(&mut svg, app, middle, bar, fps_top);
        if labelled {
            values(&mut svg, app, middle, bar, fps_top);
        }
        if middle >= labelled_until + PRIORITY_ROOM / 2.0 {
            x_labels(&mut svg, app, middle, slot);
            labelled_until = middle + PRIORITY_ROOM / 2.0;
        }
        middle += slot;
    }
    let (left, right) = ((FRAME.left, FRAME.bottom()), (FRAME.right(), FRAME.bottom()));
    svg.line(left, right, "axis");
    let at = (FRAME.left + FRAME.width / 2.0, FRAME.bottom() + 50.0);
    svg.text(at, Anchor::Middle, "label", "Priority (most important on the left)");
    svg.finish()
}

fn pair(svg: &mut Svg, app: &AppSummary, middle: f64, bar: f64, fps_top: f64) {
    let met_y = FRAME.y(app.met * 100.0, 100.0);
    let met = Frame { left: middle - bar, top: met_y, width: bar - 1.0, height: FRAME.bottom() - met_y };
    let hint = format!(
        "{}: {} of {} deadlines met ({})",
        app.name,
        app.deadlines.saturating_sub(app.missed),
        app.deadlines,
        percent(app.met)
    );
    svg.rect(met, "met", &hint);
    let fps_y = FRAME.y(app.fps, fps_top);
    let fps = Frame { left: middle + 1.0, top: fps_y, width: bar - 1.0, height: FRAME.bottom() - fps_y };
    let hint = format!("{}: {:.2} FPS of {}", app.name, app.fps, number(app.fps_target));
    svg.rect(fps, "fps", &hint);
    let target = FRAME.y(app.fps_target, fps_top);
    svg.line((middle - 1.0, target), (middle + bar + 2.0, target), "target");
}

fn values(svg: &mut Svg, app: &AppSummary, middle: f64, bar: f64, fps_top: f64) {
    let met = percent(app.met).replace(" %", "");
    let at = (middle - bar / 2.0 - 1.0, FRAME.y(app.met * 100.0, 100.0) - 4.0);
    svg.text(at, Anchor::Middle, "value", &met);
    let top = FRAME.y(app.fps.max(app.fps_target), fps_top);
    let at = (middle + bar / 2.0 + 1.0, top - 4.0);
    svg.text(at, Anchor::Middle, "value", &format!("{:.1}", app.fps));
}

fn x_labels(svg: &mut Svg, app: &AppSummary, middle: f64, slot: f64) {
    let at = (middle, FRAME.bottom() + 15.0);
    svg.text(at, Anchor::Middle, "tick", &app.priority.to_string());
    // About 6.2 units per character at this size; below four characters a name says nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
    let room = (slot / 6.2) as usize;
    if room >= 4 {
        let at = (middle, FRAME.bottom() + 29.0);
        svg.text(at, Anchor::Middle, "name", &shortened(&app.name, room));
    }
}

fn legend(svg: &mut Svg) {
    let square = |left| Frame { left, top: 6.0, width: 10.0, height: 10.0 };
    svg.rect(square(FRAME.left), "met", "");
    svg.text((FRAME.left + 15.0, 15.0), Anchor::Start, "tick", "met deadlines");
    svg.rect(square(FRAME.left + 110.0), "fps", "");
    svg.text((FRAME.left + 125.0, 15.0), Anchor::Start, "tick", "frame rate");
    let x = FRAME.left + 200.0;
    svg.line((x, 11.0), (x + 14.0, 11.0), "target");
    svg.text((x + 19.0, 15.0), Anchor::Start, "tick", "wanted frame rate");
}
