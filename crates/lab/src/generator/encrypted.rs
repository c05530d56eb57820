//! [`load_by_tls`]: the same request over TLS 1.3, by HTTP/1.1, HTTP/2 or HTTP/3, or with a handshake for each.
//!
//! Called by experiments whose stacks have a [`TlsListener`]. Invariant: a load of handshakes fails if
//! they were not of the kind that it is about.

use std::time::Duration;

use outboard_load::{Load as Pace, Plan, Protocol, Rate, Run, Summary, Target};

use super::{NAME, Task, failed, load_of, on_the_clock, plan};
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

/// The same request for this long: at a fixed rate per second as an open loop, otherwise as a closed one.
pub fn load_by_tls(
    stack: &Stack,
    tls: &TlsListener,
    request: &RequestSpec,
    over: Over,
    rate: Option<f64>,
    seconds: f64,
) -> Result<Load> {
    let (connections, streams, protocol) = match over {
        Over::Http2 { connections, streams } => (connections, streams, Protocol::Http2),
        Over::Http3 { connections, streams } => (connections, streams, Protocol::Http3),
        Over::Http1 { connections } | Over::Handshakes { connections, .. } => {
            (connections, 1, Protocol::Http1)
        }
    };
    let target = Target::parse(&format!("https://{}/", tls.address));
    let target = Target { protocol, ..target.map_err(|error| failed(&error))? };
    let task = Task::on(stack, request, connections);
    let plan = Plan {
        target,
        load: rate.map_or(Pace::Closed, |rate| on_the_clock(Rate::Fixed(rate))),
        streams,
        keep_alive: !matches!(over, Over::Handshakes { .. }),
        verify_tls: false,
        resumes_tls: !matches!(over, Over::Handshakes { resumed: false, .. }),
        ..plan(&task, Duration::from_secs_f64(seconds))?
    };
    let summary = Run::start(plan).and_then(Run::finish).map_err(|error| failed(&error))?;
    check_handshakes(over, &summary)?;
    // A stream is to a server of HTTP/2 what a connection is to one of HTTP/1.1.
    Ok(Load { connections: connections * streams, ..load_of(&summary) })
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
