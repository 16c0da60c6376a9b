//! A made-up city that repeats after some tiles, so that a drive through it never ends.
//!
//! Crossings lie on a grid and are moved a little; streets are smooth curves through them. All is
//! computed from a seed and whole coordinates, modulo the size of the city.

use crate::shape::{Point, length, minus, plus, times};

/// Tiles along each side of the city; a tile is one unit long.
pub(super) const TILES: i32 = 6;
/// Crossings along each side of a tile.
const CROSSINGS: i32 = 4;
const ALL_CROSSINGS: i32 = TILES * CROSSINGS;
/// Main streets are every fourth one.
const MAIN: i32 = 4;
/// The street along which the car drives.
const ROUTE: i32 = 10;
/// Pieces of a curve from one crossing to the next.
const PIECES: u16 = 5;
/// Crossings that the car passes per second.
const PACE: f32 = 0.75;

/// What is drawn one above the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    Park,
    Water,
    LaneEdge,
    MainEdge,
    Lane,
    Main,
    Route,
    House,
}

impl Layer {
    /// All that lies on the ground, in the order of drawing.
    pub(super) const FLAT: [Self; 7] =
        [Self::Park, Self::Water, Self::LaneEdge, Self::MainEdge, Self::Lane, Self::Main, Self::Route];

    pub(super) const fn colour(self) -> u32 {
        match self {
            Self::Park => 0x24_4A_36,
            Self::Water => 0x1C_4F_7E,
            Self::LaneEdge | Self::MainEdge => 0x0E_13_19,
            Self::Lane => 0x3E_4A_58,
            Self::Main => 0x8B_98_A8,
            Self::Route => 0x2F_9B_FF,
            Self::House => 0x66_78_90,
        }
    }

    /// Half of a street's width.
    const fn half_width(self) -> f32 {
        match self {
            Self::LaneEdge => 0.022,
            Self::Lane => 0.017,
            Self::MainEdge => 0.034,
            Self::Main => 0.028,
            _ => 0.016,
        }
    }
}

/// Vertices (position, two more) and indices.
#[derive(Clone, Default, Debug)]
pub(super) struct Triangles {
    pub(super) vertices: Vec<f32>,
    pub(super) indices: Vec<u16>,
}

impl Triangles {
    fn vertex(&mut self, [x, y]: Point, z: f32, extra: Point) {
        self.vertices.extend([x, y, z, extra[0], extra[1]]);
    }

    /// A face with four corners in order.
    fn face(&mut self, corners: [(Point, f32, Point); 4]) {
        let first = u16::try_from(self.vertices.len() / 5).expect("tiles are small");
        corners.into_iter().for_each(|(place, z, extra)| self.vertex(place, z, extra));
        self.indices.extend([0, 1, 2, 0, 2, 3].map(|index| first + index));
    }

    /// A band along a line; `extra` is -1 to 1 across, or the place times a factor.
    fn band(&mut self, line: &[Point], half: f32, texture: Option<f32>) {
        let side = |index: usize| {
            let (before, after) = (line[index.saturating_sub(1)], line[(index + 1).min(line.len() - 1)]);
            let way = minus(after, before);
            times([-way[1], way[0]], half / length(way).max(1e-6))
        };
        let extra = |place: Point, across: f32| texture.map_or([across, 0.0], |factor| times(place, factor));
        for index in 1..line.len() {
            let (from, to) = (line[index - 1], line[index]);
            let (a, b) = (side(index - 1), side(index));
            let corner = |place: Point, across| (place, 0.0, extra(place, across));
            self.face([
                corner(minus(from, a), -1.0),
                corner(minus(to, b), -1.0),
                corner(plus(to, b), 1.0),
                corner(plus(from, a), 1.0),
            ]);
        }
    }
}

/// Everything on a tile, from its lower left corner.
pub(super) struct Tile {
    pub(super) layers: Vec<(Layer, Triangles)>,
}

/// What a sign shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SignKind {
    /// A street's name, by number.
    Name(usize),
    /// A place of interest, by number.
    Place(usize),
}

/// A name or a sign on the map.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sign {
    pub(super) place: Point,
    pub(super) height: f32,
    pub(super) kind: SignKind,
}

/// The city.
pub(super) struct City {
    seed: u32,
}

impl City {
    pub(super) const fn new(seed: u32) -> Self {
        Self { seed }
    }

    /// A number from 0 to 1 for a place and a purpose.
    pub(super) fn chance(&self, place: i32, purpose: u32) -> f32 {
        let mut bits =
            place.cast_unsigned().wrapping_mul(0x9E37_79B1) ^ purpose.wrapping_mul(0x85EB_CA77) ^ self.seed;
        for multiplier in [0x7FEB_352D_u32, 0x846C_A68B] {
            bits = (bits ^ bits >> 16).wrapping_mul(multiplier);
        }
        ((bits ^ bits >> 16) >> 8) as f32 / (1_u32 << 24) as f32
    }

    /// The chance of a crossing or the block above and right of it, the same in every round.
    fn at(&self, column: i32, row: i32, purpose: u32) -> f32 {
        self.chance(column.rem_euclid(ALL_CROSSINGS) + row.rem_euclid(ALL_CROSSINGS) * ALL_CROSSINGS, purpose)
    }

    fn crossing(&self, column: i32, row: i32) -> Point {
        let shift = |purpose| (self.at(column, row, purpose) - 0.5) * 0.36;
        times([column as f32 + shift(1), row as f32 + shift(2)], 1.0 / CROSSINGS as f32)
    }

    /// A point on the curve from crossing to crossing; `step` leads from each to the next.
    fn curve(&self, from: (i32, i32), step: (i32, i32), share: f32) -> Point {
        let knot = |index: i32| self.crossing(from.0 + step.0 * index, from.1 + step.1 * index);
        let (t, t2, t3) = (share, share * share, share * share * share);
        let weights = [-t3 + 2.0 * t2 - t, 3.0 * t3 - 5.0 * t2 + 2.0, -3.0 * t3 + 4.0 * t2 + t, t3 - t2];
        let parts = (-1..3).zip(weights).map(|(index, weight)| times(knot(index), weight / 2.0));
        parts.fold([0.0; 2], plus)
    }

    /// The middle of the river: a wave along x.
    fn river(x: f32) -> Point {
        let wave = (x / TILES as f32 * std::f32::consts::TAU).sin();
        let ripple = (x / TILES as f32 * std::f32::consts::TAU * 3.0).sin();
        [x, 2.6 + 0.55 * wave + 0.12 * ripple]
    }

    /// Whether a place is on the river or on its banks of this width.
    fn on_river(place: Point, banks: f32) -> bool {
        let y = place[1].rem_euclid(TILES as f32);
        (y - Self::river(place[0])[1]).abs() < RIVER_HALF + banks
    }

    /// Where the car is, and where it heads, at a time.
    pub(super) fn car(&self, time: f32) -> (Point, f32) {
        let at = |passed: f32| {
            #[expect(clippy::cast_possible_truncation, reason = "the car does not get that far")]
            let row = passed.floor() as i32;
            self.curve((ROUTE, row), (0, 1), passed - passed.floor())
        };
        let passed = (time * PACE).rem_euclid(ALL_CROSSINGS as f32);
        // The view turns calmly: it looks at where the car will be.
        let way = minus(at(passed + 0.9), at(passed - 0.3));
        (at(passed), way[1].atan2(way[0]))
    }

    /// All layers of a tile.
    pub(super) fn tile(&self, column: i32, row: i32) -> Tile {
        let origin = [column as f32, row as f32];
        let corner = (column * CROSSINGS, row * CROSSINGS);
        let mut layers: Vec<(Layer, Triangles)> = Vec::new();
        let mut add = |layer, triangles: Triangles| {
            if !triangles.indices.is_empty() {
                layers.push((layer, triangles));
            }
        };
        let (parks, houses) = self.blocks(corner, origin);
        add(Layer::Park, parks);
        add(Layer::Water, water(column, row));
        for layer in [Layer::LaneEdge, Layer::MainEdge, Layer::Lane, Layer::Main, Layer::Route] {
            add(layer, self.streets(layer, corner, origin));
        }
        add(Layer::House, houses);
        Tile { layers }
    }

    fn streets(&self, layer: Layer, corner: (i32, i32), origin: Point) -> Triangles {
        let mut bands = Triangles::default();
        for (column, row) in crossings(corner) {
            for step in [(1_i32, 0_i32), (0, 1)] {
                // A street is known by the coordinate that stays.
                let line = if step.0 == 1 { row } else { column };
                let is_main = line.rem_euclid(MAIN) == 2;
                let is_route = step.1 == 1 && line.rem_euclid(ALL_CROSSINGS) == ROUTE;
                // Lanes cross the river, but do not run along it.
                let wet = step.0 == 1 && Self::on_river(self.curve((column, row), step, 0.5), 0.0);
                let gone = wet || self.at(column, row, 10 + step.0.cast_unsigned()) < 0.16;
                let wanted = match layer {
                    Layer::Main | Layer::MainEdge => is_main,
                    Layer::Route => is_route,
                    _ => !is_main && !gone,
                };
                if wanted {
                    let share = |piece: u16| f32::from(piece) / f32::from(PIECES);
                    let line: Vec<Point> = (0..=PIECES)
                        .map(|piece| minus(self.curve((column, row), step, share(piece)), origin))
                        .collect();
                    bands.band(&line, layer.half_width(), None);
                }
            }
        }
        bands
    }

    /// Parks and houses between the streets.
    fn blocks(&self, corner: (i32, i32), origin: Point) -> (Triangles, Triangles) {
        let (mut parks, mut houses) = (Triangles::default(), Triangles::default());
        for (column, row) in crossings(corner) {
            let corners = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(x, y)| self.crossing(column + x, row + y));
            let middle = times(corners.iter().copied().fold([0.0; 2], plus), 0.25);
            if self.at(column, row, 3) < 0.17 {
                let grown = corners.map(|corner| (minus(corner, origin), 0.0, times(corner, 2.0)));
                parks.face(grown);
            } else if !Self::on_river(middle, 0.14) {
                self.lots(&mut houses, (column, row), corners.map(|corner| minus(corner, origin)));
            }
        }
        (parks, houses)
    }

    /// A block's houses, on lots in two rows.
    fn lots(&self, houses: &mut Triangles, (column, row): (i32, i32), block: [Point; 4]) {
        for lot in 0..6_u32 {
            if self.at(column, row, 20 + lot) < 0.15 {
                continue;
            }
            let (x, y) = ((lot % 3) as f32, (lot / 3) as f32);
            let grow = self.at(column, row, 30 + lot) * 0.05;
            let within = |u: f32, v: f32| {
                let (u, v) = (0.17 + 0.66 * u, 0.17 + 0.66 * v);
                let low = plus(times(block[0], 1.0 - u), times(block[1], u));
                let high = plus(times(block[3], 1.0 - u), times(block[2], u));
                plus(times(low, 1.0 - v), times(high, v))
            };
            let (left, right) = ((x + 0.10 - grow) / 3.0, (x + 0.90 + grow) / 3.0);
            let (low, high) = ((y + 0.10 - grow) / 2.0, (y + 0.90 + grow) / 2.0);
            let base = [within(left, low), within(right, low), within(right, high), within(left, high)];
            let tall = self.at(column, row, 40 + lot);
            house(houses, base, 0.018 + 0.075 * tall * tall * tall);
        }
    }

    /// Names and signs around a place, the nearest first.
    pub(super) fn signs_near(&self, car: Point) -> Vec<Sign> {
        #[expect(clippy::cast_possible_truncation, reason = "the car does not get that far")]
        let near = car.map(|part| (part * CROSSINGS as f32).floor() as i32);
        let mut signs = Vec::new();
        for row in near[1] - 4..near[1] + 14 {
            for column in near[0] - 8..=near[0] + 8 {
                let crossing = self.crossing(column, row);
                let is_main = row.rem_euclid(MAIN) == 2;
                if is_main && column.rem_euclid(3) == 0 {
                    // Names go by street, so that one has the same name everywhere.
                    let name = usize::try_from(row.rem_euclid(ALL_CROSSINGS) / MAIN).unwrap_or(0);
                    signs.push(Sign { place: crossing, height: 0.02, kind: SignKind::Name(name) });
                } else if self.at(column, row, 5) < 0.06 {
                    let kind = SignKind::Place(usize::from(self.at(column, row, 6) < 0.5));
                    let place = self.curve((column, row), (1, 1), 0.5);
                    signs.push(Sign { place, height: 0.12, kind });
                }
            }
        }
        let far = |sign: &Sign| length(minus(sign.place, car));
        signs.sort_by(|a, b| far(a).total_cmp(&far(b)));
        signs
    }
}

/// Half of the river's width.
const RIVER_HALF: f32 = 0.17;

fn crossings(corner: (i32, i32)) -> impl Iterator<Item = (i32, i32)> {
    (0..CROSSINGS * CROSSINGS).map(move |index| (corner.0 + index % CROSSINGS, corner.1 + index / CROSSINGS))
}

fn water(column: i32, row: i32) -> Triangles {
    let mut bands = Triangles::default();
    let line: Vec<Point> = (0..=12_u16)
        .map(|piece| minus(City::river(column as f32 + f32::from(piece) / 12.0), [column as f32, row as f32]))
        .collect();
    // Each tile has the part of the river whose middle begins in it.
    let starts_here = line.first().is_some_and(|start| (0.0..1.0).contains(&start[1]));
    if starts_here {
        bands.band(&line, RIVER_HALF, Some(1.0));
    }
    bands
}

/// A box; its faces take light from one side.
fn house(houses: &mut Triangles, base: [Point; 4], height: f32) {
    for side in 0..4 {
        let (a, b) = (base[side], base[(side + 1) % 4]);
        let way = minus(b, a);
        let facing = (way[1] * 0.8 - way[0] * 0.6) / length(way).max(1e-6);
        let light = 0.42 + 0.22 * facing;
        houses.face([
            (a, 0.0, [light, 0.0]),
            (b, 0.0, [light, 0.0]),
            (b, height, [light, height]),
            (a, height, [light, height]),
        ]);
    }
    houses.face(base.map(|corner| (corner, height, [0.85, height])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_city_repeats_without_a_seam() {
        let city = City::new(7);
        let round = ALL_CROSSINGS;
        for (column, row) in [(0, 0), (3, 17), (-5, 23)] {
            let (here, there) = (city.crossing(column, row), city.crossing(column + round, row - round));
            let apart = minus(there, here);
            assert!((apart[0] - TILES as f32).abs() < 1e-4 && (apart[1] + TILES as f32).abs() < 1e-4);
        }
        let (start, end) = (City::river(0.0)[1], City::river(TILES as f32)[1]);
        assert!((start - end).abs() < 1e-4);
    }

    #[test]
    fn streets_pass_through_crossings_and_the_car_follows_its_route() {
        let city = City::new(7);
        let near = |a: Point, b: Point| assert!(length(minus(a, b)) < 1e-4, "{a:?} {b:?}");
        near(city.curve((4, 4), (1, 0), 0.0), city.crossing(4, 4));
        near(city.curve((4, 4), (1, 0), 1.0), city.crossing(5, 4));
        near(city.car(4.0).0, city.crossing(ROUTE, 3));
    }

    #[test]
    fn every_tile_has_streets_and_small_buffers() {
        let city = City::new(7);
        for tile in 0..TILES * TILES {
            let layers = city.tile(tile % TILES, tile / TILES).layers;
            assert!(layers.iter().any(|(layer, _)| *layer == Layer::Main));
            for (_, triangles) in layers {
                assert!(triangles.vertices.iter().all(|number| number.is_finite()));
            }
        }
    }
}
