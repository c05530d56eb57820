//! How a run goes, on standard error: a line that changes in a terminal, lines one below the other
//! elsewhere.

use outboard_load::{Moment, Plan, report};
use std::io::{IsTerminal, Write};

/// Bars of a sparkline, from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// As many intervals are drawn.
const BARS_MAX: usize = 24;

/// The display of one run.
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

    /// Shows an interval that is over.
    pub(super) fn show(&mut self, moment: &Moment) {
        if self.is_quiet {
            return;
        }
        self.rates.push(moment.rate());
        let line = self.line(moment);
        // Nobody may be reading any more; the run matters all the same.
        let _ = match self.is_terminal {
            true => write!(std::io::stderr(), "\r\x1b[2K{line}"),
            false => writeln!(std::io::stderr(), "{line}"),
        };
    }

    fn line(&self, moment: &Moment) -> String {
        let now = moment.at_seconds + moment.seconds;
        let of = self.seconds.map(|seconds| format!("/{seconds:.0}")).unwrap_or_default();
        let mut line = format!(
            "{now:.0}{of} s  {}/s  p50 {}  p99 {}  {} in flight",
            report::count(moment.rate().round() as u64),
            report::time(moment.p50_ns),
            report::time(moment.p99_ns),
            moment.in_flight
        );
        if moment.backlog_max > 0 {
            line.push_str(&format!("  {} waiting", moment.backlog_max));
        }
        if moment.failures.total() > 0 {
            line.push_str(&format!("  failed {}", moment.failures));
        }
        if self.is_terminal {
            line.push_str(&format!("  {}", sparkline(&self.rates)));
        }
        line
    }

    /// Leaves the terminal to the result.
    pub(super) fn end(&self) {
        if self.is_terminal && !self.is_quiet {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The last values as bars, the highest the full height.
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
    fn the_highest_bar_is_full_and_old_ones_go() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[1.0; 50]).chars().count(), BARS_MAX);
        assert_eq!(sparkline(&[]), "");
    }
}
