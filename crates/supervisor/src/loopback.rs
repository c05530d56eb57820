//! Whether a client on this machine is one of our own workers.
//!
//! Called for a request that has waited for a while: an application that calls itself in a full
//! pool would wait for the worker that waits for it, so such a request gets a slot of its own.
//! `/proc/PID/fd` names the sockets of a worker, the kernel's socket diagnosis the one at the
//! client's end of the connection. Invariants: parsing is pure; in doubt the answer is no.

mod diag;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;

/// Whether one of the processes holds the socket whose own address is `peer`. Sockets of programs
/// that a worker has started are not found. Processes must be ours to look into: same user, or
/// root.
///
/// Takes some milliseconds with many workers or connections: call it off the event loop.
pub fn is_owned_by(peer: SocketAddr, pids: &[i32]) -> bool {
    let sockets: BTreeSet<u64> = pids.iter().flat_map(|pid| sockets_of(*pid)).collect();
    if sockets.is_empty() {
        return false;
    }
    // Some containers know no socket diagnosis.
    let inode = diag::inode(peer).unwrap_or_else(|_| table::inode(peer));
    inode.is_some_and(|inode| sockets.contains(&inode))
}

/// The inodes of the sockets that a process has open; none when it has gone or may not be looked
/// into.
fn sockets_of(pid: i32) -> impl Iterator<Item = u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    descriptors
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .filter_map(|target| parse_socket_link(target.as_os_str().as_bytes()))
}

/// `socket:[INODE]`.
fn parse_socket_link(target: &[u8]) -> Option<u64> {
    let inode = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inode).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
