//! The files of Unix sockets and the pid file, which are removed at the end.
//!
//! Called by the server. Invariant: in an upgrade the server that ends last removes them.

use super::Privileges;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Privileges {
    /// Removes the files that the server would leave behind, while it still has its pid file.
    pub(crate) fn remove_leftovers(&self) {
        if self.are_left.load(Ordering::Relaxed) {
            return;
        }
        let inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.leftovers.iter().chain(&*inherited) {
            // It may have been removed by hand.
            let _ = match &self.spawner {
                Some(spawner) => spawner.remove(path),
                None => std::fs::remove_file(path),
            };
        }
    }

    /// Those that another server has to remove in the place of this one.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner);
        self.leftovers.iter().chain(&*inherited).cloned().collect()
    }

    /// Leaves the files to another server.
    pub(crate) fn leave_files(&self) {
        self.are_left.store(true, Ordering::Relaxed);
    }

    /// Removes them after all, and those of a predecessor.
    pub(crate) fn own_files(&self, of_predecessor: Vec<PathBuf>) {
        self.are_left.store(false, Ordering::Relaxed);
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner).extend(of_predecessor);
    }
}
