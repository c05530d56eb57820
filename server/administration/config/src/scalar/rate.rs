//! Rates of requests.

use super::kind::{Fault, Scalar, Written};
use super::quantity::Period;

/// Requests in a period, such as `10/s`, `300/min` or `5/10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateText {
    pub(crate) count: u32,
    pub(crate) period_ms: u64,
}

/// A longer period is no limit of a rate.
const LONGEST_MS: u64 = 24 * 3_600_000;

impl Scalar for RateText {
    const NAME: &'static str = "rate";
    const EXPECTED: &'static str = "a rate such as \"10/s\", \"300/min\" or \"5/10s\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        let (count, period) = text.split_once('/').ok_or_else(Self::unexpected)?;
        // As nginx writes it: `10r/s`.
        let count = count.trim().trim_end_matches('r');
        let count: u32 = count.parse().map_err(|_| Self::unexpected())?;
        let period = period.trim();
        let period = match period {
            "s" | "m" | "min" | "h" | "d" => format!("1{period}"),
            period => period.to_owned(),
        };
        let Period(period_ms) =
            Period::read(Written::Text(&period)).map_err(|_| Self::unexpected())?;
        if count == 0 || period_ms == 0 {
            let fault = Fault::new("a rate of 0 admits no request");
            return Err(fault.hint("use `deny` to refuse clients"));
        }
        if period_ms > LONGEST_MS || count > 1_000_000_000 {
            return Err(Fault::new("the period is at most a day, the count at most 1000000000"));
        }
        Ok(Self { count, period_ms })
    }

    fn write(&self) -> String {
        format!("{}/{}", self.count, Period(self.period_ms).write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_and_a_period() {
        let read = |text| {
            RateText::read(Written::Text(text)).ok().map(|rate| (rate.count, rate.period_ms))
        };
        assert_eq!(read("10/s"), Some((10, 1_000)));
        assert_eq!(read("10r/s"), Some((10, 1_000)));
        assert_eq!(read("300/min"), Some((300, 60_000)));
        assert_eq!(read("5 / 10s"), Some((5, 10_000)));
        assert_eq!(read("100/h"), Some((100, 3_600_000)));
        for text in ["", "10", "/s", "0/s", "10/0s", "-1/s", "10/x", "1.5/s", "10/s/s", "1/25h"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
