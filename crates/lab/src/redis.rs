//! Redis beside the entity store: its server with an append-only file, and its own generator.
//!
//! Invariant: it is asked for one thing at a time on each connection, without pipelining, as over
//! HTTP, and its server's CPU is measured like that of every stack.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::{Doing, Error, Result};
use crate::group::Group;
use crate::lab::{Lab, free_address, program};
use crate::load::{Latency, Load};
use crate::process_table::ended_children_us;
use crate::stack::Stack;

/// The name in tables.
pub const NAME: &str = "redis";

/// A server that syncs its file every second.
pub fn start(lab: &mut Lab) -> Result<Stack> {
    let binary = program(&["/usr/bin/redis-server"], "redis-server")?;
    let (folder, address) = (lab.folder(NAME)?, free_address()?);
    let mut command = Command::new(binary);
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]);
    command.arg("--dir").arg(&folder);
    let mut group = Group::new(lab, NAME)?;
    group.start(lab, &command)?;
    group.await_start(|| TcpStream::connect(address).is_ok())?;
    Ok(Stack { name: NAME, address, group })
}

/// Has `redis-benchmark` send so many `SET` or `GET` of keys out of `keys`.
pub fn load(
    stack: &Stack,
    command: &str,
    connections: usize,
    count: u64,
    keys: u64,
    value_bytes: usize,
) -> Result<Load> {
    let binary = program(&["/usr/bin/redis-benchmark"], "redis-tools")?;
    let (before_us, began) = (ended_children_us(), Instant::now());
    let output = Command::new(binary)
        .args(["-h", "127.0.0.1", "-p", &stack.address.port().to_string()])
        .args(["-c", &connections.to_string(), "-n", &count.to_string()])
        .args(["-r", &keys.to_string(), "-d", &value_bytes.to_string(), "-t", command, "--csv"])
        .stdin(Stdio::null())
        .output()
        .doing(|| "run redis-benchmark".into())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let load = parse(&text, count).ok_or_else(|| Error::Program {
        program: "redis-benchmark".into(),
        output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    })?;
    let client_us = ended_children_us().saturating_sub(before_us);
    let seconds = began.elapsed().as_secs_f64();
    Ok(Load { connections, client_us, seconds, ..load })
}

/// `"test","rps","avg_latency_ms","min","p50","p95","p99","max"`, then a line of them.
fn parse(text: &str, count: u64) -> Option<Load> {
    let numbers: Vec<f64> = text
        .lines()
        .nth(1)?
        .split(',')
        .skip(1)
        .map_while(|field| field.trim_matches('"').parse().ok())
        .collect();
    let &[_, mean_ms, _, p50_ms, _, p99_ms, max_ms] = numbers.as_slice() else { return None };
    let latency = Latency {
        p50_us: p50_ms * 1e3,
        p99_us: p99_ms * 1e3,
        max_us: max_ms * 1e3,
        mean_us: Some(mean_ms * 1e3),
        ..Latency::default()
    };
    Some(Load { answers: count, latency, ..Load::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_by_its_columns() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                    \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"SET\",\"50000.00\",\"0.5\",\"0.1\",\"0.4\",\"0.9\",\"1.2\",\"3.5\"\n";
        let load = parse(text, 10).expect("it is a report");
        assert_eq!((load.answers, load.latency.p99_us), (10, 1200.0));
        assert!(parse("Could not connect", 10).is_none());
    }
}
