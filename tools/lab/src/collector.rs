//! A collector of traces that accepts everything and decodes nothing.
//!
//! A thread of the lab, with one for each connection: the gateway has few. Its work is not charged to a stack.
//! Invariant: the threads end with the process at the latest, and none waits for a stack.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, ResultExt};

/// The largest request that is read.
const MOST_BODY_BYTES: u64 = 16 << 20;

/// See the module.
pub struct Collector {
    address: SocketAddr,
    received_bytes: Arc<AtomicU64>,
}

impl Collector {
    /// Starts listening on a free port of the loopback interface.
    pub fn start() -> Result<Self> {
        let context = || "start the collector".to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(context)?;
        let address = listener.local_addr().context(context)?;
        let received_bytes = Arc::new(AtomicU64::new(0));
        let received = received_bytes.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = received.clone();
                std::thread::spawn(move || accept(stream, &received));
            }
        });
        Ok(Self { address, received_bytes })
    }

    /// The endpoint of exports.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans that have come, in bytes.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }
}

/// Serves a connection until its end.
fn accept(stream: TcpStream, received: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok().filter(|length| *length <= MOST_BODY_BYTES)?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        received.fetch_add(length, Ordering::Relaxed);
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_connection_are_accepted_and_counted() {
        let collector = Collector::start().unwrap();
        let mut stream = TcpStream::connect(collector.address).unwrap();
        for _ in 0..2 {
            stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nspans").unwrap();
            let mut response = [0; 38];
            stream.read_exact(&mut response).unwrap();
            assert!(response.starts_with(b"HTTP/1.1 200") && response.ends_with(b"\r\n\r\n"));
        }
        assert_eq!(collector.received_bytes(), 10);
    }
}
