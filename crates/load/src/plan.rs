//! [`Plan`]: everything that a run does, decided before it begins.
//!
//! Made by the command line, by a scenario file or by another crate; read by all threads of the
//! run. Nothing of it changes while the run goes on.

use crate::schedule::{Arrival, Rate};
use crate::server_cpu::Processes;
use crate::target::{Protocol, Target};
use crate::template::Template;
use std::sync::Arc;
use std::time::Duration;

/// What a server ought to allow (RFC 9113 6.5.2), and what the protocol's library assumes.
const STREAMS_MAX: usize = 100;

/// One request, with places that are filled when it is sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Fields beside `Host`, `Content-Length`, `Connection` and `Cookie`, which are made. A `Host`
    /// given here takes the place of the target's.
    pub headers: Vec<(String, Template)>,
    /// The body; empty for none.
    pub body: Template,
}

impl Request {
    /// A `GET` of a path, taken literally.
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

    /// What of it would not arrive as it is meant.
    fn mistake(&self) -> Option<String> {
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

    /// Whether it is sent as the same bytes each time.
    pub(crate) fn is_fixed(&self) -> bool {
        self.templates().all(Template::is_fixed)
    }
}

/// What an answer must be; one that is not counts as failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// The only good status; without it, all below 400 are good.
    pub status: Option<u16>,
    /// The only good length of the body in bytes.
    pub length_bytes: Option<u64>,
    /// What the body must contain. Has every body kept, which costs the generator a copy.
    pub body_contains: Option<String>,
    /// The only good body. Has every body kept as well.
    pub body_is: Option<Arc<[u8]>>,
}

/// A value taken out of an answer for the requests after it.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The name of the place that it fills.
    pub name: String,
    /// Finds it in the body: the first group, or the whole match without groups.
    pub pattern: regex::bytes::Regex,
}

/// One request of a script and what belongs to it.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is sent.
    pub request: Request,
    /// What must come back.
    pub expect: Expect,
    /// What is taken out of the answer.
    pub captures: Vec<Capture>,
    /// How long the user thinks after the answer: at least and at most. A closed loop alone
    /// thinks; in an open loop the schedule says when the next request is due.
    pub think: (Duration, Duration),
}

impl Step {
    /// A request alone.
    pub fn new(request: Request) -> Self {
        Self {
            request,
            expect: Expect::default(),
            captures: Vec::new(),
            think: (Duration::ZERO, Duration::ZERO),
        }
    }

    /// Whether the text of the answer's body matters.
    pub(crate) fn reads_body(&self) -> bool {
        let Expect { body_contains, body_is, .. } = &self.expect;
        body_contains.is_some() || body_is.is_some() || !self.captures.is_empty()
    }
}

/// What one user does from beginning to end, with a fresh set of cookies each time.
#[derive(Debug, Clone)]
pub struct Script {
    /// For the report.
    pub name: String,
    /// How often it is chosen, against the others.
    pub weight: u32,
    /// In this order; a failed step ends the script.
    pub steps: Vec<Step>,
}

/// Rows of values for the users of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// The names of the columns, by which places refer to them.
    pub columns: Vec<String>,
    /// At least one row, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Whether rows are drawn at random instead of one after the other.
    pub random: bool,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Each connection sends the next when the last is answered: shows how much a server can do,
    /// and not what users wait.
    Closed,
    /// By a schedule that knows nothing of the server; a request that finds no free connection
    /// waits, and its latency counts from when it was due.
    Open {
        /// Requests a second.
        rate: Rate,
        /// How they scatter.
        arrival: Arrival,
        /// Requests that have waited so long for a connection are given up, and counted.
        deadline: Option<Duration>,
    },
}

/// A run; see the fields.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to, and what to speak.
    pub target: Target,
    /// At least one, of at least one step each.
    pub scripts: Vec<Script>,
    /// Values for the users.
    pub feeds: Vec<Feed>,
    /// When requests are sent.
    pub load: Load,
    /// Connections, each held by as many users as it has streams.
    pub connections: usize,
    /// Requests at a time on one connection; more than one in HTTP/2 alone.
    pub streams: usize,
    /// Threads; at most one a connection is used.
    pub threads: usize,
    /// How long requests are sent.
    pub duration: Duration,
    /// Ends a closed loop after so many requests, if the duration has not before.
    pub requests: Option<u64>,
    /// Whether a closed loop waits at its end for the answers that are still to come. A slow server
    /// then has nothing left to do for nobody when the run has ended. When none comes for a while,
    /// connections that have nothing left to send are closed, since others may wait for them.
    pub drains: bool,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// After so long without a whole answer a request has failed.
    pub timeout: Duration,
    /// How many keys `{key}` draws from.
    pub keys: u64,
    /// Has `{key}`, `{latest}` and random rows of feeds be drawn by Zipf's law with this exponent,
    /// from above 0 to below 1; without, each is as likely as the others.
    pub zipf: Option<f64>,
    /// Where all random numbers of the run begin.
    pub seed: u64,
    /// The length of one [`Moment`](crate::Moment) of the time series.
    pub interval: Duration,
    /// Whether the time to the first byte of each answer is measured, for a little more CPU time.
    pub first_byte: bool,
    /// Whether certificates must be trusted by this machine.
    pub verify_tls: bool,
    /// The server's processes, for its CPU time: what it spends from the first request to the end,
    /// without that of accepting the first connections and of closing the last.
    pub server: Option<Processes>,
}

impl Plan {
    /// `GET` the target over and over: closed loop, 64 connections, 10 s.
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
            server: None,
        }
    }

    /// Threads that the run starts: no more than connections, nor than requests.
    pub(crate) fn thread_count(&self) -> usize {
        let requests = self.requests.map_or(usize::MAX, |count| count.max(1) as usize);
        self.threads.min(self.connections).min(requests).max(1)
    }

    /// Whether any user ever thinks.
    pub(crate) fn thinks(&self) -> bool {
        self.scripts.iter().flat_map(|script| &script.steps).any(|step| !step.think.1.is_zero())
    }

    /// Whether users carry anything from one answer to the next request.
    pub(crate) fn keeps_cookies(&self) -> bool {
        self.scripts.iter().any(|script| script.steps.len() > 1)
    }

    /// What of it cannot be done, in words.
    pub(crate) fn mistake(&self) -> Option<String> {
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
        let mistakes = [
            (self.connections == 0, "no connections: at least one is needed"),
            (self.requests == Some(0), "no requests: at least one is needed"),
            (self.duration.is_zero() || self.interval.is_zero(), "the duration is zero"),
            (
                self.streams == 0 || (self.streams > 1 && self.target.protocol != Protocol::Http2),
                "several requests at a time on a connection need HTTP/2",
            ),
            (
                self.streams > STREAMS_MAX,
                "more than 100 streams on a connection are not what servers allow",
            ),
            (
                self.streams > 1 && !self.keep_alive,
                "several requests at a time need a connection that is kept",
            ),
            (
                self.streams > 1 && self.first_byte,
                "the first byte of several answers at a time is not told apart",
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
        let mistake = mistakes.iter().find(|(is_so, _)| *is_so).map(|(_, why)| (*why).to_owned());
        mistake.or_else(|| steps().find_map(|step| step.request.mistake()))
    }
}
