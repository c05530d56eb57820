//! [`Users`]: the users that PHP runs as, from the view of one app.
//!
//! Built by the gateway from its configuration, and by the PHP host from its own user. Invariant: what is not
//! known to be protected from these users counts as theirs.

use rustix::fs::{FileType, Stat};
use rustix::process::geteuid;

/// Permissions of the group and of others to change a directory, and the bit that limits them to own entries.
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users {
    /// Users that some app's PHP runs as. Not root, from which nothing is protected.
    pub(crate) php: Vec<u32>,
    /// Groups of other apps' users that the app's own user is not in.
    pub(crate) foreign_groups: Vec<u32>,
}

impl Users {
    /// Users of PHP, and the groups through which the gateway can read what this app cannot.
    pub fn new(php: impl IntoIterator<Item = u32>, foreign_groups: Vec<u32>) -> Self {
        Self { php: php.into_iter().filter(|&user| user != 0).collect(), foreign_groups }
    }

    /// For a process that runs PHP as its own user.
    pub fn of_this_process() -> Self {
        Self::new([geteuid().as_raw()], Vec::new())
    }

    /// Whether a PHP user can have made or replaced an entry of a directory.
    pub(crate) fn can_change(&self, directory: &Stat) -> bool {
        // With an access control list the bits of the group are those of all that it names (acl(5)).
        let by_group = directory.st_mode & WRITABLE_BY_GROUP != 0 && directory.st_gid != 0;
        let is_open = by_group || directory.st_mode & WRITABLE_BY_ALL != 0;
        self.php.contains(&directory.st_uid) || (is_open && directory.st_mode & STICKY == 0)
    }

    pub(crate) fn own(&self, link: &Stat) -> bool {
        self.php.contains(&link.st_uid)
    }

    /// Whether only the group of another app's user lets this process read the file or pass the directory.
    pub fn is_foreign(&self, found: &Stat) -> bool {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let of_others = if is_directory { 0o001 } else { 0o004 };
        found.st_mode & of_others == 0
            && found.st_uid != geteuid().as_raw()
            && self.foreign_groups.contains(&found.st_gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a directory with this owner, group and mode.
    fn directory(user: u32, group: u32, mode: u32) -> Stat {
        let mut stat = rustix::fs::stat("/").unwrap();
        (stat.st_uid, stat.st_gid, stat.st_mode) = (user, group, 0o040_000 | mode);
        stat
    }

    #[test]
    fn root_is_never_a_user_of_php() {
        assert_eq!(Users::new([0, 33, 0, 34], vec![5]).php, [33, 34]);
        let own = geteuid();
        let expected = if own.is_root() { vec![] } else { vec![own.as_raw()] };
        assert_eq!(Users::of_this_process().php, expected);
    }

    #[test]
    fn a_directory_is_phps_unless_it_is_known_to_be_protected() {
        let users = Users::new([33], Vec::new());
        for (user, group, mode, can_change) in [
            (0, 0, 0o755, false),
            (1000, 1000, 0o755, false),
            // It may change the mode.
            (33, 0, 0o555, true),
            // The group may have the user, but not that of root.
            (0, 33, 0o775, true),
            (0, 4711, 0o775, true),
            (0, 0, 0o775, false),
            (0, 0, 0o757, true),
            // In such as /tmp, others cannot replace what is not theirs.
            (0, 0, 0o1777, false),
            (0, 33, 0o1770, false),
            (33, 0, 0o1777, true),
        ] {
            let found = users.can_change(&directory(user, group, mode));
            assert_eq!(found, can_change, "{user}:{group} {mode:o}");
        }
        assert!(users.own(&directory(33, 0, 0o777)) && !users.own(&directory(34, 33, 0o777)));
    }

    #[test]
    fn a_directory_of_another_group_is_foreign_without_passage() {
        let users = Users::new([33], vec![4711]);
        let other = geteuid().as_raw() + 1;
        for (user, group, mode, is_foreign) in [
            (other, 4711, 0o750, true),
            // What it has may be read by name.
            (other, 4711, 0o751, false),
            (other, 4711, 0o754, true),
            (other, 4712, 0o750, false),
            (geteuid().as_raw(), 4711, 0o700, false),
        ] {
            let found = users.is_foreign(&directory(user, group, mode));
            assert_eq!(found, is_foreign, "{user}:{group} {mode:o}");
        }
    }
}
