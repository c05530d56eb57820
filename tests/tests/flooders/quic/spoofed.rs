//! [`Sender`]: datagrams from an address that a test chooses, and what the server sends there.

use crate::abused::Abused;
use std::net::UdpSocket;

/// The header form and the type of Retry (RFC 9000 17.2.5).
const RETRY: u8 = 0xf0;

/// See the module.
#[derive(Debug)]
pub(super) struct Sender {
    socket: UdpSocket,
    pub(super) sent_bytes: usize,
    pub(super) received_bytes: usize,
    pub(super) largest_bytes: usize,
    pub(super) retries: usize,
}

impl Sender {
    /// A port of this address, which is one of the loopback's.
    pub(super) fn from(address: [u8; 4]) -> Sender {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::from(address), 0)).expect("a free port");
        socket.set_nonblocking(true).expect("a socket has the option");
        Sender { socket, sent_bytes: 0, received_bytes: 0, largest_bytes: 0, retries: 0 }
    }

    /// Sends a datagram; what does not fit the queue of the kernel is not counted.
    pub(super) fn send(&mut self, site: &Abused, datagram: &[u8]) {
        if self.socket.send_to(datagram, site.secure()).is_ok() {
            self.sent_bytes += datagram.len();
        }
    }

    /// Receives what is there.
    pub(super) fn receive(&mut self) {
        let mut datagram = [0; 65_536];
        while let Ok(count) = self.socket.recv(&mut datagram) {
            self.received_bytes += count;
            self.largest_bytes = self.largest_bytes.max(count);
            self.retries += usize::from(datagram[0] & RETRY == RETRY);
        }
    }
}
