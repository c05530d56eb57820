//! Whether a client on this machine is one of our own workers.
//!
//! Called for a request that has waited for a while: an application that calls itself in a full
//! pool would wait for the worker that waits for it, so such a request gets a slot of its own.
//! Found by the kernel's own tables: the client's end of the connection (`/proc/net/tcp`,
//! proc(5)) names a socket, and `/proc/PID/fd` says whose it is. Invariants: parsing is pure; in
//! doubt the answer is no. Reading the tables takes milliseconds on a machine with many
//! connections: call it off the event loop, and rarely.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

/// The state `TCP_ESTABLISHED` (include/net/tcp_states.h of Linux).
const ESTABLISHED: &str = "01";

/// Whether one of the processes holds the socket whose own address is `peer`. Sockets of programs
/// that a worker has started are not found. Processes must be ours to look into: same user, or
/// root.
pub fn is_owned_by(peer: SocketAddr, pids: &[i32]) -> bool {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| inode_of(&fs::read_to_string(table).ok()?, peer));
    inode.is_some_and(|inode| pids.iter().any(|pid| holds_socket(*pid, inode)))
}

/// The inode of the established socket whose own address is `peer`, by the text of
/// `/proc/net/tcp` or `/proc/net/tcp6`.
pub fn inode_of(table: &str, peer: SocketAddr) -> Option<u64> {
    let wanted = (peer.ip().to_canonical(), peer.port());
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        if state != ESTABLISHED || parse_address(local)? != wanted {
            return None;
        }
        // tx:rx queues, timer, retransmits, uid, time-out, inode.
        fields.nth(5)?.parse().ok().filter(|inode| *inode != 0)
    })
}

/// `ADDRESS:PORT` in hexadecimal: the address in words of the machine's byte order, the port as a
/// number.
fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(8 * at..8 * at + 8)?, 16).ok();
    let ip = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            // A client may speak IPv4 through an IPv6 socket.
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((ip, port))
}

/// Whether a process has this socket open; no when it has gone or may not be looked into.
fn holds_socket(pid: i32, inode: u64) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .any(|target| parse_socket_link(target.as_os_str().as_bytes()) == Some(inode))
}

/// `socket:[INODE]`.
fn parse_socket_link(target: &[u8]) -> Option<u64> {
    let inode = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inode).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
