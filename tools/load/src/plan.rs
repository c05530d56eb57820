//! [`Plan`]: the complete description of a run, fixed before it starts.
//!
//! Built by the command line, by a scenario file or by another crate; read by all threads of the
//! run.

use crate::schedule::{Arrival, Rate};
use crate::server_cpu::Processes;
use crate::target::{Protocol, Target};
use crate::template::Template;
use std::sync::Arc;
use std::time::Duration;

/// The minimum that servers should allow (RFC 9113 6.5.2), and the default of `h2`.
const STREAMS_MAX: usize = 100;

/// One request with placeholders that are filled on sending.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Fields except `Host`, `Content-Length`, `Connection` and `Cookie`, which are generated. A
    /// `Host` given here replaces that of the target.
    pub headers: Vec<(String, Template)>,
    /// The body; empty for none.
    pub body: Template,
}

impl Request {
    /// A `GET` of a literal path.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: Template::literal(path),
            headers: Vec::new(),
            body: Template::default(),
        }
    }

    /// All its templates.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        [&self.path, &self.body].into_iter().chain(headers)
    }

    /// Why it would not arrive as it is meant, if so.
    fn problem(&self) -> Option<String> {
        let is_token = |text: &str| {
            let is_tchar =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !text.is_empty() && text.bytes().all(is_tchar)
        };
        if !is_token(&self.method) {
            return Some(format!("{:?} is no method", self.method));
        }
        let name = self.headers.iter().find(|(name, _)| !is_token(name));
        name.map(|(name, _)| format!("{name:?} is no name of a header"))
    }

    /// Whether all its requests have the same bytes.
    pub(crate) fn is_fixed(&self) -> bool {
        self.templates().all(Template::is_fixed)
    }
}

/// The expected response; any other counts as failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// The only good status; by default all below 400 are good.
    pub status: Option<u16>,
    /// The only good length of the body in bytes.
    pub length_bytes: Option<u64>,
    /// Text that the body must contain. Bodies are stored then, which costs the generator a copy.
    pub body_contains: Option<String>,
    /// The only good body. Bodies are stored then as well.
    pub body_is: Option<Arc<[u8]>>,
}

/// A value that is captured from a response for later requests.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The name of its placeholder.
    pub name: String,
    /// The pattern for the body: its first group, or the whole match without groups.
    pub pattern: regex::bytes::Regex,
}

/// One request of a script with its checks.
#[derive(Debug, Clone)]
pub struct Step {
    /// The request.
    pub request: Request,
    /// The expected response.
    pub expect: Expect,
    /// Values captured from the response.
    pub captures: Vec<Capture>,
    /// Minimum and maximum think time after the response. It applies to closed loops only; in an
    /// open loop the schedule says when the next request is due.
    pub think: (Duration, Duration),
}

impl Step {
    /// A request without checks.
    pub fn new(request: Request) -> Self {
        Self {
            request,
            expect: Expect::default(),
            captures: Vec::new(),
            think: (Duration::ZERO, Duration::ZERO),
        }
    }

    /// Whether the body of the response is read as text.
    pub(crate) fn reads_body(&self) -> bool {
        let Expect { body_contains, body_is, .. } = &self.expect;
        body_contains.is_some() || body_is.is_some() || !self.captures.is_empty()
    }
}

/// The requests of one user from start to end, each time with new cookies.
#[derive(Debug, Clone)]
pub struct Script {
    /// The name in reports.
    pub name: String,
    /// Its weight in the random choice among scripts.
    pub weight: u32,
    /// In order; a failed step ends the script.
    pub steps: Vec<Step>,
}

/// Rows of values for the users of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// The names of the columns, which placeholders refer to.
    pub columns: Vec<String>,
    /// At least one row, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Whether rows are drawn at random instead of in order.
    pub random: bool,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Each connection sends the next request after the last response. Shows the capacity of a
    /// server, not what users wait.
    Closed,
    /// By a schedule that is independent of the server. A request without a free connection waits,
    /// and its latency counts from when it was due.
    Open {
        /// Requests per second.
        rate: Rate,
        /// Their distribution in time.
        arrival: Arrival,
        /// Requests that have waited this long for a connection are dropped and counted.
        deadline: Option<Duration>,
    },
}

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Address and protocol.
    pub target: Target,
    /// At least one, of at least one step each.
    pub scripts: Vec<Script>,
    /// Values for the users.
    pub feeds: Vec<Feed>,
    /// When requests are sent.
    pub load: Load,
    /// Connections, each used by as many users as it has streams.
    pub connections: usize,
    /// Concurrent requests per connection; more than one requires HTTP/2 or HTTP/3.
    pub streams: usize,
    /// Threads; at most one per connection is used.
    pub threads: usize,
    /// How long requests are sent.
    pub duration: Duration,
    /// Ends a closed loop after this many requests, if the duration has not ended it before.
    pub requests: Option<u64>,
    /// Whether a closed loop waits at its end for outstanding responses, so that a slow server has
    /// no work left when the run has ended. When no response arrives for a while, idle connections
    /// are closed, since a server may serve others only then.
    pub drains: bool,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The timeout of a request without a complete response.
    pub timeout: Duration,
    /// The number of keys that `{key}` draws from.
    pub keys: u64,
    /// Draws `{key}`, `{latest}` and random rows of feeds by Zipf's law with this exponent, between
    /// 0 and 1; without it all are equally likely.
    pub zipf: Option<f64>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The length of one [`Interval`](crate::Interval) of the time series.
    pub interval: Duration,
    /// Whether the time to the first byte of each response is measured, for a little more CPU time.
    pub first_byte: bool,
    /// Whether certificates must be trusted by this machine.
    pub verify_tls: bool,
    /// Whether connections resume the TLS sessions of earlier ones, if the server allows it.
    pub resumes_tls: bool,
    /// The server's processes, whose CPU time is measured from the first request to the end,
    /// without accepting the first connections and closing the last.
    pub server: Option<Processes>,
}

impl Plan {
    /// `GET` the target in a closed loop with 64 connections for 10 s.
    pub fn new(target: Target) -> Self {
        let step = Step::new(Request::get(&target.path));
        let script = Script { name: "request".to_owned(), weight: 1, steps: vec![step] };
        Self {
            target,
            scripts: vec![script],
            feeds: Vec::new(),
            load: Load::Closed,
            connections: 64,
            streams: 1,
            threads: 1,
            duration: Duration::from_secs(10),
            requests: None,
            drains: false,
            keep_alive: true,
            timeout: Duration::from_secs(10),
            keys: 10_000,
            zipf: None,
            seed: 1,
            interval: Duration::from_secs(1),
            first_byte: false,
            verify_tls: true,
            resumes_tls: true,
            server: None,
        }
    }

    /// The threads that the run starts: no more than connections or requests.
    pub(crate) fn thread_count(&self) -> usize {
        let requests = self.requests.map_or(usize::MAX, |count| count.max(1) as usize);
        self.threads.min(self.connections).min(requests).max(1)
    }

    /// Whether any script has think time.
    pub(crate) fn thinks(&self) -> bool {
        self.scripts.iter().flat_map(|script| &script.steps).any(|step| !step.think.1.is_zero())
    }

    /// Whether users need cookies or captures from responses.
    pub(crate) fn uses_responses(&self) -> bool {
        self.scripts.iter().any(|script| script.steps.len() > 1)
    }

    /// Why it cannot be carried out, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let steps = || self.scripts.iter().flat_map(|script| &script.steps);
        let rate_is_sound = match self.load {
            Load::Closed => true,
            Load::Open { rate: Rate::Fixed(rate), .. } => rate.is_finite() && rate > 0.0,
            Load::Open { rate: Rate::Ramp { from, to } | Rate::Step { from, to, .. }, .. } => {
                from.is_finite() && to.is_finite() && from >= 0.0 && to >= 0.0 && from + to > 0.0
            }
        };
        let is_open = self.load != Load::Closed;
        let no_weight = self.scripts.iter().all(|script| script.weight == 0);
        let problems = [
            (self.connections == 0, "no connections: at least one is needed"),
            (self.requests == Some(0), "no requests: at least one is needed"),
            (self.duration.is_zero() || self.interval.is_zero(), "the duration is zero"),
            (
                self.target.protocol == Protocol::Http3 && self.target.tls_name.is_none(),
                "HTTP/3 needs TLS: the URL begins with https://",
            ),
            (
                self.streams == 0 || (self.streams > 1 && !self.target.protocol.has_streams()),
                "several requests at a time on a connection need HTTP/2 or HTTP/3",
            ),
            (self.streams > STREAMS_MAX, "servers allow at most 100 streams per connection"),
            (
                self.streams > 1 && !self.keep_alive,
                "several concurrent requests need persistent connections",
            ),
            (
                self.streams > 1 && self.first_byte,
                "the first byte cannot be measured with several concurrent responses",
            ),
            (steps().next().is_none(), "there is no request to send"),
            (self.scripts.iter().any(|script| script.steps.is_empty()), "a script has no steps"),
            (no_weight, "the weights of all scripts are zero"),
            (!rate_is_sound, "the rate must be above zero"),
            (
                self.zipf.is_some_and(|exponent| !(exponent > 0.0 && exponent < 1.0)),
                "the exponent of Zipf's law is between 0 and 1, such as 0.99",
            ),
            (
                is_open && self.requests.is_some(),
                "a rate goes by duration and not by a number of \
                                                  requests",
            ),
            (self.feeds.iter().any(|feed| feed.rows.is_empty()), "a data feed has no rows"),
        ];
        let problem = problems.iter().find(|(is_so, _)| *is_so).map(|(_, why)| (*why).to_owned());
        problem.or_else(|| steps().find_map(|step| step.request.problem()))
    }
}
