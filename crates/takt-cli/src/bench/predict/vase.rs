//! A model of 14 000 triangles.

/// Rings and sectors of the model, which has two triangles for each pair.
const RINGS: u32 = 70;
const SECTORS: u32 = 100;
/// Triangles.
pub(super) const TRIANGLES: u32 = 2 * RINGS * SECTORS;

/// A vase.
pub(super) fn model() -> Vec<u8> {
    let point = |ring: u32, sector: u32| {
        let height = f64::from(ring) / f64::from(RINGS);
        let angle = std::f64::consts::TAU * f64::from(sector) / f64::from(SECTORS);
        let radius = 0.4 + 0.2 * (6.0 * height).sin();
        #[expect(clippy::cast_possible_truncation, reason = "vertices have single precision")]
        let point =
            [radius * angle.cos(), 1.6 * height - 0.8, radius * angle.sin()].map(|value| value as f32);
        point
    };
    let quads = (0..RINGS).flat_map(|ring| (0..SECTORS).map(move |sector| (ring, sector)));
    let vertices = quads.flat_map(|(ring, sector)| {
        let [a, b] = [point(ring, sector), point(ring, sector + 1)];
        let [c, d] = [point(ring + 1, sector + 1), point(ring + 1, sector)];
        [a, c, b, a, d, c]
    });
    vertices.flatten().flat_map(f32::to_ne_bytes).collect()
}
