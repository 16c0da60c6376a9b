//! The memory that a client and the daemon share.
//!
//! The daemon makes it, fixes its size by seals and passes the descriptor on; a client cannot
//! shrink it, so no access can fail. Both sides see it only as atomics.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::ring::{Reader, Shared, Writer};
use crate::sync::{AtomicU32, Ordering};
use crate::wake::Bell;

/// What lies in the region, in this order.
#[repr(C)]
#[derive(Debug)]
pub struct Layout {
    requests: Shared,
    replies: Shared,
    bell: Bell,
    solitude: Solitude,
}

const _: () = {
    assert!(std::mem::offset_of!(Layout, requests) == 0);
    assert!(std::mem::offset_of!(Layout, replies) == 16_512);
    assert!(std::mem::offset_of!(Layout, bell) == 33_024);
    assert!(std::mem::offset_of!(Layout, solitude) == 33_088);
    assert!(size_of::<Layout>() == 33_152);
};

/// Whether the client is the only one. The daemon writes it when that changes, and the client looks
/// at it all the time: a new client need not wait for what this one would still like to do.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Solitude(AtomicU32);

impl Solitude {
    /// The client is alone, or not.
    pub fn set(&self, alone: bool) {
        self.0.store(alone.into(), Ordering::Relaxed);
    }

    /// Whether the client is alone.
    pub fn is_alone(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// What may lie in memory that others write to.
///
/// # Safety
///
/// It consists of atomics alone, for which any bytes are valid, and needs no more alignment than a page
/// has.
pub(crate) unsafe trait Shareable: Sync {}

// SAFETY: rings, a bell and a word, which are atomics.
unsafe impl Shareable for Layout {}

/// A mapping of some `T`.
#[derive(Debug)]
pub(crate) struct Mapping<T> {
    at: NonNull<T>,
}

// SAFETY: the mapping is owned by this value alone and stays where it is until it is dropped.
unsafe impl<T: Send> Send for Mapping<T> {}
// SAFETY: it only hands out shared references to `T`.
unsafe impl<T: Sync> Sync for Mapping<T> {}

impl<T: Shareable> Mapping<T> {
    /// Maps `fd` if it is a sealed region that is large enough: only then can no access fail.
    pub(crate) fn new(fd: BorrowedFd<'_>, access: ProtFlags) -> std::io::Result<Self> {
        if !fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            let what = "shared memory that can shrink";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        let size = u64::try_from(fstat(fd)?.st_size).unwrap_or_default();
        if size < size_of::<T>() as u64 {
            let what = format!("shared memory of {size} bytes, {} are needed", size_of::<T>());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        let address = std::ptr::null_mut();
        // SAFETY: the kernel picks a free range, so nothing that exists is touched.
        let at = unsafe { mmap(address, size_of::<T>(), access, MapFlags::SHARED, fd, 0) }?;
        let at = NonNull::new(at.cast()).ok_or_else(|| std::io::Error::other("mapped at null"))?;
        Ok(Self { at })
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: mapped, page-aligned and large enough since `new`, until `drop`; any bytes are
        // a valid `T`, and all changes from outside are to atomics, since it is shareable.
        unsafe { self.at.as_ref() }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: this is exactly the range that `new` mapped, and nothing borrows it any more.
        let gone = unsafe { munmap(self.at.as_ptr().cast(), size_of::<T>()) };
        debug_assert!(gone.is_ok(), "own mappings can be unmapped");
    }
}

/// Makes an anonymous file of that size that no process can resize.
pub(crate) fn sealed(name: &str, size: usize) -> std::io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, size as u64)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(fd)
}

/// One side's view of the region.
#[derive(Clone, Debug)]
pub struct Region(Arc<Mapping<Layout>>);

impl Region {
    /// Makes a region; returns the descriptor to pass on, too.
    pub fn create() -> std::io::Result<(Self, OwnedFd)> {
        let fd = sealed("takt-client", size_of::<Layout>())?;
        fcntl_add_seals(&fd, SealFlags::SEAL)?;
        Ok((Self::open(fd.as_fd())?, fd))
    }

    /// The region behind a descriptor that was received.
    pub fn open(fd: BorrowedFd<'_>) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Mapping::new(fd, ProtFlags::READ | ProtFlags::WRITE)?)))
    }

    /// Where the client sleeps.
    pub fn bell(&self) -> &Bell {
        &self.0.get().bell
    }

    /// Whether the client is the only one.
    pub fn solitude(&self) -> &Solitude {
        &self.0.get().solitude
    }

    /// The daemon's ends. To be called once, before the client has the region.
    pub fn daemon_ends(&self) -> (Reader<Requests>, Writer<Replies>) {
        (Reader::new(Requests(self.clone())), Writer::new(Replies(self.clone())))
    }

    /// The client's ends. To be called once.
    pub fn client_ends(&self) -> (Writer<Requests>, Reader<Replies>) {
        (Writer::new(Requests(self.clone())), Reader::new(Replies(self.clone())))
    }
}

/// The ring from the client to the daemon.
#[derive(Clone, Debug)]
pub struct Requests(Region);

impl AsRef<Shared> for Requests {
    fn as_ref(&self) -> &Shared {
        &self.0.0.get().requests
    }
}

/// The ring from the daemon to the client.
#[derive(Clone, Debug)]
pub struct Replies(Region);

impl AsRef<Shared> for Replies {
    fn as_ref(&self) -> &Shared {
        &self.0.0.get().replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn both_sides_see_the_same_rings() {
        let (daemon, fd) = Region::create().expect("memfd");
        let client = Region::open(fd.as_fd()).expect("mapped");
        let (mut requests, mut replies) = daemon.daemon_ends();
        let (mut ask, mut answers) = client.client_ends();
        ask.push(&[1; 8]).expect("room");
        replies.push(&[2; 8]).expect("room");
        assert_eq!(requests.pop(), Ok(Some([1; 8])));
        assert_eq!(answers.pop(), Ok(Some([2; 8])));
    }

    #[test]
    fn a_client_sees_whether_it_is_alone() {
        let (daemon, fd) = Region::create().expect("memfd");
        let client = Region::open(fd.as_fd()).expect("mapped");
        assert!(!client.solitude().is_alone(), "unless it was told so");
        daemon.solitude().set(true);
        assert!(client.solitude().is_alone());
        daemon.solitude().set(false);
        assert!(!client.solitude().is_alone());
    }

    #[test]
    fn a_client_cannot_pull_the_rug_away() {
        let (_daemon, fd) = Region::create().expect("memfd");
        assert_eq!(ftruncate(&fd, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&fd, 1 << 20), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn what_could_shrink_or_is_no_memory_is_refused() {
        let open = memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memfd");
        ftruncate(&open, 1 << 20).expect("grown");
        assert_eq!(
            Region::open(open.as_fd()).expect_err("open").to_string(),
            "shared memory that can shrink"
        );
        for path in ["/", "/dev/null", "/proc/self/exe"] {
            let file = std::fs::File::open(path).expect("there");
            assert!(Region::open(file.as_fd()).is_err(), "{path}");
        }
        assert!(Region::open(crate::wake::Doorbell::new().expect("eventfd").as_fd()).is_err());
    }

    #[test]
    fn too_small_a_file_is_refused() {
        let fd = sealed("small", 100).expect("memfd");
        let error = Region::open(fd.as_fd()).expect_err("too small");
        assert!(error.to_string().contains("100 bytes"), "{error}");
    }
}
