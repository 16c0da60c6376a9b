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

/// A user, as programs become it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its own group.
    pub gid: u32,
    /// All groups that it is a member of, its own one first.
    pub groups: Vec<u32>,
    /// Where its files are.
    pub home: String,
}

/// A user of `/etc/passwd`, with its groups of `/etc/group`.
pub fn account(name: &str) -> Option<Account> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    find(&users, &std::fs::read_to_string("/etc/group").unwrap_or_default(), name)
}

fn find(users: &str, groups: &str, name: &str) -> Option<Account> {
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let (uid, gid, home): (u32, u32, String) = lines.find_map(|fields| match fields.as_slice() {
        [found, _, uid, gid, _, home, ..] if *found == name => {
            Some((uid.parse().ok()?, gid.parse().ok()?, (*home).to_owned()))
        }
        _ => None,
    })?;
    let mut all = vec![gid];
    for line in groups.lines() {
        let mut fields = line.split(':').skip(2);
        let (number, members) = (fields.next().and_then(|number| number.parse::<u32>().ok()), fields.next());
        let is_member = members.is_some_and(|members| members.split(',').any(|member| member == name));
        all.extend(number.filter(|number| is_member && *number != gid));
    }
    Some(Account { name: name.to_owned(), uid, gid, groups: all, home })
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

    #[test]
    fn accounts_have_their_groups() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbob:x:7:8:Bob:/home/bob:/bin/sh\nbroken:x:1\n";
        let groups = "bob:x:8:bob\nvideo:x:44:alice,bob\naudio:x:29:bobby\nbroken\nrender:x:x:bob\n";
        let bob = find(users, groups, "bob").expect("there");
        assert_eq!(
            (bob.uid, bob.gid, bob.groups.as_slice(), bob.home.as_str()),
            (7, 8, &[8, 44][..], "/home/bob")
        );
        assert_eq!((find(users, groups, "broken"), find(users, groups, "bo")), (None, None));
    }
}
