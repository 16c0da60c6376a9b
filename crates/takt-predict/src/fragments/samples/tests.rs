use proptest::prelude::*;

use super::super::{
    Attribute, BufferId, Elements, Format, MatrixPosition, Mode, PositionSource, RasterState, Trust,
};
use super::*;

const IDENTITY: MatrixPosition =
    MatrixPosition([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);

fn bytes(points: &[[f32; 4]]) -> Vec<u8> {
    points.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect()
}

fn draw(bytes: &[u8], mode: Mode, key: Option<u64>) -> Draw<'_> {
    let count = u32::try_from(bytes.len() / 16).unwrap();
    let key = key.map(|buffer| RangeKey {
        positions: BufferId { buffer, generation: 0 },
        layout: 0,
        indices: None,
        first: 0,
        count,
        mode,
    });
    let positions = Attribute { bytes, offset: 0, stride: 0, components: 4, format: Format::F32 };
    Draw { mode, elements: Elements::Arrays { first: 0 }, count, instances: 1, positions, key }
}

fn with_scene<T>(trust: Trust, run: impl FnOnce(&Scene<'_>) -> T) -> T {
    let view = View::new(&RasterState { trust, ..RasterState::new(100, 100) });
    run(&Scene { view: &view, position: &IDENTITY })
}

const QUAD: [[f32; 4]; 4] =
    [[-0.5, -0.5, 0.0, 1.0], [0.5, -0.5, 0.0, 1.0], [-0.5, 0.5, 0.0, 1.0], [0.5, 0.5, 0.0, 1.0]];

#[test]
fn shapes_of_one_batch_add_up() {
    let quad = bytes(&QUAD);
    with_scene(Trust::Trusted, |scene| {
        let mut ts = TriangleSamples::default();
        for mode in [Mode::TriangleStrip, Mode::Points, Mode::LineStrip, Mode::TriangleStrip] {
            ts.record(&draw(&quad, mode, None), scene);
        }
        assert_eq!(ts.take(scene), Some(2500.0 + 4.0 + 150.0 + 2500.0));
        assert_eq!(ts.take(scene), Some(0.0));
    });
}

#[test]
fn instances_multiply() {
    let quad = bytes(&QUAD);
    with_scene(Trust::Trusted, |scene| {
        for key in [None, Some(1)] {
            let mut ts = TriangleSamples::default();
            ts.record(&draw(&quad, Mode::TriangleStrip, None), scene);
            ts.record(&Draw { instances: 3, ..draw(&quad, Mode::TriangleStrip, key) }, scene);
            ts.record(&Draw { instances: 0, ..draw(&quad, Mode::TriangleStrip, key) }, scene);
            assert_eq!(ts.take(scene), Some(4.0 * 2500.0));
        }
    });
}

#[test]
fn a_known_range_is_not_read_again() {
    let quad = bytes(&QUAD);
    let gone = vec![0; quad.len()];
    with_scene(Trust::Trusted, |scene| {
        let mut ts = TriangleSamples::default();
        ts.record(&draw(&quad, Mode::TriangleStrip, Some(1)), scene);
        ts.record(&draw(&gone, Mode::TriangleStrip, Some(1)), scene);
        ts.record(&draw(&gone, Mode::TriangleStrip, Some(2)), scene);
        assert_eq!(ts.take(scene), Some(5000.0));
    });
}

#[test]
fn ranges_beyond_what_is_kept_are_extrapolated_too() {
    let many: Vec<[f32; 4]> = QUAD[..3].iter().copied().cycle().take(3 * 140_000).collect();
    let many = bytes(&many);
    with_scene(Trust::Trusted, |scene| {
        let mut ts = TriangleSamples::default();
        for key in [None, Some(1), Some(1)] {
            ts.record(&draw(&many, Mode::Triangles, key), scene);
            let fragments = ts.take(scene).unwrap();
            assert!((fragments / (140_000.0 * 1250.0) - 1.0).abs() < 1e-5, "{fragments}");
        }
    });
}

/// Every second triangle covers an eighth of the target, by its number alone.
struct Numbered {
    needs_draw: bool,
}

impl PositionSource for Numbered {
    fn positions(&self, _instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]) {
        for (vertex, clip) in vertices.iter().zip(clip) {
            *clip = if vertex.index / 3 % 2 == 0 { QUAD[(vertex.index % 3) as usize] } else { QUAD[0] };
        }
    }

    fn is_projective(&self) -> bool {
        false
    }

    fn needs_draw(&self) -> bool {
        self.needs_draw
    }
}

#[test]
fn however_many_primitives_there_are_some_will_do() {
    let view = View::new(&RasterState::new(100, 100));
    for (needs_draw, count) in [(true, 90_000), (true, u32::MAX), (false, 30_000_000), (false, u32::MAX)] {
        let scene = Scene { view: &view, position: &Numbered { needs_draw } };
        let mut ts = TriangleSamples::default();
        ts.record(&Draw { count, ..draw(&[], Mode::Triangles, None) }, &scene);
        let fragments = ts.take(&scene).unwrap();
        let expected = f64::from(count / 3) * 1250.0 / 2.0;
        let tolerance = if needs_draw { 0.1 } else { 0.02 };
        assert!((fragments / expected - 1.0).abs() < tolerance, "{count}: {fragments}");
    }
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Points),
        Just(Mode::Lines),
        Just(Mode::LineStrip),
        Just(Mode::LineLoop),
        Just(Mode::Triangles),
        Just(Mode::TriangleStrip),
        Just(Mode::TriangleFan),
    ]
}

fn any_trust() -> impl Strategy<Value = Trust> {
    prop_oneof![Just(Trust::Trusted), Just(Trust::Untrusted)]
}

proptest! {
    #[test]
    fn any_bytes_give_a_number_within_reason(
        bytes in prop::collection::vec(any::<u8>(), 0..4096),
        count in prop_oneof![8 => 0u32..600, 1 => Just(300_000), 1 => Just(u32::MAX)],
        mode in any_mode(),
        trust in any_trust(),
        key in prop::option::of(0u64..3),
    ) {
        with_scene(trust, |scene| {
            let mut ts = TriangleSamples::default();
            for _ in 0..2 {
                let draw = Draw { count, ..draw(&bytes, mode, key) };
                ts.record(&draw, scene);
                let fragments = ts.take(scene).unwrap();
                let most = f64::from(draw.primitives()) * scene.view.visible();
                // Weights of samples have single precision.
                prop_assert!((0.0..=most * (1.0 + 1e-6)).contains(&fragments), "{}", fragments);
            }
            Ok(())
        })?;
    }

    #[test]
    fn batches_do_not_depend_on_how_draws_are_cut(
        points in prop::collection::vec(prop::array::uniform4(-1.0f32..1.0), 3..2000),
        cut in 0usize..600,
    ) {
        let bytes = bytes(&points);
        let cut = (cut * 48).min(bytes.len() / 48 * 48);
        with_scene(Trust::Trusted, |scene| {
            let mut ts = TriangleSamples::default();
            ts.record(&draw(&bytes, Mode::Triangles, None), scene);
            let whole = ts.take(scene);
            ts.record(&draw(&bytes[..cut], Mode::Triangles, None), scene);
            ts.record(&draw(&bytes[cut..], Mode::Triangles, None), scene);
            prop_assert_eq!(ts.take(scene), whole);
            Ok(())
        })?;
    }
}
