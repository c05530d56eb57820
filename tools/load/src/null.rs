//! [`NullServer`]: sends the same few bytes for every request, in this process.
//!
//! A run against it measures the cost and the punctuality of the generator itself. It has one
//! thread and parses of HTTP only the end of a head, which is enough for requests without bodies.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: null\r\nContent-Length: 12\r\n\r\nhello world\n";
const HEAD_END: &[u8] = b"\r\n\r\n";
const LISTENER: u64 = u64::MAX;
const EVENTS_A_TURN: usize = 256;

/// A server on the loopback interface; dropping it ends it.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl NullServer {
    /// Listens on an ephemeral port.
    pub fn start() -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Listens on this address.
    pub fn start_at(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let thread = std::thread::Builder::new().name("null".into());
        let thread = Some(thread.spawn(move || serve(&listener, &flag))?);
        Ok(Self { address, is_over, thread })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A connection wakes the thread, which then sees the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection, and how much of [`HEAD_END`] the last bytes matched.
struct Peer {
    socket: OwnedFd,
    matched: usize,
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let interest = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(&epoll, listener.as_fd(), EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut peers: Vec<Option<Peer>> = Vec::new();
    let mut events = Vec::with_capacity(EVENTS_A_TURN);
    let mut buffer = vec![0; 16 * 1024];
    while !is_over.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let place = event.data.u64();
            if place == LISTENER {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
                let free = peers.iter().position(Option::is_none).unwrap_or(peers.len());
                epoll::add(&epoll, &socket, EventData::new_u64(free as u64), interest)?;
                let peer = Some(Peer { socket: socket.into(), matched: 0 });
                if free == peers.len() { peers.push(peer) } else { peers[free] = peer }
            } else if let Some(peer) = peers.get_mut(place as usize)
                && !peer.as_mut().is_some_and(|peer| peer.response(&mut buffer))
            {
                *peer = None;
            }
        }
    }
    Ok(())
}

impl Peer {
    /// Reads and answers each head; false when the connection is closed.
    fn response(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            let count = match rustix::io::read(&self.socket, &mut *buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            };
            let heads = self.heads(&buffer[..count]);
            for _ in 0..heads {
                // Responses are tiny, so a peer that lets them fill its window reads none.
                if rustix::io::write(&self.socket, RESPONSE) != Ok(RESPONSE.len()) {
                    return false;
                }
            }
            if count < buffer.len() {
                return true;
            }
        }
    }

    /// The number of heads that end in `bytes`.
    fn heads(&mut self, bytes: &[u8]) -> usize {
        let mut heads = 0;
        for &byte in bytes {
            self.matched = match byte {
                _ if byte == HEAD_END[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.matched == HEAD_END.len() {
                heads += 1;
                self.matched = 0;
            }
        }
        heads
    }
}
