//! Sockets to listen on: bound here, or bound earlier for this process.
//!
//! Called by [`super::BoundListener`], and by the server before it drops privileges.

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

/// A duplicate of an inherited socket with this address. The original stays open: after a reload
/// without the address, another reload may use it again.
pub(super) fn inherited(
    sockets: &[OwnedFd],
    address: &ListenAddress,
) -> Option<io::Result<OwnedFd>> {
    sockets.iter().find(|socket| is_at(socket, address)).map(OwnedFd::try_clone)
}

/// Whether one of the sockets has this address.
pub fn is_among(sockets: &[OwnedFd], address: &ListenAddress) -> bool {
    sockets.iter().any(|socket| is_at(socket, address))
}

fn is_at(socket: &OwnedFd, address: &ListenAddress) -> bool {
    // There may be one for datagrams with the same address.
    if sockopt::socket_type(socket) != Ok(SocketType::STREAM) {
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

/// Binds an address for [`super::BoundListener::start`]; `None` for port 0, which takes no rights.
///
/// # Errors
/// The address cannot be listened on.
pub fn bind_before(
    address: &ListenAddress,
    backlog: u32,
) -> Result<Option<InheritedListener>, BindError> {
    if matches!(address, ListenAddress::Tcp(address) if address.port() == 0) {
        return Ok(None);
    }
    let failed = |source| BindError { address: address.clone(), source };
    let (socket, path) = bind(address, backlog).map_err(failed)?;
    Ok(Some(InheritedListener { socket, path }))
}

pub(super) fn bind(
    address: &ListenAddress,
    backlog: u32,
) -> io::Result<(OwnedFd, Option<PathBuf>)> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    match address {
        ListenAddress::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, address)?;
            net::listen(&socket, backlog)?;
            Ok((socket, None))
        }
        ListenAddress::Unix { path, mode } => {
            remove_dead_socket(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            net::bind(&socket, &net::SocketAddrUnix::new(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
            net::listen(&socket, backlog)?;
            Ok((socket, Some(path.clone())))
        }
    }
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
