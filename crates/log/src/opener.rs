//! Opening what the configuration names: by the gateway itself, or by its spawner, as root would.
//!
//! Called at start, at a reload, and when logs are opened anew. Invariant: a log leads nowhere by a
//! link that an app could have put there.

use outboard_spawner::{Spawner, open_log};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Whoever can open a file. Without a spawner: this process alone.
#[derive(Debug, Clone, Default)]
pub struct Opener(Option<Arc<Spawner>>);

impl Opener {
    /// Opens by itself, and what is denied by `spawner` if there is one.
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
                // What was not granted is refused for want of rights.
                by(spawner).map_err(|why| match why.kind() {
                    io::ErrorKind::Unsupported => error,
                    _ => why,
                })
            }
            (opened, _) => opened,
        }
    }
}
