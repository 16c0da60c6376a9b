//! That the heap keeps what is freed.

use std::hint::black_box;

use takt_gl::heap;

/// More than glibc keeps on its own.
const FRAME_BYTES: usize = 2 << 20;

/// How much of the heap is not with the kernel.
#[cfg(target_env = "gnu")]
fn held() -> usize {
    // SAFETY: takes no arguments.
    unsafe { libc::mallinfo2() }.arena
}

#[test]
#[cfg(target_env = "gnu")]
fn what_a_frame_frees_is_there_for_the_next() {
    let frame = || drop(black_box(vec![1_u8; FRAME_BYTES]));
    heap::make_room();
    frame();
    let before = held();
    assert!(before >= FRAME_BYTES, "it went back to the kernel: {before}");
    for _ in 0..4 {
        frame();
        assert_eq!(held(), before);
    }
}
