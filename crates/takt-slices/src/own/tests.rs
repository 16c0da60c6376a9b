//! The driver is scripted here: it answers calls as the real one does, refuses them, or answers with garbage.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use takt_rng::Rng;

use super::*;
use crate::abi::{ALLOC_REQUEST, Alloc, CHANNEL_GROUP, FREE_REQUEST, Free};
use crate::device::FileId;

/// `NV_ERR_INSUFFICIENT_PERMISSIONS` and `NV_ERR_INVALID_OBJECT_HANDLE`.
const NO_RIGHT: u32 = 0x1b;
const NO_SUCH_OBJECT: u32 = 0x33;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mood {
    /// Does what it is asked for.
    Willing,
    /// Accepts other slices and keeps its own.
    Deaf,
    /// Lets slices be read, not set.
    Refusing,
    /// Fails every call.
    Broken,
    /// Answers with numbers that mean nothing.
    Garbage,
}

struct Script {
    mood: Cell<Mood>,
    slices: RefCell<BTreeMap<(u32, u32), u64>>,
    /// Slices that were set, in order.
    set: RefCell<Vec<u64>>,
    /// What descriptors stand for.
    files: Cell<u64>,
    process: Cell<u32>,
}

impl Device for &Script {
    unsafe fn ioctl(&self, _: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
        assert_eq!(request, CONTROL_REQUEST);
        if self.mood.get() == Mood::Broken {
            return -1;
        }
        // SAFETY: a control, by its request.
        let control = unsafe { &mut *argument.cast::<Control>() };
        assert_eq!((control.size, control.flags), (8, 0));
        // SAFETY: the parameter of both controls is one number.
        let number = unsafe { &mut *(control.params as *mut u64) };
        let mut slices = self.slices.borrow_mut();
        control.status = match (slices.get_mut(&(control.client, control.object)), self.mood.get()) {
            (_, Mood::Garbage) => 0xdead_beef,
            (None, _) => NO_SUCH_OBJECT,
            (Some(slice), _) if control.command == GET_TIMESLICE => {
                *number = *slice;
                OK
            }
            (Some(_), Mood::Refusing) => NO_RIGHT,
            (Some(_), Mood::Deaf) => OK,
            (Some(slice), _) => {
                *slice = *number;
                self.set.borrow_mut().push(*number);
                OK
            }
        };
        0
    }

    fn file(&self, descriptor: c_int) -> Option<FileId> {
        (descriptor >= 0).then(|| FileId::new(195, self.files.get()))
    }

    fn process(&self) -> u32 {
        self.process.get()
    }
}

impl Script {
    fn new() -> Self {
        Self {
            mood: Cell::new(Mood::Willing),
            slices: RefCell::default(),
            set: RefCell::default(),
            files: Cell::new(1),
            process: Cell::new(10),
        }
    }

    /// The driver's library makes a group, and the list hears of it.
    fn make(&self, own: &Own<&Self>, object: u32, us: u64) {
        self.slices.borrow_mut().insert((7, object), us);
        let class = CHANNEL_GROUP;
        let alloc = Alloc {
            client: 7,
            parent: 50,
            object,
            class,
            params: 0,
            rights: 0,
            size: 0,
            flags: 0,
            status: OK,
            padding: 0,
        };
        // SAFETY: an allocation, as the request says.
        unsafe { own.saw(5, ALLOC_REQUEST, (&raw const alloc).cast()) };
    }

    fn free(&self, own: &Own<&Self>, object: u32) {
        self.slices.borrow_mut().remove(&(7, object));
        let free = Free { client: 7, parent: 50, object, status: OK };
        // SAFETY: an end, as the request says.
        unsafe { own.saw(5, FREE_REQUEST, (&raw const free).cast()) };
    }
}

#[test]
fn slices_are_set_read_back_and_restored() {
    let script = Script::new();
    let own = Own::new(&script);
    assert_eq!(own.set(300), Report::default());
    assert!(!own.set(300).is_kept(), "there is nothing to keep");
    script.make(&own, 1, 2048);
    script.make(&own, 2, 1024);
    let read = own.read();
    assert_eq!((read.groups, read.shortest_us, read.longest_us), (2, 1024, 2048));
    let set = own.set(300);
    assert!(set.is_kept() && (set.shortest_us, set.longest_us) == (300, 300), "{set:?}");
    assert!(own.set(300).is_kept());
    assert_eq!(*script.set.borrow(), [300, 300], "groups that have it are left alone");
    own.set(20_000);
    let restored = own.restore();
    assert_eq!((restored.shortest_us, restored.longest_us), (1024, 2048), "those before the first of ours");
}

#[test]
fn new_groups_and_slices_of_the_driver_are_told() {
    let script = Script::new();
    let own = Own::new(&script);
    script.make(&own, 1, 1024);
    own.set(300);
    let epoch = own.epoch();
    own.set(300);
    assert_eq!(own.epoch(), epoch, "our own calls are not told");
    script.make(&own, 2, 1024);
    assert_ne!(own.epoch(), epoch);
    assert_eq!(own.set(300).kept, 2);
    script.free(&own, 1);
    assert_eq!(own.read().groups, 1);
}

#[test]
fn refusals_and_garbage_are_reported() {
    let expected = [
        (Mood::Deaf, 0, OK, 1024),
        (Mood::Refusing, 0, NO_RIGHT, 0),
        (Mood::Broken, 0, UNREACHED, 0),
        (Mood::Garbage, 0, 0xdead_beef, 0),
    ];
    for (mood, kept, status, longest_us) in expected {
        let script = Script::new();
        let own = Own::new(&script);
        script.make(&own, 1, 1024);
        script.mood.set(mood);
        let report = own.set(300);
        assert_eq!(
            (report.groups, report.kept, report.status, report.longest_us),
            (1, kept, status, longest_us)
        );
        assert!(!report.is_kept(), "{mood:?}");
    }
}

#[test]
fn a_descriptor_that_stands_for_another_file_is_not_used() {
    let script = Script::new();
    let own = Own::new(&script);
    script.make(&own, 1, 1024);
    script.files.set(2);
    let report = own.set(300);
    assert_eq!((report.kept, report.status), (0, UNREACHED));
    assert!(script.set.borrow().is_empty());
}

#[test]
fn a_copied_process_sets_nothing() {
    let script = Script::new();
    let own = Own::new(&script);
    script.make(&own, 1, 1024);
    script.process.set(11);
    assert_eq!(own.set(300), Report::default());
    assert!(script.set.borrow().is_empty());
}

#[test]
fn slices_are_bounded() {
    let script = Script::new();
    let own = Own::new(&script);
    script.make(&own, 1, 1024);
    own.set(0);
    own.set(u64::MAX);
    assert_eq!(*script.set.borrow(), [1, SLICE_US_MAX]);
}

/// Groups come and go, moods change, and slices are set: the list is always that of the driver, and whatever is said
/// to be kept is kept.
#[test]
fn random_lives_of_groups() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed, 0);
        let script = Script::new();
        let own = Own::new(&script);
        for _ in 0..100 {
            let object = 101 + rng.below(12);
            match rng.below(6) {
                0 | 1 => script.make(&own, object, *rng.pick(&[1024, 2048]).unwrap()),
                2 => script.free(&own, object),
                3 => {
                    let moods = [Mood::Willing, Mood::Deaf, Mood::Refusing, Mood::Broken, Mood::Garbage];
                    script.mood.set(*rng.pick(&moods).unwrap());
                }
                _ => {
                    let us = rng.between(100, 1100);
                    let report = own.set(us);
                    let slices = script.slices.borrow();
                    assert_eq!(report.groups as usize, slices.len(), "seed {seed}");
                    let kept = slices.values().filter(|slice| **slice == us).count();
                    assert!(report.kept as usize <= kept, "seed {seed}: {report:?}");
                    let willing = script.mood.get() == Mood::Willing;
                    assert!(!willing || report.kept as usize == slices.len(), "seed {seed}");
                }
            }
        }
    }
}
