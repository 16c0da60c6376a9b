//! Events of ours in the program's streams.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use takt_cuda_api::{Ptr, real, result, stream};

use crate::capture;
use crate::streams::{Stream, Touched, can_record_contexts, current_device, in_context};

/// Events that are kept for later, in each context and of each kind.
const KEPT_MAX: usize = 64;

/// An event that only says that it happened.
const PLAIN: u32 = 2;
/// One that also says when.
const TIMED: u32 = 0;

/// Whether an event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    /// Not yet.
    NotYet,
    /// Yes.
    Yes,
    /// It never will: its context is gone, or broken.
    Never,
}

/// Events that are not in use.
#[derive(Default, Debug)]
struct Kept {
    plain: Vec<usize>,
    timed: Vec<usize>,
    device: Option<i32>,
}

static KEPT: Mutex<Option<HashMap<usize, Kept>>> = Mutex::new(None);

fn kept<T>(context: usize, act: impl FnOnce(&mut Kept) -> T) -> T {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    act(kept.get_or_insert_with(HashMap::new).entry(context).or_default())
}

/// Forgets the events of contexts that are about to go.
pub(super) fn forget(is_gone: impl Fn(usize) -> bool) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = kept.as_mut() {
        kept.retain(|context, _| !is_gone(*context));
    }
}

/// The contexts of a device in which there are events of ours.
pub(crate) fn contexts_of(device: i32) -> Vec<usize> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let all = kept.iter().flatten();
    all.filter(|(_, kept)| kept.device == Some(device)).map(|(context, _)| *context).collect()
}

/// An event that was recorded.
#[derive(Debug)]
pub struct Mark {
    context: usize,
    event: usize,
    flags: u32,
}

/// How an event is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Stream(usize),
    /// Behind all work of the context.
    Context,
}

impl Mark {
    /// Records one that says when. No stream begins to be captured meanwhile.
    pub fn timed(stream: &Stream) -> Option<Self> {
        let _alone = capture::none_begins();
        if capture::is_any() {
            return None;
        }
        Self::record(stream.find_context(), Place::Stream(stream.handle), TIMED)
    }

    fn record(context: usize, place: Place, flags: u32) -> Option<Self> {
        in_context(context, || {
            let event = Self::take(context, flags)?;
            let mark = Self { context, event, flags };
            let recorded = match place {
                // SAFETY: an event of ours and a stream of the program, in one context.
                Place::Stream(handle) => unsafe { real::cuEventRecord(mark.pointer(), pointer(handle)) },
                // SAFETY: an event of ours in that context.
                Place::Context => unsafe { real::cuCtxRecordEvent(pointer(context), mark.pointer()) },
            };
            if recorded == result::SUCCESS {
                return Some(mark);
            }
            mark.give_back();
            None
        })
    }

    /// An event of the context that is current.
    fn take(context: usize, flags: u32) -> Option<usize> {
        let list = |kept: &mut Kept| if flags == TIMED { kept.timed.pop() } else { kept.plain.pop() };
        if let Some(event) = kept(context, list) {
            return Some(event);
        }
        let mut event: Ptr = std::ptr::null_mut();
        // SAFETY: there is room for the handle.
        let made = unsafe { real::cuEventCreate((&raw mut event).cast(), flags) };
        if made != result::SUCCESS {
            return None;
        }
        kept(context, |kept| kept.device = kept.device.or_else(current_device));
        Some(event.addr())
    }

    fn pointer(&self) -> Ptr {
        pointer(self.event)
    }

    /// Its context.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Whether it happened.
    pub fn look(&self) -> Happened {
        // SAFETY: an event of ours.
        match in_context(self.context, || unsafe { real::cuEventQuery(self.pointer()) }) {
            result::SUCCESS => Happened::Yes,
            result::NOT_READY => Happened::NotYet,
            // The driver answers nothing while this thread's own capture is under way.
            result::STREAM_CAPTURE_UNSUPPORTED => Happened::NotYet,
            _ => Happened::Never,
        }
    }

    /// How long after this one the other happened, in nanoseconds.
    pub fn until_ns(&self, other: &Self) -> Option<u64> {
        let mut ms = 0_f32;
        // SAFETY: two events of ours, and room for the number.
        let told = in_context(self.context, || unsafe {
            real::cuEventElapsedTime((&raw mut ms).cast(), self.pointer(), other.pointer())
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        (told == result::SUCCESS && (0.0..1e9).contains(&ms)).then_some((f64::from(ms) * 1e6) as u64)
    }

    /// Keeps the event for later.
    pub fn give_back(self) {
        let spare = kept(self.context, |kept| {
            let list = if self.flags == TIMED { &mut kept.timed } else { &mut kept.plain };
            let has_room = list.len() < KEPT_MAX;
            if has_room {
                list.push(self.event);
            }
            !has_room
        });
        if spare {
            // SAFETY: an event of ours that no list has any more.
            unsafe { real::cuEventDestroy_v2(self.pointer()) };
        }
    }
}

fn pointer(handle: usize) -> Ptr {
    std::ptr::without_provenance_mut(handle)
}

/// Events behind a group.
#[derive(Debug)]
pub struct Marks {
    marks: Vec<Mark>,
    /// A stream could not be marked, so the group is over no earlier than predicted.
    until_ns: u64,
    /// Some mark never happened, or there was none.
    unseen: bool,
}

impl Marks {
    /// Records events in all streams that a group touched, which is predicted to be over at that time.
    pub fn behind(touched: &[Touched], predicted_end_ns: u64) -> Self {
        let _alone = capture::none_begins();
        let mut marks = Self { marks: Vec::with_capacity(touched.len()), until_ns: 0, unseen: false };
        for touched in touched {
            match mark(touched) {
                Some(mark) => marks.marks.push(mark),
                None => (marks.until_ns, marks.unseen) = (predicted_end_ns, true),
            }
        }
        marks
    }

    /// All of both.
    pub fn add(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.until_ns = self.until_ns.max(other.until_ns);
        self.unseen |= other.unseen;
    }

    /// Whether all happened.
    pub fn are_over(&mut self, now_ns: u64) -> bool {
        while let Some(mark) = self.marks.pop() {
            match mark.look() {
                Happened::Yes => mark.give_back(),
                Happened::NotYet => {
                    self.marks.push(mark);
                    return false;
                }
                // Its event is of no use any more.
                Happened::Never => self.unseen = true,
            }
        }
        now_ns >= self.until_ns
    }

    /// Whether the end of all was seen.
    pub fn are_seen(&self) -> bool {
        !self.unseen && self.marks.is_empty()
    }

    /// Whether one of them is in such a context.
    pub fn is_in(&self, context: impl Fn(usize) -> bool) -> bool {
        self.marks.iter().any(|mark| context(mark.context))
    }

    /// Keeps the events for later.
    pub fn give_back(self) {
        self.marks.into_iter().for_each(Mark::give_back);
    }
}

/// Records an event in a stream; none if that is impossible now.
fn mark(touched: &Touched) -> Option<Mark> {
    let Touched { stream, context } = *touched;
    if stream.is_of_another_thread() {
        // Only its own thread can name it. The legacy stream waits for it, but also makes others wait.
        let behind = if can_record_contexts() { Place::Context } else { Place::Stream(stream::LEGACY) };
        let forbidden = capture::is_any();
        return if forbidden { None } else { Mark::record(context, behind, PLAIN) };
    }
    let is_captured = capture::is_any() && in_context(context, || stream.is_captured());
    if is_captured { None } else { Mark::record(context, Place::Stream(stream.handle), PLAIN) }
}
