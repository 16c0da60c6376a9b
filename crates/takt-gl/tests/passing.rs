//! Every hook hands its call on, once and as it came, and returns what the driver returned.
//!
//! The driver here has every entry point there is; it writes down what it is asked and answers at
//! random. Programs call at random, too, in two threads: contexts wander, are refused, and end
//! while they are current; names are deleted, enums are wrong. Whatever else the driver is asked
//! comes from Takt, and must be among the few calls that a program cannot notice.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use proptest::prelude::*;
use takt_gl::entry::{self, COUNT, Id, NAMES, Ptr, kind};
use takt_gl::{guard, measure, settings};
use takt_rng::Rng;

/// What Takt may ask for itself.
const OWN: &[Id] = &[
    Id::eglClientWaitSyncKHR,
    Id::eglCreateSyncKHR,
    Id::eglDestroySyncKHR,
    Id::eglGetConfigAttrib,
    Id::eglGetError,
    Id::eglQueryAPI,
    Id::eglQueryString,
    Id::eglQuerySurface,
    Id::glFlush,
    Id::glGetActiveUniform,
    Id::glGetAttribLocation,
    Id::glGetIntegerv,
    Id::glGetProgramiv,
    Id::glGetString,
    Id::glGetStringi,
    Id::glGetUniformLocation,
    Id::glXIsDirect,
];

/// One thing that the driver was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Asked {
    id: Id,
    arguments: Vec<u64>,
    answer: u64,
}

thread_local! {
    /// What the driver was asked during a call of the program; threads of Takt make no such calls.
    static ASKED: RefCell<Option<Vec<Asked>>> = const { RefCell::new(None) };
}

/// Whatever pointers lead to: enough for the largest count that is called with, and all zero.
static MEMORY: [u64; 8192] = [0; 8192];
static TEXT: &[u8] = b"EGL_KHR_fence_sync of nothing\0";

/// A handle that is a pointer as well.
fn handle(number: u64) -> Ptr {
    (&raw const MEMORY[usize::try_from(number % 3).unwrap_or(0) * 8]).cast_mut().cast()
}

/// A type of arguments and answers.
trait Value: Copy {
    /// Whether it leads to memory.
    const POINTS: bool = false;
    /// As a program might give it; without bounds only where no memory depends on it.
    fn rolled(rng: &mut Rng, bounded: bool) -> Self;
    /// As the driver might answer.
    fn answered(id: Id, roll: u64) -> Self;
    fn bits(self) -> u64;
}

impl Value for () {
    fn rolled(_dice: &mut Rng, _bounded: bool) {}
    fn answered(_id: Id, _roll: u64) {}
    fn bits(self) -> u64 {
        0
    }
}

impl Value for Ptr {
    const POINTS: bool = true;
    fn rolled(rng: &mut Rng, _bounded: bool) -> Self {
        if rng.next_u64().is_multiple_of(4) { std::ptr::null_mut() } else { handle(rng.next_u64()) }
    }
    fn answered(id: Id, roll: u64) -> Self {
        match id {
            Id::glGetString | Id::eglQueryString => TEXT.as_ptr().cast_mut().cast(),
            _ if roll.is_multiple_of(8) => std::ptr::null_mut(),
            _ => handle(roll),
        }
    }
    fn bits(self) -> u64 {
        self as u64
    }
}

/// Small names and counts, enums that mean something here and there, and anything.
const NUMBERS: [u32; 24] = [
    0,
    1,
    1,
    2,
    2,
    3,
    4,
    16,
    0x1403,
    0x1406,
    0x0DE1,
    0x4000,
    0x84C0,
    0x8892,
    0x8893,
    0x88E4,
    0x8CA9,
    0x8CE0,
    0x8D40,
    0x8D41,
    0x8866,
    0x8B31,
    0x3038,
    0xFFFF_FFFF,
];

macro_rules! numbers {
    ($($ty:ty: $bits:expr, $rolled:expr, $answered:expr;)*) => { $(
        impl Value for $ty {
            fn rolled(rng: &mut Rng, bounded: bool) -> Self {
                let rolled: fn(&mut Rng, bool) -> $ty = $rolled;
                rolled(rng, bounded)
            }
            fn answered(id: Id, roll: u64) -> Self {
                let answered: fn(Id, u64) -> $ty = $answered;
                answered(id, roll)
            }
            fn bits(self) -> u64 {
                let bits: fn($ty) -> u64 = $bits;
                bits(self)
            }
        }
    )* };
}

fn small(rng: &mut Rng) -> u8 {
    u8::try_from(rng.next_u64() % 40).unwrap_or(0)
}

fn integer(rng: &mut Rng, bounded: bool) -> i32 {
    match rng.next_u64() % 8 {
        0 => -1,
        1 => i32::MIN,
        2 if !bounded => i32::MAX,
        3 if !bounded => NUMBERS[rng.index(NUMBERS.len())].cast_signed(),
        _ => i32::from(small(rng)),
    }
}

fn code(id: Id, roll: u64) -> i32 {
    match id {
        Id::eglGetError => 0x3000,
        Id::eglClientWaitSyncKHR => 0x30F6,
        _ => i32::try_from(roll % 4).unwrap_or(0),
    }
}

fn answer(id: Id, roll: u64) -> u32 {
    if id == Id::eglQueryAPI { 0x30A0 } else { u32::try_from(roll % 4).unwrap_or(0) }
}

numbers! {
    u8: u64::from, |rng, _| small(rng) % 2, |_, roll| u8::from(roll.is_multiple_of(2));
    i8: |value| value.cast_unsigned().into(), |rng, _| small(rng).cast_signed(), |_, _| 0;
    i16: |value| value.cast_unsigned().into(), |rng, _| small(rng).into(), |_, _| 0;
    u16: u64::from, |rng, _| small(rng).into(), |_, _| 0;
    u32: u64::from, |rng, _| NUMBERS[rng.index(NUMBERS.len())], answer;
    i32: |value| value.cast_unsigned().into(), integer, code;
    u64: |value| value, |rng, _| rng.next_u64(), |_, roll| roll;
    usize: |value| value as u64, |rng, _| usize::from(small(rng) % 4), |_, roll| usize::from(roll % 4 != 0);
    i64: i64::cast_unsigned, |rng, _| small(rng).into(), |_, _| 0;
    isize: |value| value.cast_unsigned() as u64, |rng, _| isize::from(small(rng)) * 64 - 64, |_, _| 0;
    f32: |value| value.to_bits().into(), |rng, _| f32::from_bits(NUMBERS[rng.index(NUMBERS.len())]), |_, _| 0.0;
    f64: f64::to_bits, |rng, _| small(rng).into(), |_, _| 0.0;
}

/// The driver is asked.
fn asked<R: Value>(id: Id, arguments: Vec<u64>) -> R {
    ASKED.with_borrow_mut(|asked| {
        let before = asked.as_ref().map_or(0, Vec::len) as u64;
        let mix = |sum: u64, argument: &u64| sum.wrapping_mul(31) ^ argument;
        let answer = R::answered(id, Rng::seeded(arguments.iter().fold(before, mix)).next_u64());
        if let Some(asked) = asked {
            asked.push(Asked { id, arguments, answer: answer.bits() });
        }
        answer
    })
}

macro_rules! driver {
    ($( $api:ident $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ; )*) => {
        mod functions {
            use super::{Id, Ptr, Value, asked};
            $(
                pub(super) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                    asked(Id::$name, vec![$(Value::bits($arg)),*])
                }
            )*
        }

        fn function(id: Id) -> Ptr {
            match id {
                $(Id::$name => { let function: kind::$name = functions::$name; function as Ptr })*
            }
        }

        /// Calls what a program got for a name; says with which arguments, and what came back.
        fn call(id: Id, got: Ptr, rng: &mut Rng) -> (Vec<u64>, u64) {
            match id {
                $(Id::$name => {
                    let bounded = false $(|| <$ty as Value>::POINTS)*;
                    $(let $arg = <$ty as Value>::rolled(rng, bounded);)*
                    let _unused_without_arguments = (&rng, bounded);
                    // SAFETY: what a program gets for a name has the signature of the name.
                    let call: kind::$name = unsafe { std::mem::transmute(got) };
                    // SAFETY: pointers lead to as much memory as the bounds of counts demand.
                    let answer = unsafe { call($($arg),*) };
                    (vec![$($arg.bits()),*], answer.bits())
                })*
            }
        }
    };
}

takt_gl_api::for_each_entry_point!(driver);

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    Id::of(unsafe { std::ffi::CStr::from_ptr(name) }).map_or(std::ptr::null_mut(), function)
}

/// What tests look at belongs to the process, so they take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All entry points that are looked at, with what programs get for them.
fn hooks() -> &'static [(Id, usize)] {
    static HOOKS: OnceLock<Vec<(Id, usize)>> = OnceLock::new();
    HOOKS.get_or_init(|| {
        // SAFETY: no other thread of this process reads or writes variables yet.
        unsafe { std::env::set_var(settings::MEASURE, "/dev/null") };
        // SAFETY: as above.
        unsafe { std::env::set_var(settings::MODE, "all") };
        entry::set_finder(find);
        let names = NAMES.iter().map(|name| CString::new(*name).expect("a name"));
        let offered = names.filter_map(|name| {
            let id = Id::of(&name)?;
            let got = entry::offer(&name, function(id));
            (got != function(id)).then_some((id, got as usize))
        });
        offered.collect()
    })
}

/// A call of the program: which hook, and what else is rolled for it.
#[derive(Clone, Copy, Debug)]
struct Step {
    elsewhere: bool,
    which: usize,
    seed: u64,
}

/// Without contexts there is nothing to look at, so these come more often.
const OFTEN: [Id; 4] = [Id::eglCreateContext, Id::eglMakeCurrent, Id::glDrawArrays, Id::eglSwapBuffers];

impl Step {
    fn new(elsewhere: bool, which: u16, seed: u64) -> Self {
        let often = OFTEN.get(usize::from(which % 8));
        let index = often.and_then(|often| hooks().iter().position(|(known, _)| known == often));
        Self { elsewhere, which: index.unwrap_or_else(|| usize::from(which / 8)), seed }
    }
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<bool>(), any::<u16>(), any::<u64>());
    prop::collection::vec(
        step.prop_map(|(elsewhere, which, seed)| Step::new(elsewhere, which, seed)),
        1..count,
    )
}

/// Makes a call and judges what the driver was asked meanwhile; says how many groups were measured.
fn play(step: Step, hooks: &[(Id, usize)]) -> Result<usize, String> {
    let (id, got) = hooks[step.which % hooks.len()];
    ASKED.set(Some(Vec::new()));
    let (arguments, answer) = call(id, got as Ptr, &mut Rng::seeded(step.seed));
    let asked = ASKED.take().unwrap_or_default();
    let handed_on: Vec<&Asked> = asked.iter().filter(|asked| asked.id == id).collect();
    let [handed_on] = handed_on.as_slice() else {
        return Err(format!("{id:?} was handed on {} times", handed_on.len()));
    };
    if handed_on.arguments != arguments || handed_on.answer != answer {
        return Err(format!("{id:?}: {arguments:?} gave {answer}, but {handed_on:?}"));
    }
    match asked.iter().find(|asked| asked.id != id && !OWN.contains(&asked.id)) {
        Some(other) => Err(format!("{id:?} made Takt call {:?}", other.id)),
        None if guard::is_switched_off() => Err(format!("{id:?} broke its hook")),
        None => Ok(asked.iter().filter(|asked| asked.id == Id::eglCreateSyncKHR).count()),
    }
}

/// Plays what it is sent.
fn follow(steps: &Receiver<Step>, done: &SyncSender<Result<usize, String>>, hooks: &[(Id, usize)]) {
    for step in steps {
        done.send(play(step, hooks)).expect("the test waits");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_of_two_threads_in_turns_are_handed_on(steps in steps(250)) {
        let (_turn, hooks) = (turn(), hooks());
        let played = std::thread::scope(|scope| {
            let (to, from) = sync_channel(1);
            let (tell, told) = sync_channel(1);
            scope.spawn(move || follow(&from, &tell, hooks));
            steps.iter().try_for_each(|step| {
                if step.elsewhere {
                    to.send(*step).expect("it listens");
                    return told.recv().expect("it answers").map(drop);
                }
                play(*step, hooks).map(drop)
            })
        });
        prop_assert_eq!(played, Ok(()));
    }

    #[test]
    fn calls_of_two_threads_at_once_are_handed_on(first in steps(250), second in steps(250)) {
        let (_turn, hooks) = (turn(), hooks());
        let (first, second) = std::thread::scope(|scope| {
            let other = scope.spawn(|| second.iter().try_for_each(|step| play(*step, hooks).map(drop)));
            let first = first.iter().try_for_each(|step| play(*step, hooks).map(drop));
            (first, other.join().expect("no panic"))
        });
        prop_assert_eq!(first.and(second), Ok(()));
    }
}

/// Counts what is in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is handed on to the system's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: up to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: up to the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_same_calls_again_take_no_more_memory() {
    let (_turn, hooks) = (turn(), hooks());
    let mut rng = Rng::seeded(3);
    let steps: Vec<Step> = (0..1000)
        .map(|_| Step::new(false, u16::try_from(rng.next_u64() >> 24 & 0xFFFF).unwrap_or(0), rng.next_u64()))
        .collect();
    let mut fences = 0;
    let mut in_use = |rounds: usize| {
        for step in (0..rounds).flat_map(|_| &steps) {
            fences += play(*step, hooks).expect("calls are handed on");
        }
        measure::drain(None);
        IN_USE.load(Ordering::Relaxed)
    };
    let (early, late) = (in_use(10), in_use(30));
    assert!(late - early < 1 << 16, "{early} bytes, then {late}");
    assert!(fences > 100, "{fences} groups were measured");
}

#[test]
fn all_that_matters_is_looked_at() {
    let (_turn, hooks) = (turn(), hooks());
    assert!(hooks.len() > 200 && hooks.len() < COUNT, "{} of {COUNT}", hooks.len());
}
