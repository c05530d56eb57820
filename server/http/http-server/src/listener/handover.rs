//! What of a listener another server takes over.
//!
//! Called by the gateway in an upgrade.

use super::BoundListener;
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::path::PathBuf;

impl BoundListener {
    /// Duplicates of its sockets, for a server that takes over.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let mut sockets = Vec::new();
        if let Some(listener) = self.listener.upgrade() {
            sockets.push(listener.as_fd().try_clone_to_owned()?);
        }
        if let Some(http3) = &*self.http3.borrow() {
            sockets.extend(http3.sockets()?);
        }
        Ok(sockets)
    }

    /// The file that it removes when it stops.
    pub fn file(&self) -> Option<PathBuf> {
        self.unlink.borrow().clone()
    }

    /// It does not remove its file any more.
    pub fn leave_file(&self) {
        self.unlink.take();
    }
}
