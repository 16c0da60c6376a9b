//! A bounded queue between two processes that do not trust each other.
//!
//! One side writes, the other reads. Each keeps its own position to itself and only publishes it;
//! the position of the other side is checked on every use: if it claims something impossible, that is
//! [`Corrupt`], and the side that sees it ends the conversation. Records are read word by word with
//! atomic loads, so a side that scribbles over them meanwhile produces a wrong record, never undefined
//! behaviour.

use crate::record::{RECORD_WORDS, Words};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Records a ring holds. A power of two, so that positions may wrap around.
pub const CAPACITY: u32 = if cfg!(loom) { 2 } else { 256 };
const _: () = assert!(CAPACITY.is_power_of_two());

/// The part of a ring that both sides see.
///
/// Positions count records since the beginning and wrap; they lie on cache lines of their own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Shared {
    written: Line,
    read: Line,
    records: [[AtomicU64; RECORD_WORDS]; CAPACITY as usize],
}

#[repr(C, align(64))]
#[derive(Debug)]
struct Line {
    position: AtomicU32,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Shared>() == 2 * 64 + CAPACITY as usize * RECORD_WORDS * 8);
    assert!(std::mem::offset_of!(Shared, written) == 0);
    assert!(std::mem::offset_of!(Shared, read) == 64);
    assert!(std::mem::offset_of!(Shared, records) == 128);
};

impl Shared {
    /// An empty ring, for tests and model checking; real ones lie in zeroed shared memory.
    pub fn new() -> Self {
        let line = || Line { position: AtomicU32::new(0) };
        let record = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { written: line(), read: line(), records: std::array::from_fn(|_| record()) }
    }

    fn record(&self, position: u32) -> &[AtomicU64; RECORD_WORDS] {
        &self.records[(position % CAPACITY) as usize]
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

/// The other side published an impossible position.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the other side of a ring claims an impossible position")]
pub struct Corrupt;

/// Why nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Full {
    /// The reader has not kept up.
    #[error("the ring is full")]
    Full,
    /// The reader claims to have read what was never written.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// The writing end. There must be only one.
#[derive(Debug)]
pub struct Writer<S> {
    shared: S,
    position: u32,
}

impl<S: AsRef<Shared>> Writer<S> {
    /// The writing end of a ring that is still empty.
    pub fn new(shared: S) -> Self {
        Self { shared, position: 0 }
    }

    /// Whether more than half of the ring waits to be read.
    pub fn is_crowded(&self) -> bool {
        let read = self.shared.as_ref().read.position.load(Ordering::Acquire);
        self.position.wrapping_sub(read) > CAPACITY / 2
    }

    /// Writes a record, or says why not.
    pub fn push(&mut self, words: &Words) -> Result<(), Full> {
        let shared = self.shared.as_ref();
        let read = shared.read.position.load(Ordering::Acquire);
        let unread = self.position.wrapping_sub(read);
        if unread > CAPACITY {
            return Err(Full::Corrupt(Corrupt));
        }
        if unread == CAPACITY {
            return Err(Full::Full);
        }
        for (place, word) in shared.record(self.position).iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.position = self.position.wrapping_add(1);
        shared.written.position.store(self.position, Ordering::Release);
        Ok(())
    }
}

/// The reading end. There must be only one.
#[derive(Debug)]
pub struct Reader<S> {
    shared: S,
    position: u32,
}

impl<S: AsRef<Shared>> Reader<S> {
    /// The reading end of a ring that is still empty.
    pub fn new(shared: S) -> Self {
        Self { shared, position: 0 }
    }

    /// Copies the next record out, if there is one.
    pub fn pop(&mut self) -> Result<Option<Words>, Corrupt> {
        let shared = self.shared.as_ref();
        let written = shared.written.position.load(Ordering::Acquire);
        let unread = written.wrapping_sub(self.position);
        if unread > CAPACITY {
            return Err(Corrupt);
        }
        if unread == 0 {
            return Ok(None);
        }
        let mut words = [0; RECORD_WORDS];
        for (word, place) in words.iter_mut().zip(shared.record(self.position)) {
            *word = place.load(Ordering::Relaxed);
        }
        self.position = self.position.wrapping_add(1);
        shared.read.position.store(self.position, Ordering::Release);
        Ok(Some(words))
    }

    /// Whether there is nothing to read, so that it makes sense to sleep.
    pub fn is_empty(&self) -> bool {
        self.shared.as_ref().written.position.load(Ordering::Acquire) == self.position
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn words(n: u64) -> Words {
        std::array::from_fn(|i| n * 10 + i as u64)
    }

    #[derive(Clone, Debug)]
    struct Both(Arc<Shared>);

    impl AsRef<Shared> for Both {
        fn as_ref(&self) -> &Shared {
            &self.0
        }
    }

    fn pair() -> (Both, Writer<Both>, Reader<Both>) {
        let shared = Both(Arc::new(Shared::new()));
        (shared.clone(), Writer::new(shared.clone()), Reader::new(shared))
    }

    #[test]
    fn records_come_out_in_order_across_the_wrap() {
        let (shared, mut writer, mut reader) = pair();
        for ring in [&shared.0.written, &shared.0.read] {
            ring.position.store(u32::MAX - 100, Ordering::Relaxed);
        }
        writer.position = u32::MAX - 100;
        reader.position = u32::MAX - 100;
        for round in 0..500 {
            assert_eq!(writer.push(&words(round)), Ok(()));
            assert_eq!(reader.pop(), Ok(Some(words(round))));
        }
        assert_eq!(reader.pop(), Ok(None));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_full_ring_says_so_and_loses_nothing() {
        let (_, mut writer, mut reader) = pair();
        for n in 0..u64::from(CAPACITY) {
            assert_eq!(writer.push(&words(n)), Ok(()));
        }
        assert_eq!(writer.push(&words(999)), Err(Full::Full));
        assert!(writer.is_crowded());
        for n in 0..u64::from(CAPACITY) {
            assert_eq!(reader.pop(), Ok(Some(words(n))));
        }
        assert_eq!(reader.pop(), Ok(None));
        assert!(!writer.is_crowded());
        assert_eq!(writer.push(&words(1)), Ok(()));
    }

    #[test]
    fn impossible_positions_are_noticed() {
        let (shared, mut writer, mut reader) = pair();
        shared.0.written.position.store(CAPACITY + 1, Ordering::Relaxed);
        assert_eq!(reader.pop(), Err(Corrupt));
        shared.0.written.position.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(reader.pop(), Err(Corrupt), "backwards");
        shared.0.read.position.store(1, Ordering::Relaxed);
        assert_eq!(writer.push(&words(0)), Err(Full::Corrupt(Corrupt)), "ahead of the writer");
    }

    #[test]
    fn two_threads_see_every_record_once() {
        let (_, mut writer, mut reader) = pair();
        // Miri is a thousand times slower, and looks at every access.
        const COUNT: u64 = if cfg!(miri) { 300 } else { 100_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..COUNT {
                    while writer.push(&words(n)).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            for n in 0..COUNT {
                let record = loop {
                    if let Some(record) = reader.pop().expect("an honest writer") {
                        break record;
                    }
                    std::thread::yield_now();
                };
                assert_eq!(record, words(n));
            }
        });
    }
}
