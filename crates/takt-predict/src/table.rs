//! A bounded table that forgets what was not used for long, and never allocates after creation.
//!
//! Keys are spread over small sets; within a set the entry that was used least recently makes
//! room. That costs a few comparisons per look-up, whatever happens. An app that chooses its
//! keys badly only spoils its own predictions.

use std::hash::{Hash, Hasher};

/// Entries that one key can be in.
const WAYS: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V> {
    entries: Vec<Entry<K, V>>,
    sets: usize,
    clock: u64,
}

#[derive(Clone, Debug)]
struct Entry<K, V> {
    key: Option<K>,
    used: u64,
    value: V,
}

impl<K: Copy + Eq + Hash, V: Clone> Table<K, V> {
    /// A table of `capacity` entries or a few more, which start as copies of `value`.
    pub(crate) fn new(capacity: usize, value: &V) -> Self {
        let sets = capacity.div_ceil(WAYS).max(1);
        let entry = || Entry { key: None, used: 0, value: value.clone() };
        let entries = std::iter::repeat_with(entry).take(sets * WAYS).collect();
        Self { entries, sets, clock: 0 }
    }

    /// The value of a key, if it is there; does not count as use.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        let start = self.set(key);
        let ways = &self.entries[start..start + WAYS];
        ways.iter().find(|entry| entry.key.as_ref() == Some(key)).map(|entry| &entry.value)
    }

    /// The value of a key, and whether it was there. If it was not, the value is whatever its
    /// place held before, for the caller to overwrite: values may own memory worth keeping.
    pub(crate) fn entry(&mut self, key: &K) -> (&mut V, Lookup) {
        let start = self.set(key);
        self.clock += 1;
        let ways = &mut self.entries[start..start + WAYS];
        let hit = ways.iter().position(|entry| entry.key.as_ref() == Some(key));
        let oldest = || ways.iter().enumerate().min_by_key(|(_, entry)| entry.used).map_or(0, |(at, _)| at);
        let at = hit.unwrap_or_else(oldest);
        let entry = &mut ways[at];
        entry.key = Some(*key);
        entry.used = self.clock;
        (&mut entry.value, if hit.is_some() { Lookup::Hit } else { Lookup::Miss })
    }

    fn set(&self, key: &K) -> usize {
        let mut hasher = Mixer(0);
        key.hash(&mut hasher);
        let set = hasher.finish() % self.sets as u64;
        usize::try_from(set).unwrap_or(0) * WAYS
    }
}

/// Whether a key was in the table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    Hit,
    Miss,
}

/// A fixed hash: results must not depend on a random seed.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mixer(pub(crate) u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        mix(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ value);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// Spreads the bits of a number over all others: multiply, fold, multiply, fold.
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ (value >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_least_recently_makes_room() {
        let mut table = Table::new(WAYS, &0u32);
        for key in 0..8u64 {
            let (value, found) = table.entry(&key);
            assert_eq!(found, Lookup::Miss);
            *value = 1;
        }
        assert_eq!(table.entry(&0).1, Lookup::Hit);
        assert_eq!(table.entry(&100).1, Lookup::Miss);
        assert!(table.peek(&0).is_some());
        assert!(table.peek(&1).is_none());
    }

    #[test]
    fn keys_spread_over_sets() {
        let mut table = Table::new(1024, &0u32);
        for key in 0..512u64 {
            *table.entry(&key).0 = 1;
        }
        let kept = (0..512u64).filter(|key| table.peek(key).is_some()).count();
        assert!(kept > 500, "{kept}");
    }
}
