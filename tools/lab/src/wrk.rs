//! wrk, for comparison with the project's generator: a closed loop of keep-alive connections.
//!
//! Runs Debian's binary with one thread (the generator shares the machine's cores with the
//! stack) and a script whose only function is `done`, which costs nothing per request.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{Error, Result, ResultExt};
use crate::janitor;
use crate::lab::Lab;
use crate::load::{Failure, Failures, Latency, Load};
use crate::request_spec::HOST;
use crate::system::{program, write};
use outboard_profile::process_table::threads_us;

/// Prints a marked line of numbers, which is distinct from wrk's own report.
const REPORT: &str = r#"
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("lab %d %d %d %d %d %d %d %f %f %f %f\n",
    summary.requests, summary.duration, e.connect, e.read, e.write, e.timeout, e.status,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max))
end
"#;

/// The name in tables.
pub const NAME: &str = "wrk";

/// The installed wrk and its report script.
pub struct Wrk {
    binary: PathBuf,
    script: PathBuf,
}

impl Wrk {
    /// Finds wrk and writes the script.
    pub fn find(lab: &Lab) -> Result<Self> {
        let binary = program(&["/usr/bin/wrk", "/usr/local/bin/wrk"], "wrk")?;
        let script = lab.scratch.join("report.lua");
        write(&script, REPORT)?;
        Ok(Self { binary, script })
    }

    /// Requests `path` over `connections` connections for about `seconds`.
    pub fn run(
        &self,
        address: SocketAddr,
        path: &str,
        connections: usize,
        seconds: f64,
    ) -> Result<Load> {
        let wrk = Command::new(&self.binary)
            .args(["--threads", "1", "--timeout", "10s", "--header", &format!("Host: {HOST}")])
            .args(["--connections", &connections.to_string()])
            .args(["--duration", &format!("{}s", seconds.ceil() + 1.0)])
            .arg("--script")
            .arg(&self.script)
            .arg(format!("http://{address}{path}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(|| "run wrk".into())?;
        // wrk counts in whole seconds; when interrupted it ends early with its report.
        thread::sleep(Duration::from_secs_f64(seconds));
        let client_us = threads_us(wrk.id());
        janitor::signal(wrk.id(), Signal::INT);
        let output = wrk.wait_with_output().context(|| "run wrk".into())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let load = parse(&text).ok_or_else(|| Error::Program {
            program: "wrk".into(),
            output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        })?;
        Ok(Load { connections, client_us, ..load })
    }
}

fn parse(text: &str) -> Option<Load> {
    let line = text.lines().find_map(|line| line.strip_prefix("lab "))?;
    let numbers: Vec<f64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let &[responses, us, connect, read, write, timeout, status, p50_us, p90_us, p99_us, max_us] =
        numbers.as_slice()
    else {
        return None;
    };
    Some(Load {
        responses: responses as u64,
        failures: Failures::from([
            (Failure::Connect, connect as u64),
            (Failure::Closed, (read + write) as u64),
            (Failure::Timeout, timeout as u64),
            (Failure::Status, status as u64),
        ]),
        seconds: us / 1e6,
        reused: None,
        // wrk corrects its mean, so it differs from the measured one.
        latency: Latency { p50_us, p90_us, p99_us, max_us, mean_us: None },
        ..Load::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_line_is_found_among_wrks_own() {
        let text =
            "Running 1s test\n  12 requests in 1.00s\nlab 12 2000000 0 1 2 3 4 50 90 99 120\n";
        let load = parse(text).expect("the line is there");
        assert_eq!((load.responses, load.rate(), load.failures.total()), (12, 6.0, 10));
        assert_eq!(load.latency.p99_us, 99.0);
    }

    #[test]
    fn a_truncated_report_is_rejected() {
        assert!(parse("lab 12 2000000 0 1").is_none());
    }
}
