//! [`Mix`]: several kinds of requests, each with its share, to a server of HTTP or to Redis.
//!
//! What is asked of the two in a comparison is drawn alike: the same keys as often as each other.

use std::time::Duration;

use outboard_load::{Feed, Load as Pace, Plan, Rate, Run, Script, Target, ZIPF_USUAL};

use super::{PATIENCE, failed, finish, on_the_clock, step};
use crate::ask::Ask;
use crate::error::Result;
use crate::load::Load;
use crate::stack::Stack;

/// What a mix is sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// Redis's own.
    Redis,
}

/// What is asked for, and how often; see the module.
#[derive(Debug, Clone)]
pub struct Mix {
    /// What is spoken.
    pub protocol: Protocol,
    /// Asks that follow one another, and how often each row of them comes against the others.
    pub scripts: Vec<(u32, Vec<Ask>)>,
    /// Values for the places of the asks, drawn by row.
    pub feeds: Vec<Feed>,
    /// How many keys `{key}` draws from.
    pub keys: u64,
    /// Whether some keys and rows are drawn far more often than others, as YCSB does.
    pub is_skewed: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
}

impl Mix {
    /// One ask over and over, each key as often as the others.
    pub fn of(protocol: Protocol, ask: Ask, keys: u64, connections: usize) -> Self {
        let (scripts, feeds) = (vec![(1, vec![ask])], Vec::new());
        Self { protocol, scripts, feeds, keys, is_skewed: false, connections }
    }

    /// As fast as it is answered.
    pub fn load(&self, stack: &Stack, seconds: f64) -> Result<Load> {
        self.run(Plan { duration: Duration::from_secs_f64(seconds), ..self.plan(stack)? })
    }

    /// So many requests a second.
    pub fn load_at(&self, stack: &Stack, seconds: f64, rate: f64) -> Result<Load> {
        let load = on_the_clock(Rate::Fixed(rate));
        self.run(Plan { load, duration: Duration::from_secs_f64(seconds), ..self.plan(stack)? })
    }

    /// So many requests.
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
        let script = |(weight, asks): &(u32, Vec<Ask>)| Script {
            name: asks.first().map_or_else(String::new, |ask| ask.path().into()),
            weight: *weight,
            steps: asks.iter().map(|ask| step(ask, false)).collect(),
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
            zipf: self.is_skewed.then_some(ZIPF_USUAL),
            server: stack.group.processes(),
            ..Plan::new(target.map_err(|error| failed(&error))?)
        })
    }
}
