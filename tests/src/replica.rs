//! One of several servers of an upstream, which fails as the test requires.
//!
//! In the test's process, or in one of its own (`bin/replica.rs`) that can be killed. A request for
//! `/-/MODE` sets the mode; each other one gets the replica's name, as far as the mode allows.

use rustix::net::sockopt::set_socket_linger;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a replica does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Responds.
    Serve,
    /// Responds after so many milliseconds.
    Slow(u64),
    /// Reads the request and nothing else.
    Silent,
    /// Sends half of a head and then nothing.
    HalfHead,
    /// Resets the connection instead of a response.
    Reset,
    /// Resets the connection within the body.
    ResetInBody,
    /// Responds with 503.
    Unavailable,
}

impl Mode {
    fn parse(text: &str) -> Option<Mode> {
        Some(match text.split_once(':').unwrap_or((text, "")) {
            ("serve", _) => Mode::Serve,
            ("slow", milliseconds) => Mode::Slow(milliseconds.parse().ok()?),
            ("silent", _) => Mode::Silent,
            _ => return None,
        })
    }
}

/// A running replica; it ends with its process.
#[derive(Debug)]
pub struct Replica {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    mode: Mutex<Mode>,
    heard: Mutex<Vec<String>>,
    checks: AtomicUsize,
    connections: AtomicUsize,
}

impl Replica {
    /// Listens on an ephemeral port.
    pub fn start(name: &str) -> Replica {
        Replica::at(name, "127.0.0.1:0")
    }

    /// Listens at an address.
    pub fn at(name: &str, address: &str) -> Replica {
        let listener = TcpListener::bind(address).expect("the address is free");
        rustix::net::listen(&listener, 4096).expect("it listens already");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            mode: Mutex::new(Mode::Serve),
            heard: Mutex::default(),
            checks: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let theirs = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = theirs.clone();
                shared.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Replica { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does this from now on.
    pub fn set(&self, mode: Mode) {
        *self.shared.mode.lock().expect("no holder panics") = mode;
    }

    /// Method and target of each request, without those for `/health`.
    pub fn heard(&self) -> Vec<String> {
        self.shared.heard.lock().expect("no holder panics").clone()
    }

    /// Requests for `/health`.
    pub fn checks(&self) -> usize {
        self.shared.checks.load(Ordering::SeqCst)
    }

    /// Accepted connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
            let mut words = head.lines().find(|line| line.ends_with("HTTP/1.1"));
            let line = words.take().unwrap_or_default().trim_end_matches(" HTTP/1.1");
            let target = line.split(' ').nth(1).unwrap_or_default();
            if let Some(mode) = target.strip_prefix("/-/").and_then(Mode::parse) {
                *self.mode.lock().expect("no holder panics") = mode;
                respond(&stream, "200 OK", "set")?;
                continue;
            }
            match target {
                "/health" => drop(self.checks.fetch_add(1, Ordering::SeqCst)),
                _ => self.heard.lock().expect("no holder panics").push(line.to_owned()),
            }
            let mode = *self.mode.lock().expect("no holder panics");
            match mode {
                Mode::Serve if target == "/head" => respond(&stream, "200 OK", &head)?,
                Mode::Serve => respond(&stream, "200 OK", &self.name)?,
                Mode::Slow(milliseconds) => {
                    thread::sleep(Duration::from_millis(milliseconds));
                    respond(&stream, "200 OK", &self.name)?;
                }
                Mode::Unavailable => respond(&stream, "503 Service Unavailable", "busy")?,
                Mode::Silent => return io::copy(&mut stream, &mut io::sink()).map(drop),
                Mode::HalfHead => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le")?;
                    return io::copy(&mut stream, &mut io::sink()).map(drop);
                }
                Mode::Reset => {
                    return set_socket_linger(&stream, Some(Duration::ZERO)).map_err(Into::into);
                }
                Mode::ResetInBody => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart")?;
                    return set_socket_linger(&stream, Some(Duration::ZERO)).map_err(Into::into);
                }
            }
        }
    }
}

fn respond(mut stream: &TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes())
}
