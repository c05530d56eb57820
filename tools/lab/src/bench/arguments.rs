//! The arguments of `outboard bench`, and the plan built from them.

use clap::{Args, ValueEnum};
use outboard_load::{
    Arrival, Expect, Load, Plan, Processes, Protocol, Rate, Request, Script, Step, Target,
    Template, parse_duration,
};
use std::path::PathBuf;
use std::time::Duration;

/// The requests, their checks and the duration.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Connections, each with one user.
    #[arg(long, short, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// How long requests are sent: 500ms, 10s, 2m.
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// Stop after this many requests.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "rate")]
    requests: Option<u64>,
    /// Threads [default: half of this machine's cores].
    #[arg(long, short, value_name = "N")]
    threads: Option<usize>,
    /// Requests per second, independent of the server; A:B ramps from A to B, A@TIME,B is A for
    /// this time and then B. By default each connection sends the next request after the last
    /// response.
    #[arg(long, short, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(super) rate: Option<Rate>,
    /// The distribution of requests in time.
    #[arg(long, value_name = "HOW", default_value = "even")]
    arrival: ArrivalName,
    /// Drop a request that has waited this long for a connection.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "rate")]
    deadline: Option<Duration>,
    /// The timeout of a request.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    timeout: Duration,
    /// A new connection for every request.
    #[arg(long)]
    no_keepalive: bool,
    /// Send for this long before counting.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) warmup: Option<Duration>,
    /// The method [default: GET, or POST with a body].
    #[arg(long, short = 'X', value_name = "METHOD")]
    method: Option<String>,
    /// A header. May be given more than once. The placeholders {seq}, {key}, {rand} and {rand:N}
    /// are filled.
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The body, with placeholders as in a header; @FILE sends a file as it is.
    #[arg(long, short = 'b', value_name = "TEXT")]
    body: Option<String>,
    /// Fill placeholders in the URL as well.
    #[arg(long)]
    fill_url: bool,
    /// The number of keys that {key} draws from.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    keys: u64,
    /// Draw some keys more often than others, by Zipf's law [default exponent: 0.99].
    #[arg(long, value_name = "EXPONENT", num_args = 0..=1, default_missing_value = "0.99", require_equals = true)]
    zipf: Option<f64>,
    /// The seed of random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run the scenario of a TOML file, which replaces --check, --header and so on.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "header", "body", "check", "fill_url"])]
    scenario: Option<PathBuf>,
    /// A check of responses: status=200, length=1234 or body~text. May be given more than once.
    #[arg(long, value_name = "WHAT")]
    check: Vec<String>,
    /// Use HTTP/2: with TLS by ALPN, without TLS by prior knowledge.
    #[arg(long, conflicts_with = "http3")]
    http2: bool,
    /// Use HTTP/3, for https: URLs, without an alternative if the server does not speak it.
    #[arg(long)]
    http3: bool,
    /// Concurrent requests per connection, with --http2 or --http3.
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: usize,
    /// Accept any certificate.
    #[arg(long)]
    insecure: bool,
    /// A full TLS handshake for every connection, instead of resuming sessions.
    #[arg(long)]
    no_resumption: bool,
    /// Measure the CPU time of this process and its descendants. May be given more than once.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Measure the CPU time of a control group, by its directory.
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// The length of an interval of the time series.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ArrivalName {
    Even,
    Poisson,
}

impl PlanArguments {
    /// Builds the plan; the error is a message for the user.
    pub(crate) fn plan(&self, url: &str) -> Result<Plan, String> {
        let mut plan = Plan::new(Target::parse(url).map_err(|error| error.to_string())?);
        if self.http2 {
            if plan.target.protocol != Protocol::Http1 {
                return Err("--http2 is for http: and https:".to_owned());
            }
            plan.target.protocol = Protocol::Http2;
        }
        if self.http3 {
            if plan.target.protocol != Protocol::Http1 || plan.target.tls_name.is_none() {
                return Err("--http3 is for https:".to_owned());
            }
            plan.target.protocol = Protocol::Http3;
        }
        plan.connections = self.connections;
        plan.streams = self.streams;
        plan.threads = self.threads.unwrap_or_else(default_threads);
        plan.duration = self.duration;
        if self.requests.is_some() {
            // The number of requests ends the run; the time is only a limit.
            plan.duration = self.duration.max(Duration::from_secs(3600));
        }
        plan.requests = self.requests;
        plan.timeout = self.timeout;
        plan.keep_alive = !self.no_keepalive;
        plan.keys = self.keys;
        plan.zipf = self.zipf;
        plan.seed = self.seed;
        plan.interval = self.interval.max(Duration::from_millis(10));
        plan.verify_tls = !self.insecure;
        plan.resumes_tls = !self.no_resumption;
        plan.load = self.load();
        plan.server = match (&self.cgroup, self.pid.is_empty()) {
            (Some(directory), _) => Some(Processes::Cgroup(directory.clone())),
            (None, false) => Some(Processes::Trees(self.pid.clone())),
            (None, true) => None,
        };
        if let Some(file) = &self.scenario {
            plan.load_scenario(file).map_err(|error| error.to_string())?;
            return Ok(plan);
        }
        let step = self.step(&plan.target.path)?;
        plan.scripts = vec![Script { name: "request".to_owned(), weight: 1, steps: vec![step] }];
        Ok(plan)
    }

    fn load(&self) -> Load {
        let Some(rate) = self.rate else { return Load::Closed };
        let arrival = match self.arrival {
            ArrivalName::Even => Arrival::Even,
            ArrivalName::Poisson => Arrival::Poisson,
        };
        Load::Open { rate, arrival, deadline: self.deadline }
    }

    fn step(&self, path: &str) -> Result<Step, String> {
        let template = |text: &str| Template::parse(text).map_err(|error| error.to_string());
        let path = if self.fill_url { template(path)? } else { Template::literal(path) };
        let headers = self.header.iter().map(|line| {
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("--header {line}: no colon in it"))?;
            Ok((name.trim().to_owned(), template(value.trim())?))
        });
        let body = match self.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => Template::default(),
            Some((_, Some(file))) => {
                Template::literal(std::fs::read(file).map_err(|error| format!("{file}: {error}"))?)
            }
            Some((text, None)) => template(text)?,
        };
        let default = if self.body.is_some() { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(default).to_ascii_uppercase();
        let headers = headers.collect::<Result<_, String>>()?;
        let mut step = Step::new(Request { method, path, headers, body });
        for check in &self.check {
            expect(check, &mut step.expect)?;
        }
        Ok(step)
    }
}

/// Half of the cores, since the server needs the others.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// Parses `status=200`, `length=5` or `body~text`.
fn expect(check: &str, expect: &mut Expect) -> Result<(), String> {
    let wrong = || format!("--check {check}: it is status=NUMBER, length=BYTES or body~TEXT");
    if let Some(text) = check.strip_prefix("body~") {
        expect.body_contains = Some(text.to_owned());
        return Ok(());
    }
    let (what, number) = check.split_once('=').ok_or_else(wrong)?;
    match what {
        "status" => expect.status = Some(number.parse().map_err(|_| wrong())?),
        "length" => expect.length_bytes = Some(number.parse().map_err(|_| wrong())?),
        _ => return Err(wrong()),
    }
    Ok(())
}

/// Parses `2000`, `100:5000` or `30000@60s,5000`.
fn rate(text: &str) -> Result<Rate, String> {
    let number = |text: &str| {
        let number = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
        number
            .ok_or_else(|| "requests a second, such as 2000, 100:5000 or 30000@60s,5000".to_owned())
    };
    if let Some((from, rest)) = text.split_once('@') {
        let (during, to) = rest.split_once(',').ok_or("A@TIME,B has a rate after its time")?;
        let during = parse_duration(during)?;
        return Ok(Rate::Step { from: number(from)?, during, to: number(to)? });
    }
    match text.split_once(':') {
        Some((from, to)) => Ok(Rate::Ramp { from: number(from)?, to: number(to)? }),
        None => Ok(Rate::Fixed(number(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_fixed_or_ramps() {
        assert_eq!(rate("2000"), Ok(Rate::Fixed(2000.0)));
        assert_eq!(rate("100:5000"), Ok(Rate::Ramp { from: 100.0, to: 5000.0 }));
        let during = Duration::from_secs(60);
        assert_eq!(rate("900@60s,30"), Ok(Rate::Step { from: 900.0, during, to: 30.0 }));
        assert!(rate("-5").is_err() && rate("900@60s").is_err() && rate("900@x,1").is_err());
        assert!(rate("fast").is_err());
    }

    #[test]
    fn checks_are_parsed_by_kind() {
        let mut read = Expect::default();
        for check in ["status=201", "length=5", "body~a=b"] {
            expect(check, &mut read).expect("it is a check");
        }
        let body_contains = Some("a=b".to_owned());
        assert_eq!(
            read,
            Expect { status: Some(201), length_bytes: Some(5), body_contains, body_is: None }
        );
        assert!(expect("colour=red", &mut read).is_err());
    }
}
