//! What is done about a call.
//!
//! Whatever goes wrong on our side, the driver's function is called once, with the program's arguments, and the
//! program gets its answer. A call that the driver makes itself while it serves one passes untouched.

use std::cell::Cell;
use std::ffi::CStr;

use takt_cuda_api::types::{DeviceLaunch, LaunchConfig};
use takt_cuda_api::{Id, Ptr, result};

use crate::class::{Capture, Class, Kind, Size, Target, Thing, Whole, Work, is_thread};
use crate::client::{Boundary, Client, Pass, client, hand_over_all, hand_over_all_surely, known, rest_all};
use crate::ends::{self, Mark};
use crate::facts::Count;
use crate::predict::moved::{self, Moved};
use crate::predict::{Entry, Launch, Need, kernel};
use crate::settings::settings;
use crate::streams::{self, Stream};
use crate::{capture, deadlines, driver, entry, facts, guard};

/// Looks for work in flight that a wait may end early, in a row: then the program polls.
const POLLS: u32 = 2;

thread_local! {
    /// This thread is inside of a call.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// It asked so often in a row whether work is over, and it was not.
    static POLLED: Cell<u32> = const { Cell::new(0) };
}

/// A number or pointer of a call as a word.
pub trait Word {
    /// The word.
    fn word(self) -> u64;
}

macro_rules! words {
    ($($kind:ty),*) => { $(impl Word for $kind { #[inline] fn word(self) -> u64 { self.into() } })* };
}
words!(u8, u16, u32, u64);

impl Word for usize {
    #[inline]
    fn word(self) -> u64 {
        self as u64
    }
}

impl Word for i32 {
    #[inline]
    fn word(self) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "only handed on")]
        let word = i64::from(self) as u64;
        word
    }
}

impl Word for Ptr {
    #[inline]
    fn word(self) -> u64 {
        self.addr() as u64
    }
}

/// Whether this thread is inside of a call that Takt has seen.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Makes the program's call of a hooked entry point.
///
/// # Safety
///
/// `words` are the arguments, as the program gave them, and `call` calls the driver with them.
#[inline]
pub unsafe fn through<const N: usize>(id: Id, class: Class, words: &[u64; N], call: impl Fn() -> i32) -> i32 {
    if INSIDE.get() {
        return call();
    }
    INSIDE.set(true);
    let call = Call { is_thread: is_thread(id), words, call: &call };
    // SAFETY: up to the caller.
    let answer = unsafe { call.handle(class) };
    INSIDE.set(false);
    answer
}

/// A call that the program makes.
struct Call<'a, F> {
    is_thread: bool,
    words: &'a [u64],
    call: &'a F,
}

/// Whether the program is to be scheduled, and is.
#[inline]
fn is_scheduled() -> bool {
    settings().is_scheduled() && !guard::is_switched_off()
}

impl<F: Fn() -> i32> Call<'_, F> {
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a word is a pointer here")]
    fn handle_at(&self, at: usize) -> usize {
        self.word(at) as usize
    }

    fn pointer(&self, at: usize) -> Ptr {
        std::ptr::without_provenance_mut(self.handle_at(at))
    }

    #[inline]
    fn pass(&self) -> i32 {
        (self.call)()
    }

    #[inline]
    unsafe fn handle(&self, class: Class) -> i32 {
        match class {
            // SAFETY: up to the caller.
            Class::Work(work, target) => unsafe { self.works(work, target) },
            // SAFETY: up to the caller.
            Class::Moves(kind, size) => unsafe { self.moves(kind, size) },
            Class::Waits(whole) => self.waits(whole),
            Class::Asks => self.asks(),
            Class::Joins => self.joins(),
            Class::Halts => self.halts(),
            Class::Tells(stream) => self.tells(stream),
            Class::Changes => self.changes(),
            Class::Captures(what) => self.captures(what),
            Class::Ends(thing) => self.ends(thing),
            // SAFETY: up to the caller.
            Class::Loads { from, memory } => unsafe { self.loads(from, memory) },
            // SAFETY: up to the caller.
            Class::Address => unsafe { self.address() },
            Class::Begins => self.begins(),
        }
    }

    /// Work for the GPU.
    #[inline]
    unsafe fn works(&self, work: Work, target: Target) -> i32 {
        facts::count(match work {
            Work::Graph => Count::Graph,
            Work::Moved(..) => Count::Moved,
            _ => Count::Kernel,
        });
        if !is_scheduled() {
            return self.pass();
        }
        if let Work::Moved(kind, size) = work
            // SAFETY: up to the caller.
            && let Some(stream) = guard::shielded(|| unsafe { self.awaited(kind, size, target) }).flatten()
        {
            // SAFETY: up to the caller.
            return unsafe { self.moves_scheduled(kind, size, stream) };
        }
        // SAFETY: up to the caller.
        let begun = guard::shielded(|| unsafe { self.begin_work(work, target) }).flatten();
        let answer = self.pass();
        if let Some(begun) = begun {
            guard::shielded(|| begun.end());
        }
        answer
    }

    #[inline]
    unsafe fn begin_work(&self, work: Work, target: Target) -> Option<Begun> {
        // SAFETY: up to the caller.
        let stream = Stream::of(unsafe { self.stream(target) }, self.is_thread);
        if capture::is_captured(&stream) {
            return None;
        }
        POLLED.set(0);
        let client = deadlines::client_of(&stream).unwrap_or_else(|| {
            client().commands();
            client()
        });
        // SAFETY: up to the caller.
        let (entry, need, scale) = unsafe { self.need(work) };
        let samples = entry.is_some_and(Entry::launches);
        let (pass, alone) = match need {
            Need::Known(ns) => (client.admit(ns, &stream), false),
            Need::Unknown => client.admit_alone(entry, &stream),
        };
        let sample =
            (samples && (!alone || ends::is_distrusted())).then(|| ends::begin_sample(&stream)).flatten();
        Some(Begun { client, stream, pass, alone, sample: sample.zip(entry), scale })
    }

    unsafe fn stream(&self, target: Target) -> usize {
        match target {
            Target::Argument(at) => self.handle_at(at),
            Target::Default => 0,
            // SAFETY: up to the caller; the hooked function says which of both structures it is.
            Target::AsSaid => unsafe { self.pointer(0).cast::<LaunchConfig>().as_ref() }
                .map_or(0, |config| config.stream.addr()),
        }
    }

    /// What the work will need, and what is known of such work.
    #[inline]
    unsafe fn need(&self, work: Work) -> (Option<&'static Entry>, Need, Option<(u64, u64)>) {
        let known = |entry: Option<&'static Entry>| (entry, entry.map_or(Need::Unknown, Entry::need), None);
        #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bits")]
        let at = |at: usize| self.word(at) as u32;
        match work {
            Work::Kernel => {
                let (grid, block) = ([at(1), at(2), at(3)], [at(4), at(5), at(6)]);
                known(Launch::new(self.handle_at(0), grid, block, at(7)).entry())
            }
            Work::KernelAsSaid => {
                // SAFETY: up to the caller.
                let config = unsafe { self.pointer(0).cast::<LaunchConfig>().as_ref() };
                let function = self.handle_at(1);
                // SAFETY: up to the caller.
                known(config.and_then(|config| unsafe { Launch::said(config, function) }.entry()))
            }
            Work::Kernels => {
                // SAFETY: up to the caller; the first one stands for all.
                let first = unsafe { self.pointer(0).cast::<DeviceLaunch>().as_ref() };
                known(first.and_then(|first| Launch::on_device(first).entry()))
            }
            Work::Grid => known(Launch::new(self.handle_at(0), [at(1), at(2), 1], [0; 3], 0).entry()),
            Work::Graph => known(moved::graph(self.handle_at(0))),
            Work::Moved(kind, size) => {
                // SAFETY: up to the caller.
                let bytes = unsafe { moved::bytes(size, self.words) };
                let moved = Moved::new(kind, bytes);
                (moved.entry(), Need::Known(moved.need_ns()), Some(moved.scale()))
            }
        }
    }

    /// The stream of a copy into a stream that returns when its bytes are there, because the driver does not know the
    /// memory of the host that they go to.
    unsafe fn awaited(&self, kind: Kind, size: Size, target: Target) -> Option<Stream> {
        // SAFETY: up to the caller.
        let address = unsafe { moved::host_target(kind, size, self.words) }?;
        if capture::is_any() || streams::is_known(address) {
            return None;
        }
        // SAFETY: up to the caller.
        Some(Stream::of(unsafe { self.stream(target) }, self.is_thread))
    }

    /// Bytes that are there when the call returns.
    unsafe fn moves(&self, kind: Kind, size: Size) -> i32 {
        facts::count(Count::Moved);
        if !is_scheduled() {
            return self.pass();
        }
        // SAFETY: up to the caller.
        unsafe { self.moves_scheduled(kind, size, Stream::of(0, self.is_thread)) }
    }

    unsafe fn moves_scheduled(&self, kind: Kind, size: Size, stream: Stream) -> i32 {
        // SAFETY: up to the caller.
        let begun = guard::shielded(|| unsafe { self.begin_move(kind, size, stream) }).flatten();
        let answer = self.pass();
        guard::shielded(|| {
            if let Some(begun) = begun {
                begun.end();
                client().rested();
                rest_all();
            }
            self.waited(client());
        });
        answer
    }

    /// Credit for bytes that are moved while the thread is inside of the driver; none where they need none.
    unsafe fn begin_move(&self, kind: Kind, size: Size, stream: Stream) -> Option<Begun> {
        let client = client();
        POLLED.set(0);
        // SAFETY: up to the caller.
        let down = kind == Kind::Down || unsafe { moved::is_down(size, self.pointer(0)) };
        if down || kind == Kind::Any {
            client.reaches(Boundary::Wait);
        } else {
            client.commands();
        }
        rest_all();
        // SAFETY: up to the caller.
        let need_ns = Moved::new(kind, unsafe { moved::bytes(size, self.words) }).need_ns();
        let client = deadlines::client_of(&stream).unwrap_or(client);
        if client.is_small(need_ns) {
            return None;
        }
        if capture::is_captured(&stream) {
            return None;
        }
        let pass = client.admit(need_ns, &stream);
        Some(Begun { client, stream, pass, alone: false, sample: None, scale: None })
    }

    /// The program waits.
    fn waits(&self, whole: Whole) -> i32 {
        let Some(client) = known().filter(|_| is_scheduled()) else {
            return self.pass();
        };
        guard::shielded(|| match whole {
            Whole::Part => {
                client.reaches(Boundary::Wait);
                rest_all();
            }
            Whole::All => {
                client.reaches(Boundary::Finish);
                rest_all();
            }
            Whole::Memory => hand_over_all(),
        });
        let answer = self.pass();
        guard::shielded(|| match whole {
            Whole::Memory => {}
            Whole::Part | Whole::All => self.waited(client),
        });
        answer
    }

    /// The program has waited: what it waited for is over, and the daemon is told at once.
    fn waited(&self, client: &Client) {
        kernel::waited();
        if !capture::is_any() {
            ends::look();
        }
        client.rested();
        client.reached();
    }

    /// The program asks whether work is over.
    fn asks(&self) -> i32 {
        let answer = self.pass();
        let Some(client) = known().filter(|_| is_scheduled()) else {
            return answer;
        };
        guard::shielded(|| match answer {
            result::NOT_READY => {
                POLLED.set(POLLED.get().saturating_add(1));
                if POLLED.get() == POLLS {
                    hand_over_all();
                }
            }
            result::SUCCESS if POLLED.replace(0) >= POLLS => {
                client.reaches(Boundary::Flush);
                self.waited(client);
            }
            // It looked once, late enough: programs with jobs may wait so, by sleeping in between.
            result::SUCCESS if client.is_judged() && Client::has_commanded() => {
                client.reaches(Boundary::Flush);
                client.reached();
            }
            _ => {}
        });
        answer
    }

    /// A stream waits for an event, which may be one of a capture.
    fn joins(&self) -> i32 {
        if !capture::is_any() {
            return self.pass();
        }
        self.before_capture();
        capture::join(|| self.pass())
    }

    /// A stream waits for something that others do: how long it does says nothing of the work behind.
    fn halts(&self) -> i32 {
        ends::distrust();
        self.pass()
    }

    /// The program is told when what is in a stream is over, and may wait for that without any call.
    fn tells(&self, stream: usize) -> i32 {
        let stream = Stream::of(self.handle_at(stream), self.is_thread);
        let scheduled = known().filter(|_| is_scheduled() && !capture::is_captured(&stream));
        let Some(client) = scheduled else {
            return self.pass();
        };
        guard::shielded(|| {
            client.reaches(Boundary::Export);
            // What follows is the program's own work, on a processor.
            client.hand_over_judged();
        });
        let answer = self.pass();
        guard::shielded(|| client.reached());
        answer
    }

    /// What executes a graph changes.
    fn changes(&self) -> i32 {
        let answer = self.pass();
        if answer == result::SUCCESS && is_scheduled() {
            guard::shielded(|| moved::renew_graph(self.handle_at(0)));
        }
        answer
    }

    fn captures(&self, what: Capture) -> i32 {
        match what {
            Capture::Begin => {
                self.before_capture();
                capture::begin(|| self.pass())
            }
            Capture::End => {
                let answer = self.pass();
                guard::shielded(|| {
                    if !Stream::of(self.handle_at(0), self.is_thread).is_captured() {
                        capture::end();
                    }
                });
                answer
            }
        }
    }

    /// What is in streams before a capture is followed by events before it begins.
    fn before_capture(&self) {
        if is_scheduled() {
            guard::shielded(hand_over_all_surely);
        }
    }

    /// Something goes.
    fn ends(&self, thing: Thing) -> i32 {
        let handle = self.handle_at(0);
        guard::shielded(|| match thing {
            Thing::Code => kernel::unloaded(handle),
            Thing::Graph => moved::forget_graph(handle),
            Thing::Stream | Thing::Context | Thing::Device => {}
        });
        let Some(client) = known().filter(|_| is_scheduled()) else {
            return self.pass();
        };
        let gone = guard::shielded(|| match thing {
            Thing::Stream => {
                deadlines::end_where(|stream, _| stream.handle == handle);
                if client.has_touched(handle) {
                    client.hand_over_surely();
                }
                Vec::new()
            }
            Thing::Context => {
                deadlines::end_where(|_, context| context == handle);
                hand_over_all_surely();
                ends::forget(|context| context == handle)
            }
            Thing::Device => {
                let contexts = ends::contexts_of(i32::try_from(self.word(0)).unwrap_or(0));
                deadlines::end_where(|_, context| contexts.contains(&context));
                hand_over_all_surely();
                ends::forget(|context| contexts.contains(&context))
            }
            Thing::Code | Thing::Graph => Vec::new(),
        });
        let answer = self.pass();
        guard::shielded(|| gone.map(ends::gone));
        answer
    }

    /// Code is loaded.
    unsafe fn loads(&self, from: usize, memory: bool) -> i32 {
        let answer = self.pass();
        if answer == result::SUCCESS && is_scheduled() {
            guard::shielded(|| {
                let from = self.pointer(from);
                let hash = if memory {
                    // SAFETY: up to the caller, and the call has succeeded.
                    unsafe { kernel::hash_of_image(from) }
                } else {
                    // SAFETY: a path that ends with a zero byte, as above.
                    kernel::hashed(unsafe { CStr::from_ptr(from.cast()) }.to_bytes())
                };
                // SAFETY: as above.
                let module = unsafe { self.pointer(0).cast::<usize>().read() };
                kernel::loaded(module, hash);
            });
        }
        answer
    }

    /// A name is looked up.
    unsafe fn address(&self) -> i32 {
        let answer = self.pass();
        let (name, to) = (self.pointer(0), self.pointer(1).cast::<Ptr>());
        if answer == result::SUCCESS && !name.is_null() && !to.is_null() {
            guard::attempted(|| {
                // SAFETY: up to the caller, and the call has succeeded.
                let given = unsafe { to.read() };
                if given.is_null() {
                    return;
                }
                // SAFETY: a name that ends with a zero byte.
                let ours = entry::address(unsafe { CStr::from_ptr(name.cast()) }, given, self.word(3));
                // SAFETY: as above.
                unsafe { to.write(ours) };
            });
        }
        answer
    }

    /// The program begins with CUDA.
    fn begins(&self) -> i32 {
        let there = driver::is_there();
        let answer = if there { self.pass() } else { result::NO_DEVICE };
        guard::shielded(|| match answer {
            result::SUCCESS if settings().is_wanted() => {
                driver::say_version();
                ends::start();
            }
            result::NO_DEVICE if settings().is_scheduled() => driver::say_none(there),
            _ => {}
        });
        answer
    }
}

/// Work that has its credit.
struct Begun {
    client: &'static Client,
    stream: Stream,
    pass: Pass,
    alone: bool,
    sample: Option<(Mark, &'static Entry)>,
    scale: Option<(u64, u64)>,
}

impl Begun {
    /// It is with the driver.
    #[inline]
    fn end(self) {
        if let Some((mark, entry)) = self.sample {
            ends::end_sample(self.client, entry, mark, &self.stream, self.scale);
        }
        if self.alone {
            self.client.leave_alone(self.pass, &self.stream);
        } else {
            self.client.leave(self.pass, &self.stream);
        }
    }
}
