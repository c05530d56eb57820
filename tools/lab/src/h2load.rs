//! h2load as a second generator with a fixed rate, over HTTP/1.1.
//!
//! Runs Debian's binary with one thread. It reports no percentiles and counts latency from sending,
//! so its rate and the server's CPU are what can be compared.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Error, Result, ResultExt};
use crate::load::{Failure, Failures, Latency, Load};
use crate::system::program;
use outboard_profile::process_table::ended_children_us;

/// The name in tables.
pub const NAME: &str = "h2load";

/// The installed h2load.
pub struct H2load {
    binary: PathBuf,
}

impl H2load {
    /// Finds it.
    pub fn find() -> Result<Self> {
        let binary = program(&["/usr/bin/h2load", "/usr/local/bin/h2load"], "nghttp2-client")?;
        Ok(Self { binary })
    }

    /// Requests `path` at `rate` per second in all, for whole `seconds`.
    pub fn run(
        &self,
        address: SocketAddr,
        path: &str,
        connections: usize,
        seconds: u64,
        rate: f64,
    ) -> Result<Load> {
        let before_us = ended_children_us();
        let output = Command::new(&self.binary)
            .args(["--h1", "--threads", "1", "--clients", &connections.to_string()])
            .args(["--duration", &seconds.to_string()])
            .arg(format!("--rps={}", rate / connections as f64))
            .arg(format!("http://{address}{path}"))
            .stdin(Stdio::null())
            .output()
            .context(|| "run h2load".into())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let load = parse(&text).ok_or_else(|| Error::Program {
            program: NAME.into(),
            output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        })?;
        let client_us = ended_children_us().saturating_sub(before_us);
        Ok(Load { connections, client_us, ..load })
    }
}

fn parse(text: &str) -> Option<Load> {
    let after = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let rate: f64 = after("finished in ")?.split(", ").nth(1)?.split(' ').next()?.parse().ok()?;
    let counts: Vec<u64> = after("requests: ")?
        .split(", ")
        .map_while(|part| part.split(' ').next()?.parse().ok())
        .collect();
    let &[_, _, _, responses, failed, errored, timeout] = counts.as_slice() else { return None };
    let times = after("time for request:")?;
    let times_us: Vec<f64> = times.split_whitespace().map_while(time_us).collect();
    let &[_, max_us, mean_us, ..] = times_us.as_slice() else { return None };
    Some(Load {
        responses,
        failures: Failures::from([
            (Failure::Status, failed.saturating_sub(errored)),
            (Failure::Closed, errored.saturating_sub(timeout)),
            (Failure::Timeout, timeout),
        ]),
        seconds: responses as f64 / rate.max(f64::MIN_POSITIVE),
        latency: Latency { max_us, mean_us: Some(mean_us), ..Latency::default() },
        ..Load::default()
    })
}

/// `94us`, `1.42ms`, `2.01s` in µs.
fn time_us(word: &str) -> Option<f64> {
    let number = |unit| word.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
    number("us")
        .or_else(|| number("ms").map(|ms| ms * 1e3))
        .or_else(|| number("s").map(|seconds| seconds * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "starting benchmark...
finished in 2.01s, 14944.00 req/s, 2.12MB/s
requests: 29890 total, 29889 started, 29889 done, 29888 succeeded, 3 failed, 2 errored, 1 timeout
                     min         max         mean         sd        +/- sd
time for request:       94us      6.44ms      1.42ms       992us    89.16%
";

    #[test]
    fn a_report_is_read() {
        let load = parse(REPORT).expect("nothing is missing");
        assert_eq!((load.responses, load.rate().round()), (29_888, 14_944.0));
        let count = |failure| load.failures.count(failure);
        let counts = [Failure::Status, Failure::Closed, Failure::Timeout].map(count);
        assert_eq!(counts, [1, 1, 1]);
        assert_eq!((load.latency.max_us, load.latency.mean_us), (6_440.0, Some(1_420.0)));
    }

    #[test]
    fn a_truncated_report_is_rejected() {
        let cut = REPORT.split("requests:").next().expect("there is a beginning");
        assert!(parse(cut).is_none());
    }
}
