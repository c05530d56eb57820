//! The processes that listen on an address of this machine, for servers that already run.
//!
//! `/proc/net/tcp` names the socket, `/proc/PID/fd` its holders (proc(5)).

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use outboard_profile::process_table::{Pid, ProcessTable};

/// The state of a listening socket in `/proc/net/tcp` (TCP_LISTEN in Linux's net/tcp_states.h).
const LISTEN: &str = "0A";

/// The topmost processes that hold a socket listening there; all others are their descendants.
pub fn owners(address: SocketAddr) -> Vec<Pid> {
    let sockets = sockets(address);
    let table = ProcessTable::snapshot();
    let holders: HashSet<Pid> = table.pids().filter(|&pid| holds(pid, &sockets)).collect();
    let parent_holds =
        |pid: &Pid| table.get(*pid).is_some_and(|process| holders.contains(&process.parent));
    holders.iter().copied().filter(|pid| !parent_holds(pid)).collect()
}

/// The names of the listening sockets as `/proc/PID/fd` shows them.
fn sockets(address: SocketAddr) -> HashSet<String> {
    let text = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|file| fs::read_to_string(file).unwrap_or_default());
    let lines = text.iter().flat_map(|text| text.lines().skip(1));
    lines.filter_map(|line| listening(line, address)).collect()
}

fn listening(line: &str, address: SocketAddr) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, port) = words.get(1)?.split_once(':')?;
    let inode = words.get(9)?;
    let same = words.get(3) == Some(&LISTEN)
        && u16::from_str_radix(port, 16).ok()? == address.port()
        && is_here(local, address.ip());
    same.then(|| format!("socket:[{inode}]"))
}

/// Whether a socket bound to this address (in the kernel's byte order, in words of 32 bits) accepts
/// connections to that one. IPv6 is matched by its port alone.
fn is_here(local: &str, ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) if local.len() == 8 => {
            let bound = u32::from_str_radix(local, 16).unwrap_or(0);
            bound == 0 || bound.to_ne_bytes() == ip.octets()
        }
        _ => local.len() == 32,
    }
}

fn holds(pid: Pid, sockets: &HashSet<String>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.into_iter().any(|target| sockets.contains(&*target.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback binds");
        let address = listener.local_addr().expect("it is bound");
        assert!(owners(address).contains(&std::process::id()));
        drop(listener);
        assert!(owners(address).is_empty());
    }
}
