//! Reading what a program points to.
//!
//! A program hands pointers to GL and promises that there is something behind them; where it makes
//! a mistake, GL reports an error and reads nothing. Takt cannot tell in advance, so it lets the
//! kernel read: a wrong pointer is then an error code, not a crash.

/// More is not read for one draw.
pub(crate) const BYTES_MAX: usize = 8 << 20;

/// Copies memory of this process into `into`; false if some of it is not there, or it is too much.
pub(crate) fn read(address: usize, bytes: usize, into: &mut Vec<u8>) -> bool {
    into.clear();
    if address == 0 || bytes > BYTES_MAX || address.checked_add(bytes).is_none() {
        return false;
    }
    into.resize(bytes, 0);
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    let process = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    // SAFETY: the kernel checks what it reads from, and writes to a vector with that much room.
    let copied = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    let complete = usize::try_from(copied) == Ok(bytes);
    if !complete {
        into.clear();
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read() {
        let bytes = [1_u8, 2, 3];
        let mut copy = Vec::new();
        assert!(read(bytes.as_ptr() as usize, 3, &mut copy));
        assert_eq!(copy, bytes);
    }

    #[test]
    fn wrong_pointers_are_no_crash() {
        let mut copy = vec![7];
        for (address, bytes) in
            [(0, 4), (16, 4), (usize::MAX - 2, 4), (copy.as_ptr() as usize, BYTES_MAX + 1)]
        {
            assert!(!read(address, bytes, &mut copy), "{address}");
            assert!(copy.is_empty());
        }
    }
}
