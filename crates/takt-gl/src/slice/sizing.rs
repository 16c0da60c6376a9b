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

/// What a piece may take by what is known, as a part of how long pieces may be, while little is: a draw that
/// seems this short is not approached any further.
const SURELY_SHORT: f64 = 1.0 / 16.0;

/// How long pieces are to be, as a part of how long they may be: some take longer than expected,
/// fewer of them once a draw is well known.
const AIM: f64 = 0.8;
const AIM_SETTLED: f64 = 0.95;

/// How much of what was granted beyond a piece is used, as pieces are not all alike; and from how much
/// of a piece on it is worth it.
const AIM_CREDIT: f64 = 0.9;
const WORTH: f64 = 0.25;

/// How much smaller and larger than that they are in turn, while little is known.
const LESS: f64 = 0.75;
const MORE: f64 = 1.25;

/// Pieces after which a draw is well known; then every so many-th one is smaller, to notice changes.
const SETTLED: u32 = 64;
const SMALLER_EVERY: u32 = 16;

/// No draw is cut into many more pieces than this.
const PIECES_MAX: f64 = 1024.0;

/// Whether a draw with these figures needs no cutting.
pub fn is_short(figures: &Figures, slice: Span) -> bool {
    is_known(figures) && figures.fixed_ns + figures.whole_ns <= slice.as_ns() as f64
}

/// Whether the figures say anything. Pieces can go unmeasured.
pub(super) fn is_known(figures: &Figures) -> bool {
    figures.pieces >= PROBES && figures.whole_ns > 0.0
}

/// About how many pieces there will be.
pub fn pieces(figures: &Figures, slice: Span) -> f64 {
    if !is_known(figures) {
        return 1.0 / PROBE[1];
    }
    // A piece that costs more to hand over than to draw is worth nothing.
    let aim = if figures.pieces < SETTLED { AIM } else { AIM_SETTLED };
    let own_ns = (slice.as_ns() as f64 * aim - figures.fixed_ns).max(figures.fixed_ns).max(1.0);
    (figures.whole_ns / own_ns).clamp(1.0, PIECES_MAX)
}

/// The share of the next piece, given that of the one before it in the same draw. Sizes alternate,
/// because pieces of one size would not tell what a piece costs however small it is.
pub(super) fn share(figures: &Figures, budget: Span, before: Option<f64>) -> f64 {
    if !is_known(figures) {
        return if figures.pieces == 0 && before.is_none() { PROBE[0] } else { PROBE[1] };
    }
    let fits = 1.0 / pieces(figures, budget);
    let settled = figures.pieces >= SETTLED;
    let smaller = figures.pieces.is_multiple_of(if settled { SMALLER_EVERY } else { 2 });
    let fits = match (smaller, settled) {
        (true, _) => fits * LESS,
        (false, false) => (fits * MORE).min(1.0),
        (false, true) => fits,
    };
    match before {
        Some(before) if figures.pieces < YOUNG => {
            let short = budget.as_ns() as f64 * SURELY_SHORT / figures.whole_ns;
            fits.min((before * GROWTH).max(short))
        }
        _ => fits,
    }
}

/// Whether a draw is so well known that its pieces need no trying.
pub(super) fn is_settled(figures: &Figures) -> bool {
    is_known(figures) && figures.pieces >= SETTLED
}

/// The share of a piece that uses what was granted, if anything was.
pub(super) fn within(figures: &Figures, credit: Span) -> Option<f64> {
    let own_ns = credit.as_ns() as f64 * AIM_CREDIT - figures.fixed_ns;
    (is_settled(figures) && own_ns > 0.0).then(|| (own_ns / figures.whole_ns).min(1.0))
}

/// The share of a further piece in a group that contains `group` of the draw and may take `credit`;
/// none if that is hardly more than it takes already.
pub(super) fn more(figures: &Figures, group: f64, credit: Span, slice: Span) -> Option<f64> {
    let left_ns = credit.as_ns() as f64 * AIM_CREDIT - figures.of_share(group).as_ns() as f64;
    (left_ns >= slice.as_ns() as f64 * WORTH).then(|| left_ns / figures.whole_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(whole_ms: f64, pieces: u32) -> Figures {
        Figures { whole_ns: whole_ms * 1e6, pieces, ..Figures::default() }
    }

    const SLICE: Span = Span::from_ms(1);

    #[test]
    fn the_unknown_is_approached_in_small_steps() {
        assert_eq!(share(&figures(0.0, 0), SLICE, None), 1.0 / 256.0);
        assert_eq!(share(&figures(0.0, 1), SLICE, Some(1.0 / 256.0)), 1.0 / 64.0);
        assert_eq!(share(&figures(0.0, 2), SLICE, Some(1.0 / 64.0)), 1.0 / 64.0, "none was measured");
        assert_eq!(share(&figures(1.0, 2), SLICE, Some(1.0 / 64.0)), 1.0 / 16.0, "a sixteenth of a slice");
        assert_eq!(
            share(&figures(4.0, 2), SLICE, Some(1.0 / 64.0)),
            1.0 / 32.0,
            "no more than twice as much"
        );
        assert_eq!(share(&figures(0.05, 2), SLICE, Some(1.0 / 64.0)), 0.75, "what is very short is drawn");
        assert_eq!(share(&figures(80.0, 2), SLICE, Some(1.0 / 64.0)), 0.0075);
    }

    #[test]
    fn the_known_is_cut_to_fit() {
        assert_eq!(share(&figures(80.0, 50), SLICE, None), 0.0075);
        assert_eq!(share(&figures(80.0, 51), SLICE, None), 0.0125);
        assert_eq!(share(&figures(80.0, 51), Span::from_us(500), Some(0.01)), 0.00625);
        assert_eq!(share(&figures(0.5, 51), SLICE, Some(0.01)), 1.0);
        assert_eq!(share(&figures(1e9, 50), SLICE, None), 0.75 / PIECES_MAX);
        assert!(is_short(&figures(1.0, 2), SLICE) && !is_short(&figures(1.1, 2), SLICE));
        assert!(!is_short(&figures(0.0, 0), SLICE), "nothing is known");
    }

    #[test]
    fn what_was_granted_beyond_a_piece_is_used() {
        let known = figures(100.0, SETTLED);
        assert!(is_settled(&known) && !is_settled(&figures(100.0, SETTLED - 1)));
        assert_eq!(more(&known, 0.01, Span::from_us(1100), SLICE), None, "hardly more");
        let share = more(&known, 0.01, Span::from_ms(4), SLICE).expect("much is left");
        assert!((share - 0.026).abs() < 1e-9, "{share}");
        assert_eq!(more(&known, 0.036, Span::from_ms(4), SLICE), None, "it is used up");
    }

    #[test]
    fn pieces_are_never_mostly_overhead() {
        let costly = |fixed_ns| Figures { fixed_ns, ..figures(10.0, 50) };
        assert_eq!(pieces(&costly(300_000.0), SLICE), 20.0, "0.3 ms to hand over, 0.5 ms to draw");
        assert_eq!(pieces(&costly(2_000_000.0), SLICE), 5.0, "as much to draw as to hand over");
        assert!(!is_short(&Figures { fixed_ns: 500_000.0, ..figures(0.6, 2) }, SLICE));
    }
}
