//! The slow backend of the experiments: an HTTP/1.1 server with a configurable latency.
//!
//! `/30ms` responds with 2,890 bytes, 30 ms after the request has arrived, under any load. It is
//! one thread of the lab with one epoll: a response costs a few µs, far less than what is measured,
//! and this is not charged to a stack. Invariant: responses of one latency leave in the order of
//! their requests, so one queue per latency replaces timers.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::Timespec;

use crate::error::{Result, ResultExt};

/// The epoll data of the listener; connections are numbered from 0.
const LISTENER: u64 = u64::MAX;

/// A longer head is malformed.
const MOST_HEAD_BYTES: usize = 16 * 1024;

/// A running backend; dropping it ends its thread.
pub struct Backend {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    /// Starts listening on a free port of the loopback interface.
    pub fn start() -> Result<Self> {
        let context = || "start the backend".to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(context)?;
        let address = listener.local_addr().context(context)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server::new(listener).context(context)?;
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&seen));
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a response with this latency.
    pub fn url(&self, latency_ms: u64) -> String {
        format!("http://{}/{latency_ms}ms", self.address)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection wakes the thread, which then sees the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The numbers 0 to 999 one after the other: 2,890 bytes.
pub fn body() -> String {
    (0..1000).map(|number| number.to_string()).collect()
}

struct Server {
    epoll: OwnedFd,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    vacant: Vec<usize>,
    /// The number of connections so far, which distinguishes connections at the same index.
    opened: u64,
    waiting: BTreeMap<Duration, VecDeque<Due>>,
    /// The response for a persistent connection and for one that is closed.
    responses: [Vec<u8>; 2],
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    serial: u64,
}

/// A response that is sent later.
struct Due {
    at: Instant,
    index: usize,
    serial: u64,
    keep_alive: bool,
}

/// The parsed content of a connection's buffer.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Incomplete,
    Malformed,
    Complete { latency: Duration, keep_alive: bool, bytes: usize },
}

impl Server {
    fn new(listener: TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            connections: Vec::new(),
            vacant: Vec::new(),
            opened: 0,
            waiting: BTreeMap::new(),
            responses: ["keep-alive", "close"].map(response),
        })
    }

    fn serve(&mut self, stop: &AtomicBool) {
        let mut events = Vec::with_capacity(1024);
        while !stop.load(Ordering::Relaxed) {
            self.respond_due();
            let timeout = self.until_next().and_then(|time| Timespec::try_from(time).ok());
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    index => self.read(index as usize),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let index = self.vacant.pop().unwrap_or(self.connections.len());
            let data = epoll::EventData::new_u64(index as u64);
            let ready = stream.set_nonblocking(true).is_ok()
                && stream.set_nodelay(true).is_ok()
                && epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_ok();
            if index == self.connections.len() {
                self.connections.push(None);
            }
            if !ready {
                self.vacant.push(index);
                continue;
            }
            self.opened += 1;
            let connection = Connection { stream, buffer: Vec::new(), serial: self.opened };
            self.connections[index] = Some(connection);
        }
    }

    fn read(&mut self, index: usize) {
        let Some(connection) = self.connections[index].as_mut() else { return };
        let mut part = [0; 4096];
        match connection.stream.read(&mut part) {
            Ok(length) if length > 0 => connection.buffer.extend_from_slice(&part[..length]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return;
            }
            _ => return self.close(index),
        }
        match head(&connection.buffer) {
            Head::Incomplete => {}
            Head::Malformed => self.close(index),
            Head::Complete { latency, keep_alive, bytes } => {
                connection.buffer.drain(..bytes);
                let serial = connection.serial;
                let due = Due { at: Instant::now() + latency, index, serial, keep_alive };
                self.waiting.entry(latency).or_default().push_back(due);
            }
        }
    }

    fn respond_due(&mut self) {
        let now = Instant::now();
        let mut ready = Vec::new();
        for queue in self.waiting.values_mut() {
            while queue.front().is_some_and(|due| due.at <= now) {
                ready.extend(queue.pop_front());
            }
        }
        for due in ready {
            self.respond(&due);
        }
    }

    fn respond(&mut self, due: &Due) {
        let Some(connection) = self.connections[due.index].as_mut() else { return };
        if connection.serial != due.serial {
            return;
        }
        // A response is far smaller than a socket buffer, so a short write means a broken peer.
        let sent = connection.stream.write_all(&self.responses[usize::from(!due.keep_alive)]);
        if sent.is_err() || !due.keep_alive {
            self.close(due.index);
        }
    }

    fn close(&mut self, index: usize) {
        self.connections[index] = None;
        self.vacant.push(index);
    }

    fn until_next(&self) -> Option<Duration> {
        let first = self.waiting.values().filter_map(VecDeque::front).map(|due| due.at).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }
}

fn response(connection: &str) -> Vec<u8> {
    let body = body();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: {connection}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Parses the head of a GET; bodies are not supported.
fn head(buffer: &[u8]) -> Head {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        let sound = buffer.len() < MOST_HEAD_BYTES;
        return if sound { Head::Incomplete } else { Head::Malformed };
    };
    let Some((latency, old)) = std::str::from_utf8(&buffer[..end]).ok().and_then(request_line)
    else {
        return Head::Malformed;
    };
    let close = buffer[..end]
        .split(|&byte| byte == b'\n')
        .any(|line| line.trim_ascii().eq_ignore_ascii_case(b"connection: close"));
    Head::Complete { latency, keep_alive: !close && !old, bytes: end + 4 }
}

/// The latency in the path, and whether the client uses HTTP/1.0.
fn request_line(head: &str) -> Option<(Duration, bool)> {
    let mut words = head.lines().next()?.strip_prefix("GET /")?.split(' ');
    let path = words.next()?;
    let name = path.split('?').next()?;
    let ms = name.strip_suffix("ms")?.parse().ok()?;
    Some((Duration::from_millis(ms), words.next()? == "HTTP/1.0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{Task, run_count};
    use crate::http;

    #[test]
    fn the_path_names_the_latency() {
        let text = b"GET /30ms?q=1 HTTP/1.1\r\nHost: x\r\n\r\n";
        let latency = Duration::from_millis(30);
        let bytes = text.len();
        assert_eq!(head(text), Head::Complete { latency, keep_alive: true, bytes });
        assert_eq!(head(&text[..20]), Head::Incomplete);
        assert_eq!(head(b"GET /soon HTTP/1.1\r\n\r\n"), Head::Malformed);
    }

    #[test]
    fn http_1_0_and_connection_close_are_closed() {
        for text in ["GET /1ms HTTP/1.0\r\n\r\n", "GET /1ms HTTP/1.1\r\nConnection: close\r\n\r\n"]
        {
            assert!(matches!(head(text.as_bytes()), Head::Complete { keep_alive: false, .. }));
        }
    }

    #[test]
    fn every_response_is_complete_and_delayed() {
        let backend = Backend::start().expect("loopback binds");
        let response = http::get(backend.address(), "/0ms").expect("it answers");
        assert_eq!((response.status, response.body.len()), (200, 2890));
        let task = Task::get(backend.address(), "/20ms", 50);
        let account = run_count(&task, 200).expect("it answers");
        assert_eq!((account.statuses[&200], account.load.failures.total()), (200, 0));
        assert_eq!(account.load.reused, Some(150));
        assert!(account.load.latency.p50_us >= 20_000.0);
    }
}
