//! [`Service`]: the connections of browsers, a thread each.
//!
//! Invariants: at most [`CONNECTIONS_MAX`] at a time; each waits at most [`PATIENCE`] for its browser; nothing
//! but the requests of the page reaches the admin socket.

use super::keys::Keys;
use crate::admin_client::AdminClient;
use crate::profile::php_stacks;
use outboard_admin_api::{Endpoint, Failure, dashboard::Get};
use outboard_dashboard::{HEADERS, Source, asset};
use outboard_http1::{BodyFraming, HeadLimits, HeadStatus, Method, RequestHead};
use outboard_profile::Sampling;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Duration;

const CONNECTIONS_MAX: usize = 32;
const PATIENCE: Duration = Duration::from_secs(30);
const HEAD_MAX_BYTES: usize = 16 << 10;
const JSON: &str = "application/json";
/// Samples per second of a flame graph.
const HZ: u32 = 99;
const PROFILE_MAX_S: u64 = 30;

/// See the module.
#[derive(Debug)]
pub(super) struct Service {
    socket: PathBuf,
    keys: Keys,
    connections: AtomicUsize,
    /// Held while a flame graph is taken.
    profile: Mutex<()>,
}

/// A response without its head.
struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Service {
    pub(super) fn new(socket: PathBuf, keys: Keys) -> Self {
        Self { socket, keys, connections: AtomicUsize::new(0), profile: Mutex::new(()) }
    }

    /// Serves browsers until the process ends.
    pub(super) fn accept(self: &Arc<Self>, listener: &TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let service = self.clone();
            let serve = move || {
                // A browser that goes away is nothing to report.
                let _ = service.serve(stream);
                service.connections.fetch_sub(1, Ordering::Relaxed);
            };
            thread::Builder::new().name("dashboard".to_owned()).spawn(serve)?;
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut head, mut input) = (RequestHead::new(), Vec::new());
        loop {
            let Some(length) = read_head(&mut stream, &mut head, &mut input)? else {
                return Ok(());
            };
            let has_body = !matches!(head.body(), BodyFraming::Length(0) | BodyFraming::None);
            let reply = if has_body {
                failure(413, "requests of the dashboard have no body")
            } else {
                self.reply(&head, &input)
            };
            let keep_alive = head.keep_alive() && !has_body;
            send(&mut stream, &reply, head.method_kind() == Method::Head, keep_alive)?;
            if !keep_alive {
                return Ok(());
            }
            input.drain(..length);
            head.reset();
        }
    }

    fn reply(&self, head: &RequestHead, input: &[u8]) -> Reply {
        let field = |name: &[u8]| head.header_if_alone(input, name);
        let is_read = matches!(head.method_kind(), Method::Get | Method::Head);
        let source = Source {
            host: head.host(input).unwrap_or_default(),
            origin: field(b"origin"),
            fetch_site: field(b"sec-fetch-site"),
            fetch_mode: field(b"sec-fetch-mode"),
            is_read,
        };
        if !source.is_own(&[]) {
            return failure(403, "the request is of a page of another site");
        }
        let path = std::str::from_utf8(head.path(input)).unwrap_or_default();
        let query = String::from_utf8_lossy(head.query(input).unwrap_or_default());
        if let Some(file) = asset(path).filter(|_| is_read) {
            return self.forward(path, file.content_type);
        }
        let bearer = field(b"authorization").and_then(|value| value.strip_prefix(b"Bearer "));
        let bearer = bearer.unwrap_or_default();
        match (head.method_kind(), path) {
            (Method::Post, "/dashboard/session") => match self.keys.exchange(bearer) {
                Some(key) => json(200, &serde_json::json!({ "key": key })),
                None => failure(401, "the token is not valid, or not any more"),
            },
            _ if !self.keys.admits(bearer) => failure(401, "a key is required"),
            (Method::Get, Get::PATH) => match Get::from_query(&query) {
                Ok(get) => self.forward(&get.target(), JSON),
                Err(error) => failure(400, error),
            },
            (Method::Post, "/dashboard/profile") => self.take_profile(&query),
            _ => failure(404, "no such resource of the dashboard"),
        }
    }

    /// What the admin socket replies.
    fn forward(&self, target: &str, content_type: &'static str) -> Reply {
        let sent = AdminClient::connect(&self.socket)
            .and_then(|mut client| client.request("GET", target, &[]));
        match sent {
            Ok(response) if response.status == 200 => {
                Reply { status: 200, content_type, body: response.body }
            }
            Ok(response) => {
                Reply { status: response.status, content_type: JSON, body: response.body }
            }
            Err(error) => failure(502, error),
        }
    }

    fn take_profile(&self, query: &str) -> Reply {
        let seconds = query.strip_prefix("seconds=").and_then(|seconds| seconds.parse().ok());
        let Some(seconds) = seconds.filter(|seconds| (1..=PROFILE_MAX_S).contains(seconds)) else {
            return failure(400, format!("`seconds` is a number from 1 to {PROFILE_MAX_S}"));
        };
        let held = self.profile.try_lock();
        if matches!(held, Err(TryLockError::WouldBlock)) {
            return failure(409, "another flame graph is being taken");
        }
        let sampling = Sampling { duration: Duration::from_secs(seconds), hz: HZ };
        match php_stacks(&self.socket, sampling) {
            Ok(folded) => json(200, &serde_json::json!({ "folded": folded.text() })),
            Err(error) => failure(500, error),
        }
    }
}

/// Reads a head; its length, or `None` at the end of the connection or for what is no request.
fn read_head(
    stream: &mut TcpStream,
    head: &mut RequestHead,
    input: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    let mut buffer = [0; 4096];
    loop {
        match head.parse(input, &HeadLimits::default()) {
            Ok(HeadStatus::Complete { head_len }) => return Ok(Some(head_len)),
            Ok(HeadStatus::Partial) if input.len() < HEAD_MAX_BYTES => {}
            Ok(HeadStatus::Partial) | Err(_) => return Ok(None),
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        input.extend_from_slice(&buffer[..count]);
    }
}

fn send(stream: &mut TcpStream, reply: &Reply, is_head: bool, keep_alive: bool) -> io::Result<()> {
    let Reply { status, content_type, body } = reply;
    let mut bytes = format!(
        "HTTP/1.1 {status} \r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: {}\r\nOutboard-Profile: yes\r\n",
        body.len(),
        if keep_alive { "keep-alive" } else { "close" }
    );
    HEADERS.iter().for_each(|(name, value)| bytes += &format!("{name}: {value}\r\n"));
    bytes += "\r\n";
    let mut bytes = bytes.into_bytes();
    if !is_head {
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes)
}

fn json(status: u16, body: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(body).expect("replies have text keys only");
    Reply { status, content_type: JSON, body }
}

fn failure(status: u16, error: impl Into<String>) -> Reply {
    json(status, &Failure { error: error.into() })
}

#[cfg(test)]
mod tests;
