//! Every interleaving of two sides, by model checking.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models -p takt-ipc --test interleavings`
#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use takt_ipc::ring::{CAPACITY, Full, Reader, Shared, Writer};
use takt_ipc::wake::Bell;

#[derive(Clone)]
struct Both(Arc<Shared>);

impl AsRef<Shared> for Both {
    fn as_ref(&self) -> &Shared {
        &self.0
    }
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    loom::model(|| {
        let shared = Both(Arc::new(Shared::new()));
        let mut writer = Writer::new(shared.clone());
        let mut reader = Reader::new(shared);
        let side = thread::spawn(move || {
            writer.push(&[1; 8]).expect("room");
            writer.push(&[2; 8]).expect("room");
        });
        let mut expected = 1;
        for _ in 0..3 {
            if let Some(words) = reader.pop().expect("an honest writer") {
                assert_eq!(words, [expected; 8]);
                expected += 1;
            }
        }
        side.join().expect("wrote");
    });
}

#[test]
fn a_slot_is_used_again_only_after_it_was_read() {
    loom::model(|| {
        let shared = Both(Arc::new(Shared::new()));
        let mut writer = Writer::new(shared.clone());
        let mut reader = Reader::new(shared);
        for n in 0..u64::from(CAPACITY) {
            writer.push(&[n; 8]).expect("room");
        }
        let side = thread::spawn(move || match writer.push(&[999; 8]) {
            Ok(()) | Err(Full::Full) => {}
            Err(Full::Corrupt(corrupt)) => panic!("{corrupt}"),
        });
        assert_eq!(reader.pop(), Ok(Some([0; 8])));
        assert_eq!(reader.pop(), Ok(Some([1; 8])));
        side.join().expect("wrote or not");
    });
}

/// What the kernel does for a word: sleeps while it has a value, compared and slept as one.
#[derive(Default)]
struct Kernel {
    wakes: Mutex<u32>,
    changed: Condvar,
}

impl Kernel {
    fn wake(&self) {
        *self.wakes.lock().expect("not poisoned") += 1;
        self.changed.notify_all();
    }

    fn wait(&self, word: &AtomicU32, value: u32) {
        let mut wakes = self.wakes.lock().expect("not poisoned");
        if word.load(Ordering::SeqCst) != value {
            return;
        }
        let before = *wakes;
        while *wakes == before {
            wakes = self.changed.wait(wakes).expect("not poisoned");
        }
    }
}

/// No ring is lost: loom reports a deadlock if the sleeper never wakes.
#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let bell = Arc::new(Bell::default());
        let kernel = Arc::new(Kernel::default());
        let published = Arc::new(AtomicBool::new(false));
        let ringer = thread::spawn({
            let (bell, kernel, published) = (bell.clone(), kernel.clone(), published.clone());
            move || {
                published.store(true, Ordering::Release);
                bell.ring_with(|_| kernel.wake());
            }
        });
        while !published.load(Ordering::Acquire) {
            bell.sleep_with(|| published.load(Ordering::Acquire), |word, value| kernel.wait(word, value));
        }
        ringer.join().expect("rang");
    });
}
