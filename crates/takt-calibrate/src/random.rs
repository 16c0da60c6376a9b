//! Textures full of noise.

use takt_rng::Rng;

/// `count` bytes of noise, the same everywhere for the same seed.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut rng = Rng::seeded(seed);
    let words = std::iter::repeat_with(|| rng.next_u64().to_le_bytes());
    words.take(count.div_ceil(8)).flatten().take(count).collect()
}
