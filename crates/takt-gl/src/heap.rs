//! Room in the program's heap.
//!
//! What is noted here lies in the heap that the program and its driver use. glibc gives the top of
//! that heap back to the kernel when enough of it is free, and whether something small lies in the
//! way is chance. A driver that takes and frees a megabyte per frame, as llvmpipe does, then pays
//! with page faults in every frame, a twentieth of the frame in bad cases; and what is noted here
//! changes the odds. glibc keeps more from the first time on that a large block was freed, because
//! a program that frees one is likely to want it again. So one is taken and freed. Limits that the program
//! has set itself stay as they are.

use std::hint::black_box;
use std::sync::Once;

/// glibc keeps twice as much.
const BLOCK_BYTES: usize = 8 << 20;

/// Has the heap keep more of what was freed.
pub fn make_room() {
    static ONCE: Once = Once::new();
    // The block is never touched, so it costs no memory.
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES))));
}
