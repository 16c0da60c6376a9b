//! Copies, memsets and graphs.

use takt_cuda_api::Ptr;
use takt_cuda_api::types::{BatchCopy3D, Copy2D, Copy3D, Decompression, MemoryType};

use super::entry::{Entry, Need, in_proportion};
use super::table::{Table, mixed};
use crate::class::{Kind, Size};

static TABLE: Table = Table::new();

/// What a copy costs beyond its bytes until that was measured, in nanoseconds.
const FIXED_NS: u64 = 5_000;
/// Bytes per microsecond over the bus, and on the device, until that was measured: those of slow ones.
const BUS: u64 = 10_000;
const DEVICE: u64 = 200_000;
/// What something of unknown size is taken to have.
const UNKNOWN_BYTES: u64 = 1 << 20;
/// Operations of a list that are looked at; others are taken to be like them.
const OPERATIONS_MAX: u64 = 64;

/// Bytes that are moved, with what is known about such.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    entry: Option<&'static Entry>,
    bytes: u64,
    /// Bytes of those for which the entry keeps times.
    unit: u64,
}

impl Moved {
    /// So many bytes.
    pub fn new(kind: Kind, bytes: u64) -> Self {
        // Times are kept for each doubling of the size, scaled to its largest.
        let unit = bytes.max(1).checked_next_power_of_two().unwrap_or(1 << 63);
        let key = mixed(&[kind as u64, unit]);
        let guess = || Entry::guessed(guess(kind, unit));
        Self { entry: TABLE.find(key, || key, guess), bytes, unit }
    }

    /// What they will take, in nanoseconds.
    pub fn need_ns(&self) -> u64 {
        match self.entry.map(Entry::need) {
            Some(Need::Known(ns)) => in_proportion(ns, self.unit, self.bytes).max(1),
            _ => guess(Kind::Any, self.bytes),
        }
    }

    /// The entry of such copies.
    pub fn entry(&self) -> Option<&'static Entry> {
        self.entry
    }

    /// A time that was measured for the first number of bytes is kept as one for the second.
    pub fn scale(&self) -> (u64, u64) {
        (self.bytes, self.unit)
    }
}

fn guess(kind: Kind, bytes: u64) -> u64 {
    let rate = match kind {
        Kind::Up | Kind::Down | Kind::Any => BUS,
        Kind::Within | Kind::Set => DEVICE,
    };
    FIXED_NS + in_proportion(1_000, rate, bytes)
}

/// The key of a graph.
fn key_of_graph(exec: usize) -> u64 {
    mixed(&[exec as u64, 0x6772_6170_6820])
}

/// What is known of a graph, by its handle.
#[inline]
pub fn graph(exec: usize) -> Option<&'static Entry> {
    let key = key_of_graph(exec);
    TABLE.find(key, || key, Entry::default)
}

/// What that handle executes has changed.
pub fn renew_graph(exec: usize) {
    graph(exec).into_iter().for_each(Entry::renew);
}

/// That handle means another graph from now on, or none.
pub fn forget_graph(exec: usize) {
    TABLE.forget(key_of_graph(exec));
}

/// How many bytes a call moves, by the words of its arguments.
///
/// # Safety
///
/// They are the arguments of a call of which [`Class`](crate::class::Class) says so.
pub unsafe fn bytes(size: Size, words: &[u64]) -> u64 {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let pointer = |at: usize| word(at) as *const u8;
    match size {
        Size::Bytes(at) => word(at),
        Size::Elements(at, bytes) => word(at).saturating_mul(bytes),
        Size::Area(width, height, bytes) => word(width).saturating_mul(word(height)).saturating_mul(bytes),
        // SAFETY: up to the caller.
        Size::Rows(at) => unsafe { pointer(at).cast::<Copy2D>().as_ref() }
            .map_or(0, |copy| volume([copy.width, copy.height, 1])),
        // SAFETY: up to the caller.
        Size::Box(at) => unsafe { pointer(at).cast::<Copy3D>().as_ref() }
            .map_or(0, |copy| volume([copy.width, copy.height, copy.depth])),
        // SAFETY: up to the caller.
        Size::BoxOperation(at) => unsafe { pointer(at).cast::<BatchCopy3D>().as_ref() }
            .map_or(0, |operation| volume(operation.extent)),
        Size::List(sizes, count) => {
            let size = |bytes: &usize| *bytes as u64;
            // SAFETY: up to the caller.
            unsafe { summed(pointer(sizes).cast::<usize>(), word(count), size) }
        }
        Size::Boxes(count, list) => {
            let size = |operation: &BatchCopy3D| volume(operation.extent);
            // SAFETY: up to the caller.
            unsafe { summed(pointer(list).cast::<BatchCopy3D>(), word(count), size) }
        }
        Size::Decompressions(list, count) => {
            let size = |one: &Decompression| one.target_bytes as u64;
            // SAFETY: up to the caller.
            unsafe { summed(pointer(list).cast::<Decompression>(), word(count), size) }
        }
        Size::Unknown => UNKNOWN_BYTES,
    }
}

fn volume(extent: [usize; 3]) -> u64 {
    extent.iter().fold(1, |volume: u64, side| volume.saturating_mul(*side as u64))
}

/// The sum of a list, whose end is taken to be like its beginning.
unsafe fn summed<T>(list: *const T, count: u64, size: impl Fn(&T) -> u64) -> u64 {
    let looked = count.min(OPERATIONS_MAX);
    if list.is_null() || looked == 0 {
        return 0;
    }
    // SAFETY: up to the caller: so many follow each other.
    let list = unsafe { std::slice::from_raw_parts(list, usize::try_from(looked).unwrap_or(0)) };
    let sum = list.iter().fold(0, |sum: u64, one| sum.saturating_add(size(one)));
    in_proportion(sum, looked, count)
}

/// Where in the host's memory a copy into a stream would put its bytes, if it may: a call that gives such a place
/// returns when they are there, unless the driver knows the memory.
///
/// # Safety
///
/// The words are the arguments of a call of which [`Class`](crate::class::Class) says so.
pub unsafe fn host_target(kind: Kind, size: Size, words: &[u64]) -> Option<u64> {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    match (kind, size) {
        // In all of these the target comes first; a prefetch, which has its size behind that, copies nothing.
        (Kind::Down | Kind::Any, Size::Bytes(at)) if at > 1 => Some(word(0)),
        // SAFETY: up to the caller.
        (_, Size::Rows(at)) => unsafe { (word(at) as *const Copy2D).as_ref() }
            .filter(|copy| copy.target == MemoryType::HOST)
            .map(|copy| copy.target_host() as u64),
        // SAFETY: up to the caller.
        (Kind::Any, Size::Box(at)) => unsafe { (word(at) as *const Copy3D).as_ref() }
            .filter(|copy| copy.target == MemoryType::HOST)
            .map(|copy| copy.target_host() as u64),
        _ => None,
    }
}

/// Whether a copy as a structure says goes to the host.
///
/// # Safety
///
/// It is a structure of that kind.
pub unsafe fn is_down(size: Size, argument: Ptr) -> bool {
    let target = match size {
        // SAFETY: up to the caller.
        Size::Rows(_) => unsafe { argument.cast::<Copy2D>().as_ref() }.map(|copy| copy.target),
        // SAFETY: up to the caller.
        Size::Box(_) => unsafe { argument.cast::<Copy3D>().as_ref() }.map(|copy| copy.target),
        _ => None,
    };
    target == Some(MemoryType::HOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::times::Company;

    #[test]
    fn bytes_are_counted_as_calls_say() {
        let sizes = [100_usize, 200, 300];
        let words = [7, sizes.as_ptr() as u64, 3, 40, 50];
        let count = |size| {
            // SAFETY: the words are as the size says.
            unsafe { bytes(size, &words) }
        };
        assert_eq!(count(Size::Bytes(0)), 7);
        assert_eq!(count(Size::Elements(0, 4)), 28);
        assert_eq!(count(Size::Area(3, 4, 2)), 4_000);
        assert_eq!(count(Size::List(1, 2)), 600);
        assert_eq!(count(Size::Bytes(9)), 0, "no such argument");
        let many = vec![1_usize; 64];
        let words = [many.as_ptr() as u64, 64_000];
        // SAFETY: only the first ones are looked at.
        assert_eq!(unsafe { bytes(Size::List(0, 1), &words) }, 64_000);
    }

    #[test]
    fn copies_are_predicted_by_what_others_of_their_size_took() {
        let before = Moved::new(Kind::Down, 3 << 20).need_ns();
        assert!((100_000..1_000_000).contains(&before), "{before}");
        let copy = Moved::new(Kind::Down, 3 << 20);
        let entry = copy.entry().unwrap();
        let (of, to) = copy.scale();
        entry.learn(in_proportion(60_000, of, to), Company::None);
        let near = |ns: u64, is: u64| assert!(ns.abs_diff(is) * 100 < is, "{ns} {is}");
        near(Moved::new(Kind::Down, 3 << 20).need_ns(), 60_000);
        near(Moved::new(Kind::Down, 4 << 20).need_ns(), 80_000);
        assert!(Moved::new(Kind::Up, 3 << 20).need_ns() > 100_000, "the other way is another matter");
    }

    #[test]
    fn a_graph_that_changes_is_taken_to_be_as_before() {
        graph(0x7100).unwrap().learn(5_000, Company::None);
        renew_graph(0x7100);
        assert_eq!(graph(0x7100).unwrap().need(), Need::Known(5_000));
    }

    #[test]
    fn copies_that_may_wait_say_where_they_go() {
        let words = [0x5000, 0x6000, 64, 7];
        let target = |kind, size| {
            // SAFETY: no structure is looked at.
            unsafe { host_target(kind, size, &words) }
        };
        assert_eq!(target(Kind::Down, Size::Bytes(2)), Some(0x5000));
        assert_eq!(target(Kind::Any, Size::Bytes(2)), Some(0x5000));
        assert_eq!(target(Kind::Up, Size::Bytes(2)), None);
        assert_eq!(target(Kind::Any, Size::Bytes(1)), None, "a prefetch");
        let mut rows = [0_usize; 16];
        for (kind, expected) in [(1, Some(0x7000)), (2, None)] {
            (rows[9], rows[10]) = (kind, 0x7000);
            let words = [rows.as_ptr() as u64];
            // SAFETY: a structure of sixteen words.
            assert_eq!(unsafe { host_target(Kind::Any, Size::Rows(0), &words) }, expected);
        }
    }

    #[test]
    fn a_graph_that_was_replaced_is_unknown_again() {
        let first = graph(0x7000).unwrap();
        first.learn(5_000, Company::None);
        assert_eq!(graph(0x7000).unwrap().need(), Need::Known(5_000));
        forget_graph(0x7000);
        assert_eq!(graph(0x7000).unwrap().need(), Need::Unknown);
    }
}
