//! TCP sockets of a test: each read, write and accept ends after a minute at the latest.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the other side may stay silent before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects.
#[track_caller]
pub fn connect(address: impl ToSocketAddrs + Debug) -> TcpStream {
    let stream = TcpStream::connect(&address);
    bounded(stream.unwrap_or_else(|error| panic!("cannot connect to {address:?}: {error}")))
}

/// Connects from this address of the machine.
#[track_caller]
pub fn connect_from(source: IpAddr, address: SocketAddr) -> TcpStream {
    let connected = || -> io::Result<TcpStream> {
        let family = net::AddressFamily::INET;
        let socket = net::socket(family, net::SocketType::STREAM, None)?;
        net::bind(&socket, &SocketAddr::new(source, 0))?;
        net::connect(&socket, &address)?;
        Ok(TcpStream::from(socket))
    };
    let stream = connected();
    bounded(stream.unwrap_or_else(|error| panic!("{source} cannot connect to {address}: {error}")))
}

/// Takes the next connection of a server that the test plays.
#[track_caller]
pub fn accept(listener: &TcpListener) -> TcpStream {
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience));
    assert_eq!(ready, Ok(1), "no client connects to {listener:?}");
    bounded(listener.accept().expect("poll(2) reported a connection").0)
}

/// Reads until the server has ended the connection, be it by a reset; what came. A connection that
/// stays open is a failure.
#[track_caller]
pub fn read_to_any_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut came = Vec::new();
    if let Err(error) = stream.read_to_end(&mut came) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after {} bytes", came.len());
    }
    came
}

fn bounded(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("the time-out is not zero");
    stream.set_write_timeout(Some(PATIENCE)).expect("the time-out is not zero");
    stream
}
