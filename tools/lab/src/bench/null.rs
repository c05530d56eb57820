//! `outboard bench null`: the cost and the punctuality of the generator itself.

use super::outputs;
use super::stop::{FAILED, INVALID, Stop};
use crate::terminal::show;
use clap::Args;
use outboard_load::{
    Arrival, Load, NullServer, Plan, Rate, Run, Summary, Target, parse_duration, report,
};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct NullArguments {
    /// Connections.
    #[arg(long, short, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// The duration of each of the two runs.
    #[arg(long, short, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    duration: Duration,
    /// The rate at which punctuality is measured.
    #[arg(long, short, value_name = "RATE", default_value_t = 15_000.0)]
    rate: f64,
    /// Write both results as JSON.
    #[arg(long, short = 'o', value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn run(arguments: &NullArguments) -> Result<u8, Stop> {
    let cannot = |error| Stop(FAILED, format!("the null server does not start: {error}"));
    let server = NullServer::start().map_err(cannot)?;
    let mut plan = Plan::new(Target::parse(&server.url()).map_err(Stop::mistake)?);
    plan.connections = arguments.connections;
    plan.duration = arguments.duration;
    let closed = Run::start(plan.clone())?.finish()?;
    let rate = Rate::Fixed(arguments.rate);
    plan.load = Load::Open { rate, arrival: Arrival::Even, deadline: None };
    let open = Run::start(plan)?.finish()?;
    show(&text(&closed, &open, arguments.rate));
    if let Some(path) = &arguments.json {
        let both = json!({"schema": "outboard.null.v1", "closed": report::json(&closed),
                          "open": report::json(&open)});
        outputs::write(path, &format!("{both:#}\n"))?;
    }
    Ok(if open.warnings().is_empty() { 0 } else { INVALID })
}

fn text(closed: &Summary, open: &Summary, rate: f64) -> String {
    let lag = |quantile| report::time(open.lag.value_at_quantile(quantile));
    let mut out = format!(
        "The generator by itself: 1 thread, {} connections, against a server with almost \
         no cost.\n\n  ceiling       {} requests/s in a closed loop\n  cost          {:.2} µs of CPU \
         per request\n  pacing        at {rate}/s: {:.2} % sent; late by 50 %: {}, 99 %: {}, max: {}\n  \
         latency       at {rate}/s: 50 %: {}, 99 %: {} (the floor of all measurements here)\n",
        closed.connections,
        report::count(closed.rate() as u64),
        closed.client_us_per_request(),
        open.rate_ratio() * 100.0,
        lag(0.5),
        lag(0.99),
        lag(1.0),
        report::time(open.latency.value_at_quantile(0.5)),
        report::time(open.latency.value_at_quantile(0.99)),
    );
    for warning in open.warnings() {
        out.push_str(&format!("\n  not reliable at this rate: {warning}\n"));
    }
    out
}
