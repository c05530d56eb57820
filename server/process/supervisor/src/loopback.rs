//! Whether a local client is one of our own workers.
//!
//! Called for a request that has waited for a while. An application that requests itself in a full
//! pool would wait for the worker that waits for it, so such a request gets an extra slot.
//! `/proc/PID/fd` lists the sockets of a worker; socket diagnosis gives the socket at the client's
//! end of the connection, and its user. Invariants: parsing is pure; in doubt the result is no.

mod diag;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// Whether one of the processes has the socket with the local address `peer`. Sockets of programs
/// that a worker has started are not found. Processes of another user cannot be inspected: a socket
/// of that user, who is the app's own, counts as theirs.
///
/// Takes some milliseconds with many workers or connections: call it off the event loop.
pub fn is_owned_by(peer: SocketAddr, pids: &[i32]) -> bool {
    let (mut sockets, mut users) = (BTreeSet::new(), BTreeSet::new());
    for pid in pids {
        match sockets_of(*pid) {
            Ok(theirs) => sockets.extend(theirs),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                users.extend(fs::metadata(format!("/proc/{pid}")).map(|found| found.uid()));
            }
            // The process has exited.
            Err(_) => {}
        }
    }
    if sockets.is_empty() && users.is_empty() {
        return false;
    }
    // Some containers have no socket diagnosis.
    let found = diag::socket(peer).unwrap_or_else(|_| table::socket(peer));
    found.is_some_and(|Socket { inode, uid }| sockets.contains(&inode) || users.contains(&uid))
}

/// An established socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    inode: u64,
    /// The user that created it.
    uid: u32,
}

/// The inodes of the sockets that a process has open.
fn sockets_of(pid: i32) -> io::Result<impl Iterator<Item = u64>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .filter_map(|target| parse_socket_link(target.as_os_str().as_bytes())))
}

/// `socket:[INODE]`.
fn parse_socket_link(target: &[u8]) -> Option<u64> {
    let inode = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inode).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
