//! The lab's own closed-loop client: exact counts, exact ends, every request accounted for.
//!
//! One thread, epoll, a fixed set of keep-alive connections, one request in flight on each.
//! Used where wrk cannot tell enough: a fixed number of requests, which request got which
//! status, stopping without abandoning requests. Invariant: every request sent is counted once,
//! as an answer or as a failure, and nothing is sent again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::Timespec;

use crate::ask::Ask;
use crate::error::{Doing, Result};
use crate::http::{Scan, Shape, body_length, is_body, scan};
use crate::load::{Failures, Latency, Load};

/// After this long without any answer the requests in flight count as timed out.
const SILENCE: Duration = Duration::from_secs(30);

/// What to send.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to.
    pub address: SocketAddr,
    /// What to ask for, in turns.
    pub asks: Vec<Ask>,
    /// Append `?id=N` with the request's number, so that the server can tell them apart.
    pub numbered: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
}

impl Plan {
    /// GETs of one path.
    pub fn get(address: SocketAddr, path: &str, connections: usize) -> Self {
        Self { address, asks: vec![Ask::get(path)], numbered: false, connections }
    }
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
    /// Requests sent on a connection that had answered before.
    pub reused: u64,
    /// CPU that the client itself spent, in µs.
    pub client_us: u64,
    connections: usize,
    latencies_us: Vec<u32>,
}

impl Account {
    /// The account in the form that all generators share.
    pub fn into_load(self) -> Load {
        Load {
            answers: self.statuses.values().sum(),
            failures: self.failures,
            seconds: self.seconds,
            reused: Some(self.reused),
            latency: Latency::of(self.latencies_us),
            connections: self.connections,
            client_us: self.client_us,
        }
    }

    fn answer(&mut self, connection: &Connection, status: u16, body: Body) {
        *self.statuses.entry(status).or_default() += 1;
        let us = connection.sent.elapsed().as_micros();
        self.latencies_us.push(u32::try_from(us).unwrap_or(u32::MAX));
        match body {
            _ if status >= 400 => self.failures.status += 1,
            Body::OtherLength => self.failures.length += 1,
            Body::OtherBytes => self.failures.body += 1,
            Body::AsExpected => {}
        }
        if status != 200 {
            self.unusual.push((connection.number, status));
        }
    }
}

/// Sends requests until `go_on` (asked with the number sent so far) says no, then collects
/// the outstanding answers.
pub fn run(plan: &Plan, mut go_on: impl FnMut(u64) -> bool) -> Result<Account> {
    let mut client = Client::new(plan)?;
    // All of them before the first request: a server that is at work already may be slow to accept
    // the rest, and would then be measured with fewer than it was meant to have.
    for index in 0..plan.connections {
        // What fails here is tried again, and counted, with its first request.
        client.connect(index)?;
    }
    client.account.failures = Failures::default();
    let (began, spent_us) = (Instant::now(), thread_us());
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
    client.account.client_us = thread_us().saturating_sub(spent_us);
    Ok(client.account)
}

/// Sends `count` requests.
pub fn run_count(plan: &Plan, count: u64) -> Result<Account> {
    run(plan, |sent| sent < count)
}

/// Sends requests for that long, from the first one on.
pub fn run_for(plan: &Plan, duration: Duration) -> Result<Account> {
    let mut end = None;
    run(plan, |_| {
        let now = Instant::now();
        now < *end.get_or_insert(now + duration)
    })
}

/// One ask over so many connections for that long. Unlike wrk it waits for every answer, so that a
/// slow server has nothing left to do for nobody when its slice has ended.
pub fn load(address: SocketAddr, ask: &Ask, connections: usize, seconds: f64) -> Result<Load> {
    let plan = Plan { address, asks: vec![ask.clone()], numbered: false, connections };
    Ok(run_for(&plan, Duration::from_secs_f64(seconds))?.into_load())
}

struct Client<'a> {
    plan: &'a Plan,
    /// The plan's asks as they are sent, unless they are numbered.
    requests: Vec<Vec<u8>>,
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
    /// It has answered before.
    used: bool,
}

/// What reading a connection came to.
enum Reading {
    Waiting,
    Answer(Shape),
    Broken,
}

/// What an answer's body is, against what it has to be.
enum Body {
    AsExpected,
    OtherLength,
    OtherBytes,
}

impl<'a> Client<'a> {
    fn new(plan: &'a Plan) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).doing(|| "make an epoll".into())?;
        let idle = || Connection {
            stream: None,
            buffer: Vec::with_capacity(16 * 1024),
            number: 0,
            sent: Instant::now(),
            waiting: false,
            used: false,
        };
        let connections = std::iter::repeat_with(idle).take(plan.connections).collect();
        let requests = plan.asks.iter().map(|ask| ask.bytes(None)).collect();
        let account = Account { connections: plan.connections, ..Account::default() };
        Ok(Self { plan, requests, epoll, connections, sent: 0, in_flight: 0, account })
    }

    /// Sends the next request on a connection; closes it when there is none to send, so that a
    /// server with fewer processes than connections can turn to those that still wait. A failure
    /// to send is a failed request, and the one after it is tried at once.
    fn next(&mut self, index: usize, go_on: &mut impl FnMut(u64) -> bool) -> Result<()> {
        while go_on(self.sent) {
            let number = self.sent;
            self.sent += 1;
            if self.connections[index].stream.is_none() && !self.connect(index)? {
                continue;
            }
            let turn = self.turn(number);
            let numbered = self.plan.numbered.then(|| self.plan.asks[turn].bytes(Some(number)));
            let request = numbered.as_deref().unwrap_or(&self.requests[turn]);
            let connection = &mut self.connections[index];
            connection.number = number;
            connection.sent = Instant::now();
            connection.buffer.clear();
            let stream = connection.stream.as_mut().expect("connected above");
            // A request is far smaller than a socket buffer: a short write is a broken peer.
            if stream.write_all(request).is_ok() {
                connection.waiting = true;
                self.in_flight += 1;
                self.account.reused += u64::from(connection.used);
                return Ok(());
            }
            connection.stream = None;
            self.account.failures.broken += 1;
        }
        self.connections[index].stream = None;
        Ok(())
    }

    /// Which ask a request is.
    fn turn(&self, number: u64) -> usize {
        (number % self.plan.asks.len() as u64) as usize
    }

    /// Whether there is a connection now; the failure is counted if not.
    fn connect(&mut self, index: usize) -> Result<bool> {
        let stream = match TcpStream::connect(self.plan.address) {
            Ok(stream) => stream,
            // No port is left for this destination (connect(2), EADDRNOTAVAIL).
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                self.account.failures.ports += 1;
                return Ok(false);
            }
            Err(_) => {
                self.account.failures.connect += 1;
                return Ok(false);
            }
        };
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .doing(|| "set up a connection".into())?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)
            .doing(|| "watch a connection".into())?;
        self.connections[index].stream = Some(stream);
        self.connections[index].used = false;
        Ok(true)
    }

    fn ready(&mut self, index: usize, go_on: &mut impl FnMut(u64) -> bool) -> Result<()> {
        let turn = self.turn(self.connections[index].number);
        let connection = &mut self.connections[index];
        if !connection.waiting {
            // Nothing was asked: the server closes an idle connection, as it may.
            connection.stream = None;
            return Ok(());
        }
        match connection.read() {
            Reading::Waiting => return Ok(()),
            Reading::Answer(shape) => {
                let (status, keep_alive) = (shape.status, shape.keep_alive);
                let body = connection.judge(&self.plan.asks[turn], shape);
                self.account.answer(connection, status, body);
                connection.used = true;
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
            Scan::Complete(shape) => Reading::Answer(shape),
        }
    }

    /// Holds the answer in the buffer against what the ask expects.
    fn judge(&self, ask: &Ask, shape: Shape) -> Body {
        let other_length =
            ask.length_bytes.is_some_and(|length| length != body_length(&self.buffer, shape));
        let other_bytes =
            || ask.body_bytes().is_some_and(|body| !is_body(&self.buffer, shape, body));
        match () {
            () if other_length => Body::OtherLength,
            () if other_bytes() => Body::OtherBytes,
            () => Body::AsExpected,
        }
    }
}

/// CPU time of this thread in µs, exact to the ns (`/proc/PID/schedstat`, Linux's
/// Documentation/scheduler/sched-stats.rst).
fn thread_us() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: Option<u64> = stat.split(' ').next().and_then(|word| word.parse().ok());
    ns.unwrap_or(0) / 1_000
}

#[cfg(test)]
mod tests;
