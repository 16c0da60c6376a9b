//! Structures that begin with their size.
//!
//! The size is that of the header which a program was compiled with. Later versions add members at the
//! end, and the library keeps to those that the program knows: it reads no more, writes no more, and
//! takes the rest as if it had been initialised.

use crate::Status;

/// A structure of C that begins with its size.
///
/// # Safety
///
/// It is `repr(C)`, its first member is its size, and any bytes that C programs write are valid.
pub(crate) unsafe trait Versioned: Copy {
    /// Sizes that it has had, each with whole members.
    const SIZES: &'static [usize];
}

/// The structure at `from`, with the members of `rest` where it is shorter.
///
/// # Safety
///
/// There is a structure of the size that it claims to have.
pub(crate) unsafe fn read<T: Versioned>(from: *const T, rest: T) -> Result<T, Status> {
    // SAFETY: it begins with its size.
    let size = unsafe { known(from) }?;
    let mut read = rest;
    // SAFETY: there are so many bytes, by this function's contract, and there is room for them, since
    // sizes only grow.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut read).cast(), size) };
    Ok(read)
}

/// Writes as much of `what` as the structure at `to` has room for; its size stays.
///
/// # Safety
///
/// As for [`read`].
pub(crate) unsafe fn write<T: Versioned>(to: *mut T, what: T) -> Result<(), Status> {
    // SAFETY: it begins with its size.
    let size = unsafe { known(to) }?;
    // SAFETY: as in `read`, the other way round.
    unsafe { std::ptr::copy_nonoverlapping((&raw const what).cast::<u8>(), to.cast(), size) };
    // SAFETY: it begins with its size.
    unsafe { to.cast::<usize>().write(size) };
    Ok(())
}

/// The size at the beginning, if the structure has ever had that.
///
/// # Safety
///
/// As for [`read`].
unsafe fn known<T: Versioned>(at: *const T) -> Result<usize, Status> {
    // SAFETY: it begins with its size, by the caller's contract.
    let size = unsafe { at.cast::<usize>().read() };
    if T::SIZES.contains(&size) { Ok(size) } else { Err(Status::TAKT_SIZE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Later {
        size: usize,
        first: u64,
        added: u64,
    }

    // SAFETY: its size comes first, and the rest are numbers.
    unsafe impl Versioned for Later {
        const SIZES: &'static [usize] = &[16, 24];
    }

    #[test]
    fn programs_of_older_versions_are_understood() {
        let rest = Later { size: 24, first: 1, added: 2 };
        let mut given = Later { size: 16, first: 7, added: 99 };
        // SAFETY: there is more than it claims.
        let read = unsafe { read(&raw const given, rest) };
        assert_eq!(read, Ok(Later { size: 16, first: 7, added: 2 }));
        // SAFETY: as above.
        assert_eq!(unsafe { write(&raw mut given, rest) }, Ok(()));
        assert_eq!(given, Later { size: 16, first: 1, added: 99 }, "no more than it has room for");
        for size in [0, 8, 20, 32] {
            given.size = size;
            // SAFETY: the size is not believed.
            assert_eq!(unsafe { write(&raw mut given, rest) }, Err(Status::TAKT_SIZE), "{size}");
        }
    }
}
