//! An output that remembers its first failure.

use std::io::{self, Write};

/// Passes bytes on until the first error, then drops them.
#[derive(Debug)]
pub(super) struct Sink<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, error: None }
    }

    /// Writes all of `bytes`, unless something failed before.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.error = Some(error);
        }
    }

    /// The first error so far, which is then forgotten.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Flushes, and reports the first error there was.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.check()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes, then refuses.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("disk full"));
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_error_comes_out_at_the_end() {
        let mut sink = Sink::new(Full(3));
        sink.put(b"ab");
        sink.put(b"cd");
        sink.put(b"ef");
        assert_eq!(sink.finish().unwrap_err().to_string(), "disk full");
    }
}
