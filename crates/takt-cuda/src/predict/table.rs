//! Finds entries, without a lock where they were found before.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::entry::Entry;

/// Places of the fast table, and how many of them a key may have: a program launches some thousand kinds of kernels,
/// and two that drove each other out would be looked up in the slow table each time.
const PLACES: usize = 1 << 13;
const WAYS: usize = 4;

/// Most entries, and most names for them; work beyond this is always unknown.
const ENTRIES_MAX: usize = 1 << 15;
const ALIASES_MAX: u64 = 1 << 16;

/// Entries without work are kept until there are so many, because what was measured last may still be on its way.
const SPARE: usize = 512;

/// A key that a call has, and the entry behind it. Entries and keys live as long as the process.
#[derive(Debug)]
struct Alias {
    key: u64,
    entry: &'static Entry,
}

/// All entries, by what does not change about their work.
#[derive(Default, Debug)]
struct Entries {
    of: HashMap<u64, &'static Entry>,
    /// Those whose work is gone, the oldest first.
    spare: VecDeque<&'static Entry>,
}

impl Entries {
    fn find(&mut self, identity: u64, make: impl FnOnce() -> Entry) -> Option<&'static Entry> {
        if let Some(entry) = self.of.get(&identity) {
            return Some(entry);
        }
        if self.of.len() >= ENTRIES_MAX {
            return None;
        }
        let entry = match self.spare.len() > SPARE {
            true => self.spare.pop_front().inspect(|entry| entry.replace(make()))?,
            false => Box::leak(Box::new(make())),
        };
        self.of.insert(identity, entry);
        Some(entry)
    }

    fn forget(&mut self, identity: u64) {
        self.spare.extend(self.of.remove(&identity));
    }
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    places: [AtomicPtr<Alias>; PLACES],
    aliases: AtomicU64,
    entries: Mutex<Option<Entries>>,
    /// Changes when handles of code may mean other code.
    generation: AtomicU64,
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Self {
            places: [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES],
            aliases: AtomicU64::new(0),
            entries: Mutex::new(None),
            generation: AtomicU64::new(0),
        }
    }

    /// The generation of code: part of keys that contain its handles.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Code was unloaded, so its handles may soon mean other code.
    pub fn forget_code(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// The entry behind a key that calls have. If it was not found before, `identity` says what the work is by
    /// something that does not change, and `make` makes an entry for new work. None if there is no room.
    #[inline]
    pub fn find(
        &self,
        key: u64,
        identity: impl FnOnce() -> u64,
        make: impl FnOnce() -> Entry,
    ) -> Option<&'static Entry> {
        for place in places(key) {
            match self.at(place) {
                Some(alias) if alias.key == key => return Some(alias.entry),
                Some(_) => {}
                None => break,
            }
        }
        self.look(key, identity(), make)
    }

    #[inline]
    fn at(&self, place: usize) -> Option<&'static Alias> {
        // SAFETY: it is null, or was leaked when it was put there.
        unsafe { self.places[place].load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn look(&self, key: u64, identity: u64, make: impl FnOnce() -> Entry) -> Option<&'static Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get_or_insert_default().find(identity, make)?;
        if self.aliases.fetch_add(1, Ordering::Relaxed) < ALIASES_MAX {
            // Others may look at the one that was there, so it is never given back.
            let alias: &'static mut Alias = Box::leak(Box::new(Alias { key, entry }));
            let empty = places(key).find(|place| self.at(*place).is_none());
            // Any of them goes if all are taken.
            let [any, ..] = key.to_le_bytes();
            let place = empty.or_else(|| places(key).nth(usize::from(any) % WAYS)).unwrap_or_default();
            self.places[place].store(alias, Ordering::Release);
        }
        Some(entry)
    }

    /// What is behind a key may be something else from now on.
    pub fn forget(&self, key: u64) {
        let found = places(key).find(|place| self.at(*place).is_some_and(|alias| alias.key == key));
        if let Some(found) = found {
            // The last one takes its place, so that the search for it finds no gap.
            let last = places(key).rev().find(|place| self.at(*place).is_some()).unwrap_or(found);
            let moved = self.places[last].swap(std::ptr::null_mut(), Ordering::AcqRel);
            if last != found {
                self.places[found].store(moved, Ordering::Release);
            }
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = entries.as_mut() {
            entries.forget(key);
        }
    }
}

/// Where a key may be: places that follow each other.
fn places(key: u64) -> std::ops::Range<usize> {
    let first = (key >> 40) as usize % (PLACES / WAYS) * WAYS;
    first..first + WAYS
}

/// One number for several.
#[inline]
pub fn mixed(words: &[u64]) -> u64 {
    let mut mixed = 0x9E37_79B9_7F4A_7C15_u64;
    for word in words {
        mixed = (mixed ^ word).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed ^= mixed >> 32;
    }
    mixed.wrapping_mul(0xC4CE_B9FE_1A85_EC53)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Need;

    #[test]
    fn entries_are_found_by_any_of_their_keys() {
        static TABLE: Table = Table::new();
        let guess = || Entry::guessed(5);
        let first = TABLE.find(1 << 50, || 77, guess).unwrap();
        assert!(std::ptr::eq(first, TABLE.find(1 << 50, || unreachable!("it is known"), guess).unwrap()));
        assert!(std::ptr::eq(first, TABLE.find(2 << 50, || 77, guess).unwrap()), "the same work");
        assert!(!std::ptr::eq(first, TABLE.find(3 << 50, || 78, guess).unwrap()));
        assert_eq!(first.need(), Need::Known(5));
        let graph = TABLE.find(9 << 50, || 9 << 50, guess).unwrap();
        TABLE.forget(9 << 50);
        assert!(!std::ptr::eq(graph, TABLE.find(9 << 50, || 9 << 50, guess).unwrap()), "another graph");
        let generation = TABLE.generation();
        TABLE.forget_code();
        assert_ne!(TABLE.generation(), generation);
    }

    #[test]
    fn thousands_of_kinds_are_found_without_a_lock() {
        static TABLE: Table = Table::new();
        let key = |n: u64| mixed(&[n, 3]);
        let found = |n: u64| TABLE.find(key(n), || n, Entry::default).is_some();
        assert!((0..2_000).all(found));
        let mut slow = 0;
        for n in 0..2_000 {
            let identity = || {
                slow += 1;
                n
            };
            assert!(TABLE.find(key(n), identity, Entry::default).is_some());
        }
        assert!(slow < 60, "{slow}");
        // What goes leaves no gap before others.
        (0..1_000).for_each(|n| TABLE.forget(key(n)));
        assert!((1_000..2_000).all(found));
    }

    #[test]
    fn there_is_an_end_to_entries() {
        static TABLE: Table = Table::new();
        let found = |n: u64| TABLE.find(mixed(&[n]), || n, Entry::default).is_some();
        assert!((0..ENTRIES_MAX as u64).all(found));
        assert!(!found(u64::MAX) && found(5));
    }

    #[test]
    fn work_that_is_gone_leaves_room() {
        static TABLE: Table = Table::new();
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..20_000_u64 {
            let key = mixed(&[n, 7]);
            let entry = TABLE.find(key, || key, || Entry::guessed(n)).unwrap();
            assert_eq!(entry.need(), Need::Known(n), "nothing of the work before it");
            seen.insert(std::ptr::from_ref(entry).addr());
            TABLE.forget(key);
        }
        assert!(seen.len() <= SPARE + 1, "{}", seen.len());
    }

    #[test]
    fn mixing_tells_words_and_their_order_apart() {
        assert_ne!(mixed(&[1, 2]), mixed(&[2, 1]));
        assert_ne!(mixed(&[0]), mixed(&[0, 0]));
        let mut places = std::collections::BTreeSet::new();
        (0..1000_u64).for_each(|n| {
            places.insert(super::places(mixed(&[0x5000_0000 + 64 * n])).start);
        });
        assert!(places.len() > 700, "{}", places.len());
    }
}
