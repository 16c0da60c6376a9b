//! Numbers of users and groups by name, from the files of this machine.
//!
//! Directory services are not asked: they may be slow or absent when the daemon starts, and a right must
//! not depend on them. A number can always be given instead of a name.

/// The number of a user of `/etc/passwd`.
pub fn user(name: &str) -> Option<u32> {
    number(&std::fs::read_to_string("/etc/passwd").ok()?, name)
}

/// The number of a group of `/etc/group`.
pub fn group(name: &str) -> Option<u32> {
    number(&std::fs::read_to_string("/etc/group").ok()?, name)
}

/// The third field of the line that starts with the name.
fn number(table: &str, name: &str) -> Option<u32> {
    let mut lines = table.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        fields.next().filter(|first| *first == name).and_then(|_| fields.nth(1)?.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        let table = "root:x:0:0:root:/root:/bin/sh\nrooted:x:7:7::/:\nbroken:x\n";
        assert_eq!([number(table, "root"), number(table, "rooted")], [Some(0), Some(7)]);
        assert_eq!([number(table, "roo"), number(table, "broken"), number(table, "")], [None; 3]);
        assert_eq!([user("root"), group("root")], [Some(0), Some(0)]);
    }
}
