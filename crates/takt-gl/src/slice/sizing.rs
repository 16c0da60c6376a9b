//! How large the next piece is to be.

use takt_core::Span;

use super::known::{Figures, YOUNG};

/// Pieces that only find out how long the draw is: the first lets the driver finish its
/// compilation, the second is measured.
pub(super) const PROBES: u32 = 2;

/// Their shares. Small enough for draws a hundred times as long as others, and large enough for
/// its time to tell something.
const PROBE: [f64; 2] = [1.0 / 256.0, 1.0 / 64.0];

/// How much larger a piece may be than the one before it, while little is known.
const GROWTH: f64 = 2.0;

/// No draw is cut into many more pieces than this.
const PIECES_MAX: f64 = 2048.0;

/// Whether a draw with these figures needs no cutting.
pub fn is_short(figures: &Figures, slice: Span) -> bool {
    figures.pieces >= PROBES && figures.whole_ns <= slice.as_ns() as f64
}

/// About how many pieces there will be.
pub(super) fn pieces(figures: &Figures, slice: Span) -> f64 {
    if figures.pieces < PROBES {
        return 1.0 / PROBE[1];
    }
    (figures.whole_ns / (slice.as_ns().max(1) as f64)).clamp(1.0, PIECES_MAX)
}

/// The share of the next piece, given that of the one before it in the same draw.
pub(super) fn share(figures: &Figures, budget: Span, before: Option<f64>) -> f64 {
    if figures.pieces < PROBES {
        return if figures.pieces == 0 && before.is_none() { PROBE[0] } else { PROBE[1] };
    }
    let fits = 1.0 / pieces(figures, budget);
    match before {
        Some(before) if figures.pieces < YOUNG => fits.min(before * GROWTH),
        _ => fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(whole_ms: f64, pieces: u32) -> Figures {
        Figures { whole_ns: whole_ms * 1e6, pieces }
    }

    const SLICE: Span = Span::from_ms(1);

    #[test]
    fn the_unknown_is_approached_in_small_steps() {
        assert_eq!(share(&figures(0.0, 0), SLICE, None), 1.0 / 256.0);
        assert_eq!(share(&figures(0.0, 1), SLICE, Some(1.0 / 256.0)), 1.0 / 64.0);
        assert_eq!(share(&figures(0.1, 2), SLICE, Some(1.0 / 64.0)), 1.0 / 32.0, "even if it seems short");
        assert_eq!(share(&figures(100.0, 2), SLICE, Some(1.0 / 64.0)), 1.0 / 100.0);
    }

    #[test]
    fn the_known_is_cut_to_fit() {
        assert_eq!(share(&figures(100.0, 50), SLICE, None), 1.0 / 100.0);
        assert_eq!(share(&figures(100.0, 50), Span::from_us(500), Some(1.0 / 100.0)), 1.0 / 200.0);
        assert_eq!(share(&figures(0.5, 50), SLICE, Some(0.01)), 1.0);
        assert_eq!(share(&figures(1e9, 50), SLICE, None), 1.0 / PIECES_MAX);
        assert!(is_short(&figures(1.0, 2), SLICE) && !is_short(&figures(1.1, 2), SLICE));
        assert!(!is_short(&figures(0.0, 0), SLICE), "nothing is known");
    }
}
