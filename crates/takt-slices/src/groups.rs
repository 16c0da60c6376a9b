//! The channel groups of this process.
//!
//! Groups are noted inside of `ioctl`, on any thread, between any two instructions of a program. So the list never
//! allocates and has no lock: each place is claimed by an atomic exchange, and a reader takes only what did not change
//! while it read. A process that was copied (`fork`) has no groups, whatever is in the list of its parent.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::device::FileId;

/// How many groups are noted; a process with more keeps the driver's slices for the rest.
pub const GROUPS_MAX: usize = 128;

/// A group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Handle of its client.
    pub client: u32,
    /// Its handle.
    pub object: u32,
    /// Handle of the object that owns it.
    pub parent: u32,
    /// The descriptor by which it was made.
    pub descriptor: c_int,
    /// The file of that descriptor ([`FileId`] as one word).
    pub(crate) file: u64,
}

/// Nothing in this place. No object has these handles.
const EMPTY: u64 = 0;
/// A thread writes to this place.
const CLAIMED: u64 = u64::MAX;

#[derive(Debug)]
struct Place {
    /// Handles of client and object; [`EMPTY`] or [`CLAIMED`].
    key: AtomicU64,
    parent: AtomicU32,
    descriptor: AtomicI32,
    file: AtomicU64,
    /// Its slice before we set one, in microseconds; 0 if we did not.
    original_us: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Self {
            key: AtomicU64::new(EMPTY),
            parent: AtomicU32::new(0),
            descriptor: AtomicI32::new(-1),
            file: AtomicU64::new(0),
            original_us: AtomicU64::new(0),
        }
    }

    fn read(&self) -> Option<Group> {
        let key = self.key.load(Ordering::Acquire);
        if key == EMPTY || key == CLAIMED {
            return None;
        }
        let (client, object) = handles(key);
        let group = Group {
            client,
            object,
            parent: self.parent.load(Ordering::Acquire),
            descriptor: self.descriptor.load(Ordering::Acquire),
            file: self.file.load(Ordering::Acquire),
        };
        (self.key.load(Ordering::Acquire) == key).then_some(group)
    }
}

fn key(client: u32, object: u32) -> u64 {
    u64::from(client) << 32 | u64::from(object)
}

fn handles(key: u64) -> (u32, u32) {
    let low = u32::try_from(key & u64::from(u32::MAX)).unwrap_or_default();
    (u32::try_from(key >> 32).unwrap_or_default(), low)
}

/// The list.
#[derive(Debug)]
pub struct Groups {
    places: [Place; GROUPS_MAX],
    /// The process that they belong to; 0 if there were none.
    process: AtomicU32,
    /// How many were ever noted or forgotten.
    epoch: AtomicU32,
    /// How many are there, to pass by an empty list.
    count: AtomicU32,
}

impl Default for Groups {
    fn default() -> Self {
        Self::new()
    }
}

impl Groups {
    /// An empty list.
    pub const fn new() -> Self {
        Self {
            places: [const { Place::new() }; GROUPS_MAX],
            process: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            count: AtomicU32::new(0),
        }
    }

    /// Changes whenever a group is made, ends, or gets another slice from its driver.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The groups of that process.
    pub fn iter(&self, process: u32) -> impl Iterator<Item = Group> {
        let owned = self.process.load(Ordering::Acquire) == process;
        self.places.iter().filter(move |_| owned).filter_map(Place::read)
    }

    /// A process made a group; says whether there was room to note it.
    pub fn note(&self, process: u32, client: u32, object: u32, made: Made) -> bool {
        self.own(process);
        let key = key(client, object);
        if key == EMPTY || key == CLAIMED {
            return false;
        }
        // A handle that is used again stands for a new object.
        self.forget_where(|group| group.client == client && group.object == object);
        let claim = |place: &&Place| {
            place.key.compare_exchange(EMPTY, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let Some(place) = self.places.iter().find(claim) else {
            return false;
        };
        place.parent.store(made.parent, Ordering::Release);
        place.descriptor.store(made.descriptor, Ordering::Release);
        place.file.store(made.file.word(), Ordering::Release);
        place.original_us.store(0, Ordering::Release);
        place.key.store(key, Ordering::Release);
        self.count.fetch_add(1, Ordering::AcqRel);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// An object of a process ended, and all that it owned.
    pub fn forget(&self, process: u32, client: u32, object: u32) {
        self.own(process);
        self.forget_where(|group| {
            group.client == client && [group.client, group.parent, group.object].contains(&object)
        });
    }

    /// The driver set the slice of a group, which may not be ours.
    pub fn driver_set(&self, process: u32, client: u32, object: u32) {
        if self.iter(process).any(|group| group.client == client && group.object == object) {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Keeps the slice that a group had before ours; the first one counts.
    pub(crate) fn keep_original(&self, group: &Group, us: u64) {
        if let Some(place) = self.place(group) {
            // Another thread was first.
            let _first = place.original_us.compare_exchange(0, us, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The slice that a group had before ours, which is forgotten; none if we set none.
    pub(crate) fn take_original(&self, group: &Group) -> Option<u64> {
        let us = self.place(group)?.original_us.swap(0, Ordering::AcqRel);
        (us != 0).then_some(us)
    }

    fn place(&self, group: &Group) -> Option<&Place> {
        let key = key(group.client, group.object);
        self.places.iter().find(|place| place.key.load(Ordering::Acquire) == key)
    }

    /// Groups of another process are none of this one.
    fn own(&self, process: u32) {
        if self.process.swap(process, Ordering::AcqRel) != process {
            self.forget_where(|_| true);
        }
    }

    fn forget_where(&self, is_meant: impl Fn(&Group) -> bool) {
        if self.is_empty() {
            return;
        }
        for place in &self.places {
            let Some(group) = place.read().filter(&is_meant) else {
                continue;
            };
            let key = key(group.client, group.object);
            if place.key.compare_exchange(key, EMPTY, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.count.fetch_sub(1, Ordering::AcqRel);
                self.epoch.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

/// How a group was made.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Handle of the object that owns it.
    pub parent: u32,
    /// The descriptor of the driver's file.
    pub descriptor: c_int,
    /// That file.
    pub file: FileId,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId::new(195, 1);
    const OWN: u32 = 100;

    fn made(parent: u32) -> Made {
        Made { parent, descriptor: 5, file: FILE }
    }

    fn objects(groups: &Groups) -> Vec<u32> {
        groups.iter(OWN).map(|group| group.object).collect()
    }

    #[test]
    fn groups_end_with_what_owns_them() {
        let groups = Groups::new();
        assert!(groups.is_empty() && groups.iter(OWN).next().is_none());
        for (object, parent) in [(1, 50), (2, 50), (3, 51)] {
            assert!(groups.note(OWN, 7, object, made(parent)));
        }
        assert!(groups.note(OWN, 8, 1, made(50)));
        groups.forget(OWN, 7, 2);
        assert_eq!(objects(&groups), [1, 3, 1]);
        groups.forget(OWN, 7, 50);
        assert_eq!(objects(&groups), [3, 1], "the parent ended, and the other client's did not");
        groups.forget(OWN, 7, 7);
        groups.forget(OWN, 7, 99);
        assert_eq!(objects(&groups), [1], "the client ended");
    }

    #[test]
    fn a_handle_that_is_used_again_is_one_group() {
        let groups = Groups::new();
        groups.note(OWN, 7, 1, made(50));
        let group = groups.iter(OWN).next().unwrap();
        groups.keep_original(&group, 1024);
        groups.keep_original(&group, 9);
        assert_eq!((groups.take_original(&group), groups.take_original(&group)), (Some(1024), None));
        groups.keep_original(&group, 2048);
        groups.note(OWN, 7, 1, made(60));
        assert_eq!(objects(&groups), [1]);
        assert_eq!(groups.take_original(&group), None, "nothing is known of the new one");
    }

    #[test]
    fn a_copied_process_has_no_groups() {
        let groups = Groups::new();
        groups.note(OWN, 7, 1, made(50));
        assert_eq!(groups.iter(OWN + 1).count(), 0);
        groups.note(OWN + 1, 9, 2, made(50));
        assert_eq!(groups.iter(OWN + 1).map(|group| group.client).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn the_list_is_bounded() {
        let groups = Groups::new();
        let noted = (1..=200).filter(|object| groups.note(OWN, 7, *object, made(50))).count();
        assert_eq!((noted, groups.iter(OWN).count()), (GROUPS_MAX, GROUPS_MAX));
        groups.forget(OWN, 7, 3);
        assert!(groups.note(OWN, 7, 200, made(50)), "there is room again");
        assert!(!groups.note(OWN, 0, 0, made(50)) && !groups.note(OWN, u32::MAX, u32::MAX, made(50)));
    }

    #[test]
    fn every_change_is_told() {
        let groups = Groups::new();
        let mut epochs = vec![groups.epoch()];
        groups.note(OWN, 7, 1, made(50));
        epochs.push(groups.epoch());
        groups.driver_set(OWN, 7, 1);
        epochs.push(groups.epoch());
        groups.forget(OWN, 7, 1);
        epochs.push(groups.epoch());
        assert!(epochs.windows(2).all(|pair| pair[0] != pair[1]), "{epochs:?}");
        groups.driver_set(OWN, 7, 1);
        groups.forget(OWN, 7, 1);
        assert_eq!(groups.epoch(), *epochs.last().unwrap(), "nothing changed");
    }
}
