//! A way to a server's UDP port that loses and reorders datagrams, the same ones each time.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// No client of a test is silent for longer.
const SILENCE: Duration = Duration::from_secs(60);
/// Longer than any datagram.
const DATAGRAM_BYTES: usize = 65_536;

/// See the module.
#[derive(Debug)]
pub struct LossyNetwork {
    address: SocketAddr,
}

/// What happens to the datagrams of one direction.
#[derive(Debug)]
struct Fate {
    count: usize,
    lost_of: usize,
    late_of: usize,
    late: Option<Vec<u8>>,
}

impl LossyNetwork {
    /// A way to this port. In each direction one datagram of `lost_of` is lost, and one of `late_of`
    /// arrives after its successor; of 0 none.
    pub fn to(server: SocketAddr, lost_of: usize, late_of: usize) -> LossyNetwork {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port"));
        front.set_read_timeout(Some(SILENCE)).expect("the time is not zero");
        let address = front.local_addr().expect("it is bound");
        thread::spawn(move || forward(&front, server, lost_of, late_of));
        LossyNetwork { address }
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Passes on what clients send, until they are silent; each has a port of its own towards the server.
fn forward(front: &Arc<UdpSocket>, server: SocketAddr, lost_of: usize, late_of: usize) {
    let mut clients: HashMap<SocketAddr, (UdpSocket, Fate)> = HashMap::new();
    let mut datagram = [0; DATAGRAM_BYTES];
    while let Ok((length, client)) = front.recv_from(&mut datagram) {
        let (back, fate) = clients.entry(client).or_insert_with(|| {
            let back = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
            back.connect(server).expect("it is an address");
            let (front, from_server) = (front.clone(), back.try_clone().expect("it is open"));
            thread::spawn(move || backward(&from_server, &front, client, lost_of, late_of));
            (back, Fate::new(lost_of, late_of))
        });
        for datagram in fate.of(&datagram[..length]) {
            // What does not arrive is lost, as datagrams may be.
            let _ = back.send(&datagram);
        }
    }
}

fn backward(
    server: &UdpSocket,
    front: &UdpSocket,
    client: SocketAddr,
    lost_of: usize,
    late_of: usize,
) {
    server.set_read_timeout(Some(SILENCE)).expect("the time is not zero");
    let mut fate = Fate::new(lost_of, late_of);
    let mut datagram = [0; DATAGRAM_BYTES];
    while let Ok(length) = server.recv(&mut datagram) {
        for datagram in fate.of(&datagram[..length]) {
            let _ = front.send_to(&datagram, client);
        }
    }
}

impl Fate {
    fn new(lost_of: usize, late_of: usize) -> Fate {
        Fate { count: 0, lost_of, late_of, late: None }
    }

    /// What arrives now.
    fn of(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.count += 1;
        let is_one_of = |of: usize| of > 0 && self.count % of == of - 1;
        if is_one_of(self.lost_of) {
            return Vec::new();
        }
        let datagram = datagram.to_vec();
        if is_one_of(self.late_of) && self.late.is_none() {
            self.late = Some(datagram);
            return Vec::new();
        }
        std::iter::once(datagram).chain(self.late.take()).collect()
    }
}
