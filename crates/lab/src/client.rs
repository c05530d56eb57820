//! The lab's own closed-loop client: exact counts, exact ends, every request accounted for.
//!
//! One thread, epoll, a fixed set of keep-alive connections, one request in flight on each.
//! Used where wrk cannot tell enough: a fixed number of requests, which request got which
//! status, stopping without abandoning requests. Invariant: every request sent is counted once,
//! as an answer or as a failure, and nothing is sent again.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::Timespec;

use crate::error::{Doing, Result};
use crate::http::{HOST, Scan, scan};
use crate::load::{Failures, Latency, Load};

/// After this long without any answer the requests in flight count as timed out.
const SILENCE: Duration = Duration::from_secs(30);

/// What to send.
pub struct Plan<'a> {
    /// Where to.
    pub address: SocketAddr,
    /// What to ask for.
    pub path: &'a str,
    /// Append `?id=N` with the request's number, so that the server can tell them apart.
    pub numbered: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct Account {
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that did not end in a good answer, by class.
    pub failures: Failures,
    /// Numbers and statuses of the answers other than 200, in order of arrival.
    pub unusual: Vec<(u64, u16)>,
    /// From the first request to the last answer.
    pub seconds: f64,
    latencies_us: Vec<u32>,
}

impl Account {
    /// The account in the form that all generators share.
    pub fn into_load(self) -> Load {
        Load {
            answers: self.statuses.values().sum(),
            failures: self.failures,
            seconds: self.seconds,
            latency: Latency::of(self.latencies_us),
        }
    }

    fn answer(&mut self, number: u64, status: u16, sent: Instant) {
        *self.statuses.entry(status).or_default() += 1;
        self.latencies_us.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        if status >= 400 {
            self.failures.status += 1;
        }
        if status != 200 {
            self.unusual.push((number, status));
        }
    }
}

/// Sends requests until `go_on` (asked with the number sent so far) says no, then collects
/// the outstanding answers.
pub fn run(plan: &Plan<'_>, mut go_on: impl FnMut(u64) -> bool) -> Result<Account> {
    let mut client = Client::new(plan)?;
    let began = Instant::now();
    for index in 0..plan.connections {
        client.next(index, &mut go_on)?;
    }
    let mut events = Vec::with_capacity(plan.connections.clamp(1, 1024));
    while client.in_flight > 0 {
        events.clear();
        let silence = Timespec::try_from(SILENCE).expect("seconds fit");
        epoll::wait(&client.epoll, rustix::buffer::spare_capacity(&mut events), Some(&silence))
            .or_else(|error| if error == rustix::io::Errno::INTR { Ok(0) } else { Err(error) })
            .doing(|| "wait for answers".into())?;
        if events.is_empty() {
            client.account.failures.timeout += client.in_flight;
            break;
        }
        for event in &events {
            client.ready(event.data.u64() as usize, &mut go_on)?;
        }
    }
    client.account.seconds = began.elapsed().as_secs_f64();
    Ok(client.account)
}

/// Sends `count` requests.
pub fn run_count(plan: &Plan<'_>, count: u64) -> Result<Account> {
    run(plan, |sent| sent < count)
}

/// Sends requests for that long.
pub fn run_for(plan: &Plan<'_>, duration: Duration) -> Result<Account> {
    let end = Instant::now() + duration;
    run(plan, |_| Instant::now() < end)
}

struct Client<'a> {
    plan: &'a Plan<'a>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    sent: u64,
    in_flight: u64,
    account: Account,
}

struct Connection {
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    number: u64,
    sent: Instant,
    waiting: bool,
}

/// What reading a connection came to.
enum Reading {
    Waiting,
    Answer { status: u16, keep_alive: bool },
    Broken,
}

impl<'a> Client<'a> {
    fn new(plan: &'a Plan<'a>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).doing(|| "make an epoll".into())?;
        let idle = || Connection {
            stream: None,
            buffer: Vec::with_capacity(16 * 1024),
            number: 0,
            sent: Instant::now(),
            waiting: false,
        };
        let connections = std::iter::repeat_with(idle).take(plan.connections).collect();
        Ok(Self { plan, epoll, connections, sent: 0, in_flight: 0, account: Account::default() })
    }

    /// Sends the next request on a connection, unless there is none to send. A failure to send
    /// is a failed request, and the one after it is tried at once.
    fn next(&mut self, index: usize, go_on: &mut impl FnMut(u64) -> bool) -> Result<()> {
        while go_on(self.sent) {
            let number = self.sent;
            self.sent += 1;
            if self.connections[index].stream.is_none() && !self.connect(index)? {
                self.account.failures.connect += 1;
                continue;
            }
            let request = self.request(number);
            let connection = &mut self.connections[index];
            connection.number = number;
            connection.sent = Instant::now();
            connection.buffer.clear();
            let stream = connection.stream.as_mut().expect("connected above");
            // A request is far smaller than a socket buffer: a short write is a broken peer.
            if stream.write_all(&request).is_ok() {
                connection.waiting = true;
                self.in_flight += 1;
                return Ok(());
            }
            connection.stream = None;
            self.account.failures.broken += 1;
        }
        Ok(())
    }

    fn request(&self, number: u64) -> Vec<u8> {
        let path = self.plan.path;
        let id = if self.plan.numbered { format!("?id={number}") } else { String::new() };
        format!("GET {path}{id} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").into_bytes()
    }

    fn connect(&mut self, index: usize) -> Result<bool> {
        let Ok(stream) = TcpStream::connect(self.plan.address) else { return Ok(false) };
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .doing(|| "set up a connection".into())?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)
            .doing(|| "watch a connection".into())?;
        self.connections[index].stream = Some(stream);
        Ok(true)
    }

    fn ready(&mut self, index: usize, go_on: &mut impl FnMut(u64) -> bool) -> Result<()> {
        let connection = &mut self.connections[index];
        if !connection.waiting {
            // Nothing was asked: the server closes an idle connection, as it may.
            connection.stream = None;
            return Ok(());
        }
        match connection.read() {
            Reading::Waiting => return Ok(()),
            Reading::Answer { status, keep_alive } => {
                self.account.answer(connection.number, status, connection.sent);
                if !keep_alive {
                    connection.stream = None;
                }
            }
            Reading::Broken => {
                self.account.failures.broken += 1;
                connection.stream = None;
            }
        }
        connection.waiting = false;
        self.in_flight -= 1;
        self.next(index, go_on)
    }
}

impl Connection {
    fn read(&mut self) -> Reading {
        let Some(stream) = self.stream.as_mut() else { return Reading::Waiting };
        let mut part = [0; 16 * 1024];
        let ended = match stream.read(&mut part) {
            Ok(length) => {
                self.buffer.extend_from_slice(&part[..length]);
                length == 0
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Reading::Waiting;
            }
            Err(_) => return Reading::Broken,
        };
        match scan(&self.buffer, ended) {
            Scan::Incomplete => Reading::Waiting,
            Scan::Malformed => Reading::Broken,
            Scan::Complete(shape) => {
                Reading::Answer { status: shape.status, keep_alive: shape.keep_alive }
            }
        }
    }
}

#[cfg(test)]
mod tests;
