//! The program's heap, which is ours as well.
//!
//! Renderers on the CPU allocate what a frame needs and free it when it was drawn. What is free at
//! the end of the heap, glibc gives back to the system if it is more than 128 KiB, and the next frame
//! faults it in again, page by page: a few hundred faults per frame, several per cent of its time.
//! Whether something lies at the end that keeps it from doing so is chance, and what Takt allocates
//! changes it, for better or worse.
//!
//! A program that has once freed a block which glibc had mapped by itself is assumed to do so again:
//! from then on twice its size may stay free at the end. So one is freed here.

use std::sync::Once;

/// What is freed: twice that is more than scenes of llvmpipe need, and no burden to anybody.
const BLOCK: usize = 4 << 20;

/// Lets what is freed stay with the program, up to twice [`BLOCK`].
pub(crate) fn keep_what_is_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK))));
}
