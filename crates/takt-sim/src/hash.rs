//! A fingerprint of everything that happened.

use std::hash::{Hash, Hasher};

use takt_core::Time;
use takt_trace::Record;

/// Hash over a run's records. Not cryptographic; the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHash(u64);

/// An odd number with well-spread bits (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl EventHash {
    pub(crate) fn new() -> Self {
        Self(SPREAD)
    }

    #[inline]
    pub(crate) fn add(&mut self, at: Time, record: &Record) {
        at.hash(self);
        record.hash(self);
    }
}

impl Hasher for EventHash {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    /// Discriminants of enums come this way.
    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.write_u64((word as i64).cast_unsigned());
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn finish(&self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 32)).wrapping_mul(SPREAD);
        z ^ (z >> 29)
    }
}
