//! Opens files that the configuration names: in the gateway, or through its spawner as root.
//!
//! Called at start, at a reload, and when logs are reopened. Invariant: a log is never opened through a
//! link that an app could have created.

use outboard_spawner::{Spawner, open_log};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens files. Without a spawner: with the permissions of this process.
#[derive(Debug, Clone, Default)]
pub struct Opener(Option<Arc<Spawner>>);

impl Opener {
    /// Opens in this process, and through `spawner`, if there is one, when permission is denied.
    pub fn new(spawner: Option<Arc<Spawner>>) -> Self {
        Self(spawner)
    }

    /// A file for reading.
    ///
    /// # Errors
    /// What opening it reports.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        self.or_spawner(File::open(path), |spawner| spawner.read(path))
    }

    /// A log for appending.
    ///
    /// # Errors
    /// As [`open_log`].
    pub fn append(&self, path: &Path) -> io::Result<File> {
        self.or_spawner(open_log(path), |spawner| spawner.append(path))
    }

    fn or_spawner(
        &self,
        opened: io::Result<File>,
        by: impl FnOnce(&Spawner) -> io::Result<File>,
    ) -> io::Result<File> {
        match (opened, &self.0) {
            (Err(error), Some(spawner)) if error.kind() == io::ErrorKind::PermissionDenied => {
                // A file that was not granted is reported as a lack of permission.
                by(spawner).map_err(|why| match why.kind() {
                    io::ErrorKind::Unsupported => error,
                    _ => why,
                })
            }
            (opened, _) => opened,
        }
    }
}
