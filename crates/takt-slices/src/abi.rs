//! The driver's calls, as its public headers define them.
//!
//! All calls are `ioctl`s on the driver's control file. A process allocates objects by class, and sends controls to
//! them; every object is named by the handle of its client (the process's session with the driver) and its own.
//! Names of the headers (`nv_escape.h`, `nvos.h`, `ctrla06c.h`) are given with each number.

use std::ffi::{c_ulong, c_void};

/// Class of channel groups: `KEPLER_CHANNEL_GROUP_A`, used by all newer chips.
pub const CHANNEL_GROUP: u32 = 0xa06c;

/// `NVA06C_CTRL_CMD_SET_TIMESLICE`.
pub const SET_TIMESLICE: u32 = 0xa06c_0103;
/// `NVA06C_CTRL_CMD_GET_TIMESLICE`.
pub const GET_TIMESLICE: u32 = 0xa06c_0104;

/// `NV_OK`.
pub const OK: u32 = 0;
/// A status of ours for a call that did not reach the driver.
pub const UNREACHED: u32 = u32::MAX;

/// `NV_IOCTL_MAGIC`.
const MAGIC: c_ulong = b'F' as c_ulong;
/// `NV_ESC_RM_FREE`.
const FREE: c_ulong = 0x29;
/// `NV_ESC_RM_CONTROL`.
const CONTROL: c_ulong = 0x2a;
/// `NV_ESC_RM_ALLOC`.
const ALLOC: c_ulong = 0x2b;
/// `NV_ESC_IOCTL_XFER_CMD`: the call's number, size and address are in memory.
const TRANSFER: c_ulong = 211;

/// Both directions, as `_IOWR` sets them.
const READ_WRITE: c_ulong = 3;

/// `NVOS54_PARAMETERS`: a control.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Handle of the client.
    pub client: u32,
    /// Handle of the object.
    pub object: u32,
    /// Which control.
    pub command: u32,
    /// None are used.
    pub flags: u32,
    /// Address of its parameters.
    pub params: u64,
    /// Their size.
    pub size: u32,
    /// What came of it.
    pub status: u32,
}

/// `NVOS64_PARAMETERS`: an allocation. `NVOS21_PARAMETERS` of older libraries are the same up to the parameters.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alloc {
    /// Handle of the client.
    pub client: u32,
    /// Handle of the object that owns the new one.
    pub parent: u32,
    /// Handle of the new one.
    pub object: u32,
    /// Its class.
    pub class: u32,
    /// Address of parameters.
    pub params: u64,
    /// Address of rights.
    pub rights: u64,
    /// Size of the parameters.
    pub size: u32,
    /// None are used.
    pub flags: u32,
    /// What came of it.
    pub status: u32,
    /// To a multiple of eight bytes.
    pub padding: u32,
}

/// `NVOS00_PARAMETERS`: the end of an object and of all that it owns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// Handle of the client.
    pub client: u32,
    /// Handle of the object that owns it.
    pub parent: u32,
    /// Handle of the object.
    pub object: u32,
    /// What came of it.
    pub status: u32,
}

/// `nv_ioctl_xfer_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Transfer {
    number: u32,
    size: u32,
    address: u64,
}

/// Older allocations: status behind the size of the parameters.
const OLD_ALLOC_BYTES: usize = 32;
const OLD_ALLOC_STATUS: usize = 28;

const _: () = assert!(size_of::<Control>() == 32 && size_of::<Alloc>() == 48 && size_of::<Free>() == 16);
const _: () = assert!(size_of::<Transfer>() == 16 && std::mem::offset_of!(Alloc, status) == 40);

/// The request of a control.
pub const CONTROL_REQUEST: c_ulong = request(CONTROL, size_of::<Control>());
/// The request of an allocation.
pub const ALLOC_REQUEST: c_ulong = request(ALLOC, size_of::<Alloc>());
/// The request of an allocation by older libraries.
pub const OLD_ALLOC_REQUEST: c_ulong = request(ALLOC, OLD_ALLOC_BYTES);
/// The request of an end.
pub const FREE_REQUEST: c_ulong = request(FREE, size_of::<Free>());
/// The request of a call that is described in memory.
pub const TRANSFER_REQUEST: c_ulong = request(TRANSFER, size_of::<Transfer>());

const fn request(number: c_ulong, size: usize) -> c_ulong {
    (READ_WRITE << 30) | ((size as c_ulong) << 16) | (MAGIC << 8) | number
}

/// What a call did that the driver carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// A channel group was made.
    Made {
        /// Handle of its client.
        client: u32,
        /// Handle of the object that owns it.
        parent: u32,
        /// Its handle.
        object: u32,
    },
    /// An object ended, and all that it owned.
    Freed {
        /// Handle of its client.
        client: u32,
        /// Its handle, which is the client's own if all of the client ended.
        object: u32,
    },
    /// The slice of a group was set.
    Sliced {
        /// Handle of its client.
        client: u32,
        /// Its handle.
        object: u32,
    },
}

/// Whether a request may be one of the driver's. Most calls of a process are not, and end here.
#[inline]
pub const fn is_drivers(request: c_ulong) -> bool {
    (request >> 8) & 0xff == MAGIC
}

/// What a call did that returned without an error; nothing if that does not matter here.
///
/// # Safety
///
/// `argument` is what was given to `ioctl` with that request, and the call has returned without an error, so the
/// kernel has read and written as many bytes there as the request says.
pub unsafe fn seen(request: c_ulong, argument: *const c_void) -> Option<Seen> {
    if argument.is_null() {
        return None;
    }
    let number = request & 0xff;
    let size = ((request >> 16) & 0x3fff) as usize;
    if number == TRANSFER && size == size_of::<Transfer>() {
        // SAFETY: the kernel has read a description from there.
        let transfer = unsafe { argument.cast::<Transfer>().read_unaligned() };
        let address = usize::try_from(transfer.address).ok()? as *const c_void;
        // SAFETY: the kernel has read and written as many bytes there as the description says.
        return unsafe { carried_out(transfer.number.into(), transfer.size as usize, address) };
    }
    // SAFETY: as the caller says.
    unsafe { carried_out(number, size, argument) }
}

/// # Safety
///
/// As many bytes can be read there.
unsafe fn carried_out(number: c_ulong, size: usize, at: *const c_void) -> Option<Seen> {
    if at.is_null() {
        return None;
    }
    match (number, size) {
        (ALLOC, OLD_ALLOC_BYTES) => {
            // SAFETY: there are as many bytes as an older allocation has, and these are the first of a newer one.
            let words = unsafe { at.cast::<[u32; OLD_ALLOC_BYTES / 4]>().read_unaligned() };
            let [client, parent, object, class, ..] = words;
            made(words[OLD_ALLOC_STATUS / 4], class, Seen::Made { client, parent, object })
        }
        (ALLOC, size) if size == size_of::<Alloc>() => {
            // SAFETY: there are as many bytes.
            let Alloc { client, parent, object, class, status, .. } =
                unsafe { at.cast::<Alloc>().read_unaligned() };
            made(status, class, Seen::Made { client, parent, object })
        }
        (FREE, size) if size == size_of::<Free>() => {
            // SAFETY: there are as many bytes.
            let Free { client, object, status, .. } = unsafe { at.cast::<Free>().read_unaligned() };
            (status == OK).then_some(Seen::Freed { client, object })
        }
        (CONTROL, size) if size == size_of::<Control>() => {
            // SAFETY: there are as many bytes.
            let Control { client, object, command, status, .. } =
                unsafe { at.cast::<Control>().read_unaligned() };
            (status == OK && command == SET_TIMESLICE).then_some(Seen::Sliced { client, object })
        }
        _ => None,
    }
}

fn made(status: u32, class: u32, made: Seen) -> Option<Seen> {
    (status == OK && class == CHANNEL_GROUP).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alloc() -> Alloc {
        let (client, parent, object) = (7, 8, 9);
        Alloc {
            client,
            parent,
            object,
            class: CHANNEL_GROUP,
            params: 0,
            rights: 0,
            size: 0,
            flags: 0,
            status: OK,
            padding: 0,
        }
    }

    fn look<T>(request: c_ulong, argument: &T) -> Option<Seen> {
        // SAFETY: tests give values of the request's size.
        unsafe { seen(request, (&raw const *argument).cast()) }
    }

    #[test]
    fn requests_are_those_of_the_headers() {
        assert_eq!(CONTROL_REQUEST, 0xc020_462a);
        assert_eq!(ALLOC_REQUEST, 0xc030_462b);
        assert_eq!(OLD_ALLOC_REQUEST, 0xc020_462b);
        assert_eq!(FREE_REQUEST, 0xc010_4629);
        assert_eq!(TRANSFER_REQUEST, 0xc010_46d3);
    }

    #[test]
    fn groups_are_seen_in_every_form_of_the_call() {
        let made = Some(Seen::Made { client: 7, parent: 8, object: 9 });
        assert_eq!(look(ALLOC_REQUEST, &alloc()), made);
        assert_eq!(look(OLD_ALLOC_REQUEST, &[7_u32, 8, 9, CHANNEL_GROUP, 0, 0, 0, OK]), made);
        let inner = alloc();
        let address = &raw const inner as u64;
        let transfer = Transfer { number: 0x2b, size: 48, address };
        assert_eq!(look(TRANSFER_REQUEST, &transfer), made);
        assert_eq!(look(TRANSFER_REQUEST, &Transfer { address: 0, ..transfer }), None);
    }

    #[test]
    fn what_failed_or_is_something_else_is_not_seen() {
        assert_eq!(look(ALLOC_REQUEST, &Alloc { status: 0x1b, ..alloc() }), None);
        assert_eq!(look(ALLOC_REQUEST, &Alloc { class: 0x80, ..alloc() }), None);
        let refused = Control {
            client: 7,
            object: 9,
            command: SET_TIMESLICE,
            flags: 0,
            params: 0,
            size: 8,
            status: 0x1b,
        };
        assert_eq!(look(CONTROL_REQUEST, &refused), None);
        assert_eq!(
            look(CONTROL_REQUEST, &Control { status: OK, ..refused }),
            Some(Seen::Sliced { client: 7, object: 9 })
        );
        assert_eq!(look(CONTROL_REQUEST, &Control { status: OK, command: GET_TIMESLICE, ..refused }), None);
        // SAFETY: null is never read.
        assert_eq!(unsafe { seen(ALLOC_REQUEST, std::ptr::null()) }, None);
        assert!(!is_drivers(0x5401) && is_drivers(ALLOC_REQUEST));
    }
}
