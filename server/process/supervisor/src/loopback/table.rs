//! One connection by the text of `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
//!
//! Used by [`super`] without socket diagnosis. With many connections the kernel takes up to seconds
//! for the text.

use super::Socket;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state `TCP_ESTABLISHED` (include/net/tcp_states.h of Linux).
const ESTABLISHED: &str = "01";

/// The established socket whose own address is `peer`; `None` when there is none.
pub(super) fn socket(peer: SocketAddr) -> Option<Socket> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| socket_in(&fs::read_to_string(table).ok()?, peer))
}

/// [`socket`] by the text of one table.
fn socket_in(table: &str, peer: SocketAddr) -> Option<Socket> {
    let wanted = (peer.ip().to_canonical(), peer.port());
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        if state != ESTABLISHED || parse_address(local)? != wanted {
            return None;
        }
        // tx:rx queues, timer, retransmits, uid, time-out, inode.
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
        Some(Socket { inode, uid })
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

#[cfg(test)]
mod tests;
