//! What a generator reports of one run: answers, failures by class, latencies.
//!
//! Filled by [`crate::generator`] and its rivals; read by the experiments and the table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Requests that did not end in an answer below status 400, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The connection could not be made.
    pub connect: u64,
    /// The machine had no port left to connect from: the generator's failure, not the server's.
    pub ports: u64,
    /// The connection broke, or closed in the middle of or instead of an answer.
    pub broken: u64,
    /// A good answer of another length than the one that the stacks were compared by.
    pub length: u64,
    /// A good answer of the right length with other bytes.
    pub body: u64,
    /// No answer within the generator's time-out.
    pub timeout: u64,
    /// An answer with status 400 or above.
    pub status: u64,
}

impl Failures {
    /// All classes together.
    pub fn total(&self) -> u64 {
        self.connect
            + self.ports
            + self.broken
            + self.length
            + self.body
            + self.timeout
            + self.status
    }

    /// Those to which no answer came.
    pub fn unanswered(&self) -> u64 {
        self.connect + self.ports + self.broken + self.timeout
    }

    /// The classes that occurred with their counts, for a narrow column; `0` without failures.
    pub fn classes(&self) -> String {
        let words = [
            (self.connect, "connect"),
            (self.ports, "no port"),
            (self.broken, "receive"),
            (self.length, "length"),
            (self.body, "body"),
            (self.status, "status"),
            (self.timeout, "timeout"),
        ];
        let words = words.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(count, word)| format!("{count} {word}")).collect();
        if words.is_empty() { "0".into() } else { words.join(", ") }
    }

    /// Adds another run's failures.
    pub fn add(&mut self, other: &Self) {
        self.connect += other.connect;
        self.ports += other.ports;
        self.broken += other.broken;
        self.length += other.length;
        self.body += other.body;
        self.timeout += other.timeout;
        self.status += other.status;
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = [
            (self.connect, "not connected"),
            (self.ports, "without a port"),
            (self.broken, "broken"),
            (self.length, "of another length"),
            (self.body, "with other bytes"),
            (self.timeout, "timed out"),
            (self.status, "of status 400 or above"),
        ];
        write!(f, "{} failed", self.total())?;
        let classes = classes.iter().filter(|(count, _)| *count > 0);
        classes.into_iter().try_for_each(|(count, class)| write!(f, ", {count} {class}"))
    }
}

/// Latency percentiles of one run in µs. Closed loop: the next request waits for the last
/// answer, so this is the time of service under that load and not what a user would wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the answers took at most this.
    pub p50_us: f64,
    /// 90 % took at most this.
    pub p90_us: f64,
    /// 99 % took at most this.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// The mean; `None` where the generator does not tell what it measured.
    pub mean_us: Option<f64>,
}

/// Answers of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// How many.
    pub answers: u64,
    /// How long each took from when it was sent: what the server did, and nothing of the wait for
    /// a free connection.
    pub service: Latency,
}

/// The quantiles of a [`Load::spectrum_us`]: what lies between them is drawn as a line.
pub const QUANTILES: [f64; 11] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// One run of a generator.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Load {
    /// Whole answers received, of any status.
    pub answers: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// How long the run took.
    pub seconds: f64,
    /// Requests sent on a connection that had answered before; `None` where the generator does
    /// not tell.
    pub reused: Option<u64>,
    /// Latencies of the answers.
    pub latency: Latency,
    /// The good answers, and their time from when they were sent; none where the generator does
    /// not tell.
    #[serde(default)]
    pub accepted: Served,
    /// The same of answers that said that there is no room at present (429, 503).
    #[serde(default)]
    pub refused: Served,
    /// Latency in µs at each of [`QUANTILES`], as far as there were answers enough to tell; empty
    /// where the generator does not tell.
    #[serde(default)]
    pub spectrum_us: Vec<f64>,
    /// Requests a second that were asked for; `None` where each waits for the one before.
    #[serde(default)]
    pub offered: Option<f64>,
    /// How late 99 % of the requests were sent at most by the generator's own fault, in µs; `None`
    /// without a schedule.
    #[serde(default)]
    pub late_p99_us: Option<f64>,
    /// Connections that the load came over.
    pub connections: usize,
    /// What the generator's one thread spent on it, in µs of CPU.
    pub client_us: u64,
    /// What the stack spent on it, in µs of CPU, from the first request to the last answer: without
    /// accepting the connections before and closing them after. `None` where the generator does not
    /// tell.
    #[serde(default)]
    pub server_us: Option<u64>,
}

impl Load {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answers as f64 / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_only_the_classes_that_occurred() {
        let failures = Failures { broken: 2, status: 1, ..Failures::default() };
        assert_eq!(failures.to_string(), "3 failed, 2 broken, 1 of status 400 or above");
        assert_eq!(failures.classes(), "2 receive, 1 status");
        assert_eq!(Failures::default().to_string(), "0 failed");
    }
}
