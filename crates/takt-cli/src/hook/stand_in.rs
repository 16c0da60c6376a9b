//! Copies of the library that the loader takes for the driver behind them.
//!
//! Where a sandbox hides our copy, libEGL must find the driver itself, so its description is named behind ours. Where
//! ours is there, libEGL must not load the driver a second time, beside us: devices would be listed twice, and some
//! programs would pass Takt by. libEGL passes over a driver that the loader says is loaded already, and the loader
//! takes a library for loaded whose own name (`DT_SONAME`) is the one asked for. So our copy has the driver's name, and
//! loads the driver by its path.

use std::path::PathBuf;

use super::Vendor;
use super::libraries::Libraries;

/// What the library's own name begins with as it is built; the rest is room (`takt-hook/build.rs`).
const PLACE: &[u8] = b"libEGL_takt.so-in-place-of-";
const FILLING: u8 = b'-';

/// The file of the driver that a copy can stand in for by its name; none if it must not.
pub(super) fn path(vendor: &Vendor, libraries: &Libraries) -> Option<PathBuf> {
    let name = vendor.library.as_str();
    // Loaders of Vulkan load that driver by the same name, and need functions of it that ours does not have.
    if name.contains('/') || name.contains("nvidia") {
        return None;
    }
    libraries.find(name).filter(|path| path.is_absolute())
}

/// The library with a driver's name as its own; none if it has no room for it.
pub(super) fn renamed(library: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut places =
        (0..library.len()).filter(|at| library.get(*at..).is_some_and(|rest| rest.starts_with(PLACE)));
    let (place, None) = (places.next()?, places.next()) else {
        return None;
    };
    let filling = library.get(place + PLACE.len()..)?.iter().take_while(|byte| **byte == FILLING).count();
    let room = PLACE.len() + filling;
    if name.is_empty() || name.len() >= room || name.contains('\0') {
        return None;
    }
    let mut renamed = library.to_vec();
    let old = renamed.get_mut(place..place + room)?;
    old.fill(0);
    old.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_replaced_where_there_is_room() {
        let library = b"\x7fELF\0libc.so.6\0libEGL_takt.so-in-place-of-----\0end";
        let renamed = renamed(library, "libEGL_mesa.so.0").expect("there is room");
        assert_eq!(renamed.len(), library.len());
        assert!(renamed.starts_with(b"\x7fELF\0libc.so.6\0libEGL_mesa.so.0\0\0"));
        assert!(renamed.ends_with(b"\0\0end"));
    }

    #[test]
    fn libraries_without_room_stay() {
        let library = b"libEGL_takt.so-in-place-of-----\0";
        assert_eq!(renamed(library, &"x".repeat(31)), None);
        assert_eq!(renamed(library, ""), None);
        assert_eq!(renamed(b"\x7fELF", "libEGL_mesa.so.0"), None);
        assert_eq!(renamed(&library.repeat(2), "libEGL_mesa.so.0"), None, "which of them is it?");
    }

    #[test]
    fn drivers_that_others_load_by_name_are_not_stood_in_for() {
        let libraries = Libraries::named();
        let of = |library: &str| Vendor { json: "/a.json".into(), library: library.to_owned() };
        assert_eq!(path(&of("libEGL_nvidia.so.0"), &libraries), None);
        assert_eq!(path(&of("/usr/lib/libEGL_mesa.so.0"), &libraries), None);
    }
}
