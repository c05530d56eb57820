//! [`Threshold`]: a condition on a result, such as `p99<50ms`.

use crate::report;
use crate::summary::Summary;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// Latency at a quantile, in ns.
    Latency(f64),
    MeanLatency,
    /// Share of failed requests.
    Failures,
    /// Responses per second.
    Rate,
    /// The server's CPU time per request, in µs.
    ServerCpu,
}

/// A bound on one measure of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    measure: Measure,
    is_upper: bool,
    bound: f64,
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidThreshold(String);

impl fmt::Display for InvalidThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a threshold; examples are p99<50ms, p99.9<1s, mean<5ms, max<2s, errors<0.1%, \
             rate>1000 and cpu<400us",
            self.0
        )
    }
}

impl std::error::Error for InvalidThreshold {}

impl Threshold {
    /// Parses `MEASURE<BOUND` or `MEASURE>BOUND`.
    pub fn parse(text: &str) -> Result<Self, InvalidThreshold> {
        Self::read(text).ok_or_else(|| InvalidThreshold(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let at = text.find(['<', '>'])?;
        let (name, bound) = (text[..at].trim(), text[at + 1..].trim().trim_start_matches('='));
        let measure = match name {
            "mean" => Measure::MeanLatency,
            "max" => Measure::Latency(1.0),
            "errors" => Measure::Failures,
            "rate" => Measure::Rate,
            "cpu" => Measure::ServerCpu,
            _ => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                let is_percent = percent > 0.0 && percent <= 100.0;
                is_percent.then_some(Measure::Latency(percent / 100.0))?
            }
        };
        let bound = match measure {
            Measure::Failures => number(bound, &[("%", 0.01), ("", 1.0)]),
            Measure::Rate => number(bound, &[("/s", 1.0), ("", 1.0)]),
            Measure::ServerCpu => number(bound, &[("us", 1.0), ("ms", 1e3), ("", 1.0)]),
            Measure::Latency(_) | Measure::MeanLatency => {
                number(bound, &[("us", 1e3), ("ms", 1e6), ("s", 1e9)])
            }
        }?;
        let is_upper = text.as_bytes()[at] == b'<';
        Some(Self { text: text.to_owned(), measure, is_upper, bound })
    }

    /// Whether the result meets it. A measure that was not taken meets nothing.
    pub fn is_met(&self, summary: &Summary) -> bool {
        let value = self.value(summary);
        value.is_some_and(
            |value| if self.is_upper { value < self.bound } else { value > self.bound },
        )
    }

    /// The measured value for users.
    pub fn measured(&self, summary: &Summary) -> String {
        let Some(value) = self.value(summary) else { return "not measured".to_owned() };
        match self.measure {
            Measure::Latency(_) | Measure::MeanLatency => report::time(value as u64),
            Measure::Failures => format!("{:.3} %", value * 100.0),
            Measure::Rate => format!("{value:.1}/s"),
            Measure::ServerCpu => format!("{value:.2} µs"),
        }
    }

    fn value(&self, summary: &Summary) -> Option<f64> {
        match self.measure {
            Measure::Latency(_) | Measure::MeanLatency if summary.latency.is_empty() => None,
            Measure::Latency(quantile) => Some(summary.latency.value_at_quantile(quantile) as f64),
            Measure::MeanLatency => Some(summary.latency.mean()),
            Measure::Failures => Some(summary.failure_share()),
            Measure::Rate => Some(summary.rate()),
            Measure::ServerCpu => summary.server_us_per_request(),
        }
    }
}

/// The threshold as it was written.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses a number with one of the units, which multiplies it.
fn number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Target, recorder::Slice};

    fn summary() -> Summary {
        let plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
        let mut slice = Slice::new(false);
        (1..=100).for_each(|ms| slice.latency.saturating_record(ms * 1_000_000));
        slice.responses = 100;
        slice.sent = 100;
        Summary { seconds: 2.0, ..Summary::of(&plan, &slice, Vec::new(), Vec::new(), None) }
    }

    #[test]
    fn a_threshold_is_met_within_its_bound() {
        let met = |text| Threshold::parse(text).expect("a threshold").is_met(&summary());
        for text in ["p50<60ms", "p99.9<0.2s", "mean<51ms", "errors<0.1%", "rate>49", "max < 101ms"]
        {
            assert!(met(text), "{text}");
        }
        for text in ["p50<40ms", "p90<80000us", "rate>=51/s", "cpu<1000us"] {
            assert!(!met(text), "{text}");
        }
    }

    #[test]
    fn an_invalid_threshold_is_rejected_with_examples() {
        for text in ["p99", "p101<5ms", "p99<5", "speed<5ms", "p99<-5ms", ""] {
            let error = Threshold::parse(text).expect_err(text).to_string();
            assert!(error.contains("p99<50ms"), "{error}");
        }
    }
}
