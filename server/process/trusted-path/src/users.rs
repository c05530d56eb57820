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
