//! [`load_by_tls`]: the same request over TLS 1.3, by HTTP/1.1, HTTP/2 or HTTP/3, or with a handshake for each;
//! [`load_page`]: a page of several objects, on a connection of its own.
//!
//! Called by experiments whose stacks have a [`TlsListener`]. Invariant: a load of handshakes fails if
//! they were not of the kind that it is about.

use std::net::SocketAddr;
use std::time::Duration;

use outboard_load::{Load as Pace, Plan, Protocol, Rate, Run, Summary, Target};

use super::{ENDLESS, NAME, Task, failed, load_of, on_the_clock, plan};
use crate::error::{Error, Result};
use crate::load::Load;
use crate::request_spec::RequestSpec;
use crate::stack::Stack;
use crate::tls_listener::TlsListener;

/// The share of handshakes that resume a session if all of them may: a connection that is begun before
/// the first tickets have arrived cannot.
const RESUMED_SHARE: f64 = 0.9;

/// How requests share connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// HTTP/1.1, one request at a time on each of these connections.
    Http1 {
        /// Persistent connections.
        connections: usize,
    },
    /// HTTP/2, as many requests at a time on each connection as there are streams.
    Http2 {
        /// Persistent connections.
        connections: usize,
        /// Streams of each.
        streams: usize,
    },
    /// HTTP/3, as HTTP/2.
    Http3 {
        /// Persistent connections.
        connections: usize,
        /// Streams of each.
        streams: usize,
    },
    /// HTTP/1.1, with a connection for each request.
    Handshakes {
        /// Concurrent connections.
        connections: usize,
        /// Whether each resumes the session of an earlier one (RFC 8446 2.2).
        resumed: bool,
    },
}

impl Over {
    fn connections(self) -> usize {
        match self {
            Self::Http1 { connections }
            | Self::Handshakes { connections, .. }
            | Self::Http2 { connections, .. }
            | Self::Http3 { connections, .. } => connections,
        }
    }

    fn streams(self) -> usize {
        match self {
            Self::Http1 { .. } | Self::Handshakes { .. } => 1,
            Self::Http2 { streams, .. } | Self::Http3 { streams, .. } => streams,
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Self::Http1 { .. } | Self::Handshakes { .. } => Protocol::Http1,
            Self::Http2 { .. } => Protocol::Http2,
            Self::Http3 { .. } => Protocol::Http3,
        }
    }
}

/// The same request for this long: at a fixed rate per second as an open loop, otherwise as a closed one.
pub fn load_by_tls(
    stack: &Stack,
    tls: &TlsListener,
    request: &RequestSpec,
    over: Over,
    rate: Option<f64>,
    seconds: f64,
) -> Result<Load> {
    let (connections, streams) = (over.connections(), over.streams());
    let task = Task::on(stack, request, connections);
    let plan = Plan {
        load: rate.map_or(Pace::Closed, |rate| on_the_clock(Rate::Fixed(rate))),
        ..encrypted(&task, tls.address, over, Duration::from_secs_f64(seconds))?
    };
    let summary = Run::start(plan).and_then(Run::finish).map_err(|error| failed(&error))?;
    check_handshakes(over, &summary)?;
    // A stream is to a server of HTTP/2 what a connection is to one of HTTP/1.1.
    Ok(Load { connections: connections * streams, ..load_of(&summary) })
}

/// Requests each stream of one new connection once, and returns the time from the beginning of the handshake to
/// the last byte of the last response. `address` is where the client finds the listener.
pub fn load_page(request: &RequestSpec, address: SocketAddr, over: Over) -> Result<Duration> {
    let objects = over.streams() as u64;
    let task = Task::new(address, request, 1);
    let plan = Plan {
        requests: Some(objects),
        resumes_tls: false,
        ..encrypted(&task, address, over, ENDLESS)?
    };
    let summary = Run::start(plan).and_then(Run::finish).map_err(|error| failed(&error))?;
    if summary.responses != objects || summary.failures.total() != 0 || summary.connect.len() != 1 {
        let (got, connections) = (summary.responses, summary.connect.len());
        let what = format!("{got} of {objects} objects over {connections} connections");
        return Err(Error::Unexpected { who: NAME.into(), what });
    }
    Ok(Duration::from_nanos(summary.connect.max() + summary.latency.max()))
}

fn encrypted(task: &Task, address: SocketAddr, over: Over, duration: Duration) -> Result<Plan> {
    let target = Target::parse(&format!("https://{address}/")).map_err(|error| failed(&error))?;
    Ok(Plan {
        target: Target { protocol: over.protocol(), ..target },
        streams: over.streams(),
        keep_alive: !matches!(over, Over::Handshakes { .. }),
        verify_tls: false,
        resumes_tls: !matches!(over, Over::Handshakes { resumed: false, .. }),
        ..plan(task, duration)?
    })
}

fn check_handshakes(over: Over, summary: &Summary) -> Result<()> {
    let (all, resumed) = (summary.connect.len(), summary.resumed);
    let is_so = match over {
        Over::Handshakes { resumed: false, .. } => resumed == 0,
        Over::Handshakes { .. } => resumed as f64 >= all as f64 * RESUMED_SHARE,
        _ => true,
    };
    if is_so {
        return Ok(());
    }
    let what = format!("{resumed} of {all} handshakes resumed a session");
    Err(Error::Unexpected { who: NAME.into(), what })
}
