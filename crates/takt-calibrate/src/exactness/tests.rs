use super::*;
use crate::Place;
use takt_predict::exactness::States;

fn states(list: &[State]) -> States {
    list.iter().fold(States::NONE, |set, state| set.with(*state))
}

/// Mesa's llvmpipe draws points of surfaces beyond the scissor, and samples at edges of boxes twice. Both must be
/// found, and nothing else: what is exact is cut.
#[test]
fn the_self_test_finds_where_a_driver_is_inexact() {
    let bench = Bench::open(Place::Auto).expect("a driver");
    if !bench.gpu().contains("llvmpipe") {
        return;
    }
    let found = exactness(&bench).expect("a driver of GL ES 3.0");
    assert_eq!(bench.gl.error(), 0);
    let text = found.to_text();
    let all_but = |left_out: &[State]| {
        let kept: Vec<State> = State::ALL.into_iter().filter(|state| !left_out.contains(state)).collect();
        states(&kept)
    };
    for samples in [1, 4] {
        let draws = all_but(&[State::Clear, State::Blit]);
        assert!(found.is_exact(Way::Ranges, samples, draws), "{samples}: {text}");
    }
    assert!(found.is_exact(Way::Boxes, 1, all_but(&[State::Points, State::Feedback])), "{text}");
    if bench.driver().contains("Mesa 22.3") {
        for (samples, state) in
            [(1, State::Points), (4, State::Triangles), (4, State::Blend), (4, State::WideLines)]
        {
            assert!(!found.is_exact(Way::Boxes, samples, state.into()), "{samples} {state}: {text}");
        }
    }
    assert!(!found.is_exact(Way::Ranges, 32, State::Triangles.into()), "never tried");
}
