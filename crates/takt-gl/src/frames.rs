//! Pictures of what a program shows.
//!
//! Before a swap the surface is read back and written as a PPM file. State that decides how pixels
//! are read is the program's state: it is set aside and put back.

use std::path::Path;

use crate::entry::{Id, Ptr, real};
use crate::{gl, guard};

/// What GL ES 3 has beyond the alignment.
const PACK_NEWER: [u32; 3] = [gl::PACK_ROW_LENGTH, gl::PACK_SKIP_ROWS, gl::PACK_SKIP_PIXELS];

/// Writes what the surface shows to `folder`, named by context and frame.
pub(crate) fn dump(folder: &Path, [width, height]: [u32; 2], newer: bool, (context, frame): (u64, u64)) {
    let (Ok(columns), Ok(rows)) = (usize::try_from(width), usize::try_from(height)) else {
        return;
    };
    if columns == 0 || rows == 0 {
        return;
    }
    let mut pixels = vec![0_u8; columns * rows * 4];
    {
        let _aside = Aside::set(newer);
        let (width, height) = (width.cast_signed(), height.cast_signed());
        let memory: Ptr = pixels.as_mut_ptr().cast();
        // SAFETY: a context is current; rows are packed tightly, so they fit.
        unsafe { real::glReadPixels(0, 0, width, height, gl::RGBA, gl::UNSIGNED_BYTE, memory) };
    }
    let path = folder.join(format!("{context}-{frame:06}.ppm"));
    if let Err(error) = std::fs::write(&path, picture(&pixels, columns, rows)) {
        guard::say(&format!("cannot write {}: {error}", path.display()));
    }
}

/// A PPM file of pixels that start at the bottom.
fn picture(pixels: &[u8], columns: usize, rows: usize) -> Vec<u8> {
    let mut file = format!("P6\n{columns} {rows}\n255\n").into_bytes();
    for row in pixels.chunks_exact(columns * 4).rev() {
        file.extend(row.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
    }
    file
}

/// State of the program, set aside until this goes.
struct Aside {
    newer: bool,
    alignment: i32,
    framebuffer: i32,
    buffer: i32,
    read_from: i32,
    pack: [i32; 3],
}

impl Aside {
    /// Sets aside how pixels are read, and reads tightly from the surface.
    fn set(newer: bool) -> Self {
        let newer = newer && Id::glReadBuffer.is_there();
        let only_newer = |what: u32| if newer { number(what) } else { 0 };
        let mut aside = Self {
            newer,
            alignment: number(gl::PACK_ALIGNMENT),
            framebuffer: number(if newer { gl::READ_FRAMEBUFFER_BINDING } else { gl::FRAMEBUFFER_BINDING }),
            buffer: only_newer(gl::PIXEL_PACK_BUFFER_BINDING),
            read_from: 0,
            pack: PACK_NEWER.map(only_newer),
        };
        aside.bind(0, 0);
        aside.pack(1, [0; 3]);
        // Each framebuffer has its own; so it is asked for while the surface is bound.
        aside.read_from = only_newer(gl::READ_BUFFER);
        if newer {
            // SAFETY: the surface is bound for reading, and has this buffer.
            unsafe { real::glReadBuffer(gl::BACK) };
        }
        aside
    }

    fn bind(&self, framebuffer: u32, buffer: u32) {
        let target = if self.newer { gl::READ_FRAMEBUFFER } else { gl::FRAMEBUFFER };
        // SAFETY: names that the program has bound itself, or none.
        unsafe { real::glBindFramebuffer(target, framebuffer) };
        if self.newer {
            // SAFETY: as above.
            unsafe { real::glBindBuffer(gl::PIXEL_PACK_BUFFER, buffer) };
        }
    }

    fn pack(&self, alignment: i32, newer: [i32; 3]) {
        // SAFETY: values that GL has given out, or its own defaults.
        unsafe { real::glPixelStorei(gl::PACK_ALIGNMENT, alignment) };
        for (what, value) in PACK_NEWER.into_iter().zip(newer).filter(|_| self.newer) {
            // SAFETY: as above; this context knows these.
            unsafe { real::glPixelStorei(what, value) };
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.pack(self.alignment, self.pack);
        if self.newer {
            // SAFETY: what the program read from before, while the surface is still bound.
            unsafe { real::glReadBuffer(self.read_from.cast_unsigned()) };
        }
        self.bind(self.framebuffer.cast_unsigned(), self.buffer.cast_unsigned());
    }
}

fn number(what: u32) -> i32 {
    let mut value = 0_i32;
    // SAFETY: a context is current; each of these is one number.
    unsafe { real::glGetIntegerv(what, (&raw mut value).cast()) };
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_start_at_the_top() {
        let pixels = [1, 2, 3, 255, 4, 5, 6, 255];
        assert_eq!(picture(&pixels, 1, 2), b"P6\n1 2\n255\n\x04\x05\x06\x01\x02\x03");
    }
}
