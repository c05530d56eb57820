//! What a server that takes over gets of the sockets of a thread.
//!
//! Called by the upgrade. Invariant: the file of a socket is removed by the server that ends last.

use crate::gateway::Gateway;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Duplicates of the sockets of this thread.
///
/// # Errors
/// There are too many descriptors.
pub(crate) fn sockets(gateway: &Gateway) -> io::Result<Vec<OwnedFd>> {
    let mut all = Vec::new();
    for bound in gateway.listeners.borrow().iter() {
        all.extend(bound.sockets()?);
    }
    for bound in gateway.datagrams.borrow().iter() {
        all.push(bound.socket()?);
    }
    Ok(all)
}

/// The files that the sockets of this thread would remove when they close.
pub(crate) fn files(gateway: &Gateway) -> impl Iterator<Item = PathBuf> {
    let streams: Vec<_> =
        gateway.listeners.borrow().iter().filter_map(|bound| bound.file()).collect();
    let datagrams: Vec<_> =
        gateway.datagrams.borrow().iter().filter_map(|bound| bound.file()).collect();
    streams.into_iter().chain(datagrams)
}

/// They do not any more.
pub(crate) fn leave_files(gateway: &Gateway) {
    gateway.listeners.borrow().iter().for_each(|bound| bound.leave_file());
    gateway.datagrams.borrow().iter().for_each(|bound| bound.leave_file());
}
