//! What the spawner may do for the gateway.
//!
//! Built by the gateway while it is root, and sent once. Invariant: nothing is added later; a
//! reload that needs more requires a restart by root.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Grants {
    /// Users and groups that PHP may run as, by number.
    pub users: Vec<(u32, u32)>,
    /// The PHP host programs.
    pub programs: Vec<PathBuf>,
    /// Files that a reload reads: the configuration, certificates, keys.
    pub files: Vec<PathBuf>,
    /// Logs, which are created if they do not exist, as after a rotation.
    pub logs: Vec<PathBuf>,
    /// Sockets and the pid file in directories of root, which are removed when the server stops.
    pub leftovers: Vec<PathBuf>,
}

impl Grants {
    /// Whether a host may be started as this user.
    ///
    /// # Errors
    /// The user or the program was not granted.
    pub(crate) fn check_start(&self, program: &Path, user: (u32, u32)) -> Result<(), String> {
        if user.0 == 0 || user.1 == 0 || !self.users.contains(&user) {
            return Err(format!(
                "user {} with group {} was not configured when root started the server: restart it",
                user.0, user.1
            ));
        }
        Self::check(&self.programs, program, "PHP host")
    }

    pub(crate) fn check_file(&self, path: &Path) -> Result<(), String> {
        Self::check(&self.files, path, "file")
    }

    pub(crate) fn check_log(&self, path: &Path) -> Result<(), String> {
        Self::check(&self.logs, path, "log")
    }

    pub(crate) fn check_leftover(&self, path: &Path) -> Result<(), String> {
        Self::check(&self.leftovers, path, "leftover")
    }

    fn check(granted: &[PathBuf], path: &Path, what: &str) -> Result<(), String> {
        if granted.iter().any(|granted| granted == path) {
            return Ok(());
        }
        Err(format!(
            "the {what} {} was not configured when root started the server: restart it",
            path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_users_and_files_are_granted_and_never_root() {
        let host = PathBuf::from("/usr/local/bin/outboard-php");
        let mut grants =
            Grants { users: vec![(33, 33)], programs: vec![host.clone()], ..Grants::default() };
        assert_eq!(grants.check_start(&host, (33, 33)), Ok(()));
        for user in [(0, 0), (33, 0), (0, 33), (33, 34), (34, 33)] {
            assert!(grants.check_start(&host, user).is_err(), "{user:?}");
        }
        grants.users.extend([(0, 0), (33, 0)]);
        assert!(grants.check_start(&host, (0, 0)).is_err());
        assert!(grants.check_start(&host, (33, 0)).is_err());
        assert!(grants.check_start(Path::new("/bin/sh"), (33, 33)).is_err());
        assert!(grants.check_file(&host).is_err());
        assert!(grants.check_log(&host).is_err());
        assert!(grants.check_leftover(&host).is_err());
    }

    #[test]
    fn a_path_is_granted_as_it_was_written() {
        let files = vec![PathBuf::from("/etc/outboard/key.pem")];
        let grants = Grants { files, ..Grants::default() };
        for (path, is_granted) in [
            ("/etc/outboard/key.pem", true),
            ("/etc//outboard/./key.pem", true),
            ("/etc/outboard", false),
            ("/etc/outboard/key.pem/x", false),
            ("/etc/outboard/key.pem2", false),
            ("/etc/outboard/x/../key.pem", false),
            ("etc/outboard/key.pem", false),
            ("", false),
        ] {
            assert_eq!(grants.check_file(Path::new(path)).is_ok(), is_granted, "{path}");
        }
        assert_eq!(
            grants.check_file(Path::new("/etc/shadow")).unwrap_err(),
            "the file /etc/shadow was not configured when root started the server: restart it"
        );
    }
}
