//! The progress of a run on standard error: one updated line in a terminal, otherwise a line per
//! interval.

use outboard_load::{Interval, Plan, report};
use std::io::{IsTerminal, Write};

/// Bars of a sparkline, from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The number of intervals drawn.
const BARS_MAX: usize = 24;

/// The progress display of one run.
pub(super) struct Live {
    is_quiet: bool,
    is_terminal: bool,
    seconds: Option<f64>,
    rates: Vec<f64>,
}

impl Live {
    pub(super) fn new(plan: &Plan, is_quiet: bool) -> Self {
        let seconds = plan.requests.is_none().then_some(plan.duration.as_secs_f64());
        Self { is_quiet, is_terminal: std::io::stderr().is_terminal(), seconds, rates: Vec::new() }
    }

    /// Shows an interval that has ended.
    pub(super) fn show(&mut self, interval: &Interval) {
        if self.is_quiet {
            return;
        }
        self.rates.push(interval.rate());
        let line = self.line(interval);
        // The run continues even if standard error is closed.
        let _ = match self.is_terminal {
            true => write!(std::io::stderr(), "\r\x1b[2K{line}"),
            false => writeln!(std::io::stderr(), "{line}"),
        };
    }

    fn line(&self, interval: &Interval) -> String {
        let now = interval.at_seconds + interval.seconds;
        let of = self.seconds.map(|seconds| format!("/{seconds:.0}")).unwrap_or_default();
        let mut line = format!(
            "{now:.0}{of} s  {}/s  p50 {}  p99 {}  {} in flight",
            report::count(interval.rate().round() as u64),
            report::time(interval.p50_ns),
            report::time(interval.p99_ns),
            interval.in_flight
        );
        if interval.backlog_max > 0 {
            line.push_str(&format!("  {} waiting", interval.backlog_max));
        }
        if interval.failures.total() > 0 {
            line.push_str(&format!("  failed {}", interval.failures));
        }
        if self.is_terminal {
            line.push_str(&format!("  {}", sparkline(&self.rates)));
        }
        line
    }

    /// Clears the line for the result.
    pub(super) fn end(&self) {
        if self.is_terminal && !self.is_quiet {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The last values as bars relative to the highest.
fn sparkline(values: &[f64]) -> String {
    let values = &values[values.len().saturating_sub(BARS_MAX)..];
    let max = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: &f64| BARS[((value / max * 7.0).round() as usize).min(7)];
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_full_and_old_ones_are_dropped() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[1.0; 50]).chars().count(), BARS_MAX);
        assert_eq!(sparkline(&[]), "");
    }
}
