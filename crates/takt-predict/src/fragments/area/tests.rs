use proptest::prelude::*;

use super::super::view::{Cull, RasterState, Rect};
use super::*;

const TRIANGLE: [[f32; 4]; 3] = [[-1.0, -1.0, 0.0, 1.0], [1.0, -1.0, 0.0, 1.0], [-1.0, 1.0, 0.0, 1.0]];

fn view(change: impl FnOnce(&mut RasterState)) -> View {
    let mut state = RasterState::new(800, 600);
    change(&mut state);
    View::new(&state)
}

#[test]
fn half_the_target() {
    assert_eq!(view(|_| ()).triangle(&TRIANGLE), 240_000.0);
}

#[test]
fn a_scissor_cuts() {
    let scissor = Some(Rect { x: 0, y: 0, width: 400, height: 300 });
    let fragments = view(|state| state.scissor = scissor).triangle(&TRIANGLE);
    assert!((fragments - 120_000.0).abs() < 1e-6, "{fragments}");
}

#[test]
fn a_triangle_larger_than_the_target_is_the_target() {
    let large = TRIANGLE.map(|[x, y, z, w]| [x * 100.0 + 50.0, y * 100.0 + 50.0, z, w]);
    let fragments = view(|_| ()).triangle(&large);
    assert!((fragments - 480_000.0).abs() < 1e-6, "{fragments}");
}

#[test]
fn back_faces_vanish_when_culled() {
    let [a, b, c] = TRIANGLE;
    let culled = view(|state| state.cull = Cull::Back);
    assert_eq!(culled.triangle(&[a, c, b]), 0.0);
    assert_eq!(culled.triangle(&[a, b, c]), 240_000.0);
}

#[test]
fn a_line_counts_its_longer_axis() {
    let ends = [[-1.0, -1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 1.0]];
    assert_eq!(view(|_| ()).line(&ends), 800.0);
    assert_eq!(view(|state| state.line_width = 3.2).line(&ends), 2400.0);
}

#[test]
fn a_point_is_a_square_cut_by_the_target() {
    let sized = view(|state| state.point_size = 10.0);
    assert_eq!(sized.point(&[0.0, 0.0, 0.0, 1.0]), 100.0);
    assert_eq!(sized.point(&[-1.0, -1.0, 0.0, 1.0]), 25.0);
    assert_eq!(sized.point(&[-1.1, 0.0, 0.0, 1.0]), 0.0);
}

#[test]
fn a_thin_triangle_of_an_untrusted_app_counts_its_length() {
    let thin = [[-1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0], [1.0, 1e-5, 0.0, 1.0]];
    assert!(view(|_| ()).triangle(&thin) < 2.0);
    assert_eq!(view(|state| state.trust = Trust::Untrusted).triangle(&thin), 801.0);
}

#[test]
fn what_is_no_number_counts_nothing_or_everything() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut triangle = TRIANGLE;
        triangle[1][0] = bad;
        assert_eq!(view(|_| ()).triangle(&triangle), 0.0);
        assert_eq!(view(|state| state.trust = Trust::Untrusted).triangle(&triangle), 480_000.0);
    }
}

fn any_vertex() -> impl Strategy<Value = [f32; 4]> {
    prop_oneof![
        4 => prop::array::uniform4(-3.0f32..3.0),
        1 => prop::array::uniform4(any::<f32>()),
    ]
}

fn any_state() -> impl Strategy<Value = RasterState> {
    let rect = (-50i32..900, -50i32..700, 0u32..1000, 0u32..800).prop_map(|(x, y, width, height)| Rect {
        x,
        y,
        width,
        height,
    });
    let trust = prop_oneof![Just(Trust::Trusted), Just(Trust::Untrusted)];
    let size = prop_oneof![0.0f32..20.0, any::<f32>()];
    (rect.clone(), prop::option::of(rect), trust, size.clone(), size).prop_map(
        |(viewport, scissor, trust, line_width, point_size)| RasterState {
            viewport,
            scissor,
            trust,
            line_width,
            point_size,
            ..RasterState::new(800, 600)
        },
    )
}

proptest! {
    #[test]
    fn nothing_is_negative_or_beyond_the_visible(
        state in any_state(),
        triangle in prop::array::uniform3(any_vertex()),
    ) {
        let view = View::new(&state);
        let [a, b, _] = triangle;
        for fragments in [view.triangle(&triangle), view.line(&[a, b])] {
            prop_assert!((0.0..=view.visible()).contains(&fragments), "{fragments}");
        }
        let drawable = 800.0 * 600.0;
        prop_assert!((0.0..=drawable).contains(&view.point(&a)));
    }

    #[test]
    fn clipping_never_gains_area(
        corners in prop::array::uniform3((-4.0f32..4.0, -4.0f32..4.0, -1.0f32..1.0, 0.5f32..2.0)),
        state in any_state(),
    ) {
        let triangle = corners.map(|(x, y, z, w)| [x, y, z * w, w]);
        let state = RasterState { trust: Trust::Trusted, ..state };
        let view = View::new(&state);
        let window = triangle.map(|vertex| view.window(&vertex.map(f64::from)));
        let whole = twice_area(window.into_iter()).abs() / 2.0;
        // Cutting computes new corners; what rounding does to them grows with the coordinates.
        let far = window.iter().flatten().fold(1.0f64, |far, coordinate| far.max(coordinate.abs()));
        prop_assert!(view.triangle(&triangle) <= whole + 1e-6 * far * far.min(1e4));
    }

    #[test]
    fn the_parts_of_a_cut_triangle_add_up(
        corners in prop::array::uniform3((-2.0f32..2.0, -2.0f32..2.0, -2.0f32..2.0, -1.0f32..2.0)),
        split in 1u32..800,
    ) {
        // The left and the right part of the target, by scissor, together show what all of it does.
        let triangle = corners.map(|(x, y, z, w)| [x, y, z, w]);
        let part = |x: i32, width: u32| {
            view(|state| state.scissor = Some(Rect { x, y: 0, width, height: 600 })).triangle(&triangle)
        };
        let whole = view(|_| ()).triangle(&triangle);
        let sum = part(0, split) + part(i32::try_from(split).unwrap(), 800 - split);
        // Areas are differences of large products, so thin triangles lose some digits.
        prop_assert!((whole - sum).abs() <= 1e-3 * whole.max(1.0), "{whole} {sum}");
    }
}
