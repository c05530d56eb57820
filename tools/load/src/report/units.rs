//! Times and counts in the forms that people read.
//!
//! Used by every report, and by the programs that print one number of a result.

/// A time in ns with a unit that keeps it short: `812 µs`, `3.41 ms`, `1.20 s`.
pub fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e5 => format!("{:.1} µs", ns / 1e3),
        _ if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        _ if ns < 1e7 => format!("{:.2} ms", ns / 1e6),
        _ if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// A count with thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_keeps_them_short() {
        let shown = [40, 81_250, 812_000, 3_412_000, 34_120_000, 1_200_000_000].map(time);
        assert_eq!(shown, ["40 ns", "81.2 µs", "812 µs", "3.41 ms", "34.1 ms", "1.20 s"]);
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
