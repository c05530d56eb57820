//! [`Mix`]: several kinds of requests with their weights, to an HTTP server or to Redis.
//!
//! Both sides of a comparison draw keys with the same distribution.

use std::time::Duration;

use outboard_load::{Feed, Load as Pace, Plan, Rate, Run, Script, Target, ZIPF_DEFAULT_EXPONENT};

use super::{PATIENCE, failed, finish, on_the_clock, step};
use crate::error::Result;
use crate::load::Load;
use crate::request_spec::RequestSpec;
use crate::stack::Stack;

/// The protocol of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// The Redis protocol.
    Redis,
}

/// The requests with their weights.
#[derive(Debug, Clone)]
pub struct Mix {
    /// The protocol.
    pub protocol: Protocol,
    /// Sequences of requests with their weights.
    pub scripts: Vec<(u32, Vec<RequestSpec>)>,
    /// Values for the placeholders of the requests, by row.
    pub feeds: Vec<Feed>,
    /// The number of keys that `{key}` draws from.
    pub keys: u64,
    /// Whether keys and rows are drawn by Zipf's law, as in YCSB.
    pub is_skewed: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
}

impl Mix {
    /// The same request again and again, with all keys equally likely.
    pub fn of(protocol: Protocol, request: RequestSpec, keys: u64, connections: usize) -> Self {
        let (scripts, feeds) = (vec![(1, vec![request])], Vec::new());
        Self { protocol, scripts, feeds, keys, is_skewed: false, connections }
    }

    /// A closed loop.
    pub fn load(&self, stack: &Stack, seconds: f64) -> Result<Load> {
        self.run(Plan { duration: Duration::from_secs_f64(seconds), ..self.plan(stack)? })
    }

    /// This many requests per second.
    pub fn load_at(&self, stack: &Stack, seconds: f64, rate: f64) -> Result<Load> {
        let load = on_the_clock(Rate::Fixed(rate));
        self.run(Plan { load, duration: Duration::from_secs_f64(seconds), ..self.plan(stack)? })
    }

    /// This many requests.
    pub fn run_count(&self, stack: &Stack, count: u64) -> Result<Load> {
        self.run(Plan { requests: Some(count), ..self.plan(stack)? })
    }

    fn run(&self, plan: Plan) -> Result<Load> {
        Ok(finish(Run::start(plan))?.load)
    }

    fn plan(&self, stack: &Stack) -> Result<Plan> {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Redis => "redis",
        };
        let target = Target::parse(&format!("{scheme}://{}/", stack.address));
        let script = |(weight, requests): &(u32, Vec<RequestSpec>)| Script {
            name: requests.first().map_or_else(String::new, |request| request.path().into()),
            weight: *weight,
            steps: requests.iter().map(|request| step(request, false)).collect(),
        };
        Ok(Plan {
            scripts: self.scripts.iter().map(script).collect(),
            feeds: self.feeds.clone(),
            load: Pace::Closed,
            connections: self.connections,
            duration: super::ENDLESS,
            timeout: PATIENCE,
            drains: true,
            keys: self.keys,
            zipf: self.is_skewed.then_some(ZIPF_DEFAULT_EXPONENT),
            server: stack.group.processes(),
            ..Plan::new(target.map_err(|error| failed(&error))?)
        })
    }
}
