//! [`Refusal`]: why a path is not opened, and [`ForbiddenReason`]: why one that exists is not served.

use std::fmt;

use outboard_trusted_path as trusted_path;
use rustix::io::Errno;

/// Why a path that names something is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForbiddenReason {
    /// A component is `.` or `..`: the path was not normalised.
    Traversal,
    /// A component begins with a dot.
    DotFile,
    /// A symbolic link leads out of the root and of every directory that links may lead into.
    SymlinkEscape,
    /// A symbolic link and its target belong to different users.
    SymlinkOwner,
    /// The path has a loop of symbolic links, or too many of them.
    SymlinkLoop,
    /// A FIFO, a socket or a device.
    NotRegular,
    /// A PHP source that is not run, or a copy of one.
    PhpSource,
    /// The gateway's user may not read the file or enter its directory.
    Unreadable,
    /// A `.htaccess` file of its directories denies it.
    Htaccess,
    /// The gateway's user may, as a member of the group of another app's user.
    OtherApp,
}

impl ForbiddenReason {
    /// A stable name for logs and counters.
    pub fn code(self) -> &'static str {
        match self {
            Self::Traversal => "path_traversal",
            Self::DotFile => "dot_file",
            Self::SymlinkEscape => "symlink_escape",
            Self::SymlinkOwner => "symlink_owner",
            Self::SymlinkLoop => "symlink_loop",
            Self::NotRegular => "not_regular",
            Self::PhpSource => "php_source",
            Self::Unreadable => "unreadable",
            Self::Htaccess => "htaccess",
            Self::OtherApp => "other_app",
        }
    }

    /// What the operator can do, by configuration key.
    pub fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::DotFile => "name it in `static.allow_dotfiles` to serve it",
            Self::SymlinkEscape => {
                "set `static.symlinks = \"owner\"` to follow links whose target has the same \
                 owner, or \"always\" to follow all"
            }
            Self::SymlinkOwner => {
                "give the link the owner of its target (chown -h), or set \
                 `static.symlinks = \"always\"`"
            }
            Self::PhpSource => "name the suffix in `php.extensions` if it is to be run",
            Self::Unreadable => "let the gateway's user read the file and enter its directories",
            Self::Htaccess => {
                "a `.htaccess` file denies it: `outboard check` names them; change that file, or set \
                 `static.htaccess = false` with `deny` for what is to be denied"
            }
            Self::OtherApp => "let all users read the file, or the group of the app's own user",
            Self::Traversal | Self::SymlinkLoop | Self::NotRegular => return None,
        })
    }
}

impl fmt::Display for ForbiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traversal => "the path contains `.` or `..`",
            Self::DotFile => "the path contains a name that begins with a dot",
            Self::SymlinkEscape => "a symbolic link leads out of the root",
            Self::SymlinkOwner => "a symbolic link and its target belong to different users",
            Self::SymlinkLoop => "too many symbolic links",
            Self::NotRegular => "the path names neither a file nor a directory",
            Self::PhpSource => "the path names a PHP source",
            Self::Unreadable => "permission denied",
            Self::Htaccess => "a `.htaccess` file denies it",
            Self::OtherApp => "the file is private to the group of another app's user",
        })
    }
}

/// Why a path was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotFound,
    Forbidden(ForbiddenReason),
    Failed(Errno),
    /// The result would have to be waited for.
    NotInMemory,
}

/// The result of a resolver that may not wait, where it would have to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotInMemory;

impl From<NotInMemory> for Refusal {
    fn from(NotInMemory: NotInMemory) -> Self {
        Self::NotInMemory
    }
}

impl From<trusted_path::Refusal> for Refusal {
    fn from(refusal: trusted_path::Refusal) -> Self {
        match refusal {
            trusted_path::Refusal::Link { .. } => Self::Forbidden(ForbiddenReason::SymlinkEscape),
            trusted_path::Refusal::Foreign(_) => Self::Forbidden(ForbiddenReason::OtherApp),
            trusted_path::Refusal::System(errno) => errno.into(),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            // EINVAL is a NUL byte in the path.
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden(ForbiddenReason::Unreadable),
            Errno::LOOP => Self::Forbidden(ForbiddenReason::SymlinkLoop),
            Errno::XDEV => Self::Forbidden(ForbiddenReason::SymlinkEscape),
            other => Self::Failed(other),
        }
    }
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_path_is_not_forbidden() {
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG, Errno::INVAL] {
            assert_eq!(Refusal::from(errno), Refusal::NotFound);
        }
        assert_eq!(Refusal::from(Errno::ACCESS), Refusal::Forbidden(ForbiddenReason::Unreadable));
        assert_eq!(Refusal::from(Errno::MFILE), Refusal::Failed(Errno::MFILE));
    }
}
