//! The backend that everything waits for: an HTTP/1.1 server whose latency is in the path.
//!
//! `/30ms` answers 30 ms after the request has come, whatever the load, with 2,890 bytes. One
//! thread of the lab with one epoll: an answer costs it a few µs, far less than what is measured,
//! and none of that is booked on a stack. Invariant: answers of one latency leave in the order in
//! which their requests came, so a queue per latency is all the timers there are.

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

use crate::error::{Doing, Result};

/// Marks the listener among the events; connections are numbered from 0.
const LISTENER: u64 = u64::MAX;

/// A head longer than this is not one of ours.
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
        let doing = || "start the backend".to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing(doing)?;
        let address = listener.local_addr().doing(doing)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server::new(listener).doing(doing)?;
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&seen));
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of an answer that takes that long.
    pub fn url(&self, latency_ms: u64) -> String {
        format!("http://{}/{latency_ms}ms", self.address)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection wakes the thread, which then sees that it is to stop.
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
    /// How many connections there ever were: tells a reused place from the one that waited.
    opened: u64,
    waiting: BTreeMap<Duration, VecDeque<Due>>,
    /// The answer over a connection that stays, and over one that is closed.
    answers: [Vec<u8>; 2],
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    serial: u64,
}

/// An answer that leaves later.
struct Due {
    at: Instant,
    index: usize,
    serial: u64,
    keep_alive: bool,
}

/// What a connection's buffer holds.
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
            answers: ["keep-alive", "close"].map(answer),
        })
    }

    fn serve(&mut self, stop: &AtomicBool) {
        let mut events = Vec::with_capacity(1024);
        while !stop.load(Ordering::Relaxed) {
            self.answer_due();
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

    fn answer_due(&mut self) {
        let now = Instant::now();
        let mut ready = Vec::new();
        for queue in self.waiting.values_mut() {
            while queue.front().is_some_and(|due| due.at <= now) {
                ready.extend(queue.pop_front());
            }
        }
        for due in ready {
            self.answer(&due);
        }
    }

    fn answer(&mut self, due: &Due) {
        let Some(connection) = self.connections[due.index].as_mut() else { return };
        if connection.serial != due.serial {
            return;
        }
        // An answer is far smaller than a socket buffer: a short write is a broken peer.
        let sent = connection.stream.write_all(&self.answers[usize::from(!due.keep_alive)]);
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

fn answer(connection: &str) -> Vec<u8> {
    let body = body();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: {connection}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads the head of a GET; bodies are not understood.
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

/// The latency that the path names, and whether the client speaks HTTP/1.0.
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
    fn old_clients_and_those_that_ask_for_it_are_closed() {
        for text in ["GET /1ms HTTP/1.0\r\n\r\n", "GET /1ms HTTP/1.1\r\nConnection: close\r\n\r\n"]
        {
            assert!(matches!(head(text.as_bytes()), Head::Complete { keep_alive: false, .. }));
        }
    }

    #[test]
    fn every_answer_is_whole_and_takes_its_time() {
        let backend = Backend::start().expect("loopback binds");
        let answer = http::get(backend.address(), "/0ms").expect("it answers");
        assert_eq!((answer.status, answer.body.len()), (200, 2890));
        let task = Task::get(backend.address(), "/20ms", 50);
        let account = run_count(&task, 200).expect("it answers");
        assert_eq!((account.statuses[&200], account.load.failures.total()), (200, 0));
        assert_eq!(account.load.reused, Some(150));
        assert!(account.load.latency.p50_us >= 20_000.0);
    }
}
