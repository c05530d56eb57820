//! [`BoundDatagram`]: a socket whose datagrams go to the workers of an app.
//!
//! The gateway binds one per configured address. Invariant: a flood of datagrams neither keeps other
//! tasks from running nor takes memory: those that find too many before them are dropped, as the kernel
//! does.

use outboard_config::ListenAddress;
use outboard_http_server::{BindError, InheritedListener, StreamPort};
use outboard_reactor::{Event, Interest, Source, share_turn, spawn};
use outboard_ring::stream::Peer;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags,
    SocketType, sockopt,
};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::rc::Rc;

/// The largest datagram.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Receives datagrams: their peer and content ([`Peer`]) for a port of an app.
pub type Receive = Rc<dyn Fn(&StreamPort, Vec<u8>)>;

/// See the module.
#[derive(Debug)]
pub struct BoundDatagram {
    /// As configured; a reload compares it.
    pub address: ListenAddress,
    /// The actual address, with the port.
    pub local: Option<SocketAddr>,
    receiver: RefCell<StreamPort>,
    source: Source,
    stop: Event,
    unlink: RefCell<Option<PathBuf>>,
}

impl BoundDatagram {
    /// Takes an inherited socket or binds one, and passes on what arrives.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn start(
        inherited: &[OwnedFd],
        address: ListenAddress,
        receiver: StreamPort,
        receive: Receive,
    ) -> Result<Rc<Self>, BindError> {
        let failed = |source| BindError::new(address.clone(), source);
        let (socket, unlink) = match inherited.iter().find(|socket| is_at(socket, &address)) {
            Some(socket) => (socket.try_clone().map_err(failed)?, None),
            None => bind(&address).map_err(failed)?,
        };
        let local = net::getsockname(&socket).ok().and_then(|any| SocketAddr::try_from(any).ok());
        let source = Source::new(socket, Interest::Read).map_err(failed)?;
        let (receiver, stop) = (RefCell::new(receiver), Event::default());
        let unlink = RefCell::new(unlink);
        let bound = Rc::new(Self { address, local, receiver, source, stop, unlink });
        spawn(receive_all(bound.clone(), receive));
        Ok(bound)
    }

    /// The address in text, with the actual port.
    pub fn name(&self) -> String {
        match self.local {
            Some(local) => format!("udp://{local}/"),
            None => self.address.to_string(),
        }
    }

    /// The app and the port of its program that receive.
    pub fn receiver(&self) -> StreamPort {
        self.receiver.borrow().clone()
    }

    /// Replaces the receiver.
    pub fn set_receiver(&self, receiver: StreamPort) {
        self.receiver.replace(receiver);
    }

    /// Stops receiving.
    pub fn stop(&self) {
        self.stop.set();
        if let Some(path) = self.unlink.take() {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }

    /// A duplicate of its socket, for a server that takes over.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.source.as_fd().try_clone_to_owned()
    }

    /// The file that it removes when it stops.
    pub fn file(&self) -> Option<PathBuf> {
        self.unlink.borrow().clone()
    }

    /// It does not remove its file any more.
    pub fn leave_file(&self) {
        self.unlink.take();
    }

    pub(crate) fn port(&self) -> u16 {
        self.receiver.borrow().port
    }

    /// Whether it is of the kind of this address.
    pub(crate) fn reaches(&self, peer: &Peer<'_>) -> bool {
        match (self.local, peer.address.parse::<IpAddr>()) {
            (Some(local), Ok(ip)) => local.is_ipv6() || ip.is_ipv4(),
            (None, Err(_)) => peer.address.starts_with('/'),
            _ => false,
        }
    }

    /// Sends a datagram; it is lost if the socket is full, as any may be.
    pub(crate) fn send(&self, peer: &Peer<'_>, datagram: &[u8]) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = match (self.local, peer.address.parse::<IpAddr>()) {
            (Some(local), Ok(ip)) => {
                let ip = match ip {
                    IpAddr::V4(ip) if local.is_ipv6() => IpAddr::V6(ip.to_ipv6_mapped()),
                    ip => ip,
                };
                net::sendto(&self.source, datagram, flags, &SocketAddr::new(ip, peer.port))
            }
            _ => SocketAddrUnix::new(peer.address)
                .and_then(|path| net::sendto(&self.source, datagram, flags, &path)),
        };
    }
}

/// A socket that was bound before the server dropped its privileges, with its path if it is a Unix
/// socket; `None` for port 0, which takes no rights.
///
/// # Errors
/// The address cannot be bound.
pub fn bind_datagram_before(
    address: &ListenAddress,
) -> Result<Option<InheritedListener>, BindError> {
    if matches!(address, ListenAddress::Tcp(address) if address.port() == 0) {
        return Ok(None);
    }
    let (socket, path) = bind(address).map_err(|source| BindError::new(address.clone(), source))?;
    Ok(Some(InheritedListener { socket, path }))
}

/// Whether an inherited socket is for datagrams and has this address.
fn is_at(socket: &OwnedFd, address: &ListenAddress) -> bool {
    let is_datagram = sockopt::socket_type(socket) == Ok(SocketType::DGRAM);
    let Ok(name) = net::getsockname(socket) else { return false };
    is_datagram
        && match address {
            ListenAddress::Tcp(wanted) => SocketAddr::try_from(name).is_ok_and(|at| at == *wanted),
            ListenAddress::Unix { path, .. } => SocketAddrUnix::try_from(name)
                .is_ok_and(|at| at.path_bytes() == Some(path.as_os_str().as_encoded_bytes())),
        }
}

fn bind(address: &ListenAddress) -> io::Result<(OwnedFd, Option<PathBuf>)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match address {
        ListenAddress::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = net::socket_with(family, SocketType::DGRAM, flags, None)?;
            net::bind(&socket, address)?;
            Ok((socket, None))
        }
        ListenAddress::Unix { path, mode } => {
            // A killed server leaves its socket file behind.
            if std::os::unix::net::UnixDatagram::unbound()?.connect(path).is_err() {
                let _ = std::fs::remove_file(path);
            }
            let socket = net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
            net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
            let _ = sockopt::set_socket_recv_buffer_size(&socket, DATAGRAM_BYTES * 4);
            Ok((socket, Some(path.clone())))
        }
    }
}

async fn receive_all(bound: Rc<BoundDatagram>, receive: Receive) {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        let is_stopped = std::future::poll_fn(|_| {
            if bound.stop.poll().is_ready() {
                return std::task::Poll::Ready(true);
            }
            bound.source.poll_readable().map(|()| false)
        });
        if is_stopped.await {
            return;
        }
        match net::recvfrom(&bound.source, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((count, _, from)) => {
                deliver(&bound, &receive, from, &buffer[..count]);
                share_turn(count).await;
            }
            Err(Errno::AGAIN) => bound.source.clear_readable(),
            // Of an earlier datagram, whose receiver was not there.
            Err(_) => share_turn(DATAGRAM_BYTES).await,
        }
    }
}

fn deliver(bound: &BoundDatagram, receive: &Receive, from: Option<SocketAddrAny>, datagram: &[u8]) {
    let receiver = bound.receiver();
    let ip = from.clone().and_then(|from| SocketAddr::try_from(from).ok());
    let path = from.and_then(|from| SocketAddrUnix::try_from(from).ok());
    let path = path.as_ref().and_then(SocketAddrUnix::path_bytes);
    let address = match (ip, path) {
        (Some(ip), _) => ip.ip().to_canonical().to_string(),
        (None, Some(path)) => String::from_utf8_lossy(path).into_owned(),
        (None, None) => String::new(),
    };
    let mut bytes = Vec::with_capacity(datagram.len() + address.len() + 8);
    let local_port = bound.local.map_or(0, |local| local.port());
    Peer { port: ip.map_or(0, |ip| ip.port()), local_port, address: &address }.encode(&mut bytes);
    bytes.extend_from_slice(datagram);
    receive(&receiver, bytes);
}
