//! The project's load generator as the lab uses it: one thread of the lab, with results in the form
//! that all generators share.
//!
//! Called by every experiment. Invariant: a closed loop waits for all of its responses, so that a
//! slow server has no work left when its slice has ended, and every request that was sent is
//! counted once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outboard_load::{
    Arrival, Expect, Histogram, Interval, Load as Pace, Plan, Processes, Rate, Run, Script, Step,
    Summary, Target, Times,
};

use crate::error::{Error, Result};
use crate::load::{Latency, Load, QUANTILES, Served};
use crate::request_spec::RequestSpec;
use crate::stack::Stack;

/// The name in tables with several generators.
pub const NAME: &str = "outboard bench";

/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// A duration longer than any run that a number of requests ends.
const ENDLESS: Duration = Duration::from_secs(24 * 3600);

/// How often [`run_until`] reports the number of requests sent.
const REPORT_INTERVAL: Duration = Duration::from_millis(10);

/// An interval of the time series of [`load_by`].
pub const INTERVAL: Duration = Duration::from_millis(100);

/// The requests to send.
#[derive(Debug, Clone)]
pub struct Task {
    /// The address.
    pub address: SocketAddr,
    /// The requests, all equally frequent.
    pub requests: Vec<RequestSpec>,
    /// Append `?id=N` with the request's number, so that the server can distinguish them; then 200
    /// is the only good status.
    pub is_numbered: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// The processes whose CPU time is measured.
    pub server: Option<Processes>,
}

impl Task {
    /// The same request again and again.
    pub fn new(address: SocketAddr, request: &RequestSpec, connections: usize) -> Self {
        let requests = vec![request.clone()];
        Self { address, requests, is_numbered: false, connections, server: None }
    }

    /// The same request to a stack, whose CPU time is measured.
    pub fn on(stack: &Stack, request: &RequestSpec, connections: usize) -> Self {
        Self { server: stack.group.processes(), ..Self::new(stack.address, request, connections) }
    }

    /// GETs of one path.
    pub fn get(address: SocketAddr, path: &str, connections: usize) -> Self {
        Self::new(address, &RequestSpec::get(path), connections)
    }
}

/// The result of a task.
#[derive(Debug, Default)]
pub struct Account {
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Numbers and statuses of numbered requests whose status was not good.
    pub rejected: Vec<(u64, u16)>,
    /// The results that all generators share.
    pub load: Load,
}

/// Sends `count` requests.
pub fn run_count(task: &Task, count: u64) -> Result<Account> {
    let plan = Plan { requests: Some(count), ..plan(task, ENDLESS)? };
    finish(Run::start(plan))
}

/// Sends requests for this duration.
pub fn run_for(task: &Task, duration: Duration) -> Result<Account> {
    finish(Run::start(plan(task, duration)?))
}

/// Sends requests until `stop` is set; reports the number of further requests to `sent`.
pub fn run_until(task: &Task, stop: Arc<AtomicBool>, sent: impl Fn(u64)) -> Result<Account> {
    let plan = Plan { interval: REPORT_INTERVAL, ..plan(task, ENDLESS)? };
    let mut run = Run::start_until(plan, stop).map_err(|error| failed(&error))?;
    while let Some(interval) = run.next_interval().map_err(|error| failed(&error))? {
        sent(interval.sent);
    }
    finish(Ok(run))
}

/// The same request over this many connections for this long, as a closed loop.
pub fn load(
    stack: &Stack,
    request: &RequestSpec,
    connections: usize,
    seconds: f64,
) -> Result<Load> {
    let task = Task::on(stack, request, connections);
    Ok(run_for(&task, Duration::from_secs_f64(seconds))?.load)
}

/// The same request at a fixed rate per second, as an open loop.
pub fn load_at(
    stack: &Stack,
    request: &RequestSpec,
    connections: usize,
    seconds: f64,
    rate: f64,
) -> Result<Load> {
    let task = Task::on(stack, request, connections);
    let pace = on_the_clock(Rate::Fixed(rate));
    let plan = Plan { load: pace, ..plan(&task, Duration::from_secs_f64(seconds))? };
    Ok(finish(Run::start(plan))?.load)
}

/// Any course of the rate, with its time series. Requests without a free connection within
/// `deadline` are dropped, so that none is sent after the rate has fallen.
pub fn load_by(
    task: &Task,
    duration: Duration,
    rate: Rate,
    deadline: Duration,
) -> Result<(Load, Vec<Interval>)> {
    let pace = Pace::Open { rate, arrival: Arrival::Even, deadline: Some(deadline) };
    let plan = Plan { load: pace, interval: INTERVAL, ..plan(task, duration)? };
    let summary = Run::start(plan).and_then(Run::finish).map_err(|error| failed(&error))?;
    Ok((load_of(&summary), summary.intervals))
}

fn on_the_clock(rate: Rate) -> Pace {
    Pace::Open { rate, arrival: Arrival::Even, deadline: None }
}

fn plan(task: &Task, duration: Duration) -> Result<Plan> {
    let target = format!("http://{}/", task.address);
    let target = Target::parse(&target).map_err(|error| failed(&error))?;
    let script = |request: &RequestSpec| Script {
        name: request.path().into(),
        weight: 1,
        steps: vec![step(request, task.is_numbered)],
    };
    Ok(Plan {
        scripts: task.requests.iter().map(script).collect(),
        connections: task.connections,
        duration,
        timeout: PATIENCE,
        drains: true,
        server: task.server.clone(),
        ..Plan::new(target)
    })
}

fn step(request: &RequestSpec, is_numbered: bool) -> Step {
    let expect = Expect {
        status: is_numbered.then_some(200),
        length_bytes: request.length_bytes.map(|bytes| bytes as u64),
        body_is: request.response.clone(),
        ..Expect::default()
    };
    Step { expect, ..Step::new(request.render(is_numbered)) }
}

fn finish(run: std::result::Result<Run, outboard_load::Error>) -> Result<Account> {
    let summary = run.and_then(Run::finish).map_err(|error| failed(&error))?;
    let load = load_of(&summary);
    Ok(Account { statuses: summary.statuses, rejected: summary.rejected, load })
}

fn failed(error: &impl ToString) -> Error {
    Error::Unexpected { who: NAME.into(), what: error.to_string() }
}

/// A summary in the form that all generators share.
fn load_of(summary: &Summary) -> Load {
    let offered = summary.scheduled_rate();
    Load {
        responses: summary.responses,
        failures: summary.failures,
        seconds: summary.seconds,
        reused: Some(summary.sent.saturating_sub(summary.connect.len())),
        latency: latency(&summary.latency),
        accepted: served(&summary.accepted()),
        refused: served(&summary.refused),
        spectrum_us: spectrum_us(&summary.latency),
        offered,
        late_p99_us: offered.map(|_| summary.lag.value_at_quantile(0.99) as f64 / 1e3),
        connections: summary.connections,
        client_us: summary.client_cpu_us,
        server_us: summary.server.as_ref().map(|server| server.total_us),
    }
}

/// A quantile beyond all responses but one is random.
fn spectrum_us(times_ns: &Histogram<u64>) -> Vec<f64> {
    let is_reliable = |quantile: &&f64| (1.0 - **quantile) * times_ns.len() as f64 >= 1.0;
    let reliable = QUANTILES.iter().take_while(is_reliable);
    reliable.map(|&quantile| times_ns.value_at_quantile(quantile) as f64 / 1e3).collect()
}

fn served(times: &Times) -> Served {
    Served { responses: times.count(), service: latency(&times.service) }
}

fn latency(times_ns: &Histogram<u64>) -> Latency {
    let at = |quantile| times_ns.value_at_quantile(quantile) as f64 / 1e3;
    Latency {
        p50_us: at(0.50),
        p90_us: at(0.90),
        p99_us: at(0.99),
        max_us: at(1.0),
        mean_us: (!times_ns.is_empty()).then(|| times_ns.mean() / 1e3),
    }
}

mod encrypted;
mod mix;

pub use encrypted::{Over, load_by_tls, load_page};
pub use mix::{Mix, Protocol};

#[cfg(test)]
mod tests;
