//! [`ListeningSocket`]: sockets to listen on, bound here, or bound earlier for this process.
//!
//! Called by the server when it starts to listen, and before it drops privileges. Invariant: an address that
//! another process listens on is not bound, although shards listen on the same one.
//!
//! Each shard has a TCP socket of its own with `SO_REUSEPORT` (socket(7)), among which the kernel distributes
//! connections. With that option the kernel would let another process of this user join them silently. So
//! the first socket is bound and listens without it, which fails if anything else listens there, and gets
//! the option before the others are bound. Another server that does the same fails at any time: its first
//! socket has no such option. socket(7) requires the option before bind(2), but the kernel looks at it
//! whenever another socket is bound, and forms the group then (`reuseport_add_sock` in Linux 4.6 and later).
//!
//! A Unix socket has no such groups, and an inherited socket may be one only: shards have duplicates of
//! these.

use outboard_config::ListenAddress;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An address cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    address: ListenAddress,
    source: io::Error,
}

impl BindError {
    /// An error of this address.
    pub fn new(address: ListenAddress, source: io::Error) -> Self {
        Self { address, source }
    }

    /// Whether another socket has the port.
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot listen on {}: {}", self.address, self.source)?;
        match self.source.kind() {
            io::ErrorKind::AddrInUse => {
                f.write_str("; another server listens there: stop it or choose another address")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("; ports below 1024 and foreign folders need the right to use them")
            }
            io::ErrorKind::AddrNotAvailable => f.write_str("; no interface has this address"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The socket of a shard.
#[derive(Debug)]
pub struct ListeningSocket {
    pub(super) address: ListenAddress,
    pub(super) socket: OwnedFd,
    /// Whether other shards accept from the same queue of connections.
    pub(super) is_duplicate: bool,
    /// Connections that may wait in the queue.
    pub(super) backlog: u32,
    /// Its file, which is removed when this one stops.
    pub(super) unlink: Option<PathBuf>,
}

impl ListeningSocket {
    /// Takes inherited sockets or binds an address, for each of so many shards. The inherited ones stay
    /// open: after a reload without the address, another reload may use them again.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn for_shards(
        shards: usize,
        inherited: &[OwnedFd],
        address: &ListenAddress,
        backlog: u32,
    ) -> Result<Vec<Self>, BindError> {
        let failed = |source| BindError::new(address.clone(), source);
        let mut unlink = None;
        let mut sockets: Vec<OwnedFd> = inherited_at(inherited, address).map_err(failed)?;
        if sockets.is_empty() {
            (sockets, unlink) = bind(address, backlog, shards).map_err(failed)?;
        }
        if sockets.len() > shards {
            // Connections that the kernel assigns to the others would not be accepted.
            let text = format!("it has {} sockets for {shards} threads; restart", sockets.len());
            return Err(failed(io::Error::other(text)));
        }
        let is_duplicate = sockets.len() < shards;
        for shard in sockets.len()..shards {
            sockets.push(sockets[shard % sockets.len()].try_clone().map_err(failed)?);
        }
        let sockets = sockets.into_iter().take(shards);
        let listening = sockets.map(|socket| {
            let unlink = unlink.take();
            Self { address: address.clone(), socket, is_duplicate, backlog, unlink }
        });
        Ok(listening.collect())
    }
}

/// Duplicates of the inherited sockets with this address.
fn inherited_at(sockets: &[OwnedFd], address: &ListenAddress) -> io::Result<Vec<OwnedFd>> {
    sockets.iter().filter(|socket| is_at(socket, address)).map(OwnedFd::try_clone).collect()
}

/// Whether one of the sockets has this address.
pub fn is_among(sockets: &[OwnedFd], address: &ListenAddress) -> bool {
    sockets.iter().any(|socket| is_at(socket, address))
}

/// The same of sockets for datagrams.
pub fn is_among_datagrams(sockets: &[OwnedFd], address: &ListenAddress) -> bool {
    sockets.iter().any(|socket| is_of(SocketType::DGRAM, socket, address))
}

fn is_at(socket: &OwnedFd, address: &ListenAddress) -> bool {
    is_of(SocketType::STREAM, socket, address)
}

fn is_of(kind: SocketType, socket: &OwnedFd, address: &ListenAddress) -> bool {
    // There may be one of the other kind with the same address.
    if sockopt::socket_type(socket) != Ok(kind) {
        return false;
    }
    let Ok(name) = net::getsockname(socket) else { return false };
    match address {
        ListenAddress::Tcp(wanted) => SocketAddr::try_from(name).is_ok_and(|at| at == *wanted),
        ListenAddress::Unix { path, .. } => net::SocketAddrUnix::try_from(name)
            .is_ok_and(|at| at.path_bytes() == Some(path.as_os_str().as_encoded_bytes())),
    }
}

/// A socket that was bound before the server dropped its privileges.
pub struct InheritedListener {
    /// The socket.
    pub socket: OwnedFd,
    /// Its path, if it is a Unix socket.
    pub path: Option<PathBuf>,
}

/// Binds an address for [`ListeningSocket::for_shards`]; nothing for port 0, which takes no rights.
///
/// # Errors
/// The address cannot be listened on.
pub fn bind_before(
    shards: usize,
    address: &ListenAddress,
    backlog: u32,
) -> Result<Vec<InheritedListener>, BindError> {
    if matches!(address, ListenAddress::Tcp(address) if address.port() == 0) {
        return Ok(Vec::new());
    }
    let failed = |source| BindError { address: address.clone(), source };
    let (sockets, mut path) = bind(address, backlog, shards).map_err(failed)?;
    Ok(sockets.into_iter().map(|socket| InheritedListener { socket, path: path.take() }).collect())
}

/// Binds the UDP port of HTTP/3 for so many shards; nothing for port 0, which takes no rights.
///
/// # Errors
/// The port cannot be bound.
pub fn bind_http3_before(
    shards: usize,
    address: &ListenAddress,
) -> Result<Vec<OwnedFd>, BindError> {
    match address {
        ListenAddress::Tcp(wanted) if wanted.port() != 0 => outboard_quic::bind(*wanted, shards)
            .map_err(|source| BindError::new(address.clone(), source)),
        _ => Ok(Vec::new()),
    }
}

/// Binds a socket for each shard, or one of which they need duplicates.
fn bind(
    address: &ListenAddress,
    backlog: u32,
    shards: usize,
) -> io::Result<(Vec<OwnedFd>, Option<PathBuf>)> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    match address {
        ListenAddress::Tcp(address) => Ok((bind_tcp(*address, backlog, shards)?, None)),
        ListenAddress::Unix { path, mode } => {
            remove_dead_socket(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            net::bind(&socket, &net::SocketAddrUnix::new(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
            net::listen(&socket, backlog)?;
            Ok((vec![socket], Some(path.clone())))
        }
    }
}

fn bind_tcp(address: SocketAddr, backlog: i32, shards: usize) -> io::Result<Vec<OwnedFd>> {
    let first = listen_tcp(address, backlog, false)?;
    if shards <= 1 {
        return Ok(vec![first]);
    }
    sockopt::set_socket_reuseport(&first, true)?;
    // Port 0 has become an actual one.
    let address = SocketAddr::try_from(net::getsockname(&first)?)?;
    let others = (1..shards).map(|_| listen_tcp(address, backlog, true));
    std::iter::once(Ok(first)).chain(others).collect()
}

fn listen_tcp(address: SocketAddr, backlog: i32, joins: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if joins {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, backlog)?;
    Ok(socket)
}

/// A killed server leaves its socket file behind.
fn remove_dead_socket(path: &Path) -> io::Result<()> {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(_) => Ok(()),
    }
}
