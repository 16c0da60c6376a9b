//! When frames finish between release and deadline, as a small histogram per app.

use takt_trace::summary::{PD_FFT_BIN, PD_FFT_BINS};
use takt_trace::{AppSummary, Summary};

use crate::html::percent;
use crate::svg::{Anchor, Frame, Sheet, Svg, sheet};

const FRAME: Frame = Frame { left: 40.0, top: 8.0, width: 270.0, height: 70.0 };
const WIDTH: f64 = FRAME.left + FRAME.width + 14.0;
const HEIGHT: f64 = FRAME.top + FRAME.height + 34.0;
/// Room for a title.
const TITLE: f64 = 18.0;

const STYLE: &str = "svg{background:#fff}text{font:10px system-ui,'DejaVu Sans',sans-serif;fill:#5f6b76}\
    .label{fill:#1c2126}.title{fill:#1c2126;font-weight:600;font-size:11px}.grid{stroke:#d5dbe1;stroke-width:.6}\
    .axis{stroke:#1c2126}.met{fill:#0072b2}.late{fill:#d55e00}.deadline{stroke:#1c2126;stroke-dasharray:4 3}";

/// The histogram of one app. Bins after the deadline have the colour of misses; the last one holds
/// everything from twice the allowed time on.
pub(crate) fn chart(app: &AppSummary, policy: &str) -> String {
    bins(&format!("When frames of {} finish under {policy}", app.name), &app.pd_fft)
}

/// The histogram of shares of the time from release to deadline.
pub(crate) fn bins(title: &str, bins: &[u64]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    let total: u64 = bins.iter().sum();
    let most = bins.iter().copied().max().unwrap_or(0);
    let top = share(most, total).max(0.01);
    axes(&mut svg, top);
    #[expect(clippy::cast_precision_loss, reason = "a constant number of bins")]
    let width = FRAME.width / PD_FFT_BINS as f64;
    let mut left = FRAME.left;
    let mut from = 0.0;
    for bin in bins.iter().take(PD_FFT_BINS) {
        if *bin > 0 {
            let y = FRAME.y(share(*bin, total), top).min(FRAME.bottom() - 1.0);
            let frame = Frame { left: left + 0.5, top: y, width: width - 1.0, height: FRAME.bottom() - y };
            let class = if from < 0.999 { "met" } else { "late" };
            svg.rect(frame, class, &hint(from, *bin, total));
        }
        left += width;
        from += PD_FFT_BIN;
    }
    svg.line((FRAME.left, FRAME.bottom()), (FRAME.right(), FRAME.bottom()), "axis");
    svg.finish()
}

/// The histograms of runs of one scenario as a picture that needs no page: a column for each run,
/// a row for each app. Of apps with a clock of their own, jobs take the place of frames.
pub(crate) fn picture(runs: &[Summary]) -> String {
    let apps = runs.first().map_or(0, |run| run.apps.len());
    let cells = (0..apps).flat_map(|row| runs.iter().filter_map(move |run| Some((run, run.apps.get(row)?))));
    let titled = |(run, app): (&Summary, &AppSummary)| {
        let title = format!("{} under {}", app.name, run.policy);
        let mut svg = Svg::new(WIDTH, HEIGHT + TITLE, &title);
        svg.text((FRAME.left, TITLE - 6.0), Anchor::Start, "title", &title);
        let placed = format!("<svg y=\"{TITLE:.0}\" width=\"{WIDTH:.0}\" height=\"{HEIGHT:.0}\" ");
        let shown = app.jobs.as_ref().map_or(&app.pd_fft, |jobs| &jobs.histogram);
        svg.nest(&bins(&title, shown).replacen("<svg ", &placed, 1));
        svg.finish()
    };
    let drawn: Vec<String> = cells.map(titled).collect();
    sheet(&drawn, Sheet { columns: runs.len().max(1), width: WIDTH, height: HEIGHT + TITLE, style: STYLE })
}

fn axes(svg: &mut Svg, top: f64) {
    svg.line((FRAME.left, FRAME.top), (FRAME.right(), FRAME.top), "grid");
    let at = (FRAME.left - 5.0, FRAME.top + 3.5);
    svg.text(at, Anchor::End, "tick", &format!("{:.0} %", top * 100.0));
    svg.text((FRAME.left - 5.0, FRAME.bottom() + 3.5), Anchor::End, "tick", "0");
    #[expect(clippy::cast_precision_loss, reason = "a constant number of bins")]
    let unit = FRAME.width / PD_FFT_BINS as f64 / PD_FFT_BIN;
    let deadline = FRAME.left + unit;
    svg.line((deadline, FRAME.top), (deadline, FRAME.bottom()), "deadline");
    for (share, label) in [(0.0, "0"), (0.5, "50"), (1.0, "100"), (1.5, "150"), (2.0, "≥ 200")] {
        let at = (FRAME.left + share * unit, FRAME.bottom() + 14.0);
        svg.text(at, Anchor::Middle, "tick", label);
    }
    let at = (FRAME.left + FRAME.width / 2.0, FRAME.bottom() + 29.0);
    svg.text(at, Anchor::Middle, "label", "Time used from release to deadline (%)");
}

fn hint(from: f64, bin: u64, total: u64) -> String {
    let low = (from * 100.0).round();
    let range = if from > 1.999 {
        format!("{low:.0} % or more")
    } else {
        format!("{low:.0} to {:.0} %", low + PD_FFT_BIN * 100.0)
    };
    format!("{range}: {bin} frames ({})", percent(share(bin, total)))
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
