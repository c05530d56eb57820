//! Times as they are typed.

use std::time::Duration;

/// Parses `500us`, `250ms`, `10s`, `2m`, `1h`, or a number of seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is no time; 500ms, 10s and 2m are"))?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit} is no unit of time; us, ms, s, m and h are")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}
