//! When frames finish between release and deadline, as a small histogram per app.

use takt_trace::AppSummary;
use takt_trace::summary::{PD_FFT_BIN, PD_FFT_BINS};

use crate::html::percent;
use crate::svg::{Anchor, Frame, Svg};

const FRAME: Frame = Frame { left: 40.0, top: 8.0, width: 270.0, height: 70.0 };

/// The histogram of one app. Bins after the deadline have the colour of misses; the last one holds
/// everything from twice the allowed time on.
pub(crate) fn chart(app: &AppSummary, policy: &str) -> String {
    bins(&format!("When frames of {} finish under {policy}", app.name), &app.pd_fft)
}

/// The histogram of shares of the time from release to deadline.
pub(crate) fn bins(title: &str, bins: &[u64]) -> String {
    let mut svg = Svg::new(FRAME.right() + 14.0, FRAME.bottom() + 34.0, title);
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
