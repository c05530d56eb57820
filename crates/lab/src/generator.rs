//! The project's own load generator as the lab uses it: one thread of the lab, told what to send
//! and what has to come back, its result in the form that all generators share.
//!
//! Called by every experiment. Invariant: a closed loop waits for all of its answers, so that a
//! slow server has nothing left to do for nobody when its slice has ended, and every request that
//! was sent is counted once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outboard_load::{
    Arrival, Expect, Failure, Histogram, Load as Pace, Moment, Plan, Processes, Rate, Run, Script,
    Step, Summary, Target, Times,
};

use crate::ask::Ask;
use crate::error::{Error, Result};
use crate::load::{Failures, Latency, Load, QUANTILES, Served};
use crate::stack::Stack;

/// The name in tables, beside other generators.
pub const NAME: &str = "outboard bench";

/// A request without an answer for so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than anybody waits for a number of requests to be answered.
const ENDLESS: Duration = Duration::from_secs(24 * 3600);

/// How often [`run_until`] tells how many requests have been sent.
const TELLING: Duration = Duration::from_millis(10);

/// An interval of the time series of [`load_by`].
pub const MOMENT: Duration = Duration::from_millis(100);

/// What to send.
#[derive(Debug, Clone)]
pub struct Task {
    /// Where to.
    pub address: SocketAddr,
    /// What to ask for, each as often as the others.
    pub asks: Vec<Ask>,
    /// Append `?id=N` with the request's number, so that the server can tell them apart; then
    /// 200 is the only good status.
    pub is_numbered: bool,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// The processes whose CPU time is told.
    pub server: Option<Processes>,
}

impl Task {
    /// One ask over and over.
    pub fn new(address: SocketAddr, ask: &Ask, connections: usize) -> Self {
        let asks = vec![ask.clone()];
        Self { address, asks, is_numbered: false, connections, server: None }
    }

    /// The same to a stack, whose CPU time is told.
    pub fn on(stack: &Stack, ask: &Ask, connections: usize) -> Self {
        Self { server: stack.group.processes(), ..Self::new(stack.address, ask, connections) }
    }

    /// GETs of one path.
    pub fn get(address: SocketAddr, path: &str, connections: usize) -> Self {
        Self::new(address, &Ask::get(path), connections)
    }
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct Account {
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Numbers and statuses of the answers whose status was not good, of numbered requests.
    pub rejected: Vec<(u64, u16)>,
    /// The numbers that all generators tell.
    pub load: Load,
}

/// Sends `count` requests.
pub fn run_count(task: &Task, count: u64) -> Result<Account> {
    let plan = Plan { requests: Some(count), ..plan(task, ENDLESS)? };
    finish(Run::start(plan))
}

/// Sends requests for that long.
pub fn run_for(task: &Task, duration: Duration) -> Result<Account> {
    finish(Run::start(plan(task, duration)?))
}

/// Sends requests until told to stop; tells `sent` now and then how many more were sent.
pub fn run_until(task: &Task, stop: Arc<AtomicBool>, sent: impl Fn(u64)) -> Result<Account> {
    let plan = Plan { interval: TELLING, ..plan(task, ENDLESS)? };
    let mut run = Run::start_until(plan, stop).map_err(|error| failed(&error))?;
    while let Some(moment) = run.next_moment().map_err(|error| failed(&error))? {
        sent(moment.sent);
    }
    finish(Ok(run))
}

/// One ask over so many connections for that long, as fast as it is answered.
pub fn load(stack: &Stack, ask: &Ask, connections: usize, seconds: f64) -> Result<Load> {
    let task = Task::on(stack, ask, connections);
    Ok(run_for(&task, Duration::from_secs_f64(seconds))?.load)
}

/// One ask at so many requests a second, whatever the server does.
pub fn load_at(
    stack: &Stack,
    ask: &Ask,
    connections: usize,
    seconds: f64,
    rate: f64,
) -> Result<Load> {
    let task = Task::on(stack, ask, connections);
    let pace = on_the_clock(Rate::Fixed(rate));
    let plan = Plan { load: pace, ..plan(&task, Duration::from_secs_f64(seconds))? };
    Ok(finish(Run::start(plan))?.load)
}

/// The same by any course of the rate, and its time series. Requests that find no free connection
/// within `deadline` are given up, so that none of them is sent when the rate has long fallen.
pub fn load_by(
    task: &Task,
    duration: Duration,
    rate: Rate,
    deadline: Duration,
) -> Result<(Load, Vec<Moment>)> {
    let pace = Pace::Open { rate, arrival: Arrival::Even, deadline: Some(deadline) };
    let plan = Plan { load: pace, interval: MOMENT, ..plan(task, duration)? };
    let summary = Run::start(plan).and_then(Run::finish).map_err(|error| failed(&error))?;
    Ok((load_of(&summary), summary.moments))
}

fn on_the_clock(rate: Rate) -> Pace {
    Pace::Open { rate, arrival: Arrival::Even, deadline: None }
}

fn plan(task: &Task, duration: Duration) -> Result<Plan> {
    let target = format!("http://{}/", task.address);
    let target = Target::parse(&target).map_err(|error| failed(&error))?;
    let script = |ask: &Ask| Script {
        name: ask.path().into(),
        weight: 1,
        steps: vec![step(ask, task.is_numbered)],
    };
    Ok(Plan {
        scripts: task.asks.iter().map(script).collect(),
        connections: task.connections,
        duration,
        timeout: PATIENCE,
        drains: true,
        server: task.server.clone(),
        ..Plan::new(target)
    })
}

fn step(ask: &Ask, is_numbered: bool) -> Step {
    let expect = Expect {
        status: is_numbered.then_some(200),
        length_bytes: ask.length_bytes.map(|bytes| bytes as u64),
        body_is: ask.answer.clone(),
        ..Expect::default()
    };
    Step { expect, ..Step::new(ask.request(is_numbered)) }
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
    let count = |failure| summary.failures.count(failure);
    let offered = summary.asked_rate();
    Load {
        answers: summary.answers,
        failures: Failures {
            connect: count(Failure::Connect),
            ports: count(Failure::Ports),
            broken: count(Failure::Closed) + count(Failure::Malformed),
            length: count(Failure::Length),
            body: count(Failure::Body),
            timeout: count(Failure::Timeout),
            status: count(Failure::Status),
        },
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

/// A quantile that is beyond all answers but one is a matter of luck.
fn spectrum_us(times_ns: &Histogram<u64>) -> Vec<f64> {
    let is_told = |quantile: &&f64| (1.0 - **quantile) * times_ns.len() as f64 >= 1.0;
    let told = QUANTILES.iter().take_while(is_told);
    told.map(|&quantile| times_ns.value_at_quantile(quantile) as f64 / 1e3).collect()
}

fn served(times: &Times) -> Served {
    Served { answers: times.count(), service: latency(&times.service) }
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

mod mix;

pub use mix::{Mix, Protocol};

#[cfg(test)]
mod tests;
